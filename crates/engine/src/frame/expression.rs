//! Expressions of a frame: DataFusion's, resolved against a schema, with casts where types need
//! them.

use arrow::datatypes::DataType;
use datafusion_common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion_common::{Column, DFSchema};
use datafusion_expr::{Expr, ExprSchemable};

use crate::error::Error;
use crate::nearest::nearest;

/// Name of the column that [`start`] means.
pub(super) const START: &str = "@start";
/// Name of the column that [`end`] means.
pub(super) const END: &str = "@end";

/// Name of the column that [`window_start`](super::window_start) means.
pub(super) const WINDOW_START: &str = "@window_start";
/// Name of the column that [`window_end`](super::window_end) means.
pub(super) const WINDOW_END: &str = "@window_end";

/// The column of this name, in just this spelling.
pub fn col(name: &str) -> Expr {
    Expr::Column(Column::from_name(name))
}

/// The start of the row's lifetime, in ticks.
pub fn start() -> Expr {
    col(START)
}

/// The end of the row's lifetime, in ticks; NULL when it was not known as the row began.
pub fn end() -> Expr {
    col(END)
}

/// `dividend / divisor` rounded down, where `/` of whole numbers rounds towards zero:
/// `floor_div(start(), lit(10)) * lit(10)` is the last multiple of 10 at or before the start.
pub fn floor_div(dividend: Expr, divisor: Expr) -> Expr {
    let past = (dividend.clone() % divisor.clone() + divisor.clone()) % divisor.clone();
    (dividend - past) / divisor
}

/// An expression that fits a schema.
#[derive(Clone, Debug)]
pub(super) struct Resolved {
    /// Without alias, with casts.
    pub expr: Expr,
    /// Its alias, or what it says.
    pub name: String,
    /// Of its values.
    pub data_type: DataType,
}

/// Resolves an expression.
///
/// # Errors
/// `Invalid` for unknown columns, with the nearest name, and for types that do not fit.
pub(super) fn resolve(expr: &Expr, schema: &DFSchema) -> Result<Resolved, Error> {
    check_columns(expr, schema)?;
    let name = name_of(expr);
    let expr = anabranch_sql::coerce::coerce(unaliased(expr.clone()), schema)?;
    let data_type = expr
        .get_type(schema)
        .map_err(|error| Error::invalid(format!("cannot type {name}: {}", error.strip_backtrace())))?;
    Ok(Resolved { expr, name, data_type })
}

/// The position of a column.
pub(super) fn position(schema: &DFSchema, name: &str) -> Result<usize, Error> {
    schema.fields().iter().position(|field| field.name() == name).ok_or_else(|| unknown(schema, name))
}

/// Whether the bounds of the lifetime are read.
pub(super) fn reads_bounds<'a>(exprs: impl IntoIterator<Item = &'a Expr>) -> bool {
    exprs.into_iter().any(|expr| reads(expr, START) || reads(expr, END))
}

/// Whether the bounds of windows are read.
pub(super) fn reads_window_bounds<'a>(exprs: impl IntoIterator<Item = &'a Expr>) -> bool {
    exprs.into_iter().any(|expr| reads(expr, WINDOW_START) || reads(expr, WINDOW_END))
}

/// Whether an expression has anything of the lifetimes of rows, or of windows, besides their
/// columns.
pub fn reads_lifetime(expr: &Expr) -> bool {
    reads_bounds([expr]) || reads_window_bounds([expr])
}

/// Whether a column is read.
pub(super) fn reads(expr: &Expr, column: &str) -> bool {
    expr.column_refs().iter().any(|read| read.name == column)
}

fn check_columns(expr: &Expr, schema: &DFSchema) -> Result<(), Error> {
    let mut missing = None;
    let walked = expr.apply(|part| {
        if let Expr::Column(column) = part
            && position(schema, &column.name).is_err()
        {
            missing = Some(column.name.clone());
            return Ok(TreeNodeRecursion::Stop);
        }
        Ok(TreeNodeRecursion::Continue)
    });
    walked.map_err(|error| Error::internal(error.strip_backtrace()))?;
    missing.map_or(Ok(()), |name| Err(unknown(schema, &name)))
}

fn unknown(schema: &DFSchema, name: &str) -> Error {
    let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    let error = Error::invalid(format!("there is no column \"{name}\""));
    let error = match nearest(name, names.iter().copied()) {
        Some(near) => error.with_hint(format!("Did you mean \"{near}\"?")),
        None => error,
    };
    error.with_detail(format!("The columns are {}.", names.join(", ")))
}

pub(super) fn name_of(expr: &Expr) -> String {
    match expr {
        Expr::Alias(alias) => alias.name.clone(),
        // (Names of one's own must not begin with @.)
        Expr::Column(column) if [WINDOW_START, WINDOW_END].contains(&column.name.as_str()) => {
            column.name.trim_start_matches('@').to_owned()
        }
        Expr::Column(column) => column.name.clone(),
        other => anabranch_plan::explain::expression(other),
    }
}

fn unaliased(expr: Expr) -> Expr {
    match expr {
        Expr::Alias(alias) => unaliased(*alias.expr),
        other => other,
    }
}
