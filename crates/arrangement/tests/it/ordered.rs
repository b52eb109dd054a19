//! Keys that come in order, nearly: chunks that nothing is merged with are moved as they are.

use std::sync::Arc;

use anabranch_arrangement::{Layout, MergeEffort, Snapshot, ValueOrder, arrangement};
use anabranch_batch::{Batch, Diffs, Time, Times};
use arrow::datatypes::DataType;

use crate::laws::check_reads;
use crate::model::{Cell, Model, Rng, Row, for_seeds, to_columns};

/// Rows whose keys rise from `base` on, but for a few that are far away or have none.
fn rising(rng: &mut Rng, base: i64, rows: u64, is_pair: bool) -> Vec<Row> {
    let repeats = rng.between(1, 5);
    let has_strays = rng.chance(2);
    let row = |row: i64| {
        let key = match rng.below(200) {
            0 if has_strays => Cell::Null,
            1 if has_strays => Cell::Int([i64::MIN, i64::MAX, 1 << 40, -7][rng.below(4) as usize]),
            _ => Cell::Int(base + row / repeats),
        };
        let value = Cell::Int(rng.below(3) as i64);
        if is_pair { vec![key, value, Cell::Int(0)] } else { vec![key, value] }
    };
    (0..rows as i64).map(row).collect()
}

fn check_rising(seed: u64) {
    let rng = &mut Rng::new(seed);
    let is_pair = rng.chance(2);
    let key = if is_pair { vec![0, 1] } else { vec![0] };
    let types = vec![DataType::Int64; key.len() + 1];
    let layout = Arc::new(Layout { key, values: ValueOrder::Hash, types });
    let efforts = [MergeEffort::EAGER, MergeEffort::LAZY, MergeEffort::default()];
    let (mut writer, mut reader) = arrangement(Arc::clone(&layout), efforts[rng.below(3) as usize]);
    let (mut pushed, mut all, mut base) = (Model::default(), Vec::<Batch>::new(), -20_000);
    for time in 0..10 {
        let n_rows = rng.below(30_000);
        let rows = rising(rng, base, n_rows, is_pair);
        base += (n_rows / 4) as i64 - rng.below(2) as i64 * rng.between(0, 4000);
        let times = match rng.chance(2) {
            true => Times::Constant(time),
            false => Times::Column(rows.iter().map(|_| rng.between(time, time + 3)).collect()),
        };
        let mut batches = vec![Batch::new(to_columns(&layout.types, &rows), times, Diffs::Constant(1))];
        if !all.is_empty() && rng.chance(3) {
            let gone = &all[rng.below(all.len() as u64) as usize];
            batches.push(gone.clone().with_times(Times::Constant(time)).negate());
        }
        for batch in &batches {
            pushed.add_batch(batch);
            writer.push(batch.clone());
        }
        all.extend(batches);
        writer.complete(time + 1);
        if rng.chance(2) {
            reader.set_since(rng.between(reader.since().max(-1), time + 1));
        }
        writer.exert(&mut (rng.below(40_000) as isize));
        let mut wanted: Vec<Row> = rows.into_iter().filter(|_| rng.chance(50)).collect();
        wanted.extend(rising(rng, base, 50, is_pair));
        check_reads(rng, &layout, &reader, &pushed, &wanted);
    }
}

#[test]
fn arrangements_of_rising_keys_equal_the_model() {
    for_seeds(4, check_rising);
}

#[test]
fn chunks_of_rising_keys_are_moved_not_copied() {
    let layout = Arc::new(Layout { key: vec![0], values: ValueOrder::Hash, types: vec![DataType::Int64; 2] });
    let (mut writer, mut reader) = arrangement(Arc::clone(&layout), MergeEffort::LAZY);
    let addresses = |reader: &anabranch_arrangement::Reader| -> Vec<usize> {
        let runs = reader.runs();
        let chunks = runs.iter().flat_map(|run| run.chunks());
        let mut addresses: Vec<usize> =
            chunks.map(|chunk| chunk.column(1).to_data().buffers()[0].as_ptr() as usize).collect();
        addresses.sort_unstable();
        addresses
    };
    for time in 0..12 {
        let rows: Vec<Row> = (0..20_000).map(|row| vec![Cell::Int(20_000 * time + row), Cell::Int(row % 7)]).collect();
        writer.push(Batch::new(to_columns(&layout.types, &rows), Times::Constant(time), Diffs::Constant(1)));
        writer.complete(time + 1);
    }
    let before = addresses(&reader);
    reader.set_since(11);
    while writer.exert(&mut 10_000) {}
    assert_eq!(reader.stats().runs, 1);
    assert_eq!(addresses(&reader), before);
    let runs = reader.runs();
    let mut chunks = runs.iter().flat_map(|run| run.chunks());
    assert!(chunks.all(|chunk| matches!(chunk.times(), Times::Constant(11))), "times are advanced all the same");
}

/// Runs beside each other, as of keys that rise, once came in one portion.
#[test]
fn a_snapshot_is_read_in_portions_wherever_its_runs_lie() {
    let layout = Arc::new(Layout { key: vec![0], values: ValueOrder::Hash, types: vec![DataType::Int64; 2] });
    for (stride, step) in [(20_000, 1), (1, 30), (0, 1), (7_000, 1)] {
        let (mut writer, reader) = arrangement(Arc::clone(&layout), MergeEffort::LAZY);
        for time in 0..30 {
            let rows: Vec<Row> =
                (0..20_000).map(|row| vec![Cell::Int(stride * time + step * row), Cell::Int(time)]).collect();
            writer.push(Batch::new(to_columns(&layout.types, &rows), Times::Constant(time), Diffs::Constant(1)));
            writer.complete(time + 1);
        }
        for mut snapshot in [Snapshot::new(&layout, reader.runs(), 29), Snapshot::loose(&layout, reader.runs(), 29)] {
            let mut portions = Vec::new();
            while let Some(portion) = snapshot.next_portion(10_000) {
                portions.push(portion.iter().map(Batch::len).sum::<usize>());
            }
            assert_eq!(portions.iter().sum::<usize>(), 600_000);
            assert!(portions.iter().all(|rows| *rows <= 15_000), "{portions:?}");
            assert!(portions.len() < 120, "{} portions", portions.len());
        }
    }
}

#[test]
fn a_large_history_is_sorted_in_pieces_and_equals_the_model() {
    let layout = Arc::new(Layout { key: vec![0], values: ValueOrder::Hash, types: vec![DataType::Int64; 2] });
    for_seeds(3, |seed| {
        let rng = &mut Rng::new(seed);
        let (mut writer, reader) = arrangement(Arc::clone(&layout), MergeEffort::default());
        let mut pushed = Model::default();
        let mut batch = |time: Time, rows: u64, diff: i64| {
            let row = |_| vec![Cell::Int(rng.below(100_000) as i64), Cell::Int(rng.below(2) as i64)];
            let rows: Vec<Row> = (0..rows).map(row).collect();
            Batch::new(to_columns(&layout.types, &rows), Times::Constant(time), Diffs::Constant(diff))
        };
        // Enough of one time to be sorted as it comes; some of what is retracted was not there; and
        // some of a later time.
        let mut batches: Vec<Batch> = (0..9).map(|_| batch(3, 40_000, 1)).collect();
        batches.push(batch(3, 50_000, -1));
        batches.push(batch(8, 10_000, 1));
        batches.push(batches[0].clone().with_times(Times::Constant(3)).negate());
        for batch in batches {
            pushed.add_batch(&batch);
            writer.push(batch);
        }
        assert!(writer.is_waiting());
        writer.complete(5);
        assert!(writer.is_waiting(), "10,000 rows of a later time");
        let runs = reader.runs();
        assert_eq!((runs.len(), runs[0].lower(), runs[0].upper()), (1, Time::MIN, 5));
        let wanted: Vec<Row> = (0..1000).map(|key| vec![Cell::Int(key * 97), Cell::Int(0)]).collect();
        writer.complete(9);
        let parts = || reader.runs().iter().map(|run| run.sorted_parts().len()).max();
        assert!(parts() > Some(3), "{:?} parts", parts());
        let mut rounds = 0;
        while writer.tidy(&mut 10_000) {
            if rounds % 10 == 0 {
                check_reads(&mut Rng::new(seed), &layout, &reader, &pushed, &wanted);
            }
            rounds += 1;
        }
        assert!(rounds > 20 && parts() == Some(1), "{rounds} rounds, {:?} parts", parts());
        check_reads(&mut Rng::new(seed), &layout, &reader, &pushed, &wanted);
        assert!(!writer.is_waiting());
    });
}
