//! Rules of DataFusion that are held back where they would change the answer.
//!
//! - Joins whose keys are equal when both are NULL stay apart from comparisons, for which NULL is
//!   never equal. DataFusion keeps one setting a join, and two of its rules overlook it:
//!   `extract_equijoin_predicate` adds `a = b` to the keys of a join that already takes NULLs for
//!   equal, and `eliminate_cross_join` puts the keys of several joins together under the setting of
//!   one. The comparison stays a condition of the join.
//! - `x NOT IN (query)` whose `x` turns out to be a constant is put as `NOT EXISTS` before
//!   `decorrelate_predicate_subquery` sees it, which would compare in the ON of an antijoin: there
//!   NULL is no match, so that all rows would be kept.
//! - A condition without columns (`1 = 2`, from the ON of a join) stays above an aggregate of all
//!   rows: `push_down_filter` would put it below, where the aggregate has its one row all the same.
//! - Sums of whole numbers without columns are made to fail beyond their type before
//!   `simplify_expressions` folds them, which would wrap round.

use std::sync::Arc;

use datafusion_common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion_common::{NullEquality, Result as DfResult};
use datafusion_expr::JoinType;
use datafusion_expr::logical_plan::LogicalPlan;
use datafusion_optimizer::ApplyOrder;
use datafusion_optimizer::optimizer::{OptimizerConfig, OptimizerRule};

/// A rule, and where it does not apply.
#[derive(Debug)]
pub(super) struct HeldBack {
    pub(super) rule: Arc<dyn OptimizerRule + Send + Sync>,
    pub(super) from: fn(&LogicalPlan) -> DfResult<bool>,
}

/// A rule that sees a node as something else has left it.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) rule: Arc<dyn OptimizerRule + Send + Sync>,
    pub(super) by: fn(LogicalPlan) -> DfResult<LogicalPlan>,
}

pub(super) fn has_keys_equal_in_null(plan: &LogicalPlan) -> DfResult<bool> {
    let LogicalPlan::Join(join) = plan else { return Ok(false) };
    Ok(join.null_equality == NullEquality::NullEqualsNull && !join.on.is_empty())
}

pub(super) fn filters_a_total(plan: &LogicalPlan) -> DfResult<bool> {
    let mut below = plan;
    while let LogicalPlan::Filter(filter) = below {
        below = &filter.input;
    }
    let is_filter = matches!(plan, LogicalPlan::Filter(_));
    Ok(is_filter && matches!(below, LogicalPlan::Aggregate(aggregate) if aggregate.group_expr.is_empty()))
}

/// The other rule walks over the whole plan by itself: all of it is looked at.
pub(super) fn contains_null_equality(plan: &LogicalPlan) -> DfResult<bool> {
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

impl OptimizerRule for Prepared {
    fn name(&self) -> &str {
        self.rule.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.rule.apply_order()
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> DfResult<Transformed<LogicalPlan>> {
        self.rule.rewrite((self.by)(plan)?, config)
    }
}
