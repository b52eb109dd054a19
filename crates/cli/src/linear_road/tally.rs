//! What has come in and gone out so far, as lines of text.

use std::collections::VecDeque;
use std::time::Duration;

use anabranch_linear_road::answer::TollAnswer;
use anabranch_linear_road::response::{Lag, Responses};
use anabranch_linear_road::row::Second;

use crate::arguments::{LinearRoad, Speed};
use crate::progress::thousands;

/// Accidents that are shown.
const ACCIDENTS_SHOWN: usize = 4;

const NAMES: [&str; 4] = ["tolls", "accidents", "balances", "expenditures"];
const LIMITS_SECONDS: [u32; 4] = [5, 5, 5, 10];

/// See the module.
pub(super) struct Tally {
    expressways: f64,
    seconds_max: u32,
    workers: usize,
    speed: Speed,
    is_made: bool,
    time: u32,
    rows: u64,
    refused: u64,
    toll_cents: u64,
    tolls_due: u64,
    lag: Lag,
    lag_seconds: f64,
    lag_max: f64,
    responses: [Responses; 4],
    /// Places of accidents that were told of last, and when first.
    accidents: VecDeque<(u16, u8, u8, u32)>,
}

impl Tally {
    pub(super) fn new(options: &LinearRoad, workers: usize) -> Tally {
        Tally {
            expressways: f64::from(options.half_expressways) / 2.0,
            seconds_max: options.minutes.saturating_mul(60),
            workers,
            speed: options.speed,
            is_made: options.input.is_none(),
            time: 0,
            rows: 0,
            refused: 0,
            toll_cents: 0,
            tolls_due: 0,
            lag: Lag::default(),
            lag_seconds: 0.0,
            lag_max: 0.0,
            responses: Default::default(),
            accidents: VecDeque::new(),
        }
    }

    /// Adds a second that took `seconds`, and was answered `elapsed` after the start. Returns when
    /// its answers were delivered, on the input's scale.
    pub(super) fn add(&mut self, second: &Second, answers: &[TollAnswer], seconds: f64, elapsed: f64) -> f64 {
        self.time = second.time;
        self.rows += second.rows.len() as u64;
        self.refused += second.n_refused as u64;
        let lag = match self.speed {
            Speed::Replay => self.lag.after(second.time, seconds),
            Speed::Times(speed) => elapsed * speed - f64::from(second.time),
        };
        (self.lag_seconds, self.lag_max) = (lag, self.lag_max.max(lag));
        let mut counts = [0u64; 4];
        for answer in answers {
            let kind = match *answer {
                TollAnswer::Toll { toll, .. } => {
                    self.toll_cents += u64::from(toll);
                    self.tolls_due += u64::from(toll > 0);
                    0
                }
                TollAnswer::Accident { xway, direction, segment, time, .. } => {
                    self.note_accident(xway, direction, segment, time);
                    1
                }
                TollAnswer::Balance { .. } => 2,
                TollAnswer::Expenditure { .. } => 3,
            };
            counts[kind] += 1;
        }
        self.responses.iter_mut().zip(counts).for_each(|(responses, n)| responses.add(lag, n));
        f64::from(second.time) + lag
    }

    fn note_accident(&mut self, xway: u16, direction: u8, segment: u8, time: u32) {
        let same = |known: &(u16, u8, u8, u32)| (known.0, known.1, known.2) == (xway, direction, segment);
        if !self.accidents.iter().any(same) {
            self.accidents.push_back((xway, direction, segment, time));
            if self.accidents.len() > ACCIDENTS_SHOWN {
                self.accidents.pop_front();
            }
        }
    }

    /// Reports that were refused.
    pub(super) fn refused(&self) -> u64 {
        self.refused
    }

    /// What runs, and in which mode.
    pub(super) fn heading(&self) -> String {
        let mode = match self.speed {
            Speed::Replay => "replay, lag modelled".to_owned(),
            Speed::Times(1.0) => "real time, responses measured".to_owned(),
            Speed::Times(speed) => format!("paced at {speed} times real time, responses in seconds of the input"),
        };
        let rows = if self.is_made { "rows made while running" } else { "rows of a file" };
        format!("Linear Road  L = {}  {} shards  {mode}, {rows}", self.expressways, self.workers)
    }

    /// All that is known, as lines.
    pub(super) fn lines(&self, elapsed: Duration) -> Vec<String> {
        let rate = self.rows as f64 / elapsed.as_secs_f64().max(1e-3);
        let speed = f64::from(self.time + 1) / elapsed.as_secs_f64().max(1e-3);
        let mut lines = vec![
            self.heading(),
            format!(
                "second {} of {}, {speed:.1} times real time; {} rows, {} a second; {} refused",
                self.time + 1,
                self.seconds_max,
                thousands(self.rows),
                thousands(rate as u64),
                self.refused
            ),
            format!("lag {:.3} s, greatest {:.3} s", self.lag_seconds, self.lag_max),
            format!(
                "tolls told {}, sum {}.{:02}",
                thousands(self.tolls_due),
                self.toll_cents / 100,
                self.toll_cents % 100
            ),
            String::new(),
            format!("{:<13} {:>12} {:>9} {:>9} {:>9} {:>6}", "answers", "count", "p50 s", "p99 s", "max s", "limit"),
        ];
        for ((name, responses), limit) in NAMES.iter().zip(&self.responses).zip(LIMITS_SECONDS) {
            let [half, most] = responses.quantiles([0.5, 0.99]);
            let (count, max) = (thousands(responses.count()), responses.max());
            lines.push(format!("{name:<13} {count:>12} {half:>9.3} {most:>9.3} {max:>9.3} {limit:>6}"));
        }
        lines.push(String::new());
        for (xway, direction, segment, time) in &self.accidents {
            let direction = if *direction == 0 { "eastbound" } else { "westbound" };
            lines.push(format!(
                "accident on expressway {xway}, {direction}, segment {segment}: warned from {time} s on"
            ));
        }
        lines
    }

    /// One line for a pipe.
    pub(super) fn line(&self, elapsed: Duration) -> String {
        let rate = self.rows as f64 / elapsed.as_secs_f64().max(1e-3);
        let answers: u64 = self.responses.iter().map(Responses::count).sum();
        format!(
            "minute {:>3}: {:>12} rows, {:>9} a second, {:>12} answers, lag {:.3} s, greatest {:.3} s",
            (self.time + 1) / 60,
            thousands(self.rows),
            thousands(rate as u64),
            thousands(answers),
            self.lag_seconds,
            self.lag_max
        )
    }
}
