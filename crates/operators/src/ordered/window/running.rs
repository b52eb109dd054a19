//! An aggregate of the first rows of a partition, which goes on, and back.
//!
//! Law: the result at a place is the aggregate of all rows before it. Rows enter in order; those
//! that leave are the last that entered.

use std::sync::Arc;

use anabranch_batch::gather::{self, compact_views};
use anabranch_batch::{Batch, Columns, Diff, Diffs, Time, Times};
use anabranch_flow::tactic::{Output, Timed};
use anabranch_spec::aggregate::AggregateCall;
use arrow::array::{ArrayRef, Int64Array, UInt32Array, new_null_array};

use super::frames::{Results, changes_in_time, message_of, or_zero, spec_of, take};
use crate::aggregate::{Aggregate, AggregateSpec};
use crate::made::note_made;

/// See the module.
pub(super) struct Running {
    call: AggregateCall,
    aggregate: Aggregate,
    /// The columns of the partition's rows that the aggregate reads.
    reads: Vec<usize>,
    /// Rows that are in: the place of the next in the order.
    n_rows: usize,
    /// Changes before this time are in the aggregate.
    time: Time,
    /// The result now: a column of one row, or why there is none.
    last: Result<ArrayRef, String>,
}

impl Running {
    /// Over no rows of these columns yet. If rows only enter, least and greatest values remember
    /// nothing else.
    pub(super) fn new(call: &AggregateCall, columns: &[ArrayRef], only_enter: bool) -> Running {
        let reads: Vec<usize> = call.argument.into_iter().chain(call.filter).collect();
        let types = elements(&pick(columns, &reads), &[], 0);
        let spec = AggregateSpec { is_append_only: only_enter, ..spec_of(call, &types) };
        Running {
            call: call.clone(),
            aggregate: Aggregate::new(spec, None),
            reads,
            n_rows: 0,
            time: 0,
            last: Ok(or_zero(call, new_null_array(&call.output_type, 1))),
        }
    }

    /// Over no rows again.
    pub(super) fn restart(&mut self, columns: &[ArrayRef]) {
        *self = Running::new(&self.call, columns, false);
    }

    /// The columns that it reads, which are all that it is given.
    pub(super) fn reads(&self) -> &[usize] {
        &self.reads
    }

    /// Of all columns those that it reads.
    pub(super) fn pick(&self, columns: &[ArrayRef]) -> Vec<ArrayRef> {
        pick(columns, &self.reads)
    }

    pub(super) fn n_rows(&self) -> usize {
        self.n_rows
    }

    pub(super) fn size_bytes(&self) -> usize {
        size_of::<Running>() + self.aggregate.size_bytes()
    }

    /// The result now is this one, as a whole partition gave it.
    pub(super) fn set_last(&mut self, last: Result<ArrayRef, String>) {
        self.last = last;
    }

    /// For frames that end, one after another, before these rows: enters what they hold from row
    /// `from` on, and gives their results. An end that lies before has nothing to enter.
    pub(super) fn enter(&mut self, columns: &[ArrayRef], mut from: usize, ends: &[usize]) -> Results {
        let (mut rows, mut times): (Vec<u32>, Vec<Time>) = (Vec::new(), Vec::new());
        for (time, end) in (self.time..).zip(ends) {
            let entering = from..(*end).max(from);
            times.extend(std::iter::repeat_n(time, entering.len()));
            from = entering.end;
            rows.extend(entering.map(|row| row as u32));
        }
        let first = self.n_rows;
        self.n_rows += rows.len();
        self.change(columns, &rows, first, (times, 1), ends.len())
    }

    /// The rows that entered last leave.
    pub(super) fn leave(&mut self, columns: &[ArrayRef], rows: std::ops::Range<usize>) {
        let rows: Vec<u32> = (rows.start as u32..rows.end as u32).collect();
        self.n_rows -= rows.len();
        let times = vec![self.time; rows.len()];
        self.change(columns, &rows, self.n_rows, (times, -1), 1);
    }

    /// Rows come or go, the first of them at this place, during the next times.
    fn change(
        &mut self,
        columns: &[ArrayRef],
        rows: &[u32],
        first: usize,
        (times, diff): (Vec<Time>, Diff),
        n_times: usize,
    ) -> Results {
        let mut out = Output::default();
        let (from, upto) = (self.time, self.time + n_times as Time);
        if !rows.is_empty() {
            let columns = elements(columns, rows, first);
            let batch = Batch::with_len(columns, rows.len(), Times::Column(times.into()), Diffs::Constant(diff));
            self.aggregate.push(0, batch);
            self.aggregate.advance(upto, &mut out);
            while self.aggregate.has_more() {
                self.aggregate.advance(upto, &mut out);
            }
        }
        self.time = upto;
        self.results(&out, from, n_times)
    }

    /// What is there at each time, from what changes.
    fn results(&mut self, out: &Output, from: Time, n_times: usize) -> Results {
        let values: Vec<ArrayRef> = out.rows.iter().map(|batch| batch.column(1).clone()).collect();
        let mut rows = changes_in_time(&out.rows).into_iter().peekable();
        let mut errors = changes_in_time(&out.errors).into_iter().peekable();
        // Source 0 is the result before; source 1 that of no rows.
        let nothing = or_zero(&self.call, new_null_array(&self.call.output_type, 1));
        let before = self.last.as_ref().unwrap_or(&nothing).clone();
        let mut sources: Vec<&[ArrayRef]> = vec![std::slice::from_ref(&before), std::slice::from_ref(&nothing)];
        sources.extend(values.iter().map(std::slice::from_ref));
        let mut at: Result<(u32, u32), String> = self.last.as_ref().map(|_| (0, 0)).map_err(Clone::clone);
        let (mut picks, mut failed) = (Vec::with_capacity(n_times), Vec::new());
        for number in 0..n_times {
            let time = from + number as Time;
            let (mut came, mut went) = (None, false);
            while let Some((_, diff, batch, row)) = errors.next_if(|(at, ..)| *at <= time) {
                match diff > 0 {
                    true => came = Some(Err(message_of(&out.errors[batch], row))),
                    false => went = true,
                }
            }
            while let Some((_, diff, batch, row)) = rows.next_if(|(at, ..)| *at <= time) {
                match diff > 0 {
                    true => came = Some(Ok((batch as u32 + 2, row as u32))),
                    false => went = true,
                }
            }
            // (What goes and is not followed by another: no row is left.)
            at = match came {
                Some(came) => came,
                None if went => Ok((1, 0)),
                None => at,
            };
            match &at {
                Ok(pick) => picks.push(*pick),
                Err(message) => {
                    failed.push((number, message.clone()));
                    picks.push((1, 0));
                }
            }
        }
        let values = or_zero(&self.call, gather::interleave(&sources, &picks)[0].clone());
        note_made(&values);
        if let Some(last) = n_times.checked_sub(1) {
            self.last = match at {
                Ok(_) => Ok(compact_views([take(&values, &UInt32Array::from(vec![last as u32]))].into())[0].clone()),
                Err(message) => Err(message),
            };
        }
        Results { values, failed }
    }
}

fn pick(columns: &[ArrayRef], reads: &[usize]) -> Vec<ArrayRef> {
    reads.iter().map(|&at| columns[at].clone()).collect()
}

/// What a running aggregate sees of these rows: one group, argument, filter, place in the order.
fn elements(read: &[ArrayRef], rows: &[u32], first: usize) -> Columns {
    let group: ArrayRef = Arc::new(Int64Array::from(vec![0; rows.len()]));
    let places = (first..first + rows.len()).map(|place| place as i64);
    let place: ArrayRef = Arc::new(Int64Array::from_iter_values(places));
    let read = gather::take(read, rows);
    std::iter::once(group).chain(read.iter().cloned()).chain([place]).collect()
}
