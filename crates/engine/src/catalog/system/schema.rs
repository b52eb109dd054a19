//! Which columns system relations have. The lists were written by `tools/system_relations.py`.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use arrow::array::ListArray;
use arrow::datatypes::{DataType, Field, FieldRef, IntervalUnit, Schema, SchemaRef, TimeUnit};
use datafusion_common::ScalarValue;

use crate::error::Error;

/// Lines `schema.name oid`, each with lines `  column type` below; `!` forbids NULL.
const RELATIONS: &str = include_str!("relations.txt");

/// Those that tell of the engine, likewise.
const OF_ENGINE: &str = include_str!("engine.txt");

/// The relation of operators that stand. Its rows are told by workers, not by the catalog.
pub(crate) const OPERATORS: &str = "anabranch_operators";
/// What they have done on each worker, and what of their rows has left it.
pub(crate) const SHARDS: &str = "anabranch_shards";

static ALL: LazyLock<BTreeMap<String, SystemRelation>> = LazyLock::new(all);

/// A system relation.
#[derive(Clone, Debug)]
pub(crate) struct SystemRelation {
    /// Its number in `pg_class`.
    pub oid: u32,
    pub schema: SchemaRef,
}

/// The system relation of that name: `pg_class`, `information_schema.tables`.
pub(crate) fn relation(name: &str) -> Option<&'static SystemRelation> {
    ALL.get(name)
}

/// The number of a relation of `pg_catalog`.
pub(super) fn oid_of(name: &str) -> Option<u32> {
    relation(name).map(|relation| relation.oid)
}

/// A value of a row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SystemCell {
    Bool(bool),
    /// A whole number of any width.
    Number(i64),
    Text(String),
    Numbers(Vec<i64>),
    Null,
}

impl From<&str> for SystemCell {
    fn from(text: &str) -> SystemCell {
        SystemCell::Text(text.to_owned())
    }
}

impl From<String> for SystemCell {
    fn from(text: String) -> SystemCell {
        SystemCell::Text(text)
    }
}

impl From<bool> for SystemCell {
    fn from(value: bool) -> SystemCell {
        SystemCell::Bool(value)
    }
}

impl From<u32> for SystemCell {
    fn from(value: u32) -> SystemCell {
        SystemCell::Number(value.into())
    }
}

impl From<i32> for SystemCell {
    fn from(value: i32) -> SystemCell {
        SystemCell::Number(value.into())
    }
}

impl<T: Into<SystemCell>> From<Option<T>> for SystemCell {
    fn from(value: Option<T>) -> SystemCell {
        value.map_or(SystemCell::Null, Into::into)
    }
}

/// Values by column. A column that is left out is NULL, or zero, false or empty where NULL cannot
/// be.
pub(crate) type Row = Vec<(&'static str, SystemCell)>;

impl SystemRelation {
    /// The value of a column in a row.
    pub(super) fn value(&self, column: usize, row: &Row) -> Result<ScalarValue, Error> {
        let field = self.schema.field(column);
        let cell = row.iter().find(|(name, _)| name == field.name()).map(|(_, cell)| cell);
        match cell {
            Some(SystemCell::Null) | None if !field.is_nullable() => Ok(zero(field.data_type())),
            Some(cell) => scalar(cell, field),
            None => scalar(&SystemCell::Null, field),
        }
    }
}

fn scalar(cell: &SystemCell, field: &Field) -> Result<ScalarValue, Error> {
    let misfit = || Error::internal(format!("{cell:?} is no value of system column {}", field.name()));
    let whole = |number: i64, data_type: &DataType| -> Option<ScalarValue> {
        Some(match data_type {
            DataType::UInt32 => ScalarValue::UInt32(Some(number.try_into().ok()?)),
            DataType::Int16 => ScalarValue::Int16(Some(number.try_into().ok()?)),
            DataType::Int32 => ScalarValue::Int32(Some(number.try_into().ok()?)),
            DataType::Int64 => ScalarValue::Int64(Some(number)),
            DataType::Timestamp(TimeUnit::Microsecond, zone) => {
                ScalarValue::TimestampMicrosecond(Some(number), zone.clone())
            }
            DataType::Float32 => ScalarValue::Float32(Some(number as f32)),
            DataType::Float64 => ScalarValue::Float64(Some(number as f64)),
            _ => return None,
        })
    };
    let value = match (cell, field.data_type()) {
        (SystemCell::Null, data_type) => ScalarValue::try_from(data_type).ok(),
        (SystemCell::Bool(value), DataType::Boolean) => Some(ScalarValue::Boolean(Some(*value))),
        (SystemCell::Bool(value), DataType::Utf8View) => Some(text(if *value { "YES" } else { "NO" })),
        (SystemCell::Text(value), DataType::Utf8View) => Some(text(value)),
        (SystemCell::Number(number), data_type) => whole(*number, data_type),
        (SystemCell::Numbers(numbers), DataType::List(element)) => {
            let values: Option<Vec<ScalarValue>> =
                numbers.iter().map(|number| whole(*number, element.data_type())).collect();
            values.map(|values| named(list(&values, element.data_type()), element))
        }
        _ => None,
    };
    value.ok_or_else(misfit)
}

pub(super) fn text(value: &str) -> ScalarValue {
    ScalarValue::Utf8View(Some(value.to_owned()))
}

pub(super) fn list(values: &[ScalarValue], element: &DataType) -> ScalarValue {
    ScalarValue::List(ScalarValue::new_list_nullable(values, element))
}

/// The list with elements of this name, which tells vectors from arrays.
fn named(list: ScalarValue, element: &FieldRef) -> ScalarValue {
    let ScalarValue::List(array) = list else { return list };
    let (_, offsets, values, nulls) = Arc::unwrap_or_clone(array).into_parts();
    ScalarValue::List(Arc::new(ListArray::new(Arc::clone(element), offsets, values, nulls)))
}

fn zero(data_type: &DataType) -> ScalarValue {
    match data_type {
        DataType::Utf8View => text(""),
        DataType::BinaryView => ScalarValue::BinaryView(Some(vec![])),
        DataType::List(element) => named(list(&[], element.data_type()), element),
        other => ScalarValue::new_zero(other).unwrap_or(ScalarValue::Null),
    }
}

fn all() -> BTreeMap<String, SystemRelation> {
    let mut relations: Vec<(String, u32, Vec<Field>)> = vec![];
    for line in RELATIONS.lines().chain(OF_ENGINE.lines()) {
        match line.strip_prefix("  ") {
            None => {
                let (name, oid) = line.split_once(' ').expect("a relation has a number");
                let name = name.strip_prefix("pg_catalog.").unwrap_or(name);
                relations.push((name.to_owned(), oid.parse().expect("a number"), vec![]));
            }
            Some(column) => {
                let (name, of) = column.split_once(' ').expect("a column has a type");
                let (of, forbids_null) = of.strip_suffix('!').map_or((of, false), |of| (of, true));
                let (_, _, fields) = relations.last_mut().expect("columns are below their relation");
                fields.push(Field::new(name, data_type(of), !forbids_null));
            }
        }
    }
    let relation = |(name, oid, fields): (String, u32, Vec<Field>)| {
        (name, SystemRelation { oid, schema: Arc::new(Schema::new(fields)) })
    };
    relations.into_iter().map(relation).collect()
}

fn data_type(name: &str) -> DataType {
    let list = |element: DataType| DataType::List(Arc::new(Field::new_list_field(element, true)));
    match name {
        "bool" => DataType::Boolean,
        "int2" => DataType::Int16,
        "int4" | "cardinal_number" => DataType::Int32,
        "int8" => DataType::Int64,
        "oid" | "xid" => DataType::UInt32,
        "float4" => DataType::Float32,
        "float8" => DataType::Float64,
        "bytea" => DataType::BinaryView,
        "timestamptz" | "time_stamp" => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        "interval" => DataType::Interval(IntervalUnit::MonthDayNano),
        "int2vector" => DataType::List(Arc::new(Field::new(name, DataType::Int16, true))),
        "oidvector" => DataType::List(Arc::new(Field::new(name, DataType::UInt32, true))),
        _ => match name.strip_prefix('_') {
            Some(element) => list(data_type(element)),
            // Names, texts, characters, and what is written as text.
            None => DataType::Utf8View,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relations_have_the_columns_of_postgresql() {
        let class = relation("pg_class").unwrap();
        assert_eq!((class.oid, class.schema.fields().len()), (1259, 33));
        assert_eq!(*class.schema.field(0), Field::new("oid", DataType::UInt32, false));
        assert!(relation("information_schema.columns").unwrap().schema.index_of("udt_name").is_ok());
        assert!(relation("pg_nothing").is_none());
    }

    #[test]
    fn what_is_left_out_is_null_or_zero() {
        let class = relation("pg_class").unwrap();
        let value = |column: &str, row: &Row| class.value(class.schema.index_of(column).unwrap(), row).unwrap();
        let row: Row = vec![("relname", "t".into()), ("oid", 7u32.into())];
        assert_eq!(value("relname", &row), text("t"));
        assert_eq!(value("oid", &row), ScalarValue::UInt32(Some(7)));
        assert_eq!(value("relhasindex", &row), ScalarValue::Boolean(Some(false)));
        assert!(value("relacl", &row).is_null());
    }
}
