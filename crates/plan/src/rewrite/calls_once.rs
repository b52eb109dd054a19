//! Calls that a condition and the columns behind it share, computed once a row.
//!
//! ```text
//! Stage where f(s) is not null [k, g(f(s))]
//! =   Stage where call is not null [k, g(call)]
//!       Stage [k, f(s) as call]
//! ```
//!
//! Law: the plan keeps its meaning. The call has the same value wherever it stands, and is computed
//! for every row as it was: it stands in the first condition, where nothing before it decides.
//!
//! Cost: a column that lives for a batch. What is spared is the call for the rows that pass. Only
//! calls that read texts, lists or records are taken: others cost as little as a column. Conditions
//! that compare a plain column with a constant are left where they are, since rows are looked up by
//! them.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_common::{Column, DFSchema};
use datafusion_expr::{Expr, ExprSchemable, Operator, Volatility};

use super::build::{choose, column, field, replace, schema, width};
use crate::ir::{Node, Plan};

/// The stage with its shared calls in a stage below, or with those of a stage below handed on to
/// it, if there are some.
pub(super) fn once(plan: &Arc<Plan>) -> Option<Arc<Plan>> {
    handed_on(plan).or_else(|| within_stage(plan))
}

/// A stage over another one, whose condition has calls that the upper one computes again: the lower
/// one shows them.
fn handed_on(plan: &Plan) -> Option<Arc<Plan>> {
    let Node::Stage { input: lower, filter, project } = &plan.node else { return None };
    let Node::Stage { input, filter: conditions, project: shown } = &lower.node else { return None };
    let first = conditions.first()?;
    if conditions.iter().any(is_looked_up) {
        return None;
    }
    let mut computed = Vec::new();
    add_computed(first, &input.schema, &mut computed);
    let is_read = |call: &Expr| filter.iter().chain(project).any(|expr| n_times(call, expr) > 0);
    let found =
        computed.into_iter().find_map(|call| Some((call, above(call, lower, shown)?)).filter(|(_, c)| is_read(c)));
    let (call, call_above) = found?;
    let n_shown = shown.len();
    let fields = (0..n_shown).map(|at| field(lower, at));
    let fields = fields.chain([("call".to_owned(), call.get_type(&input.schema).ok()?, true)]);
    let all = schema(fields);
    let in_place = |expr: &Expr| replaced(expr.clone(), &call_above, all.field(n_shown).name());
    let (filter, project): (Vec<Expr>, Vec<Expr>) =
        (filter.iter().map(in_place).collect(), project.iter().map(in_place).collect());
    let shown = shown.iter().chain([call]).cloned().collect();
    let node = Node::Stage { input: Arc::clone(input), filter: conditions.clone(), project: shown };
    let lower = Arc::new(Plan { node, schema: all });
    // (Columns that only the call read go no further.)
    let read = names_read(filter.iter().chain(&project));
    let wanted: Vec<usize> = (0..=n_shown).filter(|at| read.contains(lower.schema.field(*at).name())).collect();
    let node = Node::Stage { input: choose(&lower, &wanted), filter, project };
    Some(Arc::new(Plan { node, schema: plan.schema.clone() }))
}

/// An expression below a stage as the stage's columns have it, if it shows all that is read.
fn above(expr: &Expr, stage: &Plan, shown: &[Expr]) -> Option<Expr> {
    let place = |column: &Column| {
        shown.iter().position(|expr| matches!(expr, Expr::Column(shown) if shown.name == column.name))
    };
    expr.column_refs().iter().all(|column| place(column).is_some()).then(|| {
        replace(expr, &|column| match place(column) {
            Some(at) => Expr::Column(Column::from_name(stage.schema.field(at).name())),
            None => Expr::Column(column.clone()),
        })
    })
}

fn within_stage(plan: &Plan) -> Option<Arc<Plan>> {
    let Node::Stage { input, filter, project } = &plan.node else { return None };
    let first = filter.first()?;
    if filter.iter().any(is_looked_up) {
        return None;
    }
    let mut computed = Vec::new();
    add_computed(first, &input.schema, &mut computed);
    let mut calls: Vec<&Expr> = Vec::new();
    for call in computed {
        let n_found: usize = filter.iter().chain(project).map(|expr| n_times(call, expr)).sum();
        // (What is within a call that is taken is computed with it.)
        let is_within = calls.iter().any(|other| n_times(call, other) > 0);
        if n_found > 1 && !is_within {
            calls.push(call);
        }
    }
    if calls.is_empty() {
        return None;
    }
    let n_columns = width(input);
    let shown = (0..n_columns).map(|at| field(input, at));
    let made = calls.iter().map(|call| Some(("call".to_owned(), call.get_type(&input.schema).ok()?, true)));
    let made = made.collect::<Option<Vec<_>>>()?;
    let fields: Vec<_> = shown.chain(made).collect();
    let all = schema(fields.clone());
    let in_place = |expr: &Expr| {
        calls
            .iter()
            .enumerate()
            .fold(expr.clone(), |expr, (n, call)| replaced(expr, call, all.field(n_columns + n).name()))
    };
    let filter: Vec<Expr> = filter.iter().map(in_place).collect();
    let project: Vec<Expr> = project.iter().map(in_place).collect();
    // (Columns that only the calls read go no further.)
    let read = names_read(filter.iter().chain(&project));
    let kept: Vec<usize> = (0..fields.len()).filter(|at| read.contains(all.field(*at).name())).collect();
    let below = kept.iter().map(|&at| match at.checked_sub(n_columns) {
        Some(n) => calls[n].clone(),
        None => column(input, at),
    });
    let fields = kept.iter().map(|&at| {
        let (_, data_type, nullable) = fields[at].clone();
        (all.field(at).name().clone(), data_type, nullable)
    });
    let below = Plan {
        schema: schema(fields),
        node: Node::Stage { input: Arc::clone(input), filter: vec![], project: below.collect() },
    };
    let node = Node::Stage { input: Arc::new(below), filter, project };
    Some(Arc::new(Plan { node, schema: plan.schema.clone() }))
}

/// The names of the columns that some expressions read.
fn names_read<'a>(exprs: impl Iterator<Item = &'a Expr>) -> HashSet<String> {
    exprs.flat_map(Expr::column_refs).map(|column| column.name.clone()).collect()
}

/// Whether rows may be looked up by a condition.
fn is_looked_up(condition: &Expr) -> bool {
    match condition {
        Expr::BinaryExpr(binary) if matches!(binary.op, Operator::And | Operator::Or) => {
            is_looked_up(&binary.left) || is_looked_up(&binary.right)
        }
        Expr::BinaryExpr(binary) => {
            [&binary.left, &binary.right].iter().any(|side| matches!(side.as_ref(), Expr::Column(_)))
        }
        Expr::InList(list) => matches!(list.expr.as_ref(), Expr::Column(_)),
        Expr::Between(between) => matches!(between.expr.as_ref(), Expr::Column(_)),
        _ => false,
    }
}

/// Adds the calls that are computed for every row, the outer ones first.
fn add_computed<'a>(expr: &'a Expr, schema: &DFSchema, calls: &mut Vec<&'a Expr>) {
    match expr {
        Expr::BinaryExpr(binary) => {
            add_computed(&binary.left, schema, calls);
            if !matches!(binary.op, Operator::And | Operator::Or) {
                add_computed(&binary.right, schema, calls);
            }
        }
        Expr::Not(of)
        | Expr::IsNull(of)
        | Expr::IsNotNull(of)
        | Expr::IsTrue(of)
        | Expr::IsFalse(of)
        | Expr::IsNotTrue(of)
        | Expr::IsNotFalse(of) => add_computed(of, schema, calls),
        Expr::Cast(cast) => add_computed(&cast.expr, schema, calls),
        Expr::Alias(alias) => add_computed(&alias.expr, schema, calls),
        Expr::InList(list) => add_computed(&list.expr, schema, calls),
        Expr::Like(like) => add_computed(&like.expr, schema, calls),
        Expr::ScalarFunction(call) if call.func.signature().volatility != Volatility::Volatile => {
            if call.args.iter().any(|arg| arg.get_type(schema).is_ok_and(|of| is_long(&of))) {
                calls.push(expr);
            }
            let n_computed = if call.func.short_circuits() { 1 } else { call.args.len() };
            call.args.iter().take(n_computed).for_each(|arg| add_computed(arg, schema, calls));
        }
        _ => {}
    }
}

/// Whether reading a value costs more than a few bytes do.
fn is_long(data_type: &DataType) -> bool {
    use DataType::{Binary, BinaryView, LargeBinary, LargeUtf8, Utf8, Utf8View};
    data_type.is_nested() || matches!(data_type, Utf8 | Utf8View | LargeUtf8 | Binary | BinaryView | LargeBinary)
}

/// How often a call stands in an expression, itself included.
fn n_times(call: &Expr, expr: &Expr) -> usize {
    let mut n = 0;
    let walked = expr.apply(|e| {
        let is_call = e == call;
        n += usize::from(is_call);
        Ok(if is_call { TreeNodeRecursion::Jump } else { TreeNodeRecursion::Continue })
    });
    if walked.is_ok() { n } else { 0 }
}

fn replaced(expr: Expr, call: &Expr, name: &str) -> Expr {
    let replaced = expr.transform_down(|e| {
        Ok(if e == *call {
            Transformed::new(Expr::Column(Column::from_name(name)), true, TreeNodeRecursion::Jump)
        } else {
            Transformed::no(e)
        })
    });
    replaced.expect("the closure does not fail").data
}
