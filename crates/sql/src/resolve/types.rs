//! SQL types as Arrow types, in one place for tables, casts and functions.
//!
//! | SQL | Arrow |
//! |---|---|
//! | `smallint`, `integer`, `bigint` | `Int16`, `Int32`, `Int64` |
//! | `real`, `double precision`, `float(n)` | `Float32`, `Float64` |
//! | `numeric(p, s)`; `numeric` | `Decimal128(p, s)`; `LargeBinary`, which no other type is: see `anabranch_batch::numeric` |
//! | `text` | `Utf8View` |
//! | `varchar(n)`, `char(n)`, `uuid`, `json`, `jsonb` | `Utf8View`; the length or form is the column's [`TextLimit`] |
//! | `bytea` | `BinaryView` |
//! | `date`, `time`, `timestamp`, `timestamptz` | `Date32`, `Time64(us)`, `Timestamp(us)`, `Timestamp(us, "UTC")` |
//! | `interval` | `Interval(MonthDayNano)` |
//! | `t[]` | `List(t)` |

use std::sync::Arc;

use anabranch_batch::{TextLimit, TimePrecision, numeric};
use arrow::datatypes::{DataType, Field, FieldRef, IntervalUnit, TimeUnit};
use datafusion_common::DataFusionError;
use datafusion_expr::planner::TypePlanner;
use datafusion_expr::sqlparser::ast::{
    ArrayElemTypeDef, CharacterLength, DataType as SqlType, ExactNumberInfo, IntervalFields, TimezoneInfo,
};

use crate::error::{ErrorKind, Result, SqlError};
use crate::resolve::documents::{elements_limit_of, limit_of};
use crate::resolve::suggest::nearest;
use crate::resolve::type_marks::{array_name, declared_type_of, type_within};
use crate::resolve::type_names::UTC;
pub use crate::resolve::type_names::sql_name;
use crate::syntax::names::fold;
use crate::time::precision::precision_of;

/// The Arrow type of an SQL type.
///
/// # Errors
/// `Unsupported` or `UnknownName`, naming the type.
pub fn arrow_type(sql: &SqlType) -> Result<DataType> {
    text_limit(sql)?;
    Ok(match sql {
        SqlType::Bool | SqlType::Boolean => DataType::Boolean,
        SqlType::TinyInt(_) => DataType::Int8,
        SqlType::SmallInt(_) | SqlType::Int2(_) | SqlType::Int16 => DataType::Int16,
        SqlType::Int(_) | SqlType::Integer(_) | SqlType::Int4(_) | SqlType::Int32 | SqlType::MediumInt(_) => {
            DataType::Int32
        }
        SqlType::BigInt(_) | SqlType::Int8(_) | SqlType::Int64 => DataType::Int64,
        SqlType::UInt8 | SqlType::UTinyInt => DataType::UInt8,
        SqlType::UInt16 | SqlType::USmallInt => DataType::UInt16,
        SqlType::UInt32 => DataType::UInt32,
        SqlType::UInt64 | SqlType::UBigInt => DataType::UInt64,
        SqlType::Real | SqlType::Float4 | SqlType::Float32 => DataType::Float32,
        SqlType::Float(ExactNumberInfo::Precision(bits)) if *bits <= 24 => DataType::Float32,
        SqlType::Float(_) | SqlType::Double(_) | SqlType::DoublePrecision | SqlType::Float8 | SqlType::Float64 => {
            DataType::Float64
        }
        SqlType::Numeric(info) | SqlType::Decimal(info) | SqlType::Dec(info) => decimal(info)?,
        SqlType::Text
        | SqlType::Varchar(_)
        | SqlType::CharacterVarying(_)
        | SqlType::CharVarying(_)
        | SqlType::Char(_)
        | SqlType::Character(_)
        | SqlType::Nvarchar(_)
        | SqlType::String(_)
        | SqlType::Clob(_)
        | SqlType::Uuid
        | SqlType::JSON
        | SqlType::JSONB => DataType::Utf8View,
        SqlType::Bytea | SqlType::Blob(_) | SqlType::Binary(_) | SqlType::Varbinary(_) | SqlType::Bytes(_) => {
            DataType::BinaryView
        }
        SqlType::Date | SqlType::Date32 => DataType::Date32,
        SqlType::Time(_, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => DataType::Time64(TimeUnit::Microsecond),
        SqlType::Timestamp(_, TimezoneInfo::WithTimeZone | TimezoneInfo::Tz) => {
            DataType::Timestamp(TimeUnit::Microsecond, Some(UTC.into()))
        }
        SqlType::Timestamp(..) | SqlType::Datetime(_) | SqlType::TimestampNtz(_) => {
            DataType::Timestamp(TimeUnit::Microsecond, None)
        }
        SqlType::Interval { .. } => DataType::Interval(IntervalUnit::MonthDayNano),
        SqlType::Array(
            ArrayElemTypeDef::SquareBracket(element, _)
            | ArrayElemTypeDef::AngleBracket(element)
            | ArrayElemTypeDef::Parenthesis(element),
        ) => DataType::List(Arc::new(Field::new_list_field(arrow_type(element)?, true))),
        SqlType::Custom(name, _) => return custom(&name.to_string()),
        other => return Err(unsupported(&other.to_string())),
    })
}

/// The name of a type that is none of the built-in ones.
pub(crate) fn user_name(sql: &SqlType) -> Option<String> {
    let SqlType::Custom(name, modifiers) = sql else { return None };
    let parts: Option<Vec<String>> = name.0.iter().map(|part| part.as_ident().map(fold)).collect();
    let own = match parts?.as_slice() {
        [own] => own.clone(),
        [schema, own] if schema == "public" => own.clone(),
        _ => return None,
    };
    (modifiers.is_empty() && arrow_type(sql).is_err()).then_some(own)
}

/// The length or form that a type declares. `char` alone is `char(1)`.
///
/// # Errors
/// `Invalid` for a length of zero.
pub(crate) fn text_limit(sql: &SqlType) -> Result<Option<TextLimit>> {
    let (varying, length) = match sql {
        SqlType::Varchar(length)
        | SqlType::CharacterVarying(length)
        | SqlType::CharVarying(length)
        | SqlType::Nvarchar(length) => (true, length),
        SqlType::Char(length) | SqlType::Character(length) => (false, length),
        SqlType::Custom(name, arguments) if arguments.is_empty() => return Ok(named_limit(&name.to_string())),
        SqlType::Uuid => return Ok(Some(TextLimit::Uuid)),
        SqlType::JSON => return Ok(Some(TextLimit::Json)),
        SqlType::JSONB => return Ok(Some(TextLimit::Jsonb)),
        _ => return Ok(None),
    };
    let n = match length {
        Some(CharacterLength::IntegerLength { length, .. }) => *length,
        None if !varying => 1,
        _ => TextLimit::UNBOUNDED,
    };
    if n == 0 {
        return Err(SqlError::new(ErrorKind::Invalid, format!("length for type {sql} must be at least 1")));
    }
    Ok(Some(if varying { TextLimit::Varchar(n) } else { TextLimit::Char(n) }))
}

/// The form that an array declares for its elements: documents and uuids.
///
/// # Errors
/// None that a user can cause.
pub(crate) fn element_limit(sql: &SqlType) -> Result<Option<TextLimit>> {
    let SqlType::Array(
        ArrayElemTypeDef::SquareBracket(element, _)
        | ArrayElemTypeDef::AngleBracket(element)
        | ArrayElemTypeDef::Parenthesis(element),
    ) = sql
    else {
        return Ok(None);
    };
    let limit = if matches!(**element, SqlType::Array(_)) { element_limit(element)? } else { text_limit(element)? };
    Ok(limit.filter(|limit| matches!(limit, TextLimit::Uuid | TextLimit::Json | TextLimit::Jsonb)))
}

/// The form of a text type that the parser does not know.
fn named_limit(name: &str) -> Option<TextLimit> {
    let name = name.to_lowercase();
    match name.strip_prefix("pg_catalog.").unwrap_or(&name) {
        "name" => Some(TextLimit::Name),
        "\"char\"" => Some(TextLimit::Letter),
        "bpchar" => Some(TextLimit::Char(TextLimit::UNBOUNDED)),
        "varchar" => Some(TextLimit::Varchar(TextLimit::UNBOUNDED)),
        "uuid" => Some(TextLimit::Uuid),
        "json" => Some(TextLimit::Json),
        "jsonb" => Some(TextLimit::Jsonb),
        _ => None,
    }
}

/// The precision that a column of times declares.
///
/// # Errors
/// `Unsupported` for columns of intervals that lack their last fields.
pub(crate) fn time_precision(sql: &SqlType) -> Result<Option<TimePrecision>> {
    use IntervalFields as F;
    match sql {
        SqlType::Interval {
            fields: Some(F::Year | F::Month | F::Day | F::Hour | F::Minute | F::YearToMonth), ..
        }
        | SqlType::Interval { fields: Some(F::DayToHour | F::DayToMinute | F::HourToMinute), .. } => {
            let hint = "Write interval, and cast the values to the fields that are wanted.";
            Err(SqlError::unsupported(format!("a column of type {}", sql.to_string().to_lowercase()), hint))
        }
        SqlType::Interval { precision, .. } => {
            Ok(precision.and_then(|digits| u8::try_from(digits).ok()).map(TimePrecision))
        }
        other => Ok(precision_of(other).map(|(_, digits)| TimePrecision(digits))),
    }
}

/// A name as it is written.
fn quoted_where_needed(name: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte == b'_' || byte.is_ascii_digit();
    match name.bytes().all(is_plain) && !name.starts_with(|first: char| first.is_ascii_digit()) {
        true => name.to_owned(),
        false => format!("\"{}\"", name.replace('"', "\"\"")),
    }
}

/// The SQL name of a relation's column type, with its declared length or precision.
pub fn column_type_name(field: &Field) -> String {
    if let Some(user) = declared_type_of(field) {
        return quoted_where_needed(user);
    }
    if let (Some(user), DataType::List(_)) = (type_within(field), field.data_type()) {
        return array_name(&quoted_where_needed(user));
    }
    if let (Some(limit), DataType::List(_)) = (elements_limit_of(field), field.data_type()) {
        return sql_name(field.data_type()).replacen("text", limit.type_name(), 1);
    }
    match (limit_of(field), TimePrecision::of(field)) {
        (Some(limit), _) => limit.to_string(),
        (None, Some(TimePrecision(digits))) => format!("{}({digits})", sql_name(field.data_type())),
        (None, None) => sql_name(field.data_type()),
    }
}

fn decimal(info: &ExactNumberInfo) -> Result<DataType> {
    let (precision, scale) = match info {
        ExactNumberInfo::None => return Ok(numeric::TYPE),
        ExactNumberInfo::Precision(precision) => (*precision, 0),
        ExactNumberInfo::PrecisionAndScale(precision, scale) => (*precision, *scale),
    };
    if precision == 0 || precision > 38 || scale < 0 || scale as u64 > precision {
        return Err(SqlError::new(ErrorKind::Invalid, format!("numeric({precision}, {scale}) is out of range"))
            .with_detail("The precision is 1 to 38, and the scale is 0 to the precision."));
    }
    Ok(DataType::Decimal128(precision as u8, scale as i8))
}

/// The name of a type whose values are numbers that are written as names: `regclass` and others.
pub(crate) fn is_reg(name: &str) -> Option<&'static str> {
    const REG: [&str; 7] = ["regclass", "regtype", "regproc", "regprocedure", "regnamespace", "regrole", "regoper"];
    let name = plain_name(name);
    REG.into_iter().find(|reg| *reg == name)
}

/// A type's name in lower case, without the schema of the built-in ones.
fn plain_name(name: &str) -> String {
    let name = name.to_lowercase().replace('"', "");
    name.strip_prefix("pg_catalog.").map(str::to_owned).unwrap_or(name)
}

/// A built-in type by a name that the parser does not know as one, as those with a schema are.
fn built_in(name: &str) -> Option<DataType> {
    Some(match name {
        "oid" | "xid" | "cid" => DataType::UInt32,
        "bool" | "boolean" => DataType::Boolean,
        "int2" => DataType::Int16,
        "int4" | "int" | "integer" => DataType::Int32,
        "int8" | "bigint" => DataType::Int64,
        "float4" => DataType::Float32,
        "float8" => DataType::Float64,
        "numeric" => numeric::TYPE,
        "text" | "varchar" | "char" | "uuid" | "json" | "jsonb" | "pg_node_tree" | "unknown" => DataType::Utf8View,
        "sql_identifier" | "character_data" | "yes_or_no" => DataType::Utf8View,
        "bytea" => DataType::BinaryView,
        "date" => DataType::Date32,
        "timestamp" => DataType::Timestamp(TimeUnit::Microsecond, None),
        "int2vector" => DataType::List(Arc::new(Field::new_list_field(DataType::Int16, true))),
        "oidvector" => DataType::List(Arc::new(Field::new_list_field(DataType::UInt32, true))),
        _ => return None,
    })
}

/// PostgreSQL's own name of a type, which names of arrays are made of: `_int4`.
fn internal(name: &str) -> Option<DataType> {
    Some(match name {
        "int2" => DataType::Int16,
        "int4" => DataType::Int32,
        "int8" => DataType::Int64,
        "float4" => DataType::Float32,
        "float8" => DataType::Float64,
        "bool" => DataType::Boolean,
        "text" | "varchar" | "bpchar" | "name" => DataType::Utf8View,
        "date" => DataType::Date32,
        "timestamp" => DataType::Timestamp(TimeUnit::Microsecond, None),
        "timestamptz" => DataType::Timestamp(TimeUnit::Microsecond, Some(UTC.into())),
        _ => return None,
    })
}

fn custom(name: &str) -> Result<DataType> {
    let plain = plain_name(name);
    if let Some(built_in) = built_in(&plain) {
        return Ok(built_in);
    }
    match plain.as_str() {
        "timestamptz" => Ok(DataType::Timestamp(TimeUnit::Microsecond, Some(UTC.into()))),
        "string" | "citext" | "name" | "bpchar" | "nchar" => Ok(DataType::Utf8View),
        "serial" | "bigserial" | "smallserial" => {
            Err(SqlError::unsupported(format!("type {name}"), "Write bigint and give the values in INSERT."))
        }
        other if refused(other).is_some() => Err(unsupported(other)),
        other if let Some(element) = other.strip_prefix('_').and_then(internal) => {
            Ok(DataType::List(Arc::new(Field::new_list_field(element, true))))
        }
        other => {
            let known = [
                "smallint",
                "integer",
                "bigint",
                "real",
                "double precision",
                "numeric",
                "decimal",
                "text",
                "varchar",
                "char",
                "uuid",
                "json",
                "jsonb",
                "bytea",
                "date",
                "time",
                "timestamp",
                "timestamptz",
                "interval",
                "boolean",
            ];
            let hint =
                nearest(other, known.into_iter()).map(|name| format!("Perhaps you meant {name}.")).unwrap_or_default();
            Err(SqlError::new(ErrorKind::UnknownName, format!("type \"{other}\" does not exist")).with_hint(hint))
        }
    }
}

/// What to write in place of types, and of their functions.
pub(crate) const ADDRESSES: &str = "Keep the address as text; split_part(a, '/', 1) takes the mask away.";
pub(crate) const RANGES: &str = "Keep the bounds in two columns: a and b meet where a.low < b.high AND b.low < a.high.";
pub(crate) const WORDS: &str = "Match words by regular expressions: text ~* '\\mword\\M'.";

/// Types of PostgreSQL that there are not, and what to use.
const REFUSED_TYPES: &[(&[&str], &str)] = &[
    (&["money"], "Use numeric(12, 2), and to_char(x, 'FM999,999,990.00') to show it."),
    (&["inet", "cidr", "macaddr", "macaddr8"], ADDRESSES),
    (&["int4range", "int8range", "numrange", "daterange", "tsrange", "tstzrange"], RANGES),
    (
        &["int4multirange", "int8multirange", "nummultirange", "datemultirange", "tsmultirange", "tstzmultirange"],
        "Keep a row for each range, with the bounds in two columns.",
    ),
    (&["bit", "bit varying", "varbit"], "Use integer or bigint, with & | # ~ << and >>, or bytea."),
    (
        &["point", "box", "circle", "line", "lseg", "path", "polygon"],
        "Keep the coordinates in columns of double precision.",
    ),
    (&["tsvector", "tsquery"], WORDS),
    (&["xml"], "Keep the document as text, or as jsonb."),
    (&["timetz", "time with time zone"], "Use timestamptz, or time without a zone."),
];

/// What to use in place of a type that there is not.
pub(crate) fn refused(name: &str) -> Option<&'static str> {
    let name = name.to_lowercase();
    let plain = name.split('(').next().unwrap_or_default().trim_end();
    REFUSED_TYPES.iter().find(|(names, _)| names.contains(&plain)).map(|(_, hint)| *hint)
}

fn unsupported(name: &str) -> SqlError {
    let hint = refused(name).unwrap_or("Use one of the types that docs/semantics.md lists, for example text.");
    SqlError::unsupported(format!("type {name}"), hint)
}

/// Hands [`arrow_type`] to DataFusion's planner.
#[derive(Debug)]
pub(crate) struct Types;

impl TypePlanner for Types {
    fn plan_type_field(&self, sql: &SqlType) -> std::result::Result<Option<FieldRef>, DataFusionError> {
        let data_type = arrow_type(sql)?;
        Ok(Some(Arc::new(Field::new("", data_type, true))))
    }
}
