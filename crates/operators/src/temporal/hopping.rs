//! Hopping windows, closed on the right and reported after they close.
//!
//! ```text
//!     size 10, period 10:   in    a [1, 2)      b [10, 11)    c [11, 12)
//!                           out   a [10, 20)    b [10, 20)    c [20, 30)
//! ```
//!
//! Law: an event at `t` is reported from the first boundary `b >= t` on, for `size` ticks (for the hops that `size` covers if it is no multiple of
//! the period): at boundary `b` the events of `(b - size, b]` are alive. When the period is larger than the size, events that fall in no window
//! are left out. Ends of the input are of no account. The result never changes after it was reported: this is the final answer of each window. For
//! windows `[b, b + size)` reported while they fill see [`super::quantize`].
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
        if self.size % self.period == 0 {
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

    /// The end of the last window of an event at `time`, when the size is no multiple of the period.
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
