//! The precision of a type of moments, as the syntax tree has it.

use datafusion_expr::sqlparser::ast::{DataType, TimezoneInfo};

use super::interval::PRECISION_MAX;

/// The type without its precision, and the precision, where it has one that rounds.
pub(crate) fn precision_of(data_type: &DataType) -> Option<(DataType, u8)> {
    let (plain, precision) = match data_type {
        DataType::Timestamp(Some(digits), zone) => (DataType::Timestamp(None, *zone), *digits),
        DataType::Time(Some(digits), zone @ (TimezoneInfo::None | TimezoneInfo::WithoutTimeZone)) => {
            (DataType::Time(None, *zone), *digits)
        }
        DataType::Custom(name, arguments) if name.to_string().eq_ignore_ascii_case("timestamptz") => {
            (DataType::Timestamp(None, TimezoneInfo::WithTimeZone), arguments.first()?.parse().ok()?)
        }
        _ => return None,
    };
    (precision < u64::from(PRECISION_MAX)).then(|| (plain, digits(precision)))
}

/// More digits than microseconds have mean nothing.
pub(crate) fn digits(precision: u64) -> u8 {
    u8::try_from(precision).unwrap_or(PRECISION_MAX).min(PRECISION_MAX)
}
