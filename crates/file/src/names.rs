//! Types and values as messages show them.

use anabranch_batch::TextLimit;
use arrow::datatypes::{DataType, Field, TimeUnit};

/// A column's type as SQL writes it, with its declared length.
pub(crate) fn column_type(field: &Field) -> String {
    TextLimit::of(field).map_or_else(|| type_name(field.data_type()), |limit| limit.to_string())
}

/// A type as SQL writes it.
pub(crate) fn type_name(data_type: &DataType) -> String {
    match data_type {
        DataType::Boolean => "boolean".into(),
        DataType::Int8 => "tinyint".into(),
        DataType::Int16 => "smallint".into(),
        DataType::Int32 => "integer".into(),
        DataType::Int64 => "bigint".into(),
        DataType::Float32 => "real".into(),
        DataType::Float64 => "double precision".into(),
        DataType::Decimal128(precision, scale) | DataType::Decimal256(precision, scale) => {
            format!("numeric({precision},{scale})")
        }
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "text".into(),
        DataType::Binary | DataType::BinaryView => "bytea".into(),
        DataType::LargeBinary => "numeric".into(),
        DataType::Date32 | DataType::Date64 => "date".into(),
        DataType::Time32(_) | DataType::Time64(_) => "time".into(),
        DataType::Timestamp(
            TimeUnit::Second | TimeUnit::Millisecond | TimeUnit::Microsecond | TimeUnit::Nanosecond,
            zone,
        ) => {
            if zone.is_some() {
                "timestamp with time zone".into()
            } else {
                "timestamp".into()
            }
        }
        DataType::Interval(_) => "interval".into(),
        other => other.to_string(),
    }
}

/// `text` in quotes for a message, cut if it is long.
pub(crate) fn quoted(text: &str) -> String {
    const SHOWN_MAX: usize = 60;
    if text.chars().count() <= SHOWN_MAX {
        return format!("'{}'", text.escape_debug());
    }
    let head: String = text.chars().take(SHOWN_MAX).collect();
    format!("'{}...'", head.escape_debug())
}
