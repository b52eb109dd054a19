//! The naive model: what a plan means, said in the plainest code.
//!
//! [`evaluate`] computes a plan's whole answer from its inputs' whole contents at one time. It
//! keeps no state, shares no code with the engine (apart from DataFusion's evaluator of
//! expressions, used a row at a time) and takes no shortcut: joins are nested loops, aggregates
//! collect their groups' rows, orders sort. It is the oracle of the laws: where engine and model
//! differ, one of them is wrong about `docs/semantics.md`.
//!
//! Relies on inputs without negative multiplicities. Costs whatever it costs.
//!
//! Reading order: [`expression`], [`join`], [`asof`], [`aggregate`], [`order`], [`session`],
//! [`recognize`], [`recursive`].

pub mod aggregate;
mod answer;
pub mod asof;
pub mod expression;
pub mod join;
pub mod order;
pub mod recognize;
pub mod recursive;
pub mod session;

use std::collections::BTreeMap;

use anabranch_plan::{Node, Plan, SetOperation};
use arrow::array::Array;
use datafusion_common::ScalarValue;
use datafusion_expr::Expr;

use self::answer::Scope;
pub use self::answer::{Answer, Inputs};
use self::expression::Evaluator;
use crate::row::{Contents, Row};

/// The answer of a plan over the given contents.
///
/// # Panics
/// If a loop without a limit does not end, see [`recursive`].
pub fn evaluate(plan: &Plan, inputs: &Inputs) -> Answer {
    evaluate_in(plan, &Scope { inputs, loops: vec![] })
}

fn evaluate_in(plan: &Plan, scope: &Scope<'_>) -> Answer {
    let evaluate = |plan: &Plan| evaluate_in(plan, scope);
    match &plan.node {
        Node::Scan { relation, columns } => scan(scope.inputs.get(relation), columns),
        Node::Constant { rows } => constant(rows),
        Node::Stage { input, filter, project } => stage(input, evaluate(input), filter, project),
        Node::Unnest { input, columns, outer } => unnest(evaluate(input), columns, *outer, plan),
        Node::Join { left, right, .. } => join::join(plan, evaluate(left), evaluate(right)),
        Node::Asof { left, right, asof } => asof::asof(asof, right, evaluate(left), evaluate(right)),
        Node::Aggregate { input, keys, calls } => aggregate::aggregate(evaluate(input), keys, calls),
        Node::Distinct { input } => map_counts(evaluate(input), |_, _| 1),
        Node::TopK { input, top } => order::top(evaluate(input), top),
        Node::Session { input, session } => session::sessions(session, evaluate(input)),
        Node::Recognize { input, recognize } => recognize::recognize(recognize, evaluate(input)),
        Node::Window { input, window } => order::window(window, input, evaluate(input)),
        Node::Union { inputs: parts } => union(parts.iter().map(|part| evaluate(part))),
        Node::SetOperation { operation, left, right } => set_operation(*operation, evaluate(left), evaluate(right)),
        Node::Temporal { .. } => panic!("verbs on events have a model of their own"),
        Node::Recursive(recursive) => recursive::recursive(recursive, scope),
        Node::Variable { depth, index } => recursive::variable(scope, *depth, *index),
    }
}

fn scan(contents: Option<&Contents>, columns: &[usize]) -> Answer {
    let mut answer = Answer::default();
    for (row, count) in contents.into_iter().flat_map(Contents::iter) {
        assert!(count > 0, "the model needs rows that are there, not {count} of {row:?}");
        answer.rows.add(row.project(columns), count);
    }
    answer
}

fn constant(rows: &[Vec<ScalarValue>]) -> Answer {
    let rows = rows.iter().map(|values| (Row::new(values.iter().cloned()), 1)).collect();
    Answer { rows, errors: BTreeMap::new() }
}

fn stage(input_plan: &Plan, input: Answer, filter: &[Expr], project: &[Expr]) -> Answer {
    let predicates: Vec<Evaluator> = filter.iter().map(|expr| Evaluator::new(expr, &input_plan.schema)).collect();
    let columns: Vec<Evaluator> = project.iter().map(|expr| Evaluator::new(expr, &input_plan.schema)).collect();
    let mut answer = Answer { rows: Contents::new(), errors: input.errors };
    for (row, count) in input.rows.iter() {
        match stage_row(row, &predicates, &columns) {
            Ok(Some(output)) => answer.rows.add(output, count),
            Ok(None) => {}
            Err(message) => answer.fail(message, count),
        }
    }
    answer
}

fn stage_row(row: &Row, predicates: &[Evaluator], columns: &[Evaluator]) -> Result<Option<Row>, String> {
    for predicate in predicates {
        if !predicate.is_true(row)? {
            return Ok(None);
        }
    }
    let values = columns.iter().map(|column| column.value(row)).collect::<Result<Vec<_>, _>>()?;
    Ok(Some(Row::new(values)))
}

fn unnest(input: Answer, columns: &[usize], outer: bool, plan: &Plan) -> Answer {
    let mut answer = Answer { rows: Contents::new(), errors: input.errors };
    for (row, count) in input.rows.iter() {
        let lists: Vec<(usize, Vec<ScalarValue>)> =
            columns.iter().map(|column| (*column, elements_of(row.value(*column)))).collect();
        let longest = lists.iter().map(|(_, elements)| elements.len()).max().unwrap_or(0);
        for at in 0..longest.max(usize::from(outer)) {
            let values = row.values().enumerate().map(|(i, value)| {
                let Some((column, elements)) = lists.iter().find(|(column, _)| *column == i) else {
                    return value.clone();
                };
                let null = || ScalarValue::try_from(plan.schema.field(*column).data_type());
                elements.get(at).cloned().unwrap_or_else(|| null().expect("every type has a null"))
            });
            answer.rows.add(Row::new(values), count);
        }
    }
    answer
}

fn elements_of(list: &ScalarValue) -> Vec<ScalarValue> {
    let ScalarValue::List(array) = list else { panic!("{list:?} is not a list") };
    if list.is_null() {
        return vec![];
    }
    let values = array.value(0);
    let element = |i| ScalarValue::try_from_array(&values, i).expect("every supported type has a scalar form");
    (0..values.len()).map(element).collect()
}

fn union(parts: impl Iterator<Item = Answer>) -> Answer {
    let mut answer = Answer::default();
    for part in parts {
        for (row, count) in part.rows.iter() {
            answer.rows.add(row.clone(), count);
        }
        answer.fail_all(part.errors);
    }
    answer
}

fn set_operation(operation: SetOperation, left: Answer, right: Answer) -> Answer {
    let others = right.rows;
    let mut answer = map_counts(left, |row, count| {
        let other = others.count(row);
        match operation {
            SetOperation::ExceptAll => (count - other).max(0),
            SetOperation::IntersectAll => count.min(other),
            SetOperation::Except => i64::from(other == 0),
            SetOperation::Intersect => i64::from(other > 0),
        }
    });
    answer.fail_all(right.errors);
    answer
}

fn map_counts(input: Answer, change: impl Fn(&Row, i64) -> i64) -> Answer {
    let rows = input.rows.iter().map(|(row, count)| (row.clone(), change(row, count)));
    Answer { rows: rows.collect(), errors: input.errors }
}

#[cfg(test)]
mod tests;
