//! Where DataFusion computes otherwise than PostgreSQL and types decide: rewritten on the resolved plan.
//!
//! A cast of a fraction to an integer rounds; DataFusion would cut it off.

use datafusion_common::Result as DfResult;
use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_expr::expr_rewriter::NamePreserver;
use datafusion_expr::logical_plan::LogicalPlan;
use datafusion_expr::utils::merge_schema;
use datafusion_expr::{Cast, Expr, ExprSchemable};

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
                let rounded = expr.transform_up(|e| round_before_integer(e, &schema))?;
                Ok(rounded.update_data(|e| name.restore(e)))
            })?
            .map_data(|node| node.recompute_schema())
        })?
        .data)
}

fn round_before_integer(expr: Expr, schema: &datafusion_common::DFSchema) -> DfResult<Transformed<Expr>> {
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
