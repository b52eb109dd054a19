//! Rewritten plans mean what they meant: the model answers both, at every time of random histories.
//!
//! Expressions that fail are left out: a rewrite may lose the error of a row that is not needed any
//! more.

use std::sync::Arc;

use anabranch_plan::rewrite::{Facts, REWRITES, optimise};
use anabranch_plan::{AggregateFunction, JoinKind, Plan};
use anabranch_testing::build::{Builder, JoinOn, call, col, types, width};
use anabranch_testing::generator::expressions::{Fallible, predicate};
use anabranch_testing::generator::history::{History, Size, relations};
use anabranch_testing::generator::plans::Plans;
use anabranch_testing::laws::hold;
use anabranch_testing::model::evaluate;
use anabranch_testing::rng::{Rng, cases};
use datafusion_expr::{Expr, lit};

/// Checks plans that `make` puts together; how many of them a rewrite changed, it says itself.
fn kept(name: &str, count: usize, make: impl Fn(&mut Rng, &mut Plans, &mut Builder) -> Option<Arc<Plan>>) {
    kept_by(name, count, |plan| optimise(plan, &Facts::default()), make);
}

/// The one rewrite of that name, alone.
fn alone(name: &str, plan: &Arc<Plan>, facts: &Facts<'_>) -> Arc<Plan> {
    let rewrite = REWRITES.iter().find(|rewrite| rewrite.name == name).expect("a rewrite of that name");
    (rewrite.apply)(plan, facts)
}

fn kept_by(
    name: &str,
    count: usize,
    rewrite: impl Fn(&Arc<Plan>) -> Arc<Plan>,
    make: impl Fn(&mut Rng, &mut Plans, &mut Builder) -> Option<Arc<Plan>>,
) {
    let changed = std::cell::Cell::new((0, 0));
    cases(name, count, |rng| {
        let relations = relations(rng, 3);
        let history = History::random(rng, &relations, Size::SMALL);
        let Some(plan) = make(rng, &mut Plans::new(&relations, Fallible::Never), &mut Builder::new()) else { return };
        let improved = rewrite(&plan);
        let (n, of) = changed.get();
        changed.set((n + u32::from(improved != plan), of + 1));
        assert_eq!(improved.schema, plan.schema);
        for &time in &history.times {
            let inputs = history.contents_at(time);
            let (was, is) = (evaluate(&plan, &inputs), evaluate(&improved, &inputs));
            let shown = |plan: &Plan| anabranch_plan::explain::explain(plan, &|_| None);
            let same =
                was.rows.is_close(&is.rows, 1e-9) && is.errors.keys().all(|error| was.errors.contains_key(error));
            assert!(same, "{was:?}\n{is:?}\nof\n{}\n{}", shown(&plan), shown(&improved));
        }
        if rng.chance(10) {
            hold(rng, &improved, &history);
        }
    });
    let (n, of) = changed.get();
    println!("{name}: {n} of {of} plans changed");
    assert!(n > 0, "{name}: no plan was rewritten");
}

/// Pairs of columns of equal types, at most `most`, from a random start.
fn pairs(rng: &mut Rng, left: &Plan, right: &Plan, most: usize) -> Vec<(usize, usize)> {
    let (left, right) = (types(left), types(right));
    let mut all: Vec<(usize, usize)> = Vec::new();
    for (l, of_left) in left.iter().enumerate() {
        all.extend((0..right.len()).filter(|r| right[*r] == *of_left).map(|r| (l, r)));
    }
    rng.shuffle(&mut all);
    let mut chosen: Vec<(usize, usize)> = Vec::new();
    for (l, r) in all {
        if chosen.len() < most && chosen.iter().all(|(a, b)| *a != l && *b != r) {
            chosen.push((l, r));
        }
    }
    chosen
}

fn leaf(rng: &mut Rng, plans: &mut Plans, builder: &mut Builder) -> Arc<Plan> {
    let scan = if rng.chance(50) { plans.scan(rng) } else { plans.relation(rng.below(3)) };
    match rng.below(6) {
        0 => plans.aggregate(rng, &scan),
        1 => plans.distinct(&scan),
        2..=3 => {
            let filter = predicate(rng, &scan, Fallible::Never);
            builder.filter(&scan, vec![filter])
        }
        _ => scan,
    }
}

/// A tree of inner and semi joins, with conditions here and there.
fn joins(rng: &mut Rng, plans: &mut Plans, builder: &mut Builder, depth: usize) -> Option<Arc<Plan>> {
    if depth == 0 {
        return Some(leaf(rng, plans, builder));
    }
    let (near, far) = (rng.below(depth), rng.below(depth));
    let left = joins(rng, plans, builder, depth - 1)?;
    let right = joins(rng, plans, builder, near.min(far))?;
    let key = pairs(rng, &left, &right, 1 + near % 2);
    if key.is_empty() {
        return Some(left);
    }
    let kind = if rng.chance(25) { JoinKind::LeftSemi } else { JoinKind::Inner };
    let n = if kind == JoinKind::LeftSemi { width(&left) } else { width(&left) + width(&right) };
    let kept = n - rng.below(2).min(n - 1);
    let joined = builder.join_output(&left, &right, JoinOn::new(kind, &key), rng.subset(n, kept));
    if rng.chance(30) {
        let filter = predicate(rng, &joined, Fallible::Never);
        return Some(builder.filter(&joined, vec![filter]));
    }
    Some(joined)
}

#[test]
fn joins_in_another_order() {
    kept("joins_in_another_order", 600, |rng, plans, builder| {
        let depth = 1 + rng.below(3);
        joins(rng, plans, builder, depth)
    });
}

#[test]
fn any_plan() {
    kept("any_plan", 400, |rng, plans, _| Some(plans.plan(rng, 5)));
}

#[test]
fn groups_of_left_joins() {
    use AggregateFunction::{Count, Max, Min};
    kept("groups_of_left_joins", 200, |rng, plans, builder| {
        let (left, right) = (leaf(rng, plans, builder), leaf(rng, plans, builder));
        let key = pairs(rng, &left, &right, 1);
        let (at, _) = *key.first()?;
        let join = builder.join(&left, &right, JoinOn::new(JoinKind::Left, &key));
        let simple = (width(&left)..width(&join)).find(|at| !types(&join)[*at].is_nested())?;
        let calls = [Count, Min, Max].map(|function| call(function, &join, Some(simple)));
        Some(builder.aggregate(&join, &[at], calls.to_vec()))
    });
}

#[test]
fn a_relation_and_its_own_aggregate_alone() {
    // Groups of NULL keys matched nothing, and conditions on the aggregate stay.
    kept("a_relation_and_its_own_aggregate_alone", 100, |rng, plans, builder| {
        let relation = plans.relation(0);
        let number = types(&relation).iter().position(arrow::datatypes::DataType::is_integer)?;
        let key = (0..width(&relation)).find(|at| *at != number && !types(&relation)[*at].is_nested())?;
        let calls = vec![call(AggregateFunction::Max, &relation, Some(number))];
        let grouped = builder.aggregate(&relation, &[key], calls);
        let both = builder.join(&relation, &grouped, JoinOn::new(JoinKind::Inner, &[(key, 0)]));
        let filter = predicate(rng, &both, Fallible::Never);
        let both = if rng.chance(50) { builder.filter(&both, vec![filter]) } else { both };
        let calls = vec![call(AggregateFunction::Max, &both, Some(number))];
        Some(builder.aggregate(&both, &[key], calls))
    });
}

#[test]
fn sums_of_sums_and_restricted_aggregates() {
    kept("sums_of_sums_and_restricted_aggregates", 300, |rng, plans, builder| {
        let relation = plans.relation(0);
        let number = types(&relation).iter().position(arrow::datatypes::DataType::is_integer)?;
        let key = (0..width(&relation)).find(|at| *at != number && !types(&relation)[*at].is_nested())?;
        let calls = vec![call(AggregateFunction::Min, &relation, Some(number))];
        let grouped = builder.aggregate(&relation, &[key], calls);
        let grouped = if rng.chance(50) {
            let filter = Expr::IsNotNull(Box::new(col(&grouped, 1)));
            let shown = vec![col(&grouped, 0)];
            builder.stage(&grouped, vec![filter], shown)
        } else {
            grouped
        };
        let other = plans.relation(1);
        let pairs = pairs(rng, &other, &relation, 3);
        let (at, _) = *pairs.iter().find(|(_, r)| *r == key)?;
        let filter = col(&other, at).eq(lit(1_i64)).or(Expr::IsNull(Box::new(col(&other, at))));
        let filter = if types(&other)[at].is_integer() { filter } else { Expr::IsNull(Box::new(col(&other, at))) };
        let other = if rng.chance(50) { builder.filter(&other, vec![filter]) } else { other };
        let both = builder.join(&other, &relation, JoinOn::new(JoinKind::Inner, &[(at, key)]));
        let kind = if rng.chance(50) { JoinKind::LeftSemi } else { JoinKind::Inner };
        let all = builder.join(&both, &grouped, JoinOn::new(kind, &[(at, 0)]));
        let number = width(&other) + number;
        let calls = vec![call(AggregateFunction::Min, &all, Some(number))];
        Some(builder.aggregate(&all, &[at], calls))
    });
}

/// Some rows of a relation, some of their columns.
fn part(rng: &mut Rng, plans: &mut Plans, builder: &mut Builder) -> Arc<Plan> {
    let relation = plans.relation(rng.below(3));
    let filter = predicate(rng, &relation, Fallible::Never);
    let n = 1 + rng.below(width(&relation));
    let shown = rng.subset(width(&relation), n).into_iter().rev().map(|at| col(&relation, at)).collect();
    builder.stage(&relation, vec![filter], shown)
}

#[test]
fn conditions_behind_indexes() {
    use JoinKind::{Full, Inner, Left, LeftAnti, LeftSemi, Right};
    // Every relation has an index on any of its columns.
    let facts = Facts { indexes: &|_, _| true, ..Facts::default() };
    let rewrite = |plan: &Arc<Plan>| alone("conditions behind indexes", plan, &facts);
    kept_by("conditions_behind_indexes", 600, rewrite, |rng, plans, builder| {
        let left = part(rng, plans, builder);
        let right = if rng.chance(70) { part(rng, plans, builder) } else { leaf(rng, plans, builder) };
        let key = pairs(rng, &left, &right, 1 + rng.clone().below(2));
        if key.is_empty() {
            return None;
        }
        let kind = *rng.pick(&[Inner, Inner, Left, Right, Full, LeftSemi, LeftAnti]);
        let both = Plan::join_schema(&left, &right);
        let at = rng.below(both.fields().len());
        let residual = Expr::IsNotNull(Box::new(Expr::Column(both.columns()[at].clone())));
        let residual = rng.chance(40).then_some(residual);
        Some(builder.join(&left, &right, JoinOn { residual, ..JoinOn::new(kind, &key) }))
    });
}

#[test]
fn joins_within_bands() {
    use JoinKind::{Inner, Left, LeftAnti, LeftMark, LeftSemi, Right};
    let rewrite = |plan: &Arc<Plan>| alone("joins within bands", plan, &Facts::default());
    kept_by("joins_within_bands", 600, rewrite, |rng, plans, builder| {
        let left = part(rng, plans, builder);
        let right = if rng.chance(70) { part(rng, plans, builder) } else { leaf(rng, plans, builder) };
        let mut key = pairs(rng, &left, &right, 3);
        let near = key.iter().position(|(at, _)| types(&left)[*at].is_integer())?;
        let (l, r) = key.remove(near);
        key.truncate(rng.below(2));
        let columns = Plan::join_schema(&left, &right).columns();
        let [l, r] = [l, width(&left) + r].map(|at| Expr::Column(columns[at].clone()));
        let (low, high) = (rng.below(3) as i64 - 2, rng.below(3) as i64);
        let residual = match rng.below(4) {
            0 => l.clone().gt_eq(r.clone() + lit(low)).and(l.lt(r + lit(high))),
            1 => r.clone().between(l.clone() - lit(high), l - lit(low)),
            2 => (l.clone() - r.clone()).gt_eq(lit(low)).and((l - r).lt_eq(lit(high))),
            _ => l.clone().gt(r.clone()).and((r + lit(high)).gt_eq(l)),
        };
        let kind = *rng.pick(&[Inner, Inner, Left, Right, LeftSemi, LeftAnti, LeftMark]);
        Some(builder.join(&left, &right, JoinOn { residual: Some(residual), ..JoinOn::new(kind, &key) }))
    });
}

#[test]
fn keys_that_are_there_once() {
    use JoinKind::{LeftAnti, LeftAntiNullAware, LeftMark, LeftSemi};
    let rewrite = |plan: &Arc<Plan>| alone("keys once", plan, &Facts::default());
    kept_by("keys_that_are_there_once", 600, rewrite, |rng, plans, builder| {
        let left = part(rng, plans, builder);
        let right = if rng.chance(50) { part(rng, plans, builder) } else { leaf(rng, plans, builder) };
        let right = match rng.below(4) {
            0 => plans.aggregate(rng, &right),
            1 => plans.distinct(&right),
            _ => right,
        };
        let key = pairs(rng, &left, &right, 1 + rng.clone().below(2));
        let kind = *rng.pick(&[LeftSemi, LeftAnti, LeftAntiNullAware, LeftMark]);
        let fits = !key.is_empty() && (kind != LeftAntiNullAware || key.len() == 1);
        fits.then(|| builder.join(&left, &right, JoinOn::new(kind, &key)))
    });
}
