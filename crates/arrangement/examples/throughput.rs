//! Rates of one arrangement on one core: `cargo run --release -p anabranch-arrangement --example
//! throughput [rows] [batch rows]`.
//!
//! Builds and merges random (u64, u64) rows, probes the result with random keys in batches of
//! several sizes, and looks single keys up. Times are processor time where Linux tells it, so that
//! a busy machine disturbs less.

use std::hint::black_box;
use std::sync::{Arc, LazyLock};
use std::time::Instant;

use anabranch_arrangement::{
    Keys, Layout, Matches, MergeEffort, Reader, ValueOrder, Writer, arrangement, probe, snapshot,
};
use anabranch_batch::hash::hash_columns;
use anabranch_batch::order::Nulls;
use anabranch_batch::{Batch, Diffs, END, Time, Times};
use arrow::array::{ArrayRef, UInt64Array};
use arrow::datatypes::DataType;

fn main() {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse().expect("sizes are numbers"));
    let rows: usize = arguments.next().unwrap_or(10_000_000);
    let batch_rows: usize = arguments.next().unwrap_or(100_000);
    let (mut writer, reader) = build(rows, batch_rows);
    for n_keys in [100_000, 10_000, 1_000, 100, 10, 1] {
        report_probes(&reader, rows, n_keys, &format!("{} runs", reader.stats().runs));
    }
    while writer.exert(&mut 1_000_000) {}
    for n_keys in [100_000, 1_000, 1] {
        report_probes(&reader, rows, n_keys, "one run");
    }
    let start = now();
    let batches = snapshot(reader.layout(), &reader.runs(), reader.upper() - 1);
    println!("snapshot of {} batches: {:.1} ms", batches.len(), (now() - start) * 1e3);
}

/// Seconds of processor time of this thread, else of the clock.
fn now() -> f64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    let schedule = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanos = schedule.and_then(|text| text.split(' ').next().and_then(|nanos| nanos.parse::<f64>().ok()));
    nanos.map_or_else(|| START.elapsed().as_secs_f64(), |nanos| nanos * 1e-9)
}

/// A mix of the bits of `n`, for keys that look random.
fn mix(n: u64) -> u64 {
    let n = (n ^ (n >> 31)).wrapping_mul(0x7FB5_D329_728E_A185);
    (n ^ (n >> 27)).wrapping_mul(0x81DA_DEF4_BC2D_D44D) ^ (n >> 33)
}

fn layout() -> Arc<Layout> {
    Arc::new(Layout { key: vec![0], values: ValueOrder::Hash, types: vec![DataType::UInt64, DataType::UInt64] })
}

fn build(rows: usize, batch_rows: usize) -> (Writer, Reader) {
    let (mut writer, mut reader) = arrangement(layout(), MergeEffort::default());
    // (Who listens sees to it that each batch is sorted as it comes.)
    let mut listener = reader.listen(None);
    let batches: Vec<Batch> = (0..rows / batch_rows).map(|i| random_batch(i, batch_rows, rows)).collect();
    let mut longest = 0.0f64;
    let start = now();
    for (time, batch) in batches.into_iter().enumerate() {
        let time = time as Time;
        let round = now();
        writer.push(batch);
        writer.complete(time + 1);
        reader.set_since(time);
        longest = longest.max(now() - round);
        listener.drain();
    }
    let total = now() - start;
    let stats = reader.stats();
    println!("built {} rows in {} runs, {:.1} B/row", stats.rows, stats.runs, stats.bytes as f64 / stats.rows as f64);
    println!(
        "{:.2} M updates/s; {:.0} ns a row; longest round {:.2} ms",
        rows as f64 / total / 1e6,
        total / rows as f64 * 1e9,
        longest * 1e3
    );
    (writer, reader)
}

fn random_batch(i: usize, rows: usize, space: usize) -> Batch {
    let number = |row: usize| (i * rows + row) as u64;
    let keys = UInt64Array::from_iter_values((0..rows).map(|row| mix(number(row)) % space as u64));
    let values = UInt64Array::from_iter_values((0..rows).map(|row| mix(number(row) ^ (1 << 40))));
    Batch::new(vec![Arc::new(keys), Arc::new(values)], Times::Constant(i as Time), Diffs::Constant(1))
}

fn report_probes(reader: &Reader, space: usize, n_keys: usize, what: &str) {
    let rounds = (1_000_000 / n_keys).clamp(10, 20_000);
    let columns = |round: usize| -> ArrayRef {
        Arc::new(UInt64Array::from_iter_values(
            (0..n_keys).map(|i| mix((round * n_keys + i) as u64 ^ (1 << 50)) % space as u64),
        ))
    };
    let inputs: Vec<ArrayRef> = (0..rounds).map(columns).collect();
    let mut found = 0;
    let start = now();
    let sorted = |input: &ArrayRef| {
        let columns = [input.clone()];
        Keys::from_columns(&columns, &hash_columns(&columns, n_keys), Nulls::Differ).0
    };
    let keys: Vec<Keys> = inputs.iter().map(sorted).collect();
    let sorting = now() - start;
    for keys in &keys {
        let mut matches = Matches::default();
        probe(&reader.runs(), &[0], keys, 0, END, usize::MAX, &mut matches);
        found += matches.len();
        black_box(&matches);
    }
    let total = now() - start;
    let per_key = |seconds: f64| seconds / (rounds * n_keys) as f64 * 1e9;
    println!(
        "{n_keys:>7} keys against {what}: {:.2} M probes/s ({:.0} ns a key to sort, {:.0} ns to probe; {:.2} matches a key)",
        1e-6 * (rounds * n_keys) as f64 / total,
        per_key(sorting),
        per_key(total - sorting),
        found as f64 / (rounds * n_keys) as f64
    );
}
