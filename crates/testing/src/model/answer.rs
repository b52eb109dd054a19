//! What the model reads and what it yields.

use std::collections::BTreeMap;

use crate::row::Contents;

/// The contents of the relations at one time, by name. A relation without an entry is empty.
pub type Inputs = BTreeMap<String, Contents>;

/// What a plan yields at one time.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// The rows.
    pub rows: Contents,
    /// Messages of the row errors met on the way, and how many rows each came from.
    pub errors: BTreeMap<String, i64>,
}

impl Answer {
    pub(super) fn fail(&mut self, message: String, count: i64) {
        *self.errors.entry(message).or_insert(0) += count;
    }

    pub(super) fn fail_all(&mut self, errors: BTreeMap<String, i64>) {
        for (message, count) in errors {
            self.fail(message, count);
        }
    }
}

/// What the leaves of a plan refer to.
pub(super) struct Scope<'a> {
    pub(super) inputs: &'a Inputs,
    /// The present contents of the variables of the loops around the plan, the innermost last.
    pub(super) loops: Vec<&'a [Contents]>,
}
