//! Output of an as-of join under construction: pairs of places, and left rows alone.

use anabranch_batch::{Batch, Columns, Diff, Diffs, Time, Times, gather};
use arrow::array::{ArrayRef, new_null_array};
use arrow::datatypes::DataType;

use super::spec::AsofSpec;
use crate::ordered::trace::{Place, only_used};
use anabranch_flow::tactic::Output;

/// The right row that a left row is joined with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AsofMatch {
    pub(super) place: Place,
    /// Which of the two walks over right rows the place belongs to.
    pub(super) is_ahead: bool,
    /// Turned.
    pub(super) instant: i64,
}

/// Rows to be put out.
#[derive(Default)]
pub(super) struct Emission {
    pairs: Updates,
    matches: Vec<AsofMatch>,
    alone: Updates,
}

/// Left rows with times and diffs.
#[derive(Default)]
struct Updates {
    places: Vec<Place>,
    times: Vec<Time>,
    diffs: Vec<Diff>,
}

impl Emission {
    /// A left row whose multiplicity and match at each of the times are these.
    pub(super) fn add(&mut self, place: Place, times: &[Time], counts: &[Diff], found: &[Option<AsofMatch>]) {
        for now in 1..times.len() {
            let (before, time) = (now - 1, times[now]);
            if found[before] == found[now] {
                self.push(place, found[now], time, counts[now] - counts[before]);
            } else {
                self.push(place, found[before], time, -counts[before]);
                self.push(place, found[now], time, counts[now]);
            }
        }
    }

    fn push(&mut self, place: Place, found: Option<AsofMatch>, time: Time, diff: Diff) {
        if diff == 0 {
            return;
        }
        match found {
            Some(found) => {
                self.pairs.push(place, time, diff);
                self.matches.push(found);
            }
            None => self.alone.push(place, time, diff),
        }
    }

    /// Puts out what was added; the sources are what places refer to.
    pub(super) fn finish(
        self,
        left: &[&[ArrayRef]],
        behind: &[&[ArrayRef]],
        ahead: &[&[ArrayRef]],
        spec: &AsofSpec,
        out: &mut Output,
    ) {
        if !self.matches.is_empty() {
            let right: Vec<&[ArrayRef]> = behind.iter().chain(ahead).copied().collect();
            let offset = |found: &AsofMatch| if found.is_ahead { behind.len() as u32 } else { 0 };
            let places: Vec<Place> =
                self.matches.iter().map(|found| (found.place.0 + offset(found), found.place.1)).collect();
            let (right, places) = only_used(&right, places);
            let right = gather::interleave(&right, &places);
            out.give_rows(self.pairs.finish(left, &right));
        }
        if spec.join.outer && !self.alone.places.is_empty() {
            let nulls = nulls(&spec.right_types, self.alone.places.len());
            out.give_rows(self.alone.finish(left, &nulls));
        }
    }
}

impl Updates {
    fn push(&mut self, place: Place, time: Time, diff: Diff) {
        self.places.push(place);
        self.times.push(time);
        self.diffs.push(diff);
    }

    fn finish(self, left: &[&[ArrayRef]], right: &[ArrayRef]) -> Batch {
        let (left, places) = only_used(left, self.places);
        let columns: Columns = gather::interleave(&left, &places).iter().chain(right).cloned().collect();
        let (times, diffs) = (Times::Column(self.times.into()).simplify(), Diffs::Column(self.diffs.into()).simplify());
        Batch::with_len(columns, places.len(), times, diffs)
    }
}

/// The rows with NULLs for the columns of the other side.
pub(super) fn padded(batch: Batch, types: &[DataType]) -> Batch {
    let columns = batch.columns().iter().cloned().chain(nulls(types, batch.len())).collect();
    batch.without_key().with_columns(columns)
}

fn nulls(types: &[DataType], len: usize) -> Vec<ArrayRef> {
    types.iter().map(|data_type| new_null_array(data_type, len)).collect()
}
