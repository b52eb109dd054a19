//! Values that must be of one type, as in PostgreSQL: what is compared, computed with, or chosen from.
//!
//! - A literal beside a timestamp, a time or an interval is read as one. DataFusion would make timestamps of nanoseconds of both, in which there is room from 1677 to
//!   2262 only, and refuse intervals.
//! - An exact number beside a float is a float: `double precision` where they are compared or computed with, the wider of the floats where one of them is chosen.
//!   DataFusion would make decimals of 15 places of both, in which 1e-20 is 0 and for which 1e30 is too large.
//! - Numbers in the branches of a CASE have one type before anything is computed of it; DataFusion would take the first one's for it.

use std::sync::Arc;

use arrow::datatypes::{DataType, TimeUnit};
use datafusion_common::tree_node::Transformed;
use datafusion_common::{DFSchema, Result as DfResult, ScalarValue};
use datafusion_expr::expr::{InSubquery, SetComparison};
use datafusion_expr::type_coercion::other::get_coerce_type_for_case_expression;
use datafusion_expr::{BinaryExpr, Expr, ExprSchemable, Operator, cast, when};

use crate::setop::conform;
use crate::types::is_text;

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
    let mut is_changed = false;
    for (used, mut values) in groups(&mut expr) {
        let types = values.iter().map(|value| value.get_type(schema)).collect::<DfResult<Vec<_>>>();
        let Ok(types) = types else { continue };
        let Some(common) = common_type(used, &types) else { continue };
        for (value, is) in values.iter_mut().zip(&types) {
            let goes_along = if common.is_numeric() { is.is_numeric() } else { is_literal_text(value) };
            if goes_along && *is != common {
                **value = cast(std::mem::take(*value), common.clone());
                is_changed = true;
            }
        }
    }
    Ok(if is_changed { Transformed::yes(expr) } else { Transformed::no(expr) })
}

/// `nullif(x, y)` of two types as `CASE WHEN x = y THEN NULL ELSE x END`: it has the type of *x*, whatever they are compared as.
fn nullif_of_other_types(expr: &Expr, schema: &DFSchema) -> DfResult<Option<Expr>> {
    let Expr::ScalarFunction(call) = expr else { return Ok(None) };
    let ("nullif", [x, y]) = (call.func.name(), call.args.as_slice()) else { return Ok(None) };
    let is = x.get_type(schema)?;
    if is.is_null() || is == y.get_type(schema)? {
        return Ok(None);
    }
    let is_equal = settle_types(x.clone().eq(y.clone()), schema)?.data;
    when(is_equal, Expr::Literal(ScalarValue::try_from(&is)?, None)).otherwise(x.clone()).map(Some)
}

/// A test of a subquery in which a float is compared with exact numbers.
fn settle_subquery(expr: &Expr, schema: &DFSchema) -> DfResult<Option<Expr>> {
    let (value, subquery) = match expr {
        Expr::InSubquery(test) => (&test.expr, &test.subquery),
        Expr::SetComparison(test) => (&test.expr, &test.subquery),
        _ => return Ok(None),
    };
    let of_query = subquery.subquery.schema().field(0);
    let Some(common) = common_type(Use::Compared, &[value.get_type(schema)?, of_query.data_type().clone()]) else {
        return Ok(None);
    };
    let names = [of_query.name().clone()];
    let plan = conform(subquery.subquery.as_ref().clone(), std::slice::from_ref(&common), &names)?;
    let subquery = subquery.with_plan(Arc::new(plan));
    let value = Box::new(cast(value.as_ref().clone(), common));
    Ok(match expr.clone() {
        Expr::InSubquery(test) => Some(Expr::InSubquery(InSubquery { expr: value, subquery, ..test })),
        Expr::SetComparison(test) => Some(Expr::SetComparison(SetComparison { expr: value, subquery, ..test })),
        _ => None,
    })
}

fn is_literal_text(value: &Expr) -> bool {
    matches!(value, Expr::Literal(literal, _) if is_text(&literal.data_type()))
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
            "greatest" | "least" => vec![(Use::Chosen, call.args.iter_mut().collect())],
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

/// The type of all; `None` where DataFusion finds it.
fn common_type(used: Use, types: &[DataType]) -> Option<DataType> {
    if used != Use::Computed
        && types.iter().any(is_text)
        && let Some(moment) = types.iter().find(|is| is_moment(is))
    {
        return Some(moment.clone());
    }
    if !types.iter().all(|is| is.is_numeric() || is.is_null()) {
        return None;
    }
    match (float_among(types), used) {
        (Some(float), _) if types.iter().all(|is| is.is_null() || *is == float) => None,
        (Some(float), Use::Chosen | Use::Listed) => Some(float),
        (Some(_), Use::Compared | Use::Computed) => Some(DataType::Float64),
        (None, Use::Chosen) => get_coerce_type_for_case_expression(types, None),
        (None, _) => None,
    }
}

/// The widest float, if there are floats.
pub(crate) fn float_among(types: &[DataType]) -> Option<DataType> {
    [DataType::Float64, DataType::Float32].into_iter().find(|float| types.contains(float))
}

fn is_moment(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Timestamp(..) | DataType::Time64(TimeUnit::Microsecond) | DataType::Interval(_))
}
