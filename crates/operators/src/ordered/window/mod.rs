//! Window functions: each row, and what is computed over its frame.
//!
//! ```text
//!     sum(x) over (partition by k order by t):
//!     in    (k, 1, 5) +1  (k, 3, 2) +1 @1                  (k, 2, 1) +1 @2
//!     out   (k, 1, 5, 5) +1  (k, 3, 2, 7) +1 @1            (k, 2, 1, 6) +1, (k, 3, 2, 7) -1, (k, 3, 2, 8) +1 @2
//! ```
//!
//! Law: at every time, the rows of each partition are put in order (ties by the remaining columns;
//! a row with multiplicity n comes n times), and each yields one row: its columns, then the results
//! of the functions over its [`WindowFrame`](anabranch_spec::frame::WindowFrame). A row of which a
//! result does not exist (out of range) is an error, retracted when the result exists again.
//!
//! Frames move with their row and never back, so the rows whose frames hold a given row lie beside
//! each other. An aggregate over frames is thus an aggregate over changes whose time is the number
//! of a row: an element comes at the first row whose frame holds it, and goes behind the last. All
//! of [`crate::aggregate`] computes so.
//!
//! State: all rows, sorted within their partition; of large partitions a copy where changes are
//! (`leaves`), or of the last rows (`tail`). Freed when rows are removed, and where watermarks
//! bound the order, but for what frames to come reach (`aged`). Cost: rows behind all others of
//! their partition cost what their frames hold; any other change costs the rows whose frames it
//! reaches. A small partition is looked at as a whole, and so is one whose frames go on to the last
//! row. What stays the same is not put out.
//!
//! Reading order: `spans` (where frames begin and end), `frames` (functions over them) and
//! `extremes`, `running`; `tail` and `tails` (the ends of partitions); `leaves`, `splice` (changes
//! as places), `region` (which rows a change concerns), `leaf_partition` and `inner`; `tactic`.

mod aged;
#[cfg(test)]
mod aged_tests;
mod extremes;
mod frames;
mod inner;
#[cfg(test)]
mod inner_tests;
mod leaf_partition;
mod leaves;
mod region;
mod row_order;
mod running;
mod spans;
mod spec;
mod splice;
mod tactic;
mod tail;
#[cfg(test)]
mod tail_tests;
mod tails;
#[cfg(test)]
mod tests;

pub use spec::WindowSpec;
pub use tactic::WindowTactic;
