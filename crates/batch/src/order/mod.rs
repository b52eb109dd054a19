//! Order of rows: a total order column by column, and 64-bit prefixes that decide most comparisons.
//!
//! Law: the order agrees with [`crate::equal`] (equal rows compare as `Equal` and no others do).
//! Within a column: false before true, numbers by value with NaN after all others, text by bytes,
//! intervals by their length (a month is 30 days, a day 24 hours), then by their parts, lists and
//! structs lexicographically with their own nulls last; each reversed by `descending`. NULLs stand
//! first or last by `nulls_first`, whether descending or not.
//!
//! `compare` holds the order itself, `prefix` its first 64 bits as integers, `sort` the sort by
//! hash that everything keyed rests on, `values` the sort by the order itself.

mod compare;
mod direction;
mod prefix;
mod sort;
mod values;

pub use compare::{Comparator, interval_length};
pub use direction::Direction;
pub use prefix::{prefix_of_whole, prefixes};
pub use sort::{Zoom, sort_by_hash, sort_by_time, sort_rows_by_hash, sort_zoomed};
pub use values::ValueOrder;

/// How NULL keys compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Nulls {
    /// NULL matches nothing, as in a join: such keys are left out.
    Differ,
    /// NULL matches NULL, as in a grouping.
    Equal,
}
