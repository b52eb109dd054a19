//! `bytea LIKE bytea`: a literal in quotes beside bytes is bytes.

use arrow::datatypes::DataType;
use datafusion_common::tree_node::Transformed;
use datafusion_common::{DFSchema, Result as DfResult, plan_err};
use datafusion_expr::expr::Like;
use datafusion_expr::{Expr, ExprSchemable};

use crate::functions::bytea::LIKE_BYTES;
use crate::functions::conversions::ByteaIn;
use crate::functions::rows::is_bytes;
use crate::functions::table::call;
use crate::resolve::type_names::is_text;

/// The call that matches bytes.
///
/// # Errors
/// ILIKE, which knows no bytes.
pub(super) fn match_bytes(expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
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
