//! Outer columns replaced by columns of the rows at hand.

use std::sync::Arc;

use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_common::{Column, DFSchema, ExprSchema, Result as DfResult};
use datafusion_expr::Expr;
use datafusion_expr::expr::{Exists, InSubquery, SetComparison};
use datafusion_expr::expr_rewriter::NamePreserver;
use datafusion_expr::logical_plan::{LogicalPlan, Subquery};

use super::free::free_of;

/// What outer columns are replaced by: columns of the rows at hand.
pub(super) struct Replaced<'a> {
    pub(super) outer: &'a [Column],
    pub(super) keys: &'a [Column],
    pub(super) schema: &'a DFSchema,
}

impl Replaced<'_> {
    fn key(&self, column: &Column) -> Option<&Column> {
        self.outer.iter().position(|outer| outer == column).map(|at| &self.keys[at])
    }

    /// An expression over the rows at hand; within its subqueries the keys are outer columns. `own`
    /// has the columns of the rows that the expression stood on, which hide others of their names.
    pub(super) fn in_expr(&self, expr: Expr, own: &DFSchema) -> DfResult<Expr> {
        let replaced = expr.transform_up(|part| match part {
            Expr::OuterReferenceColumn(field, column) => match self.key(&column) {
                Some(key) => Ok(Transformed::yes(Expr::Column(key.clone()))),
                None => Ok(Transformed::no(Expr::OuterReferenceColumn(field, column))),
            },
            Expr::ScalarSubquery(subquery) => {
                Ok(Transformed::yes(Expr::ScalarSubquery(self.in_subquery(subquery, own)?)))
            }
            Expr::Exists(Exists { subquery, negated }) => {
                Ok(Transformed::yes(Expr::Exists(Exists { subquery: self.in_subquery(subquery, own)?, negated })))
            }
            Expr::InSubquery(test) => {
                let subquery = self.in_subquery(test.subquery, own)?;
                Ok(Transformed::yes(Expr::InSubquery(InSubquery { subquery, ..test })))
            }
            Expr::SetComparison(test) => {
                let subquery = self.in_subquery(test.subquery, own)?;
                Ok(Transformed::yes(Expr::SetComparison(SetComparison { subquery, ..test })))
            }
            other => Ok(Transformed::no(other)),
        })?;
        Ok(replaced.data)
    }

    fn in_subquery(&self, subquery: Subquery, own: &DFSchema) -> DfResult<Subquery> {
        let plan = self.in_nested(Arc::unwrap_or_clone(subquery.subquery), own)?;
        let mut outer_ref_columns = Vec::new();
        for column in free_of(&plan)? {
            let field = self.schema.field_from_column(&column).or_else(|_| own.field_from_column(&column));
            // (Columns of further out stay as they were.)
            let is_same = |outer: &&Expr| matches!(outer, Expr::OuterReferenceColumn(_, known) if *known == column);
            match (field, subquery.outer_ref_columns.iter().find(is_same)) {
                (Ok(field), _) => outer_ref_columns.push(Expr::OuterReferenceColumn(field.clone(), column)),
                (Err(_), Some(outer)) => outer_ref_columns.push(outer.clone()),
                (Err(_), None) => {}
            }
        }
        Ok(Subquery { subquery: Arc::new(plan), outer_ref_columns, spans: subquery.spans })
    }

    /// A plan within a subquery: the keys are outer columns of it.
    pub(super) fn in_nested(&self, plan: LogicalPlan, own: &DFSchema) -> DfResult<LogicalPlan> {
        let replaced = plan.transform_down_with_subqueries(|node| {
            let names = NamePreserver::new(&node);
            node.map_expressions(|expr| {
                let name = names.save(&expr);
                let replaced = expr.transform_up(|part| match &part {
                    Expr::OuterReferenceColumn(_, column) if !own.has_column(column) => match self.key(column) {
                        Some(key) => {
                            let field = self.schema.field_from_column(key)?.clone();
                            Ok(Transformed::yes(Expr::OuterReferenceColumn(field, key.clone())))
                        }
                        None => Ok(Transformed::no(part)),
                    },
                    _ => Ok(Transformed::no(part)),
                })?;
                Ok(replaced.update_data(|expr| name.restore(expr)))
            })
        })?;
        Ok(replaced.data)
    }
}
