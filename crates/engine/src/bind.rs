//! Plans with parameters: which of them serve for all values, and what they become with values.
//!
//! Law: a plan that [`serves_all`] and is bound to values has the rows of the plan that is made for
//! these values. So parameters may stand where values are compared and computed with by operators.
//! An argument of a function is no such place: a function may choose its type, or its form, by the
//! value of a constant.
//!
//! A plan for all values must not be slower either. `k IN ($1, $2)` is planned for its values,
//! since only a list of literals is looked up by key; so is a comparison that casts the column.
//!
//! Cost: a walk over the plan.

use std::sync::Arc;

use anabranch_plan::{Node, Plan};
use anabranch_sql::index_of;
use datafusion_common::ScalarValue;
use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_expr::{Expr, Operator};

use crate::error::Error;

/// Whether a plan with parameters serves for all their values.
pub(crate) fn serves_all(plan: &Plan) -> bool {
    match &plan.node {
        Node::Scan { .. } | Node::Constant { .. } => true,
        Node::Stage { input, filter, project } => filter.iter().chain(project).all(is_free) && serves_all(input),
        Node::Join { left, right, residual, .. } => {
            residual.iter().all(|residual| !has_parameter(residual)) && serves_all(left) && serves_all(right)
        }
        Node::Distinct { input } | Node::TopK { input, .. } | Node::Unnest { input, .. } => serves_all(input),
        Node::Aggregate { input, calls, .. } => serves_all(input) && !format!("{calls:?}").contains("Placeholder"),
        Node::Union { inputs } => inputs.iter().all(|input| serves_all(input)),
        Node::SetOperation { left, right, .. } => serves_all(left) && serves_all(right),
        // These hold expressions of their own.
        Node::Asof { .. }
        | Node::Session { .. }
        | Node::Recognize { .. }
        | Node::Window { .. }
        | Node::Temporal { .. }
        | Node::Recursive(_)
        | Node::Variable { .. } => false,
    }
}

/// Whether the parameters of an expression stand where any value may.
fn is_free(expr: &Expr) -> bool {
    match expr {
        Expr::Placeholder(_) => true,
        Expr::Alias(alias) => is_free(&alias.expr),
        Expr::Cast(cast) => is_free(&cast.expr),
        Expr::Not(inner) | Expr::IsNull(inner) | Expr::IsNotNull(inner) => is_free(inner),
        Expr::BinaryExpr(binary) => match binary.op {
            Operator::And => is_free(&binary.left) && is_free(&binary.right),
            op if is_comparison(op) || is_arithmetic(op) => {
                let (left, right) = (has_parameter(&binary.left), has_parameter(&binary.right));
                let casts_column = left && is_cast(&binary.right) || right && is_cast(&binary.left);
                is_free(&binary.left) && is_free(&binary.right) && !casts_column
            }
            _ => !has_parameter(expr),
        },
        Expr::Between(between) => [&between.expr, &between.low, &between.high].into_iter().all(|part| is_free(part)),
        other => !has_parameter(other),
    }
}

fn is_comparison(op: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom)
}

fn is_arithmetic(op: Operator) -> bool {
    use Operator::{Divide, Minus, Modulo, Multiply, Plus, StringConcat};
    matches!(op, Plus | Minus | Multiply | Divide | Modulo | StringConcat)
}

fn is_cast(expr: &Expr) -> bool {
    matches!(expr, Expr::Cast(cast) if !has_parameter(&cast.expr))
}

fn has_parameter(expr: &Expr) -> bool {
    expr.exists(|part| Ok(matches!(part, Expr::Placeholder(_)))).unwrap_or(true)
}

/// Whether a plan has parameters.
fn has_parameters(plan: &Plan) -> bool {
    match &plan.node {
        Node::Stage { input, filter, project } => {
            filter.iter().chain(project).any(has_parameter) || has_parameters(input)
        }
        Node::Scan { .. } | Node::Constant { .. } => false,
        // (Others are rare among what is bound; a walk in vain does no harm.)
        _ => true,
    }
}

/// The plan with the values in place of its parameters.
///
/// # Errors
/// `Internal` for a parameter without a value.
pub(crate) fn bind(plan: &Arc<Plan>, values: &[ScalarValue]) -> Result<Arc<Plan>, Error> {
    if values.is_empty() || !has_parameters(plan) {
        return Ok(Arc::clone(plan));
    }
    let mut problem = None;
    let bound = bind_node(plan, values, &mut problem);
    problem.map_or(Ok(bound), Err)
}

fn bind_node(plan: &Arc<Plan>, values: &[ScalarValue], problem: &mut Option<Error>) -> Arc<Plan> {
    let inner = {
        let problem = std::cell::RefCell::new(&mut *problem);
        anabranch_plan::rewrite::with_inputs(plan, |input| bind_node(input, values, *problem.borrow_mut()))
    };
    let Node::Stage { input, filter, project } = &inner.node else { return inner };
    let mut bound =
        |exprs: &[Expr]| -> Vec<Expr> { exprs.iter().map(|expr| bind_expr(expr, values, problem)).collect() };
    let node = Node::Stage { input: Arc::clone(input), filter: bound(filter), project: bound(project) };
    Arc::new(Plan { node, schema: inner.schema.clone() })
}

fn bind_expr(expr: &Expr, values: &[ScalarValue], problem: &mut Option<Error>) -> Expr {
    if !has_parameter(expr) {
        return expr.clone();
    }
    let bound = expr.clone().transform_up(|part| {
        if let Some(at) = index_of(&part) {
            return match values.get(at) {
                Some(value) => Ok(Transformed::yes(Expr::Literal(value.clone(), None))),
                None => {
                    problem.get_or_insert(Error::internal(format!("parameter ${} has no value", at + 1)));
                    Ok(Transformed::new(part, false, TreeNodeRecursion::Stop))
                }
            };
        }
        Ok(folded(part))
    });
    match bound {
        Ok(bound) => bound.data,
        Err(error) => {
            problem.get_or_insert(Error::internal(format!("parameters cannot be bound: {error}")));
            expr.clone()
        }
    }
}

/// A cast of a literal that cannot fail, as a literal: keys are looked up by literals.
fn folded(expr: Expr) -> Transformed<Expr> {
    let Expr::Cast(cast) = &expr else { return Transformed::no(expr) };
    let Expr::Literal(value, _) = cast.expr.as_ref() else { return Transformed::no(expr) };
    let (from, to) = (value.data_type(), cast.field.data_type());
    if from == *to {
        return Transformed::yes(Expr::Literal(value.clone(), None));
    }
    match value.cast_to(to) {
        Ok(value) if from.is_integer() && to.is_integer() => Transformed::yes(Expr::Literal(value, None)),
        // What does not fit is told when the expression is evaluated.
        _ => Transformed::no(expr),
    }
}
