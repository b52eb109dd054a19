//! `SELECT (SELECT sum(q.b)) FROM q`: an aggregate belongs to the query whose columns it is of.
//!
//! Law: a subquery without FROM has no columns of its own, so each aggregate of a column in it is
//! one of a query around it; its value is that of what it selects. Aggregates without columns
//! (`count(*)`) are the subquery's own.

use datafusion_expr::sqlparser::ast::{
    Expr, Function, GroupByExpr, Query, Select, SelectItem, SetExpr, TableFactor, TableWithJoins,
};

use crate::error::{Result, SqlError};
use crate::functions::table::FUNCTIONS;
use crate::passes::tree::json_lists::is_written_aggregate;
use crate::syntax::names::fold;
use crate::syntax::walk::{look_outside_queries, names_column};

/// Writes what such a subquery selects in its place.
///
/// # Errors
/// `Unsupported` for an aggregate of an outer query's columns in a subquery with FROM.
pub(super) fn lift(expr: &mut Expr) -> Result<()> {
    if let Expr::Subquery(query) | Expr::Exists { subquery: query, .. } | Expr::InSubquery { subquery: query, .. } =
        expr
    {
        refuse_outer(query)?;
    }
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

/// Refuses aggregates that only name tables which the subquery does not have: they are those of a
/// query around, and DataFusion would compute them for each of its rows.
fn refuse_outer(query: &Query) -> Result<()> {
    let SetExpr::Select(select) = query.body.as_ref() else { return Ok(()) };
    let tables = tables_of(select);
    let Some(tables) = tables.filter(|tables| !tables.is_empty()) else { return Ok(()) };
    let is_outer = |call: &Function| {
        let (mut of_outer, mut of_own) = (false, false);
        look_outside_queries(&call.args, &mut |part| match part {
            Expr::CompoundIdentifier(path) => match path.as_slice() {
                [table, _] if !tables.contains(&fold(table)) => of_outer = true,
                _ => of_own = true,
            },
            Expr::Identifier(_) => of_own = true,
            _ => {}
        });
        of_outer && !of_own
    };
    let mut found = None;
    look_outside_queries(&select.projection, &mut |part| match part {
        Expr::Function(call) if is_total(call) && is_outer(call) => found = Some(call.name.to_string()),
        _ => {}
    });
    match found {
        Some(name) => {
            let what = format!("{}() of columns of an outer query, in a subquery with FROM,", name.to_lowercase());
            let hint = "Compute the aggregate in a derived table of the outer query, and read its column in the \
                        subquery.";
            Err(SqlError::unsupported(what, hint))
        }
        None => Ok(()),
    }
}

/// The names that the columns of a query's tables are qualified by, where all are known.
pub(super) fn tables_of(select: &Select) -> Option<Vec<String>> {
    let joined = |from: &TableWithJoins| {
        let joins = from.joins.iter().map(|join| shown_name(&join.relation));
        std::iter::once(shown_name(&from.relation)).chain(joins).collect::<Vec<_>>()
    };
    select.from.iter().flat_map(joined).collect()
}

/// The name that a table's columns are qualified by.
pub(super) fn shown_name(factor: &TableFactor) -> Option<String> {
    match factor {
        TableFactor::Table { alias: Some(alias), .. } | TableFactor::Derived { alias: Some(alias), .. } => {
            Some(fold(&alias.name))
        }
        TableFactor::Table { name, .. } => name.0.last().and_then(|part| part.as_ident()).map(fold),
        _ => None,
    }
}

/// What a query selects that does nothing else.
pub(super) fn selected(query: &Query) -> Option<&Expr> {
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
pub(super) fn is_total(function: &Function) -> bool {
    let name = function.name.to_string().to_lowercase();
    function.over.is_none() && (FUNCTIONS.aggregate.contains_key(&name) || is_written_aggregate(&name))
}
