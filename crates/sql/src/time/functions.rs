//! Functions of times and intervals, as SQL calls them.
//!
//! `to_char`, `to_timestamp`, `to_date`, `date_format` (templates); `justify_days`,
//! `justify_hours`, `justify_interval`, `make_date`; and what operators and casts become:
//! `interval_negate`, `interval_divide`, `round_time`, `cut_interval`. Cost: a template is read
//! once for a run of rows that have the same.

use std::sync::Arc;

use anabranch_batch::TimePrecision;
use arrow::array::{
    Array, ArrayRef, AsArray, Date32Array, IntervalMonthDayNanoArray, StringViewArray, TimestampMicrosecondArray,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, Int32Type, IntervalMonthDayNanoType, TimeUnit};
use datafusion_common::tree_node::Transformed;
use datafusion_common::{DFSchema, Result as DfResult, ScalarValue, exec_datafusion_err, exec_err, plan_err};
use datafusion_expr::{
    ColumnarValue, Expr, ExprSchemable, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::calendar::{Civil, days_of, days_of_month};
use super::columns::{INTERVAL, of_arrow, read_texts, texts_of, to_arrow};
use super::from_char::{read_day, read_moment};
use super::interval::{Field, Interval, PRECISION_MAX, Qualifier};
use super::moments::End;
use super::number_template::NumberTemplate;
use super::shown::{date_format, to_char};
use super::template::{TemplateNode, Templates};
use crate::functions::input::convert;
use crate::functions::output::printer;
use crate::resolve::type_names::{UTC, is_number, is_text, sql_name};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Verb {
    ToChar,
    DateFormat,
    ToTimestamp,
    ToDate,
    JustifyDays,
    JustifyHours,
    JustifyInterval,
    MakeDate,
    Negate,
    Times,
    Divide,
    Round,
    Cut,
}

impl Verb {
    const ALL: [Verb; 13] = [
        Verb::ToChar,
        Verb::DateFormat,
        Verb::ToTimestamp,
        Verb::ToDate,
        Verb::JustifyDays,
        Verb::JustifyHours,
        Verb::JustifyInterval,
        Verb::MakeDate,
        Verb::Negate,
        Verb::Times,
        Verb::Divide,
        Verb::Round,
        Verb::Cut,
    ];

    fn name(self) -> &'static str {
        match self {
            Verb::ToChar => "to_char",
            Verb::DateFormat => "date_format",
            Verb::ToTimestamp => "to_timestamp",
            Verb::ToDate => "to_date",
            Verb::JustifyDays => "justify_days",
            Verb::JustifyHours => "justify_hours",
            Verb::JustifyInterval => "justify_interval",
            Verb::MakeDate => "make_date",
            Verb::Negate => "interval_negate",
            Verb::Times => "interval_times",
            Verb::Divide => "interval_divide",
            Verb::Round => "round_time",
            Verb::Cut => "cut_interval",
        }
    }

    fn n_args(self) -> std::ops::RangeInclusive<usize> {
        match self {
            Verb::ToTimestamp | Verb::ToDate => 1..=2,
            Verb::ToChar | Verb::DateFormat | Verb::Times | Verb::Divide | Verb::Round => 2..=2,
            Verb::JustifyDays | Verb::JustifyHours | Verb::JustifyInterval | Verb::Negate => 1..=1,
            Verb::MakeDate | Verb::Cut => 3..=3,
        }
    }

    /// Whether values of these types can be given.
    fn takes(self, types: &[DataType]) -> bool {
        use DataType as D;
        let is_moment = |is: &D| matches!(is, D::Date32 | D::Timestamp(..) | D::Null);
        let is_interval = |is: &D| matches!(is, D::Interval(_) | D::Duration(_) | D::Null);
        let is_word = |is: &D| is_text(is) || is.is_null();
        let is_numeric = |is: &D| is_number(is) || is.is_null();
        match (self, types) {
            (Verb::ToChar, [value, template]) => {
                let is_time = is_moment(value) || is_interval(value) || matches!(value, D::Time64(_));
                (is_time || is_number(value)) && is_word(template)
            }
            (Verb::DateFormat, [value, template]) => is_moment(value) && is_word(template),
            (Verb::ToTimestamp, [seconds]) => is_numeric(seconds) || is_word(seconds) || is_moment(seconds),
            (Verb::ToDate, [text]) => is_word(text) || is_moment(text),
            (Verb::ToTimestamp | Verb::ToDate, [text, template]) => is_word(text) && is_word(template),
            (Verb::JustifyDays | Verb::JustifyHours | Verb::JustifyInterval | Verb::Negate, [value]) => {
                is_interval(value)
            }
            (Verb::Times | Verb::Divide, [value, number]) => is_interval(value) && is_numeric(number),
            (Verb::MakeDate, parts) => parts.iter().all(is_numeric),
            _ => true,
        }
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct TimeFunction {
    verb: Verb,
    signature: Signature,
}

/// All functions of this module.
pub(crate) fn all() -> impl Iterator<Item = Arc<ScalarUDF>> {
    Verb::ALL.into_iter().map(udf)
}

fn udf(verb: Verb) -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::from(TimeFunction { verb, signature: Signature::variadic_any(Volatility::Immutable) }))
}

/// `interval * factor`.
pub(crate) fn interval_times(interval: Expr, factor: Expr) -> Expr {
    udf(Verb::Times).call(vec![interval, factor])
}

/// `interval / divisor`.
pub(crate) fn interval_divide(interval: Expr, divisor: Expr) -> Expr {
    udf(Verb::Divide).call(vec![interval, divisor])
}

/// `- interval`, of which DataFusion would negate what Arrow's kernel does without a look at
/// overflow.
pub(crate) fn negate_interval(expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    match expr {
        Expr::Negative(inner) if matches!(inner.get_type(schema)?, DataType::Interval(_)) => {
            Ok(Transformed::yes(udf(Verb::Negate).call(vec![*inner])))
        }
        other => Ok(Transformed::no(other)),
    }
}

impl ScalarUDFImpl for TimeFunction {
    fn name(&self) -> &str {
        self.verb.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arg_types: &[DataType]) -> DfResult<DataType> {
        if !self.verb.n_args().contains(&arg_types.len()) || !self.verb.takes(arg_types) {
            let types: Vec<String> = arg_types.iter().map(sql_name).collect();
            return plan_err!("function {}({}) does not exist", self.name(), types.join(", "));
        }
        Ok(match self.verb {
            Verb::ToChar | Verb::DateFormat => DataType::Utf8View,
            Verb::ToTimestamp => DataType::Timestamp(TimeUnit::Microsecond, Some(UTC.into())),
            Verb::ToDate | Verb::MakeDate => DataType::Date32,
            Verb::Round => arg_types[0].clone(),
            _ => INTERVAL,
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let n_rows = args.number_rows;
        let columns: Vec<ArrayRef> = args.args.iter().map(|arg| arg.to_array(n_rows)).collect::<DfResult<_>>()?;
        let all_constant = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let answer = self.answer(&columns)?;
        match all_constant && !answer.is_empty() {
            true => Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&answer, 0)?)),
            false => Ok(ColumnarValue::Array(answer)),
        }
    }
}

impl TimeFunction {
    fn answer(&self, columns: &[ArrayRef]) -> DfResult<ArrayRef> {
        match (self.verb, columns) {
            (Verb::ToChar, [values, templates]) if is_number(values.data_type()) => number_to_char(values, templates),
            (Verb::ToChar, [values, templates]) => to_char(values, templates),
            (Verb::DateFormat, [values, patterns]) => date_format(values, patterns),
            (Verb::ToTimestamp, [seconds]) => instants(seconds),
            (Verb::ToTimestamp, [texts, templates]) => {
                let moments = from_texts(texts, templates, read_moment)?;
                Ok(Arc::new(moments.into_iter().collect::<TimestampMicrosecondArray>().with_timezone(UTC)))
            }
            (Verb::ToDate, [values]) => Ok(cast_or_read(values, &DataType::Date32)?),
            (Verb::ToDate, [texts, templates]) => {
                Ok(Arc::new(from_texts(texts, templates, read_day)?.into_iter().collect::<Date32Array>()))
            }
            (Verb::JustifyDays, [intervals]) => each_interval(intervals, Interval::justify_days),
            (Verb::JustifyHours, [intervals]) => each_interval(intervals, Interval::justify_hours),
            (Verb::JustifyInterval, [intervals]) => each_interval(intervals, Interval::justify),
            (Verb::Negate, [intervals]) => each_interval(intervals, Interval::negated),
            (Verb::Times, [intervals, factors]) => {
                scaled(intervals, factors, |interval, factor| Ok(interval.times(factor)))
            }
            (Verb::Divide, [intervals, divisors]) => scaled(intervals, divisors, |interval, divisor| match divisor {
                0.0 => exec_err!("division by zero"),
                _ => Ok(interval.divided(divisor)),
            }),
            (Verb::MakeDate, [years, months, days]) => make_date(years, months, days),
            (Verb::Round, [values, digits]) => round_time(values, digits),
            (Verb::Cut, [intervals, fields, digits]) => cut_interval(intervals, fields, digits),
            _ => exec_err!("{} has another number of arguments", self.name()),
        }
    }
}

fn floats_of(column: &ArrayRef) -> DfResult<ArrayRef> {
    convert(column, &DataType::Float64).map_err(|problem| exec_datafusion_err!("{problem}"))
}

fn cast_or_read(values: &ArrayRef, to: &DataType) -> DfResult<ArrayRef> {
    match is_text(values.data_type()) {
        true => read_texts(&texts_of(values)?, to).map_err(|problem| exec_datafusion_err!("{problem}")),
        false => Ok(cast(values, to)?),
    }
}

/// Digits that floats are sure of.
const DOUBLE_DIGITS: usize = 15;
const REAL_DIGITS: usize = 6;

fn number_to_char(values: &ArrayRef, templates: &ArrayRef) -> DfResult<ArrayRef> {
    let templates = texts_of(templates)?;
    let floats = match values.data_type().is_floating() {
        true => Some(floats_of(values)?),
        false => None,
    };
    let floats = floats.as_ref().map(|floats| floats.as_primitive::<Float64Type>());
    let digits_max = if *values.data_type() == DataType::Float64 { DOUBLE_DIGITS } else { REAL_DIGITS };
    let print = printer(values);
    let mut known: Option<(&str, NumberTemplate)> = None;
    let mut out = Vec::with_capacity(values.len());
    let mut digits = String::new();
    for (row, template) in templates.iter().enumerate() {
        let (false, Some(text)) = (values.is_null(row), template) else {
            out.push(None);
            continue;
        };
        let template = match known.take() {
            Some((same, template)) if same == text => template,
            _ => NumberTemplate::parse(text).map_err(|problem| exec_datafusion_err!("{problem}"))?,
        };
        let mut written = String::new();
        if let Some(floats) = floats {
            let value = floats.value(row);
            template.write_float(value, digits_max, &mut written);
        } else {
            digits.clear();
            print(row, &mut digits);
            template.write(&digits, &mut written);
        }
        known = Some((text, template));
        out.push(Some(written));
    }
    Ok(Arc::new(out.into_iter().collect::<StringViewArray>()))
}

/// `to_timestamp(seconds)`; of a text without a template, the instant that it tells.
fn instants(values: &ArrayRef) -> DfResult<ArrayRef> {
    let instant = DataType::Timestamp(TimeUnit::Microsecond, Some(UTC.into()));
    if !is_number(values.data_type()) {
        return cast_or_read(values, &instant);
    }
    let seconds = floats_of(values)?;
    let mut out = Vec::with_capacity(seconds.len());
    for seconds in seconds.as_primitive::<Float64Type>() {
        let micros = seconds.map(|seconds| (seconds * 1e6).round_ties_even());
        match micros {
            Some(micros) if micros.is_infinite() => {
                let end = if micros > 0.0 { End::Infinity } else { End::NegativeInfinity };
                out.push(Some(end.micros()));
            }
            Some(micros) if micros.is_nan() => return exec_err!("timestamp cannot be NaN"),
            Some(micros) if micros.abs() > 9.2e18 => {
                return exec_err!("timestamp out of range: {}", micros / 1e6);
            }
            micros => out.push(micros.map(|micros| micros as i64)),
        }
    }
    Ok(Arc::new(out.into_iter().collect::<TimestampMicrosecondArray>().with_timezone(UTC)))
}

fn from_texts<T>(
    texts: &ArrayRef,
    templates: &ArrayRef,
    read: impl Fn(&str, &[TemplateNode]) -> Result<T, String>,
) -> DfResult<Vec<Option<T>>> {
    let (texts, templates) = (texts_of(texts)?, texts_of(templates)?);
    let mut known = Templates::default();
    let mut out = Vec::with_capacity(texts.len());
    for (text, template) in texts.iter().zip(&templates) {
        let (Some(text), Some(template)) = (text, template) else {
            out.push(None);
            continue;
        };
        let nodes = known.nodes(template).map_err(|problem| exec_datafusion_err!("{problem}"))?;
        let value = read(text, nodes);
        out.push(Some(value.map_err(|problem| exec_datafusion_err!("{problem}"))?));
    }
    Ok(out)
}

/// Applies a function whose answer may lie out of range.
fn each_interval(intervals: &ArrayRef, apply: impl Fn(Interval) -> Option<Interval>) -> DfResult<ArrayRef> {
    let intervals = cast(intervals, &INTERVAL)?;
    let intervals = intervals.as_primitive::<IntervalMonthDayNanoType>();
    let apply = |interval| match apply(of_arrow(interval)).and_then(to_arrow) {
        Some(answer) => Ok(answer),
        None => exec_err!("interval out of range"),
    };
    let out: IntervalMonthDayNanoArray =
        intervals.iter().map(|interval| interval.map(apply).transpose()).collect::<DfResult<_>>()?;
    Ok(Arc::new(out))
}

fn scaled(
    intervals: &ArrayRef,
    factors: &ArrayRef,
    scale: impl Fn(Interval, f64) -> DfResult<Option<Interval>>,
) -> DfResult<ArrayRef> {
    let (intervals, factors) = (cast(intervals, &INTERVAL)?, floats_of(factors)?);
    let intervals = intervals.as_primitive::<IntervalMonthDayNanoType>();
    let mut out = Vec::with_capacity(intervals.len());
    for (interval, factor) in intervals.iter().zip(factors.as_primitive::<Float64Type>()) {
        let (Some(interval), Some(factor)) = (interval, factor) else {
            out.push(None);
            continue;
        };
        match scale(of_arrow(interval), factor)?.and_then(to_arrow) {
            Some(answer) => out.push(Some(answer)),
            None => return exec_err!("interval out of range"),
        }
    }
    Ok(Arc::new(out.into_iter().collect::<IntervalMonthDayNanoArray>()))
}

/// A year below zero is before Christ; there is no year zero.
fn make_date(years: &ArrayRef, months: &ArrayRef, days: &ArrayRef) -> DfResult<ArrayRef> {
    let parts = [years, months, days].map(|part| cast(part, &DataType::Int32));
    let [years, months, days] = parts;
    let (years, months, days) = (years?, months?, days?);
    let mut out = Vec::with_capacity(years.len());
    let parts = years.as_primitive::<Int32Type>().iter().zip(months.as_primitive::<Int32Type>());
    for ((year, month), day) in parts.zip(days.as_primitive::<Int32Type>()) {
        let (Some(year), Some(month), Some(day)) = (year, month, day) else {
            out.push(None);
            continue;
        };
        match date_of(i64::from(year), i64::from(month), i64::from(day)) {
            Some(days) => out.push(Some(days)),
            None => return exec_err!("date field value out of range: {year}-{month:02}-{day:02}"),
        }
    }
    Ok(Arc::new(out.into_iter().collect::<Date32Array>()))
}

fn date_of(year: i64, month: i64, day: i64) -> Option<i32> {
    let year = match year {
        0 => return None,
        ..0 => year + 1,
        _ => year,
    };
    let is_date = (-4713..5_874_898).contains(&year) && (1..=12).contains(&month);
    if !is_date || !(1..=days_of_month(year, month)).contains(&day) {
        return None;
    }
    i32::try_from(days_of(Civil { year, month, day })).ok()
}

/// Times with so many digits of the second's fraction, as `timestamp(3)` has them.
fn round_time(values: &ArrayRef, digits: &ArrayRef) -> DfResult<ArrayRef> {
    if values.data_type().is_null() {
        return Ok(values.clone());
    }
    let digits = cast(digits, &DataType::Int32)?;
    let digits = digits.as_primitive::<Int32Type>().iter().flatten().next().unwrap_or_default();
    let digits = u8::try_from(digits).unwrap_or(PRECISION_MAX);
    let rounded = TimePrecision(digits).round_column(values);
    rounded.ok_or_else(|| exec_datafusion_err!("{} out of range", sql_name(values.data_type())))
}

fn cut_interval(intervals: &ArrayRef, fields: &ArrayRef, digits: &ArrayRef) -> DfResult<ArrayRef> {
    let (fields, digits) = (texts_of(fields)?, cast(digits, &DataType::Int32)?);
    let last = match fields.iter().flatten().next() {
        Some("Year") => Field::Year,
        Some("Month") => Field::Month,
        Some("Day") => Field::Day,
        Some("Hour") => Field::Hour,
        Some("Minute") => Field::Minute,
        _ => Field::Second,
    };
    let digits = digits.as_primitive::<Int32Type>().iter().flatten().next();
    let qualifier =
        Qualifier { fields: Some((last, last)), precision: digits.and_then(|digits| u8::try_from(digits).ok()) };
    each_interval(intervals, |interval| qualifier.apply(interval))
}
