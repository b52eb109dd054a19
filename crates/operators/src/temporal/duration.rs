//! Every event lasts a constant time, counted from its start.
//!
//! ```text
//!     5 ticks:   in    a [3, 4)    b [4, ∞)    b ends at 9 (began at 4)
//!                out   a [3, 8)    b [4, 9)
//! ```
//!
//! Law: an event that starts at `t` lasts `[t, t + ticks)`, whenever it ended before; [`END`] ticks
//! last for ever. End edges are left out, so events become bounded that were not: a sliding window
//! of `ticks` is this verb under a snapshot aggregate. State: none; a pointer a batch unless
//! lifetimes were a column. Source: Trill `AlterEventDuration(constant)`.

use anabranch_batch::{Batch, END, Until};

use super::ticks::starts_only;
use anabranch_flow::tactic::Output;

/// Gives events this duration, which is positive.
pub fn apply(batch: Batch, ticks: i64, out: &mut Output) {
    let until = if ticks == END { Until::Forever } else { Until::Duration(ticks) };
    out.give_rows(starts_only(batch).with_until(until));
}
