//! An arrangement of one worker at one moment, which any thread can read.
//!
//! Law: what is shown has all updates before its `upper`, and tells those at and after its `since`
//! apart. So what is read as of a time from `since` on and before `upper` is the collection at that
//! time. Runs are immutable, so the worker goes on meanwhile.
//!
//! Cost: one `Arc` a run.

use std::sync::Arc;

use anabranch_arrangement::{Keys, Layout, Matches, Reader, Run, Snapshot, probe, snapshot};
use anabranch_batch::consolidate::consolidate;
use anabranch_batch::order::Nulls;
use anabranch_batch::{Batch, Diffs, Time, Times, hash};
use arrow::array::{ArrayRef, AsArray};

use crate::render::Exported;

/// Rows and row errors of one worker.
#[derive(Debug)]
pub(crate) struct Shown {
    rows: ShownRuns,
    errors: ShownRuns,
    /// Readable from this time on.
    pub since: Time,
    /// Complete before this time.
    pub upper: Time,
}

/// The runs of an arrangement.
#[derive(Debug)]
struct ShownRuns {
    layout: Arc<Layout>,
    runs: Vec<Arc<Run>>,
}

impl ShownRuns {
    fn of(reader: &Reader) -> ShownRuns {
        ShownRuns { layout: Arc::clone(reader.layout()), runs: reader.runs() }
    }

    fn has_runs_of(&self, other: &ShownRuns) -> bool {
        let are_same = |(own, other): (&Arc<Run>, &Arc<Run>)| Arc::ptr_eq(own, other);
        self.runs.len() == other.runs.len() && self.runs.iter().zip(&other.runs).all(are_same)
    }
}

impl Shown {
    /// What an arrangement shows now. Held updates are sorted.
    pub fn of(exported: &Exported) -> Shown {
        let since = exported.rows.since().max(exported.errors.since());
        let upper = upper(exported);
        Shown { rows: ShownRuns::of(&exported.rows), errors: ShownRuns::of(&exported.errors), since, upper }
    }

    /// Whether the other has the same runs.
    pub fn has_runs_of(&self, other: &Shown) -> bool {
        self.rows.has_runs_of(&other.rows) && self.errors.has_runs_of(&other.errors)
    }

    /// Row errors as of a time: messages and how often.
    pub fn errors(&self, at: Time) -> Vec<(String, i64)> {
        if self.errors.runs.is_empty() {
            return vec![];
        }
        let errors = snapshot(&self.errors.layout, &self.errors.runs, at);
        errors.iter().flat_map(messages).map(|(_, message, diff)| (message, diff)).collect()
    }

    /// All rows as of a time, to be read in portions.
    pub fn snapshot(&self, at: Time) -> Snapshot {
        Snapshot::new(&self.rows.layout, self.rows.runs.clone(), at)
    }

    /// The consolidated rows under some keys as of a time.
    pub fn rows_of_keys(&self, key_columns: &[ArrayRef], at: Time) -> Option<Batch> {
        let n_keys = key_columns.first().map_or(1, |column| column.len());
        let hashes = hash::hash_columns(key_columns, n_keys);
        let (keys, _) = Keys::from_columns(key_columns, &hashes, Nulls::Equal);
        let ShownRuns { layout, runs } = &self.rows;
        let mut matches = Matches::default();
        let mut from = 0;
        while from < keys.len() {
            from = probe(runs, &layout.key, &keys, from, at + 1, usize::MAX, &mut matches);
        }
        if matches.is_empty() {
            return None;
        }
        let columns: Vec<usize> = (0..layout.types.len()).collect();
        let n_rows = matches.len();
        let diffs = Diffs::Column(matches.diffs().into());
        let rows = consolidate(Batch::with_len(matches.gather(&columns), n_rows, Times::Constant(at), diffs));
        (!rows.is_empty()).then_some(rows)
    }
}

/// Rows and errors are complete before this time.
pub(crate) fn upper(exported: &Exported) -> Time {
    exported.rows.upper().min(exported.errors.upper())
}

/// The messages of a batch of row errors.
pub(crate) fn messages(batch: &Batch) -> Vec<(Time, String, i64)> {
    let texts = batch.column(0).as_string_view();
    (0..batch.len()).map(|row| (batch.times().get(row), texts.value(row).to_owned(), batch.diffs().get(row))).collect()
}
