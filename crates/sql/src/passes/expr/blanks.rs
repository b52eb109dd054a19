//! The spaces at the end of a `char(n)`, for what sees them.
//!
//! ```text
//! concat(c, '|')     concat(rpad(c, 5), '|')          c LIKE 'ab'     rpad(c, 5) LIKE 'ab'
//! ```
//!
//! Columns of `char(n)` are kept without the spaces that fill them up. Most functions take `text`,
//! and a cast to it drops the spaces in PostgreSQL as well. Those that write values of any type
//! show them, as do LIKE and regular expressions.

use anabranch_batch::TextLimit;
use datafusion_common::tree_node::Transformed;
use datafusion_common::{DFSchema, Result as DfResult};
use datafusion_expr::{BinaryExpr, Expr, Like, Operator, lit};

use crate::functions::choosing::MAKE_ARRAY;
use crate::functions::table::call;
use crate::resolve::documents::shown_form_of;
use crate::resolve::operands::markable;

/// Functions whose arguments are shown.
const SHOWING: [&str; 18] = [
    "concat",
    "concat_ws",
    "format",
    "octet_length",
    "to_json",
    "__json_element",
    "to_jsonb",
    "json_build_array",
    "jsonb_build_array",
    "json_build_object",
    "jsonb_build_object",
    "__json_pair",
    MAKE_ARRAY,
    "array_agg",
    "struct",
    "named_struct",
    "regexp_like",
    "row_to_json",
];

/// Fills up the arguments of an expression that shows them.
pub(super) fn fill_up(mut expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    if let Expr::AggregateFunction(call) = &mut expr
        && call.params.distinct
        && SHOWING.contains(&call.func.name())
        && let [value] = call.params.args.as_mut_slice()
        && let Some(filled) = filled(value, schema)
    {
        // (What differs is ordered by itself.)
        call.params.order_by.iter_mut().filter(|key| key.expr == *value).for_each(|key| key.expr = filled.clone());
        *value = filled;
        return Ok(Transformed::yes(expr));
    }
    let values: Vec<&mut Expr> = match &mut expr {
        Expr::ScalarFunction(call) if call.func.name() == MAKE_ARRAY && !begins_filled(&call.args, schema) => {
            return Ok(Transformed::no(expr));
        }
        Expr::ScalarFunction(call) if SHOWING.contains(&call.func.name()) => call.args.iter_mut().collect(),
        Expr::AggregateFunction(call) if SHOWING.contains(&call.func.name()) => call.params.args.iter_mut().collect(),
        Expr::Like(Like { expr, .. }) => vec![expr],
        Expr::BinaryExpr(BinaryExpr { left, op, .. }) if is_match(*op) => vec![left],
        _ => return Ok(Transformed::no(expr)),
    };
    let mut is_changed = false;
    for value in values {
        if let Some(filled) = filled(value, schema) {
            *value = filled;
            is_changed = true;
        }
    }
    Ok(if is_changed { Transformed::yes(expr) } else { Transformed::no(expr) })
}

/// Whether the first value that is no literal says that all are `char(n)`: else they are texts.
fn begins_filled(values: &[Expr], schema: &DFSchema) -> bool {
    let first = values.iter().find(|value| !matches!(value, Expr::Literal(..)));
    first.is_some_and(|first| filled(first, schema).is_some())
}

/// A value of `char(n)` with its spaces.
fn filled(value: &Expr, schema: &DFSchema) -> Option<Expr> {
    let field = markable(value, schema)?;
    let Some(TextLimit::Char(n)) = shown_form_of(&field) else { return None };
    Some(call("rpad", vec![value.clone(), lit(i64::try_from(n).ok()?)]))
}

fn is_match(op: Operator) -> bool {
    use Operator as O;
    matches!(
        op,
        O::RegexMatch
            | O::RegexIMatch
            | O::RegexNotMatch
            | O::RegexNotIMatch
            | O::LikeMatch
            | O::ILikeMatch
            | O::NotLikeMatch
            | O::NotILikeMatch
    )
}
