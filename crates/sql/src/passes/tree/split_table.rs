//! The table function `SPLIT`: the rows of a relation, each with the number of its *branch*.
//!
//! ```text
//!     SPLIT(TABLE t, route, width [, broadcast])
//!     SPLIT(t, route, width [, broadcast])
//!     SPLIT(DATA => t, ROUTE => k % 8, WIDTH => 8, BROADCAST => k IS NULL)
//! ```
//!
//! Branches are numbered `0 .. width`. A row for which the condition `broadcast` is true comes once
//! in each branch, and its route is not evaluated. Others come in the branch that `route` says, and
//! in none if that is NULL. A route outside of the branches is an error of its row. The branch is a
//! further column, `branch`.
//!
//! Law: the rows of all branches are those of the relation, less those without a route, where
//! nothing is broadcast. Both arguments are expressions over the row, so what takes a row back
//! takes it from its branches. Source: splitstream of SCSQ (Zeitler's thesis, Uppsala 2011).
//!
//! Cost: one expression a row; with a broadcast, a row out for each branch of it. No state.

use datafusion_expr::sqlparser::ast::{Expr, FunctionArg, TableFactor, UnaryOperator, Value};

use super::columns::query_columns;
use super::hooks::Names;
use super::window_table::{in_order, table};
use crate::error::{ErrorKind, Result, SqlError};
use crate::functions::branches::{BRANCH_OF, BRANCHES_OF};
use crate::syntax::names::object_name;
use crate::syntax::template::template;
use crate::syntax::volatile_calls::volatile_call;

/// The function.
pub(super) const NAME: &str = "SPLIT";

/// The column that it adds.
const BRANCH: &str = "branch";

const USAGE: &str = "Write SPLIT(table, route, width [, broadcast]).";

/// Most branches of a split that broadcasts: a row comes once in each.
const BROADCAST_WIDTH_MAX: i64 = 10_000;

/// Most branches of any split, as of frames.
const WIDTH_MAX: i64 = u32::MAX as i64;

/// Replaces a call by its query.
///
/// # Errors
/// `Invalid` for arguments that do not fit.
pub(super) fn rewrite(factor: &mut TableFactor, names: &Names) -> Result<()> {
    let TableFactor::Table { name, alias, args: Some(args), .. } = factor else { return Ok(()) };
    if object_name(name)? != "split" {
        return Ok(());
    }
    let subquery = template(&query(&args.args, names)?)?;
    *factor = TableFactor::Derived { lateral: false, subquery, alias: alias.take(), sample: None };
    Ok(())
}

fn query(args: &[FunctionArg], names: &Names) -> Result<String> {
    let invalid = |message: String| SqlError::new(ErrorKind::Invalid, message).with_hint(USAGE);
    let given = in_order(NAME, USAGE, &["data", "route", "width", "broadcast"], args)?;
    let [Some(data), Some(route), Some(width), broadcast] = given.as_slice() else {
        return Err(invalid(format!("{NAME} lacks an argument")));
    };
    let data = table(NAME, data)?;
    let width = whole(width).ok_or_else(|| invalid(format!("{NAME} wants a constant width, not {width}")))?;
    if !(1..=WIDTH_MAX).contains(&width) {
        return Err(invalid(format!("the width of {NAME} is from 1 to {WIDTH_MAX}, not {width}")));
    }
    if broadcast.is_some() && width > BROADCAST_WIDTH_MAX {
        return Err(invalid(format!("a row that {NAME} broadcasts would come in {width} branches"))
            .with_detail(format!("A split with a broadcast has {BROADCAST_WIDTH_MAX} branches at most.")));
    }
    check_columns(&data, names)?;
    if let Some(name) = volatile_call(route).or_else(|| broadcast.as_ref().and_then(volatile_call)) {
        let hint = "The end of a row follows its start: compute the value in a column, by INSERT.";
        return Err(SqlError::unsupported(format!("function {name}() in {NAME}"), hint));
    }
    Ok(match broadcast {
        None => format!(
            "SELECT * FROM (SELECT *, {BRANCH_OF}({width}, {route}) AS {BRANCH} FROM {data}) AS __split \
             WHERE {BRANCH} IS NOT NULL"
        ),
        // (The route of a row that is broadcast is not evaluated.)
        Some(broadcast) => format!(
            "SELECT *, unnest({BRANCHES_OF}({width}, {broadcast}, \
             CASE WHEN {broadcast} THEN NULL ELSE {route} END)) AS {BRANCH} FROM {data}"
        ),
    })
}

/// The rows have no column of the name that is added.
fn check_columns(data: &str, names: &Names) -> Result<()> {
    let Some(catalog) = names.catalog else { return Ok(()) };
    let columns = query_columns(&*template(&format!("SELECT * FROM {data}"))?, names.reachable(), catalog);
    match columns.is_some_and(|columns| columns.iter().any(|column| column == BRANCH)) {
        false => Ok(()),
        true => Err(SqlError::new(ErrorKind::Duplicate, format!("{NAME} of rows with a column \"{BRANCH}\""))
            .with_detail("The number of a row's branch is a column of this name.")
            .with_hint(format!("Give the other one another name: SPLIT((SELECT {BRANCH} AS .., .. FROM ..), ..)."))),
    }
}

/// A whole number that is written out.
fn whole(expr: &Expr) -> Option<i64> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::Number(digits, _) => digits.to_string().parse().ok(),
            _ => None,
        },
        Expr::Nested(inner) => whole(inner),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => whole(expr).map(|number: i64| -number),
        _ => None,
    }
}
