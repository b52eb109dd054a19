//! Dashboards over one stream: queries come and go while the relations load, with sharing and
//! without.
//!
//! Law of the measurement: the relations of TPC-H are loaded round-robin, every round the same
//! share of each, as one commit. Before each round one view is retired and one is installed (until
//! ten are there, only installed), drawn from the 22 queries. The seed decides all of it, so with
//! and without sharing the same statements run over the same rows, each in a process of its own.
//! The two take turns, and change who is first; a run before is thrown away: the first on
//! a machine that gives memory to others meanwhile pays for getting it back. *Install* is the time
//! from the statement until the view is complete, and everything else too. *Update* is the time of
//! a round: rows in, all views complete. Memory is resident memory after each round; generated rows
//! are made as they are needed and not kept.
//!
//! Source: the dashboard experiment of "Shared arrangements" (VLDB 2020), section 6.1. There, base
//! relations are indexed beforehand; here the relations have their primary keys, and whatever else
//! is shared is found when a query is installed.

use std::collections::VecDeque;
use std::process::Command;
use std::time::Instant;

use anabranch_engine::{Options as SessionOptions, Session, Sharing};
use anabranch_testing::rng::Rng;
use anabranch_testing::tpch::{Batches, TABLES, queries};
use clap::Args;
use serde_json::{Value, json};

use crate::measure;
use crate::plot::{Line, Scale, plot};
use crate::report;

/// Options of the benchmark.
#[derive(Args, Clone)]
pub struct Options {
    /// Scale factor; 1 has 6 million line items.
    #[arg(long, default_value_t = 1.0)]
    scale: f64,
    /// Rounds in which the relations are loaded.
    #[arg(long, default_value_t = 100)]
    rounds: usize,
    /// Views at a time.
    #[arg(long, default_value_t = 10)]
    live: usize,
    /// Decides which views come and go.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Worker threads; 0 works on the caller's thread.
    #[arg(long, default_value_t = 0)]
    workers: usize,
    /// Runs with sharing, and without, after one that is thrown away.
    #[arg(long, default_value_t = 3)]
    runs: usize,
    /// One-row views of the case that counts them.
    #[arg(long, default_value_t = 1000)]
    small_views: usize,
    /// Sharing runs have indexes on the foreign keys, made beforehand, as in the paper's
    /// experiment.
    #[arg(long)]
    indexes: bool,
    /// One JSON object a line instead of a table.
    #[arg(long)]
    json: bool,
}

/// What is indexed beforehand.
const INDEXES: &str = "create index on lineitem (l_orderkey); create index on lineitem (l_partkey);
     create index on lineitem (l_suppkey); create index on orders (o_custkey); create index on partsupp (ps_partkey);
     create index on partsupp (ps_suppkey); create index on customer (c_nationkey); create index on supplier (s_nationkey);
     create index on nation (n_regionkey)";

/// One run, in this process.
#[derive(Args, Clone)]
pub struct Case {
    #[command(flatten)]
    options: Options,
    /// What is measured: `on`, `off`, `small-views`.
    #[arg(long)]
    case: String,
}

/// Runs the benchmark.
///
/// # Errors
/// When a run fails or the results cannot be kept.
pub fn run(options: &Options) -> Result<(), String> {
    start_case(options, "on")?;
    let mut runs: [Vec<Value>; 2] = Default::default();
    for run in 0..options.runs {
        for case in [run % 2, 1 - run % 2] {
            runs[case].push(start_case(options, ["on", "off"][case])?);
        }
    }
    let small = start_case(options, "small-views")?;
    let spread = |case: usize, field: &str| quantiles(&runs[case], field);
    let ratio = |field: &str| spread(1, field)[1] / spread(0, field)[1];
    let summary = json!({
        "bench": "dashboard", "case": "sharing on against off, medians", "scale": options.scale, "runs": options.runs,
        "median_install_times_faster": ratio("install_ms_median"),
        "median_update_times_faster": ratio("update_ms_median"),
        "cpu_share": 1.0 / ratio("cpu_s"), "memory_share": 1.0 / ratio("resident_mb_mean"),
        "on": spreads(&runs[0]), "off": spreads(&runs[1]),
    });
    let drawn = runs.each_ref().map(|runs| runs.get(options.runs / 2).cloned().unwrap_or_default());
    let lines: Vec<Value> = runs.into_iter().flatten().chain([small, summary]).collect();
    for line in &lines {
        if options.json {
            println!("{line}");
        } else {
            print_case(line);
        }
    }
    let pictures = [
        ("install", "install latency, ms", "install_ms", Kind::Distribution),
        ("update", "update latency, ms", "update_ms", Kind::Distribution),
        ("memory", "resident memory, MB", "resident_mb", Kind::Course),
    ];
    for (name, label, field, kind) in pictures {
        let lines = [("sharing on", &drawn[0]), ("sharing off", &drawn[1])];
        let lines = lines.map(|(name, line)| Line { name, points: kind.points(&numbers(&line[field])) });
        let picture = match kind {
            Kind::Distribution => {
                plot(label, Scale::Logarithmic, "share of cases that take longer", Scale::Logarithmic, &lines)
            }
            Kind::Course => plot("round", Scale::Linear, label, Scale::Linear, &lines),
        };
        report::keep_picture(&format!("dashboard-{name}"), &picture)?;
    }
    let path = report::keep("dashboard", &lines)?;
    if !options.json {
        println!("kept in {}", path.display());
    }
    Ok(())
}

/// The figures of which the spread over runs is shown.
const SPREAD: [&str; 6] =
    ["cpu_s", "install_ms_median", "install_ms_p90", "update_ms_median", "resident_mb_mean", "longest_step_ms"];

/// The least, the median and the greatest of a figure over some runs.
fn quantiles(runs: &[Value], field: &str) -> [f64; 3] {
    let values: Vec<f64> = runs.iter().filter_map(|run| run[field].as_f64()).collect();
    [0.0, 0.5, 1.0].map(|share| quantile(&values, share))
}

fn spreads(runs: &[Value]) -> Value {
    SPREAD.iter().map(|field| (field.to_string(), json!(quantiles(runs, field)))).collect()
}

#[derive(Clone, Copy)]
enum Kind {
    /// The share of values above each value.
    Distribution,
    /// Values in their order.
    Course,
}

impl Kind {
    fn points(self, values: &[f64]) -> Vec<(f64, f64)> {
        let n = values.len() as f64;
        match self {
            Kind::Course => values.iter().enumerate().map(|(index, value)| (index as f64, *value)).collect(),
            Kind::Distribution => {
                let mut sorted = values.to_vec();
                sorted.sort_by(f64::total_cmp);
                sorted.iter().enumerate().map(|(index, value)| (*value, (n - index as f64) / n)).collect()
            }
        }
    }
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().map(|values| values.iter().filter_map(Value::as_f64).collect()).unwrap_or_default()
}

fn print_case(line: &Value) {
    let mut fields: Vec<String> = Vec::new();
    for (name, value) in line.as_object().into_iter().flatten().filter(|(_, value)| !value.is_array()) {
        fields.push(match value.as_f64() {
            Some(number) => format!("{name} {number:.3}"),
            None => format!("{name} {}", value.as_str().map_or_else(|| value.to_string(), str::to_owned)),
        });
    }
    println!("{}", fields.join("  "));
}

fn start_case(options: &Options, case: &str) -> Result<Value, String> {
    let program = std::env::current_exe().map_err(|error| format!("where is this program? {error}"))?;
    let Options { scale, rounds, live, seed, workers, small_views, indexes, .. } = options;
    let output = Command::new(program)
        .args(["dashboard-case", "--case", case, "--scale", &scale.to_string(), "--rounds", &rounds.to_string()])
        .args(["--live", &live.to_string(), "--seed", &seed.to_string(), "--workers", &workers.to_string()])
        .args(["--small-views", &small_views.to_string()])
        .args(indexes.then_some("--indexes"))
        .output()
        .map_err(|error| format!("cannot start a run: {error}"))?;
    if !output.status.success() {
        return Err(format!("case {case} failed: {}", String::from_utf8_lossy(&output.stderr)));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| format!("case {case} printed no result: {error}"))
}

/// Runs one case and prints its figures.
///
/// # Errors
/// When the engine refuses something.
pub fn run_case(case: &Case) -> Result<(), String> {
    let line = match case.case.as_str() {
        "on" => dashboards(&case.options, Sharing::Full),
        "off" => dashboards(&case.options, Sharing::Off),
        "small-views" => small_views(&case.options),
        other => return Err(format!("there is no case {other}: on, off, small-views")),
    };
    println!("{}", line.map_err(|error| error.to_string())?);
    Ok(())
}

/// What is measured while dashboards come and go.
#[derive(Default)]
struct Figures {
    queries: Vec<usize>,
    install_ms: Vec<f64>,
    update_ms: Vec<f64>,
    resident_mb: Vec<f64>,
}

fn dashboards(options: &Options, sharing: Sharing) -> Result<Value, anabranch_engine::Error> {
    let mut session = Session::new(SessionOptions { workers: options.workers, sharing, ..SessionOptions::default() })?;
    for table in &TABLES {
        session.execute(table.create)?;
    }
    if options.indexes && sharing == Sharing::Full {
        session.execute(INDEXES)?;
    }
    let rows_per_round = |rows: f64| (rows / options.rounds as f64).ceil().max(1.0) as usize;
    let mut loads: Vec<(&str, Batches)> = TABLES
        .iter()
        .map(|table| (table.name, table.batches(options.scale, rows_per_round(table.rows_at(options.scale)))))
        .collect();
    let mut rng = Rng::new(options.seed);
    let mut live: VecDeque<usize> = VecDeque::new();
    let mut figures = Figures::default();
    session.reset_steps();
    let (start, cpu) = (Instant::now(), measure::cpu_seconds());
    for view in 0..options.rounds {
        if live.len() >= options.live
            && let Some(gone) = live.remove(rng.below(live.len()))
        {
            session.execute(&format!("drop materialized view dashboard_{gone}"))?;
        }
        let query = rng.below(22) + 1;
        let text = queries::query(query, options.scale);
        let begin = Instant::now();
        session.execute(&format!("create materialized view dashboard_{view} as {text}"))?;
        session.wait()?;
        figures.install_ms.push(begin.elapsed().as_secs_f64() * 1e3);
        figures.queries.push(query);
        live.push_back(view);

        let batches: Vec<_> = loads.iter_mut().filter_map(|(table, load)| Some((*table, load.next()?))).collect();
        let begin = Instant::now();
        for (table, batch) in &batches {
            session.ingest(table, batch, None, None)?;
        }
        session.commit()?;
        session.wait()?;
        figures.update_ms.push(begin.elapsed().as_secs_f64() * 1e3);
        drop(batches);
        figures.resident_mb.push(measure::resident_mb());
    }
    let steps = session.steps();
    let longest = steps.iter().max_by_key(|stats| stats.max);
    let name = if sharing == Sharing::Off { "sharing off" } else { "sharing on" };
    Ok(json!({
        "bench": "dashboard", "case": name, "scale": options.scale, "rounds": options.rounds, "live": options.live,
        "seed": options.seed, "workers": options.workers, "indexes": options.indexes,
        "seconds": start.elapsed().as_secs_f64(), "cpu_s": measure::cpu_seconds() - cpu,
        "install_ms_median": quantile(&figures.install_ms, 0.5), "install_ms_p90": quantile(&figures.install_ms, 0.9),
        "install_ms_max": quantile(&figures.install_ms, 1.0),
        "update_ms_median": quantile(&figures.update_ms, 0.5), "update_ms_max": quantile(&figures.update_ms, 1.0),
        "resident_mb_mean": figures.resident_mb.iter().sum::<f64>() / figures.resident_mb.len().max(1) as f64,
        "resident_mb_max": quantile(&figures.resident_mb, 1.0),
        "longest_step_ms": longest.map(|stats| stats.max.as_secs_f64() * 1e3),
        "longest_step_of": longest.map(|stats| stats.operator),
        "install_ms": figures.install_ms, "update_ms": figures.update_ms, "resident_mb": figures.resident_mb,
        "queries": figures.queries,
    }))
}

fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(((sorted.len().max(1) - 1) as f64 * share) as usize).copied().unwrap_or(f64::NAN)
}

/// Views of one row each over a table, in one session.
fn small_views(options: &Options) -> Result<Value, anabranch_engine::Error> {
    let mut session = Session::new(SessionOptions { workers: options.workers, ..SessionOptions::default() })?;
    session.execute(
        "create table t (k bigint primary key, v text not null);
         insert into t select k, 'value ' || k::text from unnest(generate_series(1, 1000)) as s(k)",
    )?;
    session.wait()?;
    let resident = measure::resident_mb();
    let mut install_ms = Vec::new();
    for view in 0..options.small_views {
        let begin = Instant::now();
        let key = view % 1000 + 1;
        session.execute(&format!("create materialized view v{view} as select v from t where k = {key}"))?;
        session.wait()?;
        install_ms.push(begin.elapsed().as_secs_f64() * 1e3);
    }
    let begin = Instant::now();
    session.execute("update t set v = 'new' where k = 7")?;
    session.wait()?;
    Ok(json!({
        "bench": "dashboard", "case": "one-row views", "views": options.small_views,
        "resident_mb": measure::resident_mb(), "grown_mb": measure::resident_mb() - resident,
        "install_ms_median": quantile(&install_ms, 0.5), "install_ms_max": quantile(&install_ms, 1.0),
        "update_ms": begin.elapsed().as_secs_f64() * 1e3,
    }))
}
