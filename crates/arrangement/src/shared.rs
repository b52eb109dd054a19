//! What writer and readers of an arrangement share: its runs, what is held, and who holds which times.
//!
//! Law: times that some reader holds are never advanced past it; what was written is in a run or held, never both. Or it is with its *origin*:
//!
//! Where whoever writes can tell all that it has written ([`Origin`]), as an aggregate can, what nobody asks for is not kept: the arrangement is *dormant*. It
//! has no runs then, and holds only what came after the time that its slowest reader has let go of. Whoever asks for runs wakes it: what the origin
//! tells, less what is held, is what there was at that time.
//!
//! ```text
//!   origin tells     a b c d          all that was written
//!   held             +d at 7, -e at 7
//!   so as of 6       a b c e          = a b c d - (d - e)
//! ```
//!
//! Cost: a dormant arrangement, a pointer a batch; waking it, what telling costs, and a sort.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::{Rc, Weak};
use std::sync::Arc;

use anabranch_batch::{Batch, Time, Times};

use crate::holds::Holds;
use crate::listener::{Queue, Sealed, live};
use crate::{Builder, Layout, MergeEffort, Spine};

/// Rows that are held in any case: sorting them while somebody waits takes a tenth of a millisecond.
const HELD_ROWS: usize = 1 << 10;
/// Where nobody has asked lately a quarter of all rows is held, but so many at most: some ten milliseconds.
const HELD_PART: usize = 4;
const HELD_ROWS_MAX: usize = 1 << 17;
/// A batch is as dear to keep as so many rows; and so many batches are held in any case.
const HELD_BATCHES: usize = 32;
/// So often may a dormant arrangement be completed without its readers letting go of a time, before it holds too much.
const STUCK_MAX: usize = 8;

/// Whoever writes an arrangement, and can tell what it has written.
pub trait Origin: fmt::Debug {
    /// How many rows it would tell, at most.
    fn n_rows_max(&self) -> usize;

    /// All that was pushed so far, summed up, at any times.
    fn recall(&self) -> Vec<Batch>;
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub spine: Spine,
    /// What is in no run: held, or not complete.
    pub builder: Builder,
    /// Times are complete before this one; those from the spine's `upper` on are held.
    upper: Rc<Cell<Time>>,
    /// The upper is that of another arrangement, since nothing was written yet.
    is_quiet: bool,
    /// Somebody has asked for what was held since it last became too much.
    pub asked: bool,
    /// From which times on its readers read.
    pub holds: Holds,
    /// Where new runs go,
    pub listeners: Vec<Weak<RefCell<Queue<Sealed>>>>,
    /// and where new batches go.
    pub followers: Vec<Weak<RefCell<Queue<Batch>>>>,
    /// Who has the rows too, and how many it may be asked for.
    origin: Option<(Rc<dyn Origin>, usize)>,
    dormancy: Option<Dormancy>,
}

/// While the rows are with their origin.
#[derive(Debug)]
struct Dormancy {
    /// The time as of which they can be had, and after which all is held.
    since: Time,
    /// How often that did not change.
    stuck: usize,
    /// There is nothing as of then.
    is_empty: bool,
}

impl Shared {
    /// Without updates, and without readers. If `beside` another, it is complete where that one is, until something is written.
    pub fn new(layout: &Arc<Layout>, effort: MergeEffort, beside: Option<&Shared>) -> Shared {
        Shared {
            spine: Spine::new(Arc::clone(layout), effort),
            builder: Builder::new(Arc::clone(layout)),
            upper: beside.map_or_else(|| Rc::new(Cell::new(Time::MIN)), |other| Rc::clone(&other.upper)),
            is_quiet: beside.is_some(),
            asked: false,
            holds: Holds::default(),
            listeners: Vec::new(),
            followers: Vec::new(),
            origin: None,
            dormancy: None,
        }
    }

    /// Times are complete before this one.
    pub fn upper(&self) -> Time {
        self.upper.get()
    }

    /// Says that times before `upper` are complete. Returns whether they were not: they are if this is quiet, as soon as they are beside.
    pub fn set_upper(&mut self, upper: Time) -> bool {
        let is_later = !self.is_quiet && upper > self.upper();
        if is_later {
            self.upper.set(upper);
        }
        is_later
    }

    /// The upper of the arrangement beside, while it is that of this one.
    pub fn quiet_upper(&self) -> Option<Rc<Cell<Time>>> {
        self.is_quiet.then(|| Rc::clone(&self.upper))
    }

    /// Something is written: from now on there is an upper of its own, and whoever listens or follows is told of it.
    pub fn break_silence(&mut self) {
        if !std::mem::take(&mut self.is_quiet) {
            return;
        }
        let upper = self.upper();
        self.upper = Rc::new(Cell::new(upper));
        self.spine.advance(upper);
        live(&mut self.listeners).iter().for_each(|queue| queue.borrow_mut().own_upper(upper));
        live(&mut self.followers).iter().for_each(|queue| queue.borrow_mut().own_upper(upper));
    }

    pub fn set_origin(&mut self, origin: Rc<dyn Origin>, told_max: usize) {
        self.origin = Some((origin, told_max));
    }

    /// The slowest reader bounds compaction; without readers, nothing before `upper` is asked for. Never as far as `upper`, so that an
    /// update sealed before `upper` keeps a time before it.
    fn slowest(&self, upper: Time) -> Time {
        let latest = upper.saturating_sub(1);
        self.holds.least().map_or(latest, |since| since.min(latest))
    }

    /// Lets merges forget what readers have let go of.
    pub fn follow_readers(&mut self) {
        self.spine.set_since(self.slowest(self.spine.upper()));
    }

    pub fn has_held(&self) -> bool {
        self.builder.min_time().is_some_and(|first| first < self.upper())
    }

    /// Whether what is held is worth sorting in spare time.
    fn holds_much(&self) -> bool {
        self.builder.rows() >= HELD_ROWS && self.has_held()
    }

    fn holds_too_much(&self) -> bool {
        let (rows, batches) = (self.builder.rows(), self.builder.parts());
        if rows < HELD_ROWS && batches < HELD_BATCHES || !self.has_held() {
            return false;
        }
        let held_max = match self.asked {
            true => HELD_ROWS,
            false => (self.spine.rows() / HELD_PART).clamp(HELD_ROWS, HELD_ROWS_MAX),
        };
        rows >= held_max || batches >= HELD_BATCHES.max(rows / HELD_BATCHES)
    }

    /// After times have become complete that nobody listens to: keeps what is held within bounds.
    pub fn keep(&mut self) {
        if self.dormancy.is_some() {
            return self.forget();
        }
        let is_eager = self.origin.is_some() && self.spine.effort() == MergeEffort::EAGER;
        if self.holds_too_much() || is_eager && self.has_held() {
            if !std::mem::take(&mut self.asked) && self.fall_dormant() {
                return;
            }
            self.seal(true);
        }
    }

    /// Puts what is held where readers see it, if there is anything. A dormant arrangement stays so.
    pub fn settle(&mut self) -> bool {
        self.dormancy.is_none() && self.spine.upper() < self.upper() && self.seal(true).is_some()
    }

    /// In spare time: sorts what is held, if it is much, and merges, using up `fuel` rows of work at most. Returns whether there is more to do.
    pub fn exert(&mut self, fuel: &mut isize) -> bool {
        if self.dormancy.is_some() {
            return false;
        }
        self.follow_readers();
        let holds_much = self.holds_much();
        if holds_much && *fuel > 0 {
            if !self.asked && self.fall_dormant() {
                return false;
            }
            self.settle();
            return self.spine.exert(fuel);
        }
        self.spine.exert(fuel) || holds_much
    }

    /// Merges the parts of very large runs, and what much was taken back of, using up `fuel` rows of work at most. Returns whether there is more to do.
    pub fn tidy(&mut self, fuel: &mut isize) -> bool {
        self.follow_readers();
        self.spine.tidy(fuel)
    }

    /// Makes a run of what is complete, if there is anything. What the run brings may be compacted at once, as far as readers allow, if `compact`.
    pub fn seal(&mut self, compact: bool) -> Option<Sealed> {
        self.spine.set_since(self.slowest(self.upper()));
        if !self.has_held() {
            self.spine.advance(self.upper());
            return None;
        }
        let since = if compact { self.spine.since() } else { Time::MIN };
        let run = Arc::new(self.builder.seal(self.spine.upper(), self.upper(), since));
        self.spine.insert(Arc::clone(&run));
        Some(Sealed { lower: run.lower(), upper: run.upper(), run })
    }

    /// Leaves the rows to their origin, if there is one that may be asked for them and no reader tells any of their times apart. Returns whether that is so.
    fn fall_dormant(&mut self) -> bool {
        let is_heard = self.listeners.iter().any(|listener| listener.strong_count() > 0);
        assert!(!is_heard, "what is listened to is sealed, not held");
        let since = self.slowest(self.upper());
        if !self.may_ask_origin() || since == Time::MIN || self.spine.time_max() > Some(since) {
            return false;
        }
        let is_empty = self.spine.rows() == 0 && self.builder.min_time() > Some(since);
        self.spine.set_since(since);
        self.spine.forget();
        self.dormancy = Some(Dormancy { since, stuck: 0, is_empty });
        self.builder.forget_until(since);
        true
    }

    fn may_ask_origin(&self) -> bool {
        self.origin.as_ref().is_some_and(|(origin, told_max)| origin.n_rows_max() <= *told_max)
    }

    /// Lets go of what no reader tells apart any more from what was before; wakes up if readers let go of nothing, or the origin has too many rows by now.
    fn forget(&mut self) {
        if !self.may_ask_origin() {
            self.wake();
            return;
        }
        let slowest = self.slowest(self.upper());
        let (rows, parts) = (self.builder.rows(), self.builder.parts());
        let Some(dormancy) = &mut self.dormancy else { return };
        if slowest > dormancy.since {
            *dormancy = Dormancy { since: slowest, stuck: 0, is_empty: false };
            self.spine.set_since(slowest);
            return self.builder.forget_until(slowest);
        }
        dormancy.stuck += 1;
        if dormancy.stuck > STUCK_MAX && rows + HELD_BATCHES * parts > HELD_ROWS_MAX {
            self.wake();
        }
    }

    /// How many rows there are at most with their origin, if they are there.
    pub fn n_left(&self) -> Option<usize> {
        let (origin, _) = self.origin.as_ref().filter(|_| self.dormancy.is_some())?;
        Some(origin.n_rows_max())
    }

    /// Puts what readers may see as of `time` where they see it, be it without what came later.
    pub fn settle_until(&mut self, time: Time) {
        match &self.dormancy {
            Some(dormancy) if dormancy.is_empty && time <= dormancy.since => {}
            Some(_) => self.asked |= self.wake(),
            None if self.builder.min_time().is_some_and(|first| first <= time) => self.asked |= self.settle(),
            None => {}
        }
    }

    /// Whether all that was written at later times than `time` is in runs, or held.
    pub fn has_rows_after(&self, time: Time) -> bool {
        self.dormancy.as_ref().is_none_or(|dormancy| dormancy.since <= time)
    }

    /// Has the rows come back from their origin, if they are there. Returns whether they were.
    pub fn wake(&mut self) -> bool {
        let (Some(Dormancy { since, .. }), Some((origin, _))) = (self.dormancy.take(), &self.origin) else {
            return false;
        };
        let layout = Arc::clone(self.spine.layout());
        let held = std::mem::replace(&mut self.builder, Builder::new(layout));
        for batch in origin.recall() {
            self.builder.push(batch.with_times(Times::Constant(since)));
        }
        for batch in held.batches() {
            let later = batch.after(since);
            if !later.is_empty() {
                self.builder.push(later.clone().with_times(Times::Constant(since)).negate());
                self.builder.push(later);
            }
        }
        self.seal(true);
        true
    }
}
