//! Arrangements: what the engine remembers. A collection's updates, sorted by key, multiversioned,
//! shared between readers.
//!
//! Law: what an arrangement accumulates to, at any time its readers may still ask for, is what was
//! put in: whatever the cut into runs, the merge schedule, and the hash function (a collision costs
//! time, never an answer).
//!
//! A [`Run`] is an immutable sorted list of [`Chunk`]s; the [`Builder`] makes runs of unsorted
//! batches; the [`Spine`] merges them by fuel; [`Writer`] and [`Reader`] share a spine among one
//! writer and many readers (`shared`), a [`Listener`] gets its runs, a [`Follower`] its batches as
//! they are written; [`probe`] looks many keys up at once, [`ValueCursor`] walks one key's values
//! in order, [`snapshot`] and [`Snapshot`] read everything.
//!
//! The legal order of calls: [`Writer::push`] rows, [`Writer::complete`] times, over and over.
//! Readers read [`Reader::runs`] as of any time in `since .. upper`, and move their `since` forward
//! when they will not ask for earlier times again; the slowest reader bounds compaction.
//!
//! Everything belongs to one worker, on one thread: reference counts are `Arc`, no lock is taken
//! but that of a run which is not sorted yet, by the thread that sorts it. Relies on
//! `anabranch-batch` for the kernels over columns; leaves durability, exchange between workers and
//! scheduling to others.
//!
//! Source: "Shared arrangements" (VLDB 2020), sections 4 and 5; we order by a hash of the key,
//! which keeps the order of integers only, and keep columns instead of tries.
//!
//! ```
//! use std::sync::Arc;
//! use anabranch_batch::order::Nulls;
//! use anabranch_arrangement::{Keys, Layout, Matches, MergeEffort, ValueOrder, arrangement, probe};
//! use anabranch_batch::{Batch, Diffs, Times, hash};
//! use arrow::array::{ArrayRef, Int64Array};
//! use arrow::datatypes::DataType;
//!
//! let layout = Arc::new(Layout { key: vec![0], values: ValueOrder::Hash, types: vec![DataType::Int64; 2] });
//! let (mut writer, mut reader) = arrangement(layout, MergeEffort::default());
//!
//! // Orders 7 and 8 of customer 1 at time 0; order 7 is withdrawn at time 5.
//! let column = |values: &[i64]| Arc::new(Int64Array::from(values.to_vec())) as ArrayRef;
//! writer.push(Batch::new(vec![column(&[1, 1]), column(&[7, 8])], Times::Constant(0), Diffs::Constant(1)));
//! writer.push(Batch::new(vec![column(&[1]), column(&[7])], Times::Constant(5), Diffs::Constant(-1)));
//! writer.complete(6);
//!
//! let wanted = [column(&[1, 2])];
//! let (keys, _) = Keys::from_columns(&wanted, &hash::hash_columns(&wanted, 2), Nulls::Differ);
//! let mut matches = Matches::default();
//! probe(&reader.runs(), &[0], &keys, 0, 6, usize::MAX, &mut matches);
//! assert_eq!(matches.diffs().iter().sum::<i64>(), 1);
//!
//! // Who no longer asks for times before 5 lets the two updates of order 7 cancel.
//! reader.set_since(5);
//! while writer.exert(&mut 1000) {}
//! assert_eq!(reader.stats().rows, 1);
//! ```
//!
//! Reading order: [`Layout`], [`Chunk`], [`Run`], `ordering`, `pending_rows`, `pieces`,
//! `unsorted`, [`Builder`], `merge`,
//! [`Floor`], [`Spine`], [`Writer`], `shared`, `state`, `listener`, [`Keys`], [`probe`],
//! [`ValueCursor`], [`Snapshot`], [`Footprint`].

mod builder;
mod chunk;
mod control_column;
mod cursor;
mod demand;
mod floor;
mod footprint;
mod handle;
mod hashes;
mod holds;
mod keys;
mod layout;
mod listener;
mod locate;
mod merge;
mod merge_window;
mod one_hash;
mod ordering;
mod packed;
mod pending_rows;
mod pieces;
mod probe;
mod run;
mod shared;
mod snapshot;
mod sort;
mod spine;
mod state;
mod unsorted;

pub use builder::Builder;
pub use chunk::{Chunk, gather_rows};
pub use cursor::ValueCursor;
pub use floor::{Floor, has_ticks, ticks};
pub use footprint::Footprint;
pub use handle::{Audience, Reader, Stats, Writer, arrangement};
pub use keys::Keys;
pub use layout::{Layout, ValueOrder};
pub use listener::{Follower, Listener, Sealed};
pub use probe::{Matches, probe};
pub use run::Run;
pub use shared::Origin;
pub use snapshot::{Snapshot, snapshot};
pub use spine::{MergeEffort, Spine, SpineStats};
