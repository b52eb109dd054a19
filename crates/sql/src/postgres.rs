//! Where DataFusion computes otherwise than PostgreSQL and types decide: rewritten on the resolved plan.
//!
//! - A cast of a fraction to an integer rounds; DataFusion would cut it off.
//! - A float divided by zero is an error; DataFusion would answer infinity.

use arrow::datatypes::DataType;
use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_common::{DFSchema, Result as DfResult, ScalarValue};
use datafusion_expr::expr_rewriter::NamePreserver;
use datafusion_expr::logical_plan::LogicalPlan;
use datafusion_expr::utils::merge_schema;
use datafusion_expr::{BinaryExpr, Cast, Expr, ExprSchemable, Operator, cast};

use crate::own::FloatDivide;

/// Rewrites all expressions of a plan, also in subqueries, keeping column names.
pub(crate) fn adapt(plan: LogicalPlan) -> DfResult<LogicalPlan> {
    Ok(plan
        .transform_up_with_subqueries(|node| {
            let schema = match &node {
                LogicalPlan::TableScan(_) | LogicalPlan::Extension(_) => return Ok(Transformed::no(node)),
                other => merge_schema(&other.inputs()),
            };
            let names = NamePreserver::new(&node);
            node.map_expressions(|expr| {
                let name = names.save(&expr);
                let rounded = expr.transform_up(|e| {
                    let rounded = round_before_integer(e, &schema)?;
                    rounded.transform_data(|e| checked_division(e, &schema))
                })?;
                Ok(rounded.update_data(|e| name.restore(e)))
            })?
            .map_data(|node| node.recompute_schema())
        })?
        .data)
}

fn round_before_integer(expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    let Expr::Cast(cast) = expr else {
        return Ok(Transformed::no(expr));
    };
    let fraction = cast.field.data_type().is_integer()
        && cast.expr.get_type(schema).is_ok_and(|is| is.is_floating() || is.is_decimal());
    if !fraction {
        return Ok(Transformed::no(Expr::Cast(cast)));
    }
    let rounded = datafusion_functions::math::expr_fn::round(vec![*cast.expr]);
    Ok(Transformed::yes(Expr::Cast(Cast { expr: Box::new(rounded), field: cast.field })))
}

fn checked_division(expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Divide, right }) = &expr else {
        return Ok(Transformed::no(expr));
    };
    let (Ok(l), Ok(r)) = (left.get_type(schema), right.get_type(schema)) else {
        return Ok(Transformed::no(expr));
    };
    let floats = (l.is_floating() || r.is_floating()) && l.is_numeric() && r.is_numeric();
    if !floats || is_nonzero(right) {
        return Ok(Transformed::no(expr));
    }
    let quotient = FloatDivide::udf().call(vec![left.as_ref().clone(), right.as_ref().clone()]);
    let single = l == DataType::Float32 && r == DataType::Float32;
    Ok(Transformed::yes(if single { cast(quotient, DataType::Float32) } else { quotient }))
}

fn is_nonzero(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(value, _) => {
            matches!(value.cast_to(&DataType::Float64), Ok(ScalarValue::Float64(Some(n))) if n != 0.0)
        }
        _ => false,
    }
}
