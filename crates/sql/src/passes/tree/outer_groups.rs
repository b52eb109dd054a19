//! `(SELECT sum(v) FROM o WHERE o.k = t.k GROUP BY t.k)`: a key that is a column of a query around
//! is the same in all rows of the subquery.
//!
//! Law: such a subquery has one group, or none where it has no rows. DataFusion takes the outer
//! column for one of its own by its place.

use datafusion_expr::sqlparser::ast::{Expr, GroupByExpr, Query, SetExpr, TableFactor};

use super::outer_aggregates::tables_of;
use crate::error::Result;
use crate::syntax::names::fold;
use crate::syntax::parse::parse_expr;

/// Groups the subquery by a constant in place of outer columns that are qualified.
///
/// # Errors
/// None.
pub(super) fn settle(expr: &mut Expr) -> Result<()> {
    match expr {
        Expr::Subquery(query) | Expr::Exists { subquery: query, .. } | Expr::InSubquery { subquery: query, .. } => {
            settle_query(query)
        }
        _ => Ok(()),
    }
}

/// The same of a LATERAL derived table.
///
/// # Errors
/// None.
pub(super) fn settle_lateral(factor: &mut TableFactor) -> Result<()> {
    match factor {
        TableFactor::Derived { lateral: true, subquery, .. } => settle_query(subquery),
        _ => Ok(()),
    }
}

fn settle_query(query: &mut Query) -> Result<()> {
    settle_body(&mut query.body)
}

fn settle_body(body: &mut SetExpr) -> Result<()> {
    let select = match body {
        SetExpr::Select(select) => select,
        SetExpr::Query(query) => return settle_query(query),
        SetExpr::SetOperation { left, right, .. } => {
            settle_body(left)?;
            return settle_body(right);
        }
        _ => return Ok(()),
    };
    let Some(tables) = tables_of(select).filter(|tables| !tables.is_empty()) else { return Ok(()) };
    let GroupByExpr::Expressions(keys, _) = &mut select.group_by else { return Ok(()) };
    for key in keys {
        if let Expr::CompoundIdentifier(path) = key
            && let [table, _] = path.as_slice()
            && !tables.contains(&fold(table))
        {
            *key = parse_expr("1 = 1")?;
        }
    }
    Ok(())
}
