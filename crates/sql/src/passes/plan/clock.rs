//! The present time of a query: a moment for a query that runs once, none for a standing one.

use datafusion_common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion_expr::logical_plan::LogicalPlan;
use datafusion_expr::{Expr, Volatility};

use crate::error::{Result, SqlError};

/// What the present time is to a query.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Clock {
    /// The query runs once, at this moment (microseconds since the epoch).
    Fixed(i64),
    /// The query stands: its answer must be a function of its inputs.
    Running,
}

impl Clock {
    /// Refuses functions of the clock and of chance in standing queries.
    pub(crate) fn check(self, plan: &LogicalPlan) -> Result<()> {
        if let Clock::Fixed(_) = self {
            return Ok(());
        }
        let mut found: Option<(String, Volatility)> = None;
        plan.apply_with_subqueries(|node| {
            node.apply_expressions(|expr| {
                expr.apply(|e| {
                    if let Expr::ScalarFunction(call) = e
                        && call.func.signature().volatility != Volatility::Immutable
                        && is_unsteady(call.name())
                    {
                        found.get_or_insert((call.name().to_string(), call.func.signature().volatility));
                    }
                    Ok(TreeNodeRecursion::Continue)
                })
            })
        })?;
        match found {
            None => Ok(()),
            Some((name, _)) if name.contains("advisory") => Err(SqlError::unsupported(
                format!("function {name}() in a view"),
                "Locks are held by clients: take them in a statement of their own.",
            )),
            Some((name, Volatility::Volatile)) => Err(SqlError::unsupported(
                format!("function {name}() in a view"),
                "A view's rows are a function of its inputs: compute the value in INSERT and keep it in a column.",
            )),
            Some((name, _)) if name.starts_with("__sequence") => Err(SqlError::unsupported(
                "a sequence in FROM of a view",
                "A view's rows are a function of its inputs: keep the number in a column of a table.",
            )),
            Some((name, _)) if name == "current_setting" => Err(SqlError::unsupported(
                format!("{name}(), or current_user, in a view"),
                "A view's rows are the same for all clients: compare with the setting when you SELECT from the view.",
            )),
            Some((name, _)) => Err(SqlError::unsupported(
                format!("function {name}() in a view"),
                "A view follows the clock in conditions of WHERE, HAVING and inner joins: ts >= now() - INTERVAL '1 day'. \
                 Elsewhere ask for now() when you SELECT from the view.",
            )),
        }
    }
}

/// Whether a function that is not immutable depends on more than its arguments and settings we fix.
fn is_unsteady(name: &str) -> bool {
    let is_lock = name.starts_with("pg_advisory_") || name.starts_with("pg_try_advisory_");
    is_lock
        || matches!(
            name,
            "now"
                | "current_timestamp"
                | "current_date"
                | "current_time"
                | "today"
                | "random"
                | "uuid"
                | "rand"
                | "nextval"
                | "currval"
                | "setval"
                | "lastval"
                | "__sequence_last"
                | "__sequence_called"
                | "current_setting"
                | "set_config"
        )
}
