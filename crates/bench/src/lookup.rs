//! How long small questions take: a row by its key, and a new view over an index that exists.
//!
//! Law of the measurement: one session on the caller's thread holds a table of `--rows` rows with a
//! primary key; each sample is one statement, text in, rows out: parsing and planning are part of
//! it. Sketch on paper: a key lookup touches a few cache lines in each of O(log rows) runs, about 2
//! µs; parsing and planning take a few hundred.

use std::time::Instant;

use anabranch_engine::{Options as SessionOptions, Session};
use arrow::array::{Int64Array, RecordBatch, StringViewArray};
use arrow::datatypes::{DataType, Field, Schema};
use clap::Args;
use serde_json::{Value, json};
use std::sync::Arc;

use crate::report;

/// Options of the benchmark.
#[derive(Args, Clone)]
pub struct Options {
    /// Rows of the table.
    #[arg(long, default_value_t = 1_000_000)]
    rows: i64,
    /// Statements of each kind.
    #[arg(long, default_value_t = 200)]
    samples: usize,
    /// One JSON object a line instead of a table.
    #[arg(long)]
    json: bool,
}

/// Runs the benchmark.
///
/// # Errors
/// When the engine refuses something, or the results cannot be kept.
pub fn run(options: &Options) -> Result<(), String> {
    let mut session = filled(options.rows).map_err(|error| error.to_string())?;
    let n = options.rows as usize;
    let key = move |sample: usize| (sample * 7919 + 13) % n;
    let lines = vec![
        case(&mut session, options, "select a row by primary key", |sample| {
            vec![format!("select v from t where k = {}", key(sample))]
        })?,
        case(&mut session, options, "select a row by index", |sample| {
            vec![format!("select k from t where v = 'value {}'", key(sample))]
        })?,
        case(&mut session, options, "install a view of a one-row join on an index, and drop it", |sample| {
            let constant = format!("(select {}::bigint as k) c", key(sample));
            vec![
                format!("create materialized view s as select t.v from {constant} join t on t.k = c.k"),
                "drop materialized view s".to_owned(),
            ]
        })?,
    ];
    let path = report::keep("lookup", &lines)?;
    if !options.json {
        println!("kept in {}", path.display());
    }
    Ok(())
}

fn filled(rows: i64) -> Result<Session, anabranch_engine::Error> {
    let mut session = Session::new(SessionOptions { workers: 0, ..SessionOptions::default() })?;
    session.execute("create table t (k bigint primary key, v text not null); create index t_v on t (v)")?;
    let schema = Arc::new(Schema::new(vec![
        Field::new("k", DataType::Int64, false),
        Field::new("v", DataType::Utf8View, false),
    ]));
    for start in (0..rows).step_by(100_000) {
        let keys = start..(start + 100_000).min(rows);
        let values = StringViewArray::from_iter_values(keys.clone().map(|key| format!("value {key}")));
        let columns: Vec<arrow::array::ArrayRef> = vec![Arc::new(Int64Array::from_iter_values(keys)), Arc::new(values)];
        let batch = RecordBatch::try_new(Arc::clone(&schema), columns).expect("columns fit their schema");
        session.ingest("t", &batch, None, None)?;
        session.commit()?;
    }
    session.wait()?;
    Ok(session)
}

fn case(
    session: &mut Session,
    options: &Options,
    name: &str,
    statements: impl Fn(usize) -> Vec<String>,
) -> Result<Value, String> {
    let mut micros = Vec::with_capacity(options.samples);
    for sample in 0..options.samples {
        let script = statements(sample).join(";");
        let start = Instant::now();
        session.execute(&script).map_err(|error| format!("{script}: {error}"))?;
        micros.push(start.elapsed().as_secs_f64() * 1e6);
    }
    micros.sort_by(f64::total_cmp);
    let at = |share: f64| micros[((micros.len() - 1) as f64 * share) as usize];
    let line = json!({
        "bench": "lookup", "case": name, "unit": "µs", "rows": options.rows, "samples": options.samples,
        "ours": at(0.5), "ours_p99": at(0.99), "ours_max": at(1.0), "peer": null, "ratio": null,
    });
    if options.json {
        println!("{line}");
    } else {
        println!("{name}: median {:.0} µs, p99 {:.0} µs, worst {:.0} µs", at(0.5), at(0.99), at(1.0));
    }
    Ok(line)
}
