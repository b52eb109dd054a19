//! Set operations against their definition.

use anabranch_flow::tactic::Timed;
use anabranch_operators::relational::set_operation::{Operation, SetOperation};

use super::*;

/// Rows reduced to two columns, so that they repeat.
fn narrow(updates: Vec<Update>) -> Vec<Update> {
    let narrow =
        |row: Row| Row { small: None, big: None, price: None, float: row.float.filter(|_| false), flag: None, ..row };
    updates.into_iter().map(|(row, time, diff)| (narrow(row), time, diff)).collect()
}

fn bag_of(updates: &[Update], at: Time) -> Bag {
    let mut bag = Bag::new();
    for (row, count) in contents(updates, at) {
        add(&mut bag, text(&columns(&[row]), 0), count);
    }
    bag
}

fn expected(operation: Operation, inputs: &[Vec<Update>], at: Time) -> Bag {
    let [left, right] = [0, 1].map(|input| inputs.get(input).map(|updates| bag_of(updates, at)).unwrap_or_default());
    let mut bag = Bag::new();
    for (row, l) in left {
        let r = right.get(&row).copied().unwrap_or(0);
        let count = match operation {
            Operation::Distinct => 1,
            Operation::ExceptAll => (l - r).max(0),
            Operation::IntersectAll => l.min(r),
            Operation::Except => Diff::from(r == 0),
            Operation::Intersect => Diff::from(r > 0),
        };
        add(&mut bag, row, count);
    }
    bag
}

fn check(operation: Operation) {
    with_seeds(|random| {
        let n_inputs = if operation == Operation::Distinct { 1 } else { 2 };
        let inputs: Vec<Vec<Update>> = (0..n_inputs).map(|_| narrow(updates(random, 120))).collect();
        let mut tactic = SetOperation::new(operation, types());
        let collected = run(&mut tactic, &inputs, random);
        for at in 0..=TIMES {
            assert_eq!(collected.rows_at(at), expected(operation, &inputs, at), "at {at}");
        }
        let full = tactic.n_rows();
        retract(&mut tactic, &inputs);
        assert!(full > 0);
        assert_eq!(tactic.n_rows(), 0, "state is given back");
    });
}

#[test]
fn distinct_keeps_each_row_once() {
    check(Operation::Distinct);
}

#[test]
fn except_all_subtracts() {
    check(Operation::ExceptAll);
}

#[test]
fn intersect_all_takes_the_lesser() {
    check(Operation::IntersectAll);
}

#[test]
fn except_keeps_what_right_lacks() {
    check(Operation::Except);
}

#[test]
fn intersect_keeps_what_both_have() {
    check(Operation::Intersect);
}

#[test]
fn memory_is_given_back_when_many_rows_vanish() {
    if crate::hash_mask() != !0 {
        return;
    }
    let keys: ArrayRef = Arc::new((0..200_000).collect::<Int64Array>());
    let rows = Batch::new(vec![keys], Times::Constant(1), Diffs::Constant(1));
    let mut tactic = SetOperation::new(Operation::Distinct, vec![DataType::Int64]);
    tactic.push(0, rows.clone());
    tactic.advance(2, &mut Output::default());
    let full = tactic.size_bytes();
    tactic.push(0, rows.slice(1, 199_999).negate().with_times(Times::Constant(3)));
    let mut output = Output::default();
    tactic.advance(4, &mut output);
    let n_gone: usize = output.rows.iter().map(Batch::len).sum();
    assert_eq!((tactic.n_rows(), n_gone), (1, 199_999));
    assert!(tactic.size_bytes() < full / 100, "{} of {full} bytes left", tactic.size_bytes());
    // The row that is left is still known.
    tactic.push(0, rows.slice(0, 1).with_times(Times::Constant(5)));
    let mut output = Output::default();
    tactic.advance(6, &mut output);
    assert!(output.rows.is_empty());
}
