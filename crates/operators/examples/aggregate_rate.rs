//! Rates of the aggregate tactic alone: `cargo run --release -p anabranch-operators --example
//! aggregate_rate`.
//!
//! Sketch: a row of `count, sum by k` with 1 M groups costs one table probe and two visits of a
//! slot, each a cache miss that the next rows' overlap; what saturates is memory latency. A row of
//! eight decimal sums over four groups reads 128 bytes and does eight 128-bit additions; what
//! saturates is the processor.

use std::sync::Arc;
use std::time::Instant;

use anabranch_arrangement::MergeEffort;
use anabranch_batch::{Batch, Diffs, Times};
use anabranch_flow::tactic::{Output, Timed};
use anabranch_operators::aggregate::{Aggregate, AggregateSpec};
use anabranch_spec::aggregate::{AggregateCall, AggregateFunction};
use arrow::array::{ArrayRef, Decimal128Array, Float64Array, Int64Array, StringViewArray};
use arrow::datatypes::DataType;

const BATCH_ROWS: usize = 100_000;
const BATCHES: usize = 60;

fn main() {
    report("count, sum by integer key, 1 M groups", 1, two_calls(), |batch| {
        let keys = numbers(batch).map(|number| (number % 1_000_000) as i64);
        vec![
            Arc::new(keys.collect::<Int64Array>()),
            Arc::new(numbers(batch).map(|number| (number % 1000) as i64).collect::<Int64Array>()),
        ]
    });
    report("count, sum by text key, 1 M groups", 1, two_calls(), |batch| {
        let keys: Vec<String> = numbers(batch).map(|number| format!("customer {:09}", number % 1_000_000)).collect();
        vec![
            Arc::new(StringViewArray::from_iter_values(keys)),
            Arc::new(numbers(batch).map(|number| (number % 1000) as i64).collect::<Int64Array>()),
        ]
    });
    let price = DataType::Decimal128(15, 2);
    let sums = (0..8).map(|_| call(AggregateFunction::Sum, Some(2), DataType::Decimal128(25, 2))).collect();
    report("8 decimal sums by 2 text keys, 4 groups", 2, sums, |batch| {
        flags_and(batch, |batch| Arc::new(prices(batch, &price)))
    });
    let sums = (0..4).map(|_| call(AggregateFunction::Sum, Some(2), DataType::Float64)).collect();
    report("4 float sums by 2 text keys, 4 groups", 2, sums, |batch| {
        flags_and(batch, |batch| {
            Arc::new(numbers(batch).map(|number| (number % 10_000_000) as f64 / 100.0).collect::<Float64Array>())
        })
    });
}

fn call(function: AggregateFunction, argument: Option<usize>, output_type: DataType) -> AggregateCall {
    AggregateCall { function, argument, distinct: false, filter: None, order: Vec::new(), output_type }
}

fn two_calls() -> Vec<AggregateCall> {
    vec![call(AggregateFunction::Count, None, DataType::Int64), call(AggregateFunction::Sum, Some(1), DataType::Int64)]
}

fn numbers(batch: usize) -> impl Iterator<Item = u64> {
    (0..BATCH_ROWS as u64).map(move |row| {
        let mixed = (batch as u64 * BATCH_ROWS as u64 + row).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 20
    })
}

fn prices(batch: usize, data_type: &DataType) -> Decimal128Array {
    numbers(batch)
        .map(|number| i128::from(number % 10_000_000))
        .collect::<Decimal128Array>()
        .with_data_type(data_type.clone())
}

fn flags_and(batch: usize, values: impl Fn(usize) -> ArrayRef) -> Vec<ArrayRef> {
    let flag = |bit: u64| -> ArrayRef {
        Arc::new(StringViewArray::from_iter_values(
            numbers(batch).map(move |number| if number >> bit & 1 == 0 { "A" } else { "N" }),
        ))
    };
    vec![flag(3), flag(4), values(batch)]
}

fn report(name: &str, n_keys: usize, calls: Vec<AggregateCall>, columns: impl Fn(usize) -> Vec<ArrayRef>) {
    let keys: Vec<usize> = (0..n_keys).collect();
    let batches: Vec<Batch> = (0..BATCHES)
        .map(|batch| Batch::new(columns(batch), Times::Constant(batch as i64), Diffs::Constant(1)).with_key(&keys))
        .collect();
    let input_types = batches[0].columns().iter().map(|column| column.data_type().clone()).collect();
    let mut tactic = Aggregate::new(
        AggregateSpec { keys, calls, input_types, is_append_only: false, effort: MergeEffort::default() },
        None,
    );
    let (start, start_cpu, mut rows_out) = (Instant::now(), cpu_seconds(), 0);
    for (time, batch) in batches.into_iter().enumerate() {
        let mut output = Output::default();
        tactic.push(0, batch);
        tactic.advance(time as i64 + 1, &mut output);
        rows_out += output.rows.iter().map(Batch::len).sum::<usize>();
    }
    let millions = (BATCHES * BATCH_ROWS) as f64 / 1e6;
    let (wall, cpu) = (millions / start.elapsed().as_secs_f64(), millions / (cpu_seconds() - start_cpu));
    let state = tactic.size_bytes() >> 20;
    println!("{name:42} M rows/s: {wall:5.1}, per CPU second {cpu:5.1}  ({rows_out} rows out, {state} MB of state)");
}

/// Seconds this thread has run, on Linux; elsewhere zero.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    stat.split(' ').next().and_then(|nanos| nanos.parse::<f64>().ok()).map_or(0.0, |nanos| nanos / 1e9)
}
