//! The nouns of the engine: immutable columnar batches of updates, and the kernels over their
//! columns.
//!
//! Law: two rows are *equal* when they are equal column by column, where NULL equals NULL, -0.0
//! equals 0.0, every NaN equals every NaN, and text compares by its bytes. [`hash`], [`equal`],
//! [`order`] and [`consolidate`] agree on this one equality, for every supported type, whatever the
//! physical form of the column (sliced, views, nested).
//!
//! Relies on Arrow for arrays and nothing else: no runtime, no SQL, no files. Kernels match on a
//! column's type once and then loop over slices; none dispatches or allocates once per row.
//!
//! Reading order: [`Times`], [`Diffs`] and [`Until`] (control columns), [`Batch`], [`hash`],
//! [`equal`], [`order`], [`gather`], [`mod@consolidate`], [`mod@partition`], [`wire`], [`types`],
//! [`numeric`],
//! [`TextLimit`], [`frame`], and of times their [`TimePrecision`].

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod batch;
mod cells;
pub mod consolidate;
mod control;
pub mod dimensions;
pub mod equal;
pub mod few;
mod flat;
pub mod gather;
pub mod hash;
pub mod json;
#[cfg(test)]
mod laws;
pub mod numeric;
pub mod order;
mod partition;
mod route;
#[cfg(test)]
mod testing;
mod text_limit;
mod time_precision;
pub mod types;
pub mod wire;

pub use batch::{Batch, Columns};
pub use control::{Diff, Diffs, END, Key, Time, Times, Until};
pub use flat::FlatBatch;
pub use partition::{at_home, partition, partition_by, parts_of, places_by_shard};
pub use route::{ShardNumber, route};
pub use text_limit::{TextLimit, without_limits};
pub use time_precision::TimePrecision;
