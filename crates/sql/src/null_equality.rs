//! Joins whose keys are equal when both are NULL stay apart from comparisons, for which NULL is never equal.
//!
//! DataFusion keeps one setting a join, and two of its rules overlook it. `extract_equijoin_predicate` adds `a = b` to the
//! keys of a join that already takes NULLs for equal, and `eliminate_cross_join` puts the keys of several joins together
//! under the setting of one. Both are held back here: the comparison stays a condition of the join.

use std::sync::Arc;

use datafusion_common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion_common::{NullEquality, Result as DfResult};
use datafusion_expr::JoinType;
use datafusion_expr::logical_plan::LogicalPlan;
use datafusion_optimizer::ApplyOrder;
use datafusion_optimizer::optimizer::{OptimizerConfig, OptimizerRule};

/// A rule, and where it does not apply.
#[derive(Debug)]
struct HeldBack {
    rule: Arc<dyn OptimizerRule + Send + Sync>,
    from: fn(&LogicalPlan) -> DfResult<bool>,
}

/// Holds the two rules back.
pub(crate) fn keep_null_equality(rules: &mut [Arc<dyn OptimizerRule + Send + Sync>]) {
    for rule in rules {
        let from = match rule.name() {
            "extract_equijoin_predicate" => has_keys_equal_in_null,
            "eliminate_cross_join" => contains_null_equality,
            _ => continue,
        };
        *rule = Arc::new(HeldBack { rule: rule.clone(), from });
    }
}

fn has_keys_equal_in_null(plan: &LogicalPlan) -> DfResult<bool> {
    let LogicalPlan::Join(join) = plan else { return Ok(false) };
    Ok(join.null_equality == NullEquality::NullEqualsNull && !join.on.is_empty())
}

/// The other rule walks over the whole plan by itself: all of it is looked at.
fn contains_null_equality(plan: &LogicalPlan) -> DfResult<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        found |= matches!(node, LogicalPlan::Join(join) if join.join_type == JoinType::Inner)
            && has_keys_equal_in_null(node)?;
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

impl OptimizerRule for HeldBack {
    fn name(&self) -> &str {
        self.rule.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.rule.apply_order()
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> DfResult<Transformed<LogicalPlan>> {
        if (self.from)(&plan)? {
            return Ok(Transformed::no(plan));
        }
        self.rule.rewrite(plan, config)
    }
}
