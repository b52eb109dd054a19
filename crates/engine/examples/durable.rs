//! Measures a database in a folder: how fast it opens, and how many commits a second it takes.
//!
//! ```text
//!   cargo run --release -p anabranch-engine --example durable -- load FOLDER ROWS
//!   cargo run --release -p anabranch-engine --example durable -- open FOLDER
//!   cargo run --release -p anabranch-engine --example durable -- insert FOLDER CONNECTIONS SECONDS [full|relaxed]
//! ```
//!
//! Results stand in `bench/results/durable.md`.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anabranch_engine::{Database, DatabaseOptions, Error, Outcome};
use arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringViewArray};
use datafusion_common::ScalarValue;

/// Five views over the table: what a dashboard asks.
const VIEWS: &[(&str, &str)] = &[
    ("total", "SELECT count(*) AS n, sum(v) AS v FROM t"),
    ("by_group", "SELECT g, count(*) AS n, sum(v) AS v, max(v) AS high FROM t GROUP BY g"),
    ("by_label", "SELECT s, count(*) AS n FROM t GROUP BY s"),
    ("large", "SELECT g, count(*) AS n FROM t WHERE v > 990 GROUP BY g"),
    ("top", "SELECT k, v FROM t ORDER BY v DESC, k LIMIT 10"),
];

fn rows(first: i64, n_rows: i64) -> RecordBatch {
    let keys = first..first + n_rows;
    let k: ArrayRef = Arc::new(Int64Array::from_iter_values(keys.clone()));
    let g: ArrayRef = Arc::new(Int64Array::from_iter_values(keys.clone().map(|k| k * 7919 % 1000)));
    let v: ArrayRef =
        Arc::new(Float64Array::from_iter_values(keys.clone().map(|k| (k * 104_729 % 100_003) as f64 / 100.0)));
    let s: ArrayRef = Arc::new(StringViewArray::from_iter_values(keys.map(|k| format!("label {}", k % 5000))));
    RecordBatch::try_from_iter([("k", k), ("g", g), ("v", v), ("s", s)]).unwrap()
}

fn open(folder: &str) -> Database {
    let path = Some(PathBuf::from(folder));
    Database::open(DatabaseOptions { path, workers: 2, ..DatabaseOptions::default() }).unwrap()
}

fn load(folder: &str, n_rows: i64) -> Result<(), Error> {
    let mut connection = open(folder).connect()?;
    connection.execute("CREATE TABLE t (k bigint PRIMARY KEY, g bigint, v double precision, s text)")?;
    let started = Instant::now();
    for first in (0..n_rows).step_by(1 << 16) {
        connection.insert("t", &rows(first, (1 << 16).min(n_rows - first)))?;
    }
    connection.query("SELECT v FROM t WHERE k = 1")?;
    println!("load: {n_rows} rows in {:.2} s, each commit of 65,536 synced", started.elapsed().as_secs_f64());
    let started = Instant::now();
    for (name, query) in VIEWS {
        connection.execute(&format!("CREATE MATERIALIZED VIEW {name} AS {query}"))?;
    }
    ask_views(&mut connection)?;
    println!("views: {} made and read in {:.2} s", VIEWS.len(), started.elapsed().as_secs_f64());
    Ok(())
}

fn ask_views(connection: &mut anabranch_engine::Connection) -> Result<(), Error> {
    for (name, _) in VIEWS {
        assert!(connection.query(&format!("SELECT * FROM {name} LIMIT 1"))?.num_rows() == 1);
    }
    Ok(())
}

fn measure_open(folder: &str) -> Result<(), Error> {
    let bytes: u64 = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().metadata().unwrap().len()).sum();
    let started = Instant::now();
    let mut connection = open(folder).connect()?;
    let opened = started.elapsed();
    assert_eq!(connection.query("SELECT v FROM t WHERE k = 1")?.num_rows(), 1);
    let readable = started.elapsed();
    ask_views(&mut connection)?;
    let views = started.elapsed();
    println!(
        "open: {:.1} MB on disk; opened after {:.2} s, a row by key read after {:.2} s, {} views read after {:.2} s",
        bytes as f64 / 1e6,
        opened.as_secs_f64(),
        readable.as_secs_f64(),
        VIEWS.len(),
        views.as_secs_f64()
    );
    Ok(())
}

fn insert(folder: &str, n_connections: usize, time: Duration, durability: &str) -> Result<(), Error> {
    let database = open(folder);
    let mut first = database.connect()?;
    first.execute("CREATE TABLE IF NOT EXISTS w (c bigint, n bigint, note text)")?;
    first.execute(&format!("SET durability = {durability}"))?;
    let until = Instant::now() + time;
    let started = Instant::now();
    let writers: Vec<_> = (0..n_connections as i64)
        .map(|c| {
            let mut connection = database.connect().unwrap();
            std::thread::spawn(move || {
                let insert = connection.prepare("INSERT INTO w VALUES ($1, $2, $3)", &[]).unwrap();
                let mut micros = Vec::new();
                while Instant::now() < until {
                    let began = Instant::now();
                    let n = micros.len() as i64;
                    let values =
                        [ScalarValue::from(c), ScalarValue::from(n), ScalarValue::from("a note of some length")];
                    let Outcome::Done { .. } = connection.run(&insert, &values).unwrap() else { panic!() };
                    micros.push(began.elapsed().as_micros() as u64);
                }
                micros
            })
        })
        .collect();
    let mut micros: Vec<u64> = writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect();
    let seconds = started.elapsed().as_secs_f64();
    micros.sort_unstable();
    let at = |part: f64| micros[((micros.len() - 1) as f64 * part) as usize] as f64 / 1000.0;
    println!(
        "insert: {n_connections} connections, {durability}: {:.0} commits a second; median {:.2} ms, p99 {:.2} ms",
        micros.len() as f64 / seconds,
        at(0.5),
        at(0.99)
    );
    Ok(())
}

fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["load", folder, rows] => load(folder, rows.parse().unwrap()),
        ["open", folder] => measure_open(folder),
        ["insert", folder, connections, seconds, rest @ ..] => {
            let time = Duration::from_secs(seconds.parse().unwrap());
            insert(folder, connections.parse().unwrap(), time, rest.first().copied().unwrap_or("full"))
        }
        _ => {
            println!("load FOLDER ROWS | open FOLDER | insert FOLDER CONNECTIONS SECONDS [full|relaxed]");
            Ok(())
        }
    }
}
