//! Arrangements inside of a loop: their times are rounds.
//!
//! Law: the runs of a [`RoundTrace`] hold all changes of all epochs, with the rounds of the changes
//! as times, but for the changes of the present round, which are beside. Rounds are never advanced:
//! the changes of an epoch to come meet each row at the row's round. (The interval of a run in the
//! spine counts the runs.)
//!
//! Cost: a sort of each round's changes; merging is paid in proportion to the changes.

use std::cell::{Cell, OnceCell};
use std::collections::BTreeSet;
use std::sync::Arc;

use anabranch_arrangement::{Builder, Layout, MergeEffort, Reader, Run, Sealed, Spine};
use anabranch_batch::{Batch, END, Time, Times};

use super::moment::Moment;
use crate::relational::semi_join::changes;

/// Rows of merging done in a round, at most and at least, while a very large run is in parts or
/// much of what there is was taken back.
const TIDY_FUEL_MAX: usize = 1 << 17;
const TIDY_FUEL_MIN: usize = 1 << 10;
/// The same for each row that the round changes.
const TIDY_PER_ROW: usize = 8;

/// Rows by key, of all rounds of all epochs.
pub(super) struct RoundTrace {
    spine: Spine,
    effort: MergeEffort,
    builder: Builder,
    /// The changes of the present round.
    delta: Option<Arc<Run>>,
    /// A run of very many rows came in parts, which are not merged yet: a look-up pays for each.
    is_in_parts: bool,
    /// Whether keys were looked up since then.
    is_asked: Cell<bool>,
}

impl RoundTrace {
    pub fn new(layout: &Arc<Layout>, effort: MergeEffort) -> RoundTrace {
        let builder = Builder::new(Arc::clone(layout));
        RoundTrace {
            spine: Spine::new(Arc::clone(layout), effort),
            effort,
            builder,
            delta: None,
            is_in_parts: false,
            is_asked: Cell::new(false),
        }
    }

    pub fn layout(&self) -> &Arc<Layout> {
        self.spine.layout()
    }

    /// The same rows, between epochs. Runs are shared.
    pub fn copy(&self) -> RoundTrace {
        let mut copy = RoundTrace::new(self.spine.layout(), self.effort);
        for run in self.spine.runs() {
            copy.insert(&run);
        }
        copy
    }

    fn insert(&mut self, run: &Run) {
        let lower = self.spine.upper();
        self.spine.insert(Arc::new(run.in_interval(lower, lower + 1)));
    }

    pub fn size_bytes(&self) -> usize {
        self.spine.stats().size_bytes
    }

    /// Takes the changes of the present round.
    pub fn take(&mut self, batches: &[Batch]) {
        batches.iter().for_each(|batch| self.builder.push(batch.clone()));
        if self.builder.rows() > 0 {
            let run = self.builder.seal(Time::MIN, END, Time::MIN);
            self.delta = (!run.is_empty()).then(|| Arc::new(run));
        }
    }

    pub fn delta(&self) -> Option<&Arc<Run>> {
        self.delta.as_ref()
    }

    /// All changes before the present round, to look `keys` keys up in them.
    pub fn runs_for(&self, keys: usize) -> Vec<Arc<Run>> {
        self.spine.note_lookups(keys);
        self.is_asked.set(self.is_asked.get() || keys > 0);
        self.spine.runs()
    }

    /// The present round is over.
    pub fn settle(&mut self) {
        let Some(delta) = self.delta.take() else { return };
        self.is_in_parts |= delta.is_in_parts();
        self.insert(&delta);
        // (A round of one row must not pay for a merge of all.)
        let fuel = (TIDY_PER_ROW * delta.len()).clamp(TIDY_FUEL_MIN, TIDY_FUEL_MAX);
        self.spine.tidy(&mut (fuel as isize));
    }

    /// Merges the parts of very large runs: once keys are looked up, and when an epoch is over.
    /// Returns whether that is done.
    pub fn tidy(&mut self, is_last: bool, fuel: &mut isize) -> bool {
        if self.is_in_parts && (is_last || self.is_asked.get()) {
            self.is_in_parts = self.spine.tidy(fuel);
            self.is_asked.set(self.is_in_parts);
            return !self.is_in_parts;
        }
        true
    }
}

/// An arrangement from outside of the loop, whose times are epochs.
pub(super) struct Entering {
    reader: Reader,
    as_of: Time,
    /// Runs with changes of epochs to come.
    sealed: Vec<Sealed>,
    /// The epochs to come that are known to have changes.
    times: BTreeSet<Time>,
    /// The changes of the present epoch, once asked for.
    changes: OnceCell<Option<Batch>>,
    /// The same, sorted.
    delta: OnceCell<Option<Arc<Run>>>,
}

impl Entering {
    pub fn new(reader: Reader, as_of: Time) -> Entering {
        let (changes, delta) = (OnceCell::new(), OnceCell::new());
        Entering { reader, as_of, sealed: vec![], times: BTreeSet::new(), changes, delta }
    }

    pub fn layout(&self) -> &Arc<Layout> {
        self.reader.layout()
    }

    pub fn accept(&mut self, runs: Vec<Sealed>) {
        for chunk in runs.iter().flat_map(|sealed| sealed.run.chunks()) {
            let mut last = None;
            let times = chunk.times();
            let n_times = if matches!(times, Times::Constant(_)) { 1 } else { chunk.len() };
            for time in (0..n_times).map(|row| times.get(row).max(self.as_of)) {
                if last != Some(time) {
                    self.times.insert(time);
                    last = Some(time);
                }
            }
        }
        self.sealed.extend(runs);
    }

    /// The next epoch with changes.
    pub fn next_time(&self) -> Option<Time> {
        self.times.first().copied()
    }

    /// The changes that an epoch brings. Those of the first epoch are all there was before.
    pub fn changes(&self, moment: &Moment) -> Option<&Batch> {
        if moment.round > 1 || self.times.first().is_none_or(|time| *time > moment.epoch) {
            return None;
        }
        self.changes.get_or_init(|| changes(&self.sealed, moment.from, moment.epoch + 1)).as_ref()
    }

    /// The same, sorted.
    pub fn delta(&self, moment: &Moment) -> Option<&Arc<Run>> {
        let sorted = || {
            let mut builder = Builder::new(Arc::clone(self.reader.layout()));
            builder.push(self.changes(moment)?.clone());
            let run = builder.seal(Time::MIN, END, Time::MIN);
            (!run.is_empty()).then(|| Arc::new(run))
        };
        self.changes(moment)?;
        self.delta.get_or_init(sorted).as_ref()
    }

    pub fn runs_for(&self, keys: usize) -> Vec<Arc<Run>> {
        self.reader.runs_for(keys)
    }

    /// An epoch is over.
    pub fn close(&mut self, epoch: Time) {
        self.times = self.times.split_off(&(epoch + 1));
        self.changes.take();
        self.delta.take();
    }

    /// All epochs before `upto` are over.
    pub fn forget_before(&mut self, upto: Time) {
        self.sealed.retain(|sealed| sealed.upper > upto);
        self.reader.set_since(upto - 1);
    }
}
