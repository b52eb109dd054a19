//! Constants of a program, and how values look as columns.
//!
//! Numbers and unsigned numbers are 64-bit integers, floats have 64 bits, symbols are text. Records
//! and branches are text too ([`record`](crate::record)), so SQL reads and compares them.

use arrow::datatypes::DataType;
use datafusion_common::ScalarValue;

/// A constant.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A symbol, or a record in its text form.
    Text(String),
    /// A number, or an unsigned number.
    Number(i64),
    /// A float.
    Float(f64),
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Text(text.to_owned())
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Value {
        Value::Number(number)
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Value {
        Value::Float(number)
    }
}

impl Value {
    pub(crate) fn to_scalar(&self) -> ScalarValue {
        match self {
            Value::Text(text) => ScalarValue::Utf8View(Some(text.clone())),
            Value::Number(number) => ScalarValue::Int64(Some(*number)),
            Value::Float(number) => ScalarValue::Float64(Some(*number)),
        }
    }
}

/// What the values of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Base {
    Symbol,
    Number,
    Unsigned,
    Float,
    /// A record type, by its position among [`Types::records`](crate::check::types::Types).
    Record(usize),
    /// An algebraic data type, by its position.
    Branches(usize),
}

impl Base {
    pub fn data_type(self) -> DataType {
        match self {
            Base::Symbol | Base::Record(_) | Base::Branches(_) => DataType::Utf8View,
            Base::Number | Base::Unsigned => DataType::Int64,
            Base::Float => DataType::Float64,
        }
    }

    /// The type's name in `CREATE TABLE`.
    pub fn sql_name(self) -> &'static str {
        match self {
            Base::Symbol | Base::Record(_) | Base::Branches(_) => "text",
            Base::Number | Base::Unsigned => "bigint",
            Base::Float => "double precision",
        }
    }

    pub fn is_numeric(self) -> bool {
        matches!(self, Base::Number | Base::Unsigned | Base::Float)
    }

    pub fn is_structured(self) -> bool {
        matches!(self, Base::Record(_) | Base::Branches(_))
    }
}
