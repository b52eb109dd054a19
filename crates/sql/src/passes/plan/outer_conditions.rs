//! Conditions over outer columns inside derived tables move out of them, to where DataFusion looks
//! for such conditions.
//!
//! ```text
//! EXISTS (SELECT 1 FROM (SELECT u.i AS a FROM u WHERE u.k = t.k) x WHERE x.a = 3)
//! =   EXISTS (SELECT 1 FROM (SELECT u.i AS a, u.k AS c FROM u) x WHERE x.a = 3 AND x.c = t.k)
//! ```
//!
//! Law: the plan means what it did. Only filters and select lists are passed here, on which a
//! condition has the same rows above and below; joins and windows are in `outer_joins`.

use std::sync::Arc;

use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_common::{Column, Result as DfResult};
use datafusion_expr::Expr;
use datafusion_expr::logical_plan::{Filter, LogicalPlan, Projection, SubqueryAlias};
use datafusion_expr::utils::split_conjunction_owned;

use crate::passes::plan::decorrelate::mentions_outer;
use crate::passes::plan::outer_joins::{Surroundings, filtered, partition, raise};

/// Moves such conditions out of the derived tables of a subquery, and above its joins and windows.
pub(crate) fn out_of_derived(plan: LogicalPlan, around: &mut Surroundings) -> DfResult<LogicalPlan> {
    if !mentions_outer(&plan) {
        return Ok(plan);
    }
    let plan = plan.map_children(|child| Ok(Transformed::yes(out_of_derived(child, around)?)))?.data;
    let plan = match plan {
        LogicalPlan::Projection(_)
        | LogicalPlan::Filter(_)
        | LogicalPlan::Aggregate(_)
        | LogicalPlan::Join(_)
        | LogicalPlan::Window(_) => plan.map_children(|child| match child {
            LogicalPlan::SubqueryAlias(alias) if mentions_outer(&alias.input) => {
                let (table, conditions) = Hoist { name: &mut *around.name }.alias(alias)?;
                Ok(Transformed::yes(filtered(table, conditions)?))
            }
            child => Ok(Transformed::no(child)),
        })?,
        plan => Transformed::no(plan),
    };
    match plan.data.recompute_schema()? {
        LogicalPlan::Join(join) => raise(join, around),
        LogicalPlan::Window(window) => partition(window, around),
        plan => one_filter(plan),
    }
}

/// One filter where one would stand above the other: DataFusion would forget the outer columns of
/// the lower one.
fn one_filter(plan: LogicalPlan) -> DfResult<LogicalPlan> {
    let LogicalPlan::Filter(upper) = &plan else { return Ok(plan) };
    let LogicalPlan::Filter(lower) = upper.input.as_ref() else { return Ok(plan) };
    let both = lower.predicate.clone().and(upper.predicate.clone());
    Ok(LogicalPlan::Filter(Filter::try_new(both, lower.input.clone())?))
}

/// Takes conditions out of the nodes that make up a derived table.
struct Hoist<'a> {
    name: &'a mut dyn FnMut() -> String,
}

/// A plan, and the conditions that were taken out of it, over its columns.
type Hoisted = (LogicalPlan, Vec<Expr>);

impl Hoist<'_> {
    fn plan(&mut self, plan: LogicalPlan) -> DfResult<Hoisted> {
        match plan {
            LogicalPlan::Filter(filter) => self.filter(filter),
            LogicalPlan::Projection(projection) => self.projection(projection),
            LogicalPlan::SubqueryAlias(alias) => self.alias(alias),
            other => Ok((other, vec![])),
        }
    }

    fn filter(&mut self, filter: Filter) -> DfResult<Hoisted> {
        let (input, mut hoisted) = self.plan(Arc::unwrap_or_clone(filter.input))?;
        let parts = split_conjunction_owned(filter.predicate).into_iter();
        let (outer, own): (Vec<Expr>, Vec<Expr>) = parts.partition(Expr::contains_outer);
        hoisted.extend(outer);
        Ok((filtered(input, own)?, hoisted))
    }

    fn projection(&mut self, projection: Projection) -> DfResult<Hoisted> {
        let Projection { mut expr, input, .. } = projection;
        let (input, hoisted) = self.plan(Arc::unwrap_or_clone(input))?;
        let mut shown: Vec<(Column, Column)> = Vec::new();
        let mut over = |condition: Expr| {
            let renamed = condition.transform_up(|e| {
                let Expr::Column(column) = &e else { return Ok(Transformed::no(e)) };
                if let Some((_, name)) = shown.iter().find(|(known, _)| known == column) {
                    return Ok(Transformed::yes(Expr::Column(name.clone())));
                }
                let name = Column::new_unqualified((self.name)());
                expr.push(Expr::Column(column.clone()).alias(&name.name));
                shown.push((column.clone(), name.clone()));
                Ok(Transformed::yes(Expr::Column(name)))
            })?;
            Ok(renamed.data)
        };
        let hoisted = hoisted.into_iter().map(&mut over).collect::<DfResult<Vec<Expr>>>()?;
        Ok((LogicalPlan::Projection(Projection::try_new(expr, Arc::new(input))?), hoisted))
    }

    /// Of a table under another name the columns keep their names.
    fn alias(&mut self, alias: SubqueryAlias) -> DfResult<Hoisted> {
        if !matches!(alias.input.as_ref(), LogicalPlan::Projection(_)) {
            return Ok((LogicalPlan::SubqueryAlias(alias), vec![]));
        }
        let SubqueryAlias { input, alias: table, .. } = alias;
        let (input, hoisted) = self.plan(Arc::unwrap_or_clone(input))?;
        let qualified = |condition: Expr| {
            let qualified = condition.transform_up(|e| match &e {
                Expr::Column(column) => {
                    Ok(Transformed::yes(Expr::Column(Column::new(Some(table.clone()), &column.name))))
                }
                _ => Ok(Transformed::no(e)),
            })?;
            Ok(qualified.data)
        };
        let hoisted = hoisted.into_iter().map(qualified).collect::<DfResult<Vec<Expr>>>()?;
        Ok((LogicalPlan::SubqueryAlias(SubqueryAlias::try_new(Arc::new(input), table)?), hoisted))
    }
}
