//! Questions about a graph whose parameters come and go while edges change, beside the peer.
//!
//! Law of the measurement: 10 million edges are loaded in one commit; then each thousandth of a
//! second of the run has one question, and its share of the edge changes as a commit of their own
//! before. A question is a parameter that comes in, timed until its answer rows are there, and goes
//! again. Times are CPU time of the one thread, so a rate that the thread cannot keep up with shows
//! as CPU seconds a second above 1.
//!
//! Sketch on paper: a one-hop question probes ten runs of one index, 20 cache misses, 3 µs, and ten
//! rows come out; two hops probe for ten keys more; four for ten thousand. Source: *Shared
//! arrangements* (VLDB 2020), figures 4 and 5.

use std::collections::BTreeMap;

use anabranch_engine::Error;
use anabranch_peer::graphs::Indexes;
use anabranch_peer::standing::{Pair, Standing};
use clap::Args;

use crate::compare::{self, Common, Figures, Side};
use crate::rows::Numbers;
use crate::standing::Tables;
use crate::{allocator, measure};

/// Options of the benchmark.
#[derive(Args, Clone)]
pub struct Options {
    /// Nodes; there are ten times as many edges.
    #[arg(long, default_value_t = 1_000_000)]
    nodes: u64,
    /// Questions of each kind and rate.
    #[arg(long, default_value_t = 500)]
    questions: usize,
    #[command(flatten)]
    common: Common,
}

/// One run on one side, in this process.
#[derive(Args, Clone)]
pub struct Case {
    #[arg(long)]
    nodes: u64,
    #[arg(long)]
    questions: usize,
    /// Each join has an index of its own.
    #[arg(long)]
    apart: bool,
    #[arg(long)]
    side: Side,
}

/// The relations of parameters, in the order of the program, with what is asked: the questions of
/// `docs/graphs.md`, over pairs.
///
/// (The last condition of the paths is no key of a join, so that all joins read one index.)
const QUESTIONS: [(&str, &str); 4] = [
    ("look-up", "SELECT q.a, count(*) AS b FROM asked1 q JOIN edges e ON e.a = q.a GROUP BY q.a"),
    ("one hop", "SELECT e.b AS a, q.a AS b FROM asked2 q JOIN edges e ON e.a = q.a"),
    ("two hops", "SELECT f.b AS a, q.a AS b FROM asked3 q JOIN edges e ON e.a = q.a JOIN edges f ON f.a = e.b"),
    (
        "paths of four",
        "SELECT q.a, q.b FROM asked4 q JOIN edges e ON e.a = q.a JOIN edges f ON f.a = e.b
         JOIN edges g ON g.a = f.b JOIN edges h ON h.a = g.b WHERE least(h.b, q.b) = greatest(h.b, q.b)",
    ),
];

/// Our tables, in the order of the peer's relations.
const RELATIONS: [&str; 5] = ["edges", "asked1", "asked2", "asked3", "asked4"];

/// Edge changes a second.
const RATES: [usize; 3] = [10, 1_000, 100_000];
/// Questions a second.
const QUESTION_RATE: usize = 1_000;

/// Runs the benchmark.
///
/// # Errors
/// When a run fails or the results cannot be kept.
pub fn run(options: &Options) -> Result<(), String> {
    let (nodes, questions) = (options.nodes.to_string(), options.questions.to_string());
    let case = |apart: Option<&str>| {
        let arguments = ["graphs-case", "--nodes", &nodes, "--questions", &questions].into_iter().chain(apart);
        compare::Case { arguments: arguments.map(str::to_owned).collect(), sides: vec![Side::Ours, Side::Peer] }
    };
    compare::run("graphs", &options.common, &[case(None), case(Some("--apart"))])
}

/// Runs one case and prints its figures.
///
/// # Errors
/// When the engine refuses something.
pub fn run_case(case: &Case) -> Result<(), String> {
    measure::warm(1_000);
    allocator::count();
    let measured_case = case.clone();
    let figures = match case.side {
        Side::Ours => {
            let mut ours = ours(case.apart).map_err(|error| error.to_string())?;
            measured(&mut ours, &measured_case)
        }
        Side::Peer | Side::PeerVec => {
            let indexes = if case.apart { Indexes::Apart } else { Indexes::Shared };
            anabranch_peer::graphs::run(indexes, move |peer| measured(peer, &measured_case))
        }
    };
    compare::tell(&figures);
    Ok(())
}

fn measured(standing: &mut dyn Standing, case: &Case) -> Figures {
    let sharing = if case.apart { "apart" } else { "shared" };
    let mut figures = Figures::new();
    let mut ends = Numbers::new(1, case.nodes);
    let mut edges: Vec<Pair> = (0..case.nodes * 10).map(|_| (next(&mut ends), next(&mut ends))).collect();
    let (before, start) = (allocator::live_bytes(), measure::thread_seconds());
    standing.change(0, &edges, 1);
    standing.commit();
    let load = BTreeMap::from([
        ("load s".to_owned(), measure::thread_seconds() - start),
        ("live MB".to_owned(), (allocator::live_bytes() - before) / 1e6),
    ]);
    figures.insert(format!("{sharing}: {} edges", edges.len()), load);
    let mut places = Numbers::new(2, edges.len() as u64);
    let mut asked = Numbers::new(3, case.nodes);
    for rate in RATES {
        let start = measure::thread_seconds();
        let mut micros = vec![Vec::new(); QUESTIONS.len()];
        let mut due = 0;
        for question in 0..case.questions * QUESTIONS.len() {
            due += rate;
            let changes = due / QUESTION_RATE;
            due %= QUESTION_RATE;
            if changes > 0 {
                change_edges(standing, &mut edges, changes, &mut places, &mut ends);
            }
            let kind = question % QUESTIONS.len();
            let parameter = [(next(&mut asked), next(&mut asked))];
            let begin = measure::thread_seconds();
            standing.change(kind + 1, &parameter, 1);
            standing.commit();
            micros[kind].push((measure::thread_seconds() - begin) * 1e6);
            standing.change(kind + 1, &parameter, -1);
            standing.commit();
        }
        let seconds = (case.questions * QUESTIONS.len()) as f64 / QUESTION_RATE as f64;
        let used = (measure::thread_seconds() - start) / seconds;
        for ((name, _), mut micros) in QUESTIONS.iter().zip(micros) {
            let mut of_question = BTreeMap::from([("CPU s a second".to_owned(), used)]);
            compare::latencies(&mut micros, &mut of_question, "answer");
            figures.insert(format!("{sharing}, {rate} changes/s: {name}"), of_question);
        }
    }
    figures
}

fn next(numbers: &mut Numbers) -> u64 {
    numbers.next().expect("numbers do not end")
}

fn change_edges(
    standing: &mut dyn Standing,
    edges: &mut [Pair],
    changes: usize,
    places: &mut Numbers,
    ends: &mut Numbers,
) {
    let (mut old, mut new) = (Vec::new(), Vec::new());
    for _ in 0..changes.div_ceil(2) {
        let edge = (next(ends), next(ends));
        new.push(edge);
        old.push(std::mem::replace(&mut edges[next(places) as usize], edge));
    }
    standing.change(0, &old, -1);
    standing.change(0, &new, 1);
    standing.commit();
}

/// Our side: a view a question over tables of parameters, on the caller's thread.
fn ours(apart: bool) -> Result<Tables, Error> {
    let mut tables = Tables::new(&RELATIONS)?;
    match apart {
        true => tables.session.execute("SET sharing = off")?,
        false => tables.session.execute("CREATE INDEX edges_by_a ON edges (a)")?,
    };
    for (name, query) in QUESTIONS {
        tables.keep(&name.replace([' ', '-'], "_"), query)?;
    }
    Ok(tables)
}
