//! All queries of TPC-H plan, and none keeps a subquery; the plans are in `tests/plans/tpch`.

use anabranch_plan::{JoinKind, Node, Plan};
use anabranch_sql::statement::Statement;
use anabranch_sql::{Planned, Planner, parse};
use tpchgen::q_and_a::queries;

use crate::support::{NOW, TPCH, TestCatalog, golden, shown};

/// The validation parameters of each query, in the order of `:1`, `:2`, ..
const PARAMETERS: [&[&str]; 22] = [
    &["90"],
    &["15", "BRASS", "EUROPE"],
    &["BUILDING", "1995-03-15"],
    &["1993-07-01"],
    &["ASIA", "1994-01-01"],
    &["1994-01-01", "0.06", "24"],
    &["FRANCE", "GERMANY"],
    &["BRAZIL", "AMERICA", "ECONOMY ANODIZED STEEL"],
    &["green"],
    &["1993-10-01"],
    &["GERMANY", "0.0001"],
    &["MAIL", "SHIP", "1994-01-01"],
    &["special", "requests"],
    &["1995-09-01"],
    &["1996-01-01"],
    &["Brand#45", "MEDIUM POLISHED", "49", "14", "23", "45", "19", "3", "36", "9"],
    &["Brand#23", "MED BOX"],
    &["300"],
    &["Brand#12", "Brand#23", "Brand#34", "1", "10", "20"],
    &["forest", "1994-01-01", "CANADA"],
    &["SAUDI ARABIA"],
    &["13", "31", "23", "29", "30", "18", "17"],
];

fn text(n: usize) -> String {
    let mut text = queries::query(n as i32).unwrap().replace(":s", "0");
    for (at, value) in PARAMETERS[n - 1].iter().enumerate().rev() {
        text = text.replace(&format!(":{}", at + 1), value);
    }
    text
}

/// The plan of a query. Number 15 is a script: it creates a view, asks, and drops it.
fn plan(n: usize) -> Planned {
    let mut catalog = TestCatalog::of(TPCH);
    let mut planned = None;
    for parsed in parse(&text(n)).unwrap() {
        match parsed.statement {
            Statement::Select { query, .. } => {
                planned = Some(Planner::as_of(&catalog, NOW).plan_query(&query).unwrap_or_else(|e| {
                    panic!("query {n}: {}", e.render(&text(n)));
                }));
            }
            Statement::Drop(_) => {}
            other => catalog.apply(other),
        }
    }
    planned.unwrap()
}

#[test]
fn all_queries_have_the_plans_on_file() {
    for n in 1..=22 {
        golden(&format!("tpch/q{n:02}.txt"), &shown(&plan(n)));
    }
}

/// What lets a text stand for its plan (docs/decisions/0006-plans-as-text.md).
#[test]
fn a_text_has_one_plan() {
    for n in 1..=22 {
        let (first, second) = (plan(n), plan(n));
        assert_eq!(first.plan, second.plan, "query {n}");
        assert_eq!(format!("{:?}", first.plan), format!("{:?}", second.plan), "query {n}");
    }
}

#[test]
fn a_join_without_keys_has_one_row_on_a_side() {
    for n in 1..=22 {
        check(&plan(n).plan, n);
    }
}

fn check(plan: &Plan, n: usize) {
    if let Node::Join { left, left_key, right, kind: JoinKind::Inner, .. } = &plan.node
        && left_key.is_empty()
    {
        assert!(one_row(left) || one_row(right), "query {n} has a cross join");
    }
    plan.inputs().iter().for_each(|input| check(input, n));
}

fn one_row(plan: &Plan) -> bool {
    match &plan.node {
        Node::Aggregate { keys, .. } => keys.is_empty(),
        Node::Stage { input, filter, .. } => filter.is_empty() && one_row(input),
        _ => false,
    }
}
