//! The state that the writer and the readers of an arrangement share: runs, held updates, and the
//! times that readers hold.
//!
//! Law: times that some reader holds are never advanced past its hold. Every update that was
//! written is in a run, in the builder, or with the *origin*, and in one of them only. The states
//! and their transitions are in `state`.
//!
//! A writer such as an aggregate can recall all that it has written: it is the arrangement's
//! [`Origin`]. An arrangement without readers of its rows need not keep them then. It is *dormant*:
//! it has no runs, and its builder holds only updates after the time `since` that its slowest
//! reader has let go of. Contents as of `since` = what the origin recalls, minus the held updates
//! after `since`.
//!
//! ```text
//!   origin recalls   a b c d          all that was written
//!   held             +d at 7, -e at 7
//!   contents at 6    a b c e          = a b c d - (d - e)
//! ```
//!
//! Cost: a pointer a batch while dormant; waking costs what the origin's recall costs, and a sort.
//!
//! Source: our own (decisions 0014 and 0016).

use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::{Rc, Weak};
use std::sync::Arc;

use anabranch_batch::{Batch, FlatBatch, Time, Times};

use crate::builder::Builder;
use crate::holds::Holds;
use crate::layout::Layout;
use crate::listener::{ListenerQueue, Sealed, live};
use crate::spine::{MergeEffort, Spine};
use crate::state::{ArrangementState, Dormancy, Readership};

/// Fewer rows are always held: sorting them while a reader waits takes a tenth of a millisecond.
const HELD_ROWS_MIN: usize = 1 << 10;
/// An unread arrangement holds this part of its rows, up to [`HELD_ROWS_MAX`].
const HELD_PART: usize = 4;
/// More rows are never held: sorting them takes some ten milliseconds.
const HELD_ROWS_MAX: usize = 1 << 17;
/// Fewer batches are always held. Keeping a batch costs as much as keeping this many rows.
const HELD_BATCHES_MIN: usize = 32;
/// After more completions without readers moving on, a dormant arrangement that holds too much
/// wakes.
const STUCK_MAX: usize = 8;

/// A writer of an arrangement that can recall all it has written.
pub trait Origin: fmt::Debug {
    /// How many rows a recall gives, at most.
    fn n_rows_max(&self) -> usize;

    /// All updates pushed so far, summed up, at any times.
    fn recall(&self) -> Vec<Batch>;
}

#[derive(Debug)]
pub(crate) struct Shared {
    /// All updates that are in runs.
    pub spine: Spine,
    /// Updates in no run: held ones, and those whose time is not complete.
    pub builder: Builder,
    /// Times are complete before this one. Complete updates from the spine's `upper` on are held.
    upper: Rc<Cell<Time>>,
    /// Where the updates are kept.
    state: ArrangementState,
    /// From which times on the readers read.
    pub holds: Holds,
    /// Where new runs go.
    pub listeners: Vec<Weak<RefCell<ListenerQueue<Sealed>>>>,
    /// Where new batches go.
    pub followers: Vec<Weak<RefCell<ListenerQueue<FlatBatch>>>>,
    /// The writer that can recall all updates, and the most rows it may be asked for.
    origin: Option<(Rc<dyn Origin>, usize)>,
}

impl Shared {
    /// An arrangement without updates and without readers. One `beside` another is complete where
    /// the other is, until a batch is pushed to it.
    pub fn new(layout: &Arc<Layout>, effort: MergeEffort, beside: Option<&Shared>) -> Shared {
        Shared {
            spine: Spine::new(Arc::clone(layout), effort),
            builder: Builder::new(Arc::clone(layout)),
            upper: beside.map_or_else(|| Rc::new(Cell::new(Time::MIN)), |other| Rc::clone(&other.upper)),
            state: if beside.is_some() {
                ArrangementState::Quiet
            } else {
                ArrangementState::Sorted(Readership::Unread)
            },
            holds: Holds::default(),
            listeners: Vec::new(),
            followers: Vec::new(),
            origin: None,
        }
    }

    /// Moves to another state, and asserts that the table of `state` allows the transition and that
    /// updates are where the new state says.
    fn enter(&mut self, next: ArrangementState) {
        next.assert_follows(&self.state);
        match &next {
            ArrangementState::Quiet => unreachable!("no arrangement becomes quiet"),
            ArrangementState::Sorted(_) => assert!(!self.has_held(), "a sorted arrangement holds no complete update"),
            ArrangementState::Held(_) => assert!(self.has_held(), "a held arrangement holds some complete update"),
            ArrangementState::Dormant(_) => {
                assert!(
                    self.origin.is_some() && self.spine.rows() == 0,
                    "a dormant arrangement's rows are with its origin"
                );
            }
        }
        self.state = next;
    }

    /// Times are complete before this one.
    pub fn upper(&self) -> Time {
        self.upper.get()
    }

    /// Declares times before `upper` complete. Returns whether they were not: those of a quiet
    /// arrangement are complete as soon as they are beside.
    pub fn set_upper(&mut self, upper: Time) -> bool {
        let is_later = !self.is_quiet() && upper > self.upper();
        if is_later {
            self.upper.set(upper);
            if matches!(self.state, ArrangementState::Sorted(_)) && self.has_held() {
                self.enter(ArrangementState::Held(self.state.readership()));
            }
        }
        is_later
    }

    fn is_quiet(&self) -> bool {
        matches!(self.state, ArrangementState::Quiet)
    }

    fn is_dormant(&self) -> bool {
        self.state.dormancy().is_some()
    }

    /// The `upper` of the arrangement beside, while it is that of this one.
    pub fn quiet_upper(&self) -> Option<Rc<Cell<Time>>> {
        self.is_quiet().then(|| Rc::clone(&self.upper))
    }

    /// Before a batch is pushed: a quiet arrangement takes an `upper` of its own, and listeners and
    /// followers learn of it.
    pub fn end_quiet(&mut self) {
        if !self.is_quiet() {
            return;
        }
        let upper = self.upper();
        self.upper = Rc::new(Cell::new(upper));
        self.spine.advance(upper);
        live(&mut self.listeners).iter().for_each(|queue| queue.borrow_mut().own_upper(upper));
        live(&mut self.followers).iter().for_each(|queue| queue.borrow_mut().own_upper(upper));
        self.enter(ArrangementState::Sorted(Readership::Unread));
    }

    /// Takes a batch. The history that listeners are told of first need not be sorted: they may
    /// look what they have up in it, or it in what they have.
    pub fn push(&mut self, batch: FlatBatch) {
        let is_history = self.spine.rows() == 0 && !self.listeners.is_empty();
        self.builder.set_patient(is_history && self.spine.effort() != MergeEffort::EAGER);
        self.builder.push(batch);
    }

    pub fn set_origin(&mut self, origin: Rc<dyn Origin>, recalled_rows_max: usize) {
        self.origin = Some((origin, recalled_rows_max));
    }

    /// The time that compaction may advance to: the least hold, or `upper` without readers. An
    /// update sealed before `upper` must keep a time before `upper`, so the result is less than
    /// `upper`.
    fn compaction_since(&self, upper: Time) -> Time {
        let latest = upper.saturating_sub(1);
        self.holds.least().map_or(latest, |since| since.min(latest))
    }

    /// Lets merges advance times that readers have let go of.
    pub fn follow_readers(&mut self) {
        self.spine.set_since(self.compaction_since(self.spine.upper()));
        self.spine.set_floors(self.holds.floors());
    }

    /// Whether a complete update is in the builder.
    fn has_held(&self) -> bool {
        self.builder.min_time().is_some_and(|first| first < self.upper())
    }

    /// Whether held updates are worth sorting in spare time.
    fn holds_much(&self) -> bool {
        self.builder.rows() >= HELD_ROWS_MIN && self.has_held()
    }

    fn holds_too_much(&self) -> bool {
        let (rows, batches) = (self.builder.rows(), self.builder.parts());
        if rows < HELD_ROWS_MIN && batches < HELD_BATCHES_MIN || !self.has_held() {
            return false;
        }
        let held_max = match self.state.is_read() {
            true => HELD_ROWS_MIN,
            false => (self.spine.rows() / HELD_PART).clamp(HELD_ROWS_MIN, HELD_ROWS_MAX),
        };
        rows >= held_max || batches >= HELD_BATCHES_MIN.max(rows / HELD_BATCHES_MIN)
    }

    /// Keeps held updates within bounds, after times became complete that no listener is told of.
    pub fn bound_held(&mut self) {
        if self.is_dormant() {
            return self.bound_dormant();
        }
        let is_eager = self.origin.is_some() && self.spine.effort() == MergeEffort::EAGER;
        if self.holds_too_much() || is_eager && self.has_held() {
            if !self.state.is_read() && self.fall_dormant() {
                return;
            }
            self.seal(true);
            self.enter(ArrangementState::Sorted(Readership::Unread));
        }
    }

    /// Sorts held updates into a run, if there are any. A dormant arrangement stays dormant.
    /// Returns whether a run was made.
    pub fn settle(&mut self) -> bool {
        !self.is_dormant() && self.spine.upper() < self.upper() && self.seal(true).is_some()
    }

    /// Notes that a reader asked, if `brought` says that its question sorted updates.
    fn note_read(&mut self, brought: bool) {
        if brought {
            self.enter(ArrangementState::Sorted(Readership::Read));
        }
    }

    /// Puts all complete updates into runs, for a reader.
    pub fn settle_for_reader(&mut self) {
        let brought = self.wake() | self.settle();
        self.note_read(brought);
    }

    /// In spare time: sorts held updates if they are many, and merges, using up `fuel` rows of work
    /// at most. Returns whether work is left.
    pub fn exert(&mut self, fuel: &mut isize) -> bool {
        if self.is_dormant() {
            return false;
        }
        self.follow_readers();
        let holds_much = self.holds_much();
        if holds_much && *fuel > 0 {
            if !self.state.is_read() && self.fall_dormant() {
                return false;
            }
            self.settle();
            return self.spine.exert(fuel);
        }
        self.spine.exert(fuel) || holds_much
    }

    /// Merges the parts of very large runs, and runs much of which was retracted, using up `fuel`
    /// rows of work at most. Returns whether work is left.
    pub fn tidy(&mut self, fuel: &mut isize) -> bool {
        self.follow_readers();
        self.spine.tidy(fuel)
    }

    /// Makes a run of the complete updates, if there are any. With `compact`, times in the run are
    /// advanced as far as readers allow.
    pub fn seal(&mut self, compact: bool) -> Option<Sealed> {
        self.spine.set_since(self.compaction_since(self.upper()));
        self.spine.set_floors(self.holds.floors());
        if !self.has_held() {
            self.spine.advance(self.upper());
            return None;
        }
        let since = if compact { self.spine.since() } else { Time::MIN };
        let run = Arc::new(self.builder.seal(self.spine.upper(), self.upper(), since));
        self.spine.insert(Arc::clone(&run));
        if let ArrangementState::Held(readership) = self.state {
            self.enter(ArrangementState::Sorted(readership));
        }
        Some(Sealed { lower: run.lower(), upper: run.upper(), run })
    }

    /// Leaves all rows to the origin, if there is one that may be asked for them. Returns whether
    /// the arrangement is dormant.
    fn fall_dormant(&mut self) -> bool {
        let is_heard = self.listeners.iter().any(|listener| listener.strong_count() > 0);
        assert!(!is_heard, "what is listened to is sealed, not held");
        let since = self.compaction_since(self.upper());
        // The origin recalls one sum at one time, so no reader may still tell times of the runs
        // apart.
        if !self.may_ask_origin() || since == Time::MIN || self.spine.time_max() > Some(since) {
            return false;
        }
        let is_empty = self.spine.rows() == 0 && self.builder.min_time() > Some(since);
        self.spine.set_since(since);
        self.spine.forget();
        self.builder.forget_until(since);
        self.enter(ArrangementState::Dormant(Dormancy { since, n_stuck: 0, is_empty }));
        true
    }

    fn may_ask_origin(&self) -> bool {
        self.origin.as_ref().is_some_and(|(origin, rows_max)| origin.n_rows_max() <= *rows_max)
    }

    /// Keeps a dormant arrangement within bounds. Batches that the slowest reader no longer tells
    /// apart are dropped. The arrangement wakes if readers stand still, or if the origin has too
    /// many rows by now.
    fn bound_dormant(&mut self) {
        if !self.may_ask_origin() {
            self.wake();
            return;
        }
        let slowest = self.compaction_since(self.upper());
        let (rows, parts) = (self.builder.rows(), self.builder.parts());
        let Some(&dormancy) = self.state.dormancy() else { return };
        if slowest > dormancy.since {
            self.spine.set_since(slowest);
            // The origin has these updates too: batches up to `slowest` are part of any later
            // recall.
            self.builder.forget_until(slowest);
            return self.enter(ArrangementState::Dormant(Dormancy { since: slowest, n_stuck: 0, is_empty: false }));
        }
        let n_stuck = dormancy.n_stuck + 1;
        self.enter(ArrangementState::Dormant(Dormancy { n_stuck, ..dormancy }));
        if n_stuck > STUCK_MAX && rows + HELD_BATCHES_MIN * parts > HELD_ROWS_MAX {
            self.wake();
        }
    }

    /// How many rows are with the origin at most, while the arrangement is dormant.
    pub fn n_rows_at_origin(&self) -> Option<usize> {
        let (origin, _) = self.origin.as_ref().filter(|_| self.is_dormant())?;
        Some(origin.n_rows_max())
    }

    /// Puts all updates up to `time` into runs, for a reader. Later updates may stay held.
    pub fn settle_until(&mut self, time: Time) {
        let brought = match self.state.dormancy() {
            // Nothing was there as of `since`, and updates after `time` are not asked for.
            Some(dormancy) if dormancy.is_empty && time <= dormancy.since => false,
            Some(_) => self.wake(),
            None => self.builder.min_time().is_some_and(|first| first <= time) && self.settle(),
        };
        self.note_read(brought);
    }

    /// Whether all updates after `time` are in runs or in the builder.
    pub fn has_rows_after(&self, time: Time) -> bool {
        self.state.dormancy().is_none_or(|dormancy| dormancy.since <= time)
    }

    /// Sorts what the origin recalls, if the arrangement is dormant. Returns whether it was.
    pub fn wake(&mut self) -> bool {
        let (Some(&Dormancy { since, .. }), Some((origin, _))) = (self.state.dormancy(), &self.origin) else {
            return false;
        };
        let layout = Arc::clone(self.spine.layout());
        let held = std::mem::replace(&mut self.builder, Builder::new(layout));
        for batch in origin.recall() {
            self.builder.push(batch.with_times(Times::Constant(since)));
        }
        // The recall includes held updates after `since`: each is undone at `since`, and done again
        // at its own time.
        for batch in held.batches() {
            let later = batch.after(since);
            if !later.is_empty() {
                self.builder.push(later.clone().with_times(Times::Constant(since)).negate());
                self.builder.push(later);
            }
        }
        self.seal(true);
        self.enter(ArrangementState::Sorted(Readership::Unread));
        true
    }
}
