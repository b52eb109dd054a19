//! Functions in FROM that are computed of the rows before them.
//!
//! ```text
//! SELECT a.k, t.x FROM a, unnest(a.list) AS t(x)
//! SELECT a.k, t.x FROM a, LATERAL (SELECT unnest(a.list) AS x) AS t
//! ```
//!
//! Law: the function's name and columns are those of the derived table, to whatever stands behind
//! it and within.

use datafusion_expr::sqlparser::ast::{Expr, Select, SetExpr, TableFactor, TableWithJoins};

use super::series::{self, Series};
use crate::error::Result;
use crate::syntax::template::template;
use crate::syntax::walk::{Look, Looking, look};

/// Rewrites such functions in the FROM of a select.
///
/// # Errors
/// As for [`series::of`].
pub(super) fn write_out(select: &mut Select) -> Result<()> {
    select.from.iter_mut().enumerate().try_for_each(|(at, from)| write_out_joins(from, at > 0))
}

/// `is_behind` if there are rows before the first entry.
fn write_out_joins(from: &mut TableWithJoins, is_behind: bool) -> Result<()> {
    write_out_entry(&mut from.relation, is_behind)?;
    from.joins.iter_mut().try_for_each(|join| write_out_entry(&mut join.relation, true))
}

fn write_out_entry(factor: &mut TableFactor, is_behind: bool) -> Result<()> {
    if let TableFactor::NestedJoin { table_with_joins, .. } = factor {
        return write_out_joins(table_with_joins, is_behind);
    }
    if !is_behind || !refers(factor) {
        return Ok(());
    }
    let Some(Series { table, items, .. }) = series::called(factor)? else {
        return Ok(());
    };
    let query = template(&format!("SELECT 1 FROM LATERAL (SELECT {items}) AS {table}"))?;
    if let SetExpr::Select(select) = *query.body
        && let Some(from) = select.from.into_iter().next()
    {
        *factor = from.relation;
    }
    Ok(())
}

/// Whether a call names a column.
fn refers(factor: &TableFactor) -> bool {
    let mut refers = Refers(false);
    match factor {
        TableFactor::Table { args: Some(args), .. } => look(&args.args, &mut refers),
        TableFactor::Function { args, .. } => look(args, &mut refers),
        TableFactor::UNNEST { array_exprs, .. } => look(array_exprs, &mut refers),
        _ => {}
    }
    refers.0
}

struct Refers(bool);

impl Looking for Refers {
    fn expr(&mut self, expr: &Expr) -> Look {
        self.0 |= matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_));
        Look::Continue(())
    }
}
