//! `date_trunc(unit, value [, zone])` and `date_bin(stride, moment, origin)`.
//!
//! A date is the `timestamptz` of its midnight, as in PostgreSQL, and so is a moment that is cut in
//! a zone. What is infinite stays so. An interval loses its lesser fields. Cost: one pass; a few
//! divisions a row, and a look into the zone's table where one is named.

use std::sync::Arc;

use arrow::array::timezone::Tz;
use arrow::array::{
    Array, ArrayRef, AsArray, IntervalMonthDayNanoArray, StringViewArray, TimestampMicrosecondArray, new_null_array,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, IntervalMonthDayNanoType, IntervalUnit, TimeUnit};
use datafusion_common::{Result as DfResult, exec_datafusion_err, exec_err, plan_err};
use datafusion_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

use crate::functions::at_time_zone::{clock_of, instant_of};
use crate::functions::extract::DatePart;
use crate::resolve::type_names::{UTC, is_text, sql_name};
use crate::time::calendar::{
    Civil, MICROS_A_DAY, MICROS_A_MINUTE, MICROS_A_SECOND, MICROS_AN_HOUR, civil, days_of, micros_of, weekday,
};
use crate::time::columns::{of_arrow, to_arrow};
use crate::time::interval::Interval;
use crate::time::moments::{End, micros_column};

const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);
const OUT_OF_RANGE: &str = "timestamp out of range";

/// All functions of this module.
pub(crate) fn all() -> impl Iterator<Item = Arc<ScalarUDF>> {
    [Verb::Trunc, Verb::Bin].into_iter().map(|verb| {
        let signature = Signature::variadic_any(Volatility::Immutable);
        Arc::new(ScalarUDF::from(CutTime { verb, signature }))
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Verb {
    Trunc,
    Bin,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct CutTime {
    verb: Verb,
    signature: Signature,
}

/// The type of a moment that is cut.
fn cut_type(is: &DataType) -> Option<DataType> {
    Some(match is {
        DataType::Timestamp(_, None) => DataType::Timestamp(TimeUnit::Microsecond, None),
        DataType::Timestamp(..) | DataType::Date32 | DataType::Null => zoned(),
        is if is_text(is) => zoned(),
        _ => return None,
    })
}

fn zoned() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some(UTC.into()))
}

impl ScalarUDFImpl for CutTime {
    fn name(&self) -> &str {
        match self.verb {
            Verb::Trunc => "date_trunc",
            Verb::Bin => "date_bin",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arg_types: &[DataType]) -> DfResult<DataType> {
        let is_word = |is: &DataType| is_text(is) || is.is_null();
        let is_interval = |is: &DataType| matches!(is, DataType::Interval(_) | DataType::Duration(_));
        let found = match (self.verb, arg_types) {
            (Verb::Trunc, [unit, value]) if is_word(unit) && (is_interval(value) || is_time(value)) => Some(INTERVAL),
            (Verb::Trunc, [unit, value]) if is_word(unit) => cut_type(value),
            (Verb::Trunc, [unit, value, zone]) if is_word(unit) && is_word(zone) => cut_type(value).map(|_| zoned()),
            (Verb::Bin, [stride, moment, origin]) if is_word(stride) || is_interval(stride) => {
                match (cut_type(moment), cut_type(origin)) {
                    (Some(a), Some(b)) if a == b => Some(a),
                    (Some(_), Some(_)) => Some(zoned()),
                    _ => None,
                }
            }
            _ => None,
        };
        let types: Vec<String> = arg_types.iter().map(sql_name).collect();
        found.map_or_else(|| plan_err!("function {}({}) does not exist", self.name(), types.join(", ")), Ok)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let columns: Vec<ArrayRef> =
            args.args.iter().map(|arg| arg.to_array(args.number_rows)).collect::<DfResult<_>>()?;
        let to = args.return_field.data_type();
        let cut = match (self.verb, columns.as_slice()) {
            (Verb::Trunc, [units, values]) if *to == INTERVAL => trunc_intervals(units, values)?,
            (Verb::Trunc, [units, values]) => trunc_moments(units, values, None, to)?,
            (Verb::Trunc, [units, values, zones]) => trunc_moments(units, values, Some(zones), to)?,
            (Verb::Bin, [strides, moments, origins]) => bins(strides, moments, origins, to)?,
            _ => return exec_err!("{} has another number of arguments", self.name()),
        };
        Ok(ColumnarValue::Array(cut))
    }
}

fn is_time(is: &DataType) -> bool {
    matches!(is, DataType::Time64(_))
}

fn words(column: &ArrayRef) -> DfResult<StringViewArray> {
    Ok(cast(column, &DataType::Utf8View)?.as_string_view().clone())
}

/// The unit of a row, kept while it stays the same.
struct Units<'a> {
    of: &'static str,
    known: Option<(&'a str, DatePart)>,
}

impl<'a> Units<'a> {
    fn new(of: &'static str) -> Self {
        Units { of, known: None }
    }

    fn part(&mut self, name: &'a str) -> DfResult<DatePart> {
        if let Some((same, part)) = self.known
            && same == name
        {
            return Ok(part);
        }
        use DatePart::{DayOfWeek, DayOfYear, Epoch, IsoDayOfWeek, IsoYear, Julian, Week};
        let Some(part) = DatePart::named(name) else {
            return exec_err!(
                "unit \"{}\" not recognized: write microsecond .. second, minute, hour, day, week, month, quarter, year, decade, century or millennium",
                name.to_lowercase()
            );
        };
        let is_week = part == Week && self.of == "interval";
        if is_week || matches!(part, DayOfWeek | DayOfYear | Epoch | IsoDayOfWeek | IsoYear | Julian) {
            return exec_err!("unit \"{}\" not supported for type {}", name.to_lowercase(), self.of);
        }
        self.known = Some((name, part));
        Ok(part)
    }
}

fn trunc_intervals(units: &ArrayRef, values: &ArrayRef) -> DfResult<ArrayRef> {
    let (units, values) = (words(units)?, cast(values, &INTERVAL)?);
    let mut of = Units::new("interval");
    let mut out = Vec::with_capacity(values.len());
    for (unit, value) in units.iter().zip(values.as_primitive::<IntervalMonthDayNanoType>()) {
        out.push(match (unit, value) {
            (Some(unit), Some(value)) => to_arrow(trunc_interval(of_arrow(value), of.part(unit)?)),
            _ => None,
        });
    }
    Ok(Arc::new(IntervalMonthDayNanoArray::from(out)))
}

/// The interval without the fields below a part.
fn trunc_interval(interval: Interval, part: DatePart) -> Interval {
    use DatePart as P;
    let Interval { months, days, micros } = interval;
    let whole = |size: i64| micros / size * size;
    let months = match part {
        P::Millennium => months / 12_000 * 12_000,
        P::Century => months / 1200 * 1200,
        P::Decade => months / 120 * 120,
        P::Year => months / 12 * 12,
        P::Quarter => months / 3 * 3,
        _ => months,
    };
    let micros = match part {
        P::Hour => whole(MICROS_AN_HOUR),
        P::Minute => whole(MICROS_A_MINUTE),
        P::Seconds => whole(MICROS_A_SECOND),
        P::Milliseconds => whole(1000),
        P::Microseconds => micros,
        _ => 0,
    };
    let is_below_months = matches!(part, P::Day) || micros != 0;
    let keeps_days =
        is_below_months || matches!(part, P::Hour | P::Minute | P::Seconds | P::Milliseconds | P::Microseconds);
    Interval { months, days: if keeps_days { days } else { 0 }, micros }
}

fn trunc_moments(units: &ArrayRef, values: &ArrayRef, zones: Option<&ArrayRef>, to: &DataType) -> DfResult<ArrayRef> {
    if values.data_type().is_null() {
        return Ok(new_null_array(to, values.len()));
    }
    let (units, moments, zones) = (words(units)?, micros_column(values)?, zones.map(words).transpose()?);
    let mut of = Units::new(if zones.is_none() && *to != zoned() {
        "timestamp without time zone"
    } else {
        "timestamp with time zone"
    });
    let mut known: Option<(&str, Tz)> = None;
    let mut out = Vec::with_capacity(moments.len());
    for row in 0..moments.len() {
        let is_null = units.is_null(row) || moments.is_null(row);
        if is_null || zones.as_ref().is_some_and(|zones| zones.is_null(row)) {
            out.push(None);
            continue;
        }
        let (part, moment) = (of.part(units.value(row))?, moments.value(row));
        let cut = match zones.as_ref().map(|zones| zones.value(row)) {
            _ if End::of_micros(moment).is_some() => Some(moment),
            None => trunc_moment(moment, part),
            Some(name) => {
                let zone = match known {
                    Some((same, zone)) if same == name => zone,
                    _ => name.parse().map_err(|_| exec_datafusion_err!("time zone \"{name}\" not recognized"))?,
                };
                known = Some((name, zone));
                trunc_in_zone(moment, part, &zone)
            }
        };
        out.push(Some(cut.ok_or_else(|| exec_datafusion_err!("{OUT_OF_RANGE}"))?));
    }
    Ok(Arc::new(TimestampMicrosecondArray::from(out).with_data_type(to.clone())))
}

/// Days are those of the zone; below an hour, what the zone's clock is ahead by stays.
fn trunc_in_zone(instant: i64, part: DatePart, zone: &Tz) -> Option<i64> {
    use DatePart as P;
    let clock = clock_of(instant, zone)?;
    let cut = trunc_moment(clock, part)?;
    match part {
        P::Hour | P::Minute | P::Seconds | P::Milliseconds | P::Microseconds => Some(cut - (clock - instant)),
        _ => instant_of(cut, zone),
    }
}

/// The last moment at or before this one at which a part begins; `None` out of range.
fn trunc_moment(micros: i64, part: DatePart) -> Option<i64> {
    use DatePart as P;
    let floor = |size: i64| Some(micros - micros.rem_euclid(size));
    let days = micros.div_euclid(MICROS_A_DAY);
    let first = |year, month| micros_of(days_of(Civil { year, month, day: 1 }), 0);
    // (0 is 1 BC.)
    let Civil { year, month, .. } = match part {
        P::Microseconds => return Some(micros),
        P::Milliseconds => return floor(1000),
        P::Seconds => return floor(MICROS_A_SECOND),
        P::Minute => return floor(MICROS_A_MINUTE),
        P::Hour => return floor(MICROS_AN_HOUR),
        P::Day => return floor(MICROS_A_DAY),
        P::Week => return micros_of(days - (weekday(days) + 6) % 7, 0),
        _ => civil(days),
    };
    match part {
        P::Month => first(year, month),
        P::Quarter => first(year, (month - 1) / 3 * 3 + 1),
        P::Decade if year > 0 => first(year / 10 * 10, 1),
        P::Decade => first(-((8 - (year - 1)) / 10) * 10, 1),
        P::Century if year > 0 => first((year + 99) / 100 * 100 - 99, 1),
        P::Century => first(-((99 - (year - 1)) / 100) * 100 + 1, 1),
        P::Millennium if year > 0 => first((year + 999) / 1000 * 1000 - 999, 1),
        P::Millennium => first(-((999 - (year - 1)) / 1000) * 1000 + 1, 1),
        _ => first(year, 1),
    }
}

fn bins(strides: &ArrayRef, moments: &ArrayRef, origins: &ArrayRef, to: &DataType) -> DfResult<ArrayRef> {
    if strides.data_type().is_null() || moments.data_type().is_null() || origins.data_type().is_null() {
        return Ok(new_null_array(to, moments.len()));
    }
    let strides = cast(strides, &INTERVAL)?;
    let (moments, origins) = (micros_column(moments)?, micros_column(origins)?);
    let strides = strides.as_primitive::<IntervalMonthDayNanoType>();
    let mut out = Vec::with_capacity(moments.len());
    for ((stride, moment), origin) in strides.iter().zip(&moments).zip(&origins) {
        let (Some(stride), Some(moment), Some(origin)) = (stride, moment, origin) else {
            out.push(None);
            continue;
        };
        let Interval { months, days, micros } = of_arrow(stride);
        let size = (i64::from(days)).checked_mul(MICROS_A_DAY).and_then(|days| days.checked_add(micros));
        out.push(Some(match (End::of_micros(moment), End::of_micros(origin), size) {
            (_, Some(_), _) => return exec_err!("origin out of range"),
            (Some(_), None, _) => moment,
            _ if months != 0 => {
                return exec_err!("timestamps cannot be binned into intervals containing months or years");
            }
            (_, _, None) => return exec_err!("interval out of range"),
            (_, _, Some(..=0)) => return exec_err!("stride must be greater than zero"),
            (None, None, Some(size)) => {
                let bin = moment.checked_sub(origin).and_then(|since| moment.checked_sub(since.rem_euclid(size)));
                let bin = bin.and_then(|bin| micros_of(0, bin));
                bin.ok_or_else(|| exec_datafusion_err!("{OUT_OF_RANGE}"))?
            }
        }));
    }
    Ok(Arc::new(TimestampMicrosecondArray::from(out).with_data_type(to.clone())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn years_before_christ_are_cut_as_those_after() {
        let first = |year| days_of(Civil { year, month: 1, day: 1 }) * MICROS_A_DAY;
        let within = |year| days_of(Civil { year, month: 3, day: 15 }) * MICROS_A_DAY + 7;
        assert_eq!(trunc_moment(within(-43), DatePart::Year), Some(first(-43)));
        assert_eq!(trunc_moment(within(-43), DatePart::Decade), Some(first(-50)));
        assert_eq!(trunc_moment(within(-43), DatePart::Century), Some(first(-99)));
        assert_eq!(trunc_moment(within(2000), DatePart::Millennium), Some(first(1001)));
    }
}
