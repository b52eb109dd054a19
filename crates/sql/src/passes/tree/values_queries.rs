//! `VALUES ((SELECT max(k) + 1 FROM t), 2)`: rows with subqueries are selected, one by one.
//!
//! ```text
//!     VALUES (1, (SELECT x FROM t)), (2, 3)
//!     SELECT 1 AS column1, (SELECT x FROM t) AS column2 UNION ALL SELECT 2, 3
//! ```
//!
//! DataFusion plans no subqueries in lists of rows. In these it also takes a literal in quotes for
//! a text, whatever it stands beside; in a UNION it is read as what it stands beside
//! (`plan::unions`).
//!
//! ```text
//!     VALUES (u.id), ('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11')
//!     SELECT u.id AS column1 UNION ALL SELECT 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'
//! ```

use datafusion_expr::sqlparser::ast::{Expr, Query, SetExpr, Values};

use super::values_types::{is_quoted, said_type, text_type};
use crate::error::Result;
use crate::syntax::template::template;
use crate::syntax::walk::look_outside_queries;

/// Rows that are written as queries because of a literal, at most: a query takes far longer to plan
/// than a row.
const UNTOLD_ROWS_MAX: usize = 1000;

/// Writes rows with subqueries as queries.
///
/// # Errors
/// None.
pub(super) fn select_rows(query: &mut Query) -> Result<()> {
    let SetExpr::Values(values) = query.body.as_ref() else { return Ok(()) };
    match has_subquery(values) {
        true => select(query),
        false => Ok(()),
    }
}

fn select(query: &mut Query) -> Result<()> {
    let SetExpr::Values(values) = query.body.as_ref() else { return Ok(()) };
    let row = |cells: &[Expr]| {
        let named = cells.iter().enumerate().map(|(n, cell)| format!("{cell} AS column{}", n + 1));
        format!("SELECT {}", named.collect::<Vec<_>>().join(", "))
    };
    let rows: Vec<String> = values.rows.iter().map(|cells| row(&cells.content)).collect();
    query.body = template(&rows.join(" UNION ALL "))?.body;
    Ok(())
}

/// Writes rows as queries where a literal in quotes, or NULL, stands beside a value whose type only
/// the catalog says.
///
/// # Errors
/// None.
pub(super) fn select_untold(query: &mut Query) -> Result<()> {
    match query.body.as_ref() {
        SetExpr::Values(values) if is_untold(values) => {}
        _ => return Ok(()),
    }
    if let SetExpr::Values(values) = query.body.as_mut() {
        // (A UNION is typed branch by branch: literals come behind all that say a type.)
        values.rows.sort_by_key(|row| row.content.iter().filter(|cell| is_quoted(cell)).count());
    }
    select(query)
}

fn is_untold(values: &Values) -> bool {
    let width = values.rows.first().map_or(0, |row| row.content.len());
    let cells = |at: usize| values.rows.iter().filter_map(move |row| row.content.get(at));
    (2..=UNTOLD_ROWS_MAX).contains(&values.rows.len())
        && values.rows.iter().all(|row| row.content.len() == width)
        && (0..width).any(|at| cells(at).any(is_quoted) && cells(at).any(says_nothing))
}

/// Whether a cell is a column, a call, or computed of such: its type is not written at it.
fn says_nothing(cell: &Expr) -> bool {
    match cell {
        Expr::Nested(inner) => says_nothing(inner),
        Expr::Value(_) | Expr::Array(_) => false,
        Expr::UnaryOp { expr, .. } => says_nothing(expr),
        other => said_type(other).is_none() && text_type(other).is_none(),
    }
}

/// Whether a list of rows has subqueries.
pub(crate) fn has_subquery(values: &Values) -> bool {
    let mut found = false;
    for cell in values.rows.iter().flat_map(|row| &row.content) {
        look_outside_queries(cell, &mut |part| {
            found |= matches!(part, Expr::Subquery(_) | Expr::Exists { .. } | Expr::InSubquery { .. });
        });
    }
    found
}
