//! Which branches a shard is at work on: for the error that ends it.
//!
//! Law: those whose rows a query has been given since time last went on there, of the query that
//! was at work last. A query of branches sees the rows of all branches of its shard, so the one at
//! fault is among them, and it is the only one where rows come alone. Cost: a look at the branch of
//! each row that a query of branches takes, until it has had more of them than are told.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use anabranch_batch::Batch;
use anabranch_engine::Error;
use anabranch_engine::frame::Item;
use arrow::array::AsArray;
use arrow::datatypes::Int64Type;

use crate::program::{BRANCH, ProgramStep};

/// Branches that are told by number.
const TOLD_MAX: usize = 8;

/// Branches of each query that have had rows since time last went on.
#[derive(Debug, Default)]
pub(crate) struct RecentBranches {
    of_step: BTreeMap<usize, BTreeSet<i64>>,
    at_work: Option<usize>,
}

impl RecentBranches {
    /// A query, which is a step, begins to work on what an input gives it.
    pub fn enter(&mut self, step: usize, input: &ProgramStep, item: &Item) -> Result<(), Error> {
        self.at_work = Some(step);
        let (Item::Rows(batch), true) = (item, input.key == [BRANCH]) else { return Ok(()) };
        let place = input.schema.index_of(BRANCH).map_err(|error| Error::internal(error.to_string()))?;
        note(self.of_step.entry(step).or_default(), batch, place);
        Ok(())
    }

    /// It has done so: once time has gone on, what comes next is of other rows.
    pub fn leave(&mut self, step: usize, is_time: bool) {
        self.at_work = None;
        if is_time {
            self.of_step.remove(&step);
        }
    }
}

fn note(branches: &mut BTreeSet<i64>, batch: &Batch, place: usize) {
    let Some(numbers) = batch.column(place).as_primitive_opt::<Int64Type>() else { return };
    let mut last = None;
    for number in numbers.values() {
        if branches.len() > TOLD_MAX {
            return;
        }
        if last != Some(number) {
            branches.insert(*number);
            last = Some(number);
        }
    }
}

impl fmt::Display for RecentBranches {
    /// Such as `, at rows of branches 3, 7`; nothing where no branches are at work.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(branches) = self.at_work.and_then(|step| self.of_step.get(&step)) else { return Ok(()) };
        let told: Vec<String> = branches.iter().take(TOLD_MAX).map(i64::to_string).collect();
        match (&told[..], branches.len() > TOLD_MAX) {
            ([], _) => Ok(()),
            ([branch], false) => write!(f, ", at rows of branch {branch}"),
            (_, false) => write!(f, ", at rows of branches {}", told.join(", ")),
            (_, true) => write!(f, ", at rows of branches {} and others", told.join(", ")),
        }
    }
}
