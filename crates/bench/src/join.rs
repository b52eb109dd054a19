//! Joining: batches of 1 to 1e6 changed rows against an arrangement of 10 million keys.
//!
//! Law of the measurement: both sides are arranged; each changed row meets one row; changed rows
//! accumulate. The arrangement is loaded in batches of a million outside the clock. A round pushes
//! one batch, moves both frontiers, and steps until the pairs have come out; its latency is CPU
//! time.
//!
//! Sketch on paper: a row of a large batch costs its arranging (100 ns), one probe (two cache
//! misses, overlapped: 30 ns) and a gather of three columns (30 ns); a batch of one row costs what
//! timely takes to schedule five operators and to move their frontiers, some 5 µs.

use std::collections::BTreeMap;

use anabranch_batch::END;
use anabranch_batch::order::Nulls;
use anabranch_operators::relational::join::{JoinSpec, join};
use anabranch_operators::stateless::filter_project::Stage;
use clap::Args;

use crate::compare::{self, Common, Figures, Side};
use crate::rows::{Numbers, TimesOf, batch};
use crate::{allocator, measure, ours, peer};

/// Options of the benchmark.
#[derive(Args, Clone)]
pub struct Options {
    /// Keys of the arrangement.
    #[arg(long, default_value_t = 10_000_000)]
    keys: usize,
    /// Changed rows of a batch; each size in turn.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000])]
    batch: Vec<usize>,
    #[command(flatten)]
    common: Common,
}

/// One run on one side, in this process.
#[derive(Args, Clone)]
pub struct Case {
    #[arg(long)]
    pub keys: usize,
    #[arg(long, value_delimiter = ',')]
    pub batch: Vec<usize>,
    #[arg(long)]
    pub side: Side,
}

/// Rows of a batch while the arrangement is loaded.
pub const LOAD_ROWS: usize = 1_000_000;

/// Runs the benchmark.
///
/// # Errors
/// When a run fails or the results cannot be kept.
pub fn run(options: &Options) -> Result<(), String> {
    let sizes: Vec<String> = options.batch.iter().map(usize::to_string).collect();
    let arguments = ["join-case", "--keys", &options.keys.to_string(), "--batch", &sizes.join(",")];
    let case = compare::Case { arguments: arguments.map(str::to_owned).to_vec(), sides: vec![Side::Ours, Side::Peer] };
    compare::run("join", &options.common, &[case])
}

/// Runs one case and prints its figures.
pub fn run_case(case: &Case) {
    allocator::count();
    compare::tell(&match case.side {
        Side::Ours => run_ours(case),
        Side::Peer | Side::PeerVec => peer::join::run(case),
    });
}

/// How many rounds of a size there are: about a million rows, or 2,000 rounds.
pub fn rounds(rows: usize) -> usize {
    (1_000_000 / rows).clamp(3, 2_000)
}

/// Rows of the arrangement: keys `start .. end`, each once.
pub fn loaded_rows(start: usize, end: usize) -> Vec<(u64, u64)> {
    (start as u64..end as u64).map(|key| (key, key.wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect()
}

/// The next changed rows; no two are equal, so that none is summed up with another.
pub fn changed_rows(keys: &mut Numbers, rows: usize) -> Vec<(u64, u64)> {
    let mut row = || Some((keys.next()?, keys.serial()));
    (0..rows).map_while(|_| row()).collect()
}

/// Measures the rounds of one size.
pub fn measure_rounds(rows: usize, figures: &mut Figures, mut round: impl FnMut() -> f64) {
    let mut micros: Vec<f64> = (0..rounds(rows)).map(|_| round()).collect();
    let seconds = micros.iter().sum::<f64>() / 1e6;
    let mut of_size = BTreeMap::from([("rows/CPU s".to_owned(), (rows * micros.len()) as f64 / seconds)]);
    compare::latencies(&mut micros, &mut of_size, "latency");
    figures.insert(format!("join, batches of {rows:07}"), of_size);
}

fn run_ours(case: &Case) -> Figures {
    let case = case.clone();
    ours::directly(move |worker| {
        let (mut left, mut right) = (ours::Input::new(2), ours::Input::new(2));
        let ((probe, pairs), _) = worker.dataflow("measured", |scope| {
            let changed = ours::arrange_by_key(left.open(scope.clone(), ours::BEFORE));
            let loaded = ours::arrange_by_key(right.open(scope, ours::BEFORE));
            let spec = JoinSpec {
                left_key: vec![0],
                right_key: vec![0],
                nulls: Nulls::Differ,
                gather_left: vec![0, 1],
                gather_right: vec![1],
                stage: Stage { filter: Vec::new(), kept: None, project: None },
                as_of: ours::BEFORE,
            };
            ours::count_rows(join(changed, loaded, spec, vec![]))
        });
        let mut time = 0;
        for start in (0..case.keys).step_by(LOAD_ROWS) {
            let rows = loaded_rows(start, (start + LOAD_ROWS).min(case.keys));
            right.push(&batch(&rows, time, TimesOf::Batch), time + 1);
            time += 1;
            left.advance(time);
            worker.step_while(|| probe.less_than(&time));
        }
        let mut figures = Figures::new();
        let (mut keys, mut expected) = (Numbers::new(3, case.keys as u64), 0);
        for &size in &case.batch {
            measure_rounds(size, &mut figures, || {
                let changed = batch(&changed_rows(&mut keys, size), time, TimesOf::Batch);
                expected += size;
                let start = measure::thread_seconds();
                left.push(&changed, time + 1);
                drop(changed);
                time += 1;
                right.advance(time);
                worker.step_while(|| probe.less_than(&time));
                (measure::thread_seconds() - start) * 1e6
            });
        }
        assert_eq!(pairs.get(), expected, "each changed row meets one row");
        left.advance(END);
        right.advance(END);
        figures
    })
}
