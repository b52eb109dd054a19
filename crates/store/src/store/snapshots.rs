//! Snapshots of an open store: when one is due, where it goes, and what goes with the one before.
//!
//! Law: a snapshot counts once all of it is in its place and the manifest names it; the snapshot
//! before and the log that it replaces are removed after that. A place that fails costs snapshots
//! alone.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::folder::{remove_leftovers, remove_snapshots};
use super::{Inner, Threads, lock};
use crate::contents::Contents;
use crate::error::StoreError;
use crate::manifest::{Manifest, snapshot_name};
use crate::places::elsewhere;
use crate::snapshot::write_snapshot;

impl Inner {
    /// Starts a snapshot beside when the log is as large as the snapshot before.
    pub(super) fn snapshot_if_due(self: &Arc<Inner>) {
        let log_bytes = self.log_bytes.load(Ordering::Relaxed);
        if log_bytes < self.options.snapshot_bytes || self.options.threads == Threads::None {
            return;
        }
        let mut snapshots = lock(&self.snapshots);
        if snapshots.is_running || log_bytes < snapshots.bytes.max(snapshots.not_before) {
            return;
        }
        let thread = std::thread::Builder::new().name("anabranch snapshot".to_string());
        let of_thread = self.clone();
        snapshots.is_running = true;
        let started = thread.spawn(move || {
            let result = of_thread.snapshot();
            let mut snapshots = lock(&of_thread.snapshots);
            snapshots.is_running = false;
            // After a failure the log first grows by another half.
            let log_bytes = of_thread.log_bytes.load(Ordering::Relaxed);
            snapshots.not_before = if result.is_ok() { 0 } else { log_bytes + log_bytes / 2 };
        });
        match started {
            Ok(thread) => snapshots.running = Some(thread),
            Err(_) => snapshots.is_running = false,
        }
    }

    /// Tries a place of snapshots that is not the folder, on a thread of its own if there are any:
    /// a place that does not answer does not delay the opening.
    pub(super) fn try_place_beside(self: &Arc<Inner>) {
        if lock(&self.manifest).next_place.is_empty() {
            return;
        }
        if self.options.threads == Threads::None {
            return self.try_place();
        }
        let inner = self.clone();
        let thread = std::thread::Builder::new().name("anabranch snapshot".to_string());
        let mut snapshots = lock(&self.snapshots);
        snapshots.is_running = true;
        let started = thread.spawn(move || {
            inner.try_place();
            lock(&inner.snapshots).is_running = false;
        });
        match started {
            Ok(thread) => snapshots.running = Some(thread),
            Err(_) => snapshots.is_running = false,
        }
    }

    /// Writes a snapshot, and notes and tells what has become of it.
    pub(super) fn snapshot(&self) -> Result<(), StoreError> {
        let result = self.write_snapshot();
        self.note_snapshot(result.as_ref().err());
        result
    }

    fn note_snapshot(&self, problem: Option<&StoreError>) {
        lock(&self.snapshots).problem = problem.cloned();
        if let Some(told) = &self.options.snapshots.told {
            told(problem);
        }
    }

    /// Asks the place of the snapshots to come whether it is there, so that users hear at once what
    /// is wrong with it. What was left over there is removed.
    fn try_place(&self) {
        let manifest = lock(&self.manifest).clone();
        let place = elsewhere(self.options.snapshots.places.as_ref(), &manifest.next_place);
        let tried = place.and_then(|place| {
            let Some(place) = place else { return Ok(()) };
            let names = place.names();
            names.map_err(|error| StoreError::of_io(&place.place(), "reach", "the place of snapshots", &error))?;
            // (Elsewhere lie snapshots that another database may have been made of.)
            if manifest.place == manifest.next_place && manifest.snapshot != 0 {
                remove_snapshots(place.as_ref(), &manifest);
            }
            Ok(())
        });
        if let Err(problem) = tried {
            self.note_snapshot(Some(&problem));
        }
    }

    /// Folds the snapshot and the log so far into another snapshot.
    fn write_snapshot(&self) -> Result<(), StoreError> {
        let before = lock(&self.manifest).clone();
        let (segment, sequence, chain) = {
            let mut writer = lock(&self.writer);
            if let Some(failed) = writer.failed() {
                return Err(failed.clone());
            }
            self.rotate(&mut writer)?;
            (writer.segment(), writer.sequence(), writer.chain())
        };
        let places = self.options.snapshots.places.as_ref();
        let there = elsewhere(places, &before.place)?.unwrap_or_else(|| self.disk.clone());
        let (contents, end) = Contents::load_sealed(self.disk.as_ref(), there.as_ref(), &before, segment)?;
        let number = {
            let mut snapshots = lock(&self.snapshots);
            snapshots.last_number = snapshots.last_number.max(before.snapshot) + 1;
            snapshots.last_number
        };
        let target = elsewhere(places, &before.next_place)?.unwrap_or_else(|| self.disk.clone());
        let written = write_snapshot(target.as_ref(), &contents, number, (sequence, chain));
        let bytes = match written {
            Ok(bytes) => bytes,
            Err(error) => {
                let _ = target.remove(&snapshot_name(number));
                return Err(error);
            }
        };
        {
            let mut manifest = lock(&self.manifest);
            let place = before.next_place;
            let after = Manifest { snapshot: number, segment, sequence, chain, place, ..manifest.clone() };
            after.write(self.disk.as_ref())?;
            *manifest = after;
        }
        self.log_bytes.fetch_sub(end.bytes.min(self.log_bytes.load(Ordering::Relaxed)), Ordering::Relaxed);
        lock(&self.snapshots).bytes = bytes;
        self.counts.snapshots.fetch_add(1, Ordering::Relaxed);
        let manifest = lock(&self.manifest).clone();
        remove_leftovers(self.disk.as_ref(), &manifest);
        if !manifest.place.is_empty() {
            remove_snapshots(target.as_ref(), &manifest);
        }
        Ok(())
    }
}
