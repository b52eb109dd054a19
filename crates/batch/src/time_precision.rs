//! Declared precisions of time columns: `timestamp(3)`, `timestamptz(0)`, `time(1)`, `interval(2)`.
//!
//! Arrow has no such types: rows carry microseconds, and the precision travels in the metadata of a
//! relation's field. Law, as PostgreSQL assigns: values are rounded, halves away from zero;
//! timestamps count from 2000-01-01 for that. Cost: one pass over the values.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::{
    DataType, Field, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit, Time64MicrosecondType, TimeUnit,
    TimestampMicrosecondType,
};

/// The key in a field's metadata; the value is the number of digits.
const KEY: &str = "anabranch.time_precision";

/// Digits of a second that microseconds have.
const DIGITS_MAX: u8 = 6;

/// 2000-01-01 in microseconds since the epoch.
const MICROS_OF_2000: i64 = 946_684_800_000_000;

const NANOS_A_MICRO: i64 = 1000;

/// Digits of the second's fraction that a column keeps, 0 to 6.
///
/// ```
/// use anabranch_batch::TimePrecision;
/// use arrow::datatypes::{DataType, Field, TimeUnit};
/// let field = Field::new("at", DataType::Timestamp(TimeUnit::Microsecond, None), true);
/// assert_eq!(TimePrecision::of(&TimePrecision(3).declare(field)), Some(TimePrecision(3)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimePrecision(pub u8);

impl TimePrecision {
    /// The precision that a field declares.
    pub fn of(field: &Field) -> Option<TimePrecision> {
        field.metadata().get(KEY)?.parse().ok().map(TimePrecision)
    }

    /// The field with this precision declared.
    pub fn declare(self, field: Field) -> Field {
        field.with_metadata([(KEY.to_string(), self.0.to_string())].into())
    }

    /// The column as it is stored; a column that has no time as it is. `None` if rounding leaves
    /// the range of the type.
    pub fn round_column(self, column: &ArrayRef) -> Option<ArrayRef> {
        let data_type = column.data_type();
        Some(match data_type {
            DataType::Timestamp(TimeUnit::Microsecond, _) => {
                let moments = column.as_primitive::<TimestampMicrosecondType>();
                let round = |micros: i64| {
                    // (These are the ends of time.)
                    if micros == i64::MAX || micros == i64::MIN {
                        return Some(micros);
                    }
                    let rounded = self.round(micros.checked_sub(MICROS_OF_2000)?)?;
                    rounded.checked_add(MICROS_OF_2000)
                };
                let rounded = moments.try_unary::<_, TimestampMicrosecondType, ()>(|micros| round(micros).ok_or(()));
                Arc::new(rounded.ok()?.with_data_type(data_type.clone()))
            }
            DataType::Time64(TimeUnit::Microsecond) => {
                let times = column.as_primitive::<Time64MicrosecondType>();
                let rounded = times.try_unary::<_, Time64MicrosecondType, ()>(|micros| self.round(micros).ok_or(()));
                Arc::new(rounded.ok()?)
            }
            DataType::Interval(IntervalUnit::MonthDayNano) => {
                let intervals = column.as_primitive::<IntervalMonthDayNanoType>();
                let round = |interval: IntervalMonthDayNano| {
                    let micros = self.round(interval.nanoseconds / NANOS_A_MICRO)?;
                    let nanos = micros.checked_mul(NANOS_A_MICRO)?;
                    Some(IntervalMonthDayNano::new(interval.months, interval.days, nanos))
                };
                let rounded = intervals.try_unary::<_, IntervalMonthDayNanoType, ()>(|value| round(value).ok_or(()));
                Arc::new(rounded.ok()?)
            }
            _ => column.clone(),
        })
    }

    /// Microseconds with so many digits of the second's fraction, halves away from zero; `None` on
    /// overflow.
    pub fn round(self, micros: i64) -> Option<i64> {
        if self.0 >= DIGITS_MAX {
            return Some(micros);
        }
        let unit = 10i64.pow(u32::from(DIGITS_MAX - self.0));
        Some(micros.checked_add(micros.signum() * (unit / 2))? / unit * unit)
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::TimestampMicrosecondArray;

    use super::*;

    #[test]
    fn halves_go_away_from_the_year_2000() {
        let moments: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![
            MICROS_OF_2000 + 1_500_000,
            MICROS_OF_2000 - 1_500_000,
            MICROS_OF_2000 + 1_499_999,
        ]));
        let rounded = TimePrecision(0).round_column(&moments).expect("they are in range");
        let since = rounded.as_primitive::<TimestampMicrosecondType>().values().iter().map(|at| at - MICROS_OF_2000);
        assert_eq!(since.collect::<Vec<_>>(), [2_000_000, -2_000_000, 1_000_000]);
        assert_eq!(TimePrecision(3).round(-1_500), Some(-2_000));
    }
}
