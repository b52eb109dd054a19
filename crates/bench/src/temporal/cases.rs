//! The questions of the temporal benchmark, and the rows they are asked over.
//!
//! Rows: 10 M events of (int32 key of 1,000, int64 value, float64), 1,000 events a tick, points, in
//! batches of 65,536, in memory before the clock starts. The columns of 16 batches are used again
//! and again under new times: together they are larger than the caches near the processor. Time is
//! declared complete after each batch, up to the time of its last row.

use std::sync::Arc;
use std::time::Instant;

use anabranch_batch::{Batch, Diffs, Times, Until};
use anabranch_engine::frame::{AsofOptions, Events, Frame, How, Item, col, count_rows, custom_invertible, lit, sum};
use anabranch_engine::{Error, Options, Session};
use anabranch_testing::temporal::aggregates::UserSum;
use arrow::array::{ArrayRef, Float64Array, Int32Array, Int64Array};
use arrow::datatypes::{DataType, Field, Schema};

use crate::measure::thread_seconds;

/// Rows of a batch.
pub(super) const BATCH_ROWS: usize = 65_536;
/// Batches whose columns differ.
pub(super) const BLOCKS: usize = 16;
const KEYS: u64 = 1_000;
pub(super) const EVENTS_PER_TICK: usize = 1_000;

/// The questions, and million events per CPU-second that each is to reach, where a mark is set.
pub const CASES: &[(&str, Option<f64>)] = &[
    ("filter", Some(182.0)),
    ("project", Some(333.0)),
    ("filter and project", Some(112.0)),
    ("tumbling count", Some(166.0)),
    ("tumbling sum", Some(154.0)),
    ("hopping sum", Some(134.0)),
    ("grouped tumbling sum", Some(58.0)),
    ("grouped tumbling user sum", Some(58.0)),
    ("grouped sliding sum", Some(13.6)),
    ("grouped sliding user sum", Some(13.6)),
    ("join", Some(34.0)),
    ("where not exists", Some(27.0)),
    ("asof", None),
];

/// What a run took.
pub struct Measured {
    /// Events in.
    pub events: usize,
    /// Events out.
    pub outputs: usize,
    /// CPU seconds of the one thread.
    pub cpu_seconds: f64,
    pub wall_seconds: f64,
}

/// Asks one question over `events` events.
///
/// # Errors
/// When the engine refuses something.
///
/// # Panics
/// For a name that is none of [`CASES`].
pub fn measure(case: &str, events: usize) -> Result<Measured, Error> {
    let two = matches!(case, "join" | "where not exists" | "asof");
    let frame = frame(case);
    let inputs = match two {
        true => vec![
            ("left", batches(events / 2, EVENTS_PER_TICK / 2, 1)),
            ("right", batches(events / 2, EVENTS_PER_TICK / 2, 2)),
        ],
        false => vec![("in", batches(events, EVENTS_PER_TICK, 1))],
    };
    let mut session = Session::new(Options { workers: 0, ..Options::default() })?;
    let mut run = session.start(&frame)?;
    let n_batches = inputs.iter().map(|(_, batches)| batches.len()).max().unwrap_or(0);
    let (cpu, wall) = (thread_seconds(), Instant::now());
    let mut outputs = 0;
    for at in 0..n_batches {
        for (name, batches) in &inputs {
            if let Some(batch) = batches.get(at) {
                let upto = batch.times().get(batch.len() - 1);
                run.push(name, batch.clone())?;
                run.advance(name, upto)?;
            }
        }
        outputs += rows(run.drain()?);
    }
    run.finish()?;
    outputs += rows(run.drain()?);
    let cpu_seconds = thread_seconds() - cpu;
    Ok(Measured { events, outputs, cpu_seconds, wall_seconds: wall.elapsed().as_secs_f64() })
}

pub(super) fn rows(items: Vec<Item>) -> usize {
    items.iter().map(|item| if let Item::Rows(batch) = item { batch.len() } else { 0 }).sum()
}

fn frame(case: &str) -> Frame {
    let input = |name: &str| Events::input(name, schema()).frame();
    let events = input("in");
    let keys = || [col("key")];
    let total = || [sum(col("value")).alias("total")];
    let user_total = || [custom_invertible(UserSum, [col("value")]).alias("total")];
    match case {
        "filter" => events.filter(col("key").lt(lit(500))),
        "project" => events.select([col("key"), col("value")]),
        "filter and project" => events.filter(col("key").lt(lit(500))).select([col("key"), col("value")]),
        "tumbling count" => events.tumbling(100).agg([count_rows().alias("n")]),
        "tumbling sum" => events.tumbling(100).agg(total()),
        "hopping sum" => events.hopping(100, 10, 0).agg(total()),
        "grouped tumbling sum" => events.tumbling(100).group_by(keys()).agg(total()),
        "grouped tumbling user sum" => events.tumbling(100).group_by(keys()).agg(user_total()),
        "grouped sliding user sum" => events.alter_duration(10).group_by(keys()).agg(user_total()),
        "grouped sliding sum" => events.alter_duration(10).group_by(keys()).agg(total()),
        "join" => input("left").join(&input("right"), keys(), keys(), How::Inner),
        "where not exists" => input("left").where_not_exists(&input("right"), keys(), keys()),
        "asof" => input("left").join_asof(&input("right"), keys(), keys(), AsofOptions::backward()),
        other => panic!("there is no case {other}"),
    }
}

pub(super) fn schema() -> Schema {
    Schema::new(vec![
        Field::new("key", DataType::Int32, true),
        Field::new("value", DataType::Int64, true),
        Field::new("weight", DataType::Float64, true),
    ])
}

fn batches(events: usize, events_per_tick: usize, seed: u64) -> Vec<Batch> {
    let blocks: Vec<Vec<ArrayRef>> = (0..BLOCKS as u64).map(|block| columns(seed * 1_000 + block)).collect();
    (0..events)
        .step_by(BATCH_ROWS)
        .enumerate()
        .map(|(at, first)| {
            let len = BATCH_ROWS.min(events - first);
            let columns: Vec<ArrayRef> = blocks[at % BLOCKS].iter().map(|column| column.slice(0, len)).collect();
            let times = (first..first + len).map(|event| 1 + (event / events_per_tick) as i64);
            let times = Times::Column(times.collect());
            Batch::new(columns, times, Diffs::Constant(1)).with_until(Until::Duration(1))
        })
        .collect()
}

pub(super) fn columns(seed: u64) -> Vec<ArrayRef> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let keys: Int32Array = (0..BATCH_ROWS).map(|_| Some((next() % KEYS) as i32)).collect();
    let values: Int64Array = (0..BATCH_ROWS).map(|_| Some((next() % 1_000_000) as i64)).collect();
    let weights: Float64Array = (0..BATCH_ROWS).map(|_| Some((next() % 1_000) as f64 / 8.0)).collect();
    vec![Arc::new(keys), Arc::new(values), Arc::new(weights)]
}
