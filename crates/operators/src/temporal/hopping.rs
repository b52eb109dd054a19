//! Hopping windows, closed on the right and reported after they close.
//!
//! ```text
//!     size 10, period 10:   in    a [1, 2)      b [10, 11)    c [11, 12)
//!                           out   a [10, 20)    b [10, 20)    c [20, 30)
//! ```
//!
//! Law: an event at `t` is reported from the first boundary `b >= t` on, for `size` ticks. At
//! boundary `b` the events of `(b - size, b]` are alive.
//!
//! - Windows that overlap, of a size that is no multiple of the period: an event is alive until the
//!   first boundary whose window does not hold the event, which lies at most a period beyond `size`
//!   ticks.
//! - Windows apart (a period larger than the size): an event in no window is left out. Between the
//!   end of a report and the next boundary nothing is alive.
//!
//! Ends of the input are of no account. A result never changes after the report: the report is the
//! final answer of its window. For windows `[b, b + size)` reported while they fill see
//! [`super::quantize`].
//!
//! State: none. Cost: a comparison a row for times in order. Source: Trill `HoppingWindowLifetime`.

use anabranch_batch::{Batch, END, Time, Until};

use super::ticks::{Grid, add, ceil, map_times, starts_only};
use anabranch_flow::tactic::Output;

/// The windows. All but the offset are positive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Hopping {
    /// Ticks of a window.
    pub size: i64,
    /// Ticks from one boundary to the next.
    pub period: i64,
    /// Some boundary.
    pub offset: i64,
}

impl Hopping {
    /// Gives events the lifetimes of their windows.
    pub fn apply(&self, batch: Batch, out: &mut Output) {
        let batch = self.in_some_window(starts_only(batch));
        let mut grid = Grid::new(self.period, self.offset);
        if self.has_constant_duration() {
            let times = map_times(batch.times(), |time| grid.ceil(time));
            let beyond = times.max() == END;
            let batch = batch.with_times(times).with_until(Until::Duration(self.size));
            return out.give_rows(if beyond { within_time(batch) } else { batch });
        }
        let untils = (0..batch.len()).map(|row| self.end(batch.times().get(row))).collect();
        let times = map_times(batch.times(), |time| grid.ceil(time));
        let batch = batch.with_times(times).with_until(Until::Column(untils));
        out.give_rows(within_time(batch));
    }

    /// Whether every event is reported for `size` ticks: windows apart, or a whole number of hops a
    /// window.
    fn has_constant_duration(&self) -> bool {
        self.size <= self.period || self.size % self.period == 0
    }

    /// The end of the last window of an event at `time`, when windows overlap by no whole number of
    /// hops.
    fn end(&self, time: Time) -> Time {
        ceil(add(time, self.size), self.period, self.offset)
    }

    fn in_some_window(&self, batch: Batch) -> Batch {
        if self.period <= self.size {
            return batch;
        }
        let is_in = |row: &u32| {
            let time = batch.times().get(*row as usize);
            ceil(time, self.period, self.offset).saturating_sub(time) < self.size
        };
        let rows: Vec<u32> = (0..batch.len() as u32).filter(is_in).collect();
        if rows.len() == batch.len() { batch } else { batch.take(&rows) }
    }
}

/// Windows that would begin at the end of time never do.
fn within_time(batch: Batch) -> Batch {
    let rows: Vec<u32> = (0..batch.len() as u32).filter(|&row| batch.times().get(row as usize) < END).collect();
    starts_only(batch.take(&rows))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::temporal::testing::*;

    fn reported(size: i64, period: i64, offset: i64, starts: &[Time]) -> Vec<Event> {
        let points: Vec<Event> = starts.iter().map(|&start| (start, start + 1, start)).collect();
        applied(|batch, out| Hopping { size, period, offset }.apply(batch, out), events(&points))
    }

    /// Windows apart were once reported until the next boundary, for the period.
    #[test]
    fn windows_apart_are_reported_for_their_size() {
        let expected = [(0, 3, 0), (5, 8, 3), (5, 8, 5), (10, 13, 8)];
        assert_eq!(reported(3, 5, 0, &[0, 1, 2, 3, 5, 6, 8]), expected);
        assert_eq!(reported(3, 5, 2, &[2, 3, 5, 6]), [(2, 5, 2), (7, 10, 5), (7, 10, 6)]);
    }

    #[test]
    fn windows_that_overlap_are_reported_until_they_pass() {
        assert_eq!(reported(10, 4, 0, &[1, 4]), [(4, 12, 1), (4, 16, 4)]);
        assert_eq!(reported(20, 10, 0, &[11]), [(20, 40, 11)]);
    }

    #[test]
    fn boundaries_go_through_the_offset() {
        assert_eq!(reported(10, 10, 3, &[-8, -7, 3, 4]), [(-7, 3, -8), (-7, 3, -7), (3, 13, 3), (13, 23, 4)]);
        assert_eq!(reported(10, 10, 13, &[4]), reported(10, 10, 3, &[4]));
        assert_eq!(reported(10, 10, -7, &[4]), reported(10, 10, 3, &[4]));
    }
}
