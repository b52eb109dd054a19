//! `AT TIME ZONE`, as PostgreSQL types it.
//!
//! - `timestamptz AT TIME ZONE z` is the clock of that zone at that instant: a timestamp.
//! - `timestamp AT TIME ZONE z` is the instant at which that clock shows this time: a timestamptz.
//!   Of a time that the clock skips, the instant that an unchanged clock would show; of a time that
//!   the clock shows twice, the later instant.
//!
//! The tree has a call of this function in place of the operator, so its type is known wherever
//! types are looked at. Cost: one look into the zone's table a row.

use std::sync::Arc;

use arrow::array::timezone::Tz;
use arrow::array::{Array, ArrayRef, AsArray, TimestampMicrosecondArray};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Field, FieldRef, IntervalMonthDayNanoType, IntervalUnit, TimeUnit, TimestampMicrosecondType,
};
use arrow::temporal_conversions::timestamp_us_to_datetime;
use chrono::{Duration, MappedLocalTime, Offset, TimeZone};
use datafusion_common::{Result as DfResult, ScalarValue, exec_datafusion_err, exec_err, plan_err};
use datafusion_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::error::SqlError;
use crate::resolve::type_names::{UTC, is_text, sql_name};
use crate::time::calendar::MICROS_A_SECOND;
use crate::time::columns::{of_arrow, zone_of};
use crate::time::interval::Interval;
use crate::time::moments::{End, MomentShift, micros_column, moved};

/// The name of the function that stands for the operator.
pub(crate) const AT_TIME_ZONE: &str = "__at_time_zone";

/// `__at_time_zone(moment, zone)`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct AtTimeZone {
    signature: Signature,
}

impl AtTimeZone {
    pub(crate) fn udf() -> Arc<ScalarUDF> {
        Arc::new(ScalarUDF::from(Self { signature: Signature::any(2, Volatility::Immutable) }))
    }
}

/// The type of a moment at a zone.
fn type_at(moment: &DataType) -> DfResult<DataType> {
    match moment {
        DataType::Timestamp(_, None) => Ok(DataType::Timestamp(TimeUnit::Microsecond, Some(UTC.into()))),
        DataType::Timestamp(..) | DataType::Date32 | DataType::Null => {
            Ok(DataType::Timestamp(TimeUnit::Microsecond, None))
        }
        is if is_text(is) => Ok(DataType::Timestamp(TimeUnit::Microsecond, None)),
        DataType::Time32(_) | DataType::Time64(_) => {
            let hint = "Add a day, as in (current_date + t) AT TIME ZONE 'Europe/Berlin', and cast the answer to time.";
            Err(SqlError::unsupported("AT TIME ZONE of a time of day, whose answer is a timetz,", hint).into())
        }
        other => plan_err!("operator AT TIME ZONE of {} does not exist", sql_name(other)),
    }
}

impl ScalarUDFImpl for AtTimeZone {
    fn name(&self) -> &str {
        AT_TIME_ZONE
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arg_types: &[DataType]) -> DfResult<DataType> {
        type_at(&arg_types[0])
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> DfResult<FieldRef> {
        if let Some(Some(zone)) =
            args.scalar_arguments.get(1).map(|zone| zone.and_then(ScalarValue::try_as_str).flatten())
            && zone_of(zone).is_none()
        {
            return plan_err!("time zone \"{zone}\" not recognized");
        }
        let is_nullable = args.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Arc::new(Field::new(self.name(), type_at(args.arg_fields[0].data_type())?, is_nullable)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let moments = args.args[0].to_array(args.number_rows)?;
        let zones = args.args[1].to_array(args.number_rows)?;
        if matches!(zones.data_type(), DataType::Interval(_)) {
            return Ok(ColumnarValue::Array(at_offsets(&moments, &zones)?));
        }
        let zones = cast(&zones, &DataType::Utf8View)?;
        let zones = zones.as_string_view();
        let is_clock = matches!(moments.data_type(), DataType::Timestamp(_, None));
        let of_micros = if is_clock { None } else { Some(UTC.into()) };
        let moments = match moments.data_type() {
            DataType::Date32 => Arc::new(micros_column(&moments)?),
            _ => cast(&moments, &DataType::Timestamp(TimeUnit::Microsecond, of_micros))?,
        };
        let moments = moments.as_primitive::<TimestampMicrosecondType>();
        let mut known: Option<(&str, Tz)> = None;
        let mut at = Vec::with_capacity(moments.len());
        for row in 0..moments.len() {
            if moments.is_null(row) || zones.is_null(row) {
                at.push(None);
                continue;
            }
            let name = zones.value(row);
            let zone = match known {
                Some((same, zone)) if same == name => zone,
                _ => match zone_of(name) {
                    Some(zone) => zone,
                    None => return exec_err!("time zone \"{name}\" not recognized"),
                },
            };
            known = Some((name, zone));
            let moment = moments.value(row);
            let shown = if End::of_micros(moment).is_some() {
                Some(moment)
            } else if is_clock {
                instant_of(moment, &zone)
            } else {
                clock_of(moment, &zone)
            };
            at.push(Some(shown.ok_or_else(|| exec_datafusion_err!("timestamp out of range"))?));
        }
        let at = TimestampMicrosecondArray::from(at);
        Ok(ColumnarValue::Array(match is_clock {
            true => Arc::new(at.with_timezone(UTC)) as ArrayRef,
            false => Arc::new(at),
        }))
    }
}

/// Moments at zones that are so far east of Greenwich.
fn at_offsets(moments: &ArrayRef, offsets: &ArrayRef) -> DfResult<ArrayRef> {
    let is_clock = matches!(moments.data_type(), DataType::Timestamp(_, None));
    let (moments, offsets) = (micros_column(moments)?, cast(offsets, &DataType::Interval(IntervalUnit::MonthDayNano))?);
    let offsets = offsets.as_primitive::<IntervalMonthDayNanoType>();
    let mut at = Vec::with_capacity(moments.len());
    for (moment, offset) in moments.iter().zip(offsets) {
        let (Some(moment), Some(offset)) = (moment, offset) else {
            at.push(None);
            continue;
        };
        let offset = of_arrow(offset);
        if offset.months != 0 || offset.days != 0 {
            return exec_err!("interval time zone must not include months or days");
        }
        let way = if is_clock { MomentShift::Earlier } else { MomentShift::Later };
        let whole_seconds = Interval { micros: offset.micros / MICROS_A_SECOND * MICROS_A_SECOND, ..offset };
        let shown = moved(moment, whole_seconds, way);
        at.push(Some(shown.ok_or_else(|| exec_datafusion_err!("timestamp out of range"))?));
    }
    let at = TimestampMicrosecondArray::from(at);
    Ok(match is_clock {
        true => Arc::new(at.with_timezone(UTC)),
        false => Arc::new(at),
    })
}

/// What a zone's clock shows at an instant; both in microseconds. `None` out of range.
pub(crate) fn clock_of(instant: i64, zone: &Tz) -> Option<i64> {
    let offset = zone.offset_from_utc_datetime(&timestamp_us_to_datetime(instant)?);
    instant.checked_add(i64::from(offset.fix().local_minus_utc()) * 1_000_000)
}

/// The instant at which a zone's clock shows a time; both in microseconds. `None` out of range.
pub(crate) fn instant_of(local: i64, zone: &Tz) -> Option<i64> {
    let clock = timestamp_us_to_datetime(local)?;
    let offset = match zone.offset_from_local_datetime(&clock) {
        MappedLocalTime::Single(offset) => offset,
        MappedLocalTime::Ambiguous(first, second) => {
            // The clock was put back: the lesser offset is that of the later instant.
            if first.fix().local_minus_utc() < second.fix().local_minus_utc() { first } else { second }
        }
        MappedLocalTime::None => zone.offset_from_utc_datetime(&clock.checked_sub_signed(Duration::days(1))?),
    };
    local.checked_sub(i64::from(offset.fix().local_minus_utc()) * 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skipped_and_repeated_hours_have_an_instant() {
        const HOUR: i64 = 3_600_000_000;
        let zone: Tz = "America/New_York".parse().unwrap();
        let day = |days: i64| days * 24 * HOUR;
        // 2024-03-10 02:30 is skipped, 2024-11-03 01:30 is shown twice.
        assert_eq!(instant_of(day(19_792) + 2 * HOUR, &zone), Some(day(19_792) + 7 * HOUR));
        assert_eq!(instant_of(day(20_030) + HOUR, &zone), Some(day(20_030) + 6 * HOUR));
    }
}
