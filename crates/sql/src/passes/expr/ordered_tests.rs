//! IN, BETWEEN, CASE and `nullif` of documents, arrays and intervals.
//!
//! ```text
//! j IN ('1.0', '2')            __jsonb_order(j) IN (__jsonb_order(jsonb_in('1.0')), ..)
//! a BETWEEN '{}' AND '{1,2}'   array_compare(a, '{}') >= 0 AND array_compare(a, '{1,2}') <= 0
//! ```

use anabranch_batch::TextLimit;
use arrow::datatypes::DataType;
use datafusion_common::tree_node::Transformed;
use datafusion_common::{DFSchema, Result as DfResult, ScalarValue};
use datafusion_expr::expr::{AggregateFunction, Between, Case, InList, ScalarFunction};
use datafusion_expr::{BinaryExpr, Expr, ExprSchemable, cast, lit};

use crate::error::SqlError;
use crate::functions::enumerations::orders_of;
use crate::functions::forms::UUID_OF;
use crate::functions::interval_lists::{INTERVAL_KEY, is_list_of_intervals};
use crate::functions::intervals::{INTERVAL, is_comparison, is_interval, length_of};
use crate::functions::json::operators::{ORDERS, sort_key};
use crate::functions::table::call;
use crate::passes::expr::marked_literals::read;
use crate::resolve::documents::{DocumentForm, form_in_list, form_of, kept_form_of};
use crate::resolve::operands::markable;
use crate::resolve::type_marks::EnumMark;
use crate::resolve::type_names::is_text;

/// Compares what orders the values.
pub(super) fn settle(expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    match expr {
        Expr::InList(InList { expr, list, negated })
            if std::iter::once(expr.as_ref()).chain(&list).any(|value| is_jsonb(value, schema)) =>
        {
            let list = list.into_iter().map(|item| key(item, schema)).collect();
            Ok(Transformed::yes(Expr::InList(InList { expr: Box::new(key(*expr, schema)), list, negated })))
        }
        Expr::InList(InList { expr, list, negated })
            if std::iter::once(expr.as_ref()).chain(&list).any(|value| is_list_with_keys(value, schema)) =>
        {
            let keys = |value: Expr| keys_of_list(value, schema);
            let list = list.into_iter().map(keys).collect();
            Ok(Transformed::yes(Expr::InList(InList { expr: Box::new(keys(*expr)), list, negated })))
        }
        Expr::Between(Between { expr, negated, low, high }) if is_jsonb(&expr, schema) => {
            let [expr, low, high] = [expr, low, high].map(|value| Box::new(key(*value, schema)));
            Ok(Transformed::yes(Expr::Between(Between { expr, negated, low, high })))
        }
        Expr::Between(Between { expr, negated, low, high }) => {
            between_lists(Between { expr, negated, low, high }, schema)
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_comparison(op) => {
            let is_keyed = [&left, &right].into_iter().any(|side| is_list_with_keys(side, schema));
            if !is_keyed {
                return Ok(Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })));
            }
            let [left, right] = [left, right].map(|side| Box::new(keys_of_list(*side, schema)));
            Ok(Transformed::yes(Expr::BinaryExpr(BinaryExpr { left, op, right })))
        }
        Expr::Case(case) => Ok(compare_operand(case, schema)),
        Expr::ScalarFunction(mut call) if call.func.name() == "nullif" && call.args.len() == 2 => {
            let is_compared = |value: &Expr| {
                is_interval(value, schema) || is_jsonb(value, schema) || is_list_with_keys(value, schema)
            };
            if !call.args.iter().any(is_compared) {
                return Ok(Transformed::no(Expr::ScalarFunction(call)));
            }
            // (`nullif(x, y)` is `CASE x WHEN y THEN NULL ELSE x END`.)
            let (other, value) = (call.args.pop().unwrap_or_default(), call.args.pop().unwrap_or_default());
            let branches = vec![(Box::new(other), Box::new(lit(ScalarValue::Null)))];
            let case = Case::new(Some(Box::new(value.clone())), branches, Some(Box::new(value)));
            Ok(compare_operand(case, schema))
        }
        Expr::ScalarFunction(call) if COMPARING.contains(&call.func.name()) => compare_elements(call, schema),
        Expr::AggregateFunction(AggregateFunction { func, params })
            if func.name() == "percentile_disc" && params.args.first().is_some_and(|value| is_jsonb(value, schema)) =>
        {
            let hint = "Order by a number or a text of the document, as in (j ->> 'a')::numeric.";
            Err(SqlError::unsupported("percentile_disc() of jsonb", hint).into())
        }
        other => Ok(Transformed::no(other)),
    }
}

/// BETWEEN of arrays, as two comparisons.
fn between_lists(between: Between, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    let is = between.expr.get_type(schema)?;
    if !matches!(is, DataType::List(_)) {
        return Ok(Transformed::no(Expr::Between(between)));
    }
    let Between { expr, negated, low, high } = between;
    let [low, high] = [low, high].map(|bound| match bound.get_type(schema) {
        Ok(of) if is_text(&of) => cast(*bound, is.clone()),
        _ => *bound,
    });
    let (_, field) = expr.to_field(schema)?;
    let [expr, low, high] = [*expr, low, high].map(|value| sort_key(value, Some(&field)));
    let above = call("array_compare", vec![expr.clone(), low]).gt_eq(lit(0i32));
    let below = call("array_compare", vec![expr, high]).lt_eq(lit(0i32));
    let both = above.and(below);
    Ok(Transformed::yes(if negated { Expr::Not(Box::new(both)) } else { both }))
}

/// A function of arrays that compares documents, intervals or labels, as these compare.
fn compare_elements(mut call: ScalarFunction, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    if let Some(mark) = labels(&call.args, schema).filter(|_| call.func.name() == "array_compare") {
        call.args = call.args.into_iter().map(|list| orders_of(list, &mark)).collect();
        return Ok(Transformed::yes(Expr::ScalarFunction(call)));
    }
    let is_compared = |value: &Expr| is_jsonb(value, schema) || is_list_of_jsonb(value, schema);
    if !call.args.iter().any(is_compared) {
        let is_changed = call.args.iter().any(|value| is_list_with_keys(value, schema));
        if is_changed {
            let by_key = |value: Expr| match is_interval(&value, schema) {
                true => self::call(INTERVAL_KEY, vec![value]),
                false => keys_of_list(value, schema),
            };
            call.args = call.args.into_iter().map(by_key).collect();
        }
        return Ok(Transformed::new_transformed(Expr::ScalarFunction(call), is_changed));
    }
    for value in &mut call.args {
        *value = match value.get_type(schema)? {
            DataType::List(_) => self::call(ORDERS, vec![std::mem::take(value)]),
            is if is_text(&is) => key(std::mem::take(value), schema),
            _ => continue,
        };
    }
    Ok(Transformed::yes(Expr::ScalarFunction(call)))
}

/// `CASE x WHEN y` compares as `x = y` does.
fn compare_operand(mut case: Case, schema: &DFSchema) -> Transformed<Expr> {
    let Some(operand) = case.expr.take() else { return Transformed::no(Expr::Case(case)) };
    let (is_interval, is_list) = (is_interval(&operand, schema), is_list_with_keys(&operand, schema));
    if !is_interval && !is_list && !is_jsonb(&operand, schema) {
        case.expr = Some(operand);
        return Transformed::no(Expr::Case(case));
    }
    let compared = |value: Expr| match is_interval {
        true if value.get_type(schema).is_ok_and(|is| is_text(&is)) => length_of(cast(value, INTERVAL)),
        true => length_of(value),
        false if is_list => keys_of_list(value, schema),
        false => key(value, schema),
    };
    case.expr = Some(Box::new(compared(*operand)));
    let branches = case.when_then_expr.into_iter();
    case.when_then_expr = branches.map(|(when, then)| (Box::new(compared(*when)), then)).collect();
    Transformed::yes(Expr::Case(case))
}

/// `coalesce`, CASE and the like of documents are documents, and so are the literals among their
/// values. The greatest is so by the order of documents.
pub(super) fn mark_chosen(expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    let mut expr = expr;
    let name = match &expr {
        Expr::ScalarFunction(call) => call.func.name().to_string(),
        _ => String::new(),
    };
    let is_list = name == "make_array";
    let values: Vec<&mut Expr> = match &mut expr {
        Expr::ScalarFunction(call) if CHOOSING.contains(&call.func.name()) => call.args.iter_mut().collect(),
        Expr::Case(case) => {
            let branches = case.when_then_expr.iter_mut().map(|(_, then)| then.as_mut());
            branches.chain(case.else_expr.as_deref_mut()).collect()
        }
        _ => return Ok(Transformed::no(expr)),
    };
    let form = |value: &Expr| markable(value, schema).and_then(|field| form_of(&field));
    let Some(found) = values.iter().find_map(|value| form(value)) else {
        let is_uuid = read_uuids(values, schema)?;
        return Ok(match is_uuid {
            true if !is_list => Transformed::yes(call(UUID_OF, vec![expr])),
            is_read => Transformed::new_transformed(expr, is_read),
        });
    };
    let (read, document) = match found {
        DocumentForm::Json => ("json_in", "__json_document"),
        DocumentForm::Jsonb => ("jsonb_in", "__jsonb_document"),
    };
    let mut is_read = false;
    for value in values {
        if matches!(value, Expr::Literal(ScalarValue::Utf8(Some(_)) | ScalarValue::Utf8View(Some(_)), _)) {
            *value = call(read, vec![std::mem::take(value)]);
            is_read = true;
        }
    }
    match (found, expr) {
        (_, expr) if is_list => Ok(Transformed::new_transformed(expr, is_read)),
        (DocumentForm::Jsonb, Expr::ScalarFunction(chosen)) if name != "coalesce" => {
            let of_documents = if name == "greatest" { "__jsonb_greatest" } else { "__jsonb_least" };
            Ok(Transformed::yes(call(of_documents, chosen.args)))
        }
        (_, expr) => Ok(Transformed::yes(call(document, vec![expr]))),
    }
}

/// Reads the literals beside a uuid, if there is one.
fn read_uuids(values: Vec<&mut Expr>, schema: &DFSchema) -> DfResult<bool> {
    let is_uuid = |value: &&mut Expr| {
        let form = markable(value, schema).and_then(|field| kept_form_of(&field));
        form == Some(TextLimit::Uuid)
    };
    if !values.iter().any(is_uuid) {
        return Ok(false);
    }
    for value in values {
        if let Some(read) = read(value, TextLimit::Uuid)? {
            *value = read;
        }
    }
    Ok(true)
}

/// Functions that choose one of their arguments, or list them.
const CHOOSING: [&str; 4] = ["coalesce", "greatest", "least", "make_array"];

/// Functions that compare elements of arrays, and give none.
const COMPARING: [&str; 6] =
    ["array_has", "array_has_all", "array_has_any", "array_position", "array_positions", "array_compare"];

/// The enumeration that arrays are of.
fn labels(lists: &[Expr], schema: &DFSchema) -> Option<EnumMark> {
    lists.iter().find_map(|list| {
        let field = markable(list, schema)?;
        matches!(field.data_type(), DataType::List(_)).then(|| EnumMark::of_elements(&field)).flatten()
    })
}

fn is_list_of_jsonb(value: &Expr, schema: &DFSchema) -> bool {
    markable(value, schema).is_some_and(|field| form_in_list(&field) == Some(DocumentForm::Jsonb))
}

/// Whether a value is an array of intervals or of `jsonb`, whose elements have several spellings.
fn is_list_with_keys(value: &Expr, schema: &DFSchema) -> bool {
    let is_of_intervals = value.get_type(schema).is_ok_and(|is| is_list_of_intervals(&is));
    is_of_intervals || is_list_of_jsonb(value, schema)
}

/// What arrays of intervals and of `jsonb` are compared by. (Texts beside the one are documents.)
fn keys_of_list(value: Expr, schema: &DFSchema) -> Expr {
    match value.get_type(schema) {
        Ok(is) if is_list_of_intervals(&is) => call(INTERVAL_KEY, vec![value]),
        Ok(DataType::List(of)) if is_text(of.data_type()) => call(ORDERS, vec![value]),
        _ => value,
    }
}

fn is_jsonb(value: &Expr, schema: &DFSchema) -> bool {
    markable(value, schema).is_some_and(|field| form_of(&field) == Some(DocumentForm::Jsonb))
}

/// What orders a document; a literal beside one is one.
fn key(value: Expr, schema: &DFSchema) -> Expr {
    let document = if is_jsonb(&value, schema) { value } else { call("jsonb_in", vec![value]) };
    match document.to_field(schema) {
        Ok((_, field)) => sort_key(document, Some(&field)),
        Err(_) => document,
    }
}
