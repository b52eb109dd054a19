//! Calls that need their arguments in order: `min`, `max`, `first_value`, `last_value`,
//! `string_agg`, `array_agg`, `median`.
//!
//! State: the arguments of each group in order, with multiplicities. At each time a group is
//! touched, and just before, its values are walked as far as needed: one value for the first four,
//! all for the others.
//!
//! `min` and `first_value` take the first value; `max` and `last_value` the first in the opposite
//! order. NaN is greater than every number. Arguments that tie in the order asked for are ordered
//! by their own value, ascending, so that the answer is a function of the contents.

use std::collections::{BTreeMap, HashSet};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use anabranch_arrangement::{Floor, Keys, Layout, MergeEffort, ValueOrder};
use anabranch_batch::dimensions::next_ragged;
use anabranch_batch::order::Direction;
use anabranch_batch::{Batch, Diff, Time, gather, types};
use anabranch_flow::account::midway;
use anabranch_spec::aggregate::{AggregateCall, AggregateFunction};
use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, ListArray, NullBufferBuilder, PrimitiveArray, StringViewBuilder,
    new_null_array,
};
use arrow::buffer::OffsetBuffer;
use arrow::compute::{binary, cast};
use arrow::datatypes::{
    DataType, Decimal64Type, Decimal128Type, Decimal256Type, Field, Float64Type, Int64Type, UInt64Type, i256,
};

use super::output::GroupOutcome;
use super::percentiles;
use super::spec::Unsupported;
use crate::aggregate::segments::Segments;
use crate::ordered::trace::{OrderedTrace, Place, TraceWalk};

const ASCENDING: Direction = Direction { descending: false, nulls_first: false };

/// The state of an ordered call.
pub(crate) struct Ordered {
    function: AggregateFunction,
    distinct: bool,
    output_type: DataType,
    /// Type of the argument.
    input_type: DataType,
    /// Position of the argument in rows: after the key columns.
    argument: usize,
    trace: OrderedTrace,
}

impl Ordered {
    /// State of `call` for rows of these types: key columns, the argument, the columns of
    /// `call.order`.
    pub(crate) fn new(
        call: &AggregateCall,
        types: Vec<DataType>,
        n_keys: usize,
        effort: MergeEffort,
    ) -> Result<Ordered, Unsupported> {
        let input_type = types[n_keys].clone();
        check_types(&call.function, &input_type, &call.output_type)?;
        let distinct = call.distinct && !call.function.ignores_duplicates();
        if distinct && call.order.iter().any(|key| Some(key.column) != call.argument) {
            return Err(Unsupported::DistinctOrder { function: call.function.to_string() });
        }
        let values = ValueOrder::Sorted(value_order(call, n_keys));
        let layout = Layout { key: (0..n_keys).collect(), values, types };
        Ok(Ordered {
            function: call.function.clone(),
            distinct,
            output_type: call.output_type.clone(),
            input_type,
            argument: n_keys,
            trace: OrderedTrace::new(layout, effort),
        })
    }

    /// Takes the rows that the call sees, of all times before `upto`; computes pairs of results for
    /// `segments`. Key number `key_of_group[i]` of `keys` is that of the i-th slot of `segments`.
    pub(crate) fn step(
        &mut self,
        rows: Batch,
        upto: Time,
        segments: &Segments,
        (keys, key_of_group): (&Keys, &[u32]),
        outcome: &mut GroupOutcome,
    ) -> ArrayRef {
        self.trace.absorb(rows, upto);
        let queries = Queries::new(segments, key_of_group);
        let mut walk = self.trace.walk();
        let results = match &self.function {
            AggregateFunction::StringAgg(separator) => {
                let lists = self.lists(&mut walk, keys, &queries);
                let (texts, too_long) = strings(&lists, &self.arguments(&walk), separator, TEXT_BYTES_MAX);
                for (entry, of) in queries.of_pairs.iter().enumerate() {
                    if let Some(n_bytes) = too_long.get(&(*of as usize)) {
                        let limit = format!("longer than the {TEXT_BYTES_MAX} that a value may have");
                        outcome.fail(entry, format!("string_agg: a text of {n_bytes} bytes is {limit}"));
                    }
                }
                texts
            }
            AggregateFunction::ArrayAgg => {
                let lists = arrays(&self.lists(&mut walk, keys, &queries), &self.arguments(&walk), &self.output_type);
                let ragged = ragged_of(&lists);
                for (entry, _) in queries.of_pairs.iter().enumerate().filter(|(_, of)| ragged.contains(of)) {
                    outcome.fail(entry, "cannot accumulate arrays of different dimensionality".to_owned());
                }
                lists
            }
            AggregateFunction::PercentileCont(part) => {
                let lists = self.lists(&mut walk, keys, &queries);
                percentiles::continuous(&lists, &self.arguments(&walk), part.get())
            }
            AggregateFunction::PercentileDisc(part) => {
                let lists = self.lists(&mut walk, keys, &queries);
                picked(&percentiles::discrete(&lists, part.get()), &self.arguments(&walk))
            }
            AggregateFunction::Mode => {
                let lists = self.lists(&mut walk, keys, &queries);
                let arguments = self.arguments(&walk);
                picked(&percentiles::most_frequent(&lists, &arguments), &arguments)
            }
            AggregateFunction::TopK(k) => {
                let lists = self.lists(&mut walk, keys, &queries);
                percentiles::ranked(&lists, &self.arguments(&walk), *k, &self.output_type)
            }
            AggregateFunction::Median => {
                medians(&self.lists(&mut walk, keys, &queries), &self.arguments(&walk), &self.output_type)
            }
            _ => picked(&self.firsts(&mut walk, keys, &queries), &self.arguments(&walk)),
        };
        let results = cast(&results, &self.output_type).expect("types were checked when the call was made");
        let pairs = gather::take(&[results], &queries.of_pairs)[0].clone();
        outcome.mark_pairs(&pairs);
        pairs
    }

    /// Lets go of values of groups with a key below a floor.
    pub(crate) fn set_floor(&mut self, floor: Floor) {
        self.trace.set_floor(floor);
    }

    /// Spare time.
    pub(crate) fn idle(&mut self) {
        self.trace.idle();
    }

    pub(crate) fn size_bytes(&self) -> usize {
        self.trace.size_bytes()
    }

    /// The argument column of every chunk, and last a single NULL.
    fn arguments(&self, walk: &TraceWalk) -> Vec<ArrayRef> {
        let mut columns = walk.column(self.argument);
        columns.push(new_null_array(&self.input_type, 1));
        columns
    }

    /// For each query the first value.
    fn firsts(&self, walk: &mut TraceWalk, keys: &Keys, queries: &Queries) -> Vec<Option<Place>> {
        let mut firsts = vec![None; queries.times.len()];
        for (key, range) in &queries.groups {
            let firsts = &mut firsts[range.clone()];
            let mut missing = firsts.len();
            walk.group(keys, *key, &queries.times[range.clone()], |place, counts| {
                for (first, &count) in firsts.iter_mut().zip(counts) {
                    if first.is_none() && count > 0 {
                        *first = Some(place);
                        missing -= 1;
                    }
                }
                if missing == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
        }
        firsts
    }

    /// For each query all values.
    fn lists(&self, walk: &mut TraceWalk, keys: &Keys, queries: &Queries) -> Vec<Vec<(Place, Diff)>> {
        let mut lists = vec![Vec::new(); queries.times.len()];
        for (key, range) in &queries.groups {
            let lists = &mut lists[range.clone()];
            walk.group(keys, *key, &queries.times[range.clone()], |place, counts| {
                let mut n_listed = 0;
                for (list, &count) in lists.iter_mut().zip(counts).filter(|&(_, &count)| count > 0) {
                    list.push((place, if self.distinct { 1 } else { count }));
                    n_listed += 1;
                }
                // (A list for each of many times may be far more than the values.)
                midway::makes(n_listed * size_of::<(Place, Diff)>());
                ControlFlow::Continue(())
            });
        }
        lists
    }
}

/// The times at which groups are asked for their values: just before a group's first segment, and
/// at each of its segments.
pub(super) struct Queries {
    /// Ascending within a group.
    pub(super) times: Vec<Time>,
    /// Key number and queries of each group, in order of keys.
    pub(super) groups: Vec<(usize, Range<usize>)>,
    /// The query that answers each entry of pairs.
    pub(super) of_pairs: Vec<u32>,
}

impl Queries {
    pub(super) fn new(segments: &Segments, key_of_group: &[u32]) -> Queries {
        let mut queries = Queries { times: Vec::new(), groups: Vec::new(), of_pairs: Vec::new() };
        for (range, &key) in segments.by_slot().zip(key_of_group) {
            let start = queries.times.len();
            queries.times.push(segments.times.get(range.start).saturating_sub(1));
            for segment in range {
                let before = queries.times.len() as u32 - 1;
                queries.times.push(segments.times.get(segment));
                queries.of_pairs.extend([before, before + 1]);
            }
            queries.groups.push((key as usize, start..queries.times.len()));
        }
        queries.groups.sort_unstable_by_key(|&(key, _)| key);
        queries
    }
}

/// How values are sorted, so that what is wanted comes first.
fn value_order(call: &AggregateCall, argument: usize) -> Vec<(usize, Direction)> {
    let opposite =
        |direction: Direction| Direction { descending: !direction.descending, nulls_first: !direction.nulls_first };
    let asked = (argument + 1..).zip(&call.order).map(|(column, key)| {
        // Ordering by the argument itself is ordering by its one column.
        (if Some(key.column) == call.argument { argument } else { column }, key.direction())
    });
    let with_argument = asked.chain([(argument, ASCENDING)]);
    match call.function {
        AggregateFunction::Max | AggregateFunction::TopK(_) => vec![(argument, opposite(ASCENDING))],
        AggregateFunction::Min | AggregateFunction::Median | AggregateFunction::PercentileCont(_) => {
            vec![(argument, ASCENDING)]
        }
        AggregateFunction::PercentileDisc(_) | AggregateFunction::Mode => {
            let descending = call.order.first().is_some_and(|key| key.descending);
            vec![(argument, Direction { descending, ..ASCENDING })]
        }
        AggregateFunction::LastValue => {
            with_argument.map(|(column, direction)| (column, opposite(direction))).collect()
        }
        _ => with_argument.collect(),
    }
}

fn check_types(function: &AggregateFunction, input: &DataType, output: &DataType) -> Result<(), Unsupported> {
    let is_text = |data_type: &DataType| matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    use DataType::{Decimal64, Decimal128, Decimal256};
    let is_decimal = |data_type: &DataType| matches!(data_type, Decimal64(..) | Decimal128(..) | Decimal256(..));
    let is_number = |data_type: &DataType| data_type.is_integer() || data_type.is_floating() || is_decimal(data_type);
    let is_same = input == output || (is_text(input) && is_text(output));
    let fits = match function {
        AggregateFunction::StringAgg(_) => is_text(input) && is_text(output),
        AggregateFunction::ArrayAgg => match output {
            DataType::List(field) | DataType::LargeList(field) => *field.data_type() == types::widened_type(input),
            _ => false,
        },
        AggregateFunction::Median => is_number(input) && is_number(output),
        AggregateFunction::PercentileCont(_) => is_number(input) && *output == DataType::Float64,
        AggregateFunction::TopK(_) => *output == percentiles::ranked_type(input),
        _ => is_same,
    };
    if fits { Ok(()) } else { Err(Unsupported::types(function, Some(input), output)) }
}

/// The values at `places`; NULL for `None`. The last source is a NULL.
pub(super) fn picked(places: &[Option<Place>], sources: &[ArrayRef]) -> ArrayRef {
    let null = (sources.len() as u32 - 1, 0);
    let picks: Vec<Place> = places.iter().map(|place| place.unwrap_or(null)).collect();
    let sources: Vec<&[ArrayRef]> = sources.iter().map(std::slice::from_ref).collect();
    gather::interleave(&sources, &picks)[0].clone()
}

/// Most bytes of a text, as in PostgreSQL: a gigabyte less its header.
const TEXT_BYTES_MAX: usize = 0x3fff_ffff - 4;

/// Concatenations of the texts of each list, and the lengths of those that would be longer than
/// `bytes_max`, by list; NULL stands in their place, and nothing is allocated for them.
fn strings(
    lists: &[Vec<(Place, Diff)>],
    sources: &[ArrayRef],
    separator: &str,
    bytes_max: usize,
) -> (ArrayRef, BTreeMap<usize, usize>) {
    let places: Vec<Option<Place>> = lists.iter().flatten().map(|&(place, _)| Some(place)).collect();
    let texts = cast(&picked(&places, sources), &DataType::Utf8View).expect("the argument is text");
    let mut texts = texts.as_string_view().iter().flatten();
    let mut results = StringViewBuilder::with_capacity(lists.len());
    let mut joined = String::new();
    let mut too_long = BTreeMap::new();
    for (at, list) in lists.iter().enumerate() {
        joined.clear();
        let bytes = |(&(_, count), text): (&(Place, Diff), &str)| count as usize * (text.len() + separator.len());
        let n_bytes: usize = list.iter().zip(texts.clone()).map(bytes).sum::<usize>().saturating_sub(separator.len());
        if n_bytes > bytes_max {
            texts.by_ref().take(list.len()).for_each(drop);
            too_long.insert(at, n_bytes);
            results.append_null();
            continue;
        }
        for &(_, count) in list {
            let text = texts.next().expect("NULL arguments were left out");
            for _ in 0..count {
                joined.push_str(text);
                joined.push_str(separator);
            }
        }
        joined.truncate(joined.len().saturating_sub(separator.len()));
        results.append_option((!list.is_empty()).then_some(joined.as_str()));
    }
    (Arc::new(results.finish()), too_long)
}

/// Lists of the values of each list.
fn arrays(lists: &[Vec<(Place, Diff)>], sources: &[ArrayRef], output_type: &DataType) -> ArrayRef {
    let elements = lists.iter().flatten();
    let places: Vec<Option<Place>> =
        elements.flat_map(|&(place, count)| std::iter::repeat_n(Some(place), count as usize)).collect();
    let lengths = lists.iter().map(|list| list.iter().map(|&(_, count)| count as usize).sum());
    let mut nulls = NullBufferBuilder::new(lists.len());
    lists.iter().for_each(|list| nulls.append(!list.is_empty()));
    let values = types::widened(&picked(&places, sources));
    let field = match output_type {
        DataType::List(field) => field.clone(),
        _ => Arc::new(Field::new_list_field(values.data_type().clone(), true)),
    };
    Arc::new(ListArray::new(field, OffsetBuffer::from_lengths(lengths), values, nulls.finish()))
}

/// The lists whose elements are arrays of several lengths.
fn ragged_of(lists: &ArrayRef) -> HashSet<u32> {
    let lists = lists.as_list::<i32>();
    let next = |from: usize| next_ragged(lists, from);
    std::iter::successors(next(0), |row| next(row + 1)).map(|row| row as u32).collect()
}

/// Medians of each list, which is in ascending order.
fn medians(lists: &[Vec<(Place, Diff)>], sources: &[ArrayRef], output_type: &DataType) -> ArrayRef {
    let middle = |list: &Vec<(Place, Diff)>, is_upper: bool| {
        let total: Diff = list.iter().map(|&(_, count)| count).sum();
        let mut skip = if is_upper { total / 2 } else { (total - 1) / 2 };
        let holds = |&&(_, count): &&(Place, Diff)| {
            skip -= count;
            skip < 0
        };
        list.iter().find(holds).map(|&(place, _)| place)
    };
    let lower: Vec<Option<Place>> = lists.iter().map(|list| middle(list, false)).collect();
    let upper: Vec<Option<Place>> = lists.iter().map(|list| middle(list, true)).collect();
    mean(&picked(&lower, sources), &picked(&upper, sources), output_type)
}

/// The means of two columns: floats and decimals rounded, integers truncated.
fn mean(lower: &ArrayRef, upper: &ArrayRef, output_type: &DataType) -> ArrayRef {
    let common = match output_type {
        DataType::Float16 | DataType::Float32 => DataType::Float64,
        narrow if narrow.is_integer() && *narrow != DataType::UInt64 => DataType::Int64,
        other => other.clone(),
    };
    let as_common = |values: &ArrayRef| cast(values, &common).expect("numbers become numbers");
    let (lower, upper) = (as_common(lower), as_common(upper));
    match common {
        DataType::Int64 => means::<Int64Type>(&lower, &upper, |a, b| ((i128::from(a) + i128::from(b)) / 2) as i64),
        DataType::UInt64 => means::<UInt64Type>(&lower, &upper, |a, b| ((u128::from(a) + u128::from(b)) / 2) as u64),
        DataType::Decimal64(..) => means::<Decimal64Type>(&lower, &upper, |a, b| {
            let sum = i256::from_i128(i128::from(a) + i128::from(b));
            half(sum).as_i128() as i64
        }),
        DataType::Decimal128(..) => means::<Decimal128Type>(&lower, &upper, |a, b| {
            // (Decimals have at most 38 digits, so their sum may pass 128 bits by one.)
            let sum = i256::from_i128(a) + i256::from_i128(b);
            half(sum).as_i128()
        }),
        DataType::Decimal256(..) => means::<Decimal256Type>(&lower, &upper, |a, b| half(a.wrapping_add(b))),
        _ => means::<Float64Type>(&lower, &upper, |a, b| match a + b {
            sum if sum.is_infinite() && a.is_finite() && b.is_finite() => a / 2.0 + b / 2.0,
            sum => sum / 2.0,
        }),
    }
}

/// Half of an integer, rounded away from zero.
fn half(sum: i256) -> i256 {
    let two = i256::from_i128(2);
    sum.wrapping_add(sum.signum()).wrapping_div(two)
}

fn means<T: ArrowPrimitiveType>(
    lower: &ArrayRef,
    upper: &ArrayRef,
    mean: impl Fn(T::Native, T::Native) -> T::Native,
) -> ArrayRef {
    let (lower, upper) = (lower.as_primitive::<T>(), upper.as_primitive::<T>());
    let means: PrimitiveArray<T> = binary(lower, upper, mean).expect("both columns have one entry per list");
    Arc::new(means.with_data_type(lower.data_type().clone()))
}

#[cfg(test)]
mod tests {
    use arrow::array::StringViewArray;

    use super::*;

    /// A text of 3.2 GB once came out, whose length was told as a negative number.
    #[test]
    fn texts_beyond_the_bound_are_not_made() {
        let texts: ArrayRef = Arc::new(StringViewArray::from(vec!["abc", "de", "f"]));
        let lists = vec![vec![((0, 0), 2), ((0, 1), 1)], vec![((0, 2), 3)], vec![]];
        let (joined, too_long) = strings(&lists, std::slice::from_ref(&texts), ", ", 11);
        let joined = joined.as_string_view().iter().collect::<Vec<_>>();
        assert_eq!((joined, too_long), (vec![None, Some("f, f, f"), None], BTreeMap::from([(0, 12)])));
        let (joined, too_long) = strings(&lists, &[texts], ", ", 12);
        assert_eq!((joined.as_string_view().value(0), too_long.len()), ("abc, abc, de", 0));
    }
}
