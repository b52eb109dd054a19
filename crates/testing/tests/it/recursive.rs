//! Loops against the model, and cases that have a name.

use std::sync::Arc;

use anabranch_plan::{JoinKind, Plan, RoundLimit};
use anabranch_testing::build::{Builder, JoinOn, Relation};
use anabranch_testing::generator::expressions::Fallible;
use anabranch_testing::generator::history::{History, Size, Update, relations};
use anabranch_testing::generator::plans::Plans;
use anabranch_testing::laws::{Setting, hold, hold_under, programs};
use anabranch_testing::rng::{Rng, cases};
use anabranch_testing::row::Row;
use arrow::datatypes::DataType;
use datafusion_common::ScalarValue;

const PAIR: [DataType; 2] = [DataType::Int64, DataType::Int64];

fn loops(name: &str, count: usize, size: Size, make: impl Fn(&mut Rng, &mut Plans) -> Arc<Plan>) {
    cases(name, count, |rng| {
        let relations = relations(rng, 3);
        let history = History::random(rng, &relations, size);
        let fallible = if rng.chance(20) { Fallible::Sometimes } else { Fallible::Never };
        let plan = make(rng, &mut Plans::new(&relations, fallible));
        hold(rng, &plan, &history);
    });
}

#[test]
fn monotone_loops() {
    loops("monotone_loops", 40, Size::SMALL, |rng, plans| plans.monotone(rng));
}

#[test]
fn loops_of_all_operators() {
    loops("loops_of_all_operators", 60, Size::SMALL, |rng, plans| {
        let depth = rng.below(3);
        plans.recursive(rng, depth)
    });
}

#[test]
fn loops_below_other_operators() {
    loops("loops_below_other_operators", 15, Size::SMALL, |rng, plans| {
        let (left, right) = (plans.recursive(rng, 1), plans.monotone(rng));
        let kind = *rng.pick(&[JoinKind::Inner, JoinKind::LeftAnti, JoinKind::Full]);
        plans.join(rng, &left, &right, kind)
    });
}

#[test]
fn programs_of_loops_that_share() {
    cases("programs_of_loops_that_share", 6, |rng| {
        let relations = relations(rng, 2);
        let history = History::random(rng, &relations, Size::SMALL);
        let mut plans = Plans::new(&relations, Fallible::Never);
        let (first, second) = (plans.monotone(rng), plans.recursive(rng, 1));
        let third = plans.join(rng, &first, &second, JoinKind::Inner);
        programs::run(rng, &[first, second, third], &history);
    });
}

/// `v := distinct (e union v joined with e)`.
fn reach(limit: RoundLimit) -> (Relation, Arc<Plan>) {
    let (relation, mut b) = (Relation::new("e", &PAIR), Builder::new());
    let (start, edges, v) = (b.scan(&relation), b.scan(&relation), b.variable(0, 0, &PAIR));
    let further = b.join_output(&v, &edges, JoinOn::new(JoinKind::Inner, &[(1, 0)]), vec![0, 3]);
    let both = b.union(vec![start, further]);
    let set = b.distinct(&both);
    let result = b.variable(0, 0, &PAIR);
    let plan = b.recursive(vec![set], &result, limit);
    (relation, plan)
}

/// Edges that come and go: at each time, by how often.
fn history(relation: &Relation, changes: &[&[(i64, i64, i64)]]) -> History {
    let row = |a: i64, b: i64| Row::new([ScalarValue::Int64(Some(a)), ScalarValue::Int64(Some(b))]);
    let at = |(time, edges): (i64, &&[(i64, i64, i64)])| {
        edges.iter().map(|(a, b, diff)| Update { relation: 0, row: row(*a, *b), time, diff: *diff }).collect::<Vec<_>>()
    };
    let updates = (1..).zip(changes).flat_map(at).collect();
    History { relations: vec![relation.clone()], times: (1..=changes.len() as i64).collect(), updates }
}

fn check(name: &str, plan: &Arc<Plan>, history: &History) {
    cases(name, 4, |rng| hold_under(plan, history, &Setting::draw(rng)));
}

#[test]
fn an_absent_row_whose_only_support_lies_in_a_later_round() {
    let (relation, plan) = reach(RoundLimit::None);
    // 1 reaches 3 in one step, then only by the way round over 2, 5 and 6, then not at all.
    let changes: [&[(i64, i64, i64)]; 4] = [
        &[(1, 3, 1), (1, 2, 1), (2, 5, 1), (5, 6, 1), (6, 3, 1), (3, 4, 1)],
        &[(1, 3, -1)],
        &[(5, 6, -1)],
        &[(1, 3, 1), (5, 6, 1)],
    ];
    check("an_absent_row", &plan, &history(&relation, &changes));
}

#[test]
fn a_cycle_that_is_cut_off_is_not_its_own_reason() {
    let (relation, mut b) = (Relation::new("e", &PAIR), Builder::new());
    // What 0 reaches: a cycle of 5, 6, 7 that hangs on an edge, and one within it.
    let (start, edges, v) = (b.scan(&relation), b.scan(&relation), b.variable(0, 0, &PAIR[..1]));
    let zero = anabranch_testing::build::col(&start, 0).eq(anabranch_testing::generator::expressions::lit(0_i64));
    let first = b.stage(&start, vec![zero], vec![anabranch_testing::build::col(&start, 1)]);
    let further = b.join_output(&v, &edges, JoinOn::new(JoinKind::Inner, &[(0, 0)]), vec![2]);
    let both = b.union(vec![first, further]);
    let set = b.distinct(&both);
    let result = b.variable(0, 0, &PAIR[..1]);
    let plan = b.recursive(vec![set], &result, RoundLimit::None);
    let changes: [&[(i64, i64, i64)]; 4] = [
        &[(0, 1, 1), (1, 5, 1), (5, 6, 1), (6, 7, 1), (7, 5, 1), (6, 5, 1)],
        &[(1, 5, -1)],
        &[(1, 7, 1)],
        &[(1, 7, -1), (0, 6, 1)],
    ];
    check("a_cycle_that_is_cut_off", &plan, &history(&relation, &changes));
}

#[test]
fn a_limit_is_an_error_that_goes_when_the_loop_ends() {
    let rounds = std::num::NonZeroU64::new(3).unwrap();
    for limit in [RoundLimit::Error(rounds), RoundLimit::Return(rounds)] {
        let (relation, plan) = reach(limit);
        let changes: [&[(i64, i64, i64)]; 5] =
            [&[(1, 2, 1), (2, 3, 1)], &[(3, 4, 1)], &[(4, 5, 1), (5, 6, 1)], &[(2, 3, -1), (5, 6, -1)], &[(4, 5, -1)]];
        check("a_limit", &plan, &history(&relation, &changes));
    }
}
