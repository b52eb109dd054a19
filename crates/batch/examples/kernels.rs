//! Time per row of each kernel, on one core: `cargo run --release -p anabranch-batch --example
//! kernels`.
//!
//! A sketch for those who change a kernel, not a benchmark to quote: the best of many runs over
//! 65,536 rows that fit in cache.

use anabranch_batch::order::{Direction, prefixes, sort_by_hash};
use anabranch_batch::{Batch, Diffs, Times, consolidate, equal, gather, hash, partition, wire};
use arrow::array::{ArrayRef, Decimal128Array, Float64Array, Int32Array, Int64Array, StringArray, StringViewArray};
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

/// As in the binary: with the system's allocator, fresh pages cost more than the kernels.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const ROWS: usize = 65_536;

fn main() {
    let shuffled: Vec<u32> = (0..ROWS as u64).map(|i| ((i * 40_503 + 7) % ROWS as u64) as u32).collect();
    let values = || shuffled.iter().map(|&i| i64::from(i));
    let short = || values().map(|i| format!("key{i}"));
    let long = || values().map(|i| format!("Customer#{i:012}"));
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("i32", Arc::new(Int32Array::from_iter_values(values().map(|i| i as i32)))),
        ("i64", Arc::new(Int64Array::from_iter_values(values()))),
        ("i64 with nulls", Arc::new(Int64Array::from_iter(values().map(|i| (i % 5 != 0).then_some(i))))),
        ("f64", Arc::new(Float64Array::from_iter_values(values().map(|i| i as f64 / 7.0)))),
        ("decimal", Arc::new(Decimal128Array::from_iter_values(values().map(i128::from)))),
        ("view of 8 bytes", Arc::new(StringViewArray::from_iter_values(short()))),
        ("view of 21 bytes", Arc::new(StringViewArray::from_iter_values(long()))),
        ("text of 8 bytes", Arc::new(StringArray::from_iter_values(short()))),
        ("text of 21 bytes", Arc::new(StringArray::from_iter_values(long()))),
    ];
    println!(
        "{:<18} {:>7} {:>7} {:>7} {:>10} {:>7} {:>11} {:>7} {:>7}",
        "ns a row", "hash", "equal", "take", "interleave", "prefix", "consolidate", "write", "read"
    );
    for (name, column) in columns {
        let one = [column];
        let picks: Vec<(u32, u32)> = shuffled.iter().map(|&row| (row % 2, row)).collect();
        let both: [&[ArrayRef]; 2] = [&one, &one];
        let batch = Batch::new(one.to_vec(), Times::Constant(0), Diffs::Constant(1));
        let mut bytes = Vec::new();
        println!(
            "{name:<18} {:>7.2} {:>7.2} {:>7.2} {:>10.2} {:>7.2} {:>11.2} {:>7.2} {:>7.2}",
            time(|| hash::hash_columns(&one, ROWS)),
            time(|| equal::rows_equal(&one, &shuffled, &one, &shuffled)),
            time(|| gather::take(&one, &shuffled)),
            time(|| gather::interleave(&both, &picks)),
            time(|| prefixes(&one, &[Direction::DESCENDING], ROWS)),
            time(|| consolidate::consolidate(batch.clone())),
            time(|| {
                bytes.clear();
                wire::write(&batch, &mut bytes)
            }),
            {
                bytes.clear();
                wire::write(&batch, &mut bytes).expect("a vector takes everything");
                time(|| wire::read(&bytes))
            },
        );
    }
    let pair: Vec<ArrayRef> =
        vec![Arc::new(Int64Array::from_iter_values(values())), Arc::new(Int64Array::from_iter_values(values()))];
    let hashes = hash::hash_columns(&pair, ROWS);
    let keyed = Batch::new(pair.clone(), Times::Constant(0), Diffs::Constant(1)).with_key(&[0]);
    println!("two i64: hash {:.2}", time(|| hash::hash_columns(&pair, ROWS)));
    println!("two i64: partition in 8 {:.2}", time(|| partition(&keyed, 8)));
    println!(
        "sort by hash {:.2}, standard sort {:.2}",
        time(|| sort_by_hash(&hashes)),
        time(|| {
            let mut pairs: Vec<(u64, u32)> = hashes.iter().copied().zip(0..).collect();
            pairs.sort_unstable();
            pairs
        })
    );
    for rows in [1, 16, 1024, 1 << 20] {
        let column: [ArrayRef; 1] = [Arc::new(Int64Array::from_iter_values(0..rows))];
        let hashes = hash::hash_columns(&column, rows as usize);
        let order: Vec<u32> = (0..rows as u32).collect();
        let each = ROWS as f64 / rows as f64;
        println!(
            "{rows} rows: hash {:.1}, sort by hash {:.1}, equal {:.1}, take {:.1}",
            each * time(|| hash::hash_columns(&column, rows as usize)),
            each * time(|| sort_by_hash(&hashes)),
            each * time(|| equal::rows_equal(&column, &order, &column, &order)),
            each * time(|| gather::take(&column, &order)),
        );
    }
}

/// Nanoseconds per row, of `ROWS`, of the best run of `work` in about 50 ms.
fn time<T>(mut work: impl FnMut() -> T) -> f64 {
    let mut run = || {
        let start = Instant::now();
        black_box(work());
        start.elapsed().as_nanos() as u64
    };
    let runs = 3 + 50_000_000 / run().max(1_000);
    let best = (0..runs).map(|_| run()).min().expect("there are at least three runs");
    best as f64 / ROWS as f64
}
