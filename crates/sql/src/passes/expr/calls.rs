//! Calls as PostgreSQL types them.

use arrow::datatypes::DataType;
use datafusion_common::tree_node::Transformed;
use datafusion_common::{DFSchema, Result as DfResult, ScalarValue, plan_err};
use datafusion_expr::{Expr, ExprSchemable, Like, cast, lit};

use crate::functions::rows::is_bytes;
use crate::functions::table::{FUNCTIONS, call};
use crate::resolve::type_names::sql_name;

/// Functions of text that DataFusion would also compute of bytes, as if they were written out.
const OF_TEXT: [&str; 15] = [
    "left",
    "right",
    "reverse",
    "upper",
    "lower",
    "repeat",
    "replace",
    "translate",
    "initcap",
    "split_part",
    "starts_with",
    "ends_with",
    "ascii",
    "quote_literal",
    "quote_ident",
];

/// Calls as PostgreSQL types them: no bytes for texts, four bytes for small constants, other
/// escapes of LIKE by ours.
pub(crate) fn settle_calls(expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    match expr {
        Expr::ScalarFunction(call) if OF_TEXT.contains(&call.func.name()) => {
            for arg in &call.args {
                if arg.get_type(schema).is_ok_and(|is| is_bytes(&is)) {
                    let types: Vec<String> = call
                        .args
                        .iter()
                        .map(|arg| arg.get_type(schema).map_or("unknown".into(), |is| sql_name(&is)))
                        .collect();
                    return plan_err!("function {}({}) does not exist", call.func.name(), types.join(", "));
                }
            }
            Ok(Transformed::no(Expr::ScalarFunction(call)))
        }
        Expr::ScalarFunction(mut of) if of.func.name() == "to_hex" && of.args.len() == 1 && is_small(&of.args[0]) => {
            of.args[0] = cast(std::mem::take(&mut of.args[0]), DataType::Int32);
            Ok(Transformed::yes(Expr::ScalarFunction(of)))
        }
        // (What DataFusion plans for `= ANY(array)`.)
        Expr::ScalarFunction(mut of) if of.func.name() == "array_has" => {
            of.func = FUNCTIONS.scalar["array_has"].clone();
            Ok(Transformed::yes(Expr::ScalarFunction(of)))
        }
        Expr::Like(Like { negated, expr, pattern, escape_char: Some(escape), case_insensitive }) if escape != '\\' => {
            let pattern = Box::new(call("like_escape", vec![*pattern, lit(escape.to_string())]));
            let like = Like { negated, expr, pattern, escape_char: None, case_insensitive };
            Ok(Transformed::yes(Expr::Like(like)))
        }
        other => Ok(Transformed::no(other)),
    }
}

/// A whole number in the text of a query that PostgreSQL takes for an `integer`.
fn is_small(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(ScalarValue::Int64(Some(n)), _) => i32::try_from(*n).is_ok(),
        Expr::Negative(inner) => is_small(inner),
        _ => false,
    }
}
