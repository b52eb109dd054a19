//! Rates of the temporal join and the temporal anti-join alone, for all cases or those whose name
//! has NAME in it: `cargo run --release --workspace --example temporal_join_rate [EVENTS [NAME]]`.
//!
//! Sketch: a row costs its key's hash and a probe of a table that stays in the cache, some fifty
//! instructions; to put it in force and look for the other side's some thirty more, in loops over
//! columns; a pair is gathered at two nanoseconds a column. What saturates is the processor, with
//! few keys; with a million keys it is memory latency.

use std::sync::Arc;
use std::time::Instant;

use anabranch_batch::order::Nulls;
use anabranch_batch::{Batch, Diffs, Times, Until};
use anabranch_flow::tactic::{Output, Timed};
use anabranch_operators::temporal::absent::Absent;
use anabranch_operators::temporal::join::Join;
use arrow::array::{ArrayRef, Float64Array, Int32Array, Int64Array};
use arrow::datatypes::DataType;

const BATCH_ROWS: usize = 65_536;
const EVENTS_PER_TICK: usize = 500;

fn main() {
    let events = std::env::args().nth(1).and_then(|events| events.parse().ok()).unwrap_or(3_000_000);
    let only = std::env::args().nth(2).unwrap_or_default();
    for (n_keys, duration) in [(1_000, 1), (1_000, 10), (1_000_000, 1), (1_000_000, 100)] {
        let key = [DataType::Int32];
        for verb in ["join", "where not exists"] {
            let name = format!("{verb}, {n_keys} keys, {duration} ticks");
            let tactic: Box<dyn Timed> = match verb {
                "join" => Box::new(Join::new(vec![0], vec![0], &key)),
                _ => Box::new(Absent::new(vec![0], vec![0], &key, Nulls::Differ)),
            };
            if name.contains(&only) {
                report(&name, events, n_keys, duration, tactic);
            }
        }
    }
}

fn report(name: &str, events: usize, n_keys: u64, duration: i64, mut tactic: Box<dyn Timed>) {
    let sides = [batches(events / 2, n_keys, duration, 1), batches(events / 2, n_keys, duration, 2)];
    let (start, start_cpu, mut rows_out) = (Instant::now(), cpu_seconds(), 0);
    for (left, right) in sides[0].iter().zip(&sides[1]) {
        let mut output = Output::default();
        let upto = left.times().get(left.len() - 1);
        tactic.push(0, left.clone());
        tactic.push(1, right.clone());
        tactic.advance(upto, &mut output);
        rows_out += output.rows.iter().map(Batch::len).sum::<usize>();
    }
    let millions = events as f64 / 1e6;
    let (wall, cpu) = (millions / start.elapsed().as_secs_f64(), millions / (cpu_seconds() - start_cpu));
    let state = tactic.size_bytes() >> 10;
    println!("{name:42} M events/s: {wall:5.1}, per CPU second {cpu:5.1}  ({rows_out} rows out, {state} KB of state)");
}

fn batches(events: usize, n_keys: u64, duration: i64, seed: u64) -> Vec<Batch> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    (0..events)
        .step_by(BATCH_ROWS)
        .map(|first| {
            let rows = first..(first + BATCH_ROWS).min(events);
            let keys: Int32Array = rows.clone().map(|_| Some((next() % n_keys) as i32)).collect();
            let values: Int64Array = rows.clone().map(|_| Some((next() % 1_000_000) as i64)).collect();
            let weights: Float64Array = rows.clone().map(|_| Some((next() % 1_000) as f64 / 8.0)).collect();
            let columns: Vec<ArrayRef> = vec![Arc::new(keys), Arc::new(values), Arc::new(weights)];
            let times = Times::Column(rows.map(|event| 1 + (event / EVENTS_PER_TICK) as i64).collect());
            Batch::new(columns, times, Diffs::Constant(1)).with_until(Until::Duration(duration))
        })
        .collect()
}

/// Seconds this thread has run, on Linux; elsewhere zero.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    stat.split(' ').next().and_then(|nanos| nanos.parse::<f64>().ok()).map_or(0.0, |nanos| nanos / 1e9)
}
