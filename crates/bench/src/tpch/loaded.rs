//! TPC-H over tables that are loaded: what a question asked once costs, what the first build of a
//! view costs, and what changes cost, beside DuckDB over the same rows.
//!
//! Law of the measurement: one session on the caller's thread loads all tables; CPU seconds of each
//! statement are taken alone. Nothing else is installed while a query is measured.
//!
//! - *First builds*: the query as a SELECT, then as a view, which is dropped again; three times, of
//!   which the median counts, since DuckDB answers the query three times from its own tables, on
//!   one thread. The allocator has [`WARM_MB`] in hand before, as DuckDB has after loading: on a
//!   virtual machine fresh memory may cost more than the question. What the first question took is
//!   told beside.
//! - *Copying*, beside changes: the same shares as `DELETE .. WHERE` the key is within a range, and
//!   as COPY of text, before there is a view.
//! - *Changes*: the query as a view. A round takes a share of the orders away, with their lines,
//!   and the next round's share comes back in one commit each. DuckDB makes the same two changes
//!   and answers the query in full after each. A round's figure is the mean of the two.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anabranch_engine::{Options as SessionOptions, Session};
use anabranch_testing::tpch::{TABLES, queries};
use arrow::array::{ArrayRef, AsArray, BooleanArray, RecordBatch};
use arrow::compute::filter_record_batch;
use arrow::datatypes::Int64Type;
use arrow::util::display::array_value_to_string;
use serde_json::{Value, json};

use super::Options;
use crate::report::{self, Spread};
use crate::{measure, rows_file};

/// Rounds of changes of a query.
const ROUNDS: usize = 5;
/// Times that a question is asked, and a view built.
const RUNS: usize = 3;
/// Megabytes that the allocator has in hand before the first question.
const WARM_MB: usize = 1024;
/// Rows of a commit while tables are loaded.
const LOAD_ROWS: usize = 100_000;

/// Runs the benchmark; what is measured is in the options.
///
/// # Errors
/// When the engine or DuckDB refuses something, or the results cannot be kept.
pub(super) fn run(options: &Options, queries: &[usize]) -> Result<(), String> {
    let changed = options.changes.map(|share| Changed::new(options.scale, share));
    let mut peer = match &options.python {
        Some(python) => duckdb(options, python, queries, changed.as_ref())?,
        None => BTreeMap::new(),
    };
    let mut session = loaded(options.scale)?;
    let mut lines = Vec::new();
    if let Some(changed) = &changed {
        let copied = copies(&mut session, changed)?;
        let mut line = summary(options, 0, &copied, None);
        line["case"] = json!("copy");
        print_row(&line);
        lines.push(line);
    }
    for query in queries {
        let text = queries::query(*query, options.scale);
        let ours = match &changed {
            Some(changed) => changes(&mut session, &text, changed),
            None => first_build(&mut session, &text),
        };
        let ours = ours.map_err(|error| format!("q{query}: {error}"))?;
        let line = summary(options, *query, &ours, peer.remove(query));
        print_row(&line);
        lines.push(line);
    }
    let name = if changed.is_some() { "tpch-changes" } else { "tpch-first-build" };
    for figure in ["once_ratio", "build_ratio", "change_ratio"] {
        let ratios: Vec<f64> = lines.iter().filter_map(|line| line[figure].as_f64()).collect();
        if !ratios.is_empty() {
            let spread = Spread::of(ratios);
            println!("{figure}: median {:.2}, {:.2} .. {:.2}", spread.median, spread.min, spread.max);
        }
    }
    println!("kept in {}", report::keep(name, &lines)?.display());
    Ok(())
}

/// CPU seconds by what was measured.
type Figures = Vec<(&'static str, f64)>;

fn cpu<T>(work: impl FnOnce() -> Result<T, anabranch_engine::Error>) -> Result<f64, String> {
    let before = measure::cpu_seconds();
    work().map_err(|error| error.to_string())?;
    Ok(measure::cpu_seconds() - before)
}

fn loaded(scale: f64) -> Result<Session, String> {
    let fail = |error: anabranch_engine::Error| error.to_string();
    let mut session = Session::new(SessionOptions { workers: 0, ..SessionOptions::default() }).map_err(fail)?;
    let load = cpu(|| {
        for table in &TABLES {
            session.execute(table.create)?;
            for batch in table.batches(scale, LOAD_ROWS) {
                session.ingest(table.name, &batch, None, None)?;
                session.commit()?;
            }
        }
        session.wait()
    })?;
    // (Work that is put off until the first read is not the first query's to pay.)
    let settle = cpu(|| {
        for table in &TABLES {
            session.query(&format!("select count(*) from {}", table.name))?;
        }
        Ok(())
    })?;
    println!("loaded in {load:.2} CPU s, read for the first time in {settle:.2}");
    measure::warm(WARM_MB);
    Ok(session)
}

fn first_build(session: &mut Session, text: &str) -> Result<Figures, String> {
    let (mut once, mut build) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        once.push(cpu(|| session.query(text))?);
        build.push(cpu(|| {
            session.execute(&format!("create materialized view answer as {text}"))?;
            session.wait()
        })?);
        session.execute("drop materialized view answer").map_err(|error| error.to_string())?;
    }
    let first = once[0];
    Ok(vec![("once_s", Spread::of(once).median), ("build_s", Spread::of(build).median), ("first_once_s", first)])
}

/// Orders and lines that go and come, by round.
struct Changed {
    /// From which order's key on, and up to which.
    keys: Vec<(i64, i64)>,
    rounds: Vec<[RecordBatch; 2]>,
}

impl Changed {
    fn new(scale: f64, share: f64) -> Changed {
        let table = |name: &str| TABLES.iter().find(|table| table.name == name).expect("a table of the benchmark");
        let all = |name: &str| -> Vec<RecordBatch> { table(name).batches(scale, LOAD_ROWS).collect() };
        let (orders, lines) = (all("orders"), all("lineitem"));
        let keys: Vec<i64> =
            orders.iter().flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values().to_vec()).collect();
        let n = ((keys.len() as f64 * share) as usize).max(1);
        let of_round = |round: usize| {
            let from = (round * keys.len() / ROUNDS).min(keys.len() - n);
            (keys[from], keys.get(from + n).copied().unwrap_or(i64::MAX))
        };
        let keys: Vec<(i64, i64)> = (0..ROUNDS).map(of_round).collect();
        let rounds = keys.iter().map(|range| [within(&orders, *range), within(&lines, *range)]).collect();
        Changed { keys, rounds }
    }
}

/// The rows whose first column is in a range.
fn within(batches: &[RecordBatch], (from, upto): (i64, i64)) -> RecordBatch {
    let parts = batches.iter().map(|batch| {
        let keys: &ArrayRef = batch.column(0);
        let is_within: BooleanArray =
            keys.as_primitive::<Int64Type>().iter().map(|key| key.map(|key| (from..upto).contains(&key))).collect();
        filter_record_batch(batch, &is_within).expect("the mask has an entry a row")
    });
    let parts: Vec<RecordBatch> = parts.filter(|part| part.num_rows() > 0).collect();
    arrow::compute::concat_batches(&parts[0].schema(), &parts).expect("parts of one table have one schema")
}

/// What it costs to take the rows of a round away, and to read them from text again.
fn copies(session: &mut Session, changed: &Changed) -> Result<Figures, String> {
    let (mut deleted, mut copied) = (Vec::new(), Vec::new());
    for ((from, upto), rows) in changed.keys.iter().zip(&changed.rounds) {
        let within = |key: &str| format!("{key} >= {from} and {key} < {upto}");
        deleted.push(cpu(|| {
            session.execute(&format!("delete from orders where {}", within("o_orderkey")))?;
            session.execute(&format!("delete from lineitem where {}", within("l_orderkey")))?;
            session.wait()
        })?);
        let texts = rows.each_ref().map(text);
        copied.push(cpu(|| {
            for (table, text) in ["orders", "lineitem"].into_iter().zip(&texts) {
                session.execute(&format!("copy {table} from stdin"))?;
                session.copy_data(text.as_bytes())?;
                session.copy_done()?;
            }
            session.wait()
        })?);
    }
    let median = |seconds: Vec<f64>| Spread::of(seconds[1..].to_vec()).median;
    Ok(vec![("delete_s", median(deleted)), ("copy_s", median(copied))])
}

/// Rows as COPY reads them. (No text of theirs has a tab or a backslash.)
fn text(rows: &RecordBatch) -> String {
    let cell = |column: &ArrayRef, row: usize| array_value_to_string(column, row).expect("a value has a text");
    let line = |row: usize| rows.columns().iter().map(|column| cell(column, row)).collect::<Vec<_>>().join("\t");
    (0..rows.num_rows()).map(|row| line(row) + "\n").collect()
}

fn changes(session: &mut Session, text: &str, changed: &Changed) -> Result<Figures, String> {
    session.execute(&format!("create materialized view answer as {text}")).map_err(|error| error.to_string())?;
    session.wait().map_err(|error| error.to_string())?;
    let mut seconds = Vec::new();
    for rows in &changed.rounds {
        for diff in [-1, 1] {
            seconds.push(cpu(|| {
                for (table, rows) in ["orders", "lineitem"].into_iter().zip(rows) {
                    let diffs = vec![diff; rows.num_rows()];
                    session.ingest(table, rows, None, Some(diffs.as_slice()))?;
                }
                session.commit()?;
                session.wait()
            })?);
        }
    }
    session.execute("drop materialized view answer").map_err(|error| error.to_string())?;
    // (The first round sorts what loading has put off.)
    Ok(vec![("change_s", Spread::of(seconds[2..].to_vec()).median), ("first_change_s", seconds[0])])
}

/// DuckDB's figures by query.
fn duckdb(
    options: &Options,
    python: &Path,
    queries: &[usize],
    changed: Option<&Changed>,
) -> Result<BTreeMap<usize, Value>, String> {
    let folder = std::env::temp_dir().join(format!("anabranch-tpch-{}", std::process::id()));
    let fail = |error: std::io::Error| format!("cannot write {}: {error}", folder.display());
    fs::create_dir_all(&folder).map_err(fail)?;
    for table in &TABLES {
        rows_file::write(&folder.join(format!("{}.parquet", table.name)), table.batches(options.scale, 1 << 16))?;
    }
    let texts: serde_json::Map<String, Value> =
        queries.iter().map(|query| (query.to_string(), queries::query(*query, options.scale).into())).collect();
    let ranges: Vec<Value> =
        changed.iter().flat_map(|changed| &changed.keys).map(|(from, upto)| json!([from, upto])).collect();
    let spec = json!({"queries": texts, "ranges": ranges});
    fs::write(folder.join("spec.json"), spec.to_string()).map_err(fail)?;
    let output = Command::new(python).arg("tests/compare/tpch_loaded.py").arg(&folder).output();
    let removed = fs::remove_dir_all(&folder);
    let output = output.map_err(|error| format!("cannot start DuckDB: {error}"))?;
    removed.map_err(fail)?;
    if !output.status.success() {
        return Err(format!("DuckDB failed: {}", String::from_utf8_lossy(&output.stderr)));
    }
    let all: BTreeMap<String, Value> =
        serde_json::from_slice(&output.stdout).map_err(|error| format!("DuckDB printed no result: {error}"))?;
    Ok(all.into_iter().filter_map(|(query, figures)| Some((query.parse().ok()?, figures))).collect())
}

fn summary(options: &Options, query: usize, ours: &Figures, peer: Option<Value>) -> Value {
    let mut line = json!({
        "bench": "tpch-loaded", "case": format!("q{query:02}"), "scale": options.scale, "changes": options.changes,
        "unit": "CPU s",
    });
    for (name, seconds) in ours {
        line[*name] = json!(seconds);
        let Some(of_peer) = peer.as_ref().and_then(|peer| peer["cpu_s"].as_f64()) else { continue };
        line["duckdb_s"] = json!(of_peer);
        if let Some(ratio) = name.strip_suffix("_s").filter(|name| !name.starts_with("first")) {
            line[format!("{ratio}_ratio")] = json!(seconds / of_peer);
        }
    }
    line
}

fn print_row(line: &Value) {
    let figures = line.as_object().into_iter().flatten().filter_map(|(name, value)| Some((name, value.as_f64()?)));
    let shown: Vec<String> = figures
        .filter(|(name, _)| name.ends_with("_s") || name.ends_with("_ratio"))
        .map(|(name, value)| format!("{name} {value:.4}"))
        .collect();
    println!("{}  {}", line["case"].as_str().unwrap_or_default(), shown.join("  "));
}

/// A Python interpreter, as an option.
pub(super) type Python = PathBuf;
