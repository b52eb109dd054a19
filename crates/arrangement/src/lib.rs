//! Arrangements: what the engine remembers. A collection's updates, sorted by key, multiversioned, shared between readers.
//!
//! Law: what an arrangement accumulates to, at any time its readers may still ask for, is what was put in: whatever the cut into
//! runs, the merge schedule, and the hash function (a collision costs time, never an answer).
//!
//! A [`Run`] is an immutable sorted list of [`Chunk`]s; the [`Builder`] makes runs of unsorted batches; the [`Spine`] merges them
//! by fuel; [`Writer`] and [`Reader`] share a spine among one writer and many readers; [`probe`] looks many keys up at once,
//! [`ValueCursor`] walks one key's values in order, [`snapshot`] reads everything.
//!
//! The legal order of calls: `push` to a [`Builder`], `seal` it up to a frontier, hand the run to [`Writer::seal`] (runs follow each
//! other without gaps: `lower` is the arrangement's `upper`). Readers read [`Reader::runs`] as of any time in `since .. upper`,
//! and move their `since` forward when they will not ask for earlier times again; the slowest reader bounds compaction.
//!
//! Everything belongs to one worker, on one thread: reference counts are `Rc`, no lock is taken. Relies on `anabranch-batch` for the
//! kernels over columns; leaves durability, exchange between workers and scheduling to others.
//!
//! Source: "Shared arrangements" (VLDB 2020), sections 4 and 5; we order by key hash instead of by key, and keep columns
//! instead of tries.
//!
//! Reading order: [`Layout`], [`Chunk`], [`Run`], [`Builder`], `merge`, [`Spine`], [`Writer`], [`Keys`], [`probe`],
//! [`ValueCursor`], [`snapshot`].

mod builder;
mod chunk;
mod cursor;
mod handle;
mod keys;
mod layout;
mod locate;
mod merge;
mod pending;
mod probe;
mod run;
mod snapshot;
mod sort;
mod spine;

pub use builder::Builder;
pub use chunk::Chunk;
pub use cursor::ValueCursor;
pub use handle::{Listener, Reader, Sealed, Stats, WeakReader, Writer, arrangement};
pub use keys::{Keys, NullKeys};
pub use layout::{Layout, ValueOrder};
pub use probe::{Matches, probe};
pub use run::Run;
pub use snapshot::snapshot;
pub use spine::{MergeEffort, Spine, SpineStats};
