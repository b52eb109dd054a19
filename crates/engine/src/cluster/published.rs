//! Arrangements that workers publish, so that connections read them without asking the engine.
//!
//! Law: a reader that finds all shards of a [`Publication`] complete past a time, and readable from
//! it on, reads the collection as of that time ([`Shown`]). A worker publishes at the end of a turn
//! what has changed, as long as readers come. A shard without a reader for some changes is *let
//! go*, so that no run is kept, and no update sorted, for readers that do not come. The next reader
//! asks the engine, and finds the shard published after the worker's next turn.
//!
//! Cost: a look at each publication a turn. A reader takes one lock a shard.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use anabranch_batch::Time;
use anabranch_flow::account::Account;

use super::shown::{Shown, upper};
use super::spec::ArrangementId;
use crate::render::Exported;

/// Changes without a reader after which a shard is let go, and after which its publication ends.
const UNREAD_MAX: usize = 16;
const UNREAD_TO_END: usize = 4096;

/// An arrangement as workers publish it.
#[derive(Debug)]
pub(crate) struct Publication {
    /// One a worker.
    shards: Vec<Shard>,
    has_ended: AtomicBool,
}

#[derive(Debug)]
struct Shard {
    state: Mutex<ShardState>,
    changed: Condvar,
}

#[derive(Debug)]
struct ShardState {
    /// `None` where the shard was let go, or is not published yet.
    shown: Option<Arc<Shown>>,
    /// The arrangement was complete before this time when the worker looked last.
    upper: Time,
    /// Changes since a reader has come.
    unread: usize,
}

impl Publication {
    /// For so many workers; nothing is published yet.
    pub fn new(workers: usize) -> Publication {
        let state = || Mutex::new(ShardState { shown: None, upper: Time::MIN, unread: 0 });
        let shards = (0..workers).map(|_| Shard { state: state(), changed: Condvar::new() });
        Publication { shards: shards.collect(), has_ended: AtomicBool::new(false) }
    }

    /// Whether workers publish no more: the arrangement was dropped, or not read for long.
    pub fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Acquire)
    }

    /// All shards, each complete past a time. Waits until `deadline` for those that are published
    /// and behind; `None` when one is not published, or stays behind.
    pub fn read(&self, past: Time, deadline: Instant) -> Option<Vec<Arc<Shown>>> {
        self.shards.iter().map(|shard| shard.read(past, deadline)).collect()
    }

    fn end(&self) {
        self.has_ended.store(true, Ordering::Release);
        for shard in &self.shards {
            shard.lock().shown = None;
            shard.changed.notify_all();
        }
    }
}

impl Shard {
    fn lock(&self) -> MutexGuard<'_, ShardState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self, past: Time, deadline: Instant) -> Option<Arc<Shown>> {
        let mut state = self.lock();
        loop {
            state.unread = 0;
            let shown = state.shown.as_ref()?;
            if shown.upper > past {
                return Some(Arc::clone(shown));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Publishes what an arrangement shows, if readers come and there is something new. Returns how
    /// many changes there were since the last reader.
    fn publish(&self, exported: &Exported) -> usize {
        let mut state = self.lock();
        let upper = upper(exported);
        let has_moved = upper > state.upper;
        state.upper = upper;
        if has_moved {
            state.unread += 1;
        }
        if state.unread > UNREAD_MAX {
            state.shown = None;
        } else if has_moved || state.shown.is_none() {
            state.shown = Some(Arc::new(Shown::of(exported)));
            self.changed.notify_all();
        } else {
            state.keep_up(exported);
        }
        state.unread
    }
}

impl ShardState {
    /// Lets go runs that have been merged, so that they are freed.
    fn keep_up(&mut self, exported: &Exported) {
        let shown = Shown::of(exported);
        if self.shown.as_ref().is_some_and(|before| !before.has_runs_of(&shown)) {
            self.shown = Some(Arc::new(shown));
        }
    }
}

/// What one worker publishes.
#[derive(Default)]
pub(super) struct Publisher {
    published: BTreeMap<ArrangementId, Arc<Publication>>,
}

impl Publisher {
    /// Publishes an arrangement from now on.
    pub fn begin(&mut self, arrangement: ArrangementId, publication: Arc<Publication>) {
        let before = self.published.insert(arrangement, publication);
        before.into_iter().for_each(|before| before.end());
    }

    /// Publishes what has changed.
    pub fn publish(
        &mut self,
        worker: usize,
        arrangements: &BTreeMap<ArrangementId, Exported>,
        makers: &BTreeMap<ArrangementId, Account>,
    ) {
        self.published.retain(|arrangement, publication| {
            let exported = arrangements.get(arrangement).filter(|_| !publication.has_ended());
            let exported = exported.and_then(|exported| Some((exported, makers.get(arrangement)?)));
            // (What has failed is published no more; a shard that is being published is the last
            // one, or the one before.)
            let publish =
                |(exported, maker): (&Exported, &Account)| maker.turn(|| publication.shards[worker].publish(exported));
            let unread = exported.and_then(publish);
            let goes_on = unread.is_some_and(|unread| unread < UNREAD_TO_END);
            if !goes_on {
                publication.end();
            }
            goes_on
        });
    }

    /// An arrangement is dropped.
    pub fn end(&mut self, arrangement: ArrangementId) {
        self.published.remove(&arrangement).into_iter().for_each(|publication| publication.end());
    }

    /// All are dropped.
    pub fn end_all(&mut self) {
        std::mem::take(&mut self.published).into_values().for_each(|publication| publication.end());
    }
}
