//! Casts of text, to text, and of floats, with the values of PostgreSQL.

use anabranch_batch::numeric::TYPE;
use arrow::datatypes::DataType;
use datafusion_common::tree_node::Transformed;
use datafusion_common::{DFSchema, Result as DfResult, ScalarValue, exec_err, plan_err};
use datafusion_expr::{Cast, Expr, ExprSchemable};

use crate::functions::conversions::Conversion;
use crate::functions::input::convert;
use crate::resolve::type_names::{is_number, is_text, sql_name};
use crate::time::columns;

/// A cast of text. A literal is read at once.
///
/// # Errors
/// A literal that is no value of the type.
pub(super) fn read_cast(expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    let Expr::Cast(cast) = &expr else {
        return Ok(Transformed::no(expr));
    };
    let to = cast.field.data_type();
    if !is_read(to) || !cast.expr.get_type(schema).is_ok_and(|is| is_text(&is)) {
        return Ok(Transformed::no(expr));
    }
    let Expr::Literal(value, _) = cast.expr.as_ref() else {
        let Expr::Cast(Cast { expr: text, field }) = expr else { return Ok(Transformed::no(expr)) };
        return Ok(Transformed::yes(read_text(*text, field.data_type())));
    };
    let is_ours = matches!(to, DataType::List(_) | DataType::Decimal128(..) | DataType::Boolean)
        || *to == TYPE
        || to.is_floating()
        || columns::is_read(to);
    if value.is_null() || (!is_ours && value.cast_to(to).is_ok()) {
        return Ok(Transformed::no(expr));
    }
    match convert(&value.to_array()?, to) {
        Ok(read) => Ok(Transformed::yes(Expr::Literal(ScalarValue::try_from_array(&read, 0)?, None))),
        Err(problem) => plan_err!("{problem}"),
    }
}

/// Whether text is read as this type here.
fn is_read(to: &DataType) -> bool {
    is_number(to)
        || matches!(
            to,
            DataType::Boolean
                | DataType::Date32
                | DataType::Time64(_)
                | DataType::Timestamp(..)
                | DataType::Interval(_)
                | DataType::List(_)
        )
}

/// `text_to_integer(text)` and so on: what `CAST(text AS integer)` means.
fn read_text(text: Expr, to: &DataType) -> Expr {
    let name = format!("text_to_{}", sql_name(to).replace(' ', "_"));
    Conversion::call(name, text, to, |texts, to| convert(texts, to).or_else(|problem| exec_err!("{problem}")))
}
