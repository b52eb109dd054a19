//! Arranging rows by key: 10 million random (u64, u64), in batches of 1e3 to 1e6.
//!
//! Law of the measurement: rows are generated outside the clock, a few batches ahead. A round
//! pushes one batch, moves the frontier, and steps until the arrangement is complete; readers
//! follow, so that merges may compact. A round's pause is its CPU time. Live bytes are those the
//! allocator counts, per update: after the last round (`loaded`), and after 2,000 further rounds of
//! one row and 2,000 idle steps three milliseconds apart, in which merges finish as far as they do
//! (`settled`). The peak includes the batch in flight.
//!
//! Sketch on paper, for a row of 16 bytes: hash, sort by buckets and copy cost about 60 ns, each of
//! log2(rows / batch) merges 10 to 20 ns of copying through the second-level cache; so 1e6 a batch
//! should take in about 9 M rows a CPU second, 1e3 about 4 M. What saturates is the processor in
//! sorts, memory bandwidth in large merges.

use std::collections::BTreeMap;
use std::time::Duration;

use clap::Args;

use crate::compare::{self, Common, Figures, Side};
use crate::rows::{Pairs, TimesOf, batch, rounds_ahead};
use crate::{allocator, measure, ours, peer};

/// Options of the benchmark.
#[derive(Args, Clone)]
pub struct Options {
    /// Updates in all.
    #[arg(long, default_value_t = 10_000_000)]
    rows: usize,
    /// Updates of a batch.
    #[arg(long, value_delimiter = ',', default_values_t = [1_000, 10_000, 100_000, 1_000_000])]
    batch: Vec<usize>,
    #[command(flatten)]
    common: Common,
}

/// One run on one side, in this process.
#[derive(Args, Clone)]
pub struct Case {
    #[arg(long)]
    pub rows: usize,
    #[arg(long)]
    pub batch: usize,
    #[arg(long)]
    pub side: Side,
}

/// Rounds of one row after the last batch, and
pub const SETTLING_ROUNDS: usize = 2_000;
/// steps with nothing to do,
const IDLE_STEPS: usize = 2_000;

/// with pauses in between.
const IDLE_PAUSE: Duration = Duration::from_millis(3);

/// Runs the benchmark.
///
/// # Errors
/// When a run fails or the results cannot be kept.
pub fn run(options: &Options) -> Result<(), String> {
    let arguments = |batch: &usize| {
        ["arrange-case", "--rows", &options.rows.to_string(), "--batch", &batch.to_string()].map(str::to_owned).to_vec()
    };
    let case = |batch: &usize| compare::Case {
        arguments: arguments(batch),
        sides: vec![Side::Ours, Side::Peer, Side::PeerVec],
    };
    compare::run("arrange", &options.common, &options.batch.iter().map(case).collect::<Vec<_>>())
}

/// Runs one case and prints its figures.
pub fn run_case(case: &Case) {
    allocator::count();
    let figures = match case.side {
        Side::Ours => run_ours(case),
        Side::Peer => peer::arrange::run(case),
        Side::PeerVec => peer::arrange::run_vec(case),
    };
    compare::tell(&figures);
}

/// What both sides measure.
#[derive(Default)]
pub struct Measured {
    /// CPU time of each round.
    pub micros: Vec<f64>,
    /// Bytes before there was an arrangement.
    pub base_bytes: f64,
}

impl Measured {
    pub fn start() -> Measured {
        allocator::reset_peak();
        Measured { micros: Vec::new(), base_bytes: allocator::live_bytes() }
    }

    /// Measures a round.
    pub fn round(&mut self, round: impl FnOnce()) {
        let start = measure::thread_seconds();
        round();
        self.micros.push((measure::thread_seconds() - start) * 1e6);
    }

    /// The figures: `loaded` and `peak` were taken after the last batch, now all has settled.
    pub fn finish(mut self, case: &Case, loaded: f64, peak: f64) -> Figures {
        let rows = case.rows as f64;
        let per_row = |bytes: f64| (bytes - self.base_bytes) / rows;
        let seconds: f64 = self.micros.iter().sum::<f64>() / 1e6;
        let mut figures = BTreeMap::from([
            ("updates/CPU s".to_owned(), rows / seconds),
            ("B/update loaded".to_owned(), per_row(loaded)),
            ("B/update peak".to_owned(), per_row(peak)),
            ("B/update settled".to_owned(), per_row(allocator::live_bytes())),
        ]);
        compare::latencies(&mut self.micros, &mut figures, "pause");
        Figures::from([(format!("arrange, batches of {}", case.batch), figures)])
    }
}

/// Steps with nothing to do, for merges to finish.
pub fn idle(mut step: impl FnMut()) {
    for _ in 0..IDLE_STEPS {
        std::thread::sleep(IDLE_PAUSE);
        step();
    }
}

fn run_ours(case: &Case) -> Figures {
    let case = case.clone();
    ours::directly(move |worker| {
        let mut measured = Measured::start();
        let mut input = ours::Input::new(2);
        let (mut reader, _) =
            worker.dataflow("measured", |scope| ours::arrange_by_key(input.open(scope, ours::BEFORE)).reader);
        let mut pairs = Pairs::new(u64::MAX, u64::MAX);
        let (mut time, mut left) = (0, case.rows);
        while left > 0 {
            let ahead: Vec<_> = (0..rounds_ahead(case.batch))
                .map_while(|_| {
                    let rows = pairs.take_rows(case.batch.min(left));
                    left -= rows.len();
                    time += 1;
                    (!rows.is_empty()).then(|| (batch(&rows, time - 1, TimesOf::Batch), time))
                })
                .collect();
            for (batch, upper) in ahead {
                measured.round(|| {
                    input.push(&batch, upper);
                    drop(batch);
                    ours::settle(worker, &mut reader, upper);
                });
            }
        }
        let (loaded, peak) = (allocator::live_bytes(), allocator::peak_bytes());
        for _ in 0..SETTLING_ROUNDS {
            time += 1;
            input.push(&batch(&pairs.take_rows(1), time - 1, TimesOf::Batch), time);
            ours::settle(worker, &mut reader, time);
        }
        idle(|| worker.step());
        let figures = measured.finish(&case, loaded, peak);
        input.advance(anabranch_batch::END);
        drop((input, reader));
        figures
    })
}
