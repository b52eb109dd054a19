//! Values that must be of one type, as in PostgreSQL: what is compared, computed with, or chosen
//! from.
//!
//! - A literal has the type of what it stands beside (`quoted_literals`).
//! - A date among timestamps is one; DataFusion would make nanoseconds of all, in which there is
//!   room from 1677 to 2262 only.
//! - An exact number beside a float is a float: `double precision` where they are compared or
//!   computed with, the wider of the floats where one of them is chosen. DataFusion would make
//!   decimals of 15 places of both, in which 1e-20 is 0 and for which 1e30 is too large.
//! - Arrays of numerics beside arrays of plain ones are of plain ones.
//! - Numbers in the branches of a CASE have one type before anything is computed of it; DataFusion
//!   would take the first one's for it.

use std::sync::Arc;

use anabranch_batch::numeric::TYPE;
use arrow::datatypes::DataType;
use datafusion_common::tree_node::Transformed;
use datafusion_common::{DFSchema, Result as DfResult, ScalarValue};
use datafusion_expr::expr::{InList, InSubquery, SetComparison};
use datafusion_expr::type_coercion::other::get_coerce_type_for_case_expression;
use datafusion_expr::{BinaryExpr, Expr, ExprSchemable, Operator, cast, when};

use crate::passes::expr::dates::compare_dates;
use crate::passes::expr::quoted_literals::read_literals;
use crate::passes::plan::conform::conform;
use crate::resolve::common_types::{are_numbers, float_among, plain_of_lists, timestamp_among_dates, union_type};
use crate::resolve::type_names::is_number;
use crate::stack::balanced;

/// What is done with the values.
#[derive(Clone, Copy, PartialEq)]
enum Use {
    Compared,
    /// Compared with each value of a list.
    Listed,
    Computed,
    Chosen,
}

/// Casts values of an expression where DataFusion would find another type for them.
pub(crate) fn settle_types(mut expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    if let Some(settled) = settle_subquery(&expr, schema)? {
        return Ok(Transformed::yes(settled));
    }
    if let Some(chosen) = nullif_of_other_types(&expr, schema)? {
        return settle_types(chosen, schema);
    }
    if let Some(tests) = split_list(&expr, schema)? {
        return Ok(Transformed::yes(tests));
    }
    let mut is_changed = false;
    let is_pair = matches!(expr, Expr::BinaryExpr(_));
    for (used, mut values) in groups(&mut expr) {
        let types = values.iter().map(|value| value.get_type(schema)).collect::<DfResult<Vec<_>>>();
        let Ok(mut types) = types else { continue };
        is_changed |= read_literals(&mut values, &mut types);
        let Some(common) = common_type(used, is_pair, &types) else { continue };
        for (value, is) in values.iter_mut().zip(&types) {
            let is_cast = is_number(is) || *is == DataType::Date32 || matches!(is, DataType::List(_));
            if *is != common && is_cast {
                **value = cast(std::mem::take(*value), common.clone());
                is_changed = true;
            }
        }
    }
    is_changed |= drop_never(&mut expr);
    Ok(if is_changed { Transformed::yes(expr) } else { Transformed::no(expr) })
}

/// Drops the branches of `CASE x WHEN NULL`, which are never taken: one may have said a type
/// (`rewrite::case`).
fn drop_never(expr: &mut Expr) -> bool {
    let is_null = |when: &Expr| matches!(when, Expr::Literal(literal, _) if literal.is_null());
    match expr {
        Expr::Case(case) if case.expr.is_some() && !case.when_then_expr.iter().all(|(when, _)| is_null(when)) => {
            let before = case.when_then_expr.len();
            case.when_then_expr.retain(|(when, _)| !is_null(when));
            case.when_then_expr.len() < before
        }
        _ => false,
    }
}

/// `nullif(x, y)` of two types as `CASE WHEN x = y THEN NULL ELSE x END`, with *x* as it is
/// compared.
fn nullif_of_other_types(expr: &Expr, schema: &DFSchema) -> DfResult<Option<Expr>> {
    let Expr::ScalarFunction(call) = expr else { return Ok(None) };
    let ("nullif", [x, y]) = (call.func.name(), call.args.as_slice()) else { return Ok(None) };
    let (is, other) = (x.get_type(schema)?, y.get_type(schema)?);
    if is.is_null() || is == other {
        return Ok(None);
    }
    // (Whole numbers of two sizes, and floats, are compared as they are.)
    let is_alike = is.is_integer() && other.is_integer() || is.is_floating() && other.is_floating();
    let compared = match union_type(&is, &other) {
        Some(common) if is_number(&is) && is_number(&other) && !is_alike => common,
        _ => is.clone(),
    };
    let value = if compared == is { x.clone() } else { cast(x.clone(), compared.clone()) };
    let is_equal = pair(x, Operator::Eq, y, schema)?;
    when(is_equal, Expr::Literal(ScalarValue::try_from(&compared)?, None)).otherwise(value).map(Some)
}

/// A comparison with what it needs to be one.
fn pair(left: &Expr, op: Operator, right: &Expr, schema: &DFSchema) -> DfResult<Expr> {
    let test = Expr::BinaryExpr(BinaryExpr::new(Box::new(left.clone()), op, Box::new(right.clone())));
    Ok(settle_types(test, schema)?.transform_data(|test| compare_dates(test, schema))?.data)
}

/// `x IN (a, 1, 2, NULL)` as `x = a OR x IN (1, 2) OR x = NULL`: each value that is no constant is
/// compared by itself. (DataFusion takes some of them for constants, and lists for sets.)
fn split_list(expr: &Expr, schema: &DFSchema) -> DfResult<Option<Expr>> {
    let Expr::InList(InList { expr: value, list, negated }) = expr else { return Ok(None) };
    let is_constant = |element: &&Expr| match element {
        Expr::Literal(literal, _) => !literal.is_null(),
        Expr::Cast(cast) => matches!(cast.expr.as_ref(), Expr::Literal(literal, _) if !literal.is_null()),
        Expr::Negative(inner) => matches!(inner.as_ref(), Expr::Literal(..)),
        _ => false,
    };
    let (constants, others): (Vec<&Expr>, Vec<&Expr>) = list.iter().partition(is_constant);
    if others.is_empty() && constants.len() != 1 || value.is_volatile() {
        return Ok(None);
    }
    let (eq, both) = if *negated { (Operator::NotEq, Operator::And) } else { (Operator::Eq, Operator::Or) };
    let is_list = constants.len() > 1;
    let single = others.into_iter().chain(constants.iter().copied().filter(|_| !is_list));
    let mut tests = single.map(|element| pair(value, eq, element, schema)).collect::<DfResult<Vec<_>>>()?;
    if is_list {
        let list = InList::new(value.clone(), constants.into_iter().cloned().collect(), *negated);
        tests.push(settle_types(Expr::InList(list), schema)?.data);
    }
    let join = |left, right| Expr::BinaryExpr(BinaryExpr::new(Box::new(left), both, Box::new(right)));
    Ok(balanced(&tests, &join))
}

/// A test of a subquery in which a float is compared with exact numbers.
fn settle_subquery(expr: &Expr, schema: &DFSchema) -> DfResult<Option<Expr>> {
    let (value, subquery) = match expr {
        Expr::InSubquery(test) => (&test.expr, &test.subquery),
        Expr::SetComparison(test) => (&test.expr, &test.subquery),
        _ => return Ok(None),
    };
    let of_query = subquery.subquery.schema().field(0);
    let Some(common) = common_type(Use::Compared, false, &[value.get_type(schema)?, of_query.data_type().clone()])
    else {
        return Ok(None);
    };
    let names = [of_query.name().clone()];
    let (of, wanted) = (std::slice::from_ref(of_query.data_type()), std::slice::from_ref(&common));
    let plan = conform(subquery.subquery.as_ref().clone(), of, wanted, &names)?;
    let subquery = subquery.with_plan(Arc::new(plan));
    let value = Box::new(cast(value.as_ref().clone(), common));
    Ok(match expr.clone() {
        Expr::InSubquery(test) => Some(Expr::InSubquery(InSubquery { expr: value, subquery, ..test })),
        Expr::SetComparison(test) => Some(Expr::SetComparison(SetComparison { expr: value, subquery, ..test })),
        _ => None,
    })
}

/// The parts of an expression that must be of one type, by groups.
fn groups(expr: &mut Expr) -> Vec<(Use, Vec<&mut Expr>)> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match used(*op) {
            Some(used) => vec![(used, vec![left, right])],
            None => Vec::new(),
        },
        Expr::Between(between) => vec![(Use::Compared, vec![&mut between.expr, &mut between.low, &mut between.high])],
        Expr::InList(list) => {
            vec![(Use::Listed, std::iter::once(list.expr.as_mut()).chain(&mut list.list).collect())]
        }
        Expr::ScalarFunction(call) => match call.func.name() {
            "greatest" | "least" | "make_array" | "array_concat" | "array_has_all" | "array_has_any" => {
                vec![(Use::Chosen, call.args.iter_mut().collect())]
            }
            _ => Vec::new(),
        },
        Expr::Case(case) => {
            let (whens, thens): (Vec<_>, Vec<_>) =
                case.when_then_expr.iter_mut().map(|(when, then)| (when.as_mut(), then.as_mut())).unzip();
            let compared = case.expr.as_deref_mut().map(|value| std::iter::once(value).chain(whens).collect());
            let chosen = thens.into_iter().chain(case.else_expr.as_deref_mut()).collect();
            compared.map(|values| (Use::Compared, values)).into_iter().chain([(Use::Chosen, chosen)]).collect()
        }
        _ => Vec::new(),
    }
}

fn used(op: Operator) -> Option<Use> {
    use Operator::{Divide, Minus, Multiply, Plus, RegexIMatch, RegexMatch, RegexNotIMatch, RegexNotMatch};
    match op {
        Plus | Minus | Multiply | Divide => Some(Use::Computed),
        RegexMatch | RegexIMatch | RegexNotMatch | RegexNotIMatch => None,
        op => op.supports_propagation().then_some(Use::Compared),
    }
}

/// The type of all; `None` where DataFusion finds it, or, of a pair of moments, `dates` does.
fn common_type(used: Use, is_pair: bool, types: &[DataType]) -> Option<DataType> {
    if let Some(timestamp) = timestamp_among_dates(types) {
        return (!is_pair).then_some(timestamp);
    }
    if !are_numbers(types) {
        return plain_of_lists(types);
    }
    match (float_among(types), used) {
        (Some(float), _) if types.iter().all(|is| is.is_null() || *is == float) => None,
        (Some(float), Use::Chosen | Use::Listed) => Some(float),
        (Some(_), Use::Compared | Use::Computed) => Some(DataType::Float64),
        (None, _) if types.contains(&TYPE) => Some(TYPE),
        (None, Use::Chosen) => get_coerce_type_for_case_expression(types, None),
        (None, _) => None,
    }
}
