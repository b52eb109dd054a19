//! Sharded streams: codecs of rows, keys and movement beside a copy of memory, the plans of Quill's
//! figures 1 and 4, and what an action costs that does nothing.
//!
//! Law of the measurement: rows are made before the clock starts; a run is begun, given all its
//! rows, and drained within it. Bytes are those of the rows' columns. `copy` is the rate of this
//! machine at copying as many bytes, column by column, on one thread, measured in the same process
//! before each case. CPU seconds are of all threads. One process, but where a case says several
//! ([`shard_processes`](crate::shard_processes)); nothing is modelled, but with `--modelled`.
//!
//! Sketch on paper: a movement reads each row once and writes it once where it leaves its shard, so
//! half the speed of a copy is what two shards may reach, and broadcasting batches is a matter of
//! pointers.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use anabranch_batch::{Batch, Diffs, Times};
use anabranch_engine::Error;
use anabranch_engine::frame::{Events, Frame, How, avg, col, count_rows, sum};
use anabranch_shards::{Carry, Layout, Move, Shards};
use arrow::array::{ArrayRef, Int64Array};
use arrow::datatypes::{DataType, Field, Schema};
use clap::Args;
use serde_json::{Value, json};

use crate::codecs::{BATCH, codecs};
use crate::makespan::makespans;
use crate::measure::{cpu_seconds, warm};
use crate::report::{self, Spread};
use crate::shard_processes::between_processes;

/// Options of the benchmark.
#[derive(Args, Clone)]
pub struct Options {
    /// Rows of each case.
    #[arg(long, default_value_t = 4_000_000)]
    pub(super) rows: usize,
    /// Rows of a batch in the cases of figures 1 and 4.
    #[arg(long, default_value_t = 10_000)]
    pub(super) batch: usize,
    /// Runs of each case.
    #[arg(long, default_value_t = 3)]
    pub(super) runs: usize,
    /// Model the plans of figure 1 on more machines than there are, and measure nothing.
    #[arg(long)]
    modelled: bool,
}

/// Runs the benchmark.
///
/// # Errors
/// When the engine refuses something, or the results cannot be kept.
pub fn run(options: &Options) -> Result<(), String> {
    warm(2_000);
    if options.modelled {
        let lines = makespans(options).map_err(|error| error.to_string())?;
        println!("kept in {}", report::keep("shards-modelled", &lines)?.display());
        return Ok(());
    }
    let mut lines = codecs(&batches(options.rows, BATCH, 2, 1 << 20), options.runs)?;
    lines.extend(movements(options).map_err(|error| error.to_string())?);
    lines.extend(between_processes(options)?);
    lines.push(empty_action().map_err(|error| error.to_string())?);
    lines.extend(figure_1(options).map_err(|error| error.to_string())?);
    lines.extend(figure_4(options).map_err(|error| error.to_string())?);
    println!("kept in {}", report::keep("shards", &lines)?.display());
    Ok(())
}

/// Rows in batches: a key of so many values in no order, and further columns.
pub(super) fn batches(rows: usize, batch: usize, columns: usize, keys: usize) -> Vec<Batch> {
    let key = |row: usize| ((row as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20) as usize % keys;
    let starts = (0..rows).step_by(batch);
    let made = |start: usize| {
        let rows = start..rows.min(start + batch);
        let column = |column: usize| -> ArrayRef {
            let value = |row: usize| if column == 0 { key(row) as i64 } else { (row % 1000) as i64 };
            Arc::new(Int64Array::from_iter_values(rows.clone().map(value)))
        };
        let columns: Vec<ArrayRef> = (0..columns).map(column).collect();
        Batch::with_len(columns.into(), rows.len(), Times::Constant(0), Diffs::Constant(1))
    };
    starts.map(made).collect()
}

fn events(name: &str, columns: usize) -> Events {
    let field = |column: usize| Field::new(format!("c{column}"), DataType::Int64, true);
    Events::input(name, Schema::new((0..columns).map(field).collect::<Vec<_>>()))
}

fn source(name: &str, columns: usize, shards: usize) -> Shards {
    Shards::of_events(events(name, columns), Layout::flat(shards))
}

/// What one run took.
struct Taken {
    wall: f64,
    cpu: f64,
    moved_mb: f64,
    rows_out: usize,
}

/// Runs a program over batches, each to a shard in turn.
fn taken(program: &Shards, inputs: &[(&str, &[Batch])], carry: Carry) -> Result<Taken, Error> {
    let (begun, cpu) = (Instant::now(), cpu_seconds());
    let mut run = program.run_with(carry)?;
    let shards = run.shards();
    for (source, batches) in inputs {
        for (at, batch) in batches.iter().enumerate() {
            run.push(source, at % shards, batch.clone())?;
        }
    }
    let outcome = run.finish()?;
    let (wall, cpu) = (begun.elapsed().as_secs_f64(), cpu_seconds() - cpu);
    let bytes: u64 = run.moved().iter().map(|(_, moved)| moved.bytes).sum();
    let rows_out = outcome.shards.iter().flatten().map(Batch::len).sum();
    Ok(Taken { wall, cpu, moved_mb: bytes as f64 / 1e6, rows_out })
}

/// Several runs of a case, as a line.
fn case(
    options: &Options,
    name: &str,
    program: &Shards,
    inputs: &[(&str, &[Batch])],
    carry: Carry,
) -> Result<Value, Error> {
    let rows: usize = inputs.iter().flat_map(|(_, batches)| batches.iter().map(Batch::len)).sum();
    let runs = (0..options.runs).map(|_| taken(program, inputs, carry)).collect::<Result<Vec<Taken>, Error>>()?;
    let (wall, cpu) = (Spread::of(runs.iter().map(|run| run.wall)), Spread::of(runs.iter().map(|run| run.cpu)));
    println!(
        "{name}: {:.3} s ({:.3} .. {:.3}), {:.3} CPU s, {:.1} M rows/s, {:.1} MB moved",
        wall.median,
        wall.min,
        wall.max,
        cpu.median,
        rows as f64 / wall.median / 1e6,
        runs[0].moved_mb
    );
    Ok(json!({
        "bench": "shards", "case": name, "rows": rows, "rows_out": runs[0].rows_out, "seconds": wall.median,
        "seconds_min": wall.min, "seconds_max": wall.max, "cpu_s": cpu.median, "moved_mb": runs[0].moved_mb,
        "rows_per_s": rows as f64 / wall.median, "cpu_ns_per_row": cpu.median * 1e9 / rows as f64,
    }))
}

/// Bytes a second of copying the columns of batches on this thread.
fn copy_rate(batches: &[Batch]) -> f64 {
    let mut bytes = 0;
    let mut target: Vec<u8> = Vec::new();
    let begun = Instant::now();
    for batch in batches {
        for column in batch.columns().iter() {
            let data = column.to_data();
            let source = data.buffers()[0].as_slice();
            target.clear();
            target.extend_from_slice(source);
            bytes += black_box(&target).len();
        }
    }
    bytes as f64 / begun.elapsed().as_secs_f64()
}

fn movements(options: &Options) -> Result<Vec<Value>, Error> {
    let mut lines = Vec::new();
    for (columns, batch) in [(2, 1_000), (2, 10_000), (2, 100_000), (10, 10_000), (10, 100_000)] {
        let rows = options.rows * 2 / columns;
        let given = batches(rows, batch, columns, 1 << 20);
        let copy = copy_rate(&given);
        for (shards, carry) in [(1, Carry::Batches), (2, Carry::Batches), (2, Carry::Wire)] {
            let keyed = source("rows", columns, shards).rekey(["c0"]);
            let appended = Shards::of_events(events("rows", columns).append_only(), Layout::flat(shards));
            let programs = [
                ("rekey", keyed.clone()),
                ("redistribute", keyed.redistribute(Move::FLAT)),
                ("reshard", keyed.reshard(Move::FLAT)),
                ("reshard by batches", appended.rekey(["c0"]).reshard(Move::FLAT)),
                ("broadcast", keyed.broadcast(Move::FLAT)),
            ];
            for (verb, program) in programs {
                let form = if carry == Carry::Wire { ", as bytes" } else { "" };
                let name = format!("{verb}, {columns} columns, batches of {batch}, {shards} shards{form}");
                let mut line = case(options, &name, &program, &[("rows", &given)], carry)?;
                let copies = if verb == "broadcast" { shards } else { 1 };
                let rate = (rows * columns * 8 * copies) as f64 / line["seconds"].as_f64().unwrap_or(1.0);
                println!("    {:.2} GB/s, {:.2} of a copy ({:.2} GB/s)", rate / 1e9, rate / copy, copy / 1e9);
                line["bytes_per_s"] = rate.into();
                line["copy_bytes_per_s"] = copy.into();
                lines.push(line);
            }
        }
    }
    Ok(lines)
}

/// A program that moves nothing is begun, drained and ended.
fn empty_action() -> Result<Value, Error> {
    let program = source("rows", 2, 2).rekey(["c0"]).redistribute(Move::FLAT).query(|rows| rows.agg([count_rows()]));
    let mut millis = Vec::new();
    for _ in 0..200 {
        let begun = Instant::now();
        drop(program.run()?.finish()?);
        millis.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    millis.sort_by(f64::total_cmp);
    let (median, p99) = (millis[millis.len() / 2], millis[millis.len() * 99 / 100]);
    println!("empty action in 2 shards: {median:.2} ms, p99 {p99:.2} ms");
    Ok(json!({"bench": "shards", "case": "empty action, 2 shards", "ms_median": median, "ms_p99": p99}))
}

pub(super) fn keyed_rows(layout: Layout) -> Shards {
    let fields = ["c0", "c1"].map(|name| Field::new(name, DataType::Int64, true));
    Shards::source("rows", Schema::new(fields.to_vec()), layout).rekey(["c0"])
}

fn counted(rows: Frame) -> Frame {
    rows.agg([count_rows().alias("n"), sum(col("c1")).alias("s")])
}

/// The four plans of one count and sum by key.
pub(super) fn plans_of_figure_1(layout: Layout) -> [(&'static str, Shards); 4] {
    let s = keyed_rows(layout);
    let add = |q: Frame| q.agg([sum(col("n")).alias("n"), sum(col("s")).alias("s")]);
    [
        ("(a)", s.redistribute(Move::FLAT).query(counted)),
        ("(b)", s.query(counted).redistribute(Move::FLAT).query(add)),
        ("(c)", s.query(counted).redistribute(Move::LOCAL).query(add).redistribute(Move::FLAT).query(add)),
        ("(d)", s.redistribute(Move::LOCAL).query(counted).redistribute(Move::FLAT).query(add)),
    ]
}

/// Cuts rows into windows.
type Cut = fn(Frame) -> Frame;

/// Counts and sums by key, by the plans (a) to (d); in one shard they are one plan.
fn figure_1(options: &Options) -> Result<Vec<Value>, Error> {
    let mut lines = Vec::new();
    for groups in [2_000, 67_000, options.rows / 4] {
        let given = batches(options.rows, options.batch, 2, groups);
        let alone = keyed_rows(Layout::flat(1)).query(counted);
        lines.push(case(
            options,
            &format!("figure 1, {groups} groups, one shard"),
            &alone,
            &[("rows", &given)],
            Carry::Batches,
        )?);
        for (form, layout) in [("2 shards", Layout::flat(2)), ("2 processes of 2 as threads", Layout::grid(2, 2))] {
            for (plan, program) in plans_of_figure_1(layout) {
                let name = format!("figure 1 {plan}, {groups} groups, {form}");
                lines.push(case(options, &name, &program, &[("rows", &given)], Carry::Batches)?);
            }
        }
    }
    let windows = |cut: Cut| {
        let s = source("rows", 2, 2).rekey(["c0"]).redistribute(Move::FLAT);
        s.query(move |q| cut(q).agg([avg(col("c1")).alias("m")]))
    };
    // (Each batch has a time of its own.)
    let given = batches(options.rows, options.batch, 2, 2_000).into_iter().enumerate();
    let given: Vec<Batch> = given.map(|(at, batch)| batch.with_times(Times::Constant(at as i64))).collect();
    let cuts: [(&str, Cut); 2] =
        [("tumbling", |q| q.tumbling(100)), ("hopping, two a row,", |q| q.hopping(100, 50, 0))];
    for (cut, of) in cuts {
        let name = format!("mean by key in {cut} windows of 100 batches, 2,000 groups, 2 shards");
        lines.push(case(options, &name, &windows(of), &[("rows", &given)], Carry::Batches)?);
    }
    Ok(lines)
}

/// A join of many rows with few, by the plans (a) to (c); in one shard they are one plan.
fn figure_4(options: &Options) -> Result<Vec<Value>, Error> {
    let join = |a: Frame, b: Frame| a.join(&b, [col("c0")], [col("c0")], How::Inner).agg([count_rows().alias("n")]);
    let mut lines = Vec::new();
    let left = batches(options.rows, options.batch, 2, 100_000);
    for small in [1_000, 100_000] {
        let right = batches(small, options.batch, 2, 100_000);
        let inputs: [(&str, &[Batch]); 2] = [("l", &left), ("r", &right)];
        let programs = |shards: usize| {
            let layout = if shards == 4 { Layout::grid(2, 2) } else { Layout::flat(shards) };
            let side = |name: &str| {
                let fields = ["c0", "c1"].map(|name| Field::new(name, DataType::Int64, true));
                Shards::source(name, Schema::new(fields.to_vec()), layout).rekey(["c0"])
            };
            let (l, r) = (side("l"), side("r"));
            let copied = r.broadcast(Move::GLOBAL).redistribute(Move::LOCAL);
            [
                ("(a)", l.redistribute(Move::FLAT).query_with(&r.redistribute(Move::FLAT), join)),
                ("(b)", l.query_with(&r.broadcast(Move::FLAT), join)),
                ("(c)", l.redistribute(Move::LOCAL).query_with(&copied, join)),
            ]
        };
        for shards in [1, 2, 4] {
            for (plan, program) in programs(shards) {
                if shards == 1 && plan != "(a)" {
                    continue;
                }
                let form =
                    if shards == 4 { "2 processes of 2 as threads".to_owned() } else { format!("{shards} shards") };
                let name = format!("figure 4 {plan}, {small} rows on the right, {form}");
                lines.push(case(options, &name, &program, &inputs, Carry::Batches)?);
            }
        }
    }
    Ok(lines)
}
