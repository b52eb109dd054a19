//! The spine: the levels of a trace, and the schedule that merges them.
//!
//! Law: at every moment the runs of a spine follow each other without gaps up to `upper`. Together
//! they accumulate, at every time from `since` on, to the updates that were inserted. The schedule
//! changes how many runs there are, never what they accumulate to.
//!
//! ```text
//!   oldest                                            newest
//!   [ run 6.4 M ] [ merging 1.6 M + 1.6 M ] [ run 0.8 M ] [ run 0.1 M ]      rows
//!                        ^ fuel                              ^ insert
//! ```
//!
//! Neighbours merge, all at once, when there are enough of them of which each is no larger than the
//! newer ones together. So there are O(log rows) runs, and every row is merged O(log rows) times.
//! How many are enough follows the look-ups (`demand`): a key that is looked up pays for every
//! run, an inserted row for every merge. With four, 60 equal runs cost each row 2.1 merges (merging
//! two at a time takes four). With sixteen, enough where next to nothing is looked up, they cost
//! one. No insertion pays for a large merge: an insertion brings fuel in proportion to its rows to
//! *every* unfinished merge, enough to end the merge well before its level is needed again.
//!
//! A very large run comes in parts, and is a merge from the start. The owner of the spine works on
//! such a merge a little at a time ([`Spine::tidy`]); until its end a look-up pays for every part.
//! All runs merge in the same way once retractions of newer runs are a third of all updates: no
//! insertion could pay for that.
//!
//! A run that came unsorted is no part of a merge until it is sorted: by a reader, in spare time,
//! or by fuel once the newer runs together are as large.
//!
//! The newest run waits for the next one while readers tell its times from earlier ones: merged
//! later, the run needs no column of times.
//!
//! Cost, per row: `insert` is amortised O(log rows) rows of work, and never more than (fuel per
//! row) x (unfinished merges). Reading the list of runs is O(1), or O(chunks) after a merge made a
//! chunk. Memory: inputs of a merge are freed chunk by chunk.
//!
//! Times are advanced, and equal updates summed, only by merging. A spine without insertions keeps
//! its rows until [`Spine::exert`] brings fuel. Exertion continues unfinished merges; then merges
//! neighbours up to eight times apart in size; then rewrites runs with times that no reader tells
//! apart; then packs keys (see [`crate::Chunk`]). Merges by exertion pack keys on the way. A
//! trickle of insertions with an eager idler costs at most some ten rows of work, per level, for
//! each inserted row. Insertions continue a merge that exertion began only once the merge is due
//! for them, too.
//!
//! Source: the fuelled spine of "Shared arrangements" (VLDB 2020), section 4.2. There, levels are
//! slots of powers of two; here, levels have the sizes of their runs, since consolidation may
//! shrink a run by any factor.

use std::cell::OnceCell;
use std::ops::Range;
use std::sync::Arc;

use anabranch_batch::Time;

use crate::demand::{Demand, MERGED_RUNS_MAX};
use crate::floor::{Floor, Floors};
use crate::layout::Layout;
use crate::merge::RunMerge;
use crate::merge_window::newest_window;
use crate::run::Run;

/// The merging list of runs of one collection.
#[derive(Debug)]
pub struct Spine {
    layout: Arc<Layout>,
    effort: MergeEffort,
    /// Neighbouring intervals of time, oldest first.
    levels: Vec<SpineLevel>,
    /// Times are complete before this one.
    upper: Time,
    /// No reader asks for times before this one.
    since: Time,
    /// Rows that no reader asks for: merges leave them out.
    floors: Arc<Floors>,
    demand: Demand,
    /// What readers see, oldest first; forgotten when it changes.
    readable: OnceCell<Vec<Arc<Run>>>,
}

/// How much merging an insertion does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MergeEffort {
    /// Rows of work, for every unfinished merge, per inserted row.
    pub fuel_per_row: usize,
}

/// Sizes of a spine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SpineStats {
    /// Rows in all runs.
    pub rows: usize,
    /// Bytes that the runs own.
    pub size_bytes: usize,
    /// Number of runs.
    pub runs: usize,
}

/// What any insertion brings to a merge: some ten microseconds of work.
const FUEL_MIN: usize = 512;
/// All runs are merged when retractions of newer ones are such a part of all updates: where rows
/// are replaced, as many as are left.
const LITTER_PART: usize = 3;
/// Fewer retractions are no reason: they lie around for the usual merges.
const LITTER_ROWS_MIN: usize = 1 << 18;
/// A merged run is at most this many times as large as the newer runs of its window together.
const DUE_RATIO: usize = 1;
/// Neighbours that exertion merges: two at least, each less than so many times as large as the
/// newer ones together.
const IDLE_RATIO: usize = 8;
/// Of fewer rows keys are not packed, unless runs are merged.
const LOOSE_ROWS_MIN: usize = 1 << 12;

#[derive(Debug)]
enum SpineLevel {
    Settled(Arc<Run>),
    /// A run that was not sorted when it came.
    Unsorted(Arc<Run>),
    /// An unfinished merge, and whether exertion began it.
    Merging(Box<RunMerge>, MergeCause),
}

impl SpineLevel {
    /// Rows of the run, or of the inputs of the merge.
    fn rows(&self) -> usize {
        match self {
            SpineLevel::Settled(run) | SpineLevel::Unsorted(run) => run.len(),
            SpineLevel::Merging(merge, _) => merge.rows(),
        }
    }
}

/// Whose fuel a merge uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum MergeCause {
    Insertion,
    /// A run came in parts. The owner of the spine works on the merge: see [`Spine::tidy`].
    Sealing,
    /// Newer runs retract much of older ones. The owner of the spine works on the merge, as for
    /// `Sealing`.
    Litter,
    Exertion,
}

impl MergeEffort {
    /// Rows of work, for every unfinished merge, that so many inserted rows pay for. Work in
    /// smaller pieces would cost more to take up than to do.
    fn fuel_for(self, rows: usize) -> isize {
        let least = if self.fuel_per_row == 0 { 0 } else { FUEL_MIN };
        isize::try_from(rows.saturating_mul(self.fuel_per_row).max(least)).unwrap_or(isize::MAX)
    }

    /// Every merge is done by the insertion that starts it, and keys are packed: fewest runs and
    /// bytes, longest pauses.
    pub const EAGER: MergeEffort = MergeEffort { fuel_per_row: usize::MAX };
    /// Nothing is merged but by [`Spine::exert`]: no pauses, runs without bound.
    pub const LAZY: MergeEffort = MergeEffort { fuel_per_row: 0 };
}

impl Default for MergeEffort {
    /// Every merge is done in half the time until its level is needed again.
    fn default() -> MergeEffort {
        MergeEffort { fuel_per_row: 4 }
    }
}

impl Spine {
    /// A spine without updates, complete before no time.
    pub fn new(layout: Arc<Layout>, effort: MergeEffort) -> Spine {
        Spine {
            layout,
            effort,
            levels: Vec::new(),
            upper: Time::MIN,
            since: Time::MIN,
            floors: Arc::default(),
            demand: Demand::default(),
            readable: OnceCell::new(),
        }
    }

    /// The layout of the rows.
    pub fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }

    /// Times are complete before this one.
    pub fn upper(&self) -> Time {
        self.upper
    }

    /// Readable, as of any time, from this one on.
    pub fn since(&self) -> Time {
        self.since
    }

    /// How much merging an insertion does.
    pub(crate) fn effort(&self) -> MergeEffort {
        self.effort
    }

    /// The latest time of all updates. O(runs).
    pub(crate) fn time_max(&self) -> Option<Time> {
        self.readable().iter().map(|run| run.time_max()).max()
    }

    /// Lets go of all updates: complete before no time, as if new.
    pub(crate) fn forget(&mut self) {
        let floors = Arc::clone(&self.floors);
        *self = Spine { since: self.since, floors, ..Spine::new(Arc::clone(&self.layout), self.effort) };
    }

    /// Promises that no reader will ask for times before `since`. A time before an earlier promise
    /// changes nothing.
    pub fn set_since(&mut self, since: Time) {
        self.since = self.since.max(since);
    }

    /// Promises that no reader will ask for rows below `floor`, nor will any update below it come.
    /// Merges from now on leave such rows out.
    pub fn set_floor(&mut self, floor: Floor) {
        self.set_floors(Floors::of_readers([Some(floor)].into_iter()));
    }

    pub(crate) fn set_floors(&mut self, floors: Floors) {
        if *self.floors != floors {
            self.floors = Arc::new(floors);
        }
    }

    /// Says that `keys` keys are looked up, in every run: the more often, the fewer runs.
    pub fn note_lookups(&self, keys: usize) {
        self.demand.look_up(keys);
    }

    /// Declares that no update before `upper` will come.
    ///
    /// # Panics
    /// If that was said of a later time.
    pub fn advance(&mut self, upper: Time) {
        assert!(upper >= self.upper, "frontiers do not go back");
        self.upper = upper;
    }

    /// Appends a run, and merges in proportion to its rows. An empty run only moves `upper`.
    ///
    /// # Panics
    /// If the run does not start at `upper`, or has another layout.
    pub fn insert(&mut self, run: Arc<Run>) {
        assert_eq!(run.lower(), self.upper, "runs follow each other without gaps");
        assert_eq!(run.layout(), &self.layout, "all runs of a spine have one layout");
        self.upper = run.upper();
        if run.is_empty() {
            return;
        }
        self.demand.insert(run.len());
        let fuel = self.effort.fuel_for(run.len());
        let level = self.level_of(run);
        self.levels.extend(level);
        self.readable.take();
        self.feed_merges(fuel);
    }

    /// The level that a run becomes: none if all of its rows have cancelled.
    fn level_of(&self, run: Arc<Run>) -> Option<SpineLevel> {
        if !run.is_sorted() {
            return Some(SpineLevel::Unsorted(run));
        }
        match run.parts().len() {
            0 => None,
            1 => Some(SpineLevel::Settled(run)),
            _ => {
                let merge = RunMerge::of_parts(&run, self.since, &self.floors);
                Some(SpineLevel::Merging(Box::new(merge), MergeCause::Sealing))
            }
        }
    }

    /// Merges in the background, using up `fuel` rows of work at most. Returns whether there is
    /// more to do.
    pub fn exert(&mut self, fuel: &mut isize) -> bool {
        while *fuel > 0 {
            let is_unfinished = |level: &SpineLevel| !matches!(level, SpineLevel::Settled(_));
            let unfinished = self.levels.iter().rposition(is_unfinished);
            match unfinished.or_else(|| self.start_idle()) {
                Some(at) => self.work(at, fuel),
                None => return false,
            }
        }
        let is_unfinished = |level: &SpineLevel| !matches!(level, SpineLevel::Settled(_));
        self.levels.iter().any(is_unfinished)
            || self.find_idle().is_some()
            || self.find_history().is_some()
            || self.find_loose().is_some()
    }

    /// Merges runs that came in parts, and what newer runs take back of older ones, using up `fuel`
    /// rows of work at most. Returns whether there is more to do.
    pub fn tidy(&mut self, fuel: &mut isize) -> bool {
        self.take_up_sorted();
        if let Some(runs) = self.find_litter() {
            self.start(runs, MergeCause::Litter);
        }
        let is_untidy =
            |level: &SpineLevel| matches!(level, SpineLevel::Merging(_, MergeCause::Sealing | MergeCause::Litter));
        while let Some(at) = self.levels.iter().position(is_untidy) {
            if *fuel <= 0 {
                return true;
            }
            self.work(at, fuel);
        }
        false
    }

    /// Takes up runs that a reader has sorted: their parts are to be merged.
    fn take_up_sorted(&mut self) {
        let is_sorted = |level: &SpineLevel| matches!(level, SpineLevel::Unsorted(run) if run.is_sorted());
        while let Some(at) = self.levels.iter().position(is_sorted) {
            self.work(at, &mut 0);
        }
    }

    /// What can be read now, oldest first. A merge that is not finished is one run of several
    /// parts.
    pub fn runs(&self) -> Vec<Arc<Run>> {
        self.readable().to_vec()
    }

    /// Sizes, as readers see them. O(runs).
    pub fn stats(&self) -> SpineStats {
        let runs = self.readable();
        SpineStats {
            rows: runs.iter().map(|run| run.len()).sum(),
            size_bytes: runs.iter().map(|run| run.size_bytes()).sum(),
            runs: runs.len(),
        }
    }

    /// Rows of all runs, or of what is being merged to them. O(runs).
    pub(crate) fn rows(&self) -> usize {
        self.levels.iter().map(SpineLevel::rows).sum()
    }

    fn readable(&self) -> &[Arc<Run>] {
        let view = |level: &SpineLevel| match level {
            SpineLevel::Settled(run) | SpineLevel::Unsorted(run) => Arc::clone(run),
            SpineLevel::Merging(merge, _) => merge.view(),
        };
        self.readable.get_or_init(|| self.levels.iter().map(view).collect())
    }

    /// Gives `fuel` to every unfinished merge that is due, those included that can start now.
    fn feed_merges(&mut self, fuel: isize) {
        let mut newer = 0;
        for at in (0..self.levels.len()).rev() {
            let rows = self.levels[at].rows();
            let waits = match self.levels[at] {
                SpineLevel::Merging(_, MergeCause::Exertion) | SpineLevel::Unsorted(_) => rows > DUE_RATIO * newer,
                SpineLevel::Merging(_, MergeCause::Sealing | MergeCause::Litter) => self.effort != MergeEffort::EAGER,
                SpineLevel::Merging(_, MergeCause::Insertion) => false,
                SpineLevel::Settled(_) => true,
            };
            if !waits {
                self.work(at, &mut fuel.clone());
            }
            newer += rows;
        }
        while let Some((runs, cause)) = self.find_due() {
            let at = runs.start;
            self.start(runs, cause);
            if cause == MergeCause::Insertion || self.effort == MergeEffort::EAGER {
                self.work(at, &mut fuel.clone());
            }
        }
    }

    /// Works on a merge, or sorts; a finished merge becomes a run, or nothing when everything
    /// cancelled.
    fn work(&mut self, at: usize, fuel: &mut isize) {
        if let SpineLevel::Unsorted(run) = &self.levels[at] {
            if run.sort_some(fuel) {
                let level = self.level_of(Arc::clone(run));
                self.levels.splice(at..=at, level);
                self.readable.take();
            }
            return;
        }
        let SpineLevel::Merging(merge, _) = &mut self.levels[at] else { return };
        let progress = merge.progress();
        if merge.work(fuel) {
            let SpineLevel::Merging(merge, _) = self.levels.remove(at) else { unreachable!("it was a merge") };
            let rows = merge.rows();
            let run = merge.into_run();
            self.demand.merged(rows, run.len());
            if !run.is_empty() {
                self.levels.insert(at, SpineLevel::Settled(Arc::new(run)));
            }
            self.readable.take();
        } else if merge.progress() != progress {
            self.readable.take();
        }
    }

    /// The runs that may be merged: the newest waits while its times may be asked for.
    fn mergeable(&self) -> &[SpineLevel] {
        // The newest run keeps times that readers tell apart: merged later, the run needs no column
        // of times.
        let waits = |level: &SpineLevel| matches!(level, SpineLevel::Settled(run) if run.time_max() > self.since);
        &self.levels[..self.levels.len() - usize::from(self.levels.last().is_some_and(waits))]
    }

    /// All runs, if much of them is taken back.
    fn find_litter(&self) -> Option<Range<usize>> {
        let levels = self.mergeable();
        self.is_littered(levels).then_some(0..levels.len())
    }

    /// What an insertion merges, or begins to.
    fn find_due(&self) -> Option<(Range<usize>, MergeCause)> {
        if let Some(runs) = self.find_litter() {
            return Some((runs, MergeCause::Litter));
        }
        let due = neighbours(self.mergeable(), self.demand.due_runs(self.rows()), DUE_RATIO);
        Some((due?, MergeCause::Insertion))
    }

    /// Whether merging all of some levels is likely to give back much: newer runs take rows of
    /// older ones back. Each retraction so pays for a few rows of merging.
    fn is_littered(&self, levels: &[SpineLevel]) -> bool {
        let Some((SpineLevel::Settled(oldest), newer)) = levels.split_first() else { return false };
        let (mut rows, mut retractions) = (oldest.len(), 0);
        for level in newer {
            let SpineLevel::Settled(run) = level else { return false };
            rows += run.len();
            retractions += if run.time_max() <= self.since { run.retractions() } else { 0 };
        }
        levels.len() <= MERGED_RUNS_MAX && retractions >= LITTER_ROWS_MIN.max(rows / LITTER_PART)
    }

    /// What exertion merges.
    fn find_idle(&self) -> Option<Range<usize>> {
        neighbours(&self.levels, 2, IDLE_RATIO)
    }

    /// A run that distinguishes times which no reader can tell apart any more.
    fn find_history(&self) -> Option<usize> {
        let is_past =
            |run: &Run| run.time_max() > run.since() && run.time_max() <= self.since && run.time_min() < run.time_max();
        self.levels.iter().position(|level| matches!(level, SpineLevel::Settled(run) if is_past(run)))
    }

    /// A run of which keys may be packed, which may give back memory.
    fn find_loose(&self) -> Option<usize> {
        let is_loose = |run: &Run| run.len() >= LOOSE_ROWS_MIN && run.is_loose();
        self.levels.iter().position(|level| matches!(level, SpineLevel::Settled(run) if is_loose(run)))
    }

    /// Starts what no insertion would start.
    fn start_idle(&mut self) -> Option<usize> {
        if let Some(runs) = self.find_idle() {
            let at = runs.start;
            self.start(runs, MergeCause::Exertion);
            return Some(at);
        }
        let at = self.find_history().or_else(|| self.find_loose())?;
        self.start(at..at + 1, MergeCause::Exertion);
        Some(at)
    }

    /// Replaces runs by their merge.
    fn start(&mut self, runs: Range<usize>, cause: MergeCause) {
        let settled = |level: &SpineLevel| match level {
            SpineLevel::Settled(run) => Arc::clone(run),
            SpineLevel::Merging(..) | SpineLevel::Unsorted(_) => unreachable!("only settled runs are merged"),
        };
        let merged: Vec<Arc<Run>> = self.levels[runs.clone()].iter().map(settled).collect();
        let merge = RunMerge::new(&merged, self.since, &self.floors);
        let packs = cause == MergeCause::Exertion || self.effort == MergeEffort::EAGER;
        let merge = if packs { merge.packing() } else { merge };
        self.levels.splice(runs, [SpineLevel::Merging(Box::new(merge), cause)]);
        self.readable.take();
    }
}

/// The newest neighbours, none being merged, that are `runs` at least, of which each is at most
/// `ratio` times as large as the newer ones together.
fn neighbours(levels: &[SpineLevel], runs: usize, ratio: usize) -> Option<Range<usize>> {
    let rows = |at: usize| match &levels[at] {
        SpineLevel::Settled(run) => Some(run.len()),
        SpineLevel::Merging(..) | SpineLevel::Unsorted(_) => None,
    };
    newest_window(levels.len(), rows, runs, ratio)
}
