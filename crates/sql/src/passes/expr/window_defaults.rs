//! The default of `lag` and `lead`, in the type of the values.
//!
//! As in PostgreSQL the value and the default have one type, which a literal in quotes takes from
//! the value.

use arrow::datatypes::DataType;
use datafusion_common::tree_node::Transformed;
use datafusion_common::{DFSchema, Result as DfResult, ScalarValue, plan_err};
use datafusion_expr::{Expr, ExprSchemable, cast};

use crate::functions::conversions::ByteaIn;
use crate::functions::table::call as call_of;
use crate::passes::expr::marked_literals::read;
use crate::resolve::common_types::union_type;
use crate::resolve::documents::{DocumentForm, form_of, kept_form_of};
use crate::resolve::type_names::{is_number, is_text, sql_name};

/// Gives the value and the default of a call their common type.
///
/// # Errors
/// Two types without one in common.
pub(super) fn match_default(expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    let Expr::WindowFunction(mut call) = expr else { return Ok(Transformed::no(expr)) };
    let (true, [value, _, default]) = (matches!(call.fun.name(), "lag" | "lead"), call.params.args.as_slice()) else {
        return Ok(Transformed::no(Expr::WindowFunction(call)));
    };
    let (_, field) = value.to_field(schema)?;
    let marked = match (form_of(&field), kept_form_of(&field)) {
        (Some(DocumentForm::Jsonb), _) if matches!(default, Expr::Literal(..)) => {
            Some(call_of("jsonb_in", vec![default.clone()]))
        }
        (None, Some(form)) => read(default, form)?,
        _ => None,
    };
    if let Some(read) = marked {
        call.params.args[2] = read;
        return Ok(Transformed::yes(Expr::WindowFunction(call)));
    }
    let (is, of_default) = (value.get_type(schema)?, default.get_type(schema)?);
    if is == of_default || is.is_null() || of_default.is_null() {
        return Ok(Transformed::no(Expr::WindowFunction(call)));
    }
    let is_literal = matches!(default, Expr::Literal(ScalarValue::Utf8(_) | ScalarValue::Utf8View(_), _));
    let common = match () {
        () if is_literal || (is_text(&is) && is_text(&of_default)) => Some(is.clone()),
        // (Whole literals are bigints here, and integers in PostgreSQL.)
        () if is.is_integer() && matches!(default, Expr::Literal(ScalarValue::Int64(_), _)) => Some(is.clone()),
        () if is_number(&is) == is_number(&of_default) => union_type(&is, &of_default),
        () => None,
    };
    let Some(common) = common else {
        let (is, of_default) = (sql_name(&is), sql_name(&of_default));
        return plan_err!("function {}({is}, integer, {of_default}) does not exist", call.fun.name());
    };
    for at in [0, 2] {
        let arg = std::mem::take(&mut call.params.args[at]);
        call.params.args[at] = match &common {
            of if arg.get_type(schema)? == *of => arg,
            DataType::Binary | DataType::BinaryView if is_literal => ByteaIn::udf().call(vec![arg]),
            of => cast(arg, of.clone()),
        };
    }
    Ok(Transformed::yes(Expr::WindowFunction(call)))
}
