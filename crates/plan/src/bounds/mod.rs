//! What may still change, and so what state may go: bounds of columns, as expressions over
//! watermarks.
//!
//! Law: a column has a *bound* if every change (insertion or retraction) of the collection after a
//! commit has a value of the column at or above the bound, or NULL. The bound is an expression over
//! the watermarks after that commit, and rises with them. A commit's own rows are judged by the
//! watermarks before it: a commit is applied whole before anything is freed by its watermarks.
//!
//! State that only changes below a bound could touch is *freed*: contents that are left may be
//! wrong, differences may not.
//!
//! ```text
//!   Scan bid                         ts >= watermark                          append only, WATERMARK FOR ts
//!   Stage window_floor(10 s, ts)     window_start >= floor(watermark, 10 s)
//!   Aggregate by window_start        groups below leave                       state bounded by window_start
//! ```
//!
//! Cost: one pass over the plan. Source: watermark columns and state cleaning of RisingWave and
//! Flink, `LATENESS` of Feldera; the rules for sides of joins were checked against recomputation
//! (decision 0044).
//!
//! Reading order: `bound` (the expressions, and what relations promise), `monotone` (columns
//! computed from others), `matching` (conditions of joins), `derive` (bounds of a plan's columns),
//! `leaving` (what leaves the state of a node).

/// How conditions are taken apart.
pub(crate) mod conditions {
    pub(crate) use super::matching::{comparisons, side_of, unqualified};
    pub(crate) use super::monotone::{shifted, whole};
}

mod bound;
mod derive;
mod leaving;
mod matching;
mod monotone;

pub use bound::{Bound, Promised, Promises};
pub use derive::{bounds, closing, expiring, is_append_only};
pub use leaving::{Leaving, LeavingState, state};
pub use matching::{Matched, matched, side_of, unqualified};
