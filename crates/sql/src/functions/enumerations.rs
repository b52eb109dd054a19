//! Enumerations in comparisons, sorts and choices: by the places of their labels.

use arrow::datatypes::{DataType, Field};
use datafusion_common::tree_node::Transformed;
use datafusion_common::{DFSchema, Result as DfResult, ScalarValue, plan_err};
use datafusion_expr::expr::{AggregateFunction, Between, Sort};
use datafusion_expr::planner::RawBinaryExpr;
use datafusion_expr::sqlparser::ast::BinaryOperator;
use datafusion_expr::{Expr, lit};

use crate::functions::forms::UNMARKED;
use crate::functions::json::operators;
use crate::functions::table::{FUNCTIONS, call};
use crate::functions::user_types::{ENUM_IN, ENUM_LABEL, ENUM_ORDER, ENUM_ORDERS, ENUMS_IN};
use crate::resolve::operands::markable;
use crate::resolve::type_marks::EnumMark;
use crate::resolve::type_names::{is_text, sql_name};

/// The enumeration that a value is of.
pub(crate) fn mark_of(value: &Expr, schema: &DFSchema) -> Option<EnumMark> {
    // (Cast to text it is a text like others.)
    if matches!(value, Expr::Cast(_)) {
        return None;
    }
    let marked = markable(value, schema).and_then(|field| EnumMark::of(&field));
    marked.or_else(|| match value {
        Expr::Case(case) => {
            let mut chosen = case.when_then_expr.iter().map(|(_, then)| then.as_ref()).chain(case.else_expr.as_deref());
            chosen.find_map(|value| mark_of(value, schema))
        }
        Expr::ScalarFunction(call) if matches!(call.func.name(), "coalesce" | "nullif") => {
            call.args.iter().find_map(|value| mark_of(value, schema))
        }
        Expr::Alias(alias) => mark_of(&alias.expr, schema),
        _ => None,
    })
}

/// The place of a value among its labels.
pub(crate) fn order_of(value: Expr, mark: &EnumMark) -> Expr {
    marked(ENUM_ORDER, value, mark)
}

/// The places of the labels of an array.
pub(crate) fn orders_of(list: Expr, mark: &EnumMark) -> Expr {
    marked(ENUM_ORDERS, list, mark)
}

/// A text that is a label, marked as one.
pub(crate) fn label_of(text: Expr, mark: &EnumMark) -> Expr {
    marked(ENUM_IN, text, mark)
}

/// What the values are in order by, of an enumeration or of arrays with an order of their own.
fn key_of(value: &Expr, schema: &DFSchema) -> Option<Expr> {
    if let Some(mark) = mark_of(value, schema) {
        return Some(order_of(value.clone(), &mark));
    }
    let field = markable(value, schema)?;
    let is_list = matches!(field.data_type(), DataType::List(_));
    let key = operators::sort_key(value.clone(), Some(&field).filter(|_| is_list).map(AsRef::as_ref));
    (key != *value).then_some(key)
}

/// The label at a place.
pub(crate) fn label_at(place: Expr, mark: &EnumMark) -> Expr {
    marked(ENUM_LABEL, place, mark)
}

/// An array of texts that are labels, marked as such.
pub(crate) fn elements_of(list: Expr, mark: &EnumMark) -> Expr {
    marked(ENUMS_IN, list, mark)
}

/// A function of a value of an enumeration.
fn marked(function: &str, value: Expr, mark: &EnumMark) -> Expr {
    let text = |text: &String| lit(ScalarValue::Utf8View(Some(text.clone())));
    call(function, vec![value, text(&mark.name), text(&mark.labels)])
}

/// What a sort by the value compares.
pub(crate) fn sort_key(value: Expr, field: Option<&Field>) -> Expr {
    let of_list = || field.and_then(EnumMark::of_elements);
    match field.and_then(EnumMark::of) {
        Some(mark) => order_of(value, &mark),
        None => of_list().map_or(value.clone(), |mark| orders_of(value, &mark)),
    }
}

/// Refuses a literal that is no label.
pub(crate) fn check(value: &Expr, mark: &EnumMark) -> DfResult<()> {
    let Expr::Literal(literal, _) = value else { return Ok(()) };
    match literal.try_as_str().flatten() {
        Some(text) if mark.place(text).is_none() => plan_err!("{}", mark.misfit(text)),
        _ => Ok(()),
    }
}

/// A comparison of values of an enumeration; `None` leaves the operator to others.
///
/// # Errors
/// A literal that is no label; two enumerations.
pub(crate) fn plan(
    expr: &RawBinaryExpr,
    left: &DataType,
    right: &DataType,
    schema: &DFSchema,
) -> DfResult<Option<Expr>> {
    use BinaryOperator as Op;
    let is_compared = matches!(expr.op, Op::Eq | Op::NotEq | Op::Lt | Op::LtEq | Op::Gt | Op::GtEq);
    if !is_compared || !is_text(left) && !is_text(right) {
        return Ok(None);
    }
    let (of_left, of_right) = (mark_of(&expr.left, schema), mark_of(&expr.right, schema));
    let mark = match (&of_left, &of_right) {
        (Some(left), Some(right)) if left.name != right.name => {
            return plan_err!("operator does not exist: {} {} {}", left.name, expr.op, right.name);
        }
        (Some(mark), _) | (None, Some(mark)) => mark,
        (None, None) => return Ok(None),
    };
    check(&expr.left, mark)?;
    check(&expr.right, mark)?;
    let (left, right) = (expr.left.clone(), expr.right.clone());
    let (left_place, right_place) = (order_of(left.clone(), mark), order_of(right.clone(), mark));
    Ok(match expr.op {
        Op::Lt => Some(left_place.lt(right_place)),
        Op::LtEq => Some(left_place.lt_eq(right_place)),
        Op::Gt => Some(left_place.gt(right_place)),
        Op::GtEq => Some(left_place.gt_eq(right_place)),
        // (Equal labels are equal texts.)
        _ => None,
    })
}

/// BETWEEN, min and max of an enumeration by the order of its labels.
///
/// # Errors
/// A literal that is no label; functions that would choose by the order of texts.
pub(crate) fn in_order(expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    match expr {
        Expr::Between(Between { expr, negated, low, high }) => {
            let Some(mark) = mark_of(&expr, schema) else {
                return Ok(Transformed::no(Expr::Between(Between { expr, negated, low, high })));
            };
            check(&low, &mark)?;
            check(&high, &mark)?;
            let place = |value: Box<Expr>| Box::new(order_of(*value, &mark));
            let (expr, low, high) = (place(expr), place(low), place(high));
            Ok(Transformed::yes(Expr::Between(Between { expr, negated, low, high })))
        }
        Expr::AggregateFunction(AggregateFunction { func, mut params }) => {
            let is_max = func.name() == "max";
            let key = match params.args.as_slice() {
                [value] if is_max || func.name() == "min" => key_of(value, schema),
                _ => None,
            };
            let (Some(key), Some(first)) = (key, FUNCTIONS.aggregate.get("first_value")) else {
                return Ok(Transformed::no(Expr::AggregateFunction(AggregateFunction { func, params })));
            };
            let value = params.args[0].clone();
            params.order_by = vec![Sort::new(key, !is_max, false)];
            let is_there = value.is_not_null();
            let filter = params.filter.take().map_or(is_there.clone(), |filter| filter.and(is_there));
            params.filter = Some(Box::new(filter));
            params.distinct = false;
            Ok(Transformed::yes(Expr::AggregateFunction(AggregateFunction { func: first.clone(), params })))
        }
        Expr::InList(list) => {
            if let Some(mark) = mark_of(&list.expr, schema) {
                list.list.iter().try_for_each(|value| check(value, &mark))?;
            }
            Ok(Transformed::no(Expr::InList(list)))
        }
        Expr::ScalarFunction(mut chosen) if matches!(chosen.func.name(), "greatest" | "least") => {
            let Some(mark) = chosen.args.iter().find_map(|value| mark_of(value, schema)) else {
                return Ok(Transformed::no(Expr::ScalarFunction(chosen)));
            };
            chosen.args.iter().try_for_each(|value| check(value, &mark))?;
            chosen.args = chosen.args.into_iter().map(|value| order_of(value, &mark)).collect();
            Ok(Transformed::yes(marked(ENUM_LABEL, Expr::ScalarFunction(chosen), &mark)))
        }
        Expr::Cast(to) => match mark_of(&to.expr, schema) {
            None => Ok(Transformed::no(Expr::Cast(to))),
            Some(_) if is_text(to.field.data_type()) => Ok(Transformed::yes(call(UNMARKED, vec![*to.expr]))),
            Some(mark) => plan_err!("cannot cast type {} to {}", mark.name, sql_name(to.field.data_type())),
        },
        // (What is chosen has the mark of what it is chosen from.)
        Expr::Case(_) | Expr::ScalarFunction(_) => {
            let is_marked = markable(&expr, schema).is_some_and(|field| EnumMark::of(&field).is_some());
            match mark_of(&expr, schema).filter(|_| !is_marked) {
                Some(mark) => Ok(Transformed::yes(marked(ENUM_IN, expr, &mark))),
                None => Ok(Transformed::no(expr)),
            }
        }
        other => Ok(Transformed::no(other)),
    }
}
