//! The end of every event, as a point.
//!
//! ```text
//!     in    [1, 5) a    start 2 b    end 9 of b    start 3 c
//!     out   [5, 6) a                 [9, 10) b
//! ```
//!
//! Law: an event [s, e) becomes [e, e + 1); an event that never ends yields nothing. State: none;
//! punctuation passes. Source: Trill, `PointAtEnd`.

use anabranch_batch::Batch;

use super::events::{EventKind, kind, map_lifetimes};
use anabranch_flow::tactic::Output;

/// Makes points of ends.
pub fn apply(batch: Batch, out: &mut Output) {
    let point = |end| Some((end, end + 1));
    out.give_rows(map_lifetimes(batch, |time, until| match kind(time, until)? {
        EventKind::Interval => point(until),
        EventKind::Start => None,
        EventKind::End => point(time),
    }));
}

#[cfg(test)]
mod tests {
    use crate::temporal::testing::*;

    #[test]
    fn ends_become_points() {
        let input = events(&[(1, 5, 7), (2, END, 8), (9, 2, 8), (3, END, 9), (4, 4, 1)]);
        assert_eq!(applied(super::apply, input), [(5, 6, 7), (9, 10, 8)]);
    }
}
