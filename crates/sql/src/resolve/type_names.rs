//! What a type is called in SQL, and which type stands in its place where batches lack it.
//!
//! Nothing here fails: errors name types, so their file stands above this one.

use std::sync::Arc;

use anabranch_batch::numeric;
use arrow::datatypes::{DataType, Field, IntervalUnit, TimeUnit};

/// Digits of a decimal, at most.
pub(crate) const DECIMAL_DIGITS_MAX: u8 = 38;

/// The one zone of `timestamptz` values.
pub(crate) const UTC: &str = "UTC";

/// The type that a column of a plan has in place of `data_type`: the planner's functions yield more
/// types than batches carry.
pub(crate) fn canonical(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Null => DataType::Utf8View,
        DataType::Binary => DataType::BinaryView,
        DataType::Date64 => DataType::Timestamp(TimeUnit::Microsecond, None),
        DataType::Time32(_) | DataType::Time64(_) => DataType::Time64(TimeUnit::Microsecond),
        DataType::Timestamp(_, None) => DataType::Timestamp(TimeUnit::Microsecond, None),
        DataType::Timestamp(_, Some(_)) => DataType::Timestamp(TimeUnit::Microsecond, Some(UTC.into())),
        DataType::Duration(_) | DataType::Interval(_) => DataType::Interval(IntervalUnit::MonthDayNano),
        DataType::Decimal32(precision, scale) | DataType::Decimal64(precision, scale) => {
            DataType::Decimal128(*precision, *scale)
        }
        DataType::Decimal256(_, scale) => DataType::Decimal128(38, *scale),
        DataType::Float16 => DataType::Float32,
        DataType::Dictionary(_, value) => canonical(value),
        DataType::List(element) => {
            DataType::List(Arc::new(element.as_ref().clone().with_data_type(canonical(element.data_type()))))
        }
        other => other.clone(),
    }
}

/// Whether a type is one of numbers, plain `numeric` among them.
pub(crate) fn is_number(data_type: &DataType) -> bool {
    data_type.is_numeric() || *data_type == numeric::TYPE
}

/// Whether a type is text.
pub(crate) fn is_text(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

/// The SQL name of an Arrow type, for messages and `DESCRIBE`.
pub fn sql_name(data_type: &DataType) -> String {
    match data_type {
        DataType::Boolean => "boolean".into(),
        DataType::Int8 => "tinyint".into(),
        DataType::Int16 => "smallint".into(),
        DataType::Int32 => "integer".into(),
        DataType::Int64 => "bigint".into(),
        DataType::Float32 => "real".into(),
        DataType::Float64 => "double precision".into(),
        DataType::Decimal128(precision, scale) => format!("numeric({precision},{scale})"),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null => "text".into(),
        DataType::Binary | DataType::BinaryView => "bytea".into(),
        DataType::LargeBinary => "numeric".into(),
        DataType::Date32 | DataType::Date64 => "date".into(),
        DataType::Time32(_) | DataType::Time64(_) => "time".into(),
        DataType::Timestamp(_, None) => "timestamp".into(),
        DataType::Timestamp(_, Some(_)) => "timestamptz".into(),
        DataType::Interval(_) | DataType::Duration(_) => "interval".into(),
        DataType::List(field) => format!("{}[]", sql_name(field.data_type())),
        other => other.to_string().to_lowercase(),
    }
}

/// Whether lists of these elements are vectors of PostgreSQL's catalog: their elements are named
/// like their type, `int2vector` or `oidvector`. Their text has no braces.
pub fn is_vector(element: &Field) -> bool {
    matches!(element.name().as_str(), "int2vector" | "oidvector")
}
