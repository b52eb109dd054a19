//! Output under construction: pieces of time with the group's results.

use std::sync::Arc;

use anabranch_batch::{Batch, Columns, Diffs, Time, Times, Until, gather};
use arrow::array::{ArrayRef, Float64Array, Int64Array, StringViewArray};

use super::{Sliding, SlidingCall};
use crate::aggregate::custom::Results;
use anabranch_flow::tactic::Output;

/// Output under construction.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    pub(super) slots: Vec<u32>,
    pub(super) times: Vec<Time>,
    pub(super) untils: Vec<Time>,
    /// A vector for each call: its value, or what its mean is made of.
    pub(super) values: Vec<Vec<Option<i64>>>,
    pub(super) means: Vec<Vec<Option<f64>>>,
    /// Pieces of which a sum does not fit.
    pub(super) failed: Vec<(Time, Time)>,
}

impl Pieces {
    pub(super) fn new(n_calls: usize) -> Pieces {
        Pieces { values: vec![Vec::new(); n_calls], means: vec![Vec::new(); n_calls], ..Pieces::default() }
    }

    /// Puts out the pieces, and errors in place of those without a result. `custom` are the results
    /// of users' aggregates.
    pub(super) fn give(self, tactic: &Sliding, custom: Vec<Results>, out: &mut Output) {
        let sum = self.failed.iter().map(|&(time, until)| (time, until, "bigint out of range in sum".to_owned()));
        let failed = first_errors(&custom);
        let own = failed.iter().map(|(at, message)| (self.times[*at], self.untils[*at], message.clone()));
        give_errors(sum.chain(own).collect(), out);
        let len = self.slots.len();
        if len == 0 {
            return;
        }
        let mut columns: Vec<ArrayRef> = Vec::new();
        if !tactic.key_types.is_empty() {
            let places: Vec<(u32, u32)> = self.slots.iter().map(|&slot| tactic.key_store.place(slot)).collect();
            columns.extend(gather::interleave(&tactic.key_store.sources(), &places).iter().cloned());
        }
        let mut custom = custom.into_iter();
        for (call, (values, means)) in tactic.calls.iter().zip(self.values.into_iter().zip(self.means)) {
            columns.push(match call {
                SlidingCall::Avg(_) => Arc::new(Float64Array::from(means)),
                SlidingCall::Rows | SlidingCall::Count(_) | SlidingCall::Sum(_) => Arc::new(Int64Array::from(values)),
                SlidingCall::Custom => custom.next().expect("every user's aggregate has results").values,
            });
        }
        let until = match tactic.apart {
            true => Until::Duration(tactic.duration),
            false => Until::Column(self.untils.into()),
        };
        let times = Times::Column(self.times.into());
        let rows = Batch::with_len(Columns::from(columns), len, times, Diffs::Constant(1)).with_until(until);
        if failed.is_empty() {
            return out.give_rows(rows);
        }
        let is_left = |row: &u32| failed.binary_search_by_key(&(*row as usize), |(at, _)| *at).is_err();
        out.give_rows(rows.take(&(0..len as u32).filter(is_left).collect::<Vec<_>>()));
    }
}

/// Pieces without a result, in order, with the first message of each.
fn first_errors(custom: &[Results]) -> Vec<(usize, String)> {
    let mut errors: Vec<(usize, String)> = custom.iter().flat_map(|results| results.errors.iter().cloned()).collect();
    errors.sort_by_key(|(at, _)| *at);
    errors.dedup_by_key(|(at, _)| *at);
    errors
}

fn give_errors(errors: Vec<(Time, Time, String)>, out: &mut Output) {
    if errors.is_empty() {
        return;
    }
    let messages: ArrayRef = Arc::new(StringViewArray::from_iter_values(errors.iter().map(|(.., message)| message)));
    let times = Times::Column(errors.iter().map(|(time, ..)| *time).collect());
    let until = Until::Column(errors.iter().map(|(_, until, _)| *until).collect());
    out.give_errors(Batch::new(vec![messages], times, Diffs::Constant(1)).with_until(until));
}
