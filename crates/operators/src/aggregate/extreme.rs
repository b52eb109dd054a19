//! `min` and `max` of numbers: the winner of each group, and all values in order for the day the
//! winner goes.
//!
//! Law: a group's *winner* is its first value with a positive multiplicity, and that multiplicity.
//! Insertions and most retractions decide against the winner alone. The values in order
//! ([`OrderedTrace`]) are asked only where that does not do: when the winner itself is retracted,
//! and when a better value comes to a group that is in *doubt*, one of whose values may have a
//! negative multiplicity because something other than the winner was retracted.
//!
//! State: a winner a group, and all values with multiplicities, unless rows are never taken back.
//! Rows go to the values in large portions, when enough have come or a reader asks. Cost: one visit
//! of a slot for each touched group and time, like a sum; a walk of one value for each question.
//! Source: the early stop of "TPC-H on differential dataflow" (McSherry 2017), taken one step
//! further: what did not win is not looked at.

use std::hint::black_box;
use std::ops::ControlFlow;

use anabranch_arrangement::{Floor, Keys, Layout, MergeEffort, ValueOrder};
use anabranch_batch::order::Direction;
use anabranch_batch::order::Nulls;
use anabranch_batch::{Batch, Diff, Time, gather};
use anabranch_spec::aggregate::AggregateFunction;
use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray};
use arrow::compute::{can_cast_types, cast};
use arrow::datatypes::{ArrowNativeTypeOp, DataType, Decimal64Type, Decimal128Type, Int64Type, UInt64Type};

use super::output::{GroupOutcome, Pairs};
use super::state::Input;
use crate::aggregate::segments::Segments;
use crate::ordered::trace::{OrderedTrace, Place};

/// Rows of a turn, as an extreme call sees them.
pub(crate) struct Seen<'a> {
    /// The call's argument of each row, and where it counts.
    pub(crate) input: Input<'a>,
    /// Rows that the filter lets through; `None` when there is no filter.
    pub(crate) filter: Option<&'a BooleanArray>,
    /// Key columns and hashes of all rows.
    pub(crate) keys: &'a [ArrayRef],
    pub(crate) hashes: &'a [u64],
}

/// An extreme call's memory of all groups.
pub(crate) trait ExtremeState {
    /// Whether it takes rows before they are merged.
    fn takes_rows(&self) -> bool;
    /// Takes the rows of a turn that count, before any of them is merged: key columns and argument,
    /// keyed by the key columns, with times before `upto`.
    fn take(&mut self, rows: Batch, upto: Time);
    /// Merges rows that were taken; returns pairs of results.
    fn step(&mut self, seen: Seen, segments: &Segments, outcome: &mut GroupOutcome) -> ArrayRef;
    /// Makes room for slots below `n_slots`.
    fn resize(&mut self, n_slots: usize);
    /// Leaves in `slots` only those of which nothing is remembered.
    fn retain_zero(&self, slots: &mut Vec<u32>);
    /// Makes the state of some slots that of nothing.
    fn clear(&mut self, slots: &[u32]);
    /// Lets go of values of groups with a key below a floor.
    fn set_floor(&mut self, floor: Floor);
    /// Slot `i` is from now on what slot `old_of_new[i]` was.
    fn renumber(&mut self, old_of_new: &[u32]);
    /// Spare time.
    fn idle(&mut self);
    /// Bytes of state.
    fn size_bytes(&self) -> usize;
}

/// What is kept beside the winners.
#[derive(Clone, Copy, Debug)]
pub(crate) enum KeptExtreme {
    /// Nothing: rows are never taken back.
    Winners,
    /// All values in order, merged so eagerly.
    Values(MergeEffort),
}

/// The state of `min` or `max` for rows of these types: key columns, then the argument. `None`
/// where values are not fixed-width numbers that compare as integers do.
pub(crate) fn extreme(
    function: &AggregateFunction,
    types: Vec<DataType>,
    output_type: &DataType,
    keep: KeptExtreme,
) -> Option<Box<dyn ExtremeState>> {
    let argument = types.last()?.clone();
    if argument != *output_type {
        return None;
    }
    let is_temporal = matches!(
        argument,
        DataType::Date32
            | DataType::Date64
            | DataType::Time32(_)
            | DataType::Time64(_)
            | DataType::Timestamp(..)
            | DataType::Duration(_)
    );
    let is_max = *function == AggregateFunction::Max;
    match argument {
        DataType::UInt64 => Some(make::<UInt64Type>(is_max, DataType::UInt64, types, keep)),
        DataType::Decimal64(..) => Some(make::<Decimal64Type>(is_max, argument, types, keep)),
        DataType::Decimal128(..) => Some(make::<Decimal128Type>(is_max, argument, types, keep)),
        _ if argument.is_integer() || is_temporal => {
            let fits = can_cast_types(&argument, &DataType::Int64) && can_cast_types(&DataType::Int64, &argument);
            fits.then(|| make::<Int64Type>(is_max, DataType::Int64, types, keep))
        }
        _ => None,
    }
}

fn make<T: ArrowPrimitiveType>(
    is_max: bool,
    wide: DataType,
    types: Vec<DataType>,
    keep: KeptExtreme,
) -> Box<dyn ExtremeState> {
    let argument = types.len() - 1;
    let output_type = types[argument].clone();
    let direction = Direction { descending: is_max, nulls_first: is_max };
    let values = ValueOrder::Sorted(vec![(argument, direction)]);
    let trace = match keep {
        KeptExtreme::Winners => None,
        KeptExtreme::Values(effort) => {
            Some(OrderedTrace::new(Layout { key: (0..argument).collect(), values, types }, effort))
        }
    };
    Box::new(Extreme::<T> { is_max, wide, output_type, argument, winners: Vec::new(), trace })
}

struct Extreme<T: ArrowPrimitiveType> {
    is_max: bool,
    /// The type that values are compared as.
    wide: DataType,
    output_type: DataType,
    /// Position of the argument in the rows of the trace.
    argument: usize,
    /// By slot.
    winners: Vec<Winner<T::Native>>,
    /// All values; `None` where none is ever taken back.
    trace: Option<OrderedTrace>,
}

/// What is known of a group.
#[derive(Clone, Copy, Default)]
struct Winner<N> {
    value: N,
    /// Multiplicity of the value; zero when the group has none.
    count: Diff,
    /// Whether a value other than the winner was retracted: its multiplicity may be negative.
    is_doubted: bool,
}

/// What a segment changes.
#[derive(Clone, Copy, Default)]
struct Delta<N> {
    /// The best value inserted, and how often.
    best: N,
    count: Diff,
    /// The best value retracted, if any was.
    gone: N,
    has_gone: bool,
}

/// Segments whose slots are fetched together: they fit the first-level cache.
const WARM_SEGMENTS: usize = 128;

impl<N: Copy> Winner<N> {
    fn value(&self) -> Option<N> {
        (self.count > 0).then_some(self.value)
    }
}

impl<T: ArrowPrimitiveType> ExtremeState for Extreme<T> {
    fn takes_rows(&self) -> bool {
        self.trace.is_some()
    }

    fn take(&mut self, rows: Batch, upto: Time) {
        if let Some(trace) = &mut self.trace {
            trace.defer(rows, upto);
        }
    }

    fn step(&mut self, seen: Seen, segments: &Segments, outcome: &mut GroupOutcome) -> ArrayRef {
        let deltas = match self.is_max {
            false => scatter::<T>(&seen, segments.len(), &self.wide, |a, b| a.is_lt(b)),
            true => scatter::<T>(&seen, segments.len(), &self.wide, |a, b| a.is_gt(b)),
        };
        let mut steps = match self.is_max {
            false => self.decide(&deltas, segments, |a, b| a.is_lt(b)),
            true => self.decide(&deltas, segments, |a, b| a.is_gt(b)),
        };
        if !steps.asked.is_empty() {
            self.ask(&mut steps, segments, seen.keys, seen.hashes);
        }
        let mut pairs = Pairs::<T>::with_capacity(segments.len());
        for (segment, &(before, after)) in steps.results.iter().enumerate() {
            pairs.push(outcome, segment, Ok(before), Ok(after));
        }
        cast(&pairs.finish(&self.wide), &self.output_type).expect("the cast was checked when the call was made")
    }

    fn resize(&mut self, n_slots: usize) {
        if self.winners.len() < n_slots {
            self.winners.resize(n_slots, Winner::default());
        }
    }

    fn retain_zero(&self, slots: &mut Vec<u32>) {
        slots.retain(|&slot| {
            let winner = &self.winners[slot as usize];
            winner.count == 0 && !winner.is_doubted
        });
    }

    fn clear(&mut self, slots: &[u32]) {
        for &slot in slots {
            if let Some(winner) = self.winners.get_mut(slot as usize) {
                *winner = Winner::default();
            }
        }
    }

    fn set_floor(&mut self, floor: Floor) {
        if let Some(trace) = &mut self.trace {
            trace.set_floor(floor);
        }
    }

    fn renumber(&mut self, old_of_new: &[u32]) {
        self.winners = old_of_new.iter().map(|&old| self.winners[old as usize]).collect();
    }

    fn idle(&mut self) {
        if let Some(trace) = &mut self.trace {
            trace.idle();
        }
    }

    fn size_bytes(&self) -> usize {
        self.winners.capacity() * size_of::<Winner<T::Native>>()
            + self.trace.as_ref().map_or(0, OrderedTrace::size_bytes)
    }
}

/// Results of segments: before and after.
struct Steps<N> {
    results: Vec<(Option<N>, Option<N>)>,
    /// Ranges of segments, each of one slot, whose results after them the trace must tell.
    asked: Vec<std::ops::Range<usize>>,
}

/// The best insertion and retraction of each segment.
fn scatter<T: ArrowPrimitiveType>(
    seen: &Seen,
    n_segments: usize,
    wide: &DataType,
    is_better: impl Fn(T::Native, T::Native) -> bool,
) -> Vec<Delta<T::Native>> {
    let argument = seen.input.argument.as_ref().expect("an extreme call has an argument");
    let values = cast(argument, wide).expect("the cast was checked when the call was made");
    let values = values.as_primitive::<T>().values();
    let mut deltas = vec![Delta::default(); n_segments];
    seen.input.each_valid(|row, segment, diff| {
        if seen.filter.is_some_and(|filter| filter.is_null(row) || !filter.value(row)) {
            return;
        }
        let (value, delta): (T::Native, &mut Delta<T::Native>) = (values[row], &mut deltas[segment]);
        if diff > 0 {
            if delta.count == 0 || is_better(value, delta.best) {
                (delta.best, delta.count) = (value, diff);
            } else if value.is_eq(delta.best) {
                delta.count += diff;
            }
        } else if diff < 0 && (!delta.has_gone || is_better(value, delta.gone)) {
            (delta.gone, delta.has_gone) = (value, true);
        }
    });
    deltas
}

impl<T: ArrowPrimitiveType> Extreme<T> {
    /// Decides every segment against the winner of its slot, as far as that does.
    fn decide(
        &mut self,
        deltas: &[Delta<T::Native>],
        segments: &Segments,
        is_better: impl Fn(T::Native, T::Native) -> bool,
    ) -> Steps<T::Native> {
        let mut steps = Steps { results: Vec::with_capacity(deltas.len()), asked: Vec::new() };
        let slots = &segments.slot;
        for start in (0..slots.len()).step_by(WARM_SEGMENTS) {
            let end = slots.len().min(start + WARM_SEGMENTS);
            // Slots lie anywhere: a tight loop waits for all their cache lines at once.
            black_box(slots[start..end].iter().fold(0, |sum, &slot| sum ^ self.winners[slot as usize].count));
            for segment in start..end {
                let asks_already =
                    steps.asked.last_mut().filter(|asked| asked.end == segment && slots[segment - 1] == slots[segment]);
                let winner = &mut self.winners[slots[segment] as usize];
                if let Some(asked) = asks_already {
                    asked.end += 1;
                    winner.is_doubted |= deltas[segment].has_gone;
                    steps.results.push((None, None));
                    continue;
                }
                let before = winner.value();
                if !winner.merge(&deltas[segment], &is_better) {
                    steps.asked.push(segment..segment + 1);
                }
                steps.results.push((before, winner.value()));
            }
        }
        steps
    }

    /// Asks the trace for the winners after the segments asked for.
    fn ask(&mut self, steps: &mut Steps<T::Native>, segments: &Segments, keys: &[ArrayRef], hashes: &[u64]) {
        let trace = self.trace.as_mut().expect("rows that are never taken back leave no winner in doubt");
        trace.settle();
        let first_rows: Vec<u32> = steps.asked.iter().map(|range| segments.first_row[range.start]).collect();
        let hashes: Vec<u64> = first_rows.iter().map(|&row| hashes[row as usize]).collect();
        let (keys, key_of_range) = Keys::from_columns(&gather::take(keys, &first_rows), &hashes, Nulls::Equal);
        // In order of keys, so that the walk goes forward.
        let mut order: Vec<usize> = (0..steps.asked.len()).collect();
        order.sort_unstable_by_key(|&range| key_of_range[range]);

        let mut walk = trace.walk();
        let mut answers: Vec<(usize, Option<Place>, Diff)> = Vec::new();
        for range in order {
            let (key, range) = (key_of_range[range] as usize, steps.asked[range].clone());
            let times: Vec<Time> = range.clone().map(|segment| segments.times.get(segment)).collect();
            let first = answers.len();
            answers.extend(range.clone().map(|segment| (segment, None, 0)));
            let mut missing = times.len();
            walk.group(&keys, key, &times, |place, counts| {
                for (answer, &count) in answers[first..].iter_mut().zip(counts) {
                    if answer.1.is_none() && count > 0 {
                        (answer.1, answer.2) = (Some(place), count);
                        missing -= 1;
                    }
                }
                if missing == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            let has_winner = answers.last().is_some_and(|answer| answer.1.is_some());
            let winner = &mut self.winners[segments.slot[range.start] as usize];
            // A group of which nothing is left can be given back.
            winner.is_doubted &= has_winner || !walk.is_empty(&keys, key);
        }
        self.learn(steps, segments, &answers, walk.column(self.argument));
    }

    /// Takes the winners that the trace told, in order of segments within their slot.
    fn learn(
        &mut self,
        steps: &mut Steps<T::Native>,
        segments: &Segments,
        answers: &[(usize, Option<Place>, Diff)],
        column_of_chunk: Vec<ArrayRef>,
    ) {
        let places: Vec<Place> = answers.iter().filter_map(|&(_, place, _)| place).collect();
        let sources: Vec<&[ArrayRef]> = column_of_chunk.iter().map(std::slice::from_ref).collect();
        let values = (!places.is_empty()).then(|| {
            cast(&gather::interleave(&sources, &places)[0], &self.wide)
                .expect("the cast was checked when the call was made")
        });
        let mut values = values.iter().flat_map(|values| values.as_primitive::<T>().values().iter().copied());
        for &(segment, place, count) in answers {
            let value = place.and_then(|_| values.next());
            let winner = &mut self.winners[segments.slot[segment] as usize];
            let is_first = steps.asked.binary_search_by_key(&segment, |range| range.start).is_ok();
            let before = if is_first { steps.results[segment].0 } else { winner.value() };
            steps.results[segment] = (before, value);
            (winner.value, winner.count) = (value.unwrap_or_default(), count);
        }
    }
}

impl<N: ArrowNativeTypeOp> Winner<N> {
    /// Merges a segment; false if the values must be asked who wins.
    #[inline]
    fn merge(&mut self, delta: &Delta<N>, is_better: impl Fn(N, N) -> bool) -> bool {
        let (has_winner, has_new) = (self.count > 0, delta.count > 0);
        self.is_doubted |= delta.has_gone;
        if delta.has_gone && !(has_winner && is_better(self.value, delta.gone)) {
            return false;
        }
        if !has_new || (has_winner && is_better(self.value, delta.best)) {
            return true;
        }
        if has_winner && self.value.is_eq(delta.best) {
            self.count += delta.count;
            return true;
        }
        if self.is_doubted {
            return false;
        }
        (self.value, self.count) = (delta.best, delta.count);
        true
    }
}
