//! Building and merging rates of other layouts: `cargo run --release -p anabranch-arrangement
//! --example layouts [rows] [batch rows]`.
//!
//! Text keys, wide rows, sorted values, few keys; one row in ten is retracted three batches later.

use std::sync::{Arc, LazyLock};
use std::time::Instant;

use anabranch_arrangement::{Keys, Layout, Matches, MergeEffort, Reader, ValueCursor, ValueOrder, arrangement, probe};
use anabranch_batch::hash::hash_columns;
use anabranch_batch::order::Direction;
use anabranch_batch::order::Nulls;
use anabranch_batch::{Batch, Diffs, END, Time, Times, gather};
use arrow::array::{ArrayRef, Decimal128Array, Int64Array, StringViewArray};
use arrow::datatypes::DataType;

fn main() {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse().expect("sizes are numbers"));
    let rows: usize = arguments.next().unwrap_or(2_000_000);
    let batch_rows: usize = arguments.next().unwrap_or(100_000);
    let descending = Direction { descending: true, nulls_first: true };
    let sorted = |columns: &[usize]| ValueOrder::Sorted(columns.iter().map(|&column| (column, descending)).collect());
    report("integer key", rows, batch_rows, vec![0], ValueOrder::Hash);
    report("text key", rows, batch_rows, vec![1], ValueOrder::Hash);
    report("two keys", rows, batch_rows, vec![1, 0], ValueOrder::Hash);
    report("no key", rows, batch_rows, vec![], ValueOrder::Hash);
    report("few keys, sorted by decimal", rows, batch_rows, vec![3], sorted(&[2]));
    report("few keys, sorted by few, text", rows, batch_rows, vec![3], sorted(&[4, 1]));
}

/// Seconds of processor time of this thread, else of the clock.
fn now() -> f64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    let schedule = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanos = schedule.and_then(|text| text.split(' ').next().and_then(|nanos| nanos.parse::<f64>().ok()));
    nanos.map_or_else(|| START.elapsed().as_secs_f64(), |nanos| nanos * 1e-9)
}

/// A mix of the bits of `n`.
fn mix(n: u64) -> i64 {
    let n = (n ^ (n >> 31)).wrapping_mul(0x7FB5_D329_728E_A185);
    ((n ^ (n >> 27)).wrapping_mul(0x81DA_DEF4_BC2D_D44D) >> 20).cast_signed()
}

fn types() -> Vec<DataType> {
    vec![DataType::Int64, DataType::Utf8View, DataType::Decimal128(12, 2), DataType::Int64, DataType::Int64]
}

/// About four rows per integer or text, 10 000 and 7 different numbers in the last columns.
fn columns(numbers: std::ops::Range<usize>, rows: usize) -> Vec<ArrayRef> {
    let of = |salt: u64, space: usize| numbers.clone().map(move |n| mix(n as u64 + (salt << 40)) % space as i64);
    vec![
        Arc::new(Int64Array::from_iter_values(of(0, rows / 4))),
        Arc::new(StringViewArray::from_iter_values(of(0, rows / 4).map(|n| format!("Customer#{n:09}")))),
        Arc::new(
            Decimal128Array::from_iter_values(of(1, 1_000_000).map(i128::from)).with_data_type(types()[2].clone()),
        ),
        Arc::new(Int64Array::from_iter_values(of(2, 10_000))),
        Arc::new(Int64Array::from_iter_values(of(3, 7))),
    ]
}

fn report(what: &str, rows: usize, batch_rows: usize, key: Vec<usize>, values: ValueOrder) {
    let layout = Arc::new(Layout { key, values, types: types() });
    let batches: Vec<Batch> = (0..rows / batch_rows).map(|i| random_batch(i, batch_rows, rows)).collect();
    let (mut writer, mut reader) = arrangement(Arc::clone(&layout), MergeEffort::default());
    // (Who listens sees to it that each batch is sorted as it comes.)
    let mut listener = reader.listen(None);
    let start = now();
    for (time, batch) in batches.into_iter().enumerate() {
        let time = time as Time;
        writer.push(batch);
        writer.complete(time + 1);
        reader.set_since(time);
        listener.drain();
    }
    let (total, stats) = (now() - start, reader.stats());
    println!(
        "{what}: {:.2} M updates/s ({:.0} ns a row), {} rows in {} runs, {:.1} B/row",
        rows as f64 / total / 1e6,
        total / rows as f64 * 1e9,
        stats.rows,
        stats.runs,
        stats.bytes as f64 / stats.rows as f64
    );
    report_reads(&layout, &reader, rows);
}

fn random_batch(i: usize, batch_rows: usize, rows: usize) -> Batch {
    let new = i * batch_rows..(i + 1) * batch_rows;
    let (numbers, diffs): (Vec<usize>, Vec<i64>) = match i {
        0..3 => (new.collect(), vec![1; batch_rows]),
        _ => new.map(|n| if n % 10 == 0 { (n - 3 * batch_rows + 1, -1) } else { (n, 1) }).unzip(),
    };
    let (low, high) = (numbers.iter().min().copied().unwrap_or(0), numbers.iter().max().map_or(0, |n| n + 1));
    let picks: Vec<u32> = numbers.iter().map(|n| (n - low) as u32).collect();
    Batch::with_len(
        gather::take(&columns(low..high, rows), &picks),
        numbers.len(),
        Times::Constant(i as Time),
        Diffs::Column(diffs.into()).simplify(),
    )
}

fn report_reads(layout: &Layout, reader: &Reader, rows: usize) {
    let wanted = columns(0..10_000, rows);
    let wanted: Vec<ArrayRef> = layout.key.iter().map(|&column| wanted[column].clone()).collect();
    let (keys, _) = Keys::from_columns(&wanted, &hash_columns(&wanted, 10_000), Nulls::Equal);
    let (mut matches, runs) = (Matches::default(), reader.runs());
    let start = now();
    probe(&runs, &layout.key, &keys, 0, END, usize::MAX, &mut matches);
    let probed = now() - start;
    print!(
        "    probe: {:.0} ns a key ({} keys), {:.1} ns a match ({})",
        probed * 1e9 / keys.len() as f64,
        keys.len(),
        probed * 1e9 / matches.len() as f64,
        matches.len()
    );
    if layout.values == ValueOrder::Hash {
        return println!();
    }
    let mut cursor = ValueCursor::new(layout, &runs);
    let (mut history, start) = (Vec::new(), now());
    for key in 0..keys.len() {
        cursor.seek(&keys, key, END);
        (0..3).for_each(|_| _ = cursor.next_value(&mut history));
    }
    println!("; first three values: {:.0} ns a key", (now() - start) * 1e9 / keys.len() as f64);
}
