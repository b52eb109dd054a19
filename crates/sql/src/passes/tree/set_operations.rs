//! `EXCEPT` and `INTERSECT` as calls in FROM, which
//! [`set_operations`](crate::passes::plan::set_operations) plans with SQL's multiplicities.

use anabranch_plan::SetOperation;
use datafusion_expr::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, Query, SelectItem, SetExpr, SetOperator, SetQuantifier, TableFactor,
};

use super::names::name_derived;
use crate::error::{ErrorKind, Result, SqlError};
use crate::syntax::relation_calls::called_in_from;
use crate::syntax::template::template;

/// The function of each set operation but UNION.
const NAMES: [(SetOperation, &str); 4] = [
    (SetOperation::Except, "__except"),
    (SetOperation::ExceptAll, "__except_all"),
    (SetOperation::Intersect, "__intersect"),
    (SetOperation::IntersectAll, "__intersect_all"),
];

/// The set operation that an entry of FROM calls, with its sides.
pub(crate) fn called(factor: &TableFactor) -> Option<(SetOperation, &Query, &Query)> {
    let (name, args) = called_in_from(factor)?;
    let (operation, _) = NAMES.iter().find(|(_, known)| *known == name)?;
    match args.as_slice() {
        [Expr::Subquery(left), Expr::Subquery(right)] => Some((*operation, left, right)),
        _ => None,
    }
}

/// Makes calls of the set operations in a query's body.
///
/// # Errors
/// `Unsupported` for BY NAME, `Invalid` for unions of different widths.
pub(super) fn call(body: &mut SetExpr) -> Result<()> {
    let SetExpr::SetOperation { op, set_quantifier, left, right } = body else {
        return Ok(());
    };
    let is_all = match set_quantifier {
        SetQuantifier::All => true,
        SetQuantifier::None | SetQuantifier::Distinct => false,
        _ => return Err(SqlError::unsupported("BY NAME", "List the columns in the same order on both sides.")),
    };
    let operation = match (op, is_all) {
        (SetOperator::Union, _) => {
            if let (Some(n), Some(m)) = (width(left), width(right))
                && n != m
            {
                let message = "each UNION query must have the same number of columns";
                return Err(SqlError::new(ErrorKind::Invalid, message)
                    .with_detail(format!("The left one has {n}, the right one {m}.")));
            }
            call(left)?;
            return call(right);
        }
        (SetOperator::Except | SetOperator::Minus, true) => SetOperation::ExceptAll,
        (SetOperator::Except | SetOperator::Minus, false) => SetOperation::Except,
        (SetOperator::Intersect, true) => SetOperation::IntersectAll,
        (SetOperator::Intersect, false) => SetOperation::Intersect,
    };
    let Some((_, name)) = NAMES.iter().find(|(known, _)| *known == operation) else {
        return Err(SqlError::internal("every set operation has a function"));
    };
    let mut template = template(&format!("SELECT * FROM {name}((SELECT 1), (SELECT 1))"))?;
    if let SetExpr::Select(select) = template.body.as_mut()
        && let Some(TableFactor::Table { args: Some(args), .. }) =
            select.from.first_mut().map(|from| &mut from.relation)
    {
        let sides = [side_query(left)?, side_query(right)?]
            .map(|side| FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Subquery(side))));
        args.args = sides.into();
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

/// One side, as a query of its own.
pub(super) fn side_query(side: &SetExpr) -> Result<Box<Query>> {
    let mut query = match side {
        SetExpr::Query(query) => query.clone(),
        other => {
            let mut query = template("SELECT 1")?;
            query.body = Box::new(other.clone());
            query
        }
    };
    name_derived(&mut query, None);
    Ok(query)
}
