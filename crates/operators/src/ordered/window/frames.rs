//! Functions over the frames of all rows of all versions.

use anabranch_spec::window::{Place, WindowCall, WindowFunction};
use std::ops::Range;
use std::sync::Arc;

use anabranch_arrangement::MergeEffort;
use anabranch_batch::order::Direction;
use anabranch_batch::{Batch, Columns, Diffs, END, Time, Times, gather};
use anabranch_spec::aggregate::{AggregateCall, AggregateFunction};
use anabranch_spec::frame::{Exclude, WindowFrame};
use anabranch_spec::order::SortKey;
use arrow::array::{Array, ArrayRef, AsArray, Float64Array, Int64Array, UInt32Array, new_null_array};
use arrow::compute;
use arrow::datatypes::Int64Type;

use super::extremes;
use super::spans::{Peers, holders, pieces, spans};
use super::spec::WindowSpec;
use crate::aggregate::{Aggregate, AggregateSpec};
use crate::made::note_made;
use crate::ordered::versions::Version;
use anabranch_flow::account::midway;
use anabranch_flow::tactic::{Output, Timed};

/// Rows whose frames are looked at together, where values are kept in order.
const PIECE_ROWS: usize = 64;
/// What a change takes until it is in the aggregate, about: its columns, their copy in order, and
/// what orders them.
const CHANGE_BYTES: usize = 200;

/// The rows of all versions, and who are peers.
pub(super) struct Frames<'a> {
    pub(super) spec: &'a WindowSpec,
    pub(super) versions: &'a [Version],
    pub(super) columns: &'a [ArrayRef],
    pub(super) peers: &'a Peers,
}

/// What a call yields for every row; for the rows that fail, the message.
pub(super) struct Results {
    pub(super) values: ArrayRef,
    /// Ascending.
    pub(super) failed: Vec<(usize, String)>,
}

impl Results {
    /// The results of the rows behind the first `n`.
    pub(super) fn behind(self, n: usize) -> Results {
        let failed = self.failed.into_iter().filter_map(|(row, message)| Some((row.checked_sub(n)?, message)));
        Results { values: self.values.slice(n, self.values.len() - n), failed: failed.collect() }
    }
}

impl Frames<'_> {
    /// The results of a call, of which no frame begins before the row `least`.
    pub(super) fn results(&self, call: &WindowCall, least: usize) -> Results {
        let values = match &call.function {
            WindowFunction::Aggregate(aggregate) => return self.aggregate(aggregate, &call.frame, least),
            WindowFunction::Value { column, place } => self.picked(*column, &call.frame, least, |pieces| match place {
                Place::First => Some(pieces.next()?.start),
                Place::Last => Some(pieces.next_back()?.end - 1),
                Place::Nth(n) => pieces.flatten().nth(n.checked_sub(1)?),
            }),
            WindowFunction::PercentRank => self.shares(|version, peers| {
                let others = (version.to - version.from - 1).max(1);
                (peers.start - version.from) as f64 / others as f64
            }),
            WindowFunction::CumeDist => {
                self.shares(|version, peers| (peers.end - version.from) as f64 / (version.to - version.from) as f64)
            }
        };
        Results { values, failed: vec![] }
    }

    /// A number for each row, from its version and its peers.
    fn shares(&self, share: impl Fn(&Version, Range<usize>) -> f64) -> ArrayRef {
        let of_version = |version| (of(version)).map(move |row| (version, row));
        let rows = self.versions.iter().flat_map(of_version);
        Arc::new(Float64Array::from_iter_values(rows.map(|(version, row)| share(version, self.peers.of(row)))))
    }

    /// A column of one row of each frame.
    fn picked(
        &self,
        column: usize,
        frame: &WindowFrame,
        least: usize,
        pick: impl Fn(&mut dyn DoubleEndedIterator<Item = Range<usize>>) -> Option<usize>,
    ) -> ArrayRef {
        let mut picks: Vec<Option<u32>> = Vec::with_capacity(self.columns[column].len());
        for version in self.versions {
            let spans = self.spans(version, frame, least);
            for (row, span) in of(version).zip(&spans) {
                let mut pieces = pieces(span, row, self.peers.of(row), frame.exclude);
                picks.push(pick(&mut pieces).map(|row| row as u32));
            }
        }
        take(&self.columns[column], &UInt32Array::from(picks))
    }

    /// The frames of a version's rows.
    pub(super) fn spans(&self, version: &Version, frame: &WindowFrame, least: usize) -> Vec<Range<usize>> {
        spans(version, frame, self.peers, &self.spec.window.order, self.columns, least)
    }

    /// An aggregate over frames: over changes whose time is a row's number, for each version apart.
    fn aggregate(&self, call: &AggregateCall, frame: &WindowFrame, least: usize) -> Results {
        if let Some(values) = self.extremes(call, frame, least) {
            return Results { values, failed: vec![] };
        }
        let changes = self.changes(call, frame, least);
        let mut out = Output::default();
        let mut aggregate = Aggregate::new(spec_of(call, changes.columns()), None);
        aggregate.push(0, changes);
        aggregate.advance(END, &mut out);
        while aggregate.has_more() {
            aggregate.advance(END, &mut out);
        }
        let n_rows = self.versions.last().map_or(0, |version| version.to);
        let sources: Vec<&[ArrayRef]> = out.rows.iter().map(Batch::columns).map(|columns| &columns[1..]).collect();
        let present = in_force(&out.rows, n_rows);
        let values = match sources.is_empty() {
            true => new_null_array(&call.output_type, n_rows),
            false => {
                let all = gather::concat(&sources);
                let mut before = vec![0];
                out.rows.iter().for_each(|batch| before.push(before[before.len() - 1] + batch.len()));
                take(&all[0], &present.iter().map(|of| of.map(|(batch, row)| (before[batch] + row) as u32)).collect())
            }
        };
        let values = or_zero(call, values);
        note_made(&values);
        let failed = in_force(&out.errors, n_rows).into_iter().enumerate();
        let message = |(batch, row): (usize, usize)| message_of(&out.errors[batch], row);
        Results { values, failed: failed.filter_map(|(row, of)| Some((row, message(of?)))).collect() }
    }

    /// The least or greatest values of all frames, if that is what the call asks for.
    fn extremes(&self, call: &AggregateCall, frame: &WindowFrame, least: usize) -> Option<ArrayRef> {
        let is_greatest = match call.function {
            AggregateFunction::Min => false,
            AggregateFunction::Max => true,
            _ => return None,
        };
        let values = &self.columns[call.argument?];
        if frame.exclude != Exclude::Nothing || *values.data_type() != call.output_type {
            return None;
        }
        let filter = call.filter.map(|at| &self.columns[at]);
        let of_version = |version| extremes::picks(values, filter, is_greatest, &self.spans(version, frame, least));
        Some(take(values, &self.versions.iter().flat_map(of_version).collect()))
    }

    /// The elements of all frames, as they come and go from row to row: number of the piece of the
    /// version, argument, filter, place in the order.
    fn changes(&self, call: &AggregateCall, frame: &WindowFrame, least: usize) -> Batch {
        let (mut elements, mut numbers) = (Vec::new(), Vec::new());
        let (mut times, mut diffs): (Vec<Time>, Vec<i64>) = (Vec::new(), Vec::new());
        for (number, version) in self.versions.iter().enumerate() {
            let spans = self.spans(version, frame, least);
            let rows_max = if call.function.is_ordered() { piece_rows(&spans) } else { usize::MAX };
            let holders = holders(version, &spans);
            for (element, span) in of(version).zip(&holders) {
                let n_before = elements.len();
                for rows in pieces(span, element, self.peers.of(element), frame.exclude) {
                    let mut from = rows.start;
                    while from < rows.end {
                        let piece = from / rows_max;
                        let to = rows.end.min((piece + 1).saturating_mul(rows_max));
                        for (time, diff) in [(from, 1), (to, -1)] {
                            elements.push(element as u32);
                            numbers.push(((number as i64) << 32) + piece as i64);
                            times.push(time as Time);
                            diffs.push(diff);
                        }
                        from = to;
                    }
                }
                // (A list of all rows before, for each row: they grow with the square.)
                midway::makes((elements.len() - n_before) * CHANGE_BYTES);
            }
        }
        let mut columns: Vec<ArrayRef> = vec![Arc::new(Int64Array::from(numbers))];
        let read: Vec<ArrayRef> =
            call.argument.iter().chain(&call.filter).map(|&at| self.columns[at].clone()).collect();
        columns.extend(gather::take(&read, &elements).iter().cloned());
        columns.push(Arc::new(elements.iter().map(|&element| i64::from(element)).collect::<Int64Array>()));
        let (times, diffs) = (Times::Column(times.into()), Diffs::Column(diffs.into()));
        Batch::with_len(Columns::from(columns), elements.len(), times, diffs)
    }
}

/// Rows of a piece: values in order are looked at for each of its rows (an accumulator sees each
/// once), so a piece holds not many more than a frame does. Each value is in all pieces of its
/// rows, so large frames have large pieces.
fn piece_rows(spans: &[Range<usize>]) -> usize {
    let n_held: usize = spans.iter().map(|span| span.len()).sum();
    PIECE_ROWS.max(n_held / spans.len().max(1))
}

/// The rows of a version.
fn of(version: &Version) -> Range<usize> {
    version.from..version.to
}

/// The call over the columns of [`Frames::changes`], for each version.
pub(super) fn spec_of(call: &AggregateCall, columns: &[ArrayRef]) -> AggregateSpec {
    let place = columns.len() - 1;
    let takes_order = matches!(
        call.function,
        AggregateFunction::StringAgg(_)
            | AggregateFunction::ArrayAgg
            | AggregateFunction::FirstValue
            | AggregateFunction::LastValue
    );
    let call = AggregateCall {
        argument: call.argument.map(|_| 1),
        filter: call.filter.map(|_| 1 + usize::from(call.argument.is_some())),
        order: if takes_order && !call.distinct { vec![SortKey::new(place, Direction::ASCENDING)] } else { vec![] },
        ..call.clone()
    };
    let input_types = columns.iter().map(|column| column.data_type().clone()).collect();
    AggregateSpec {
        keys: vec![0],
        calls: vec![call],
        input_types,
        is_append_only: false,
        effort: MergeEffort::default(),
    }
}

/// Why a result is not there. (Aggregates name the group, which is a number of ours.)
pub(super) fn message_of(errors: &Batch, row: usize) -> String {
    let text = errors.column(0).as_string_view().value(row);
    text.rsplit_once(" (group ").map_or(text, |(text, _)| text).to_owned()
}

/// Over no rows a count is zero; all others are NULL.
pub(super) fn or_zero(call: &AggregateCall, values: ArrayRef) -> ArrayRef {
    match call.function {
        AggregateFunction::Count => {
            Arc::new(values.as_primitive::<Int64Type>().iter().map(|n| n.or(Some(0))).collect::<Int64Array>())
        }
        _ => values,
    }
}

/// For each row's number, the batch and the row of what is there at that time: at most one.
fn in_force(batches: &[Batch], n_rows: usize) -> Vec<Option<(usize, usize)>> {
    let mut changes = changes_in_time(batches).into_iter().peekable();
    let mut current = None;
    let at = |row: usize| {
        while let Some((_, diff, batch, row)) = changes.next_if(|(time, ..)| *time <= row as Time) {
            current = (diff > 0).then_some((batch, row));
        }
        current
    };
    (0..n_rows).map(at).collect()
}

/// Times, diffs, and where each row is, in order of time; of one time, what goes comes first.
pub(super) fn changes_in_time(batches: &[Batch]) -> Vec<(Time, i64, usize, usize)> {
    let mut changes = Vec::new();
    for (number, batch) in batches.iter().enumerate() {
        let rows = (0..batch.len()).map(|row| (batch.times().get(row), batch.diffs().get(row), number, row));
        changes.extend(rows.filter(|(_, diff, ..)| *diff != 0));
    }
    changes.sort_unstable();
    changes
}

pub(super) fn take(column: &ArrayRef, rows: &UInt32Array) -> ArrayRef {
    compute::take(column, rows, None).expect("rows are in bounds")
}
