//! `SELECT (SELECT sum(q.b)) FROM q`: an aggregate belongs to the query whose columns it is of.
//!
//! Law: a subquery without FROM has no columns of its own, so each aggregate of a column in it is
//! one of a query around it; its value is that of what it selects. Aggregates without columns
//! (`count(*)`) are the subquery's own.

use datafusion_expr::sqlparser::ast::{Expr, Function, GroupByExpr, Query, Select, SelectItem, SetExpr};

use crate::error::Result;
use crate::functions::table::FUNCTIONS;
use crate::passes::tree::json_lists::is_written_aggregate;
use crate::syntax::walk::{look_outside_queries, names_column};

/// Writes what such a subquery selects in its place.
///
/// # Errors
/// None.
pub(super) fn lift(expr: &mut Expr) -> Result<()> {
    if let Expr::Subquery(query) = expr
        && let Some(selected) = selected(query)
    {
        let (mut of_columns, mut of_none) = (0, 0);
        look_outside_queries(selected, &mut |expr| match expr {
            Expr::Function(function) if is_total(function) => match names_column(&function.args) {
                true => of_columns += 1,
                false => of_none += 1,
            },
            _ => {}
        });
        if of_columns > 0 && of_none == 0 {
            *expr = Expr::Nested(Box::new(selected.clone()));
        }
    }
    Ok(())
}

/// What a query selects that does nothing else.
fn selected(query: &Query) -> Option<&Expr> {
    let SetExpr::Select(select) = query.body.as_ref() else { return None };
    let Select { distinct: None, from, selection: None, having: None, group_by, projection, .. } = select.as_ref()
    else {
        return None;
    };
    let has_groups = !matches!(group_by, GroupByExpr::Expressions(by, _) if by.is_empty());
    let is_more = query.with.is_some() || query.limit_clause.is_some() || query.fetch.is_some() || has_groups;
    if is_more || !from.is_empty() {
        return None;
    }
    match projection.as_slice() {
        [SelectItem::UnnamedExpr(selected) | SelectItem::ExprWithAlias { expr: selected, .. }] => Some(selected),
        _ => None,
    }
}

/// Whether a call is one of an aggregate.
fn is_total(function: &Function) -> bool {
    let name = function.name.to_string().to_lowercase();
    function.over.is_none() && (FUNCTIONS.aggregate.contains_key(&name) || is_written_aggregate(&name))
}
