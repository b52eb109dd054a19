//! What was unique before `unnest` is not unique behind it.
//!
//! Law: `SELECT DISTINCT id FROM t, unnest(t.xs)` has each id once. DataFusion keeps what it knows
//! of keys behind Unnest, where a row comes as often as its list has elements: it then leaves out
//! DISTINCT, groups by less, and takes rows of equal order for none.
//!
//! The columns of rows whose lists are unnested stand in a call that is their value, of which
//! DataFusion concludes nothing. Derived tables, named queries and views have it as soon as they
//! are planned, since nodes above them group by what is known; all others before the rules. The
//! calls are taken away behind the last rule. Cost: none where rows are computed.

use std::sync::{Arc, Mutex, PoisonError};

use arrow::datatypes::Field;
use datafusion_common::Result as DfResult;
use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_expr::Expr;
use datafusion_expr::LogicalPlanBuilder;
use datafusion_expr::expr_rewriter::NamePreserver;
use datafusion_expr::logical_plan::{LogicalPlan, Projection, Unnest};
use datafusion_expr::planner::{PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning};
use datafusion_expr::sqlparser::ast::{Expr as SqlExpr, Query, SetExpr, TableFactor};

use super::chosen_documents;
use super::list_elements::mark;
use crate::error::Result;
use crate::functions::same_value::SameValue;
use crate::syntax::template::template;
use crate::syntax::walk::{Look, Looking, look};

const REPEATED: &str = "__repeated";

/// The value in a call of which DataFusion concludes nothing.
fn repeated(value: Expr) -> Expr {
    SameValue::udf(REPEATED, Field::clone).call(vec![value])
}

/// The rows, their columns as values of which nothing is known, if they come behind a list that is
/// unnested.
pub(crate) fn behind_lists(plan: LogicalPlan) -> DfResult<LogicalPlan> {
    if !knows_keys(&plan) || !plan.exists(|node| Ok(matches!(node, LogicalPlan::Unnest(_))))? {
        return Ok(plan);
    }
    of_nothing_known(plan)
}

/// The rows, their columns as values of which nothing is known.
fn of_nothing_known(plan: LogicalPlan) -> DfResult<LogicalPlan> {
    let columns = plan.schema().columns().into_iter().map(|column| {
        let (relation, name) = (column.relation.clone(), column.name.clone());
        repeated(Expr::Column(column)).alias_qualified(relation, name)
    });
    Ok(LogicalPlan::Projection(Projection::try_new(columns.collect(), Arc::new(plan))?))
}

/// The plan, in which nothing is known of rows whose lists are unnested.
pub(super) fn forget_keys(plan: LogicalPlan) -> DfResult<LogicalPlan> {
    let mut is_found = false;
    plan.apply_with_subqueries(|node| {
        is_found |= matches!(node, LogicalPlan::Unnest(unnest) if may_have_keys(&unnest.input));
        Ok(if is_found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    if !is_found {
        return Ok(plan);
    }
    let forgotten = plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Unnest(Unnest { input, exec_columns, options, .. }) if may_have_keys(&input) => {
            let rows = of_nothing_known(Arc::unwrap_or_clone(input))?;
            let rows = LogicalPlanBuilder::from(rows).unnest_columns_with_options(exec_columns, options)?;
            Ok(Transformed::yes(rows.build()?))
        }
        // (These hold what was concluded from their inputs.)
        LogicalPlan::Projection(_)
        | LogicalPlan::Aggregate(_)
        | LogicalPlan::Join(_)
        | LogicalPlan::SubqueryAlias(_)
        | LogicalPlan::Window(_) => Ok(Transformed::yes(node.recompute_schema()?)),
        other => Ok(Transformed::no(other)),
    })?;
    Ok(forgotten.data)
}

/// The plan without the calls.
pub(super) fn unmark(plan: LogicalPlan) -> DfResult<LogicalPlan> {
    let has_call = |expr: &Expr| expr.exists(|part| Ok(is_call(part)));
    let unmarked = plan.transform_up_with_subqueries(|node| {
        let mut is_marked = false;
        node.apply_expressions(|expr| {
            is_marked |= has_call(expr)?;
            Ok(TreeNodeRecursion::Continue)
        })?;
        if !is_marked {
            return Ok(Transformed::no(node));
        }
        let names = NamePreserver::new(&node);
        node.map_expressions(|expr| {
            let name = names.save(&expr);
            let plain = expr.transform_up(|part| match part {
                Expr::ScalarFunction(mut call) if call.func.name() == REPEATED => {
                    Ok(Transformed::yes(call.args.swap_remove(0)))
                }
                other => Ok(Transformed::no(other)),
            })?;
            Ok(plain.update_data(|expr| name.restore(expr)))
        })
    })?;
    Ok(unmarked.data)
}

fn is_call(expr: &Expr) -> bool {
    matches!(expr, Expr::ScalarFunction(call) if call.func.name() == REPEATED)
}

fn knows_keys(plan: &LogicalPlan) -> bool {
    !plan.schema().functional_dependencies().is_empty()
}

/// Whether keys are known of the rows, or will be: the rules make groups of DISTINCT.
fn may_have_keys(plan: &LogicalPlan) -> bool {
    let groups = |node: &LogicalPlan| matches!(node, LogicalPlan::Distinct(_) | LogicalPlan::Aggregate(_));
    let has_groups = plan.exists(|node| Ok(groups(node))).unwrap_or(true);
    has_groups || knows_keys(plan)
}

/// Plans derived tables that unnest lists, or choose documents.
#[derive(Debug, Default)]
pub(crate) struct RepeatedRows {
    /// The derived table that is being planned: what is asked for again is planned as it is.
    open: Mutex<Vec<String>>,
}

impl RelationPlanner for RepeatedRows {
    fn plan_relation(
        &self,
        relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> DfResult<RelationPlanning> {
        let TableFactor::Derived { subquery, .. } = &relation else {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };
        if !is_planned_here(subquery) {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        }
        let text = relation.to_string();
        let open = || self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open().last() == Some(&text) {
            open().pop();
            return Ok(RelationPlanning::Original(Box::new(relation)));
        }
        open().push(text.clone());
        let n_open = open().len();
        let planned = context.plan(relation);
        open().truncate(n_open - 1);
        Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(
            behind_lists(chosen_documents::mark(mark(planned?)?)?)?,
            None,
        ))))
    }
}

/// Makes a derived table of each named query that unnests a list, or chooses values.
///
/// # Errors
/// None that a user can cause.
pub(crate) fn derive_named(query: &mut Query) -> Result<()> {
    for named in query.with.iter_mut().flat_map(|with| &mut with.cte_tables) {
        if is_planned_here(&named.query) {
            let mut outer = template("SELECT * FROM (SELECT 1) AS __rows")?;
            if let SetExpr::Select(select) = outer.body.as_mut()
                && let Some(TableFactor::Derived { subquery, .. }) =
                    select.from.first_mut().map(|from| &mut from.relation)
            {
                std::mem::swap(subquery, &mut named.query);
                named.query = outer;
            }
        }
    }
    Ok(())
}

/// Whether a query unnests a list, or chooses values.
fn is_planned_here(query: &Query) -> bool {
    struct Found(bool);
    impl Looking for Found {
        fn expr(&mut self, expr: &SqlExpr) -> Look {
            self.0 |= matches!(expr, SqlExpr::Case { .. })
                || matches!(expr, SqlExpr::Function(call) if call.name.to_string().eq_ignore_ascii_case("unnest"));
            Look::Continue(())
        }
    }
    let mut found = Found(false);
    look(query, &mut found);
    found.0
}
