//! Where a session stands in time.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use anabranch_batch::{Batch, END, Time};

use crate::catalog::{Created, ObjectId};
use crate::reads::ChangedRelations;
use crate::session::sealed::SealedFact;

/// Where the session stands in time.
#[derive(Debug)]
pub(crate) struct Timeline {
    /// Time of the last commit: reads are as of it.
    pub(crate) last: Time,
    /// Least time of the open commit, if one is open, and the greatest staged so far.
    pub(crate) open: Option<(Time, Time)>,
    /// The open commit's rows, with the names of their relations, in the order in which they came.
    pub(crate) staged: Vec<(String, Batch)>,
    /// An object that was made for the open commit, and is recorded with it.
    pub(crate) staged_created: Option<Created>,
    /// Small values that are recorded with the open commit.
    pub(crate) staged_facts: Vec<SealedFact>,
    /// When each relation's rows changed last, and lately how.
    pub(crate) changed: ChangedRelations,
    /// Commits as of which open transactions read.
    pub(crate) pins: Vec<Weak<Time>>,
    /// Times of commits that the workers may not have finished, oldest first.
    pub(crate) in_flight: VecDeque<Time>,
    /// Commits and rows since arrangements were last allowed to forget.
    pub(crate) commits_unforgotten: usize,
    pub(crate) rows_unforgotten: usize,
}

impl Timeline {
    /// A timeline that starts at the clock's `now`.
    pub fn new(now: Time) -> Timeline {
        Timeline {
            last: now.clamp(0, END / 2),
            open: None,
            staged: Vec::new(),
            staged_created: None,
            staged_facts: Vec::new(),
            changed: ChangedRelations::default(),
            pins: Vec::new(),
            in_flight: VecDeque::new(),
            commits_unforgotten: 0,
            rows_unforgotten: 0,
        }
    }

    /// Keeps the last commit readable until the pin is dropped.
    pub fn pin(&mut self) -> Arc<Time> {
        let pin = Arc::new(self.last);
        self.pins.retain(|pin| pin.strong_count() > 0);
        self.pins.push(Arc::downgrade(&pin));
        pin
    }

    /// The first commit after a time that is pinned.
    pub fn first_pin_after(&self, time: Time) -> Option<Time> {
        self.pins.iter().filter_map(Weak::upgrade).map(|pin| *pin).filter(|pin| *pin > time).min()
    }

    /// Goes on behind the commit at `last`, of an earlier run.
    pub fn restart(&mut self, last: Time) {
        self.last = last;
    }

    /// Whether there were commits since arrangements were last allowed to forget.
    pub fn has_unforgotten(&self) -> bool {
        self.commits_unforgotten > 0
    }

    /// Whether a commit is open.
    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Time of the last commit.
    pub fn last(&self) -> Time {
        self.last
    }

    /// Whether a relation's rows have changed after a time.
    pub fn has_changed(&self, object: ObjectId, after: Time) -> bool {
        self.changed.has_changed(object, after)
    }

    /// Inputs made now are complete before this time.
    pub fn upper(&self) -> Time {
        self.last + 1
    }
}
