//! Values of Python as columns of Arrow.
//!
//! Law: a value that does not fit is an error that names column, row and value; nothing is wrapped,
//! rounded or cut, and nothing of the batch is taken.

use std::sync::Arc;

use anabranch_sql::output::is_plain_numeric;
use arrow::array::{
    ArrayRef, BinaryViewBuilder, BooleanArray, Decimal128Array, Float32Array, Float64Array, Int8Array, Int16Array,
    Int32Array, Int64Array, IntervalMonthDayNanoArray, ListArray, NullArray, PrimitiveArray, StringViewArray,
    StructArray, Time64MicrosecondArray, TimestampMicrosecondArray, UInt8Array, UInt16Array, UInt32Array, UInt64Array,
};
use arrow::buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Field, Fields, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, IntervalMonthDayNano, IntervalUnit, TimeUnit, TimestampMicrosecondType, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

use crate::error::raise;
use crate::to_python::days_of;

type Value<'py> = Bound<'py, PyAny>;

/// A column of a list of values: of the type of `field`, or else of the values.
pub fn column(py: Python<'_>, name: &str, values: &Value<'_>, field: Option<&Field>) -> PyResult<ArrayRef> {
    let values: Vec<Value<'_>> = values.try_iter()?.collect::<PyResult<_>>()?;
    let values = values.iter().map(|value| unwrapped(value)).collect::<PyResult<Vec<_>>>()?;
    let data_type = match field {
        Some(field) if is_plain_numeric(field) => DataType::LargeBinary,
        Some(field) => field.data_type().clone(),
        None => inferred(py, name, &values)?,
    };
    typed(py, name, &values, &data_type)
}

/// A column of fixed width from bytes; None for a type that is not one.
pub fn fixed_column(type_code: &str, data: &[u8], valid: Option<&[u8]>) -> Option<ArrayRef> {
    let nulls = valid.map(|valid| NullBuffer::from_iter(valid.iter().map(|valid| *valid != 0)));
    fn of<T: ArrowPrimitiveType>(data: &[u8], nulls: Option<NullBuffer>) -> ArrayRef {
        let n_rows = data.len() / size_of::<T::Native>();
        Arc::new(PrimitiveArray::<T>::new(ScalarBuffer::new(Buffer::from(data), 0, n_rows), nulls))
    }
    Some(match type_code {
        "|b1" => Arc::new(BooleanArray::new(data.iter().map(|byte| *byte != 0).collect(), nulls)),
        "|i1" => of::<Int8Type>(data, nulls),
        "<i2" => of::<Int16Type>(data, nulls),
        "<i4" => of::<Int32Type>(data, nulls),
        "<i8" => of::<Int64Type>(data, nulls),
        "|u1" => of::<UInt8Type>(data, nulls),
        "<u2" => of::<UInt16Type>(data, nulls),
        "<u4" => of::<UInt32Type>(data, nulls),
        "<u8" => of::<UInt64Type>(data, nulls),
        "<f4" => of::<Float32Type>(data, nulls),
        "<f8" => of::<Float64Type>(data, nulls),
        "<M8[us]" => of::<TimestampMicrosecondType>(data, nulls),
        "<M8[D]" => {
            let days: Vec<i64> =
                data.chunks_exact(8).map(|day| i64::from_le_bytes(day.try_into().unwrap_or_default())).collect();
            let days: Option<Vec<i32>> =
                days.into_iter().map(|day| i32::try_from(day).ok().or((day == i64::MIN).then_some(0))).collect();
            Arc::new(PrimitiveArray::<Date32Type>::new(days?.into(), nulls))
        }
        _ => return None,
    })
}

/// The Python value behind a scalar of NumPy or pandas; None for their marks of absence.
fn unwrapped<'py>(value: &Value<'py>) -> PyResult<Value<'py>> {
    let class = value.get_type();
    let module = class.module()?;
    let module = module.to_cow()?;
    if module == "numpy" {
        let plain = value.call_method0("item")?;
        return Ok(plain);
    }
    if module.starts_with("pandas") {
        let name = class.name()?;
        let name = name.to_cow()?;
        if name == "NAType" || name == "NaTType" {
            return Ok(value.py().None().into_bound(value.py()));
        }
    }
    Ok(value.clone())
}

fn is_a(value: &Value<'_>, name: &str) -> bool {
    value.get_type().mro().iter().any(|class| {
        class.cast_into::<pyo3::types::PyType>().is_ok_and(|class| class.name().is_ok_and(|found| found == name))
    })
}

/// The type of the values: that of the first that is not None, widened by the others.
fn inferred(py: Python<'_>, name: &str, values: &[Value<'_>]) -> PyResult<DataType> {
    let mut found: Option<DataType> = None;
    for (row, value) in values.iter().enumerate().filter(|(_, value)| !value.is_none()) {
        let of_value = type_of(py, name, row, value)?;
        found = Some(match found {
            None => of_value,
            Some(found) if found == of_value => found,
            Some(found) => widened(&found, &of_value).ok_or_else(|| {
                let text = format!(
                    "column \"{name}\" mixes {} and {} (row {row})",
                    anabranch_sql::sql_name(&found),
                    anabranch_sql::sql_name(&of_value)
                );
                raise(py, "data", "42804", &text, Some("Give the column a type, or convert its values."))
            })?,
        });
    }
    Ok(found.unwrap_or(DataType::Null))
}

fn widened(a: &DataType, b: &DataType) -> Option<DataType> {
    use DataType::{Decimal128, Float64, Int64, List, Null, Struct};
    Some(match (a, b) {
        (Null, other) | (other, Null) => other.clone(),
        (Int64, Float64) | (Float64, Int64) => Float64,
        (Decimal128(p, s), Decimal128(q, t)) => {
            let scale = *s.max(t);
            let whole = (*p as i8 - s).max(*q as i8 - t);
            Decimal128((whole + scale).clamp(1, 38) as u8, scale)
        }
        (Decimal128(p, s), Int64) | (Int64, Decimal128(p, s)) => {
            Decimal128(((*p as i8 - s).max(19) + s).clamp(1, 38) as u8, *s)
        }
        (List(a), List(b)) => List(Arc::new(Field::new("item", widened_or_same(a.data_type(), b.data_type())?, true))),
        (Struct(a), Struct(b)) if a.len() == b.len() => {
            let field = |(a, b): (&Arc<Field>, &Arc<Field>)| {
                (a.name() == b.name())
                    .then(|| widened_or_same(a.data_type(), b.data_type()))
                    .flatten()
                    .map(|both| Field::new(a.name(), both, true))
            };
            Struct(a.iter().zip(b).map(field).collect::<Option<Vec<_>>>()?.into())
        }
        _ => return None,
    })
}

fn widened_or_same(a: &DataType, b: &DataType) -> Option<DataType> {
    if a == b { Some(a.clone()) } else { widened(a, b) }
}

fn type_of(py: Python<'_>, name: &str, row: usize, value: &Value<'_>) -> PyResult<DataType> {
    if value.is_instance_of::<PyBool>() {
        return Ok(DataType::Boolean);
    }
    if value.is_instance_of::<PyInt>() {
        if value.extract::<i64>().is_ok() {
            return Ok(DataType::Int64);
        }
        let digits = value.str()?.to_cow()?.trim_start_matches('-').len();
        return match u8::try_from(digits) {
            Ok(digits @ ..=38) => Ok(DataType::Decimal128(digits, 0)),
            _ => Err(unfit(py, name, row, value, "numeric(38,0)")),
        };
    }
    if value.is_instance_of::<PyFloat>() {
        return Ok(DataType::Float64);
    }
    if value.is_instance_of::<PyString>() || is_a(value, "UUID") {
        return Ok(DataType::Utf8View);
    }
    if value.is_instance_of::<PyBytes>() || is_a(value, "bytearray") || is_a(value, "memoryview") {
        return Ok(DataType::BinaryView);
    }
    if is_a(value, "Decimal") {
        let (precision, scale) = decimal_size(value)?;
        return Ok(DataType::Decimal128(precision, scale));
    }
    if is_a(value, "datetime") {
        let zone = value.getattr("tzinfo")?;
        let zone = (!zone.is_none()).then(|| Arc::from("UTC"));
        return Ok(DataType::Timestamp(TimeUnit::Microsecond, zone));
    }
    if is_a(value, "date") {
        return Ok(DataType::Date32);
    }
    if is_a(value, "time") {
        return Ok(DataType::Time64(TimeUnit::Microsecond));
    }
    if is_a(value, "timedelta") || is_a(value, "Interval") {
        return Ok(DataType::Interval(IntervalUnit::MonthDayNano));
    }
    if let Some(fields) = struct_items(value)? {
        let fields: PyResult<Vec<Field>> = fields
            .iter()
            .map(|(key, value)| {
                let data_type = if value.is_none() { DataType::Null } else { type_of(py, name, row, value)? };
                Ok(Field::new(key, data_type, true))
            })
            .collect();
        return Ok(DataType::Struct(fields?.into()));
    }
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        let elements: Vec<Value<'_>> = value.try_iter()?.collect::<PyResult<_>>()?;
        let element = inferred(py, name, &elements)?;
        return Ok(DataType::List(Arc::new(Field::new("item", element, true))));
    }
    let class = value.get_type().name()?;
    let text = format!("a value of Python's type {class} in column \"{name}\" (row {row}) has no type in SQL");
    Err(raise(py, "invalid", "0A000", &text, Some("Convert it to a number, text, date, list or dict first.")))
}

/// The items of a dict, a dataclass or a named tuple.
fn struct_items<'py>(value: &Value<'py>) -> PyResult<Option<Vec<(String, Value<'py>)>>> {
    let dict = if let Ok(dict) = value.cast::<PyDict>() {
        dict.clone()
    } else if value.hasattr("_asdict")? {
        value.call_method0("_asdict")?.cast_into()?
    } else if value.hasattr("__dataclass_fields__")? {
        value.getattr("__dict__")?.cast_into()?
    } else {
        return Ok(None);
    };
    let items = dict.iter().map(|(key, value)| Ok((key.str()?.to_string(), value)));
    Ok(Some(items.collect::<PyResult<_>>()?))
}

fn decimal_size(value: &Value<'_>) -> PyResult<(u8, i8)> {
    let parts = value.call_method0("as_tuple")?;
    let digits = parts.getattr("digits")?.len()?;
    let exponent = parts.getattr("exponent")?.extract::<i32>().unwrap_or(0);
    let scale = usize::try_from(-exponent).unwrap_or(0);
    let whole = digits.saturating_sub(scale) + usize::try_from(exponent).unwrap_or(0);
    let precision = (whole + scale).clamp(1, 38);
    Ok((u8::try_from(precision).unwrap_or(38), i8::try_from(scale.min(38)).unwrap_or(38)))
}

fn unfit(py: Python<'_>, name: &str, row: usize, value: &Value<'_>, type_name: &str) -> PyErr {
    let shown = value.repr().map(|text| text.to_string()).unwrap_or_default();
    let shown: String = shown.chars().take(80).collect();
    let text = format!("{shown} (row {row}) does not fit column \"{name}\" of type {type_name}");
    raise(py, "data", "22018", &text, None)
}

/// A column of a type; the first value that does not fit is an error.
fn typed(py: Python<'_>, name: &str, values: &[Value<'_>], data_type: &DataType) -> PyResult<ArrayRef> {
    let type_name = anabranch_sql::sql_name(data_type);
    let fail = |row: usize| unfit(py, name, row, &values[row], &type_name);
    /// Each value that is not None through `read`, which says None to what does not fit.
    fn each<'py, T>(
        values: &[Value<'py>],
        fail: &dyn Fn(usize) -> PyErr,
        read: impl Fn(&Value<'py>) -> Option<T>,
    ) -> PyResult<Vec<Option<T>>> {
        let one = |(row, value): (usize, &Value<'py>)| match value.is_none() {
            true => Ok(None),
            false => read(value).map(Some).ok_or_else(|| fail(row)),
        };
        values.iter().enumerate().map(one).collect()
    }
    macro_rules! whole {
        ($array:ty, $native:ty) => {
            Arc::new(<$array>::from(each(values, &fail, |value| {
                (!value.is_instance_of::<PyBool>() && !value.is_instance_of::<PyFloat>())
                    .then(|| value.extract::<$native>().ok())
                    .flatten()
            })?))
        };
    }
    Ok(match data_type {
        DataType::Null => Arc::new(NullArray::new(values.len())),
        DataType::Boolean => Arc::new(BooleanArray::from(each(values, &fail, |value| {
            value.cast::<PyBool>().ok().map(|value| value.is_true())
        })?)),
        DataType::Int8 => whole!(Int8Array, i8),
        DataType::Int16 => whole!(Int16Array, i16),
        DataType::Int32 => whole!(Int32Array, i32),
        DataType::Int64 => whole!(Int64Array, i64),
        DataType::UInt8 => whole!(UInt8Array, u8),
        DataType::UInt16 => whole!(UInt16Array, u16),
        DataType::UInt32 => whole!(UInt32Array, u32),
        DataType::UInt64 => whole!(UInt64Array, u64),
        DataType::Float32 => {
            Arc::new(Float32Array::from(each(values, &fail, |value| float_of(value).map(|value| value as f32))?))
        }
        DataType::Float64 => Arc::new(Float64Array::from(each(values, &fail, float_of)?)),
        DataType::Decimal128(precision, scale) => {
            let cells = each(values, &fail, |value| decimal_of(value, *precision, *scale))?;
            let array = Decimal128Array::from(cells).with_precision_and_scale(*precision, *scale);
            Arc::new(array.map_err(|error| raise(py, "data", "22003", &error.to_string(), None))?)
        }
        // Plain numerics go in as text.
        DataType::LargeBinary => Arc::new(StringViewArray::from_iter(each(values, &fail, |value| {
            let is_number =
                is_a(value, "Decimal") || value.is_instance_of::<PyInt>() || value.is_instance_of::<PyString>();
            is_number.then(|| value.str().ok().map(|text| text.to_string())).flatten()
        })?)),
        DataType::Utf8View | DataType::Utf8 | DataType::LargeUtf8 => {
            Arc::new(StringViewArray::from_iter(each(values, &fail, text_of)?))
        }
        DataType::BinaryView | DataType::Binary => {
            let mut builder = BinaryViewBuilder::new();
            for bytes in each(values, &fail, |value| {
                value
                    .call_method0("__bytes__")
                    .ok()
                    .and_then(|bytes| bytes.cast::<PyBytes>().ok().map(|bytes| bytes.as_bytes().to_vec()))
                    .or_else(|| value.extract::<Vec<u8>>().ok().filter(|_| !value.is_instance_of::<PyString>()))
            })? {
                builder.append_option(bytes);
            }
            Arc::new(builder.finish())
        }
        DataType::Date32 => {
            Arc::new(PrimitiveArray::<Date32Type>::from(each(values, &fail, |value| match is_a(value, "datetime") {
                true => None,
                false => date_of(value),
            })?))
        }
        DataType::Time64(_) => Arc::new(Time64MicrosecondArray::from(each(values, &fail, |value| {
            value.getattr("tzinfo").is_ok_and(|zone| zone.is_none()).then(|| time_of(value)).flatten()
        })?)),
        DataType::Timestamp(_, zone) => {
            let array =
                TimestampMicrosecondArray::from(each(values, &fail, |value| timestamp_of(value, zone.is_some()))?);
            Arc::new(array.with_timezone_opt(zone.clone()))
        }
        DataType::Interval(_) | DataType::Duration(_) => {
            Arc::new(IntervalMonthDayNanoArray::from(each(values, &fail, interval_of)?))
        }
        DataType::List(element) => list_column(py, name, values, element, &fail)?,
        DataType::Struct(fields) => struct_column(py, name, values, fields, &fail)?,
        _ => {
            let text = format!("column \"{name}\" of type {type_name} takes no values of Python");
            return Err(raise(py, "invalid", "0A000", &text, Some("Give the rows as an Arrow array.")));
        }
    })
}

fn text_of(value: &Value<'_>) -> Option<String> {
    if is_a(value, "UUID") {
        return value.str().ok().map(|text| text.to_string());
    }
    if value.is_instance_of::<PyDict>() || value.is_instance_of::<PyList>() {
        // A document in a column of json.
        let json = value.py().import("json").ok()?;
        return json.call_method1("dumps", (value,)).ok()?.extract().ok();
    }
    value.cast::<PyString>().ok().map(|text| text.to_string())
}

fn float_of(value: &Value<'_>) -> Option<f64> {
    if value.is_instance_of::<PyBool>() || value.is_instance_of::<PyString>() || is_a(value, "Decimal") {
        return None;
    }
    value.extract::<f64>().ok()
}

fn decimal_of(value: &Value<'_>, precision: u8, scale: i8) -> Option<i128> {
    if value.is_instance_of::<PyBool>() {
        return None;
    }
    let text = match is_a(value, "Decimal") {
        true => value.call_method1("__format__", ("f",)).ok()?.to_string(),
        false if value.is_instance_of::<PyInt>() => value.str().ok()?.to_string(),
        false => return None,
    };
    let (sign, text) = text.strip_prefix('-').map_or((1, text.as_str()), |rest| (-1, rest));
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let scale = usize::try_from(scale).ok()?;
    let kept = fraction.trim_end_matches('0');
    if kept.len() > scale {
        return None;
    }
    let digits = format!("{whole}{kept:0<scale$}");
    let magnitude: i128 = digits.parse().ok()?;
    (magnitude < 10i128.checked_pow(u32::from(precision))?).then_some(sign * magnitude)
}

fn number(value: &Value<'_>, name: &str) -> Option<i64> {
    value.getattr(name).ok()?.extract().ok()
}

fn date_of(value: &Value<'_>) -> Option<i32> {
    let year = i32::try_from(number(value, "year")?).ok()?;
    days_of(year, u32::try_from(number(value, "month")?).ok()?, u32::try_from(number(value, "day")?).ok()?)
}

fn time_of(value: &Value<'_>) -> Option<i64> {
    let (hour, minute) = (number(value, "hour")?, number(value, "minute")?);
    Some(((hour * 60 + minute) * 60 + number(value, "second")?) * 1_000_000 + number(value, "microsecond")?)
}

fn timestamp_of(value: &Value<'_>, has_zone: bool) -> Option<i64> {
    if !is_a(value, "datetime") {
        return None;
    }
    let offset = value.call_method0("utcoffset").ok()?;
    if offset.is_none() == has_zone {
        return None;
    }
    let shift = if has_zone { delta_of(&offset)? } else { 0 };
    Some(i64::from(date_of(value)?) * 86_400_000_000 + time_of(value)? - shift)
}

fn delta_of(value: &Value<'_>) -> Option<i64> {
    Some((number(value, "days")? * 86_400 + number(value, "seconds")?) * 1_000_000 + number(value, "microseconds")?)
}

fn interval_of(value: &Value<'_>) -> Option<IntervalMonthDayNano> {
    if is_a(value, "timedelta") {
        let nanos = (number(value, "seconds")? * 1_000_000 + number(value, "microseconds")?) * 1000;
        return Some(IntervalMonthDayNano::new(0, i32::try_from(number(value, "days")?).ok()?, nanos));
    }
    let part = |name: &str| i32::try_from(number(value, name)?).ok();
    Some(IntervalMonthDayNano::new(part("months")?, part("days")?, number(value, "microseconds")?.checked_mul(1000)?))
}

fn list_column(
    py: Python<'_>,
    name: &str,
    values: &[Value<'_>],
    element: &Arc<Field>,
    fail: &dyn Fn(usize) -> PyErr,
) -> PyResult<ArrayRef> {
    let mut elements = Vec::new();
    let mut lengths = Vec::with_capacity(values.len());
    for (row, value) in values.iter().enumerate() {
        let before = elements.len();
        if !value.is_none() {
            if value.is_instance_of::<PyString>() {
                return Err(fail(row));
            }
            let parts = value.try_iter().map_err(|_| fail(row))?;
            elements.extend(parts.collect::<PyResult<Vec<_>>>()?);
        }
        lengths.push(elements.len() - before);
    }
    let nulls = NullBuffer::from_iter(values.iter().map(|value| !value.is_none()));
    let child = typed(py, name, &elements, element.data_type())?;
    let child_field = Arc::new(Field::new("item", child.data_type().clone(), true));
    Ok(Arc::new(ListArray::new(child_field, OffsetBuffer::from_lengths(lengths), child, Some(nulls))))
}

fn struct_column(
    py: Python<'_>,
    name: &str,
    values: &[Value<'_>],
    fields: &Fields,
    fail: &dyn Fn(usize) -> PyErr,
) -> PyResult<ArrayRef> {
    let none = py.None().into_bound(py);
    let mut columns: Vec<Vec<Value<'_>>> = vec![Vec::with_capacity(values.len()); fields.len()];
    for (row, value) in values.iter().enumerate() {
        let items = if value.is_none() { vec![] } else { struct_items(value)?.ok_or_else(|| fail(row))? };
        for (field, column) in fields.iter().zip(&mut columns) {
            let item = items.iter().find(|(key, _)| key == field.name());
            column.push(item.map_or_else(|| none.clone(), |(_, value)| value.clone()));
        }
    }
    let arrays: PyResult<Vec<ArrayRef>> =
        fields.iter().zip(&columns).map(|(field, values)| typed(py, name, values, field.data_type())).collect();
    let arrays = arrays?;
    let fields: Fields = fields
        .iter()
        .zip(&arrays)
        .map(|(field, array)| Field::new(field.name(), array.data_type().clone(), true))
        .collect();
    let nulls = NullBuffer::from_iter(values.iter().map(|value| !value.is_none()));
    Ok(Arc::new(
        StructArray::try_new(fields, arrays, Some(nulls))
            .map_err(|error| raise(py, "data", "22018", &format!("column \"{name}\": {error}"), None))?,
    ))
}
