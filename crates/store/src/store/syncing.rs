//! Syncs: who waits for a commit syncs for all who have written by then.
//!
//! Law: a ticket that was waited for is on disk, and so is all before it. One thread syncs at a
//! time; the others wait for it. After a sync that failed each ticket above what was on disk fails.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Instant;

use super::{Call, Inner, Synced, Threads, lock};
use crate::error::StoreError;
use crate::log::LogWriter;

/// A commit that was appended.
#[derive(Clone)]
pub struct Ticket {
    pub(super) inner: Arc<Inner>,
    pub(super) sequence: u64,
}

impl Ticket {
    /// Returns when the commit, and all before it, are on disk.
    ///
    /// # Errors
    /// `Failed` when that is unknown.
    pub fn wait(&self) -> Result<(), StoreError> {
        self.inner.sync_to(self.sequence)
    }

    /// Whether there is a thread beside, so that [`then`](Self::then) returns at once.
    pub fn calls_back(&self) -> bool {
        self.inner.options.threads == Threads::Beside
    }

    /// Has `call` called when the commit, and all before it, are on disk: at once if they are, else
    /// on the thread beside, which syncs once for all that came meanwhile. `call` must not wait.
    /// Without a thread beside it is called after a wait.
    ///
    /// An error in place of that is as for [`wait`](Self::wait).
    pub fn then(&self, call: impl FnOnce(Result<(), StoreError>) + Send + 'static) {
        let inner = &self.inner;
        let mut synced = lock(&inner.synced);
        let is_kept = self.calls_back() && !inner.is_closing.load(Ordering::Acquire);
        if is_kept && synced.sequence < self.sequence && synced.failed.is_none() {
            synced.calls.push((self.sequence, Box::new(call)));
            drop(synced);
            inner.due.notify_one();
            return;
        }
        drop(synced);
        call(self.wait());
    }

    /// Whether the commit is on disk.
    pub fn is_durable(&self) -> bool {
        self.inner.synced_sequence.load(Ordering::Acquire) >= self.sequence
    }
}

impl Inner {
    pub(super) fn sync_to(&self, sequence: u64) -> Result<(), StoreError> {
        let mut synced = lock(&self.synced);
        loop {
            if synced.sequence >= sequence {
                return Ok(());
            }
            if let Some(failed) = &synced.failed {
                return Err(failed.clone());
            }
            if synced.is_busy {
                synced = self.changed.wait(synced).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            synced.is_busy = true;
            drop(synced);
            let started = Instant::now();
            let (file, written) = {
                let writer = lock(&self.writer);
                (writer.file(), writer.sequence())
            };
            let result = file.sync();
            self.counts.add_sync(started.elapsed().as_micros() as u64);
            synced = lock(&self.synced);
            synced.is_busy = false;
            match result {
                Ok(()) => self.note_synced(&mut synced, written),
                Err(error) => {
                    let detail = format!("a sync failed: {error}");
                    synced.failed.get_or_insert(StoreError::Failed { place: self.disk.place(), detail });
                }
            }
            self.changed.notify_all();
        }
    }

    fn note_synced(&self, synced: &mut Synced, sequence: u64) {
        synced.sequence = synced.sequence.max(sequence);
        self.synced_sequence.store(synced.sequence, Ordering::Release);
    }

    /// Syncs the segment and goes on in another.
    pub(super) fn rotate(&self, writer: &mut LogWriter) -> Result<(), StoreError> {
        let written = writer.sequence();
        writer.rotate()?;
        self.note_synced(&mut lock(&self.synced), written);
        self.changed.notify_all();
        Ok(())
    }

    /// Syncs for those that are to be called, and, a little later, what no caller waits for.
    pub(super) fn keep_synced(&self) {
        let mut synced = lock(&self.synced);
        loop {
            let is_closing = || self.is_closing.load(Ordering::Acquire);
            while synced.calls.is_empty() && !synced.is_unawaited && !is_closing() {
                synced = self.due.wait(synced).unwrap_or_else(PoisonError::into_inner);
            }
            let until = Instant::now() + self.options.relaxed_after;
            while synced.calls.is_empty() && !is_closing() {
                let Some(left) = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) else {
                    break;
                };
                synced = self.due.wait_timeout(synced, left).unwrap_or_else(PoisonError::into_inner).0;
            }
            if synced.calls.is_empty() && is_closing() {
                return;
            }
            synced.is_unawaited = false;
            drop(synced);
            let written = lock(&self.writer).sequence();
            // Those who write next, and those who are called, hear of an error.
            let _ = self.sync_to(written);
            self.call_synced();
            synced = lock(&self.synced);
        }
    }

    /// Calls those whose commits are on disk, or all after a failure.
    fn call_synced(&self) {
        let mut synced = lock(&self.synced);
        let (sequence, failed) = (synced.sequence, synced.failed.clone());
        let calls: Vec<(u64, Call)> =
            synced.calls.extract_if(.., |(of, _)| *of <= sequence || failed.is_some()).collect();
        drop(synced);
        for (of, call) in calls {
            match &failed {
                Some(failed) if of > sequence => call(Err(failed.clone())),
                _ => call(Ok(())),
            }
        }
    }
}

impl std::fmt::Debug for Ticket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ticket").field("sequence", &self.sequence).finish_non_exhaustive()
    }
}
