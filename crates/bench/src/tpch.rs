//! TPC-H as maintained views: how many tuples a second each of the 22 queries takes in.
//!
//! Law of the measurement: rows are generated before the clock starts; each round gives every relation that the query reads its next
//! `--logical` rows, as one commit, and then the view is read to be current before the next round begins. Tuples are those of the relations read.
//! Rows are given back as they are taken in, unless `--keep-rows`.
//! `peak_mb` is the most resident memory of the process, the generated rows included; `grown_mb` is how much of that came
//! after the clock started: a lower bound of the query's own, since the allocator first reuses what the generator gave back.
//! The relations keep nothing themselves (`retain = 'none'`), so what is measured is the query and the arrangement of its result.
//!
//! Sketch on paper for scale 1: 6 M line items in 60 rounds of 1e5. A round that joins sorts its rows (about 60 ns a row), merges each row about
//! six times (20 ns each), probes and gathers (100 ns): near 0.4 µs a join and row, so three joins leave about 1 M tuples a second. What saturates is memory
//! bandwidth in merges and gathers, and cache misses in probes.

use std::process::Command;
use std::time::Instant;

use anabranch_engine::{Options as SessionOptions, Session};
use anabranch_testing::tpch::{Table, queries};
use arrow::array::RecordBatch;
use clap::Args;
use serde_json::{Value, json};

use crate::measure;
use crate::report::{self, Spread};

/// Options of the benchmark.
#[derive(Args, Clone)]
pub struct Options {
    /// Scale factor; 1 has 6 million line items.
    #[arg(long, default_value_t = 1.0)]
    scale: f64,
    /// Queries to run; all 22 unless given.
    #[arg(long, value_delimiter = ',')]
    query: Vec<usize>,
    /// Rows of each relation in a commit.
    #[arg(long, default_value_t = 100_000)]
    logical: usize,
    /// Worker threads; 0 works on the caller's thread.
    #[arg(long, default_value_t = 0)]
    workers: usize,
    /// Runs of each query.
    #[arg(long, default_value_t = 3)]
    runs: usize,
    /// Keep the generated rows until the end: for figures of memory. Rates are then lower, since the engine's memory
    /// comes fresh from the system instead of from rows that were given back.
    #[arg(long)]
    keep_rows: bool,
    /// One JSON object a line instead of a table.
    #[arg(long)]
    json: bool,
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
    workers: usize,
    #[arg(long)]
    keep_rows: bool,
}

/// Runs the benchmark.
///
/// # Errors
/// When a run fails or the results cannot be kept.
pub fn run(options: &Options) -> Result<(), String> {
    let queries = if options.query.is_empty() { (1..=22).collect() } else { options.query.clone() };
    let mut lines = Vec::new();
    if !options.json {
        println!(
            "TPC-H, scale {}, {} rows of each relation a commit, {} run(s)",
            options.scale, options.logical, options.runs
        );
        println!(
            "query   tuples   M tuples/s  (least .. most)    CPU s   longest round ms   peak MB   grown MB   rows"
        );
    }
    for query in queries {
        let runs = (0..options.runs).map(|_| start_case(options, query)).collect::<Result<Vec<_>, _>>()?;
        let line = summary(query, options, &runs);
        if options.json {
            println!("{line}");
        } else {
            print_row(query, &runs);
        }
        lines.push(line);
    }
    let path = report::keep("tpch", &lines)?;
    if !options.json {
        println!("kept in {}", path.display());
    }
    Ok(())
}

fn start_case(options: &Options, query: usize) -> Result<Value, String> {
    let program = std::env::current_exe().map_err(|error| format!("where is this program? {error}"))?;
    let keep_rows = options.keep_rows.then_some("--keep-rows");
    let output = Command::new(program)
        .args(["tpch-case", "--query", &query.to_string(), "--scale", &options.scale.to_string()])
        .args(["--logical", &options.logical.to_string(), "--workers", &options.workers.to_string()])
        .args(keep_rows)
        .output()
        .map_err(|error| format!("cannot start a run: {error}"))?;
    if !output.status.success() {
        return Err(format!("query {query} failed: {}", String::from_utf8_lossy(&output.stderr)));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| format!("query {query} printed no result: {error}"))
}

fn field(run: &Value, name: &str) -> f64 {
    run[name].as_f64().unwrap_or(f64::NAN)
}

fn spread(runs: &[Value], name: &str) -> Spread {
    Spread::of(runs.iter().map(|run| field(run, name)))
}

fn summary(query: usize, options: &Options, runs: &[Value]) -> Value {
    let rate = spread(runs, "tuples_per_s");
    json!({
        "bench": "tpch",
        "case": format!("q{query:02}"),
        "scale": options.scale,
        "logical": options.logical,
        "keep_rows": options.keep_rows,
        "unit": "tuples/s",
        "ours": rate.median,
        "ours_min": rate.min,
        "ours_max": rate.max,
        "peer": null,
        "ratio": null,
        "cpu_s": spread(runs, "cpu_s").median,
        "longest_round_ms": spread(runs, "longest_round_ms").median,
        "peak_mb": spread(runs, "peak_mb").median,
        "grown_mb": spread(runs, "grown_mb").median,
        "tuples": runs[0]["tuples"],
        "result_rows": runs[0]["result_rows"],
    })
}

fn print_row(query: usize, runs: &[Value]) {
    let rate = spread(runs, "tuples_per_s");
    println!(
        "q{query:02}  {:>9}   {:>8.2}    ({:.2} .. {:.2})   {:>6.2}   {:>12.0}   {:>11.0}   {:>8.0}   {:>5}",
        runs[0]["tuples"],
        rate.median / 1e6,
        rate.min / 1e6,
        rate.max / 1e6,
        spread(runs, "cpu_s").median,
        spread(runs, "longest_round_ms").median,
        spread(runs, "peak_mb").median,
        spread(runs, "grown_mb").median,
        runs[0]["result_rows"],
    );
}

/// Runs one case and prints its figures.
///
/// # Errors
/// When the engine refuses something.
pub fn run_case(case: &Case) -> Result<(), String> {
    let tables = queries::tables(case.query);
    let rounds = rounds(&tables, case);
    let tuples: usize = rounds.iter().flatten().map(|(_, batch)| batch.num_rows()).sum();

    let mut session = Session::new(SessionOptions { workers: case.workers, ..SessionOptions::default() })
        .map_err(|error| error.to_string())?;
    let execute = |session: &mut Session, sql: &str| session.execute(sql).map_err(|error| format!("{sql}: {error}"));
    for table in &tables {
        execute(&mut session, &without_history(table))?;
    }
    let view = format!("create materialized view answer as {}", queries::query(case.query, case.scale));
    execute(&mut session, &view)?;

    measure::reset_peak();
    let (resident, cpu, start) = (measure::resident_mb(), measure::cpu_seconds(), Instant::now());
    let mut longest_round_ms: f64 = 0.0;
    let mut kept = Vec::new();
    for round in rounds {
        let begin = Instant::now();
        for (table, batch) in &round {
            session.ingest(table, batch, None, None).map_err(|error| error.to_string())?;
        }
        session.commit().map_err(|error| error.to_string())?;
        session.wait().map_err(|error| error.to_string())?;
        longest_round_ms = longest_round_ms.max(begin.elapsed().as_secs_f64() * 1e3);
        if case.keep_rows {
            kept.push(round);
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    let (cpu, peak) = (measure::cpu_seconds() - cpu, measure::peak_mb());
    let answer = session.query("select count(*) from answer").map_err(|error| error.to_string())?;
    let result_rows = arrow::util::display::array_value_to_string(answer.batches[0].column(0), 0).unwrap_or_default();
    println!(
        "{}",
        json!({
            "tuples": tuples, "seconds": seconds, "tuples_per_s": tuples as f64 / seconds, "cpu_s": cpu,
            "longest_round_ms": longest_round_ms, "peak_mb": peak, "grown_mb": peak - resident, "result_rows": result_rows,
        })
    );
    Ok(())
}

/// The rows of each round: the next `logical` rows of each relation that has some left.
fn rounds(tables: &[&'static Table], case: &Case) -> Vec<Vec<(&'static str, RecordBatch)>> {
    let mut open: Vec<_> = tables.iter().map(|table| (table.name, table.batches(case.scale, case.logical))).collect();
    let mut rounds = Vec::new();
    loop {
        let round: Vec<_> = open.iter_mut().filter_map(|(name, batches)| Some((*name, batches.next()?))).collect();
        if round.is_empty() {
            return rounds;
        }
        rounds.push(round);
    }
}

/// The table's statement, without a primary key and keeping no rows.
fn without_history(table: &Table) -> String {
    let columns = table.create.split_once(", primary key").map_or(table.create, |(columns, _)| columns.trim_end());
    format!("{columns}) with (retain = 'none')")
}
