//! Windows `[b, b + size)`, closed on the left and reported while they fill.
//!
//! ```text
//!     size 10, period 10:                in    a [3, 10)    b [3, 11)    c [10, 20)
//!                                        out   a [0, 10)    b [0, 20)    c [10, 20)
//!     size 10, period 10, progress 5:    in    a [7, 8)
//!                                        out   a [5, 10)
//! ```
//!
//! Law: a start moves down to the grid of `progress` (the period, unless results are wanted
//! earlier), an end up to the end of the last window that the event touches: the least `offset +
//! size + k * period` that is not before the end and not before `start + size`, rounded as Trill
//! does (section 1.5 of its algebra). Start edges stay open; an end edge moves to its quantised end
//! and names the quantised start.
//!
//! State: none. The frontier is held at the last point of the progress grid. Source: Trill
//! `QuantizeLifetime`, `ProgressiveQuantizeLifetime`.

use anabranch_batch::{Batch, END, Time, Times, Until};

use super::Hold;
use super::ticks::{Event, Grid, event, floor};
use anabranch_flow::tactic::Output;

/// The windows. All but the offset are positive; the period is a multiple of the progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Quantize {
    /// Ticks of a window.
    pub size: i64,
    /// Ticks from one window to the next.
    pub period: i64,
    /// Ticks from one early result to the next; the period for none.
    pub progress: i64,
    /// Some window start.
    pub offset: i64,
}

impl Quantize {
    /// How far the verb reaches back.
    pub fn hold(&self) -> Hold {
        Hold::Floor { period: self.progress, offset: self.offset }
    }

    /// Quantises events.
    pub fn apply(&self, batch: Batch, out: &mut Output) {
        let n = batch.len();
        let mut grid = Grid::new(self.progress, self.offset);
        let (mut times, mut untils) = (Vec::with_capacity(n), Vec::with_capacity(n));
        for row in 0..n {
            let (time, until) = match event(&batch, row) {
                Event::Start { start, end } => (grid.floor(start), self.end(start, end)),
                Event::End { start, end } => match (self.end(start, end), grid.floor(start)) {
                    // (Ends beyond the end of time never come.)
                    (END, start) => (start, start),
                    (end, start) => (end, start),
                },
                Event::Nothing => (grid.floor(batch.times().get(row)), grid.floor(batch.times().get(row))),
            };
            times.push(time);
            untils.push(until);
        }
        let is_any_gone = times.iter().zip(&untils).any(|(time, until)| time == until);
        let batch = batch.with_times(Times::Column(times.into())).with_until(Until::Column(untils.into()));
        out.give_rows(if is_any_gone { without_nothings(batch) } else { batch });
    }

    /// The quantised end of an event `[start, end)`.
    #[inline]
    fn end(&self, start: Time, end: Time) -> Time {
        if end == END {
            return END;
        }
        let window = || start.checked_add(self.size);
        match (end.checked_add(self.period - 1), window(), self.offset.checked_add(self.size)) {
            (Some(last), Some(window), Some(offset)) => floor(last.max(window), self.period, offset),
            _ => self.end_beyond(start, end),
        }
    }

    /// As [`Quantize::end`], where sums leave time.
    fn end_beyond(&self, start: Time, end: Time) -> Time {
        let wide = i128::from;
        let last = (wide(end) + wide(self.period) - 1).max(wide(start) + wide(self.size));
        let past = (last - wide(self.offset) - wide(self.size)).rem_euclid(wide(self.period));
        Time::try_from(last - past).unwrap_or(END)
    }
}

fn without_nothings(batch: Batch) -> Batch {
    let is_something = |row: &u32| event(&batch, *row as usize) != Event::Nothing;
    let rows: Vec<u32> = (0..batch.len() as u32).filter(is_something).collect();
    batch.take(&rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_move_up_to_the_end_of_a_window() {
        let windows = Quantize { size: 10, period: 10, progress: 10, offset: 0 };
        let ends = [(3, 10), (3, 11), (10, 20), (10, 21)].map(|(start, end)| windows.end(start, end));
        assert_eq!(ends, [10, 20, 20, 30]);
        let long = Quantize { size: 100, period: 10, progress: 10, offset: 0 };
        assert_eq!((long.end(7, 8), long.end(10, 11)), (100, 110));
        // At the end of time windows are cut off, but no earlier.
        let last = windows.end(END - 9, END - 8);
        assert_eq!(last, super::super::ticks::floor(END - 9, 10, 0) + 10);
        assert_eq!(windows.end(END - 2, END - 1), END);
    }
}
