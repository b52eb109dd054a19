//! Comparisons of row values, spelt out column by column; DataFusion would compare structs, in
//! which NULL is a value.
//!
//! ```text
//!     (a, b) < (c, d)                     a < c OR (a = c AND b < d)
//!     (a, b) <> (c, d)                    a <> c OR b <> d
//!     (a, b) BETWEEN (c, d) AND (e, f)    (a, b) >= (c, d) AND (a, b) <= (e, f)
//!     (a, b) IN ((c, d), ..)              (a = c AND b = d) OR ..
//!     (a, b) IN (query)                   EXISTS (SELECT 1 FROM (query) q(c, d) WHERE c = a AND d = b)
//!     (a, b) IS NULL, IS NOT NULL         all of them are
//!     (a, b) IS DISTINCT FROM (c, d)      any is
//! ```
//!
//! Law: the columns up to the first two that differ decide, and NULL among these makes NULL. A
//! chain of n columns nests n levels deep.

use datafusion_expr::sqlparser::ast::{
    BinaryOperator, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Query, UnaryOperator,
};

use super::names::name_items;
use super::subquery::around;
use crate::error::{ErrorKind, Result, SqlError};

/// Spells out one comparison of rows.
///
/// # Errors
/// `Invalid` for rows of different lengths.
pub(super) fn spell(expr: &mut Expr) -> Result<()> {
    let spelt = match expr {
        Expr::BinaryOp { left, op, right } => match (row(left), row(right)) {
            (Some(left), Some(right)) => compared(op, &left, &right)?,
            _ => None,
        },
        Expr::Between { expr, negated, low, high } => match (row(expr), row(low), row(high)) {
            (Some(value), Some(low), Some(high)) => between(*negated, &value, &low, &high)?,
            _ => None,
        },
        Expr::InList { expr, list, negated } => match row(expr) {
            Some(left) => in_rows(&left, list, *negated)?,
            None => None,
        },
        Expr::InSubquery { expr, subquery, negated } => match row(expr) {
            Some(left) => Some(in_query(&left, subquery, *negated)?),
            None => None,
        },
        Expr::IsNull(value) => row(value).and_then(|row| each(row, Expr::IsNull)),
        Expr::IsNotNull(value) => row(value).and_then(|row| each(row, Expr::IsNotNull)),
        Expr::IsDistinctFrom(left, right) => match (row(left), row(right)) {
            (Some(left), Some(right)) => distinct(&left, &right)?,
            _ => None,
        },
        Expr::IsNotDistinctFrom(left, right) => match (row(left), row(right)) {
            (Some(left), Some(right)) => distinct(&left, &right)?.map(not),
            _ => None,
        },
        _ => None,
    };
    if let Some(spelt) = spelt {
        *expr = spelt;
    }
    Ok(())
}

/// The columns of a row value: `(a, b)` or `ROW(a, b)`.
pub(super) fn row(expr: &Expr) -> Option<Vec<Expr>> {
    match expr {
        Expr::Tuple(columns) => Some(columns.clone()),
        Expr::Function(function) if function.name.to_string().eq_ignore_ascii_case("row") => {
            let FunctionArguments::List(list) = &function.args else { return None };
            let column = |arg: &FunctionArg| match arg {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(column)) => Some(column.clone()),
                _ => None,
            };
            list.args.iter().map(column).collect::<Option<Vec<_>>>().filter(|columns| !columns.is_empty())
        }
        _ => None,
    }
}

fn compared(op: &BinaryOperator, left: &[Expr], right: &[Expr]) -> Result<Option<Expr>> {
    use BinaryOperator::{And, Eq, Gt, GtEq, Lt, LtEq, NotEq, Or};
    let strict = match op {
        Lt | LtEq => Lt,
        Gt | GtEq => Gt,
        Eq | NotEq => {
            check_lengths(left, right)?;
            let columns = left.iter().zip(right).map(|(left, right)| pair(left, op.clone(), right));
            return Ok(joined(columns, if *op == Eq { And } else { Or }));
        }
        _ => return Ok(None),
    };
    check_lengths(left, right)?;
    let mut columns = left.iter().zip(right).rev();
    let last = columns.next().map(|(left, right)| pair(left, op.clone(), right));
    Ok(last.map(|last| {
        columns.fold(last, |rest, (left, right)| {
            let tied = pair(&pair(left, Eq, right), And, &rest);
            pair(&pair(left, strict.clone(), right), Or, &tied)
        })
    }))
}

fn between(negated: bool, value: &[Expr], low: &[Expr], high: &[Expr]) -> Result<Option<Expr>> {
    let (Some(above), Some(below)) =
        (compared(&BinaryOperator::GtEq, value, low)?, compared(&BinaryOperator::LtEq, value, high)?)
    else {
        return Ok(None);
    };
    let within = pair(&above, BinaryOperator::And, &below);
    Ok(Some(if negated { not(within) } else { within }))
}

fn distinct(left: &[Expr], right: &[Expr]) -> Result<Option<Expr>> {
    check_lengths(left, right)?;
    let nested = |expr: &Expr| Box::new(Expr::Nested(Box::new(expr.clone())));
    let columns = left.iter().zip(right).map(|(left, right)| Expr::IsDistinctFrom(nested(left), nested(right)));
    Ok(joined(columns.map(|column| Expr::Nested(Box::new(column))), BinaryOperator::Or))
}

fn each(row: Vec<Expr>, test: fn(Box<Expr>) -> Expr) -> Option<Expr> {
    joined(row.into_iter().map(|column| test(Box::new(Expr::Nested(Box::new(column))))), BinaryOperator::And)
}

fn check_lengths(left: &[Expr], right: &[Expr]) -> Result<()> {
    if left.len() == right.len() {
        return Ok(());
    }
    Err(SqlError::new(ErrorKind::Invalid, "unequal number of entries in row expressions").with_detail(format!(
        "The left row has {}, the right one {}.",
        left.len(),
        right.len()
    )))
}

/// `(left op right)`, the operands in parentheses where they are not yet.
fn pair(left: &Expr, op: BinaryOperator, right: &Expr) -> Expr {
    let nested = |expr: &Expr| match expr {
        Expr::Nested(_) => Box::new(expr.clone()),
        other => Box::new(Expr::Nested(Box::new(other.clone()))),
    };
    Expr::Nested(Box::new(Expr::BinaryOp { left: nested(left), op, right: nested(right) }))
}

fn joined(parts: impl Iterator<Item = Expr>, op: BinaryOperator) -> Option<Expr> {
    parts.reduce(|left, right| pair(&left, op.clone(), &right))
}

fn not(expr: Expr) -> Expr {
    Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(Expr::Nested(Box::new(expr))) }
}

fn in_rows(left: &[Expr], list: &[Expr], negated: bool) -> Result<Option<Expr>> {
    let options = list
        .iter()
        .map(|option| match row(option) {
            Some(option) => compared(&BinaryOperator::Eq, left, &option),
            None => Ok(None),
        })
        .collect::<Result<Option<Vec<Expr>>>>()?;
    let any = options.and_then(|options| joined(options.into_iter(), BinaryOperator::Or));
    Ok(if negated { any.map(not) } else { any })
}

fn in_query(left: &[Expr], query: &Query, negated: bool) -> Result<Expr> {
    if negated {
        return Err(SqlError::unsupported(
            "NOT IN over several columns",
            "Write NOT EXISTS (SELECT .. WHERE a = x AND b = y).",
        ));
    }
    let columns: Vec<String> = (0..left.len()).map(|n| format!("__c{n}")).collect();
    let conditions: Vec<String> =
        left.iter().zip(&columns).map(|(value, column)| format!("__row.{column} = ({value})")).collect();
    let text = format!("SELECT 1 FROM (SELECT 1) AS __row({}) WHERE {}", columns.join(", "), conditions.join(" AND "));
    let mut query = query.clone();
    name_items(&mut query, columns.len());
    Ok(Expr::Exists { subquery: around(&text, query)?, negated: false })
}
