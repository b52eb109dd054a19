//! Values of Arrow as values of Python.

use anabranch_sql::output::{self, is_plain_numeric};
use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, DurationMicrosecondType, Field, Float32Type, Float64Type, Int8Type,
    Int16Type, Int32Type, Int64Type, IntervalMonthDayNanoType, IntervalUnit, Time64MicrosecondType, TimeUnit,
    TimestampMicrosecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow::temporal_conversions::{date32_to_datetime, time64us_to_time};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};

use crate::error::raise;

/// A column from which values are taken one by one.
pub struct Values<'a> {
    column: &'a ArrayRef,
    kind: Kind<'a>,
}

enum Kind<'a> {
    Plain,
    /// Decimals: Python's class.
    Decimal(Py<PyAny>),
    /// Days from the epoch: `datetime.date.fromordinal`.
    Date(Py<PyAny>),
    /// Microseconds from the epoch: the epoch and `timedelta`.
    Timestamp {
        epoch: Py<PyAny>,
        delta: Py<PyAny>,
    },
    /// Our class, or `timedelta`.
    Made(Py<PyAny>),
    /// The elements, all of them.
    List(Box<Values<'a>>),
    Struct(Vec<(Py<PyString>, Values<'a>)>),
}

/// Days from 0001-01-01, which is day 1, to the epoch.
const EPOCH_ORDINAL: i64 = 719_163;

impl<'a> Values<'a> {
    /// Values of a column of an answer.
    pub fn new(py: Python<'_>, column: &'a ArrayRef, field: &Field) -> PyResult<Values<'a>> {
        let class =
            |module: &str, name: &str| -> PyResult<Py<PyAny>> { Ok(py.import(module)?.getattr(name)?.unbind()) };
        let kind = match column.data_type() {
            DataType::Decimal128(..) => Kind::Decimal(class("decimal", "Decimal")?),
            DataType::Utf8View | DataType::Utf8 if is_plain_numeric(field) => {
                Kind::Decimal(class("decimal", "Decimal")?)
            }
            DataType::Date32 => Kind::Date(py.import("datetime")?.getattr("date")?.getattr("fromordinal")?.unbind()),
            DataType::Timestamp(TimeUnit::Microsecond, zone) => {
                let zone = match zone {
                    Some(_) => py.import("datetime")?.getattr("timezone")?.getattr("utc")?,
                    None => py.None().into_bound(py),
                };
                let epoch = py.import("datetime")?.getattr("datetime")?.call1((1970, 1, 1, 0, 0, 0, 0, zone))?;
                Kind::Timestamp { epoch: epoch.unbind(), delta: class("datetime", "timedelta")? }
            }
            DataType::Interval(IntervalUnit::MonthDayNano) => Kind::Made(class("anabranch.values", "Interval")?),
            DataType::Duration(TimeUnit::Microsecond) => Kind::Made(class("datetime", "timedelta")?),
            DataType::List(element) => {
                Kind::List(Box::new(Values::new(py, column.as_list::<i32>().values(), element)?))
            }
            DataType::Struct(fields) => {
                let parts = column.as_struct().columns().iter().zip(fields);
                let part = |(part, field): (&'a ArrayRef, &std::sync::Arc<Field>)| {
                    Ok((PyString::new(py, field.name()).unbind(), Values::new(py, part, field)?))
                };
                Kind::Struct(parts.map(part).collect::<PyResult<_>>()?)
            }
            _ => Kind::Plain,
        };
        Ok(Values { column, kind })
    }

    /// The value of a row; None for NULL.
    pub fn get<'py>(&self, py: Python<'py>, row: usize) -> PyResult<Bound<'py, PyAny>> {
        if self.column.is_null(row) || *self.column.data_type() == DataType::Null {
            return Ok(py.None().into_bound(py));
        }
        let column = self.column;
        match (&self.kind, column.data_type()) {
            (Kind::Decimal(class), DataType::Decimal128(..)) => {
                class.bind(py).call1((column.as_primitive::<Decimal128Type>().value_as_string(row),))
            }
            (Kind::Decimal(class), DataType::Utf8View) => class.bind(py).call1((column.as_string_view().value(row),)),
            (Kind::Decimal(class), _) => class.bind(py).call1((column.as_string::<i32>().value(row),)),
            (Kind::Date(make), _) => {
                make.bind(py).call1((i64::from(column.as_primitive::<Date32Type>().value(row)) + EPOCH_ORDINAL,))
            }
            (Kind::Timestamp { epoch, delta }, _) => {
                let micros = column.as_primitive::<TimestampMicrosecondType>().value(row);
                let days = micros.div_euclid(86_400_000_000);
                let rest = micros.rem_euclid(86_400_000_000);
                let delta = delta.bind(py).call1((days, rest / 1_000_000, rest % 1_000_000))?;
                epoch.bind(py).call_method1("__add__", (delta,))
            }
            (Kind::Made(class), DataType::Duration(_)) => {
                class.bind(py).call1((0, 0, column.as_primitive::<DurationMicrosecondType>().value(row)))
            }
            (Kind::Made(class), _) => {
                let interval = column.as_primitive::<IntervalMonthDayNanoType>().value(row);
                class.bind(py).call1((interval.months, interval.days, interval.nanoseconds / 1000))
            }
            (Kind::List(elements), _) => {
                let offsets = column.as_list::<i32>().value_offsets();
                let list = PyList::empty(py);
                for idx in offsets[row]..offsets[row + 1] {
                    list.append(elements.get(py, usize::try_from(idx).unwrap_or(0))?)?;
                }
                Ok(list.into_any())
            }
            (Kind::Struct(parts), _) => {
                let dict = PyDict::new(py);
                for (name, part) in parts {
                    dict.set_item(name.bind(py), part.get(py, row)?)?;
                }
                Ok(dict.into_any())
            }
            (Kind::Plain, _) => plain(py, column, row),
        }
    }
}

fn plain<'py>(py: Python<'py>, column: &ArrayRef, row: usize) -> PyResult<Bound<'py, PyAny>> {
    match column.data_type() {
        DataType::Boolean => column.as_boolean().value(row).into_bound_py_any(py),
        DataType::Int8 => column.as_primitive::<Int8Type>().value(row).into_bound_py_any(py),
        DataType::Int16 => column.as_primitive::<Int16Type>().value(row).into_bound_py_any(py),
        DataType::Int32 => column.as_primitive::<Int32Type>().value(row).into_bound_py_any(py),
        DataType::Int64 => column.as_primitive::<Int64Type>().value(row).into_bound_py_any(py),
        DataType::UInt8 => column.as_primitive::<UInt8Type>().value(row).into_bound_py_any(py),
        DataType::UInt16 => column.as_primitive::<UInt16Type>().value(row).into_bound_py_any(py),
        DataType::UInt32 => column.as_primitive::<UInt32Type>().value(row).into_bound_py_any(py),
        DataType::UInt64 => column.as_primitive::<UInt64Type>().value(row).into_bound_py_any(py),
        DataType::Float32 => column.as_primitive::<Float32Type>().value(row).into_bound_py_any(py),
        DataType::Float64 => column.as_primitive::<Float64Type>().value(row).into_bound_py_any(py),
        DataType::Utf8View => column.as_string_view().value(row).into_bound_py_any(py),
        DataType::Utf8 => column.as_string::<i32>().value(row).into_bound_py_any(py),
        DataType::LargeUtf8 => column.as_string::<i64>().value(row).into_bound_py_any(py),
        DataType::BinaryView => Ok(PyBytes::new(py, column.as_binary_view().value(row)).into_any()),
        DataType::Binary => Ok(PyBytes::new(py, column.as_binary::<i32>().value(row)).into_any()),
        DataType::Time64(TimeUnit::Microsecond) => {
            let micros = column.as_primitive::<Time64MicrosecondType>().value(row);
            time64us_to_time(micros).into_bound_py_any(py)
        }
        other => {
            let text = format!("values of type {} have no form in Python", anabranch_sql::sql_name(other));
            Err(raise(py, "invalid", "0A000", &text, Some("Cast the column to text.")))
        }
    }
}

/// A printer of a column: a row's text as SQL prints it, None for NULL.
pub fn printer(column: &ArrayRef) -> Box<dyn Fn(usize) -> Option<String> + '_> {
    let print = output::printer(column);
    Box::new(move |row| {
        column.is_valid(row).then(|| {
            let mut text = String::new();
            print(row, &mut text);
            text
        })
    })
}

/// Days from the epoch of a date's year, month and day.
pub fn days_of(year: i32, month: u32, day: u32) -> Option<i32> {
    let date = chrono::NaiveDate::from_ymd_opt(year, month, day)?;
    let epoch = date32_to_datetime(0)?.date();
    i32::try_from(date.signed_duration_since(epoch).num_days()).ok()
}
