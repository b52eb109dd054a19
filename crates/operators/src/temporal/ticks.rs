//! Arithmetic on times that stays inside of time, and the kinds of events.
//!
//! Law: results are exact, or saturate: nothing wraps. Legal times of events lie strictly between
//! `i64::MIN` and [`END`].

use anabranch_batch::{Batch, END, Time, Times, Until};

/// The least legal time of an event.
pub const FIRST: Time = Time::MIN + 1;

/// What a row of a batch of events is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// In force from `start` to `end`, which is [`END`] for a start edge.
    Start {
        /// Inclusive.
        start: Time,
        /// Exclusive.
        end: Time,
    },
    /// The event that began at `start` without an end ends now, at `end`.
    End {
        /// When it began.
        start: Time,
        /// Now.
        end: Time,
    },
    /// No lifetime at all.
    Nothing,
}

/// The event in row `row`.
#[inline]
pub fn event(batch: &Batch, row: usize) -> Event {
    let time = batch.times().get(row);
    let until = batch.until().get(row, time);
    match until.cmp(&time) {
        std::cmp::Ordering::Greater => Event::Start { start: time, end: until },
        std::cmp::Ordering::Less => Event::End { start: until, end: time },
        std::cmp::Ordering::Equal => Event::Nothing,
    }
}

/// `time + ticks`; [`END`] stays, and sums that are no legal time become [`END`] or [`FIRST`].
#[inline]
pub fn add(time: Time, ticks: i64) -> Time {
    if time == END { END } else { time.saturating_add(ticks).max(FIRST) }
}

/// The largest `offset + k * period <= time`.
#[inline]
pub fn floor(time: Time, period: i64, offset: i64) -> Time {
    let past = match time.checked_sub(offset) {
        Some(past) => past.rem_euclid(period),
        // (The remainder is less than the period, so it fits.)
        None => (i128::from(time) - i128::from(offset)).rem_euclid(i128::from(period)) as i64,
    };
    time.saturating_sub(past).max(FIRST)
}

/// The least `offset + k * period >= time`; [`END`] stays.
#[inline]
pub fn ceil(time: Time, period: i64, offset: i64) -> Time {
    if time == END {
        return END;
    }
    let past = match time.checked_sub(offset) {
        Some(past) => past.rem_euclid(period),
        None => (i128::from(time) - i128::from(offset)).rem_euclid(i128::from(period)) as i64,
    };
    if past == 0 { time } else { time.saturating_add(period - past) }
}

/// A function of time that is constant on the windows of a grid; remembers the last window, so that
/// times in order cost a comparison each.
pub struct Grid {
    period: i64,
    offset: i64,
    /// The last window looked up, `[start, end)`.
    start: Time,
    end: Time,
}

impl Grid {
    /// Windows `[offset + k * period, offset + (k + 1) * period)`.
    pub fn new(period: i64, offset: i64) -> Grid {
        Grid { period, offset, start: 0, end: 0 }
    }

    /// The start of the window that holds `time`.
    #[inline]
    pub fn floor(&mut self, time: Time) -> Time {
        if !(self.start <= time && time < self.end) {
            self.start = floor(time, self.period, self.offset);
            self.end = ceil(time.saturating_add(1), self.period, self.offset);
        }
        self.start
    }

    /// The least window start at or after `time`.
    #[inline]
    pub fn ceil(&mut self, time: Time) -> Time {
        if time == FIRST {
            // The window that holds it may have begun before time did.
            return ceil(time, self.period, self.offset);
        }
        let floor = self.floor(time);
        if floor == time { time } else { self.end }
    }
}

/// Every time mapped.
pub(crate) fn map_times(times: &Times, mut map: impl FnMut(Time) -> Time) -> Times {
    match times {
        Times::Constant(time) => Times::Constant(map(*time)),
        Times::Column(times) => Times::Column(times.iter().map(|&time| map(time)).collect()),
    }
}

/// The rows that begin something, and have a lifetime: end edges and nothings left out. No work
/// when lifetimes are not a column.
pub(crate) fn starts_only(batch: Batch) -> Batch {
    match batch.until() {
        Until::Forever => batch,
        Until::Duration(ticks) if *ticks > 0 => batch,
        _ => {
            let begins = |row: &u32| matches!(event(&batch, *row as usize), Event::Start { .. });
            let rows: Vec<u32> = (0..batch.len() as u32).filter(begins).collect();
            if rows.len() == batch.len() { batch } else { batch.take(&rows) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grids_hold_at_the_extremes() {
        for time in [FIRST, -11, -10, -1, 0, 1, 9, 10, END - 1] {
            for (period, offset) in [(10, 0), (10, 3), (7, -20), (i64::MAX, 5), (1, 0)] {
                let (below, above) = (floor(time, period, offset), ceil(time, period, offset));
                assert!(below <= time && time <= above, "{time} {period} {offset}");
                let mut grid = Grid::new(period, offset);
                assert_eq!((grid.floor(time), grid.ceil(time)), (below, above), "{time} {period} {offset}");
            }
        }
        assert_eq!((floor(-1, 10, 0), ceil(-1, 10, 0), ceil(11, 10, 3)), (-10, 0, 13));
        assert_eq!((add(END, -5), add(END - 1, 5), add(FIRST, -5)), (END, END, FIRST));
    }
}
