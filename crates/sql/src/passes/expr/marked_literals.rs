//! Literals in quotes beside `uuid` and `char(n)`, which are text to the planner; so are
//! enumerations, which `enumerations` puts in the order of their labels.
//!
//! Their columns and casts have one form: a uuid in lower case with hyphens, `char(n)` without the
//! spaces at its end. A literal that is compared with one is read in that form, as PostgreSQL's
//! input does.

use anabranch_batch::TextLimit;
use datafusion_common::tree_node::Transformed;
use datafusion_common::{DFSchema, Result as DfResult, ScalarValue, plan_err};
use datafusion_expr::expr::{Between, InList};
use datafusion_expr::{BinaryExpr, Expr, ExprSchemable};

use crate::functions::enumerations::in_order;
use crate::functions::forms::{CHARACTER_IN, UUID_IN};
use crate::functions::table::call;
use crate::resolve::documents::kept_form_of;

/// Reads the literals of a comparison.
///
/// # Errors
/// A literal that is no uuid.
pub(super) fn read_literals(expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    let settled = in_order(expr, schema)?;
    if settled.transformed {
        return Ok(settled);
    }
    let mut expr = settled.data;
    let values: Vec<&mut Expr> = match &mut expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if op.supports_propagation() => vec![left, right],
        Expr::Between(Between { expr, low, high, .. }) => vec![expr, low, high],
        Expr::InList(InList { expr, list, .. }) => std::iter::once(expr.as_mut()).chain(list).collect(),
        _ => return Ok(Transformed::no(expr)),
    };
    let form = |value: &&mut Expr| match &**value {
        Expr::Column(_) | Expr::OuterReferenceColumn(..) => kept_form_of(value.to_field(schema).ok()?.1.as_ref()),
        Expr::ScalarFunction(call) if call.func.name() == UUID_IN => Some(TextLimit::Uuid),
        Expr::ScalarFunction(call) if call.func.name() == CHARACTER_IN => Some(TextLimit::Char(u64::MAX)),
        _ => None,
    };
    let Some(form) = values.iter().find_map(form) else { return Ok(Transformed::no(expr)) };
    let mut is_changed = false;
    for value in values {
        if matches!(form, TextLimit::Char(_)) && matches!(value, Expr::Placeholder(_)) {
            *value = call(CHARACTER_IN, vec![std::mem::take(value)]);
            is_changed = true;
        } else if let Some(read) = read(value, form)? {
            *value = read;
            is_changed = true;
        }
    }
    Ok(if is_changed { Transformed::yes(expr) } else { Transformed::no(expr) })
}

/// A literal in the form, if it is one of another.
fn read(value: &Expr, form: TextLimit) -> DfResult<Option<Expr>> {
    let Expr::Literal(literal, metadata) = value else { return Ok(None) };
    let Some(text) = literal.try_as_str().flatten() else { return Ok(None) };
    let Some(fitted) = form.fit(text) else { return plan_err!("{}", form.misfit(text)) };
    let read = ScalarValue::Utf8View(Some(fitted.to_string()));
    Ok((fitted != text).then(|| Expr::Literal(read, metadata.clone())))
}
