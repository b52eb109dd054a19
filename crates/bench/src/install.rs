//! Installing: a new dataflow on an arrangement of 10 million rows that exists.
//!
//! Law of the measurement: the arrangement is loaded in batches of a million, and settled by rounds
//! of one row, outside the clock. A sample builds a dataflow that imports it, steps until the
//! dataflow has caught up, and drops it. Times are CPU time from the first call to the last row
//! out; live bytes are what the dataflow adds while it stands.
//!
//! Sketch on paper: an import hands over one pointer a run; building and scheduling two operators
//! costs some 10 µs; one row joined probes ten runs, 20 cache misses, and builds five operators: 50
//! µs. A scan copies 160 MB.

use std::collections::BTreeMap;

use anabranch_arrangement::Reader;
use anabranch_batch::order::Nulls;
use anabranch_batch::{END, Time};
use anabranch_flow::Scope;
use anabranch_flow::import::{Content, StreamImport, import, no_horizon};
use anabranch_flow::runs::{Arranged, Runs, RunsImport};
use anabranch_flow::worker::{Dataflow, Worker};
use anabranch_operators::relational::join::{JoinSpec, join};
use anabranch_operators::stateless::filter_project::Stage;
use clap::Args;
use timely::container::NoopBuilder;
use timely::dataflow::operators::generic::operator::source;
use timely::dataflow::operators::probe::{Handle, Probe};

use crate::compare::{self, Common, Figures, Side};
use crate::join::{LOAD_ROWS, changed_rows, loaded_rows};
use crate::rows::{Numbers, TimesOf, batch};
use crate::{allocator, measure, ours, peer};

/// Options of the benchmark.
#[derive(Args, Clone)]
pub struct Options {
    /// Rows of the arrangement.
    #[arg(long, default_value_t = 10_000_000)]
    rows: usize,
    #[command(flatten)]
    common: Common,
}

/// One run on one side, in this process.
#[derive(Args, Clone)]
pub struct Case {
    #[arg(long)]
    pub rows: usize,
    #[arg(long)]
    pub side: Side,
}

/// What is installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Install {
    Import,
    Join(usize),
    Scan,
}

/// What is installed, under which name, and how often.
pub const INSTALLS: [(Install, &str, usize); 4] = [
    (Install::Import, "import", 200),
    (Install::Join(1), "join of 1 row", 200),
    (Install::Join(1_000), "join of 1,000 rows", 50),
    (Install::Scan, "scan", 3),
];

/// Rounds of one row after loading.
pub const SETTLING_ROUNDS: usize = 2_000;

/// Runs the benchmark.
///
/// # Errors
/// When a run fails or the results cannot be kept.
pub fn run(options: &Options) -> Result<(), String> {
    let arguments = ["install-case", "--rows", &options.rows.to_string()].map(str::to_owned).to_vec();
    let case = compare::Case { arguments, sides: vec![Side::Ours, Side::Peer] };
    compare::run("install", &options.common, &[case])
}

/// Runs one case and prints its figures.
pub fn run_case(case: &Case) {
    allocator::count();
    compare::tell(&match case.side {
        Side::Ours => run_ours(case),
        Side::Peer | Side::PeerVec => peer::install::run(case),
    });
}

/// Takes samples of each install; `sample` returns the rows that came out and the bytes added.
pub fn take_samples(mut sample: impl FnMut(Install) -> (usize, f64)) -> Figures {
    let mut figures = Figures::new();
    for (install, name, samples) in INSTALLS {
        let (mut micros, mut rows, mut bytes) = (Vec::new(), 0, 0.0);
        for _ in 0..samples {
            let start = measure::thread_seconds();
            (rows, bytes) = sample(install);
            micros.push((measure::thread_seconds() - start) * 1e6);
        }
        let mut of_install =
            BTreeMap::from([("rows out".to_owned(), rows as f64), ("added KB".to_owned(), bytes / 1e3)]);
        compare::latencies(&mut micros, &mut of_install, "ready");
        figures.insert(format!("install, {name}"), of_install);
    }
    figures
}

fn run_ours(case: &Case) -> Figures {
    let case = case.clone();
    ours::directly(move |worker| {
        let mut input = ours::Input::new(2);
        let (mut reader, _) =
            worker.dataflow("measured", |scope| ours::arrange_by_key(input.open(scope, ours::BEFORE)).reader);
        let mut time = 0;
        let mut load = |worker: &mut Worker, rows: &[(u64, u64)], time: Time| {
            input.push(&batch(rows, time, TimesOf::Batch), time + 1);
            ours::settle(worker, &mut reader, time + 1);
        };
        for start in (0..case.rows).step_by(LOAD_ROWS) {
            load(worker, &loaded_rows(start, (start + LOAD_ROWS).min(case.rows)), time);
            time += 1;
        }
        let mut keys = Numbers::new(4, case.rows as u64);
        for _ in 0..SETTLING_ROUNDS {
            load(worker, &changed_rows(&mut keys, 1), time);
            time += 1;
        }
        let mut keys = Numbers::new(3, case.rows as u64);
        let figures = take_samples(|install| {
            let before = allocator::live_bytes();
            let (rows, dataflow) = installed(worker, install, &reader, &mut keys, time);
            let added = allocator::live_bytes() - before;
            worker.drop_dataflow(dataflow);
            (rows, added)
        });
        input.advance(END);
        figures
    })
}

/// An operator that is handed the runs of an arrangement, and does nothing with them.
fn import_runs(scope: Scope<'_>, reader: &Reader) -> Handle<Time> {
    let mut listener = reader.listen(None);
    let runs = source::<_, NoopBuilder<Vec<()>>, _, _>(scope.timely(), "Import", move |capability, _| {
        let mut capability = Some(capability);
        move |_| {
            if let Some(mut held) = capability.take() {
                let rows: usize = listener.drain().iter().map(|sealed| sealed.run.len()).sum();
                assert!(rows > 0, "the arrangement holds rows");
                held.downgrade(&listener.upper());
            }
        }
    });
    runs.probe().0
}

/// Installs, and steps until all is out.
fn installed(
    worker: &mut Worker,
    install: Install,
    reader: &Reader,
    keys: &mut Numbers,
    upper: Time,
) -> (usize, Dataflow) {
    let as_of = upper - 1;
    let rows = match install {
        Install::Join(rows) => rows,
        Install::Import | Install::Scan => 0,
    };
    let mut input = ours::Input::new(2);
    if rows > 0 {
        input.advance(as_of);
    }
    let ((probe, counted), dataflow) = worker.dataflow("measured", |scope| match install {
        Install::Import => (import_runs(scope, reader), None),
        Install::Join(_) => {
            let changed = ours::arrange_by_key(input.open(scope.clone(), as_of - 1));
            let runs = RunsImport { scope, name: "rows".to_owned(), errors: None, as_of, horizon: no_horizon() };
            let arranged = Arranged { reader: reader.clone(), runs: Runs::Import(runs) };
            let spec = JoinSpec {
                left_key: vec![0],
                right_key: vec![0],
                nulls: Nulls::Differ,
                gather_left: vec![0, 1],
                gather_right: vec![1],
                stage: Stage { filter: Vec::new(), kept: None, project: None },
                as_of,
            };
            let (probe, rows) = ours::count_rows(join(changed, arranged, spec, vec![]));
            (probe, Some(rows))
        }
        Install::Scan => {
            let rows = StreamImport {
                name: "rows".to_owned(),
                as_of,
                history: Some(reader.clone()),
                live: None,
                horizon: no_horizon(),
                columns: vec![0, 1],
                content: Content::Rows,
                dealing: None,
            };
            let (probe, rows) = ours::count_rows(import(scope, vec![rows]));
            (probe, Some(rows))
        }
    });
    if rows > 0 {
        input.push(&batch(&changed_rows(keys, rows), as_of, TimesOf::Batch), upper);
    }
    worker.step_while(|| probe.less_than(&upper));
    (counted.map_or(0, |rows| rows.get()), dataflow)
}
