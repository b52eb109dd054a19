//! Answers checked by hand.

use std::num::NonZeroU64;
use std::sync::Arc;

use anabranch_plan::{AggregateFunction, JoinKind, RankedBy, RoundLimit, TopK};
use arrow::datatypes::DataType;

use super::*;
use crate::build::{Builder, JoinOn, Relation, ascending, call, col, descending};
use crate::generator::expressions::lit;

/// `r(a bigint, b text)`, one entry a row and how often it is there.
fn two_relations(
    left: &[(Option<i64>, &str, i64)],
    right: &[(Option<i64>, &str, i64)],
) -> (Relation, Relation, Inputs) {
    let types = [DataType::Int64, DataType::Utf8View];
    let (l, r) = (Relation::new("l", &types), Relation::new("r", &types));
    let inputs = [(l.name.clone(), contents(left)), (r.name.clone(), contents(right))].into_iter().collect();
    (l, r, inputs)
}

fn contents(rows: &[(Option<i64>, &str, i64)]) -> Contents {
    rows.iter().map(|(a, b, count)| (Row::new([ScalarValue::Int64(*a), ScalarValue::from(*b)]), *count)).collect()
}

fn shown(answer: &Answer) -> Vec<String> {
    answer.rows.iter().map(|(row, count)| format!("{count}{row:?}")).collect()
}

fn join_kinds(kind: JoinKind) -> Vec<String> {
    let (l, r, inputs) = two_relations(
        &[(Some(1), "p", 2), (Some(2), "q", 1), (None, "n", 1)],
        &[(Some(1), "x", 3), (Some(3), "y", 1), (None, "z", 1)],
    );
    let mut b = Builder::new();
    let (l, r) = (b.scan(&l), b.scan(&r));
    shown(&evaluate(&b.join(&l, &r, JoinOn::new(kind, &[(0, 0)])), &inputs))
}

#[test]
fn joins_multiply_and_null_keys_match_nothing() {
    assert_eq!(join_kinds(JoinKind::Inner), ["6(1, p, 1, x)"]);
    assert_eq!(join_kinds(JoinKind::Left), ["6(1, p, 1, x)", "1(2, q, NULL, NULL)", "1(NULL, n, NULL, NULL)"]);
    assert_eq!(join_kinds(JoinKind::Right), ["6(1, p, 1, x)", "1(NULL, NULL, 3, y)", "1(NULL, NULL, NULL, z)"]);
    assert_eq!(join_kinds(JoinKind::Full).len(), 5);
}

#[test]
fn semi_and_anti_joins_keep_multiplicities_of_the_left() {
    assert_eq!(join_kinds(JoinKind::LeftSemi), ["2(1, p)"]);
    assert_eq!(join_kinds(JoinKind::LeftAnti), ["1(2, q)", "1(NULL, n)"]);
    assert_eq!(join_kinds(JoinKind::LeftMark), ["2(1, p, true)", "1(2, q, false)", "1(NULL, n, false)"]);
}

#[test]
fn not_in_yields_nothing_once_the_right_has_a_null() {
    assert_eq!(join_kinds(JoinKind::LeftAntiNullAware), Vec::<String>::new());
    let (l, r, inputs) = two_relations(&[(Some(1), "p", 2), (Some(2), "q", 1), (None, "n", 1)], &[(Some(1), "x", 1)]);
    let mut b = Builder::new();
    let (l, r) = (b.scan(&l), b.scan(&r));
    let plan = b.join(&l, &r, JoinOn::new(JoinKind::LeftAntiNullAware, &[(0, 0)]));
    assert_eq!(shown(&evaluate(&plan, &inputs)), ["1(2, q)"]);
}

#[test]
fn a_global_aggregate_over_nothing_has_its_one_row() {
    let (l, _, inputs) = two_relations(&[], &[]);
    let mut b = Builder::new();
    let l = b.scan(&l);
    let calls = vec![call(AggregateFunction::Count, &l, None), call(AggregateFunction::Sum, &l, Some(0))];
    assert_eq!(shown(&evaluate(&b.aggregate(&l, &[], calls.clone()), &inputs)), ["1(0, NULL)"]);
    assert!(evaluate(&b.aggregate(&l, &[1], calls), &inputs).rows.is_empty());
}

#[test]
fn nulls_group_together_and_are_left_out_of_sums() {
    let (l, _, inputs) = two_relations(&[(None, "n", 2), (Some(4), "n", 1), (Some(5), "m", 2)], &[]);
    let mut b = Builder::new();
    let l = b.scan(&l);
    let count_all = call(AggregateFunction::Count, &l, None);
    let mut distinct = call(AggregateFunction::Sum, &l, Some(0));
    distinct.distinct = true;
    let calls = vec![count_all, call(AggregateFunction::Avg, &l, Some(0)), distinct];
    assert_eq!(shown(&evaluate(&b.aggregate(&l, &[1], calls), &inputs)), ["1(m, 2, 5, 5)", "1(n, 3, 4, 4)"]);
}

#[test]
fn the_first_rows_count_copies() {
    let (l, _, inputs) = two_relations(&[(Some(1), "a", 2), (Some(2), "b", 2), (None, "c", 1)], &[]);
    let mut b = Builder::new();
    let l = b.scan(&l);
    let ranked = RankedBy::Row;
    let top =
        |order, offset, numbered| TopK { group: vec![], order: vec![order], ranked, offset, limit: Some(2), numbered };
    let plan = b.top(&l, top(ascending(0), 1, false));
    assert_eq!(shown(&evaluate(&plan, &inputs)), ["1(1, a)", "1(2, b)"]);
    let plan = b.top(&l, top(descending(0), 0, true));
    assert_eq!(shown(&evaluate(&plan, &inputs)), ["1(2, b, 2)", "1(NULL, c, 1)"]);
    let plan = b.top(&l, TopK { ranked: RankedBy::Rank, ..top(descending(0), 0, true) });
    assert_eq!(shown(&evaluate(&plan, &inputs)), ["2(2, b, 2)", "1(NULL, c, 1)"]);
    let plan = b.top(&l, TopK { ranked: RankedBy::Rank, ..top(ascending(0), 0, true) });
    assert_eq!(shown(&evaluate(&plan, &inputs)), ["2(1, a, 1)"]);
    let plan = b.top(&l, TopK { ranked: RankedBy::DenseRank, ..top(ascending(0), 0, true) });
    assert_eq!(shown(&evaluate(&plan, &inputs)), ["2(1, a, 1)", "2(2, b, 2)"]);
}

#[test]
fn set_operations_count_copies() {
    let (l, r, inputs) = two_relations(&[(Some(1), "a", 3), (Some(2), "b", 1)], &[(Some(1), "a", 1)]);
    let mut b = Builder::new();
    let (l, r) = (b.scan(&l), b.scan(&r));
    let mut of = |operation| shown(&evaluate(&b.set(operation, &l, &r), &inputs));
    assert_eq!(of(SetOperation::ExceptAll), ["2(1, a)", "1(2, b)"]);
    assert_eq!(of(SetOperation::IntersectAll), ["1(1, a)"]);
    assert_eq!(of(SetOperation::Except), ["1(2, b)"]);
    assert_eq!(of(SetOperation::Intersect), ["1(1, a)"]);
}

#[test]
fn a_row_that_fails_is_an_error_and_not_a_row() {
    let (l, _, inputs) = two_relations(&[(Some(0), "a", 2), (Some(2), "b", 1)], &[]);
    let mut b = Builder::new();
    let l = b.scan(&l);
    let answer = evaluate(&b.stage(&l, vec![], vec![lit(6_i64) / col(&l, 0)]), &inputs);
    assert_eq!(shown(&answer), ["1(3)"]);
    assert_eq!(answer.errors.values().copied().collect::<Vec<_>>(), [2]);
    let guarded = b.stage(&l, vec![col(&l, 0).not_eq(lit(0_i64))], vec![lit(6_i64) / col(&l, 0)]);
    assert!(evaluate(&guarded, &inputs).errors.is_empty());
}

#[test]
fn lists_come_apart_again() {
    let (l, _, inputs) = two_relations(&[(Some(2), "a", 1), (Some(1), "a", 2)], &[]);
    let mut b = Builder::new();
    let l = b.scan(&l);
    let lists = b.aggregate(&l, &[1], vec![call(AggregateFunction::ArrayAgg, &l, Some(0))]);
    assert_eq!(shown(&evaluate(&b.unnest(&lists, &[1], false), &inputs)), ["2(a, 1)", "1(a, 2)"]);
}

#[test]
fn whole_numbers_do_not_wrap_around() {
    let (l, _, inputs) = two_relations(&[(Some(i64::MAX), "a", 1), (Some(1), "a", 1)], &[]);
    let mut b = Builder::new();
    let l = b.scan(&l);
    let plus = evaluate(&b.stage(&l, vec![], vec![col(&l, 0) + lit(1_i64)]), &inputs);
    assert_eq!((shown(&plus), plus.errors.len()), (vec!["1(2)".to_string()], 1));
    let sum = b.aggregate(&l, &[], vec![call(AggregateFunction::Sum, &l, Some(0))]);
    let sum = evaluate(&sum, &inputs);
    assert_eq!((shown(&sum), sum.errors.len()), (vec![], 1));
}

/// Pairs of numbers.
fn edges(pairs: &[(i64, i64)]) -> (Relation, Inputs) {
    let relation = Relation::new("e", &[DataType::Int64, DataType::Int64]);
    let row = |(a, b): &(i64, i64)| (Row::new([ScalarValue::Int64(Some(*a)), ScalarValue::Int64(Some(*b))]), 1);
    let inputs = [(relation.name.clone(), pairs.iter().map(row).collect())].into_iter().collect();
    (relation, inputs)
}

/// The transitive closure of edges: `v := distinct (e union v joined with e)`.
fn closure(b: &mut Builder, edges: &Relation, limit: RoundLimit) -> Arc<Plan> {
    let e = b.scan(edges);
    let types = [DataType::Int64, DataType::Int64];
    let v = b.variable(0, 0, &types);
    let further = b.join_output(&v, &e, JoinOn::new(JoinKind::Inner, &[(1, 0)]), vec![0, 3]);
    let both = b.union(vec![e, further]);
    let distinct = b.distinct(&both);
    let result = b.variable(0, 0, &types);
    b.recursive(vec![distinct], &result, limit)
}

#[test]
fn a_loop_goes_on_to_its_fixed_point_or_its_limit() {
    let (e, inputs) = edges(&[(1, 2), (2, 3), (3, 1)]);
    let mut b = Builder::new();
    assert_eq!(evaluate(&closure(&mut b, &e, RoundLimit::None), &inputs).rows.len(), 9);
    let rounds = |rounds| NonZeroU64::new(rounds).expect("the number is not zero");
    let cut = evaluate(&closure(&mut b, &e, RoundLimit::Return(rounds(1))), &inputs);
    assert_eq!((cut.rows.len(), cut.errors.len()), (3, 0));
    // The third round finds the last rows, the fourth that there are no more.
    let failed = |limit| evaluate(&closure(&mut b, &e, RoundLimit::Error(rounds(limit))), &inputs).errors;
    assert_eq!([1, 2, 3, 4].map(failed).map(|errors| errors.len()), [1, 1, 1, 0]);
}

#[test]
fn a_binding_sees_earlier_ones_as_of_this_round() {
    let (e, inputs) = edges(&[(1, 2)]);
    let types = [DataType::Int64, DataType::Int64];
    let mut b = Builder::new();
    let of_order = |b: &mut Builder, is_forward: bool| {
        let (e, other) = (b.scan(&e), b.variable(0, usize::from(!is_forward), &types));
        let plans = if is_forward { vec![e, other] } else { vec![other, e] };
        let result = b.variable(0, usize::from(is_forward), &types);
        b.recursive(plans, &result, RoundLimit::Return(NonZeroU64::MIN))
    };
    let (forward, backward) = (of_order(&mut b, true), of_order(&mut b, false));
    assert_eq!(shown(&evaluate(&forward, &inputs)), ["1(1, 2)"]);
    assert_eq!(shown(&evaluate(&backward, &inputs)), Vec::<String>::new());
}

#[test]
fn variables_of_outer_loops_are_seen_in_inner_ones() {
    let (e, inputs) = edges(&[(1, 2), (2, 3), (3, 4)]);
    let types = [DataType::Int64, DataType::Int64];
    let mut b = Builder::new();
    // Inside: all that can be reached from the outer variable's rows, which start as the edges.
    let (edges, outer, inner) = (b.scan(&e), b.variable(1, 0, &types), b.variable(0, 0, &types));
    let further = b.join_output(&inner, &outer, JoinOn::new(JoinKind::Inner, &[(1, 0)]), vec![0, 3]);
    let all = b.union(vec![edges, outer, further]);
    let all = b.distinct(&all);
    let result = b.variable(0, 0, &types);
    let inside = b.recursive(vec![all], &result, RoundLimit::None);
    assert!(!inside.is_closed());
    let plan = b.recursive(vec![inside], &result, RoundLimit::None);
    assert!(plan.is_closed());
    assert_eq!(evaluate(&plan, &inputs).rows.len(), 6);
    let shown = anabranch_plan::explain::explain(&plan, &|_| None);
    let lines: Vec<&str> = shown.lines().map(|line| line.split(" [").next().unwrap().trim_start()).collect();
    let expected = "Recursive v0,v0 :=,Recursive v0,v0 :=,Distinct,Union of 3,Scan e,Variable v0,Join inner on x6 = x3,\
        Variable v0,Variable v0,result,Variable v0,result,Variable v0";
    assert_eq!(lines.join(","), expected);
}
