//! `bytea LIKE bytea`, `position(bytea IN bytea)` and their like: a literal in quotes beside bytes
//! is bytes.

use arrow::datatypes::DataType;
use datafusion_common::tree_node::Transformed;
use datafusion_common::{DFSchema, Result as DfResult, plan_err};
use datafusion_expr::expr::{Like, ScalarFunction};
use datafusion_expr::{Expr, ExprSchemable};

use crate::functions::bytea::LIKE_BYTES;
use crate::functions::conversions::ByteaIn;
use crate::functions::rows::{is_bytes, quoted_places};
use crate::functions::table::call;
use crate::resolve::type_names::{is_text, sql_name};

/// Functions that take bytes beside bytes.
const TAKE_QUOTED: [&str; 5] = ["strpos", "overlay", "btrim", "ltrim", "rtrim"];

/// The call that matches bytes, and calls of bytes with their literals read.
///
/// # Errors
/// ILIKE, which knows no bytes; texts beside bytes that are no literals.
pub(super) fn match_bytes(expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    let expr = match expr {
        Expr::ScalarFunction(call) => return read_arguments(call, schema),
        other => other,
    };
    let Expr::Like(Like { negated, expr: value, pattern, escape_char: None, case_insensitive }) = expr else {
        return Ok(Transformed::no(expr));
    };
    let types = (value.get_type(schema)?, pattern.get_type(schema)?);
    if !is_bytes(&types.0) && !is_bytes(&types.1) {
        let like = Like { negated, expr: value, pattern, escape_char: None, case_insensitive };
        return Ok(Transformed::no(Expr::Like(like)));
    }
    if case_insensitive {
        return plan_err!("operator does not exist: bytea ~~* bytea");
    }
    let read = |side: Expr, is: &DataType| match side {
        Expr::Literal(..) if is_text(is) => ByteaIn::udf().call(vec![side]),
        other => other,
    };
    let test = call(LIKE_BYTES, vec![read(*value, &types.0), read(*pattern, &types.1)]);
    Ok(Transformed::yes(if negated { Expr::Not(Box::new(test)) } else { test }))
}

fn read_arguments(mut of: ScalarFunction, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    if !TAKE_QUOTED.contains(&of.func.name()) {
        return Ok(Transformed::no(Expr::ScalarFunction(of)));
    }
    let types = of.args.iter().map(|arg| arg.get_type(schema)).collect::<DfResult<Vec<_>>>()?;
    let places = quoted_places(&of.func, &types);
    for place in &places {
        let arg = &mut of.args[*place];
        if !matches!(arg, Expr::Literal(..)) {
            let types: Vec<String> = types.iter().map(sql_name).collect();
            return plan_err!("function {}({}) does not exist", of.func.name(), types.join(", "));
        }
        *arg = ByteaIn::udf().call(vec![std::mem::take(arg)]);
    }
    let call = Expr::ScalarFunction(of);
    Ok(if places.is_empty() { Transformed::no(call) } else { Transformed::yes(call) })
}
