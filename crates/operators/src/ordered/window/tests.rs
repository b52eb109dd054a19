use anabranch_spec::aggregate::AggregateCall;
use anabranch_spec::order::SortKey;
use anabranch_spec::window::{Window, WindowCall, WindowFunction};
use std::sync::Arc;

use anabranch_arrangement::MergeEffort;
use anabranch_batch::order::Direction;
use anabranch_batch::{Batch, Diff, Diffs, Time, Times};
use anabranch_spec::aggregate::AggregateFunction;
use anabranch_spec::frame::{Exclude, FrameBound, WindowFrame};
use arrow::array::{ArrayRef, AsArray, Int64Array};
use arrow::datatypes::{DataType, Int64Type};

use super::*;
use anabranch_flow::tactic::{Output, Timed};

/// Key, order, value, at, diff.
type Update = (i64, i64, i64, Time, Diff);

fn sums(start: FrameBound, end: FrameBound, exclude: Exclude) -> WindowTactic {
    let sum = AggregateCall {
        function: AggregateFunction::Sum,
        argument: Some(2),
        distinct: false,
        filter: None,
        order: vec![],
        output_type: DataType::Int64,
    };
    let frame = WindowFrame { start, end, exclude };
    WindowTactic::new(WindowSpec {
        window: Window {
            partition: vec![0],
            order: vec![SortKey::new(1, Direction::ASCENDING)],
            calls: vec![WindowCall { function: WindowFunction::Aggregate(sum), frame }],
        },
        input_types: vec![DataType::Int64; 3],
        effort: MergeEffort::default(),
    })
}

fn changes(window: &mut WindowTactic, updates: &[Update], upto: Time) -> Vec<(i64, i64, i64, Option<i64>, Time, Diff)> {
    let column = |of: fn(&Update) -> i64| Arc::new(updates.iter().map(of).collect::<Int64Array>()) as ArrayRef;
    let times = Times::Column(updates.iter().map(|update| update.3).collect());
    let diffs = Diffs::Column(updates.iter().map(|update| update.4).collect());
    window.push(0, Batch::new(vec![column(|u| u.0), column(|u| u.1), column(|u| u.2)], times, diffs));
    let mut out = Output::default();
    window.advance(upto, &mut out);
    let mut found = Vec::new();
    for batch in out.rows {
        let column = |at: usize| batch.column(at).as_primitive::<Int64Type>();
        for row in 0..batch.len() {
            let [key, order, value] = [0, 1, 2].map(|at| column(at).value(row));
            let sum = column(3).iter().nth(row).unwrap();
            found.push((key, order, value, sum, batch.times().get(row), batch.diffs().get(row)));
        }
    }
    found.sort_by_key(|row| (row.4, row.1, row.5));
    found
}

#[test]
fn a_row_in_between_changes_the_sums_behind_it() {
    let mut window = sums(FrameBound::First, FrameBound::Peers(0), Exclude::Nothing);
    let first = changes(&mut window, &[(1, 1, 5, 1, 1), (1, 3, 2, 1, 1)], 2);
    assert_eq!(first, [(1, 1, 5, Some(5), 1, 1), (1, 3, 2, Some(7), 1, 1)]);
    let second = changes(&mut window, &[(1, 2, 1, 2, 1)], 3);
    assert_eq!(second, [(1, 2, 1, Some(6), 2, 1), (1, 3, 2, Some(7), 2, -1), (1, 3, 2, Some(8), 2, 1)]);
}

#[test]
fn a_frame_that_holds_no_row_sums_to_null() {
    let mut window = sums(FrameBound::Rows(-2), FrameBound::Rows(-1), Exclude::Nothing);
    let rows = [(1, 1, 5, 1, 1), (1, 2, 2, 1, 1), (2, 1, 9, 1, 1)];
    let mut found = changes(&mut window, &rows, 2);
    found.sort();
    assert_eq!(found, [(1, 1, 5, None, 1, 1), (1, 2, 2, Some(5), 1, 1), (2, 1, 9, None, 1, 1)]);
}

#[test]
fn rows_and_their_peers_are_left_out_as_asked() {
    let rows = [(1, 1, 1, 1, 1), (1, 2, 2, 1, 1), (1, 2, 4, 1, 1), (1, 3, 8, 1, 1)];
    let of = |exclude| {
        let found = changes(&mut sums(FrameBound::First, FrameBound::Last, exclude), &rows, 2);
        let mut sums: Vec<_> = found.into_iter().map(|row| (row.2, row.3.unwrap())).collect();
        sums.sort();
        sums.into_iter().map(|(_, sum)| sum).collect::<Vec<_>>()
    };
    assert_eq!(of(Exclude::Nothing), [15, 15, 15, 15]);
    assert_eq!(of(Exclude::Row), [14, 13, 11, 7]);
    assert_eq!(of(Exclude::Peers), [14, 9, 9, 7]);
    assert_eq!(of(Exclude::Ties), [15, 11, 13, 15]);
}
