//! Comparisons of row values, spelt out column by column; DataFusion would compare structs, in
//! which NULL is a value.
//!
//! ```text
//!     (a, b) < (c, d)                     a < c OR (a = c AND b < d)
//!     (a, b) <> (c, d)                    a <> c OR b <> d
//!     (a, b) BETWEEN (c, d) AND (e, f)    (a, b) >= (c, d) AND (a, b) <= (e, f)
//!     (a, b) IN ((c, d), ..)              (a = c AND b = d) OR ..
//!     (a, b) < (query)                    (SELECT (a, b) < (c, d) FROM (query) q(c, d))
//!     (a, b) IN (query)                   EXISTS (SELECT 1 FROM (query) q(c, d) WHERE c = a AND ..)
//!     (a, b) NOT IN (query)               NOT EXISTS (.. WHERE (c = a AND d = b) IS NOT FALSE)
//!     (a, b) < ANY (query)                EXISTS (SELECT 1 FROM (query) q(c, d) WHERE a < c OR ..)
//!     (a, b) < ALL (query)                NOT (a, b) >= ANY (query)
//!     (a, b) OVERLAPS (c, d)              a function of the four
//!     (a, b) IS NULL, IS NOT NULL         all of them are
//!     (a, b) IS DISTINCT FROM (c, d)      any is
//! ```
//!
//! Law: the columns up to the first two that differ decide, and NULL among these makes NULL. A
//! chain of n columns nests n levels deep.

use datafusion_expr::sqlparser::ast::{
    BinaryOperator, DataType, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, JoinConstraint, JoinOperator,
    Query, Select, UnaryOperator,
};

use super::counts::opposite;
use super::names::name_items;
use super::subquery::around;
use crate::error::{ErrorKind, Result, SqlError};
use crate::functions::overlaps::OVERLAPS;
use crate::syntax::parse::parse_expr;

/// Spells out one comparison of rows.
///
/// # Errors
/// `Invalid` for rows of different lengths.
pub(super) fn spell(expr: &mut Expr) -> Result<()> {
    let spelt = match expr {
        Expr::BinaryOp { left, op, right } => match (row(left), row(right)) {
            (Some(left), Some(right)) if *op == BinaryOperator::Overlaps => overlaps(&left, &right)?,
            (Some(left), Some(right)) => compared(op, &left, &right)?,
            (Some(left), None) => of_query(&left, op, right)?,
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
            Some(left) => Some(in_query(&left, &BinaryOperator::Eq, subquery, *negated)?),
            None => None,
        },
        Expr::AnyOp { .. } | Expr::AllOp { .. } => match tested(expr) {
            Some(Tested { left, op, query, negated }) => Some(in_query(&left, &op, query, negated)?),
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

/// A row compared with some row of a query; a comparison with all is the negation of another.
pub(super) struct Tested<'a> {
    pub(super) left: Vec<Expr>,
    pub(super) op: BinaryOperator,
    pub(super) query: &'a Query,
    pub(super) negated: bool,
}

/// `(a, b) op ANY (query)` and `(a, b) op ALL (query)`.
pub(super) fn tested(expr: &Expr) -> Option<Tested<'_>> {
    let (left, op, right, negated) = match expr {
        Expr::AnyOp { left, compare_op, right, .. } => (left, compare_op.clone(), right, false),
        Expr::AllOp { left, compare_op, right } => (left, opposite(compare_op)?, right, true),
        _ => return None,
    };
    let Expr::Subquery(query) = right.as_ref() else { return None };
    row(left).map(|left| Tested { left, op, query, negated })
}

/// A row compared with the one row of a query.
fn of_query(left: &[Expr], op: &BinaryOperator, right: &Expr) -> Result<Option<Expr>> {
    let query = match right {
        Expr::Subquery(query) => query,
        Expr::Nested(inner) => return of_query(left, op, inner),
        _ => return Ok(None),
    };
    let names: Vec<String> = (0..left.len()).map(|n| format!("__c{n}")).collect();
    let columns: Vec<Expr> = names.iter().map(|name| parse_expr(&format!("__row.{name}"))).collect::<Result<_>>()?;
    let Some(test) = compared(op, left, &columns)? else { return Ok(None) };
    let mut inner = query.as_ref().clone();
    name_items(&mut inner, names.len());
    let text = format!("SELECT {test} FROM (SELECT 1) AS __row ({})", names.join(", "));
    // (Within, so that it is made one of one row in its turn.)
    Ok(Some(Expr::Nested(Box::new(Expr::Subquery(around(&text, inner)?)))))
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

/// `(a, b) op ANY (query)` as a value: NULL where the comparison is true of no row, but may be.
fn in_query(left: &[Expr], op: &BinaryOperator, query: &Query, negated: bool) -> Result<Expr> {
    let met = some_row(left, op, query, "IS TRUE")?;
    let open = some_row(left, op, query, "IS NULL")?;
    let (found, missed) = if negated { ("false", "true") } else { ("true", "false") };
    parse_expr(&format!("(CASE WHEN {met} THEN {found} WHEN {open} THEN NULL ELSE {missed} END)"))
}

/// In a condition NULL is as good as false: `(a, b) IN (query)` and its negation there, below AND
/// and OR.
///
/// # Errors
/// None that a user can cause.
pub(super) fn spell_conditions(select: &mut Select) -> Result<()> {
    let of_joins =
        select.from.iter_mut().flat_map(|from| &mut from.joins).filter_map(|join| match &mut join.join_operator {
            JoinOperator::Join(JoinConstraint::On(on)) | JoinOperator::Inner(JoinConstraint::On(on)) => Some(on),
            _ => None,
        });
    of_joins.chain(&mut select.selection).chain(&mut select.having).try_for_each(spell_condition)
}

fn spell_condition(expr: &mut Expr) -> Result<()> {
    match expr {
        Expr::Nested(inner) => spell_condition(inner),
        Expr::BinaryOp { left, op: BinaryOperator::And | BinaryOperator::Or, right } => {
            spell_condition(left)?;
            spell_condition(right)
        }
        Expr::InSubquery { expr: value, subquery, negated } => {
            let Some(left) = row(value) else { return Ok(()) };
            *expr = condition(&left, &BinaryOperator::Eq, subquery, *negated)?;
            Ok(())
        }
        Expr::AnyOp { .. } | Expr::AllOp { .. } => {
            if let Some(Tested { left, op, query, negated }) = tested(expr) {
                *expr = condition(&left, &op, query, negated)?;
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

fn condition(left: &[Expr], op: &BinaryOperator, query: &Query, negated: bool) -> Result<Expr> {
    match negated {
        true => some_row(left, op, query, "IS NOT FALSE").map(not),
        false => some_row(left, op, query, ""),
    }
}

/// The comparison of a row with the columns of a table, as text.
///
/// # Errors
/// `Invalid` for an operator that compares no rows.
pub(super) fn test_of(left: &[Expr], op: &BinaryOperator, table: &str, columns: &[String]) -> Result<String> {
    if *op == BinaryOperator::Eq {
        let equal = left.iter().zip(columns).map(|(value, column)| format!("{table}.{column} = ({value})"));
        return Ok(equal.collect::<Vec<_>>().join(" AND "));
    }
    let right: Vec<Expr> =
        columns.iter().map(|column| parse_expr(&format!("{table}.{column}"))).collect::<Result<_>>()?;
    match compared(op, left, &right)? {
        Some(test) => Ok(test.to_string()),
        None => Err(SqlError::unsupported(format!("{op} of rows"), "Compare rows by =, <>, <, <=, > and >=.")),
    }
}

/// Whether the comparison of a row with some row of a query is so.
fn some_row(left: &[Expr], op: &BinaryOperator, query: &Query, test: &str) -> Result<Expr> {
    let columns: Vec<String> = (0..left.len()).map(|n| format!("__c{n}")).collect();
    let condition = match test {
        "" => test_of(left, op, "__row", &columns)?,
        test => format!("({}) {test}", test_of(left, op, "__row", &columns)?),
    };
    let text = format!("SELECT 1 FROM (SELECT 1) AS __row({}) WHERE {condition}", columns.join(", "));
    let mut query = query.clone();
    name_items(&mut query, columns.len());
    Ok(Expr::Exists { subquery: around(&text, query)?, negated: false })
}

/// `(a, b) OVERLAPS (c, d)`: a function of the list of the ends. A length stands for the end that
/// it leads to.
fn overlaps(left: &[Expr], right: &[Expr]) -> Result<Option<Expr>> {
    let ([a, b], [c, d]) = (left, right) else { return Ok(None) };
    let end = |from: &Expr, to: &Expr| if is_interval(to) { format!("({from}) + ({to})") } else { format!("{to}") };
    parse_expr(&format!("{OVERLAPS}(ARRAY[{a}, {}, {c}, {}])", end(a, b), end(c, d))).map(Some)
}

/// Whether an expression is written as an interval.
fn is_interval(expr: &Expr) -> bool {
    match expr {
        Expr::Interval(_) => true,
        Expr::Nested(inner) => is_interval(inner),
        Expr::Cast { data_type, .. } => matches!(data_type, DataType::Interval { .. }),
        _ => false,
    }
}
