//! What an arrangement says does not depend on cuts, merges, compaction or collisions.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use anabranch_arrangement::{
    Follower, Keys, Layout, Listener, Matches, MergeEffort, Origin, Reader, Run, ValueCursor, ValueOrder, arrangement,
    probe, snapshot,
};
use anabranch_batch::hash::hash_columns;
use anabranch_batch::order::Nulls;
use anabranch_batch::{Batch, Diff, Diffs, Time, Times, Until};
use arrow::array::ArrayRef;

use crate::model::{
    Model, Rng, Row, compare_values, random_batch, random_layout, random_row, random_spread, read_row, to_columns,
};

const EFFORTS: [MergeEffort; 4] =
    [MergeEffort::EAGER, MergeEffort::LAZY, MergeEffort { fuel_per_row: 1 }, MergeEffort { fuel_per_row: 4 }];

/// What was pushed, for an arrangement that need not keep it.
#[derive(Debug)]
struct Pushed {
    layout: Arc<Layout>,
    sums: RefCell<Model>,
    recalls: Cell<usize>,
}

impl Origin for Pushed {
    fn n_rows_max(&self) -> usize {
        self.sums.borrow().0.len()
    }

    fn recall(&self) -> Vec<Batch> {
        self.recalls.set(self.recalls.get() + 1);
        let (rows, diffs): (Vec<Row>, Vec<Diff>) = self.sums.borrow().contents(Time::MAX).into_iter().unzip();
        let columns = to_columns(&self.layout.types, &rows);
        vec![Batch::with_len(columns.into(), rows.len(), Times::Constant(0), Diffs::Column(diffs.into()))]
    }
}

/// Builds, merges, compacts and reads an arrangement at random. Returns how often it had its rows
/// come back from where they came from.
pub fn check_life(seed: u64, batch_rows: u64, rounds: usize, has_origin: bool) -> usize {
    let rng = &mut Rng::new(seed);
    let layout = Arc::new(random_layout(rng));
    let (mut writer, mut reader) = arrangement(Arc::clone(&layout), EFFORTS[rng.below(4) as usize]);
    let (mut pushed, mut lower) = (Model::default(), Time::MIN);
    let origin = Rc::new(Pushed { layout: Arc::clone(&layout), sums: RefCell::default(), recalls: Cell::new(0) });
    if has_origin {
        writer.set_origin(Rc::clone(&origin) as Rc<dyn Origin>, [50, usize::MAX][rng.below(2) as usize]);
    }
    let mut listeners: Vec<(Listener, Vec<Arc<Run>>)> = Vec::new();
    let mut followers: Vec<(Follower, Time, Model)> = Vec::new();
    // (Without listeners what is not read is held.)
    let (listens, reads) = (rng.chance(2), 1 + rng.below(4));
    if listens && rng.chance(2) {
        // (What comes first is then not sorted until it is read.)
        listeners.push((reader.listen(None), Vec::new()));
    }
    let mut next_time = 0;
    for _ in 0..rounds {
        for _ in 0..rng.below(4) {
            let rows = rng.below(batch_rows);
            let mut batch = random_batch(rng, &layout.types, next_time, rows);
            if rng.chance(4) {
                batch = batch.with_until(Until::Duration(rng.between(1, 9)));
            }
            pushed.add_batch(&batch.clone().flatten());
            origin.sums.borrow_mut().add_batch(&batch.clone().flatten());
            writer.push(batch);
        }
        next_time += rng.between(0, 5);
        let upper = next_time.max(lower.saturating_add(1));
        next_time = upper;
        writer.complete(upper);
        lower = upper;
        reader.set_since(rng.between(reader.since().max(-1), upper.max(reader.since().max(-1) + 1)));
        if rng.chance(2) {
            writer.exert(&mut (rng.below(2 * batch_rows) as isize));
        }
        if listens && rng.chance(4) {
            listeners.push((reader.listen(None), Vec::new()));
        }
        if rng.chance(4) {
            let after = rng.between(reader.since().max(-1), upper);
            followers.push((reader.follow(after, None), after, Model::default()));
        }
        for (follower, _, heard) in &mut followers {
            let (batches, complete) = follower.drain();
            batches.iter().for_each(|batch| heard.add_batch(batch));
            assert_eq!(complete, upper);
        }
        for (listener, runs) in &mut listeners {
            runs.extend(listener.drain().into_iter().map(|sealed| sealed.run));
            assert_eq!(listener.upper(), upper);
        }
        if rng.chance(8) {
            let at = rng.between(reader.since().max(-1), upper);
            check_snapshot(&layout, &reader.runs_until(at), at, &pushed.contents(at));
        }
        if rng.chance(reads) {
            let n_wanted = 1 + rng.below(1 + batch_rows / 3);
            let wanted: Vec<Row> = {
                let spread = random_spread(rng);
                (0..n_wanted).map(|_| random_row(rng, &layout.types, spread, true)).collect()
            };
            check_reads(rng, &layout, &reader, &pushed, &wanted);
        }
    }
    check_reads(rng, &layout, &reader, &pushed, &[]);
    let at = lower - 1;
    for (_, after, heard) in &followers {
        for time in [*after, (*after + at) / 2, at].into_iter().filter(|time| time >= after) {
            let change = |model: &Model| difference(&model.contents(time), &model.contents(*after));
            assert_eq!(change(heard), change(&pushed), "a follower hears everything after a time");
        }
    }
    for (_, runs) in &listeners {
        assert_eq!(accumulate(runs, at), pushed.contents(at), "a listener hears everything");
    }
    origin.recalls.get()
}

/// What is to be added to `before` to get `after`.
fn difference(after: &BTreeMap<Row, Diff>, before: &BTreeMap<Row, Diff>) -> BTreeMap<Row, Diff> {
    let mut difference = after.clone();
    for (row, diff) in before {
        *difference.entry(row.clone()).or_default() -= diff;
    }
    difference.retain(|_, diff| *diff != 0);
    difference
}

/// Reads everything, and what is under the keys of the rows `wanted`, at some time.
pub fn check_reads(rng: &mut Rng, layout: &Layout, reader: &Reader, pushed: &Model, wanted: &[Row]) {
    let at = rng.between(reader.since().max(-1), reader.upper());
    let (runs, contents) = (reader.runs(), pushed.contents(at));
    assert_eq!(runs.iter().map(|run| run.len()).sum::<usize>(), reader.stats().rows);
    assert_eq!(accumulate(&runs, at), contents, "the runs accumulate to what was pushed");
    check_snapshot(layout, &runs, at, &contents);
    check_run_keys(layout, &runs);
    check_probe(rng, layout, &runs, at, &contents, wanted);
}

fn accumulate(runs: &[Arc<Run>], at: Time) -> BTreeMap<Row, Diff> {
    let mut model = Model::default();
    for chunk in runs.iter().flat_map(|run| run.chunks()) {
        assert!(chunk.key_hashes().is_sorted(), "a chunk is sorted by hash");
        let columns = chunk.columns();
        for row in 0..chunk.len() {
            assert_ne!(chunk.diffs().get(row), 0, "no diff is zero");
            model.add(read_row(&columns, row), chunk.times().get(row), chunk.diffs().get(row));
        }
    }
    model.contents(at)
}

fn check_snapshot(layout: &Layout, runs: &[Arc<Run>], at: Time, contents: &BTreeMap<Row, Diff>) {
    let batches = snapshot(layout, runs, at);
    let rows = batches
        .iter()
        .flat_map(|batch| (0..batch.len()).map(move |row| (read_row(batch.columns(), row), batch.diffs().get(row))));
    let rows: Vec<(Row, Diff)> = rows.collect();
    assert!(batches.iter().all(|batch| batch.times().min() == at && batch.times().max() == at));
    assert_eq!(rows.len(), contents.len(), "a snapshot has each row once");
    assert_eq!(&rows.into_iter().collect::<BTreeMap<_, _>>(), contents);
}

fn check_run_keys(layout: &Layout, runs: &[Arc<Run>]) {
    for run in runs {
        for nulls in [Nulls::Equal, Nulls::Differ] {
            let (keys, of_row) = Keys::from_run(run, &layout.key, nulls);
            check_distinct(&keys);
            for (chunk, of_row) in run.chunks().iter().zip(&of_row) {
                let columns = chunk.columns();
                for (row, &key) in of_row.iter().enumerate() {
                    let cells = key_of(layout, &read_row(&columns, row));
                    match key {
                        u32::MAX => assert!(nulls == Nulls::Differ && cells.contains(&crate::model::Cell::Null)),
                        key => assert_eq!(read_row(keys.columns(), key as usize), cells),
                    }
                }
            }
        }
    }
}

fn check_distinct(keys: &Keys) {
    assert!(keys.hashes().is_sorted());
    let rows: Vec<Row> = (0..keys.len()).map(|key| read_row(keys.columns(), key)).collect();
    let mut distinct = rows.clone();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), rows.len(), "keys are distinct");
}

fn key_of(layout: &Layout, row: &Row) -> Row {
    layout.key.iter().map(|&column| row[column].clone()).collect()
}

fn check_probe(
    rng: &mut Rng,
    layout: &Layout,
    runs: &[Arc<Run>],
    at: Time,
    contents: &BTreeMap<Row, Diff>,
    rows: &[Row],
) {
    let columns = to_columns(&layout.types, rows);
    let columns: Vec<ArrayRef> = layout.key.iter().map(|&column| columns[column].clone()).collect();
    let (keys, of_row) = Keys::from_columns(&columns, &hash_columns(&columns, rows.len()), Nulls::Equal);
    check_distinct(&keys);
    for (row, &key) in rows.iter().zip(&of_row) {
        assert_eq!(read_row(keys.columns(), key as usize), key_of(layout, row));
    }

    let fuel = 1 + rng.below(50) as usize;
    let all: Vec<usize> = (0..layout.types.len()).collect();
    let (mut next, mut matches, mut found) = (0, Matches::default(), BTreeMap::new());
    while next < keys.len() {
        let from = next;
        matches.clear();
        next = probe(runs, &layout.key, &keys, from, at + 1, fuel, &mut matches);
        assert!(from < next && matches.key.is_sorted());
        let (columns, times, diffs) = (matches.gather(&all), matches.times(), matches.diffs());
        for (i, &key) in matches.key.iter().enumerate() {
            let row = read_row(&columns, i);
            assert!(
                (from..next).contains(&(key as usize)) && times[i] <= at && matches.range_of(key as usize).contains(&i)
            );
            assert_eq!(key_of(layout, &row), read_row(keys.columns(), key as usize));
            *found.entry(row).or_insert(0) += diffs[i];
        }
    }
    found.retain(|_, diff| *diff != 0);
    let wanted: std::collections::BTreeSet<Row> = rows.iter().map(|row| key_of(layout, row)).collect();
    let expected: BTreeMap<Row, Diff> = contents
        .iter()
        .filter(|(row, _)| wanted.contains(&key_of(layout, row)))
        .map(|(row, diff)| (row.clone(), *diff))
        .collect();
    assert_eq!(found, expected, "a probe finds all of its keys and nothing else");
    if matches!(layout.values, ValueOrder::Sorted(_)) {
        check_cursor(layout, runs, &keys, at, &expected);
    }
}

fn check_cursor(layout: &Layout, runs: &[Arc<Run>], keys: &Keys, at: Time, expected: &BTreeMap<Row, Diff>) {
    let mut cursor = ValueCursor::new(layout, runs);
    let (mut history, mut found) = (Vec::new(), BTreeMap::new());
    for key in 0..keys.len() {
        cursor.seek(keys, key, at + 1);
        let mut previous: Option<Row> = None;
        while let Some((chunk, row)) = cursor.next_value(&mut history) {
            let row = read_row(cursor.sources()[chunk as usize], row as usize);
            assert_eq!(key_of(layout, &row), read_row(keys.columns(), key));
            assert!(history.iter().all(|&(time, diff)| time <= at && diff != 0));
            assert!(history.is_sorted_by(|a, b| a.0 < b.0));
            assert!(
                previous.is_none_or(|previous| compare_values(layout, &previous, &row).is_lt()),
                "values come in order"
            );
            found.insert(row.clone(), history.iter().map(|&(_, diff)| diff).sum::<Diff>());
            previous = Some(row);
        }
    }
    found.retain(|_, diff| *diff != 0);
    assert_eq!(&found, expected, "a walk over all values finds what a probe finds");
}
