use std::sync::Arc;

use anabranch_batch::{Diff, Diffs, Times};
use arrow::array::{ArrayRef, AsArray, Int64Array};
use arrow::datatypes::Int64Type;

use super::*;

/// Partition, instant, time, diff.
type Update = (i64, Option<i64>, Time, Diff);
/// Instant, first and last time of its session, time, diff.
type Change = (i64, i64, i64, Time, Diff);

fn sessions(gap: u64) -> Sessions {
    let windows = SessionWindows { partition: vec![0], time: 1, gap };
    Sessions::new(SessionSpec { windows, input_types: vec![DataType::Int64; 2], effort: MergeEffort::default() })
}

fn rows(rows: &[Update]) -> Batch {
    let keys: ArrayRef = Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.0)));
    let instants: ArrayRef = Arc::new(Int64Array::from_iter(rows.iter().map(|row| row.1)));
    let times = Times::Column(rows.iter().map(|row| row.2).collect());
    Batch::new(vec![keys, instants], times, Diffs::Column(rows.iter().map(|row| row.3).collect()))
}

fn step(sessions: &mut Sessions, upto: Time) -> Vec<Change> {
    let mut out = Output::default();
    sessions.advance(upto, &mut out);
    let mut changes = Vec::new();
    for batch in &out.rows {
        let [at, first, last] = [1, 2, 3].map(|column| batch.column(column).as_primitive::<Int64Type>());
        changes.extend((0..batch.len()).map(|row| {
            (at.value(row), first.value(row), last.value(row), batch.times().get(row), batch.diffs().get(row))
        }));
    }
    changes.sort_unstable();
    changes
}

#[test]
fn a_row_that_comes_joins_the_sessions_around_it() {
    let mut it = sessions(5);
    it.push(
        0,
        rows(&[(1, Some(1), 1, 1), (1, Some(4), 1, 1), (1, Some(14), 1, 1), (2, Some(9), 1, 1), (1, None, 1, 1)]),
    );
    let expected = [(1, 1, 4, 1, 1), (4, 1, 4, 1, 1), (9, 9, 9, 1, 1), (14, 14, 14, 1, 1)];
    assert_eq!(step(&mut it, 2), expected);
    it.push(0, rows(&[(1, Some(9), 2, 2)]));
    let moved = [(1, 1, 4, 2, -1), (1, 1, 14, 2, 1), (4, 1, 4, 2, -1), (4, 1, 14, 2, 1)];
    let expected = [&moved[..], &[(9, 1, 14, 2, 2), (14, 1, 14, 2, 1), (14, 14, 14, 2, -1)]].concat();
    assert_eq!(step(&mut it, 3), expected);
}

#[test]
fn a_row_that_goes_parts_a_session_only_where_its_neighbours_are_far_apart() {
    let mut it = sessions(5);
    it.push(0, rows(&[1, 4, 6, 9, 14].map(|at| (1, Some(at), 1, 1))));
    step(&mut it, 2);
    it.push(0, rows(&[(1, Some(6), 2, -1)]));
    assert_eq!(step(&mut it, 3), [(6, 1, 14, 2, -1)]);
    it.push(0, rows(&[(1, Some(9), 3, -1)]));
    let expected =
        [(1, 1, 4, 3, 1), (1, 1, 14, 3, -1), (4, 1, 4, 3, 1), (4, 1, 14, 3, -1), (9, 1, 14, 3, -1), (14, 1, 14, 3, -1)];
    assert_eq!(step(&mut it, 4), [&expected[..], &[(14, 14, 14, 3, 1)]].concat());
    it.push(0, rows(&[(1, Some(1), 4, -1), (1, Some(14), 4, -1), (1, Some(5), 4, 1)]));
    let expected = [(1, 1, 4, 4, -1), (4, 1, 4, 4, -1), (4, 4, 5, 4, 1), (5, 4, 5, 4, 1), (14, 14, 14, 4, -1)];
    assert_eq!(step(&mut it, 5), expected);
}

#[test]
fn sessions_that_are_over_leave() {
    let mut it = sessions(5);
    for n in 0..2_000 {
        let time = n + 1;
        // A session of partition 0 goes on for ever; each other one has three rows.
        let others = (0..10).map(|row| (1 + n / 3 * 10 + row, Some(n * 3), time, 1));
        it.push(0, rows(&others.chain([(0, Some(n * 3), time, 1)]).collect::<Vec<_>>()));
        step(&mut it, time + 1);
        it.free(&[Passed { input: 0, column: 1, below: n * 3 }]);
    }
    assert!(it.known.n_partitions() < 40, "{} partitions", it.known.n_partitions());
    assert!(
        it.trace.n_rows() < 12_000,
        "{} rows are kept of 22,000, of which 2,000 are of an open session",
        it.trace.n_rows()
    );
    // The session that goes on still has all its rows.
    it.push(0, rows(&[(0, Some(6_000), 3_000, 1)]));
    assert_eq!(step(&mut it, 3_001).len(), 2 * 2_000 + 1);
}
