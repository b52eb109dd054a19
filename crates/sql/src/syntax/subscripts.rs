//! Subscripts of columns that UPDATE assigns to: `SET xs[2] = v, j['a']['b'] = w`.
//!
//! ```text
//! SET xs[2] = v, xs[3] = w      SET xs = __assigned(__assigned(t.xs, v, '[2]'), w, '[3]')
//! ```
//!
//! The parser reads names before `=` only, so subscripts travel within the name until the
//! assignments are gathered. Which function a call of [`ASSIGNED`] becomes is known with the type
//! of its column.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field};
use datafusion_expr::sqlparser::ast::{AccessExpr, Expr, Ident, Subscript, Value};

use crate::error::{ErrorKind, Result, SqlError};
use crate::resolve::documents::{DocumentForm, form_of};
use crate::resolve::type_names::sql_name;
use crate::syntax::parse::parse_expr;
use crate::syntax::relation_calls::{call, called};

/// The call that stands for an assignment to a part of a column.
const ASSIGNED: &str = "__assigned";

/// The whole value of a column a part of which is assigned; `before` is its value so far.
pub(crate) fn assigned(before: Expr, value: Expr, subscripts: &str) -> Expr {
    call(ASSIGNED, vec![before, value, Expr::value(Value::SingleQuotedString(subscripts.to_owned()))])
}

/// Whether a value is that of a column a part of which is assigned.
pub(crate) fn is_partial(value: &Expr) -> bool {
    called(value).is_some_and(|(name, _)| name == ASSIGNED)
}

/// A column of the row that is changed.
pub(crate) fn own_column(table: &str, column: &str) -> Expr {
    Expr::CompoundIdentifier(vec![Ident::with_quote('"', table), Ident::with_quote('"', column)])
}

/// Writes an assignment to a part of that column as the call of a function.
///
/// # Errors
/// `Type` for a column without parts, `Unsupported` for parts of parts of arrays.
pub(crate) fn settle(expr: &mut Expr, field: &Field) -> Result<()> {
    let Some((name, args)) = called(expr) else { return Ok(()) };
    let (ASSIGNED, [before, value, Expr::Value(subscripts)]) = (name.as_str(), args.as_slice()) else { return Ok(()) };
    let Value::SingleQuotedString(subscripts) = &subscripts.value else { return Ok(()) };
    let (mut before, value) = ((*before).clone(), (*value).clone());
    settle(&mut before, field)?;
    let Expr::CompoundFieldAccess { access_chain, .. } = parse_expr(&format!("x {subscripts}"))? else {
        return Err(SqlError::internal("a part of a column has subscripts"));
    };
    *expr = parse_expr(&match field.data_type() {
        DataType::List(element) => of_array(&before, &value, &access_chain, element)?,
        _ if form_of(field) == Some(DocumentForm::Jsonb) => of_document(&before, &value, &access_chain)?,
        other => {
            let message = format!("cannot subscript type {} because it does not support subscripting", sql_name(other));
            return Err(SqlError::new(ErrorKind::Type, message));
        }
    })?;
    Ok(())
}

fn of_array(before: &Expr, value: &Expr, chain: &[AccessExpr], element: &Field) -> Result<String> {
    let bound = |bound: &Option<Expr>| bound.as_ref().map_or("CAST(NULL AS int)".to_owned(), ToString::to_string);
    match chain {
        [AccessExpr::Subscript(Subscript::Index { index })] => {
            let value = typed(value, element.data_type());
            Ok(format!("__array_assigned({before}, {value}, CAST({index} AS int))"))
        }
        [AccessExpr::Subscript(Subscript::Slice { lower_bound, upper_bound, stride: None })] => {
            let value = typed(value, &DataType::List(Arc::new(element.clone())));
            Ok(format!("__array_assigned_part({before}, {value}, {}, {})", bound(lower_bound), bound(upper_bound)))
        }
        _ => Err(SqlError::unsupported(
            "assigning to a part of an array of several dimensions",
            "Assign the whole array.",
        )),
    }
}

/// A value as text; a literal in quotes is one of that type.
fn typed(value: &Expr, wanted: &DataType) -> String {
    match value {
        Expr::Value(literal) if matches!(literal.value, Value::SingleQuotedString(_)) => {
            format!("CAST({value} AS {})", sql_name(wanted))
        }
        _ => format!("({value})"),
    }
}

fn of_document(before: &Expr, value: &Expr, chain: &[AccessExpr]) -> Result<String> {
    let (mut names, mut kinds) = (Vec::new(), String::new());
    for step in chain {
        let AccessExpr::Subscript(Subscript::Index { index }) = step else {
            return Err(SqlError::new(ErrorKind::Type, "jsonb subscript does not support slices"));
        };
        let is_number = match index {
            Expr::UnaryOp { expr, .. } => is_number(expr),
            index => is_number(index),
        };
        kinds.push(if is_number { 'i' } else { 't' });
        names.push(format!("CAST({index} AS text)"));
    }
    Ok(format!("__jsonb_assigned({before}, ARRAY[{}], '{kinds}', CAST({value} AS jsonb))", names.join(", ")))
}

fn is_number(expr: &Expr) -> bool {
    matches!(expr, Expr::Value(value) if matches!(value.value, Value::Number(..)))
}
