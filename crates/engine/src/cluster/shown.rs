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

use super::spec::WantedKeys;
use crate::key_set::KeySet;
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

    /// The rows that are wanted, as of a time, to be read in portions.
    pub fn rows(&self, wanted: &WantedKeys, at: Time) -> ShownRows {
        let ShownRuns { layout, runs } = &self.rows;
        match wanted {
            WantedKeys::All => ShownRows::Ahead { snapshot: Snapshot::new(layout, runs.clone(), at), among: None },
            WantedKeys::Keys(keys) => ShownRows::Found(self.rows_of_keys(keys, at)),
            WantedKeys::Prefixes(prefixes) => {
                let ranges = prefixes.first().map(hash::leads).unwrap_or_default();
                let columns = layout.key[..prefixes.len()].to_vec();
                let among = Some(Prefixes { columns, values: KeySet::new(prefixes.clone()) });
                ShownRows::Ahead { snapshot: Snapshot::within(layout, runs.clone(), at, ranges), among }
            }
            WantedKeys::Hashes(first, last) => {
                let snapshot = Snapshot::within(layout, runs.clone(), at, vec![(*first, *last)]);
                ShownRows::Ahead { snapshot, among: None }
            }
        }
    }

    /// The consolidated rows under some keys as of a time.
    fn rows_of_keys(&self, key_columns: &[ArrayRef], at: Time) -> Option<Batch> {
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

/// Rows of an arrangement that are being read.
#[derive(Debug)]
pub(crate) enum ShownRows {
    /// All that were wanted.
    Found(Option<Batch>),
    /// Where reading has got to, and which of these rows are wanted.
    Ahead { snapshot: Snapshot, among: Option<Prefixes> },
}

/// What the keys of wanted rows begin with.
#[derive(Debug)]
pub(crate) struct Prefixes {
    /// The first columns of the key.
    columns: Vec<usize>,
    values: KeySet,
}

impl ShownRows {
    /// The next portion, of about `rows` rows looked at; `None` at the end.
    pub fn next_portion(&mut self, rows: usize) -> Option<Vec<Batch>> {
        match self {
            ShownRows::Found(batch) => batch.take().map(|batch| vec![batch]),
            ShownRows::Ahead { snapshot, among } => {
                let portion = snapshot.next_portion(rows)?;
                let Some(Prefixes { columns, values }) = among else { return Some(portion) };
                let wanted = portion.into_iter().map(|batch| {
                    let rows = values.rows_among(batch.project(columns).columns());
                    if rows.len() == batch.len() { batch } else { batch.take(&rows) }
                });
                Some(wanted.filter(|batch| !batch.is_empty()).collect())
            }
        }
    }

    /// Whether all has been read.
    pub fn is_done(&self) -> bool {
        match self {
            ShownRows::Found(batch) => batch.is_none(),
            ShownRows::Ahead { snapshot, .. } => snapshot.is_done(),
        }
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
