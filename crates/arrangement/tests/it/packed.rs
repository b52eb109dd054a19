//! Keys that lie in few bits.

use std::cell::Cell;
use std::sync::Arc;

use anabranch_arrangement::{Layout, MergeEffort, Reader, ValueOrder, arrangement};
use anabranch_batch::{Batch, Diffs, Times};
use arrow::datatypes::DataType;

use crate::laws::check_reads;
use crate::model::{Cell as Value, Model, Rng, Row, for_seeds, to_columns};

fn layout(key: DataType) -> Arc<Layout> {
    Arc::new(Layout { key: vec![1], values: ValueOrder::Hash, types: vec![DataType::Utf8View, key] })
}

/// How many chunks are packed, and how many are not.
fn count_packed(reader: &Reader) -> (usize, usize) {
    let runs = reader.runs();
    let (packed, others): (Vec<_>, Vec<_>) =
        runs.iter().flat_map(|run| run.chunks()).partition(|chunk| chunk.is_packed());
    (packed.len(), others.len())
}

/// Runs of which some have NULL among their keys, and so are not packed, are merged with others
/// that are.
#[test]
fn arrangements_with_packed_keys_equal_the_model() {
    let (any_packed, any_mixed) = (Cell::new(0), Cell::new(0));
    for_seeds(12, |seed| {
        let rng = &mut Rng::new(seed);
        let layout = layout([DataType::Int64, DataType::Int32][(seed % 2) as usize].clone());
        let (mut writer, mut reader) = arrangement(Arc::clone(&layout), MergeEffort::default());
        let mut pushed = Model::default();
        for time in 0..24 {
            let has_nulls = (6..8).contains(&time);
            let row = |rng: &mut Rng| -> Row {
                let key = if has_nulls && rng.chance(20) { Value::Null } else { Value::Int(rng.between(-20, 2000)) };
                vec![Value::Text(format!("{}", rng.below(4))), key]
            };
            let rows: Vec<Row> = (0..500).map(|_| row(rng)).collect();
            let diffs = rows.iter().map(|_| [1, 1, -1][rng.below(3) as usize]).collect();
            let columns = to_columns(&layout.types, &rows).into();
            let batch = Batch::with_len(columns, rows.len(), Times::Constant(time), Diffs::Column(diffs));
            pushed.add_batch(&batch);
            writer.push(batch);
            writer.complete(time + 1);
            if rng.chance(3) {
                reader.set_since(time);
                while writer.exert(&mut 300) {}
            }
            let (packed, others) = count_packed(&reader);
            any_packed.set(any_packed.get() + usize::from(packed > 0));
            any_mixed.set(any_mixed.get() + usize::from(packed > 0 && others > 0));
            let wanted: Vec<Row> = (0..50).map(|_| row(rng)).collect();
            check_reads(rng, &layout, &reader, &pushed, &wanted);
        }
    });
    assert!(any_packed.get() > 50 && any_mixed.get() > 20, "{any_packed:?} packed, {any_mixed:?} times with others");
}

#[test]
fn neighbouring_keys_take_few_bytes() {
    for (key, in_order) in [(DataType::Int64, true), (DataType::Int64, false), (DataType::Int32, false)] {
        let layout = layout(key);
        let (mut writer, mut reader) = arrangement(Arc::clone(&layout), MergeEffort::default());
        let rng = &mut Rng::new(1);
        for time in 0..50 {
            let key = |row| if in_order { time * 2000 + row } else { rng.between(0, 100_000) };
            let rows: Vec<Row> = (0..2000).map(key).map(|key| vec![Value::Text("x".into()), Value::Int(key)]).collect();
            let columns = to_columns(&layout.types, &rows);
            writer.push(Batch::new(columns, Times::Constant(time), Diffs::Constant(1)));
            writer.complete(time + 1);
        }
        reader.set_since(50);
        while writer.exert(&mut 10_000) {}
        let bytes_per_row = reader.stats().bytes as f64 / reader.stats().rows as f64;
        // (The text and its value word are 24 bytes, a multiplicity that is not 1 takes 8 more.)
        assert!(bytes_per_row < 34.0, "{bytes_per_row} bytes, in order: {in_order}");
    }
}
