//! `VALUES ((SELECT max(k) + 1 FROM t), 2)`: rows with subqueries are selected, one by one.
//!
//! ```text
//!     VALUES (1, (SELECT x FROM t)), (2, 3)
//!     SELECT 1 AS column1, (SELECT x FROM t) AS column2 UNION ALL SELECT 2, 3
//! ```
//!
//! DataFusion plans no subqueries in lists of rows.

use datafusion_expr::sqlparser::ast::{Expr, Query, SetExpr, Values};

use crate::error::Result;
use crate::syntax::template::template;
use crate::syntax::walk::look_outside_queries;

/// Writes such rows as queries.
///
/// # Errors
/// None.
pub(super) fn select_rows(query: &mut Query) -> Result<()> {
    let SetExpr::Values(values) = query.body.as_ref() else { return Ok(()) };
    if !has_subquery(values) {
        return Ok(());
    }
    let row = |cells: &[Expr]| {
        let named = cells.iter().enumerate().map(|(n, cell)| format!("{cell} AS column{}", n + 1));
        format!("SELECT {}", named.collect::<Vec<_>>().join(", "))
    };
    let rows: Vec<String> = values.rows.iter().map(|cells| row(&cells.content)).collect();
    query.body = template(&rows.join(" UNION ALL "))?.body;
    Ok(())
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
