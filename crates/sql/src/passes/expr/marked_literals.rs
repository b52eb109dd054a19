//! Literals in quotes beside `uuid` and `char(n)`, which are text to the planner; so are
//! enumerations, which `enumerations` puts in the order of their labels.
//!
//! Their columns and casts have one form: a uuid in lower case with hyphens, `char(n)` without the
//! spaces at its end. A literal that is compared with one is read in that form, as PostgreSQL's
//! input does.

use anabranch_batch::TextLimit;
use arrow::datatypes::DataType;
use datafusion_common::tree_node::Transformed;
use datafusion_common::{DFSchema, Result as DfResult, ScalarValue, plan_err};
use datafusion_expr::expr::{Between, InList, ScalarFunction};
use datafusion_expr::{BinaryExpr, Expr, ExprSchemable};

use crate::functions::enumerations::{check, in_order};
use crate::functions::forms::{CHARACTER_IN, UUID_IN, UUID_OF};
use crate::functions::table::call;
use crate::passes::expr::quoted_literals::read_literal;
use crate::resolve::documents::{elements_limit_of, kept_form_of};
use crate::resolve::operands::markable;
use crate::resolve::type_marks::EnumMark;
use crate::resolve::type_names::{is_text, sql_name};

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
    if let Expr::ScalarFunction(call) = &mut expr
        && TAKING.contains(&call.func.name())
    {
        let is_changed = read_plain_elements(call, schema)? || read_elements(&mut call.args, schema)?;
        return Ok(Transformed::new_transformed(expr, is_changed));
    }
    let values: Vec<&mut Expr> = match &mut expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if op.supports_propagation() => vec![left, right],
        Expr::Between(Between { expr, low, high, .. }) => vec![expr, low, high],
        Expr::InList(InList { expr, list, .. }) => std::iter::once(expr.as_mut()).chain(list).collect(),
        _ => return Ok(Transformed::no(expr)),
    };
    let form = |value: &&mut Expr| match &**value {
        Expr::Column(_) | Expr::OuterReferenceColumn(..) => kept_form_of(value.to_field(schema).ok()?.1.as_ref()),
        Expr::ScalarFunction(call) if matches!(call.func.name(), UUID_IN | UUID_OF) => Some(TextLimit::Uuid),
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

/// Functions of an array and of elements.
const TAKING: [&str; 7] = [
    "array_append",
    "array_prepend",
    "array_remove",
    "array_replace",
    "array_position",
    "array_positions",
    "array_has",
];

/// Reads the literals in quotes beside an array whose elements are no texts.
fn read_plain_elements(call: &mut ScalarFunction, schema: &DFSchema) -> DfResult<bool> {
    let types = call.args.iter().map(|value| value.get_type(schema)).collect::<DfResult<Vec<_>>>()?;
    let of_list = |is: &DataType| match is {
        DataType::List(element) => Some(element.data_type().clone()).filter(|element| !is_text(element)),
        _ => None,
    };
    let Some(element) = types.iter().find_map(of_list).filter(|element| !element.is_null()) else { return Ok(false) };
    let mut is_changed = false;
    for (value, _) in call.args.iter_mut().zip(&types).filter(|(_, is)| is_text(is)) {
        let Some((read, _)) = read_literal(value, std::slice::from_ref(&element)) else {
            let types: Vec<String> = types.iter().map(sql_name).collect();
            return plan_err!("function {}({}) does not exist", call.func.name(), types.join(", "));
        };
        *value = read;
        is_changed = true;
    }
    Ok(is_changed)
}

/// Reads the literals beside an array of uuids or documents as its elements; those beside labels
/// are labels.
fn read_elements(args: &mut [Expr], schema: &DFSchema) -> DfResult<bool> {
    let of_labels = |value: &Expr| markable(value, schema).and_then(|field| EnumMark::of_elements(&field));
    if let Some(mark) = args.iter().find_map(of_labels) {
        args.iter().try_for_each(|value| check(value, &mark))?;
        return Ok(false);
    }
    let of_list = |value: &Expr| markable(value, schema).and_then(|field| elements_limit_of(&field));
    let Some(form) = args.iter().find_map(of_list) else { return Ok(false) };
    let mut is_changed = false;
    for value in args {
        let element = match (form, &*value) {
            (TextLimit::Uuid, _) => read(value, form)?,
            (TextLimit::Jsonb, Expr::Literal(literal, _)) if literal.try_as_str().flatten().is_some() => {
                Some(call("jsonb_in", vec![value.clone()]))
            }
            _ => None,
        };
        if let Some(element) = element {
            *value = element;
            is_changed = true;
        }
    }
    Ok(is_changed)
}

/// A literal in the form, if it is one of another.
pub(super) fn read(value: &Expr, form: TextLimit) -> DfResult<Option<Expr>> {
    let Expr::Literal(literal, metadata) = value else { return Ok(None) };
    let Some(text) = literal.try_as_str().flatten() else { return Ok(None) };
    let Some(fitted) = form.fit(text) else { return plan_err!("{}", form.misfit(text)) };
    let read = ScalarValue::Utf8View(Some(fitted.to_string()));
    Ok((fitted != text).then(|| Expr::Literal(read, metadata.clone())))
}
