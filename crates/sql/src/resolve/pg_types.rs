//! Types under the numbers that PostgreSQL gives them in `pg_type`: what its protocol and its
//! catalog tell.

use std::sync::Arc;

use anabranch_batch::{TextLimit, TimePrecision, numeric};
use arrow::datatypes::{DataType, Field, IntervalUnit, TimeUnit};

use crate::functions::output::{is_plain_numeric, is_vector};
use crate::resolve::documents::{elements_limit_of, limit_of};

/// A type as PostgreSQL's clients are told it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PgType {
    /// Its number in `pg_type`.
    pub oid: u32,
    /// Bytes of a value; -1 when they differ.
    pub size: i16,
    /// Length, or precision and scale; -1 without.
    pub modifier: i32,
}

/// Numbers in `pg_type`, under the names of types.
pub mod oid {
    #![allow(missing_docs)]

    pub const BOOL: u32 = 16;
    pub const BYTEA: u32 = 17;
    pub const CHAR: u32 = 18;
    pub const NAME: u32 = 19;
    pub const INT8: u32 = 20;
    pub const INT2: u32 = 21;
    pub const INT2VECTOR: u32 = 22;
    pub const INT4: u32 = 23;
    pub const TEXT: u32 = 25;
    pub const OID: u32 = 26;
    pub const OIDVECTOR: u32 = 30;
    pub const JSON: u32 = 114;
    pub const FLOAT4: u32 = 700;
    pub const FLOAT8: u32 = 701;
    pub const UNKNOWN: u32 = 705;
    pub const BPCHAR: u32 = 1042;
    pub const VARCHAR: u32 = 1043;
    pub const DATE: u32 = 1082;
    pub const TIME: u32 = 1083;
    pub const TIMESTAMP: u32 = 1114;
    pub const TIMESTAMPTZ: u32 = 1184;
    pub const INTERVAL: u32 = 1186;
    pub const NUMERIC: u32 = 1700;
    pub const RECORD: u32 = 2249;
    pub const UUID: u32 = 2950;
    pub const UUID_ARRAY: u32 = 2951;
    pub const JSONB: u32 = 3802;
}

/// Types of elements, and of arrays of them.
const ARRAYS: &[(u32, u32)] = &[
    (oid::BOOL, 1000),
    (oid::BYTEA, 1001),
    (oid::CHAR, 1002),
    (oid::NAME, 1003),
    (oid::INT2, 1005),
    (oid::INT4, 1007),
    (oid::TEXT, 1009),
    (oid::BPCHAR, 1014),
    (oid::VARCHAR, 1015),
    (oid::INT8, 1016),
    (oid::FLOAT4, 1021),
    (oid::FLOAT8, 1022),
    (oid::OID, 1028),
    (oid::TIMESTAMP, 1115),
    (oid::DATE, 1182),
    (oid::TIME, 1183),
    (oid::TIMESTAMPTZ, 1185),
    (oid::INTERVAL, 1187),
    (oid::NUMERIC, 1231),
    (oid::UUID, oid::UUID_ARRAY),
    (oid::JSON, 199),
    (oid::JSONB, 3807),
    (oid::RECORD, 2287),
];

impl PgType {
    /// The type of a column of an answer.
    pub fn of(field: &Field) -> PgType {
        let of = |oid, size| PgType { oid, size, modifier: -1 };
        if is_plain_numeric(field) {
            return of(oid::NUMERIC, -1);
        }
        match field.data_type() {
            DataType::Boolean => of(oid::BOOL, 1),
            DataType::Int8 | DataType::Int16 | DataType::UInt8 => of(oid::INT2, 2),
            DataType::Int32 | DataType::UInt16 => of(oid::INT4, 4),
            DataType::Int64 => of(oid::INT8, 8),
            DataType::UInt32 => of(oid::OID, 4),
            DataType::Float16 | DataType::Float32 => of(oid::FLOAT4, 4),
            DataType::Float64 => of(oid::FLOAT8, 8),
            DataType::Decimal64(precision, scale) | DataType::Decimal128(precision, scale) => {
                let modifier = (i32::from(*precision) << 16 | i32::from(*scale) & 0xffff) + 4;
                PgType { oid: oid::NUMERIC, size: -1, modifier }
            }
            DataType::UInt64 | DataType::LargeBinary | DataType::Decimal256(..) => of(oid::NUMERIC, -1),
            DataType::Binary | DataType::BinaryView | DataType::FixedSizeBinary(_) => of(oid::BYTEA, -1),
            DataType::Date32 | DataType::Date64 => of(oid::DATE, 4),
            DataType::Time32(_) | DataType::Time64(_) => timed(field, oid::TIME),
            DataType::Timestamp(_, None) => timed(field, oid::TIMESTAMP),
            DataType::Timestamp(_, Some(_)) => timed(field, oid::TIMESTAMPTZ),
            DataType::Interval(_) | DataType::Duration(_) => of(oid::INTERVAL, 16),
            DataType::Struct(_) => of(oid::RECORD, -1),
            DataType::List(element) if is_vector(element) => match element.data_type() {
                DataType::Int16 => of(oid::INT2VECTOR, -1),
                _ => of(oid::OIDVECTOR, -1),
            },
            DataType::List(element) | DataType::LargeList(element) => of(array_of(element_oid(field, element)), -1),
            _ => text_type(field),
        }
    }
}

fn timed(field: &Field, oid: u32) -> PgType {
    let digits = TimePrecision::of(field).map_or(-1, |precision| i32::from(precision.0));
    PgType { oid, size: 8, modifier: digits }
}

fn text_type(field: &Field) -> PgType {
    let (oid, modifier) = match limit_of(field) {
        Some(TextLimit::Varchar(n)) => (oid::VARCHAR, length_modifier(n)),
        Some(TextLimit::Char(n)) => (oid::BPCHAR, length_modifier(n)),
        Some(TextLimit::Name) => return PgType { oid: oid::NAME, size: 64, modifier: -1 },
        Some(TextLimit::Letter) => return PgType { oid: oid::CHAR, size: 1, modifier: -1 },
        Some(TextLimit::Uuid) => return PgType { oid: oid::UUID, size: 16, modifier: -1 },
        Some(TextLimit::Json) => (oid::JSON, -1),
        Some(TextLimit::Jsonb) => (oid::JSONB, -1),
        None => (oid::TEXT, -1),
    };
    PgType { oid, size: -1, modifier }
}

fn length_modifier(n: u64) -> i32 {
    i32::try_from(n).ok().and_then(|n| n.checked_add(4)).unwrap_or(-1)
}

/// The type of an array's elements; those of an array of arrays are the innermost.
fn element_oid(array: &Field, element: &Field) -> u32 {
    match element.data_type() {
        DataType::List(inner) | DataType::LargeList(inner) => element_oid(array, inner),
        _ if is_numeric_array(array) => oid::NUMERIC,
        _ if let Some(limit) = elements_limit_of(array) => {
            PgType::of(&limit.declare(Field::new("", DataType::Utf8View, true))).oid
        }
        _ => PgType::of(element).oid,
    }
}

/// Whether an answer's column has arrays of plain numerics, which are shown as text.
fn is_numeric_array(array: &Field) -> bool {
    array.metadata().values().any(|name| name.starts_with("numeric["))
}

fn array_of(element: u32) -> u32 {
    ARRAYS.iter().find(|(of, _)| *of == element).map_or(1009, |(_, array)| *array)
}

/// The element type of an array type, or of a vector.
pub fn element_of(array: u32) -> Option<u32> {
    match array {
        oid::INT2VECTOR => return Some(oid::INT2),
        oid::OIDVECTOR => return Some(oid::OID),
        _ => {}
    }
    ARRAYS.iter().find(|(_, of)| *of == array).map(|(element, _)| *element)
}

/// The type that a client means by its number; `None` when it leaves the choice to the server, or
/// the type is not known here.
pub fn data_type(oid: u32) -> Option<DataType> {
    Some(match oid {
        oid::BOOL => DataType::Boolean,
        oid::BYTEA => DataType::BinaryView,
        oid::INT8 => DataType::Int64,
        oid::INT2 => DataType::Int16,
        oid::INT4 => DataType::Int32,
        oid::OID => DataType::UInt32,
        oid::TEXT | oid::NAME | oid::CHAR | oid::BPCHAR | oid::VARCHAR => DataType::Utf8View,
        oid::JSON | oid::JSONB | oid::UUID => DataType::Utf8View,
        oid::FLOAT4 => DataType::Float32,
        oid::FLOAT8 => DataType::Float64,
        oid::DATE => DataType::Date32,
        oid::TIME => DataType::Time64(TimeUnit::Microsecond),
        oid::TIMESTAMP => DataType::Timestamp(TimeUnit::Microsecond, None),
        oid::TIMESTAMPTZ => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        oid::INTERVAL => DataType::Interval(IntervalUnit::MonthDayNano),
        oid::NUMERIC => numeric::TYPE,
        array => {
            let element = data_type(element_of(array)?)?;
            DataType::List(Arc::new(Field::new("item", element, true)))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_have_the_types_of_postgresql() {
        let of = |data_type: DataType| PgType::of(&Field::new("a", data_type, true));
        assert_eq!(of(DataType::Decimal128(10, 2)).modifier, (10 << 16 | 2) + 4);
        assert_eq!(of(DataType::List(Arc::new(Field::new("item", DataType::Int32, true)))).oid, 1007);
        assert_eq!(of(DataType::List(Arc::new(Field::new("int2vector", DataType::Int16, true)))).oid, oid::INT2VECTOR);
        let varchar = TextLimit::Varchar(5).declare(Field::new("a", DataType::Utf8View, true));
        assert_eq!(PgType::of(&varchar), PgType { oid: oid::VARCHAR, size: -1, modifier: 9 });
    }

    #[test]
    fn every_type_that_can_be_given_is_told_as_itself() {
        let plain = [oid::BOOL, oid::INT8, oid::INT2, oid::INT4, oid::OID, oid::TEXT, oid::FLOAT4, oid::FLOAT8];
        let times = [oid::DATE, oid::TIME, oid::TIMESTAMP, oid::TIMESTAMPTZ, oid::INTERVAL, oid::NUMERIC, oid::BYTEA];
        for oid in plain.into_iter().chain(times) {
            let given = data_type(oid).unwrap();
            assert_eq!(PgType::of(&Field::new("a", given, true)).oid, oid);
            let array = array_of(oid);
            assert_eq!(PgType::of(&Field::new("a", data_type(array).unwrap(), true)).oid, array);
        }
    }
}
