//! Recursive queries: a bulk load, then one row after the other, beside the peer.
//!
//! Law of the measurement: both sides keep the answer current over the same rows, in one commit for
//! the load and one for each change, on one thread. A change takes one row away, or brings one;
//! each is timed until the answer has taken it in. Times are CPU time of that thread; memory is
//! what the load allocates at its peak. The sides' checksums of the answer, after the load and at
//! the end, are equal, or the run fails.
//!
//! Sketch on paper: a fact of a closure is derived some four times, and each derivation is a probe
//! and a hash, 100 ns: 10 M derivations a second at best. One edge of a random graph with ten edges
//! a node changes the distance of few nodes: some rounds of a handful of rows, 5 µs a round.

mod ours;
mod workload;

use std::collections::BTreeMap;

use anabranch_peer::standing::Standing;
use clap::Args;

use crate::compare::{self, Common, Figures, Side};
use crate::{allocator, measure};

use ours::ours;
use workload::{Shape, Workload};

/// Options of the benchmark.
#[derive(Args, Clone)]
pub struct Options {
    /// Nodes of the large graphs; smaller cases shrink in proportion.
    #[arg(long, default_value_t = 1_000_000)]
    nodes: u64,
    /// Only cases whose name contains this text.
    #[arg(long)]
    case: Option<String>,
    /// Changes of one row after the load.
    #[arg(long, default_value_t = 400)]
    changes: usize,
    #[command(flatten)]
    common: Common,
}

/// One run on one side, in this process.
#[derive(Args, Clone)]
pub struct Case {
    #[arg(long)]
    name: String,
    #[arg(long)]
    nodes: u64,
    #[arg(long)]
    changes: usize,
    #[arg(long)]
    side: Side,
}

/// Every case: its name, its program, its rows for so many nodes of the large graphs.
type Made = fn(u64) -> Workload;
const CASES: [(&str, &str, Made); 13] = [
    ("reach, random", "reach", |n| workload::graph(Shape::Random, n, 10 * n as usize, true)),
    ("reach, power law", "reach", |n| workload::graph(Shape::Power, n, 10 * n as usize, true)),
    ("reach, 1 M edges", "reach", |n| workload::graph(Shape::Random, n / 5, n as usize, true)),
    ("bfs, random", "bfs", |n| workload::graph(Shape::Random, n, 10 * n as usize, true)),
    ("bfs, power law", "bfs", |n| workload::graph(Shape::Power, n, 10 * n as usize, true)),
    ("components, random", "components", |n| workload::graph(Shape::Random, n, 10 * n as usize, false)),
    ("components, power law", "components", |n| workload::graph(Shape::Power, n, 10 * n as usize, false)),
    ("closure, tree", "closure", |n| workload::graph(Shape::Tree, n / 10, 0, false)),
    ("closure, grid", "closure", |n| workload::graph(Shape::Grid, n / 400, 0, false)),
    ("closure, random", "closure", |n| workload::graph(Shape::Random, n / 500, n as usize / 125, false)),
    ("same generation, tree", "same-generation", |n| workload::parents(Shape::Tree, n / 250)),
    ("same generation, random", "same-generation", |n| workload::parents(Shape::Random, n / 500)),
    ("points to", "points-to", |n| workload::statements(n as usize / 10)),
];

/// Runs the benchmark.
///
/// # Errors
/// When a run fails or the results cannot be kept.
pub fn run(options: &Options) -> Result<(), String> {
    let is_asked = |name: &str| options.case.as_deref().is_none_or(|part| name.contains(part));
    let case = |name: &str| {
        let (nodes, changes) = (options.nodes.to_string(), options.changes.to_string());
        let arguments = ["recursion-case", "--name", name, "--nodes", &nodes, "--changes", &changes];
        compare::Case { arguments: arguments.map(str::to_owned).to_vec(), sides: vec![Side::Ours, Side::Peer] }
    };
    let cases: Vec<compare::Case> =
        CASES.iter().filter(|(name, ..)| is_asked(name)).map(|(name, ..)| case(name)).collect();
    if cases.is_empty() {
        let names: Vec<&str> = CASES.iter().map(|(name, ..)| *name).collect();
        return Err(format!("no case is named so; there are: {}", names.join("; ")));
    }
    compare::run("recursion", &options.common, &cases)
}

/// Runs one case and prints its figures.
///
/// # Errors
/// When the engine refuses the program, or there is no such case.
pub fn run_case(case: &Case) -> Result<(), String> {
    let (name, program, made) = CASES.iter().find(|(name, ..)| *name == case.name).ok_or("there is no such case")?;
    let workload = made(case.nodes);
    let changes = case.changes;
    measure::warm(1_000);
    allocator::count();
    let figures = match case.side {
        Side::Ours => {
            let mut ours = ours(program).map_err(|error| format!("{program}: {error}"))?;
            measured(&mut ours, workload, changes)
        }
        Side::Peer | Side::PeerVec => {
            anabranch_peer::recursion::run(program, move |peer| measured(peer, workload, changes))
        }
    };
    compare::tell(&Figures::from([((*name).to_owned(), figures)]));
    Ok(())
}

fn measured(standing: &mut dyn Standing, mut workload: Workload, changes: usize) -> BTreeMap<String, f64> {
    standing.commit();
    allocator::reset_peak();
    let (before, start) = (allocator::live_bytes(), measure::thread_seconds());
    for (relation, rows) in workload.relations.iter().enumerate() {
        standing.change(relation, rows, 1);
    }
    standing.commit();
    let mut figures = BTreeMap::from([
        ("load s".to_owned(), measure::thread_seconds() - start),
        ("peak MB".to_owned(), (allocator::peak_bytes() - before) / 1e6),
        ("live MB".to_owned(), (allocator::live_bytes() - before) / 1e6),
        ("rows".to_owned(), standing.rows() as f64),
        ("checksum".to_owned(), standing.checksum() as f64),
    ]);
    let (mut removed, mut added) = (Vec::new(), Vec::new());
    for _ in 0..changes / 2 {
        let (old, new) = workload.replace();
        for (row, diff, micros) in [(old, -1, &mut removed), (new, 1, &mut added)] {
            let start = measure::thread_seconds();
            standing.change(workload.changing, &[row], diff);
            standing.commit();
            micros.push((measure::thread_seconds() - start) * 1e6);
        }
    }
    if !removed.is_empty() {
        compare::latencies(&mut removed, &mut figures, "removal");
        compare::latencies(&mut added, &mut figures, "addition");
        figures.insert("rows at the end".to_owned(), standing.rows() as f64);
        figures.insert("checksum at the end".to_owned(), standing.checksum() as f64);
    }
    figures
}
