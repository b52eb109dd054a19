//! A semi-join as times become complete: one interval after the other.

use anabranch_arrangement::{Reader, Sealed};
use anabranch_batch::Time;
use anabranch_flow::limit::Limit;
use anabranch_flow::tactic::Output;

use super::spec::SemiJoinSpec;
use super::tactic::{Changed, Interval, ROWS_PER_TURN, SemiJoin, changes};
use crate::relational::hash_matches::HashMatches;
use crate::relational::history::{is_unsorted_history, rows_of};

/// The tactic with its arrangements, and how far it has come.
pub(super) struct Matching {
    tactic: SemiJoin,
    readers: Readers,
    limits: Vec<Limit>,
    /// Runs of each side that are not complete on both.
    pub runs: [Vec<Sealed>; 2],
    /// The interval that is being worked on.
    interval: Option<Answering>,
    as_of: Time,
    /// All changes before this time are put out.
    pub done: Time,
}

/// An interval at work.
enum Answering {
    /// By the order of the runs.
    Sorted(Interval),
    /// The first one, up to a time, of rows that have no order yet; `None` at its end.
    Unsorted(Time, Option<Box<HashMatches>>),
}

impl Answering {
    /// The changes before this time are answered.
    fn upto(&self) -> Time {
        match self {
            Answering::Sorted(interval) => interval.upto,
            Answering::Unsorted(upto, _) => *upto,
        }
    }

    /// A turn's work; true at the end.
    fn work(&mut self, tactic: &SemiJoin, out: &mut Output) -> bool {
        match self {
            Answering::Sorted(interval) => {
                tactic.work(interval, out);
                interval.is_over()
            }
            Answering::Unsorted(_, matches) => {
                let left = matches.take().and_then(|matches| matches.work(tactic.spec(), ROWS_PER_TURN, out));
                *matches = left.map(Box::new);
                matches.is_none()
            }
        }
    }
}

impl Matching {
    pub fn new(spec: SemiJoinSpec, left: Reader, right: Reader) -> Matching {
        let as_of = spec.as_of;
        let (tactic, readers) = (SemiJoin::new(spec), Readers { left, right });
        let limits = Vec::new();
        Matching { tactic, readers, limits, runs: [vec![], vec![]], interval: None, as_of, done: Time::MIN }
    }

    /// The same, which gives up rows of a side below its limit.
    pub fn limited(self, limits: Vec<Limit>) -> Matching {
        Matching { limits, ..self }
    }

    /// A turn's work on the changes before `upto`, or on those of the interval that is under way.
    /// Returns the end of the interval.
    pub fn advance(&mut self, upto: Time, out: &mut Output) -> Time {
        let aim = self.interval.as_ref().map_or(upto, Answering::upto);
        if aim > self.done.max(self.as_of) {
            self.work(aim, out);
        }
        aim
    }

    /// Whether an interval is not over.
    pub fn is_under_way(&self) -> bool {
        self.interval.is_some()
    }

    fn work(&mut self, upto: Time, out: &mut Output) {
        if self.interval.is_none() && !self.runs.iter().all(|runs| runs.is_empty()) {
            self.interval = Some(self.begin(upto));
        }
        if let Some(interval) = &mut self.interval
            && !interval.work(&self.tactic, out)
        {
            return;
        }
        self.interval = None;
        self.done = upto;
        self.runs.iter_mut().for_each(|runs| runs.retain(|sealed| sealed.upper > upto));
        self.readers.forget_before(upto - 1);
        for limit in &self.limits {
            let reader = if limit.input == 0 { &mut self.readers.left } else { &mut self.readers.right };
            limit.raise(reader, upto);
        }
    }

    fn begin(&self, upto: Time) -> Answering {
        let runs = [self.readers.left.runs(), self.readers.right.runs()];
        // (What changes on the right concerns rows that were on the left before: of a history there
        // are none.)
        let is_first = runs[0].iter().all(|run| run.is_from(self.done));
        if is_first && is_unsorted_history(runs.iter().flatten(), self.as_of, upto) {
            let matches = HashMatches::new(self.tactic.spec(), runs.each_ref().map(rows_of));
            return Answering::Unsorted(upto, matches.map(Box::new));
        }
        let changes = |runs: &[Sealed]| changes(runs, self.done, upto);
        let [left, right] = &self.runs;
        let right = if is_first { None } else { changes(right) };
        let changed = Changed { left: changes(left), right };
        let n_changed = changed.left.iter().chain(&changed.right).map(|batch| batch.len()).sum();
        let runs = [self.readers.left.runs_for(n_changed), self.readers.right.runs_for(n_changed)];
        Answering::Sorted(self.tactic.begin(changed, runs, self.done, upto))
    }
}

struct Readers {
    left: Reader,
    right: Reader,
}

impl Readers {
    fn forget_before(&mut self, since: Time) {
        for reader in [&mut self.left, &mut self.right] {
            if since > reader.since() {
                reader.set_since(since);
            }
        }
    }
}
