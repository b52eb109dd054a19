//! All rows of an aggregate again, made of its state.
//!
//! Law: what is told is the sum of all that was put out. Cost: one walk over the groups; nothing is
//! kept for it.

use std::cell::RefCell;

use anabranch_batch::{Batch, Columns, Diff, Diffs, Times};
use arrow::array::new_null_array;

use super::output::{GroupOutcome, assemble};
use super::turn::AggregateTurn;
use super::{Aggregate, Rows};
use crate::aggregate::group_table::Touched;
use crate::aggregate::segments::Segments;
use anabranch_flow::tactic::Output;

/// Groups of which the rows are told together.
const RECALLED_ROWS: usize = 1 << 16;

impl Aggregate {
    /// The rows of all groups.
    pub(super) fn recall_all(&mut self) -> Vec<Batch> {
        let (slots, keys) = match self.rows {
            Rows::Grouped => self.groups.groups(),
            Rows::Global { is_out: true, .. } => (vec![0], Columns::from(vec![])),
            Rows::Global { is_out: false, .. } | Rows::Single | Rows::Elsewhere => return vec![],
        };
        let keys = Batch::with_len(keys, slots.len(), Times::Constant(0), Diffs::Constant(0));
        let mut out = Output::default();
        for first in (0..slots.len()).step_by(RECALLED_ROWS) {
            let n_slots = RECALLED_ROWS.min(slots.len() - first);
            self.recall_groups(&slots[first..first + n_slots], &keys.slice(first, n_slots), &mut out);
        }
        out.rows
    }

    /// Puts out the rows of some groups, whose keys these are: as if each had a row, zero times,
    /// before which there was nothing.
    fn recall_groups(&mut self, slots: &[u32], keys: &Batch, out: &mut Output) {
        let len = slots.len();
        let arguments = self.types[self.n_keys..].iter().map(|data_type| new_null_array(data_type, len));
        let columns = keys.columns().iter().cloned().chain(arguments).collect();
        let batch = Batch::with_len(columns, len, Times::Constant(0), Diffs::Constant(0));
        let of_row: Vec<u32> = (0..len as u32).collect();
        let touched = Touched { first_row: of_row.clone(), of_row, slot: slots.to_vec() };
        let segments = Segments::new(touched, batch.times());
        let multiplicities: Vec<Diff> = slots.iter().map(|&slot| self.multiplicities[slot as usize]).collect();
        let is_there = |&multiplicity: &Diff| self.rows != Rows::Grouped || multiplicity > 0;
        let alive: Vec<[bool; 2]> = multiplicities.iter().map(|multiplicity| [false, is_there(multiplicity)]).collect();
        let turn = AggregateTurn {
            batch: &batch,
            segments: &segments,
            multiplicities: &vec![0; len],
            multiplicities_before: &multiplicities,
            keys: None,
            hashes: &[],
            n_slots: self.multiplicities.len(),
            upto: 0,
            deltas: RefCell::default(),
        };
        let mut outcome = GroupOutcome::new(len);
        let results = self.calls.iter_mut().map(|call| call.step(&turn, &mut outcome)).collect();
        assemble(keys.columns(), results, &segments, &alive, &outcome, out);
    }
}
