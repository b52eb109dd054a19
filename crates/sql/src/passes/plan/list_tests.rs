//! Two tests of one value by lists, joined by AND or OR: what is left of them.
//!
//! DataFusion makes one list of both, and takes a test by the empty list for false, or true; in SQL
//! it is NULL where the value is. So lists are made one here before the rule sees them. Cost: the
//! lengths of the lists.

use std::collections::HashSet;

use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_common::{DFSchema, Result as DfResult, ScalarValue};
use datafusion_expr::expr::InList;
use datafusion_expr::expr_rewriter::NamePreserver;
use datafusion_expr::logical_plan::LogicalPlan;
use datafusion_expr::utils::merge_schema;
use datafusion_expr::{BinaryExpr, Expr, ExprSchemable, Operator, lit, when};

/// The plan with one list in place of two, in all expressions of its first node.
pub(super) fn join_lists(plan: LogicalPlan) -> DfResult<LogicalPlan> {
    let schema = match &plan {
        LogicalPlan::TableScan(_) | LogicalPlan::Extension(_) => return Ok(plan),
        other => merge_schema(&other.inputs()),
    };
    let names = NamePreserver::new(&plan);
    let joined = plan.map_expressions(|expr| {
        if !expr.exists(|e| Ok(matches!(e, Expr::InList(_))))? {
            return Ok(Transformed::no(expr));
        }
        let name = names.save(&expr);
        Ok(expr.transform_up(|e| join(e, &schema))?.update_data(|e| name.restore(e)))
    })?;
    Ok(joined.data)
}

#[inline(never)]
fn join(expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = &expr else { return Ok(Transformed::no(expr)) };
    let (Expr::InList(l), Expr::InList(r)) = (left.as_ref(), right.as_ref()) else { return Ok(Transformed::no(expr)) };
    if l.expr != r.expr || l.expr.is_volatile() {
        return Ok(Transformed::no(expr));
    }
    let kept = |from: &InList, other: &InList, is_kept: bool| {
        let others: HashSet<&Expr> = other.list.iter().collect();
        from.list.iter().filter(|element| others.contains(element) == is_kept).cloned().collect::<Vec<_>>()
    };
    let (list, negated) = match (op, l.negated, r.negated) {
        (Operator::And, false, false) => (kept(l, r, true), false),
        (Operator::And, false, true) => (kept(l, r, false), false),
        (Operator::And, true, false) => (kept(r, l, false), false),
        (Operator::Or, true, true) => (kept(l, r, true), true),
        _ => return Ok(Transformed::no(expr)),
    };
    let value = l.expr.as_ref();
    if !list.is_empty() {
        return Ok(Transformed::yes(Expr::InList(InList::new(Box::new(value.clone()), list, negated))));
    }
    if !value.nullable(schema)? {
        return Ok(Transformed::yes(lit(negated)));
    }
    let unknown = Expr::Literal(ScalarValue::Boolean(None), None);
    Ok(Transformed::yes(when(value.clone().is_null(), unknown).otherwise(lit(negated))?))
}
