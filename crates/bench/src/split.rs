//! Splitting: rate and CPU by width, plan and part of rows that go to every branch, beside one
//! branch; and the constants of the model of costs, fitted to what was measured.
//!
//! Law of the measurement: rows are made before the clock starts; a run is begun, given all its
//! rows, and drained within it. In one process, in two shards; nothing is modelled but the fit,
//! whose greatest error is told beside it.
//!
//! Sketch on paper: a row that is routed is copied once, to its shard, in rows of 40 bytes: some 10
//! ns; a row that is broadcast is a row in each branch, w copies.

use std::sync::Arc;
use std::time::Instant;

use anabranch_batch::{Batch, Diffs, Times};
use anabranch_engine::Error;
use anabranch_engine::frame::{col, lit};
use anabranch_shards::split::cost::{Shares, exptree, maxtree};
use anabranch_shards::split::local::{LocalCosts, MeasuredSplit};
use anabranch_shards::split::para::doubled_window;
use anabranch_shards::{Carry, Layout, ParaOptions, Shards, SplitPlan};
use arrow::array::{ArrayRef, Int64Array};
use arrow::datatypes::{DataType, Field, Schema};
use clap::Args;
use serde_json::{Value, json};

use crate::measure::{cpu_seconds, warm};
use crate::report::{self, Spread};

/// Options of the benchmark.
#[derive(Args, Clone)]
pub struct Options {
    /// Rows of each case.
    #[arg(long, default_value_t = 500_000)]
    rows: usize,
    /// Rows of a batch.
    #[arg(long, default_value_t = 8_192)]
    batch: usize,
    /// Runs of each case.
    #[arg(long, default_value_t = 3)]
    runs: usize,
}

/// Runs the benchmark.
///
/// # Errors
/// When the engine refuses something, or the results cannot be kept.
pub fn run(options: &Options) -> Result<(), String> {
    warm(1_000);
    let mut lines = Vec::new();
    let mut measured = Vec::new();
    let flat = |width, share, batch| (SplitPlan::Flat, width, share, batch);
    let mut cases = Vec::new();
    for width in [1, 2, 8, 64, 512] {
        cases.extend([0.0, 0.005].map(|share| flat(width, share, options.batch)));
        cases.push((SplitPlan::Exp, width, 0.005, options.batch));
        cases.push((SplitPlan::Max(Shares::broadcast(0.005)), width, 0.005, options.batch));
        cases.push((SplitPlan::PARA, width, 0.005, options.batch));
    }
    cases.extend([0.05, 0.2, 1.0].map(|share| flat(64, share, options.batch)));
    cases.extend([256, 1_024, 65_536].map(|batch| flat(64, 0.005, batch)));
    for (plan, width, share, batch) in cases {
        let (line, split) = case(options, plan, width, share, batch).map_err(|error| error.to_string())?;
        lines.push(line);
        // (What parasplit adds is movement of whole batches, which the model has no constant for.)
        if !matches!(plan, SplitPlan::Para(_)) {
            measured.push(split);
        }
    }
    let costs = LocalCosts::fit(&measured).ok_or("the measurements do not tell the constants apart")?;
    let error = costs.greatest_error(&measured);
    println!("constants: {costs:?}, in nanoseconds; wrong by {:.0}% at most", error * 100.0);
    lines.push(json!({
        "bench": "split", "case": "constants", "batch_ns": costs.batch, "row_ns": costs.row, "copy_ns": costs.copy,
        "greatest_error": error,
    }));
    for carry in [Carry::Batches, Carry::Wire] {
        lines.extend(routers(carry).map_err(|error| error.to_string())?);
    }
    println!("kept in {}", report::keep("split", &lines)?.display());
    Ok(())
}

/// The router of a parallel split by the rows of its windows, which are doubled while its rate
/// grows: medians of five runs (SCSQ, paper V; section 2.7 of the notes).
fn routers(carry: Carry) -> Result<Vec<Value>, Error> {
    let name = if carry == Carry::Wire { "bytes" } else { "batches" };
    let (mut lines, mut failure) = (Vec::new(), None);
    let rate = |window: u32| -> f64 {
        let rates = (0..5).map(|_| router_rate(window, carry)).collect::<Result<Vec<f64>, Error>>();
        let rate = rates.map(|rates| Spread::of(rates).median).unwrap_or_else(|error| {
            failure = Some(error);
            0.0
        });
        let nanos = 1e9 * f64::from(window) / rate;
        println!("router, windows of {window} rows as {name}: {:.0} M rows/s, {nanos:.0} CPU ns a window", rate / 1e6);
        lines.push(json!({
            "bench": "split", "case": "router", "carry": name, "window": window, "rows_per_s": rate,
            "cpu_ns_per_window": nanos,
        }));
        rate
    };
    let chosen = doubled_window(ROUTED_BYTES, rate);
    println!("router, as {name}: windows of {chosen} rows");
    lines.push(json!({ "bench": "split", "case": "router window", "carry": name, "window": chosen }));
    failure.map_or(Ok(lines), Err)
}

/// Bytes of a routed row: three numbers.
const ROUTED_BYTES: f64 = 24.0;

/// Rows for each second of a router's CPU time. The router is alone in its shard.
fn router_rate(window: u32, carry: Carry) -> Result<f64, Error> {
    const BATCHES: usize = 40;
    let given = batches(65_536, 65_536, 0.0);
    let fields = ["place", "x", "all"].map(|name| Field::new(name, DataType::Int64, true));
    let rows = Shards::source("rows", Schema::new(fields.to_vec()), Layout::flat(2));
    let options = ParaOptions { splitters: Some(1), window: Some(window), ..ParaOptions::CHOSEN };
    let branches = rows.split(2, col("place") % lit(2i64), None, SplitPlan::Para(options)).placed(&[1]);
    let mut run = branches.merge().run_with(carry)?;
    for _ in 0..BATCHES {
        run.push("rows", 0, given[0].clone())?;
    }
    run.finish()?;
    let spent =
        run.profile().iter().filter(|step| step.action == "spray").map(|step| step.counts.cpu_nanos).sum::<u64>();
    Ok((BATCHES * 65_536) as f64 * 1e9 / spent as f64)
}

/// Rows whose third column says whether they are broadcast.
fn batches(rows: usize, batch: usize, share: f64) -> Vec<Batch> {
    let is_broadcast = |row: usize| ((row as f64 + 1.0) * share).floor() > (row as f64 * share).floor();
    let made = |start: usize| {
        let rows = start..rows.min(start + batch);
        let numbers =
            |of: &dyn Fn(usize) -> i64| -> ArrayRef { Arc::new(Int64Array::from_iter_values(rows.clone().map(of))) };
        let route = |row: usize| ((row as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33) as i64;
        let columns = vec![numbers(&route), numbers(&|row| row as i64), numbers(&|row| i64::from(is_broadcast(row)))];
        Batch::with_len(columns.into(), rows.len(), Times::Constant(0), Diffs::Constant(1))
    };
    (0..rows).step_by(batch).map(made).collect()
}

fn case(
    options: &Options,
    plan: SplitPlan,
    width: u32,
    share: f64,
    batch: usize,
) -> Result<(Value, MeasuredSplit), Error> {
    let given = batches(options.rows, batch, share);
    let fields = ["place", "x", "all"].map(|name| Field::new(name, DataType::Int64, true));
    let rows = Shards::source("rows", Schema::new(fields.to_vec()), Layout::flat(2));
    let route = col("place") % lit(i64::from(width));
    let broadcast = (share > 0.0).then(|| col("all").eq(lit(1i64)));
    let program = rows.split(width, route, broadcast, plan).merge();
    let (mut walls, mut cpus) = (Vec::new(), Vec::new());
    for _ in 0..options.runs {
        let (begun, cpu) = (Instant::now(), cpu_seconds());
        let mut run = program.run()?;
        for (at, batch) in given.iter().enumerate() {
            run.push("rows", at % 2, batch.clone())?;
        }
        drop(run.finish()?);
        walls.push(begun.elapsed().as_secs_f64());
        cpus.push(cpu_seconds() - cpu);
    }
    let (wall, cpu) = (Spread::of(walls), Spread::of(cpus));
    let nanos = cpu.median * 1e9 / options.rows as f64;
    let name = match plan {
        SplitPlan::Flat => "flat",
        SplitPlan::Exp => "exptree",
        SplitPlan::Max(_) => "maxtree",
        _ => "parasplit",
    };
    println!(
        "{name} into {width}, {}% broadcast, batches of {batch}: {:.2} M rows/s ({:.2} .. {:.2}), {nanos:.0} CPU ns a row",
        share * 100.0,
        options.rows as f64 / wall.median / 1e6,
        options.rows as f64 / wall.max / 1e6,
        options.rows as f64 / wall.min / 1e6,
    );
    let shares = Shares::broadcast(share);
    let fan_outs = match plan {
        SplitPlan::Exp => exptree(width),
        SplitPlan::Max(shares) => maxtree(width, shares),
        _ => vec![width],
    };
    let line = json!({
        "bench": "split", "case": name, "width": width, "broadcast": share, "batch": batch, "rows": options.rows,
        "rows_per_s": options.rows as f64 / wall.median, "rows_per_s_min": options.rows as f64 / wall.max,
        "rows_per_s_max": options.rows as f64 / wall.min, "cpu_ns_per_row": nanos,
    });
    Ok((line, MeasuredSplit { fan_outs, shares, batch: batch as f64, nanos }))
}
