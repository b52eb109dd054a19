//! The log of commits and the snapshots from which a database opens.
//!
//! Law: what was acknowledged is there after any crash, once, whole and in order; what was refused
//! is not; a file that is not what was written is named and nothing is guessed.
//!
//! ```text
//!   folder     MANIFEST          which snapshot and which segments count
//!              000002.snapshot   objects, rows and facts up to a commit
//!              000005.log ..     commits since, in segments
//!              LOCK              held by the one process that has it open
//! ```
//!
//! The store knows ids, statements' texts, batches and small named values; what they mean is the
//! engine's. It reads no clock, and reaches files through [`Disk`] alone.
//!
//! Reading order: [`disk`](Disk), [`frame`] (the format), [`commit`] (what is in a frame),
//! [`contents`] (reading), [`log`] (writing), [`store`] (syncing, tickets), [`snapshot`],
//! [`places`] (snapshots elsewhere), [`restore`](restore()), [`manifest`], [`check`](check()).

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod check;
mod commit;
mod contents;
mod disk;
mod error;
mod frame;
#[cfg(test)]
mod fuzz;
mod local;
mod log;
mod manifest;
mod places;
mod restore;
mod simulated;
mod snapshot;
mod store;

pub use check::{CheckedObject, Report, check, check_with, read};
pub use commit::{Commit, Created, Fact};
pub use contents::Contents;
pub use disk::{Disk, DiskFile};
pub use error::StoreError;
pub use local::LocalDisk;
pub use places::{LocalPlaces, SnapshotListener, SnapshotPlaces, Snapshots};
pub use restore::{Restored, Restoring, restore};
pub use simulated::{Faults, SimulatedDisk};
pub use store::{Durability, SYNC_MICROS_MAX, Statistics, Store, StoreOptions, Threads, Ticket};
