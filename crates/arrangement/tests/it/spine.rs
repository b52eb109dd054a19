//! Schedules, holds and memory.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use anabranch_arrangement::{Floor, Layout, MergeEffort, ValueOrder, arrangement, snapshot};
use anabranch_batch::{Batch, Diffs, END, Time, Times};
use arrow::array::AsArray;
use arrow::datatypes::{DataType, Int64Type};

use crate::model::{Cell as Value, Rng, Row, to_columns};

fn layout() -> Arc<Layout> {
    Arc::new(Layout { key: vec![0], values: ValueOrder::Hash, types: vec![DataType::Int64, DataType::Int64] })
}

fn batch(rng: &mut Rng, rows: usize, time: Time) -> Batch {
    let rows: Vec<Row> =
        (0..rows).map(|_| vec![Value::Int(rng.below(1 << 30) as i64), Value::Int(rng.below(1 << 30) as i64)]).collect();
    Batch::new(to_columns(&layout().types, &rows), Times::Constant(time), Diffs::Constant(1))
}

#[test]
fn runs_stay_few_and_are_merged_down_by_exertion() {
    // As many keys looked up as rows come in, half as many, hardly any.
    for (lookups, runs_max) in [(20, 14), (8, 24), (0, 40)] {
        check_few_runs(lookups, runs_max);
    }
}

fn check_few_runs(lookups: usize, runs_max: usize) {
    let rng = &mut Rng::new(1);
    let (mut writer, mut reader) = arrangement(layout(), MergeEffort::default());
    let mut most = 0;
    for time in 0..500 {
        writer.push(batch(rng, 20, time));
        writer.complete(time + 1);
        reader.set_since(time);
        most = most.max(reader.runs_for(lookups).len());
    }
    assert!((runs_max / 2..=runs_max).contains(&most), "{most} runs with {lookups} look-ups for 20 rows");
    let mut rounds = 0;
    while writer.exert(&mut 1000) {
        rounds += 1;
    }
    assert!((1..100).contains(&rounds));
    assert!(reader.stats().runs <= 3, "{} runs", reader.stats().runs);
    assert_eq!(reader.stats().rows, 10_000);
    for chunk in reader.runs().iter().flat_map(|run| run.chunks()) {
        assert!(matches!(chunk.times(), Times::Constant(_)), "constant times store no column");
        assert!(matches!(chunk.diffs(), Diffs::Constant(1)));
    }
    assert!(reader.stats().bytes < 10_000 * 28, "{} bytes", reader.stats().bytes);
}

#[test]
fn what_is_retracted_is_freed_without_spare_time() {
    let rng = &mut Rng::new(3);
    let (mut writer, mut reader) = arrangement(layout(), MergeEffort::default());
    let rows = batch(rng, 400_000, 0);
    writer.push(rows.clone());
    writer.complete(1);
    assert_eq!(reader.stats().runs, 1);
    writer.push(rows.slice(0, 300_000).with_times(Times::Constant(1)).negate());
    writer.complete(2);
    assert_eq!(reader.stats().rows, 700_000, "the retractions cannot be merged while a reader is before them");
    for time in 2..60 {
        reader.set_since(time - 1);
        writer.push(batch(rng, 10, time));
        writer.complete(time + 1);
        writer.tidy(&mut 50_000);
    }
    assert_eq!(reader.stats().rows, 100_000 + 58 * 10, "its owner went on with the merge");
}

#[test]
fn what_is_retracted_is_freed_once_no_reader_holds_it() {
    let rng = &mut Rng::new(2);
    let (mut writer, reader) = arrangement(layout(), MergeEffort::default());
    let rows = batch(rng, 20_000, 0);
    writer.push(rows.clone());
    writer.complete(1);
    writer.push(rows.with_times(Times::Constant(5)).negate());
    writer.complete(6);
    while writer.exert(&mut 10_000) {}
    assert_eq!(reader.stats().rows, 40_000, "a reader holds the past");
    let mut late = reader.clone();
    drop(reader);
    late.set_since(5);
    while writer.exert(&mut 10_000) {}
    assert_eq!((late.stats().rows, late.stats().bytes), (0, 0));
}

#[test]
fn an_idle_trickle_does_not_merge_all_over_again() {
    let rng = &mut Rng::new(6);
    let (mut writer, mut reader) = arrangement(layout(), MergeEffort::default());
    writer.push(batch(rng, 100_000, 0));
    writer.complete(1);
    let mut work = 0;
    for time in 1..100 {
        writer.push(batch(rng, 10, time));
        writer.complete(time + 1);
        reader.set_since(time);
        let mut fuel = 1 << 20;
        while writer.exert(&mut fuel) {}
        work += (1 << 20) - fuel;
    }
    assert!(work < 50_000, "{work} rows of work for 990 inserted rows");
}

#[test]
fn what_cancels_in_a_long_merge_is_given_back() {
    let rng = &mut Rng::new(7);
    let (mut writer, mut reader) = arrangement(layout(), MergeEffort::LAZY);
    let rows = batch(rng, 200_000, 0);
    writer.push(rows.clone());
    writer.complete(1);
    assert_eq!(reader.stats().runs, 1);
    writer.push(rows.with_times(Times::Constant(1)).negate());
    reader.set_since(1);
    writer.complete(2);
    writer.exert(&mut 200_000);
    assert!((150_000..250_000).contains(&reader.stats().rows), "{} rows", reader.stats().rows);
    writer.exert(&mut 300_000);
    assert_eq!(reader.stats().rows, 0);
}

#[test]
fn the_slowest_reader_bounds_compaction() {
    let (mut writer, mut first) = arrangement(layout(), MergeEffort::EAGER);
    let mut second = first.clone();
    writer.complete(100);
    first.set_since(50);
    assert_eq!(first.stats().since, Time::MIN);
    second.set_since(20);
    assert_eq!(first.stats().since, 20);
    drop(second);
    assert_eq!(first.stats().since, 50);
    drop(first);
    assert!(!writer.has_readers());
}

#[test]
fn closing_completes_every_time_and_loses_nothing() {
    let rng = &mut Rng::new(3);
    let (mut writer, mut reader) = arrangement(layout(), MergeEffort::EAGER);
    writer.push(batch(rng, 10, 7));
    writer.complete(8);
    writer.close();
    writer.close();
    assert_eq!(reader.upper(), END);
    reader.set_since(END);
    while writer.exert(&mut 1000) {}
    assert!(reader.runs().iter().flat_map(|run| run.chunks().to_vec()).all(|chunk| chunk.times().max() < END));
    assert_eq!(reader.stats().rows, 10);
}

#[test]
fn listeners_are_woken_and_may_read_when_woken() {
    let rng = &mut Rng::new(4);
    let (mut writer, reader) = arrangement(layout(), MergeEffort::EAGER);
    writer.push(batch(rng, 10, 0));
    writer.complete(1);
    let seen = Rc::new(Cell::new(0));
    let (other, count) = (reader.clone(), Rc::clone(&seen));
    let wake = move || count.set(other.stats().rows);
    let mut listener = reader.listen(Some(Box::new(wake)));
    assert_eq!(seen.get(), 0);
    assert_eq!(listener.drain().len(), 1);
    writer.push(batch(rng, 5, 1));
    writer.complete(4);
    assert_eq!(seen.get(), 15);
    writer.complete(9);
    let intervals: Vec<(Time, Time, usize)> =
        listener.drain().iter().map(|sealed| (sealed.lower, sealed.upper, sealed.run.len())).collect();
    assert_eq!(intervals, [(1, 4, 5)]);
    assert_eq!(listener.upper(), 9);
}

#[test]
fn a_listener_that_comes_late_hears_intervals_without_gaps() {
    let rng = &mut Rng::new(5);
    let (mut writer, reader) = arrangement(layout(), MergeEffort { fuel_per_row: 1 });
    for time in 0..40 {
        if time % 3 != 0 {
            writer.push(batch(rng, 500, time));
        }
        writer.complete(time + 1);
        let sealed = reader.listen(None).drain();
        assert!(
            sealed.first().is_some_and(|first| first.lower == Time::MIN)
                && sealed.last().is_some_and(|last| last.upper == time + 1)
        );
        assert!(sealed.windows(2).all(|pair| pair[0].upper == pair[1].lower));
        assert_eq!(sealed.iter().map(|sealed| sealed.run.len()).sum::<usize>(), reader.stats().rows);
    }
}

/// The intervals and rows that a listener is told, and the end of what it knows.
fn told(listener: &mut anabranch_arrangement::Listener) -> (Vec<(Time, Time, usize)>, Time) {
    let sealed = listener.drain();
    let intervals = sealed.iter().map(|sealed| (sealed.lower, sealed.upper, sealed.run.len()));
    (intervals.collect(), listener.upper())
}

#[test]
fn what_lies_beside_is_complete_with_the_rows_until_something_is_written() {
    let rng = &mut Rng::new(6);
    let (mut rows, _reader) = arrangement(layout(), MergeEffort::EAGER);
    let (mut beside, reader) = rows.beside(layout(), MergeEffort::EAGER);
    let woken = Rc::new(Cell::new(0));
    let wake = || -> Option<Box<dyn Fn()>> {
        let woken = Rc::clone(&woken);
        Some(Box::new(move || woken.set(woken.get() + 1)))
    };
    let (mut early, mut follower) = (reader.listen(wake()), reader.follow(Time::MIN, wake()));
    rows.complete(3);
    beside.complete(3);
    assert_eq!((reader.upper(), reader.stats().upper, woken.get()), (3, 3, 0));
    assert_eq!((told(&mut early), follower.drain().1), ((vec![], 3), 3));
    let mut late = reader.listen(wake());
    assert_eq!(told(&mut late), (vec![(Time::MIN, 3, 0)], 3));
    rows.complete(5);
    assert_eq!((late.upper(), follower.upper(), follower.has_news()), (5, 5, false));

    // From the first row on each goes its own way.
    beside.push(batch(rng, 2, 7));
    rows.complete(9);
    assert_eq!((reader.upper(), early.upper(), follower.upper(), woken.get()), (5, 5, 5, 0));
    assert!(follower.has_news() && beside.is_waiting());
    beside.complete(9);
    assert_eq!((reader.upper(), woken.get()), (9, 3));
    assert_eq!((told(&mut early), told(&mut late)), ((vec![(5, 9, 2)], 9), (vec![(5, 9, 2)], 9)));
    let (batches, upper) = follower.drain();
    assert_eq!((batches.iter().map(Batch::len).sum::<usize>(), upper, reader.stats().rows), (2, 9, 2));
    rows.close();
    assert_eq!(reader.upper(), 9);
    beside.close();
    assert_eq!((reader.upper(), follower.upper()), (END, END));
}

/// How many pieces there are after so many one-row batches. With `asks`, a reader reads after each.
fn pieces_after(batches: i64, asks: bool) -> usize {
    let rng = &mut Rng::new(8);
    let (mut writer, mut reader) = arrangement(layout(), MergeEffort::LAZY);
    for time in 0..batches {
        writer.push(batch(rng, 1, time));
        writer.complete(time + 1);
        reader.set_since(time);
        if asks {
            let rows: usize = reader.runs().iter().map(|run| run.len()).sum();
            assert_eq!(rows as i64, time + 1, "it is all there");
        }
    }
    let stats = reader.stats();
    assert_eq!((stats.rows as i64, stats.upper, reader.upper()), (batches, batches, batches));
    let runs = reader.runs();
    let chunks = runs.iter().flat_map(|run| run.chunks());
    // (The newest time is not given up yet when rows are sorted.)
    let is_told_apart = |times: &Times| times.max() - times.min() > 1;
    chunks.inspect(|chunk| assert!(!is_told_apart(chunk.times()), "no reader tells times apart")).count()
}

#[test]
fn what_nobody_asks_for_is_not_sorted_batch_by_batch() {
    assert_eq!(pieces_after(100, true), 100);
    assert_eq!(pieces_after(100, false), 4, "32 batches are a run");
}

#[test]
fn times_that_a_reader_holds_are_kept_apart_in_what_was_held() {
    let rng = &mut Rng::new(9);
    let (mut writer, reader) = arrangement(layout(), MergeEffort::LAZY);
    for time in 0..10 {
        writer.push(batch(rng, 1, time));
        writer.complete(time + 1);
    }
    let runs = reader.runs();
    let times: Vec<Time> = runs
        .iter()
        .flat_map(|run| run.chunks())
        .flat_map(|chunk| (0..chunk.len()).map(|row| chunk.times().get(row)))
        .collect();
    assert_eq!((runs.len(), times.len(), times.iter().max()), (1, 10, Some(&9)));
    assert_eq!(times.iter().collect::<std::collections::BTreeSet<_>>().len(), 10);
}

#[test]
fn idle_time_sorts_what_is_held_if_it_is_much() {
    let rng = &mut Rng::new(10);
    let (mut writer, mut reader) = arrangement(layout(), MergeEffort::LAZY);
    let rows = batch(rng, 100_000, 0);
    writer.push(rows.clone());
    writer.complete(1);
    assert_eq!(reader.stats().rows, 100_000);
    writer.push(rows.slice(0, 20_000).with_times(Times::Constant(1)).negate());
    writer.complete(2);
    reader.set_since(1);
    assert!(writer.exert(&mut 0), "what is held is work to do");
    while writer.exert(&mut 100_000) {}
    assert_eq!(reader.stats().rows, 80_000);
}

/// Values that are replaced again and again: what was there in between is never sorted in, and what
/// is left is right, also where neighbours have one hash but are not equal, and where times are
/// told apart.
#[test]
fn what_is_replaced_leaves_the_last_value() {
    for holds_times in [false, true] {
        let (mut writer, mut reader) = arrangement(layout(), MergeEffort::default());
        let mut rows: Vec<Row> = Vec::new();
        let (mut times, mut diffs) = (Vec::new(), Vec::new());
        for key in 0..500 {
            for time in 0..10 {
                let row = |value| vec![Value::Int(key), Value::Int(value)];
                if time > 0 {
                    rows.push(row(time - 1));
                    times.push(time);
                    diffs.push(-1);
                }
                rows.push(row(time));
                times.push(time);
                diffs.push(1);
            }
        }
        let columns = to_columns(&layout().types, &rows);
        writer.push(Batch::new(columns, Times::Column(times.into()), Diffs::Column(diffs.into())));
        if !holds_times {
            reader.set_since(9);
        }
        writer.complete(10);
        let updates = if holds_times { 500 * 19 } else { 500 };
        assert_eq!(reader.stats().rows, updates);
        let batches = snapshot(&layout(), &reader.runs(), 9);
        let values = batches.iter().flat_map(|batch| batch.column(1).as_primitive::<Int64Type>().values().to_vec());
        assert_eq!(values.collect::<Vec<i64>>(), vec![9; 500]);
    }
}

#[test]
fn rows_below_the_floors_of_all_readers_leave_and_others_stay() {
    let rng = &mut Rng::new(7);
    let (mut writer, mut reader) = arrangement(layout(), MergeEffort::default());
    let (mut other, mut floor, mut most) = (Some(reader.clone()), i64::MIN, 0);
    let above = |rows: &[Batch], floor: i64| {
        let values = |batch: &Batch| {
            let columns = [0, 1].map(|column| batch.column(column).as_primitive::<Int64Type>().clone());
            let rows =
                (0..batch.len()).map(|row| (columns[1].value(row), columns[0].value(row), batch.diffs().get(row)));
            rows.collect::<Vec<_>>()
        };
        let mut rows: Vec<(i64, i64, i64)> =
            rows.iter().flat_map(values).filter(|(value, ..)| *value >= floor).collect();
        rows.sort_unstable();
        rows
    };
    let mut all: Vec<Batch> = Vec::new();
    for time in 0..400 {
        // Values rise with time, in shuffled order of keys.
        let rows: Vec<Row> = (0..100)
            .map(|_| vec![Value::Int(rng.below(1 << 30) as i64), Value::Int(10 * time + rng.below(40) as i64)])
            .collect();
        let batch = Batch::new(to_columns(&layout().types, &rows), Times::Constant(time), Diffs::Constant(1));
        all.push(batch.clone());
        writer.push(batch);
        writer.complete(time + 1);
        reader.set_since(time);
        floor = 10 * time - 100;
        reader.set_floor(Floor { column: 1, below: floor });
        match &mut other {
            // A reader without a floor keeps all; then one whose floor is lower; then there is
            // none.
            Some(other) if time == 150 => other.set_floor(Floor { column: 1, below: 500 }),
            Some(other) if time < 200 => other.set_since(time),
            _ => other = None,
        }
        reader.runs();
        if time == 149 {
            assert_eq!(reader.stats().rows, 15_000, "a reader without a floor keeps all rows");
        }
        most = if time > 300 { most.max(reader.stats().rows) } else { 0 };
        if time % 40 == 39 {
            let found = snapshot(reader.layout(), &reader.runs(), time);
            assert_eq!(above(&found, floor), above(&all, floor), "rows above the floor stay as they are");
        }
    }
    assert!(most < 8_000, "{most} rows where 1,400 are above the floor");
    while writer.exert(&mut 100_000) {}
    let found = snapshot(reader.layout(), &reader.runs(), 399);
    assert_eq!(above(&found, floor), above(&all, floor));
}
