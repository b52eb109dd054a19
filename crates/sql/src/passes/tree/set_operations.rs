//! `EXCEPT` and `INTERSECT` as marked joins, which [`set_operations`](crate::passes::plan::set_operations) plans with
//! SQL's multiplicities.

use datafusion_expr::sqlparser::ast::{SelectItem, SetExpr, SetOperator, SetQuantifier, TableFactor};

use crate::error::{ErrorKind, Result, SqlError};
use crate::syntax::template::template;

/// Alias that marks a join as a set operation; followed by `except`, `except_all`, `intersect` or `intersect_all`.
pub(crate) const SET_MARK: &str = "__anabranch_";

/// Marks the set operations of a query's body.
///
/// # Errors
/// `Unsupported` for BY NAME, `Invalid` for unions of different widths.
pub(super) fn mark(body: &mut SetExpr) -> Result<()> {
    let SetExpr::SetOperation { op, set_quantifier, left, right } = body else {
        return Ok(());
    };
    let all = match set_quantifier {
        SetQuantifier::All => "_all",
        SetQuantifier::None | SetQuantifier::Distinct => "",
        _ => return Err(SqlError::unsupported("BY NAME", "List the columns in the same order on both sides.")),
    };
    let name = match op {
        SetOperator::Union => {
            if let (Some(n), Some(m)) = (width(left), width(right))
                && n != m
            {
                let message = "each UNION query must have the same number of columns";
                return Err(SqlError::new(ErrorKind::Invalid, message)
                    .with_detail(format!("The left one has {n}, the right one {m}.")));
            }
            mark(left)?;
            return mark(right);
        }
        SetOperator::Except | SetOperator::Minus => "except",
        SetOperator::Intersect => "intersect",
    };
    let mut template = template(&format!("SELECT * FROM (a CROSS JOIN b) AS \"{SET_MARK}{name}{all}\""))?;
    if let SetExpr::Select(select) = template.body.as_mut()
        && let Some(TableFactor::NestedJoin { table_with_joins, .. }) =
            select.from.first_mut().map(|from| &mut from.relation)
        && let Some(join) = table_with_joins.joins.first_mut()
    {
        join.relation = derived(right)?;
        table_with_joins.relation = derived(left)?;
    }
    *body = *template.body;
    Ok(())
}

/// The number of columns, where it can be read off the text.
fn width(side: &SetExpr) -> Option<usize> {
    match side {
        SetExpr::Select(select) => {
            let plain =
                |item: &SelectItem| matches!(item, SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. });
            select.projection.iter().all(plain).then_some(select.projection.len())
        }
        SetExpr::SetOperation { left, .. } => width(left),
        SetExpr::Query(query) => width(&query.body),
        SetExpr::Values(values) => values.rows.first().map(|row| row.content.len()),
        _ => None,
    }
}

fn derived(side: &SetExpr) -> Result<TableFactor> {
    let subquery = match side {
        SetExpr::Query(query) => query.clone(),
        other => {
            let mut query = template("SELECT 1")?;
            query.body = Box::new(other.clone());
            query
        }
    };
    Ok(TableFactor::Derived { lateral: false, subquery, alias: None, sample: None })
}
