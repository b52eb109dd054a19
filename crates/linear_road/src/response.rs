//! Response times: measured, or modelled from a replay.
//!
//! A *replay* hands each second over when the one before has answered. Its real-time lag follows by
//! a recursion: with w(t) the wall time of second t, `c(t) = max(c(t-1), t + d) + w(t)` and
//! `lag(t) = c(t) - t`, where d = 1 s, since the rows of a second are known only at its end.

/// The recursion of a replay's lag.
#[derive(Clone, Copy, Debug)]
pub struct Lag {
    /// c of the second before.
    done: f64,
}

/// Seconds until the rows of a second are known.
const KNOWN_AFTER_SECONDS: f64 = 1.0;

impl Default for Lag {
    fn default() -> Lag {
        Lag { done: f64::NEG_INFINITY }
    }
}

impl Lag {
    /// The lag, in seconds, of second `time` that took `work_seconds`.
    ///
    /// ```
    /// # use anabranch_linear_road::response::Lag;
    /// let mut lag = Lag::default();
    /// assert_eq!([(0, 0.25), (1, 2.0), (2, 0.5)].map(|(time, work)| lag.after(time, work)), [1.25, 3.0, 2.5]);
    /// ```
    pub fn after(&mut self, time: u32, work_seconds: f64) -> f64 {
        let time = f64::from(time);
        self.done = self.done.max(time + KNOWN_AFTER_SECONDS) + work_seconds;
        self.done - time
    }
}

/// Response times of one type of answers: those of a second are one.
#[derive(Clone, Debug, Default)]
pub struct Responses {
    /// Seconds, and how many answers took so long.
    times: Vec<(f64, u64)>,
}

impl Responses {
    /// So many answers that took so long.
    pub fn add(&mut self, seconds: f64, answers: u64) {
        if answers > 0 {
            self.times.push((seconds, answers));
        }
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.times.iter().map(|(_, answers)| answers).sum()
    }

    /// The least time within which these parts of the answers were given, ascending, each in (0,
    /// 1]; zeros of none.
    pub fn quantiles<const N: usize>(&self, parts: [f64; N]) -> [f64; N] {
        let mut times = self.times.clone();
        times.sort_by(|left, right| left.0.total_cmp(&right.0));
        let all = self.count() as f64;
        parts.map(|part| {
            let mut seen = 0;
            let reached = times.iter().find(|(_, answers)| {
                seen += answers;
                seen as f64 >= part * all
            });
            reached.or(times.last()).map_or(0.0, |(seconds, _)| *seconds)
        })
    }

    /// The greatest.
    pub fn max(&self) -> f64 {
        self.times.iter().map(|(seconds, _)| *seconds).fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R8: a pause of 3 s raises the lag by 3 s, which falls by what the load leaves free.
    #[test]
    fn r8_a_pause_raises_the_lag_and_wears_off() {
        let mut lag = Lag::default();
        let load = 0.4;
        let lags: Vec<f64> = (0..20).map(|time| lag.after(time, if time == 5 { load + 3.0 } else { load })).collect();
        assert!((lags[4] - 1.4).abs() < 1e-9);
        assert!((lags[5] - lags[4] - 3.0).abs() < 1e-9);
        let falls: Vec<f64> = lags[5..10].windows(2).map(|pair| pair[0] - pair[1]).collect();
        assert!(falls.iter().all(|fall| (fall - (1.0 - load)).abs() < 1e-9), "{falls:?}");
        assert!((lags[19] - 1.4).abs() < 1e-9);
    }

    #[test]
    fn quantiles_count_answers_not_seconds() {
        let mut responses = Responses::default();
        responses.add(3.0, 1);
        responses.add(1.0, 98);
        responses.add(2.0, 1);
        assert_eq!(responses.quantiles([0.5, 0.98, 0.99, 1.0]), [1.0, 1.0, 2.0, 3.0]);
        assert_eq!((responses.max(), responses.count()), (3.0, 100));
    }
}
