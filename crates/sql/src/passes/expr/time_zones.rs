//! `AT TIME ZONE`, as PostgreSQL types it.
//!
//! - `timestamptz AT TIME ZONE z` is the clock of that zone at that instant: a timestamp.
//!   DataFusion would keep the instant.
//! - `timestamp AT TIME ZONE z` is the instant at which that clock shows this time: a timestamptz.
//!   Of a time that the clock skips, the instant that an unchanged clock would show; of a time that
//!   the clock shows twice, the later instant.

use std::sync::Arc;

use arrow::array::timezone::Tz;
use arrow::array::{ArrayRef, AsArray, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, TimeUnit, TimestampMicrosecondType};
use arrow::temporal_conversions::timestamp_us_to_datetime;
use chrono::{Duration, MappedLocalTime, Offset, TimeZone};
use datafusion_common::tree_node::Transformed;
use datafusion_common::{DFSchema, Result as DfResult, exec_datafusion_err, exec_err, plan_err};
use datafusion_expr::{Expr, ExprSchemable, cast};

use crate::functions::conversions::Conversion;
use crate::resolve::type_names::UTC;

/// Rewrites the cast to nanoseconds in a zone that DataFusion's planner makes of `AT TIME ZONE`.
pub(crate) fn at_time_zone(expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    let Expr::Cast(conversion) = &expr else {
        return Ok(Transformed::no(expr));
    };
    let DataType::Timestamp(TimeUnit::Nanosecond, Some(zone)) = conversion.field.data_type() else {
        return Ok(Transformed::no(expr));
    };
    if zone.parse::<Tz>().is_err() {
        return plan_err!("time zone \"{zone}\" not recognized");
    }
    let value = conversion.expr.as_ref().clone();
    let micros = |zone: &str| DataType::Timestamp(TimeUnit::Microsecond, Some(zone.into()));
    let planned = match value.get_type(schema)? {
        DataType::Timestamp(_, None) => {
            let value = cast(value, DataType::Timestamp(TimeUnit::Microsecond, None));
            cast(Conversion::call(format!("instant_in_{zone}"), value, &micros(zone), instants), micros(UTC))
        }
        _ => {
            let there = cast(cast(value, micros(UTC)), micros(zone));
            datafusion_functions::datetime::to_local_time().call(vec![there])
        }
    };
    Ok(Transformed::yes(planned))
}

/// Times of a zone's clock as instants.
fn instants(values: &ArrayRef, to: &DataType) -> DfResult<ArrayRef> {
    let DataType::Timestamp(_, Some(name)) = to else {
        return exec_err!("instants have a zone");
    };
    let zone: Tz = name.parse()?;
    let locals = values.as_primitive::<TimestampMicrosecondType>();
    let instant = |local| instant_of(local, &zone).ok_or_else(|| exec_datafusion_err!("timestamp out of range"));
    let instants: TimestampMicrosecondArray =
        locals.iter().map(|local| local.map(instant).transpose()).collect::<DfResult<_>>()?;
    Ok(Arc::new(instants.with_timezone(Arc::clone(name))))
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
