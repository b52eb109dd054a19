//! How quickly rows come into a table: one value after the other, and as the text of one INSERT.
//!
//! Law of the measurement: a session on the caller's thread, a table that nothing reads; CPU
//! seconds from the first value to the last commit. Values are computed on the way (two
//! multiplications a row). Sketch on paper: a number is written in 2 to 3 ns, a text of eight
//! letters in 10, so a row of four columns takes some 30 ns: 30 M rows a CPU second, less what the
//! table does with them.

use anabranch_engine::appender::AppendedValue;
use anabranch_engine::{Options as SessionOptions, Session};
use clap::Args;
use serde_json::{Value as Json, json};

use crate::measure;
use crate::report::{self, Spread};

/// Options of the benchmark.
#[derive(Args, Clone)]
pub struct Options {
    /// Rows of the appender.
    #[arg(long, default_value_t = 10_000_000)]
    rows: i64,
    /// Rows of one INSERT.
    #[arg(long, default_value_t = 200_000)]
    insert_rows: i64,
    /// Columns of the wide table, of which one INSERT gives ten rows.
    #[arg(long, default_value_t = 1_000)]
    columns: usize,
    /// Runs of each case.
    #[arg(long, default_value_t = 3)]
    runs: usize,
}

/// Runs the benchmark.
///
/// # Errors
/// When the engine refuses something, or the results cannot be kept.
pub fn run(options: &Options) -> Result<(), String> {
    let mut lines = vec![
        case(options, "appender, bigint and double", options.rows, |session| append_numbers(session, options.rows))?,
        case(options, "appender, bigint, double, timestamp and text", options.rows, |session| {
            append_mixed(session, options.rows)
        })?,
        case(options, "one INSERT of many VALUES", options.insert_rows, |session| {
            insert(session, options.insert_rows)
        })?,
    ];
    for columns in [options.columns, 2 * options.columns, 4 * options.columns] {
        let name = format!("one INSERT of ten rows of {columns} columns");
        lines.push(case(options, &name, 10, |session| insert_wide(session, columns))?);
    }
    println!("kept in {}", report::keep("append", &lines)?.display());
    Ok(())
}

type Outcome = Result<f64, anabranch_engine::Error>;

/// Measures one case, each run in a session of its own.
fn case(options: &Options, name: &str, rows: i64, run: impl Fn(&mut Session) -> Outcome) -> Result<Json, String> {
    let mut seconds = Vec::new();
    for _ in 0..options.runs {
        let session = Session::new(SessionOptions { workers: 0, ..SessionOptions::default() });
        let mut session = session.map_err(|error| error.to_string())?;
        seconds.push(run(&mut session).map_err(|error| error.to_string())?);
    }
    let spread = Spread::of(seconds);
    println!(
        "{name}: {rows} rows in {:.3} CPU s ({:.3} .. {:.3}), {:.2} M rows a CPU second",
        spread.median,
        spread.min,
        spread.max,
        rows as f64 / spread.median / 1e6
    );
    Ok(json!({
        "bench": "append", "case": name, "unit": "rows/CPU s", "rows": rows, "cpu_s": spread.median,
        "cpu_s_min": spread.min, "cpu_s_max": spread.max, "ours": rows as f64 / spread.median,
    }))
}

/// CPU seconds of some work.
fn timed(work: impl FnOnce() -> Result<(), anabranch_engine::Error>) -> Outcome {
    let cpu = measure::cpu_seconds();
    work()?;
    Ok(measure::cpu_seconds() - cpu)
}

fn append_numbers(session: &mut Session, rows: i64) -> Outcome {
    session.execute("create table t (id bigint, price double precision)")?;
    timed(|| {
        let mut appender = session.appender("t")?;
        for id in 0..rows {
            appender.append(id.wrapping_mul(7919))?;
            appender.append(id as f64 * 0.25)?;
            appender.end_row()?;
        }
        appender.finish().map(|_| ())
    })
}

fn append_mixed(session: &mut Session, rows: i64) -> Outcome {
    session.execute("create table t (id bigint, price double precision, at timestamp, symbol text)")?;
    let symbols = ["ANAB", "BRANCH", "CHANNEL", "DELTA"];
    timed(|| {
        let mut appender = session.appender("t")?;
        for id in 0..rows {
            appender.append(id.wrapping_mul(7919))?;
            appender.append(id as f64 * 0.25)?;
            appender.append(AppendedValue::Timestamp(1_700_000_000_000_000 + id))?;
            appender.append(symbols[id as usize % symbols.len()])?;
            appender.end_row()?;
        }
        appender.finish().map(|_| ())
    })
}

fn insert(session: &mut Session, rows: i64) -> Outcome {
    session.execute("create table t (id bigint, price double precision, symbol text)")?;
    let values: Vec<String> = (0..rows).map(|id| format!("({id}, {}.25, 'symbol {id}')", id % 1000)).collect();
    let script = format!("insert into t values {}", values.join(", "));
    timed(|| session.execute(&script).map(|_| ()))
}

fn insert_wide(session: &mut Session, columns: usize) -> Outcome {
    let names: Vec<String> = (0..columns).map(|n| format!("column_{n} bigint")).collect();
    session.execute(&format!("create table t ({})", names.join(", ")))?;
    let row = |row: usize| (0..columns).map(|n| (row + n).to_string()).collect::<Vec<_>>().join(", ");
    let rows: Vec<String> = (0..10).map(|n| format!("({})", row(n))).collect();
    let script = format!("insert into t values {}", rows.join(", "));
    timed(|| session.execute(&script).map(|_| ()))
}
