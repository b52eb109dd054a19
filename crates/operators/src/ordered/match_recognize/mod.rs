//! Row pattern recognition: `MATCH_RECOGNIZE` of SQL:2016, kept current over rows that change.
//!
//! ```text
//!     PARTITION BY k ORDER BY t, PATTERN (A B+), B AS x < PREV(x)
//!     in    (k, 1, 5) +1  (k, 2, 4) +1  (k, 3, 3) +1 @1      (k, 3, 3) -1 @2
//!     out   (k, 1 .. 3) +1 @1                                (k, 1 .. 3) -1, (k, 1 .. 2) +1 @2
//! ```
//!
//! Law: at every time, the rows of each partition are put in order (ties by the remaining columns;
//! a row with multiplicity n comes n times). From the first row on, the preferred match that begins
//! at a row is taken: of alternatives the first, of repetitions the longest (reluctant ones: the
//! shortest) that lets the rest match. A row may be taken for a variable if the variable's
//! condition is true, which may look at the match so far and, by physical offsets, at any row of
//! the partition. A match yields one row: the partition's columns, then the cells asked for. The
//! search goes on where [`Skip`](anabranch_spec::recognize::Skip) says. The empty match is none.
//!
//! Where a condition fails on a row, the partition has that error in place of matches.
//!
//! State: all rows, sorted within their partition; where a watermark bounds the first order column,
//! those that an undecided match may begin at or read (`decided`). Cost: a change costs the rows
//! around it, from the last place before that no earlier match has read beyond the change to the
//! first place behind that the search comes to again (`cuts`); at worst its partition. Conditions
//! that read no more than rows at fixed offsets are evaluated over whole batches, and a search then
//! takes each step of the pattern at most once for each row; other conditions are evaluated one row
//! at a time, and backtrack at most [`BACKTRACKS_MAX`] times in a match: more are an error of the
//! partition. Source: ISO/IEC 19075-5 (row pattern recognition in SQL); Cox, *Regular Expression
//! Matching: the Virtual Machine Approach* (2009) for the search.
//!
//! Reading order: `spec`, [`program`], `search`, `cells`, `found`, `spans`, `cuts`, `tactic`,
//! `decided`.

mod cells;
mod cuts;
#[cfg(test)]
mod cuts_tests;
mod decided;
mod fold;
mod found;
pub mod program;
mod search;
mod spans;
mod spec;
mod tactic;
#[cfg(test)]
mod tests;

pub use program::RecognizeProgram;
pub use search::BACKTRACKS_MAX;
pub use spec::{Condition, RecognizeSpec, VariableSpec};
pub use tactic::Recognize;
