//! Output rows under construction: the rows that change, with their bounds, and rows that stay
//! whose bounds change.

use anabranch_batch::{Batch, Columns, Diff, Diffs, Time, Times, gather};
use anabranch_flow::tactic::Output;
use arrow::array::ArrayRef;
use arrow::datatypes::DataType;

use super::known::SessionBounds;
use crate::ordered::instants::column_of;
use crate::ordered::trace::{Place, only_used};

/// The columns of bounds.
#[derive(Default)]
struct BoundColumns {
    first: Vec<i64>,
    last: Vec<i64>,
}

/// Rows to be put out.
#[derive(Default)]
pub(super) struct Emission {
    /// Of each row that changes.
    of_changes: BoundColumns,
    places: Vec<Place>,
    times: Vec<Time>,
    diffs: Vec<Diff>,
    /// Of each place.
    of_places: BoundColumns,
}

impl Emission {
    /// Of so many rows that change.
    pub fn of_changes(n_rows: usize) -> Emission {
        let of_changes = BoundColumns { first: vec![0; n_rows], last: vec![0; n_rows] };
        Emission { of_changes, ..Emission::default() }
    }

    /// A row that changes has these bounds.
    pub fn bound(&mut self, row: u32, bounds: SessionBounds) {
        self.of_changes.first[row as usize] = bounds.first;
        self.of_changes.last[row as usize] = bounds.last;
    }

    /// Rows at a place had the old bounds, and have the new ones.
    pub fn rewrite(&mut self, place: Place, time: Time, n_rows: Diff, old: SessionBounds, new: SessionBounds) {
        if n_rows == 0 {
            return;
        }
        for (bounds, diff) in [(old, -n_rows), (new, n_rows)] {
            self.places.push(place);
            self.times.push(time);
            self.diffs.push(diff);
            self.of_places.first.push(bounds.first);
            self.of_places.last.push(bounds.last);
        }
    }

    /// Puts out what was added; places refer to `sources`.
    pub fn finish(self, sources: &[&[ArrayRef]], changes: &Batch, time_type: &DataType, out: &mut Output) {
        if !self.places.is_empty() {
            let (sources, places) = only_used(sources, self.places);
            let rows = gather::interleave(&sources, &places);
            let columns = with_bounds(&rows, &self.of_places, time_type);
            let (times, diffs) = (Times::Column(self.times.into()), Diffs::Column(self.diffs.into()));
            out.give_rows(Batch::with_len(columns, places.len(), times.simplify(), diffs.simplify()));
        }
        let columns = with_bounds(changes.columns(), &self.of_changes, time_type);
        out.give_rows(changes.clone().without_key().with_columns(columns));
    }
}

fn with_bounds(rows: &[ArrayRef], bounds: &BoundColumns, time_type: &DataType) -> Columns {
    let bounds = [&bounds.first, &bounds.last].map(|numbers| column_of(numbers, time_type));
    rows.iter().cloned().chain(bounds).collect()
}
