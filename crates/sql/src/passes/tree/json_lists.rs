//! Aggregates that make documents: lists of values, which a function makes a document of.
//!
//! ```text
//!     json_agg(x ORDER BY y) FILTER (..)    __json_list(array_agg(__json_element(x) ORDER BY y) FILTER (..))
//!     json_agg(DISTINCT x)                  __json_of_list(array_agg(DISTINCT x))
//!     json_object_agg(k, v)                 __json_object(array_agg(__json_pair(k, v)))
//! ```
//!
//! Values are distinct, and in order, before they are documents: 9 comes before 10.

use datafusion_expr::sqlparser::ast::{
    DuplicateTreatment, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectName,
};

use crate::error::Result;
use crate::syntax::parse::parse_expr;
use crate::syntax::relation_calls::called;

/// Whether a function is an aggregate that is written with others.
pub(super) fn is_written_aggregate(name: &str) -> bool {
    matches!(
        name,
        "json_agg"
            | "jsonb_agg"
            | "json_object_agg"
            | "jsonb_object_agg"
            | "max_by"
            | "min_by"
            | "arg_max"
            | "arg_min"
            | "mode"
            | "first"
            | "last"
    )
}

/// Rewrites the call of such an aggregate.
///
/// # Errors
/// None that a user can cause.
pub(super) fn rewrite(expr: &mut Expr) -> Result<()> {
    let Expr::Function(function) = expr else { return Ok(()) };
    let (around, is_pair) = match function.name.to_string().to_lowercase().as_str() {
        "json_agg" => ("__json_list", false),
        "jsonb_agg" => ("__jsonb_list", false),
        "json_object_agg" => ("__json_object", true),
        "jsonb_object_agg" => ("__jsonb_object", true),
        _ => return Ok(()),
    };
    let FunctionArguments::List(list) = &function.args else { return Ok(()) };
    let is_distinct = list.duplicate_treatment == Some(DuplicateTreatment::Distinct);
    if let (true, false, [FunctionArg::Unnamed(FunctionArgExpr::Expr(value))]) =
        (is_distinct, is_pair, list.args.as_slice())
        && !is_row(value)
    {
        let mut inner = function.clone();
        inner.name = ObjectName::from(vec![Ident::new("array_agg")]);
        let of_list = around.replace("_list", "_of_list");
        *expr = parse_expr(&format!("{of_list}({inner})"))?;
        return Ok(());
    }
    let values: Vec<String> = list.args.iter().map(ToString::to_string).collect();
    let value = match (values.as_slice(), is_pair) {
        ([value], false) if around == "__json_list" => format!("__json_element({value})"),
        ([value], false) => format!("to_json({value})"),
        ([name, value], true) => format!("__json_pair({name}, {value})"),
        _ => return Ok(()),
    };
    let mut inner = function.clone();
    inner.name = ObjectName::from(vec![Ident::new("array_agg")]);
    if let FunctionArguments::List(list) = &mut inner.args {
        list.args = vec![FunctionArg::Unnamed(FunctionArgExpr::Expr(parse_expr(&value)?))];
    }
    let mut call = parse_expr(&format!("{around}(1)"))?;
    if let Expr::Function(outer) = &mut call
        && let FunctionArguments::List(list) = &mut outer.args
    {
        list.args = vec![FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Function(inner)))];
    }
    *expr = call;
    Ok(())
}

/// Whether a value is a row, which is a document of its own kind of line.
fn is_row(value: &Expr) -> bool {
    let of_call = |name: String| matches!(name.to_lowercase().as_str(), "row" | "named_struct");
    matches!(value, Expr::Tuple(_)) || called(value).is_some_and(|(name, _)| of_call(name))
}
