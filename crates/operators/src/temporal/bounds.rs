//! The bounds of an event's lifetime as columns, for expressions that read them.
//!
//! ```text
//!     in    a [3, 7)    b [4, ∞)                  b ends at 9 (began at 4)
//!     out   (a, 3, 7) [3, 7)    (b, 4, NULL) [4, ∞)    (b, 4, NULL) ends at 9 (began at 4)
//! ```
//!
//! Law: two columns follow the row's: the start, and the end, which is NULL unless it was known
//! when the event began. An end edge has the same values as its start edge, so that they stay equal
//! rows; only for lifetimes computed from ends ([`LifetimeEnds::Kept`]), which keep no column, has
//! it its own end. State: none. Source: Trill's `Select((start, payload) => ..)`, which passes the
//! original start for end edges.

use std::sync::Arc;

use anabranch_batch::{Batch, Columns, END, Until};
use arrow::array::{ArrayRef, Int64Array, new_null_array};
use arrow::datatypes::DataType;

use super::ticks::{Event, event};
use anabranch_flow::tactic::Output;
use anabranch_spec::lifetime::LifetimeEnds;

/// Adds the columns.
pub fn apply(batch: Batch, ends_of_edges: LifetimeEnds, out: &mut Output) {
    let n = batch.len();
    let (starts, ends): (ArrayRef, ArrayRef) = match batch.until() {
        Until::Forever => {
            let starts = Int64Array::new(batch.times().to_column(n), None);
            (Arc::new(starts), new_null_array(&DataType::Int64, n))
        }
        _ => {
            let (mut starts, mut ends) = (Vec::with_capacity(n), Vec::with_capacity(n));
            for row in 0..n {
                let (start, end) = match event(&batch, row) {
                    Event::Start { start, end } => (start, (end < END).then_some(end)),
                    Event::End { start, end } => (start, (ends_of_edges == LifetimeEnds::Kept).then_some(end)),
                    Event::Nothing => (batch.times().get(row), Some(batch.times().get(row))),
                };
                starts.push(start);
                ends.push(end);
            }
            (Arc::new(Int64Array::from(starts)), Arc::new(Int64Array::from(ends)))
        }
    };
    let columns: Vec<ArrayRef> = batch.columns().iter().cloned().chain([starts, ends]).collect();
    let key = batch.key().cloned();
    let batch = batch.with_columns(Columns::from(columns));
    out.give_rows(match key {
        Some(key) => batch.with_hashes(key),
        None => batch,
    });
}
