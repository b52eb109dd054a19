use anabranch_arrangement::MergeEffort;

use super::*;
use anabranch_batch::order::Nulls;
use anabranch_batch::{Diff, Diffs, Times};
use anabranch_spec::asof::{AsofJoin, Strategy};
use arrow::array::{AsArray, Int64Array};
use arrow::datatypes::Int64Type;
use std::sync::Arc;

/// Key, instant, name, time, diff.
type Update = (i64, Option<i64>, i64, Time, Diff);
/// Names of the two rows, time, diff.
type Change = (i64, Option<i64>, Time, Diff);

fn join(strategy: Strategy) -> AsofJoin {
    AsofJoin {
        left_key: vec![0],
        right_key: vec![0],
        nulls: Nulls::Differ,
        left_time: 1,
        right_time: 1,
        strategy,
        exact: true,
        tolerance: None,
        outer: false,
    }
}

fn spec(join: AsofJoin) -> AsofSpec {
    AsofSpec {
        join,
        left_types: vec![DataType::Int64; 3],
        right_types: vec![DataType::Int64; 3],
        effort: MergeEffort::default(),
    }
}

fn rows(rows: &[Update]) -> Batch {
    let column = |of: &dyn Fn(&Update) -> Option<i64>| -> ArrayRef {
        Arc::new(Int64Array::from(rows.iter().map(of).collect::<Vec<_>>()))
    };
    let columns = vec![column(&|row| Some(row.0)), column(&|row| row.1), column(&|row| Some(row.2))];
    let times = Times::Column(rows.iter().map(|row| row.3).collect());
    Batch::new(columns, times, Diffs::Column(rows.iter().map(|row| row.4).collect()))
}

fn step(asof: &mut Asof, upto: Time) -> Vec<Change> {
    let mut out = Output::default();
    asof.advance(upto, &mut out);
    let mut changes = Vec::new();
    for batch in &out.rows {
        let (left, right) = (batch.column(2).as_primitive::<Int64Type>(), batch.column(5).as_primitive::<Int64Type>());
        changes.extend((0..batch.len()).map(|row| {
            let right = right.is_valid(row).then(|| right.value(row));
            (left.value(row), right, batch.times().get(row), batch.diffs().get(row))
        }));
    }
    changes.sort_unstable();
    changes
}

#[test]
fn a_right_row_that_comes_and_goes_changes_the_rows_up_to_the_next() {
    let mut asof = Asof::new(spec(join(Strategy::Backward)));
    asof.push(0, rows(&[(1, Some(5), 50, 1, 1), (1, Some(9), 90, 1, 2), (2, Some(5), 51, 1, 1)]));
    asof.push(1, rows(&[(1, Some(3), 30, 1, 1), (1, Some(8), 80, 1, 1)]));
    assert_eq!(step(&mut asof, 2), [(50, Some(30), 1, 1), (90, Some(80), 1, 2)]);
    asof.push(1, rows(&[(1, Some(4), 40, 2, 1), (1, Some(4), 40, 3, -1)]));
    let expected = [(50, Some(30), 2, -1), (50, Some(30), 3, 1), (50, Some(40), 2, 1), (50, Some(40), 3, -1)];
    assert_eq!(step(&mut asof, 4), expected);
    asof.push(1, rows(&[(1, Some(8), 80, 4, -1)]));
    assert_eq!(step(&mut asof, 5), [(90, Some(30), 4, 2), (90, Some(80), 4, -2)]);
}

#[test]
fn rows_without_a_match_are_kept_if_asked_for() {
    let mut asof = Asof::new(spec(AsofJoin { outer: true, tolerance: Some(2), ..join(Strategy::Forward) }));
    asof.push(0, rows(&[(1, Some(5), 50, 1, 1), (1, None, 60, 1, 1)]));
    asof.push(1, rows(&[(1, Some(8), 80, 1, 1), (1, None, 70, 1, 1)]));
    assert_eq!(step(&mut asof, 2), [(50, None, 1, 1), (60, None, 1, 1)]);
    asof.push(1, rows(&[(1, Some(7), 71, 2, 1), (1, Some(7), 70, 3, 1)]));
    assert_eq!(
        step(&mut asof, 4),
        [(50, None, 2, -1), (50, Some(70), 3, 1), (50, Some(71), 2, 1), (50, Some(71), 3, -1)]
    );
}

#[test]
fn the_nearest_row_is_looked_for_on_both_sides() {
    let mut asof = Asof::new(spec(AsofJoin { exact: false, ..join(Strategy::Nearest) }));
    asof.push(0, rows(&[(1, Some(5), 50, 1, 1)]));
    asof.push(
        1,
        rows(&[(1, Some(2), 20, 1, 1), (1, Some(5), 55, 1, 1), (1, Some(8), 80, 2, 1), (1, Some(7), 70, 3, 1)]),
    );
    // (Of two rows as near the later one is taken.)
    let expected = [
        (50, Some(20), 1, 1),
        (50, Some(20), 2, -1),
        (50, Some(70), 3, 1),
        (50, Some(80), 2, 1),
        (50, Some(80), 3, -1),
    ];
    assert_eq!(step(&mut asof, 9), expected);
}

#[test]
fn times_at_the_ends_of_their_range_are_told_apart() {
    for (strategy, left) in [(Strategy::Backward, i64::MAX), (Strategy::Forward, i64::MIN)] {
        let mut asof = Asof::new(spec(AsofJoin { exact: false, ..join(strategy) }));
        let toward = |n: i64| if left > 0 { left - n } else { left + n };
        asof.push(0, rows(&[(1, Some(left), 1, 1, 1), (1, Some(toward(1)), 2, 1, 1)]));
        asof.push(1, rows(&[(1, Some(left), 3, 1, 1), (1, Some(toward(1)), 4, 1, 1), (1, Some(toward(2)), 5, 1, 1)]));
        assert_eq!(step(&mut asof, 2), [(1, Some(4), 1, 1), (2, Some(5), 1, 1)]);
        asof.push(1, rows(&[(1, Some(toward(1)), 4, 2, -1)]));
        assert_eq!(step(&mut asof, 3), [(1, Some(4), 2, -1), (1, Some(5), 2, 1)]);
    }
}

#[test]
fn rows_that_were_taken_back_do_not_put_off_the_next_look() {
    // Bytes of state after so many rounds, in each of which half of the right rows of the last one
    // go again, as where a session gets another beginning.
    let bytes_after = |strategy: Strategy, rounds: i64| {
        let mut asof = Asof::new(spec(join(strategy)));
        for round in 1..=rounds {
            let row = |n: i64, of: i64, time: i64, diff: Diff| (n % 10, Some(of), 1000 * of + n, time, diff);
            asof.push(0, rows(&(0..50).map(|n| row(n, round, round, 1)).collect::<Vec<_>>()));
            let come = (0..200).map(|n| row(n, round, round, 1));
            let go = (0..200).filter(|n| n % 20 >= 10 && round > 1).map(|n| row(n, round - 1, round, -1));
            asof.push(1, rows(&come.chain(go).collect::<Vec<_>>()));
            step(&mut asof, round + 1);
            asof.free(&[0, 1].map(|input| Passed { input, column: 1, below: round - 3 }));
            asof.idle();
        }
        asof.size_bytes()
    };
    for strategy in [Strategy::Backward, Strategy::Forward] {
        let (early, late) = (bytes_after(strategy, 100), bytes_after(strategy, 800));
        assert!(late < 2 * early, "{strategy:?}: {early} bytes became {late}");
    }
}
