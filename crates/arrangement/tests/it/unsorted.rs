//! Histories of arrangements that are listened to: not sorted until they are read.

use std::sync::Arc;

use anabranch_arrangement::{Layout, MergeEffort, Reader, Run, ValueOrder, Writer, arrangement};
use anabranch_batch::{Batch, Diffs, Times};
use arrow::datatypes::DataType;

use crate::laws::check_reads;
use crate::model::{Cell, Model, Rng, Row, for_seeds, to_columns};

fn layout() -> Arc<Layout> {
    Arc::new(Layout { key: vec![0], values: ValueOrder::Hash, types: vec![DataType::Int64; 2] })
}

fn rows(rng: &mut Rng, n: u64) -> Vec<Row> {
    (0..n).map(|_| vec![Cell::Int(rng.below(5_000) as i64), Cell::Int(rng.below(3) as i64)]).collect()
}

/// An arrangement with a listener, and a history of several batches, of which some cancel.
fn with_history(rng: &mut Rng, effort: MergeEffort, batch_rows: u64) -> (Writer, Reader, Arc<Run>, Model) {
    let layout = layout();
    let (mut writer, reader) = arrangement(Arc::clone(&layout), effort);
    let mut listener = reader.listen(None);
    let mut pushed = Model::default();
    for at in 0..6 {
        let batch =
            Batch::new(to_columns(&layout.types, &rows(rng, batch_rows)), Times::Constant(3), Diffs::Constant(1));
        let mut batches = vec![batch.clone()];
        if at == 4 {
            batches.push(batch.negate());
        }
        for batch in batches {
            pushed.add_batch(&batch);
            writer.push(batch);
        }
    }
    writer.complete(5);
    let mut sealed: Vec<Arc<Run>> = listener.drain().into_iter().map(|sealed| sealed.run).collect();
    let run = sealed.pop().expect("the listener is told of the history");
    (writer, reader, run, pushed)
}

#[test]
fn a_history_is_sorted_when_it_is_read_and_equals_the_model() {
    for_seeds(6, |seed| {
        let rng = &mut Rng::new(seed);
        let (mut writer, reader, run, mut pushed) =
            with_history(rng, MergeEffort::default(), [10, 3_000, 60_000][seed as usize % 3]);
        assert!(!run.is_sorted());
        let mut in_batches = Model::default();
        run.batches().iter().for_each(|batch| in_batches.add_batch(batch));
        assert_eq!(in_batches.contents(4), pushed.contents(4), "the rows are there as they came");
        let wanted = rows(rng, 50);
        if seed < 3 {
            // Spare time sorts it piece by piece; in between everything can be read.
            while writer.exert(&mut 10_000) {
                assert!(reader.runs().len() == 1);
            }
            assert!(run.is_sorted());
        }
        check_reads(rng, &layout(), &reader, &pushed, &wanted);
        assert!(run.is_sorted(), "it was read");
        for time in 5..9 {
            let batch =
                Batch::new(to_columns(&layout().types, &rows(rng, 40_000)), Times::Constant(time), Diffs::Constant(-1));
            pushed.add_batch(&batch);
            writer.push(batch);
            writer.complete(time + 1);
            while writer.tidy(&mut 10_000) {}
            check_reads(rng, &layout(), &reader, &pushed, &wanted);
        }
    });
}

#[test]
fn newer_rows_make_a_history_a_part_of_their_merges() {
    let rng = &mut Rng::new(1);
    let (mut writer, mut reader, run, mut pushed) = with_history(rng, MergeEffort::default(), 5_000);
    for time in 5..60 {
        let batch =
            Batch::new(to_columns(&layout().types, &rows(rng, 2_000)), Times::Constant(time), Diffs::Constant(1));
        pushed.add_batch(&batch);
        writer.push(batch);
        writer.complete(time + 1);
        reader.set_since(time);
        while writer.tidy(&mut 10_000) {}
    }
    assert!(run.is_sorted(), "fuel of insertions has sorted it");
    assert!(reader.stats().runs < 12, "{} runs", reader.stats().runs);
    check_reads(rng, &layout(), &reader, &pushed, &[]);
}

#[test]
fn a_history_of_which_all_cancels_is_no_run() {
    let layout = layout();
    let (mut writer, reader) = arrangement(Arc::clone(&layout), MergeEffort::default());
    let _listener = reader.listen(None);
    let batch =
        Batch::new(to_columns(&layout.types, &rows(&mut Rng::new(7), 100)), Times::Constant(3), Diffs::Constant(1));
    writer.push(batch.clone());
    writer.push(batch.negate());
    writer.complete(5);
    assert_eq!(reader.stats().rows, 200, "what cancels is not known yet");
    assert!(reader.runs()[0].chunks().is_empty());
    writer.tidy(&mut 1000);
    assert_eq!((reader.stats().rows, reader.runs().len()), (0, 0));
}

#[test]
fn several_threads_may_sort_a_history() {
    let rng = &mut Rng::new(3);
    let (mut writer, _reader, run, _) = with_history(rng, MergeEffort::default(), 60_000);
    let n_rows = std::thread::scope(|scope| {
        let count = || run.chunks().iter().map(|chunk| chunk.len()).sum::<usize>();
        let others: Vec<_> = (0..3).map(|_| scope.spawn(count)).collect();
        while writer.exert(&mut 10_000) {}
        others.into_iter().map(|other| other.join().expect("no thread fails")).collect::<Vec<usize>>()
    });
    assert!(n_rows.iter().all(|rows| *rows == n_rows[0] && *rows > 0), "{n_rows:?}");
}
