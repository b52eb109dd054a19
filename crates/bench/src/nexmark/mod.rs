//! Nexmark: the queries q0 to q22 over streams of an auction house, ours and DuckDB's over the same
//! rows.
//!
//! Law of the measurement: each round gives every stream that the query reads its next `--physical`
//! events in one commit, and takes the changes of the answer from a subscription. Relations keep
//! nothing, so what is held is the query's state. Events are the rows of the streams read. Rows are
//! generated between rounds, while the clock stands. Rates are events by CPU second.
//!
//! `peak_mb` is resident memory, the rows of one round included. `held_mb` is what the allocator
//! counts at the end, and `growth` compares that with the half of the
//! run, in percent.
//!
//! With `--warm` the allocator keeps what it is given back, and has [`WARM_MB`] in hand when the
//! clock starts, as in `tpch`: then runs of one and of several workers do not differ by the pages
//! that more threads touch for the first time. Memory is not measured then.
//!
//! With `--python`, an interpreter that has `duckdb`, DuckDB answers the same question once, in
//! full, over the same rows in its own tables, on one thread, in a process of its own
//! (`tests/compare/nexmark.py`). With `--check`, ours keeps the answer as a view and both answers
//! are compared instead.

mod ours;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anabranch_testing::nexmark::Stream;
use anabranch_testing::nexmark::queries::{QUERIES, Query};
use arrow::array::RecordBatch;
use clap::Args;
use serde_json::{Value, json};

use crate::report::{self, Spread};
use crate::rows_file;

/// Memory in hand before a run that is warmed.
const WARM_MB: usize = 1024;

/// Options of the benchmark.
#[derive(Args, Clone)]
pub struct Options {
    /// Events of all three streams.
    #[arg(long, default_value_t = 10_000_000)]
    events: u64,
    /// Queries to run; all 23 unless given.
    #[arg(long, value_delimiter = ',')]
    query: Vec<usize>,
    /// Events of a commit.
    #[arg(long, default_value_t = 100_000)]
    physical: u64,
    /// Worker threads of ours; 0 works on the caller's thread.
    #[arg(long, default_value_t = 0)]
    workers: usize,
    /// Runs of each query.
    #[arg(long, default_value_t = 1)]
    runs: usize,
    /// Begin with memory in hand, which is not measured then.
    #[arg(long)]
    warm: bool,
    /// A Python interpreter with `duckdb`.
    #[arg(long)]
    python: Option<PathBuf>,
    /// Compare answers instead of measuring; needs `--python`.
    #[arg(long, requires = "python")]
    check: bool,
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
    events: u64,
    #[arg(long)]
    physical: u64,
    #[arg(long)]
    workers: usize,
    #[arg(long)]
    warm: bool,
    /// Where the answer is to be written; then nothing is measured.
    #[arg(long)]
    answer: Option<PathBuf>,
}

/// Runs the benchmark.
///
/// # Errors
/// When a run fails, answers differ, or the results cannot be kept.
pub fn run(options: &Options) -> Result<(), String> {
    if options.physical == 0 || options.events == 0 {
        return Err("--events and --physical are at least 1".to_owned());
    }
    let wanted = |query: &&Query| options.query.is_empty() || options.query.contains(&query.number);
    let queries: Vec<&Query> = QUERIES.iter().filter(wanted).collect();
    let folder = options.python.as_ref().map(|_| write_tables(options, &queries)).transpose()?;
    let result = match (&folder, options.check) {
        (Some(folder), true) => check(options, &queries, folder),
        _ => measure_all(options, &queries, folder.as_deref()),
    };
    if let Some(folder) = folder {
        fs::remove_dir_all(&folder).map_err(|error| format!("cannot remove {}: {error}", folder.display()))?;
    }
    result
}

/// Runs one case and prints its figures.
///
/// # Errors
/// When the engine refuses something.
pub fn run_case(case: &Case) -> Result<(), String> {
    println!("{}", ours::run(case)?);
    Ok(())
}

fn measure_all(options: &Options, queries: &[&Query], folder: Option<&Path>) -> Result<(), String> {
    if !options.json {
        println!("Nexmark, {} events, {} a commit; M events by CPU second", options.events, options.physical);
        println!(
            "query   events      rate   CPU s  peak MB  held MB  growth |  DuckDB CPU s  peak MB |  ratio   changes out"
        );
    }
    let mut lines = Vec::new();
    for query in queries {
        let (mut ours, mut duckdb) = (Vec::new(), Vec::new());
        for _ in 0..options.runs {
            ours.push(start_case(options, query, None)?);
            if let (Some(python), Some(folder)) = (&options.python, folder) {
                duckdb.push(start_duckdb(python, folder, query)?);
            }
        }
        let line = summary(options, query, &ours, &duckdb);
        if options.json {
            println!("{line}");
        } else {
            print_row(&line);
        }
        lines.push(line);
    }
    let path = report::keep("nexmark", &lines)?;
    if !options.json {
        println!("kept in {}", path.display());
    }
    Ok(())
}

fn start_case(options: &Options, query: &Query, answer: Option<&Path>) -> Result<Value, String> {
    let program = std::env::current_exe().map_err(|error| format!("where is this program? {error}"))?;
    let mut command = Command::new(program);
    command
        .args(["nexmark-case", "--query", &query.number.to_string(), "--events", &options.events.to_string()])
        .args(["--physical", &options.physical.to_string(), "--workers", &options.workers.to_string()]);
    if options.warm {
        command.arg("--warm").env("MIMALLOC_PURGE_DELAY", "-1");
    }
    if let Some(answer) = answer {
        command.arg("--answer").arg(answer);
    }
    output_of(&mut command, query)
}

fn start_duckdb(python: &Path, folder: &Path, query: &Query) -> Result<Value, String> {
    let mut command = Command::new(python);
    command.arg("tests/compare/nexmark.py").arg(folder).arg(query.number.to_string());
    output_of(&mut command, query)
}

fn output_of(command: &mut Command, query: &Query) -> Result<Value, String> {
    let output = command.output().map_err(|error| format!("cannot start a run: {error}"))?;
    let number = query.number;
    if !output.status.success() {
        return Err(format!("q{number} failed: {}", String::from_utf8_lossy(&output.stderr)));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| format!("q{number} printed no result: {error}"))
}

/// Compares the answers at the end of the streams.
fn check(options: &Options, queries: &[&Query], folder: &Path) -> Result<(), String> {
    let python = options.python.as_ref().ok_or("--check needs --python")?;
    let mut different = Vec::new();
    for query in queries {
        let answer = folder.join(format!("q{}.answer.parquet", query.number));
        start_case(options, query, Some(&answer))?;
        let compared = start_duckdb(python, folder, query)?;
        let same = compared["different"] == json!(0);
        let verdict = if same { "agree" } else { "DIFFER" };
        println!("q{}: {} rows {verdict} ({})", query.number, compared["rows"], query.about);
        if !same {
            println!("{}", compared["example"]);
            different.push(query.number);
        }
    }
    if different.is_empty() { Ok(()) } else { Err(format!("answers differ: {different:?}")) }
}

/// Writes the streams and the queries for DuckDB into a folder of this run.
fn write_tables(options: &Options, queries: &[&Query]) -> Result<PathBuf, String> {
    let folder = std::env::temp_dir().join(format!("anabranch-nexmark-{}", std::process::id()));
    let fail = |error: std::io::Error| format!("cannot write {}: {error}", folder.display());
    fs::create_dir_all(&folder).map_err(fail)?;
    for stream in [Stream::Person, Stream::Auction, Stream::Bid, Stream::Side] {
        if queries.iter().any(|query| query.streams.contains(&stream)) {
            let path = folder.join(format!("{}.parquet", stream.name()));
            let rounds = rounds(stream, options.events, 1 << 20);
            rows_file::write(&path, rounds)?;
        }
    }
    let described = queries.iter().map(|query| {
        let streams: Vec<&str> = query.streams.iter().map(|stream| stream.name()).collect();
        (query.number.to_string(), json!({"sql": query.duckdb(), "streams": streams}))
    });
    let described: serde_json::Map<String, Value> = described.collect();
    fs::write(folder.join("queries.json"), Value::Object(described).to_string()).map_err(fail)?;
    Ok(folder)
}

/// The rows of a stream, so many events a batch; those that do not change come once.
fn rounds(stream: Stream, events: u64, physical: u64) -> impl Iterator<Item = RecordBatch> {
    let upto = if stream == Stream::Side { physical } else { events };
    let starts = (0..upto).step_by(physical as usize);
    starts.map(move |from| stream.rows(from, (from + physical).min(upto)))
}

fn median(runs: &[Value], name: &str) -> f64 {
    Spread::of(runs.iter().map(|run| run[name].as_f64().unwrap_or(f64::NAN))).median
}

fn summary(options: &Options, query: &Query, ours: &[Value], duckdb: &[Value]) -> Value {
    let (events, cpu_s) = (median(ours, "events"), median(ours, "cpu_s"));
    let memory = |name: &str| (!options.warm).then(|| median(ours, name));
    let peer =
        (!duckdb.is_empty()).then(|| json!({"cpu_s": median(duckdb, "cpu_s"), "peak_mb": median(duckdb, "peak_mb")}));
    json!({
        "bench": "nexmark", "case": format!("q{}", query.number), "about": query.about,
        "stateless": query.is_stateless, "events_all": options.events, "physical": options.physical,
        "workers": options.workers, "runs": options.runs, "warm": options.warm, "unit": "events/CPU s", "events": events,
        "rate": events / cpu_s, "cpu_s": cpu_s, "seconds": median(ours, "seconds"),
        "peak_mb": memory("peak_mb"), "held_mb": memory("held_mb"),
        "growth_percent": memory("growth_percent"), "changes": median(ours, "changes"),
        "duckdb": peer, "ratio": peer.as_ref().map(|_| cpu_s / median(duckdb, "cpu_s")),
    })
}

fn print_row(line: &Value) {
    let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
    println!(
        "{:5} {:>9} {:>8.2}  {:>6.2}  {:>7.0}  {:>7.1}  {:>5.0}% |  {:>12.2}  {:>7.0} |  {:>5.1}  {:>12}",
        line["case"].as_str().unwrap_or_default(),
        number(&line["events"]),
        number(&line["rate"]) / 1e6,
        number(&line["cpu_s"]),
        number(&line["peak_mb"]),
        number(&line["held_mb"]),
        number(&line["growth_percent"]),
        number(&line["duckdb"]["cpu_s"]),
        number(&line["duckdb"]["peak_mb"]),
        number(&line["ratio"]),
        number(&line["changes"]),
    );
}
