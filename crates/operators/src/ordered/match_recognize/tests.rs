use anabranch_spec::order::SortKey;
use anabranch_spec::recognize::{At, Cell, CellValue, End, Fold, RowPattern, Skip};
use std::sync::Arc;

use anabranch_arrangement::MergeEffort;
use anabranch_batch::order::Direction;
use anabranch_batch::{Batch, Columns, Diff, Diffs, Time, Times};
use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array};
use arrow::datatypes::{DataType, Int64Type};

use super::*;
use crate::expression::Expression;
use anabranch_flow::tactic::{Output, Timed};

/// Whether the first cell is less than the second.
struct Less;

impl Expression for Less {
    fn evaluate(&self, columns: &Columns, rows: usize) -> Result<ArrayRef, String> {
        let (a, b) = (columns[0].as_primitive::<Int64Type>(), columns[1].as_primitive::<Int64Type>());
        let less = |row| (a.is_valid(row) && b.is_valid(row)).then(|| a.value(row) < b.value(row));
        Ok(Arc::new((0..rows).map(less).collect::<BooleanArray>()))
    }
}

pub(super) fn cell(end: End, variable: Option<usize>, offset: i64) -> Cell {
    let value = CellValue::Column { column: 2, at: At { end, variable, skipped: 0, offset } };
    Cell { name: String::new(), value, data_type: DataType::Int64 }
}

/// Key, time, value: a value and then smaller and smaller ones; `before` is what a value is
/// compared with.
fn falls(before: Cell) -> Recognize {
    Recognize::new(falls_spec(before))
}

pub(super) fn falls_spec(before: Cell) -> RecognizeSpec {
    let pattern = RowPattern::Sequence(vec![
        RowPattern::Variable(0),
        RowPattern::Repeat { part: Box::new(RowPattern::Variable(1)), min: 1, max: None, is_reluctant: false },
    ]);
    let count = CellValue::Fold { function: Fold::Count, column: None, variable: None };
    RecognizeSpec {
        partition: vec![0],
        order: vec![SortKey::new(1, Direction::ASCENDING)],
        program: RecognizeProgram::new(&pattern).unwrap(),
        variables: vec![
            VariableSpec { name: "a".into(), condition: None },
            VariableSpec {
                name: "b".into(),
                condition: Some(Condition { expression: Arc::new(Less), cells: vec![0, 1] }),
            },
        ],
        cells: vec![cell(End::Last, None, 0), before],
        output: vec![
            cell(End::First, None, 0),
            cell(End::Last, Some(1), 0),
            Cell { name: String::new(), value: count, data_type: DataType::Int64 },
        ],
        skip: Skip::PastLastRow,
        within: None,
        input_types: vec![DataType::Int64; 3],
        effort: MergeEffort::default(),
    }
}

/// Key, time, value, at, diff.
pub(super) type Update = (i64, i64, i64, Time, Diff);
/// Key, first value, last value, rows, at, diff.
pub(super) type Change = (i64, i64, i64, i64, Time, Diff);

pub(super) fn rows(rows: &[Update]) -> Batch {
    let column = |of: &dyn Fn(&Update) -> i64| -> ArrayRef {
        Arc::new(Int64Array::from(rows.iter().map(of).collect::<Vec<_>>()))
    };
    let times = Times::Column(rows.iter().map(|row| row.3).collect());
    let diffs = Diffs::Column(rows.iter().map(|row| row.4).collect());
    Batch::new(vec![column(&|row| row.0), column(&|row| row.1), column(&|row| row.2)], times, diffs)
}

pub(super) fn step(recognize: &mut Recognize, upto: Time) -> Vec<Change> {
    let mut out = Output::default();
    recognize.advance(upto, &mut out);
    assert!(out.errors.is_empty());
    let mut changes = Vec::new();
    for batch in &out.rows {
        let column = |at: usize| batch.column(at).as_primitive::<Int64Type>().clone();
        let (a, b, c, d) = (column(0), column(1), column(2), column(3));
        changes.extend((0..batch.len()).map(|row| {
            let (time, diff) = (batch.times().get(row), batch.diffs().get(row));
            // (NULL is a value that no test has.)
            let [a, b, c, d] = [&a, &b, &c, &d].map(|of| if of.is_null(row) { -99 } else { of.value(row) });
            (a, b, c, d, time, diff)
        }));
    }
    changes.sort_unstable();
    changes
}

#[test]
fn matches_follow_the_rows_of_their_partition() {
    // The row before, seen from the row; and from the match so far.
    for before in [cell(End::Last, None, -1), cell(End::Last, Some(1), -1)] {
        let mut recognize = falls(before);
        recognize
            .push(0, rows(&[(7, 1, 50, 1, 1), (7, 2, 40, 1, 1), (7, 3, 30, 1, 1), (7, 4, 60, 1, 1), (8, 1, 9, 1, 1)]));
        assert_eq!(step(&mut recognize, 2), [(7, 50, 30, 3, 1, 1)]);
        recognize.push(0, rows(&[(7, 5, 20, 2, 1), (8, 2, 8, 2, 1), (7, 3, 30, 3, -1)]));
        let expected = [(7, 50, 30, 3, 3, -1), (7, 50, 40, 2, 3, 1), (7, 60, 20, 2, 2, 1), (8, 9, 8, 2, 2, 1)];
        assert_eq!(step(&mut recognize, 4), expected);
    }
}

#[test]
fn programs_prefer_what_patterns_prefer() {
    let variable = |number| RowPattern::Variable(number);
    let repeat =
        |part: RowPattern, min, max, is_reluctant| RowPattern::Repeat { part: Box::new(part), min, max, is_reluctant };
    // What the variables of a match of n rows are, if every row may be taken for every variable.
    let labels = |pattern: RowPattern, n: usize| {
        let program = RecognizeProgram::new(&pattern).unwrap();
        let mut search = super::search::Search::new(&program, false);
        search.run(0, n, &mut |_, _| Ok(true)).unwrap().then(|| search.labels.clone())
    };
    let greedy = RowPattern::Sequence(vec![repeat(variable(0), 0, None, false), variable(1)]);
    assert_eq!(labels(greedy, 4), Some(vec![0, 0, 0, 1]));
    let reluctant = RowPattern::Sequence(vec![repeat(variable(0), 0, None, true), variable(1)]);
    assert_eq!(labels(reluctant, 4), Some(vec![1]));
    let first = RowPattern::Alternatives(vec![RowPattern::Sequence(vec![variable(0), variable(1)]), variable(2)]);
    assert_eq!((labels(first.clone(), 2), labels(first, 1)), (Some(vec![0, 1]), Some(vec![2])));
    let nested = repeat(repeat(variable(0), 0, Some(2), false), 2, None, false);
    assert_eq!((labels(nested.clone(), 5), labels(nested, 0)), (Some(vec![0; 5]), None));
    let many = repeat(repeat(variable(0), 1000, Some(1000), false), 1000, None, false);
    assert_eq!(RecognizeProgram::new(&many), Err(super::program::TooLarge));
}
