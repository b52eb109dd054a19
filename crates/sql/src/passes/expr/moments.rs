//! Casts of moments and of times of day, sums of times of day, and ranges over them.
//!
//! - A cast between dates and timestamps of a constant is computed here: what is infinite stays so.
//!   Casts of columns are computed by the engine, by the same functions.
//! - A time of day is cast to an interval and back.
//! - `sum` and `avg` of times of day are those of the intervals since midnight.
//! - A RANGE frame with offsets over times of day counts microseconds, one over intervals their
//!   lengths.

use std::sync::Arc;

use anabranch_batch::order::interval_length;
use arrow::array::{ArrayRef, AsArray, IntervalMonthDayNanoArray, Time64MicrosecondArray};
use arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DataType, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit,
    Time64MicrosecondType, TimeUnit,
};
use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_common::{DFSchema, Result as DfResult, ScalarValue, exec_datafusion_err, exec_err, plan_err};
use datafusion_expr::{Expr, ExprSchemable, Volatility, WindowFrameBound, WindowFrameUnits, cast};

use crate::functions::conversions::Conversion;
use crate::functions::intervals::length_of;
use crate::functions::range_key::range_key;
use crate::time::calendar::MICROS_A_DAY;
use crate::time::columns::{of_arrow, to_arrow};
use crate::time::interval::{Interval, Qualifier};
use crate::time::interval_input::read_interval;
use crate::time::moments::{cast_moments, casts_moments};

const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);
const TIME: DataType = DataType::Time64(TimeUnit::Microsecond);

/// A cast between dates, timestamps, times of day and intervals.
pub(super) fn settle_cast(expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    let Expr::Cast(inner) = &expr else { return Ok(Transformed::no(expr)) };
    let Ok(from) = inner.expr.get_type(schema) else { return Ok(Transformed::no(expr)) };
    let to = inner.field.data_type();
    if from == TIME && *to == INTERVAL {
        return Ok(Transformed::yes(since_midnight(inner.expr.as_ref().clone())));
    }
    if from == INTERVAL && *to == TIME {
        return Ok(Transformed::yes(Conversion::call("interval_to_time", inner.expr.as_ref().clone(), to, to_time)));
    }
    if !casts_moments(&from, to) || !is_constant(&inner.expr) {
        return Ok(Transformed::no(expr));
    }
    if let Expr::Literal(value, _) = inner.expr.as_ref() {
        let cast = cast_column(&value.to_array()?, to)?;
        return Ok(Transformed::yes(Expr::Literal(ScalarValue::try_from_array(&cast, 0)?, None)));
    }
    let name = format!("moment_to_{}", crate::resolve::type_names::sql_name(to).replace(' ', "_"));
    Ok(Transformed::yes(Conversion::call(name, inner.expr.as_ref().clone(), to, cast_column)))
}

fn cast_column(values: &ArrayRef, to: &DataType) -> DfResult<ArrayRef> {
    match cast_moments(values, to) {
        Some(cast) => Ok(cast?),
        None => exec_err!("a cast of moments has moments"),
    }
}

/// Whether the planner may fold the expression.
fn is_constant(expr: &Expr) -> bool {
    let mut is_constant = true;
    let walked = expr.apply(|e| {
        is_constant &= match e {
            Expr::Literal(..) | Expr::BinaryExpr(_) | Expr::Cast(_) | Expr::Negative(_) => true,
            Expr::ScalarFunction(call) => call.func.signature().volatility == Volatility::Immutable,
            _ => false,
        };
        Ok(if is_constant { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
    });
    walked.is_ok() && is_constant
}

/// The interval from midnight to a time of day.
fn since_midnight(time: Expr) -> Expr {
    Conversion::call("time_to_interval", time, &INTERVAL, |times, _| {
        let times = times.as_primitive::<Time64MicrosecondType>();
        let since = |micros| to_arrow(Interval { micros, ..Interval::default() });
        Ok(Arc::new(times.iter().map(|time| since(time?)).collect::<IntervalMonthDayNanoArray>()))
    })
}

/// The hours of intervals, without whole days.
fn to_time(intervals: &ArrayRef, _to: &DataType) -> DfResult<ArrayRef> {
    let intervals = intervals.as_primitive::<IntervalMonthDayNanoType>();
    let time = |interval| of_arrow(interval).micros.rem_euclid(MICROS_A_DAY);
    Ok(Arc::new(intervals.iter().map(|interval| interval.map(time)).collect::<Time64MicrosecondArray>()))
}

/// `sum` and `avg` of times of day.
pub(super) fn sum_times(expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    let is_time = |args: &[Expr]| matches!(args, [arg] if arg.get_type(schema).is_ok_and(|is| is == TIME));
    match expr {
        Expr::AggregateFunction(mut call)
            if matches!(call.func.name(), "sum" | "avg") && is_time(&call.params.args) =>
        {
            call.params.args = call.params.args.into_iter().map(since_midnight).collect();
            Ok(Transformed::yes(Expr::AggregateFunction(call)))
        }
        Expr::WindowFunction(mut call) if matches!(call.fun.name(), "sum" | "avg") && is_time(&call.params.args) => {
            let args = std::mem::take(&mut call.params.args);
            call.params.args = args.into_iter().map(since_midnight).collect();
            Ok(Transformed::yes(Expr::WindowFunction(call)))
        }
        other => Ok(Transformed::no(other)),
    }
}

/// A RANGE frame with offsets over intervals, plain numerics, or a time of day, which does not wrap
/// round at midnight.
///
/// # Errors
/// A key that has no such frames.
pub(super) fn range_over_times(expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    let Expr::WindowFunction(mut call) = expr else { return Ok(Transformed::no(expr)) };
    let frame = &call.params.window_frame;
    let is_offset = |bound: &WindowFrameBound| match bound {
        WindowFrameBound::CurrentRow => false,
        WindowFrameBound::Preceding(by) | WindowFrameBound::Following(by) => !by.is_null(),
    };
    let has_offsets = is_offset(&frame.start_bound) || is_offset(&frame.end_bound);
    let (true, true, [key]) = (frame.units == WindowFrameUnits::Range, has_offsets, call.params.order_by.as_slice())
    else {
        return Ok(Transformed::no(Expr::WindowFunction(call)));
    };
    match key.expr.get_type(schema) {
        Ok(is) if is == anabranch_batch::numeric::TYPE => {
            for key in &mut call.params.order_by {
                key.expr = range_key(std::mem::take(&mut key.expr));
            }
            Ok(Transformed::yes(Expr::WindowFunction(call)))
        }
        Ok(is @ (TIME | INTERVAL)) => {
            let is_time = is == TIME;
            let measured = if is_time { in_micros } else { in_length };
            let (start, end) = (measure(&frame.start_bound, measured)?, measure(&frame.end_bound, measured)?);
            (call.params.window_frame.start_bound, call.params.window_frame.end_bound) = (start, end);
            for key in &mut call.params.order_by {
                let value = std::mem::take(&mut key.expr);
                key.expr = if is_time { cast(value, DataType::Int64) } else { length_of(value) };
            }
            Ok(Transformed::yes(Expr::WindowFunction(call)))
        }
        _ => Ok(Transformed::no(Expr::WindowFunction(call))),
    }
}

/// A time of day counts microseconds; months and days say nothing about it.
fn in_micros(interval: Option<Interval>) -> ScalarValue {
    ScalarValue::Int64(interval.map(|interval| interval.micros))
}

/// An interval counts its length.
fn in_length(interval: Option<Interval>) -> ScalarValue {
    let length = interval.as_ref().map(nanos_of);
    ScalarValue::Decimal128(length, DECIMAL128_MAX_PRECISION, 0)
}

/// The length of an interval, in nanoseconds.
fn nanos_of(interval: &Interval) -> i128 {
    let days = IntervalMonthDayNano::new(interval.months, interval.days, 0);
    interval_length(&days) + i128::from(interval.micros) * 1000
}

/// The bound as a number.
fn measure(bound: &WindowFrameBound, measured: fn(Option<Interval>) -> ScalarValue) -> DfResult<WindowFrameBound> {
    let number = |by: &ScalarValue| -> DfResult<ScalarValue> {
        let interval = match by {
            by if by.is_null() => return Ok(measured(None)),
            ScalarValue::IntervalMonthDayNano(Some(interval)) => of_arrow(*interval),
            by => match by.try_as_str().flatten().map(|text| read_interval(text, Qualifier::default())) {
                Some(Ok(interval)) => interval,
                _ => return plan_err!("the offset of RANGE over times of day and intervals is an interval, not {by}"),
            },
        };
        match nanos_of(&interval) {
            ..0 => Err(exec_datafusion_err!("invalid preceding or following size in window function")),
            _ => Ok(measured(Some(interval))),
        }
    };
    Ok(match bound {
        WindowFrameBound::CurrentRow => WindowFrameBound::CurrentRow,
        WindowFrameBound::Preceding(by) => WindowFrameBound::Preceding(number(by)?),
        WindowFrameBound::Following(by) => WindowFrameBound::Following(number(by)?),
    })
}
