//! Rows of a table that a statement would change twice.
//!
//! Law: each row is changed once. With a primary key a row is known by its key. Without one equal
//! rows are copies, each of which a join may change once: more changes than copies change some copy
//! twice. Cost: without a key the table is read once more.

use anabranch_batch::consolidate::consolidate;
use anabranch_batch::{Batch, Diffs, Times};

use super::keys::UniqueKey;
use super::state::Session;
use crate::catalog::Object;
use crate::error::Error;

/// A row that is changed twice.
pub(super) enum Twice {
    /// The row's key, as PostgreSQL tells it.
    Key(String),
    /// A row of a table without a key.
    Copy,
}

impl Twice {
    /// What the client is told of the row.
    pub fn detail(&self) -> String {
        match self {
            Twice::Key(key) => format!("{key} is the row's key."),
            Twice::Copy => "The table has no primary key: equal rows are changed together.".to_owned(),
        }
    }
}

impl Session {
    /// A row of the table among the rows to change that is there more often than in the table.
    pub(super) fn changed_twice(&mut self, object: &Object, old: &[Batch]) -> Result<Option<Twice>, Error> {
        let timeless = |batch: &Batch| batch.clone().with_times(Times::Constant(0)).flatten();
        let rows: Vec<Batch> = old.iter().map(timeless).collect();
        if !object.primary_key.is_empty() {
            return Ok(UniqueKey::primary(object).repeated_in(object, &rows).map(Twice::Key));
        }
        if rows.iter().all(Batch::is_empty) {
            return Ok(None);
        }
        let there = self.all_rows(object)?;
        let sum: Vec<Batch> = there.iter().map(timeless).chain(rows.into_iter().map(Batch::negate)).collect();
        let Some(sum) = Batch::concat(&sum) else { return Ok(None) };
        let is_missing = match consolidate(sum).diffs() {
            Diffs::Constant(diff) => *diff < 0,
            Diffs::Column(diffs) => diffs.iter().any(|diff| *diff < 0),
        };
        Ok(is_missing.then_some(Twice::Copy))
    }
}
