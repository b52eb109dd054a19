//! TPC-H as maintained views: how many tuples a second each of the 22 queries takes in, ours and
//! the peer's.
//!
//! Law of the measurement: rows are generated before the clock starts; each round gives every
//! relation that the query reads its next `--physical` rows, and then the answer is current before
//! the next round begins. Within a round every `--logical` rows of a relation have a time of their
//! own (1: every row; as many as `--physical`: one time a round). Tuples are those of the relations
//! read. Ours and the peer's runs take turns, each in a process of its own. Rates are tuples by CPU
//! seconds: the machine may be busy with other things.
//!
//! No reader reads the answer between commits, so ours adds up the times inside a round before it
//! works on them (`Dataflows::horizons`), while the peer computes the changes of its answer at
//! each. `--every-time` is the like for like: a subscription gets ours of every time.
//!
//! Rows are given back as they are taken in, unless `--keep-rows`. The allocator keeps what it is
//! given back, and has [`WARM_MB`] in hand when the clock starts (on both sides), so that runs do
//! not measure how fast the system clears pages: on a virtual machine that may be a third of the
//! time, or nothing. `peak_mb` is the most resident memory of the process, the generated rows and
//! that included; `grown_mb` is how much of that came after the clock started: for figures of
//! memory `--keep-rows`, with which the allocator has nothing in hand. The relations keep nothing
//! themselves (`retain = 'none'`), so what is measured is the query and the arrangement of its
//! result.
//!
//! Sketch on paper for scale 1: 6 M line items in 60 rounds of 1e5. A round that joins sorts its
//! rows (about 60 ns a row), merges each row about six times (20 ns each), probes and gathers (100
//! ns): near 0.4 µs a join and row, so three joins leave about 1 M tuples a second. What saturates
//! is memory bandwidth in merges and gathers, and cache misses in probes.

mod loaded;
mod ours;

use std::process::Command;

use anabranch_peer::tpch as peer;
use anabranch_testing::tpch::TABLES;
use clap::Args;
use serde_json::{Value, json};

use crate::measure;
use crate::report::{self, Spread};

/// Megabytes that the allocator has in hand when the clock starts: more than either side grows by,
/// but for the peer where every row has a time.
const WARM_MB: usize = 1024;

/// Options of the benchmark.
#[derive(Args, Clone)]
pub struct Options {
    /// Scale factor; 1 has 6 million line items.
    #[arg(long, default_value_t = 1.0)]
    scale: f64,
    /// Queries to run; all 22 unless given.
    #[arg(long, value_delimiter = ',')]
    query: Vec<usize>,
    /// Rows of each relation that have one time.
    #[arg(long, default_value_t = 100_000)]
    logical: usize,
    /// Rows of each relation in a round.
    #[arg(long, default_value_t = 100_000)]
    physical: usize,
    /// Rows of each relation after which a run stops; 0 takes all.
    #[arg(long, default_value_t = 0)]
    rows: usize,
    /// Worker threads of ours; 0 works on the caller's thread.
    #[arg(long, default_value_t = 0)]
    workers: usize,
    /// Runs of each query.
    #[arg(long, default_value_t = 3)]
    runs: usize,
    /// Ours alone.
    #[arg(long)]
    alone: bool,
    /// Ours gives out the changes of the answer at every time, to a subscription, instead of
    /// keeping the answer for reads after commits.
    #[arg(long)]
    every_time: bool,
    /// Compare the final answers instead of measuring.
    #[arg(long)]
    check: bool,
    /// Keep the generated rows until the end: for figures of memory. Rates are then lower, since
    /// the engine's memory comes fresh from the system instead of from rows that were given back.
    #[arg(long)]
    keep_rows: bool,
    /// One JSON object a line instead of a table.
    #[arg(long)]
    json: bool,
    /// Measure questions asked once, and first builds of views, over tables that are loaded.
    #[arg(long)]
    first_build: bool,
    /// Measure changes of this share of the orders, with their lines, over tables that are loaded.
    #[arg(long, conflicts_with = "first_build")]
    changes: Option<f64>,
    /// A Python interpreter with `duckdb`, which then answers beside.
    #[arg(long)]
    python: Option<loaded::Python>,
}

/// One run of one query, in this process.
#[derive(Args, Clone)]
pub struct Case {
    #[arg(long)]
    query: usize,
    #[arg(long)]
    scale: f64,
    #[arg(long)]
    logical: usize,
    #[arg(long)]
    physical: usize,
    #[arg(long)]
    rows: usize,
    #[arg(long)]
    workers: usize,
    #[arg(long)]
    keep_rows: bool,
    #[arg(long)]
    every_time: bool,
    /// The peer's side.
    #[arg(long)]
    peer: bool,
}

/// Runs the benchmark.
///
/// # Errors
/// When a run fails, answers differ, or the results cannot be kept.
pub fn run(options: &Options) -> Result<(), String> {
    if options.logical == 0 || options.physical == 0 {
        return Err("--logical and --physical are at least 1".to_owned());
    }
    let queries = if options.query.is_empty() { (1..=22).collect() } else { options.query.clone() };
    if options.check {
        return check(options, &queries);
    }
    if options.first_build || options.changes.is_some() {
        return loaded::run(options, &queries);
    }
    let mut lines = Vec::new();
    if !options.json {
        print_head(options);
    }
    for query in queries {
        let (mut ours, mut peer) = (Vec::new(), Vec::new());
        for _ in 0..options.runs {
            ours.push(start_case(options, query, Side::Ours)?);
            if !options.alone && peer::QUERIES.contains(&query) {
                peer.push(start_case(options, query, Side::Peer)?);
            }
        }
        let line = summary(query, options, &ours, &peer);
        if options.json {
            println!("{line}");
        } else {
            print_row(&line);
        }
        lines.push(line);
    }
    if let Some(mean) = geometric_mean(&lines) {
        let line = json!({"bench": "tpch", "case": "geometric mean", "unit": "ratio", "ratio": mean});
        if options.json {
            println!("{line}")
        } else {
            println!("geometric mean of the ratios: {mean:.2}")
        }
        lines.push(line);
    }
    let path = report::keep("tpch", &lines)?;
    if !options.json {
        println!("kept in {}", path.display());
    }
    Ok(())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Ours,
    Peer,
}

fn case(options: &Options, query: usize, side: Side) -> Case {
    Case {
        query,
        scale: options.scale,
        logical: options.logical,
        physical: options.physical,
        rows: options.rows,
        workers: options.workers,
        keep_rows: options.keep_rows,
        every_time: options.every_time && !options.check,
        peer: side == Side::Peer,
    }
}

fn start_case(options: &Options, query: usize, side: Side) -> Result<Value, String> {
    let program = std::env::current_exe().map_err(|error| format!("where is this program? {error}"))?;
    let Case { scale, logical, physical, rows, workers, keep_rows, every_time, peer, .. } = case(options, query, side);
    let output = Command::new(program)
        .args(["tpch-case", "--query", &query.to_string(), "--scale", &scale.to_string()])
        .args(["--logical", &logical.to_string(), "--physical", &physical.to_string(), "--rows", &rows.to_string()])
        .args(["--workers", &workers.to_string()])
        .args(keep_rows.then_some("--keep-rows"))
        .args(every_time.then_some("--every-time"))
        .args(peer.then_some("--peer"))
        .env("MIMALLOC_PURGE_DELAY", "-1")
        .output()
        .map_err(|error| format!("cannot start a run: {error}"))?;
    if !output.status.success() {
        return Err(format!("query {query} failed: {}", String::from_utf8_lossy(&output.stderr)));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| format!("query {query} printed no result: {error}"))
}

/// Runs one case and prints its figures.
///
/// # Errors
/// When the engine refuses something.
pub fn run_case(case: &Case) -> Result<(), String> {
    let figures = if case.peer { run_peer(case, false).0 } else { ours::run(case, false)?.0 };
    println!("{figures}");
    Ok(())
}

fn run_peer(case: &Case, check: bool) -> (Value, peer::Contents) {
    let Case { query, scale, logical, physical, rows, .. } = *case;
    let rows = if rows == 0 { usize::MAX } else { rows };
    let batches = |name: &str, scale: f64| {
        let table = TABLES.iter().find(|table| table.name == name).expect("a table of the benchmark");
        table.batches(scale, 1 << 16)
    };
    let usage = if case.keep_rows { usage } else { usage_warmed };
    let run = peer::run(peer::Case { query, scale, logical, physical, rows, check, batches, usage });
    let [start, end] = run.usage;
    let figures = json!({
        "tuples": run.tuples, "seconds": run.seconds, "tuples_per_s": run.tuples as f64 / run.seconds,
        "cpu_s": end.cpu_s - start.cpu_s, "longest_round_ms": run.longest_round_ms,
        "peak_mb": end.memory_mb, "grown_mb": end.memory_mb - start.memory_mb,
    });
    (figures, run.contents)
}

fn usage_warmed(moment: peer::Moment) -> peer::Usage {
    if matches!(moment, peer::Moment::Start) {
        measure::warm(WARM_MB);
    }
    usage(moment)
}

fn usage(moment: peer::Moment) -> peer::Usage {
    let memory_mb = match moment {
        peer::Moment::Start => {
            measure::reset_peak();
            measure::resident_mb()
        }
        peer::Moment::End => measure::peak_mb(),
    };
    peer::Usage { cpu_s: measure::cpu_seconds(), memory_mb }
}

/// Compares the final answers. Ours may be the first rows of the peer's.
fn check(options: &Options, queries: &[usize]) -> Result<(), String> {
    for &query in queries.iter().filter(|query| peer::QUERIES.contains(query)) {
        let (_, ours) = ours::run(&case(options, query, Side::Ours), true)?;
        let (_, peers) = run_peer(&case(options, query, Side::Peer), true);
        let (ours, peers) = (rounded(ours), rounded(peers));
        let only_ours = ours.iter().find(|(row, count)| peers.get(*row) != Some(count));
        if let Some((row, count)) = only_ours {
            let near = peers.keys().find(|other| other[0] == row[0]);
            return Err(format!("query {query}: {count} times {row:?}, which the peer has not; it has {near:?}"));
        }
        let limited = [3, 18, 21].contains(&query);
        let enough = if limited { ours.len() >= peers.len().min(10) } else { ours.len() == peers.len() };
        if !enough {
            return Err(format!("query {query}: {} rows, the peer has {}", ours.len(), peers.len()));
        }
        println!("q{query:02}: {} rows agree (the peer has {})", ours.len(), peers.len());
    }
    Ok(())
}

/// Numbers to seven places, small ones (means) to four: ours have so many. The sum of nothing is no
/// row at the peer.
fn rounded(contents: peer::Contents) -> peer::Contents {
    let cell = |cell: String| match cell.parse::<f64>() {
        Ok(number) if number != 0.0 && number.abs() < 1.0 => format!("{number:.3e}"),
        Ok(number) if number != 0.0 => format!("{number:.6e}"),
        Ok(_) => "0".to_owned(),
        Err(_) => cell,
    };
    let rows = contents.into_iter().filter(|(row, _)| row.iter().any(|cell| !cell.is_empty()));
    rows.map(|(row, count)| (row.into_iter().map(cell).collect(), count)).collect()
}

fn spread(runs: &[Value], name: &str) -> Spread {
    Spread::of(runs.iter().map(|run| run[name].as_f64().unwrap_or(f64::NAN)))
}

/// Tuples by CPU second.
fn rates(runs: &[Value]) -> Spread {
    let rate = |run: &Value| run["tuples"].as_f64().unwrap_or(f64::NAN) / run["cpu_s"].as_f64().unwrap_or(f64::NAN);
    Spread::of(runs.iter().map(rate))
}

fn side(runs: &[Value]) -> Value {
    let (rate, wall) = (rates(runs), spread(runs, "tuples_per_s"));
    json!({
        "rate": rate.median, "rate_min": rate.min, "rate_max": rate.max, "wall_rate": wall.median,
        "cpu_s": spread(runs, "cpu_s").median,
        "longest_round_ms": spread(runs, "longest_round_ms").median,
        "peak_mb": spread(runs, "peak_mb").median,
        "grown_mb": spread(runs, "grown_mb").median,
    })
}

fn summary(query: usize, options: &Options, ours: &[Value], peer: &[Value]) -> Value {
    let ratio = (!peer.is_empty()).then(|| rates(ours).median / rates(peer).median);
    json!({
        "bench": "tpch",
        "case": format!("q{query:02}"),
        "scale": options.scale,
        "logical": options.logical,
        "physical": options.physical,
        "keep_rows": options.keep_rows,
        "every_time": options.every_time,
        "unit": "tuples/CPU s",
        "tuples": ours[0]["tuples"],
        "ours": side(ours),
        "peer": (!peer.is_empty()).then(|| side(peer)),
        "ratio": ratio,
    })
}

fn geometric_mean(lines: &[Value]) -> Option<f64> {
    let ratios: Vec<f64> = lines.iter().filter_map(|line| line["ratio"].as_f64()).collect();
    let mean = ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64;
    (!ratios.is_empty()).then(|| mean.exp())
}

fn print_head(options: &Options) {
    println!(
        "TPC-H, scale {}, rows of each relation: {} a time, {} a round; {} run(s); M tuples by CPU second",
        options.scale, options.logical, options.physical, options.runs
    );
    println!(
        "query    tuples     ours   (least .. most)   CPU s  grown MB  round ms |    peer   (least .. most)   CPU s  grown MB  round ms |  ratio"
    );
}

fn print_row(line: &Value) {
    let number = |side: &str, name: &str| line[side][name].as_f64().unwrap_or(f64::NAN);
    let side = |name: &str| {
        format!(
            "{:>7.2}   ({:.2} .. {:.2})   {:>6.2}   {:>6.0}   {:>6.0}",
            number(name, "rate") / 1e6,
            number(name, "rate_min") / 1e6,
            number(name, "rate_max") / 1e6,
            number(name, "cpu_s"),
            number(name, "grown_mb"),
            number(name, "longest_round_ms"),
        )
    };
    let ours = side("ours");
    let query = line["case"].as_str().unwrap_or_default();
    match line["ratio"].as_f64() {
        Some(ratio) => println!("{query}  {:>9}  {ours}  | {}  | {ratio:>6.2}", line["tuples"], side("peer")),
        None => println!("{query}  {:>9}  {ours}  |", line["tuples"]),
    }
}
