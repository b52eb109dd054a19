//! Large lives: histories that a slow reader keeps, keys with very many values, and memory that
//! comes back.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use anabranch_arrangement::{
    Chunk, Keys, Layout, Matches, MergeEffort, Reader, Run, ValueCursor, ValueOrder, arrangement, probe, snapshot,
};
use anabranch_batch::hash::hash_columns;
use anabranch_batch::order::Direction;
use anabranch_batch::order::Nulls;
use anabranch_batch::{Batch, Diff, Diffs, Time, Times};
use arrow::array::{ArrayRef, AsArray, Int64Array};
use arrow::datatypes::{DataType, Int64Type};

use crate::model::Rng;

fn layout(values: ValueOrder) -> Arc<Layout> {
    Arc::new(Layout { key: vec![0], values, types: vec![DataType::Int64; 2] })
}

fn batch(rows: impl Iterator<Item = (i64, i64)>, times: Times, diffs: Diffs) -> Batch {
    let (keys, values): (Vec<i64>, Vec<i64>) = rows.unzip();
    Batch::new(vec![Arc::new(Int64Array::from(keys)), Arc::new(Int64Array::from(values))], times, diffs)
}

fn one_key(key: i64) -> Keys {
    let columns: Vec<ArrayRef> = vec![Arc::new(Int64Array::from(vec![key]))];
    Keys::from_columns(&columns, &hash_columns(&columns, 1), Nulls::Differ).0
}

/// Sum of the diffs of a key up to `at`.
fn count(reader: &Reader, key: i64, at: Time) -> Diff {
    let mut matches = Matches::default();
    probe(&reader.runs(), &[0], &one_key(key), 0, at + 1, usize::MAX, &mut matches);
    matches.diffs().iter().sum()
}

const KEYS: i64 = 50;

/// One update a time: at time `t` the key `t % KEYS` changes from its value before to `t`.
fn changes(times: std::ops::Range<Time>) -> Batch {
    let rows = times.clone().flat_map(|t| [(t % KEYS, t), (t % KEYS, t - KEYS)]);
    let rows: Vec<(i64, i64)> = rows.collect();
    let of_time: Vec<Time> = times.clone().flat_map(|t| [t, t]).collect();
    let diffs: Vec<Diff> = times.flat_map(|_| [1, -1]).collect();
    batch(rows.into_iter(), Times::Column(of_time.into()), Diffs::Column(diffs.into()))
}

/// What the contents are at `at`: each key's last value at or before it, and the removal of the
/// value before the first.
fn expected(at: Time) -> Vec<(i64, i64, Diff)> {
    let present = (at - KEYS + 1..=at).map(|t| (t % KEYS, t, 1));
    let removed = (0..KEYS).map(|t| (t, t - KEYS, -1));
    let mut rows: Vec<(i64, i64, Diff)> = present.chain(removed).collect();
    rows.sort_unstable();
    rows
}

fn contents(layout: &Layout, runs: &[Arc<Run>], at: Time) -> Vec<(i64, i64, Diff)> {
    let mut rows = Vec::new();
    for batch in snapshot(layout, runs, at) {
        let cell = |column: usize, row: usize| batch.column(column).as_primitive::<Int64Type>().value(row);
        rows.extend((0..batch.len()).map(|row| (cell(0, row), cell(1, row), batch.diffs().get(row))));
    }
    rows.sort_unstable();
    rows
}

fn check_deep_history(effort: MergeEffort, batch_times: Time, n_times: Time) {
    let layout = layout(ValueOrder::Hash);
    let (mut writer, mut ahead) = arrangement(Arc::clone(&layout), effort);
    let slow = ahead.clone();
    for lower in (0..n_times).step_by(batch_times as usize) {
        let upper = lower + batch_times;
        writer.push(changes(lower..upper));
        writer.complete(upper);
        ahead.set_since(upper - 1);
    }
    assert_eq!(slow.stats().rows as Time, 2 * n_times, "a reader that reads nothing holds every time");
    for at in [KEYS, n_times / 3, n_times - 1] {
        assert_eq!(contents(&layout, &slow.runs(), at), expected(at), "as of {at}");
    }
    let deep = slow.stats().bytes;
    drop(slow);
    while writer.exert(&mut 100_000) {}
    let stats = ahead.stats();
    assert_eq!(stats.rows as i64, 2 * KEYS, "one value a key, and the removal before the first");
    assert!(stats.bytes < 100 * stats.rows && stats.bytes < deep / 100, "{} bytes of {deep} are left", stats.bytes);
    assert_eq!(contents(&layout, &ahead.runs(), n_times - 1), expected(n_times - 1));
}

#[test]
fn a_million_times_unread_by_a_slow_reader_are_there_and_then_released() {
    check_deep_history(MergeEffort::default(), 10_000, 1_000_000);
}

#[test]
fn deep_history_does_not_depend_on_the_schedule_of_merges() {
    check_deep_history(MergeEffort::EAGER, 100, 20_000);
    check_deep_history(MergeEffort::LAZY, 1_000, 20_000);
}

#[test]
fn a_key_with_a_million_values_is_found_walked_and_given_back() {
    const VALUES: i64 = 1_000_000;
    let ascending = Direction { descending: false, nulls_first: false };
    for values in [ValueOrder::Hash, ValueOrder::Sorted(vec![(1, ascending)])] {
        let is_sorted = values != ValueOrder::Hash;
        let layout = layout(values);
        let (mut writer, mut reader) = arrangement(Arc::clone(&layout), MergeEffort::default());
        for part in 0..10 {
            let time = part as Time;
            let rows = (0..VALUES / 10).map(|value| (7, value * 10 + part));
            writer.push(batch(rows.chain([(8, part)]), Times::Constant(time), Diffs::Constant(1)));
            writer.complete(time + 1);
        }
        assert_eq!((count(&reader, 7, 4), count(&reader, 7, 9), count(&reader, 8, 9)), (VALUES / 2, VALUES, 10));
        if is_sorted {
            let mut cursor = ValueCursor::new(&layout, &reader.runs());
            let mut history = Vec::new();
            cursor.seek(&one_key(7), 0, 10);
            for value in 0..5 {
                let (chunk, row) = cursor.next_value(&mut history).expect("the key has a million values");
                let column = cursor.chunks()[chunk as usize].columns()[1].clone();
                assert_eq!(column.as_primitive::<Int64Type>().value(row as usize), value);
            }
        }
        let rows = (1..VALUES).map(|value| (7, value));
        writer.push(batch(rows, Times::Constant(10), Diffs::Constant(-1)));
        writer.complete(11);
        assert_eq!((count(&reader, 7, 9), count(&reader, 7, 10)), (VALUES, 1));
        reader.set_since(10);
        while writer.exert(&mut 100_000) {}
        assert_eq!((reader.stats().rows, count(&reader, 7, 10)), (11, 1));
        assert!(reader.stats().bytes < 1_000, "{} bytes", reader.stats().bytes);
    }
}

#[test]
fn the_chunks_of_an_arrangement_go_with_its_last_reader() {
    let layout = layout(ValueOrder::Hash);
    let (mut writer, reader) = arrangement(Arc::clone(&layout), MergeEffort::default());
    for time in 0..20 {
        let rows = (0..1_000).map(|value| (value * 31 % 977, value + time));
        writer.push(batch(rows, Times::Constant(time), Diffs::Constant(1)));
        writer.complete(time + 1);
    }
    let chunks: Vec<Weak<Chunk>> =
        reader.runs().iter().flat_map(|run| run.chunks().iter().map(Arc::downgrade).collect::<Vec<_>>()).collect();
    let listener = reader.listen(None);
    drop(writer);
    assert!(chunks.iter().all(|chunk| chunk.strong_count() > 0), "a reader keeps what it may read");
    drop(reader);
    assert!(chunks.iter().any(|chunk| chunk.strong_count() > 0), "a listener keeps what it was told");
    drop(listener);
    assert!(chunks.iter().all(|chunk| chunk.strong_count() == 0));
}

/// Rows of one key, of which there are more than a chunk has, in runs that overlap: by words where
/// many differ, one by one where a word has more than a chunk.
#[test]
fn the_rows_of_one_key_are_merged_whatever_their_values() {
    let ascending = Direction { descending: false, nulls_first: false };
    let rng = &mut Rng::new(11);
    for values in [ValueOrder::Hash, ValueOrder::Sorted(vec![(1, ascending)])] {
        // Values of (nearly) their own, a few, and one that half of the rows have.
        for (range, common) in [(1 << 40, 0), (5, 0), (1 << 40, 2), (40_000, 3)] {
            let layout = Arc::new(Layout { key: vec![0], values: values.clone(), types: vec![DataType::Int64; 3] });
            let (mut writer, mut reader) = arrangement(Arc::clone(&layout), MergeEffort::default());
            let mut model: BTreeMap<(i64, i64), Diff> = BTreeMap::new();
            for time in 0..8 {
                let n = 1_000 + rng.below(20_000);
                let mut rows: Vec<((i64, i64), Diff)> = Vec::with_capacity(n as usize);
                for _ in 0..n {
                    let is_common = common > 0 && rng.below(common) == 0;
                    let value = if is_common { 3 } else { rng.below(range) as i64 };
                    rows.push(((value, rng.below(2) as i64), rng.below(3) as Diff - 1));
                }
                // Some of what was there goes.
                rows.extend(model.iter().filter(|(row, _)| row.0 % 3 == 0).map(|(row, diff)| (*row, -diff)));
                rows.iter().for_each(|(row, diff)| *model.entry(*row).or_default() += diff);
                model.retain(|_, diff| *diff != 0);
                let column = |of: &dyn Fn(&(i64, i64)) -> i64| -> ArrayRef {
                    Arc::new(rows.iter().map(|(row, _)| Some(of(row))).collect::<Int64Array>())
                };
                let columns = vec![column(&|_| 7), column(&|row| row.0), column(&|row| row.1)];
                let diffs = Diffs::Column(rows.iter().map(|(_, diff)| *diff).collect());
                writer.push(Batch::new(columns, Times::Constant(time), diffs));
                writer.complete(time + 1);
                reader.runs();
            }
            reader.set_since(7);
            while writer.exert(&mut 5_000) {}
            let mut found = BTreeMap::new();
            for batch in snapshot(&layout, &reader.runs(), 7) {
                let cell = |column: usize, row: usize| batch.column(column).as_primitive::<Int64Type>().value(row);
                for row in 0..batch.len() {
                    *found.entry((cell(1, row), cell(2, row))).or_default() += batch.diffs().get(row);
                }
            }
            assert_eq!(found, model, "{values:?}, {range}, {common}");
            assert_eq!(reader.stats().rows, model.len(), "equal rows are one, and what cancels is gone");
        }
    }
}
