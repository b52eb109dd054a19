//! Casts to and from plain `numeric`, which Arrow would take for bytes.
//!
//! Law: every cast of a resolved plan between [`TYPE`] and another type is one of these; a value
//! that does not fit is an error in PostgreSQL's words. A float becomes the decimal of as many
//! digits as it is sure of.

use std::sync::Arc;

use anabranch_batch::numeric::{self, Builder, Number, Reader, TYPE, Unreadable, Whole};
use arrow::array::{
    Array, ArrayRef, AsArray, Decimal128Array, Float64Array, Int64Array, LargeBinaryArray, ListArray, StringViewBuilder,
};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion_common::tree_node::Transformed;
use datafusion_common::{DFSchema, Result as DfResult, exec_err, plan_err};
use datafusion_expr::{Cast, Expr, ExprSchemable};

use crate::functions::conversions::Conversion;
use crate::functions::numerics::{converts, is_convertible};
use crate::resolve::type_names::{is_text, sql_name};
use crate::resolve::value_errors::field_overflow;

/// A cast between plain numerics and other types, made ours.
pub(crate) fn settle_plain_cast(expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    let (from, to) = match &expr {
        Expr::Cast(cast) => match cast.expr.get_type(schema) {
            Ok(from) => (from, cast.field.data_type().clone()),
            Err(_) => return Ok(Transformed::no(expr)),
        },
        _ => return Ok(Transformed::no(expr)),
    };
    if from.is_null() || !converts(&from, &to) {
        return Ok(Transformed::no(expr));
    }
    if !is_convertible(&from, &to) {
        return plan_err!("cannot cast type {} to {}", sql_name(&from), sql_name(&to));
    }
    let Expr::Cast(Cast { expr: value, .. }) = expr else { return Ok(Transformed::no(expr)) };
    let name = if to == TYPE { "to_numeric".to_string() } else { format!("numeric_to_{}", sql_name(&to)) };
    let converted = Conversion::call(name, *value, &to, |values, to| {
        convert_plain(values, to).or_else(|problem| exec_err!("{problem}"))
    });
    Ok(Transformed::yes(converted))
}

/// The column as another type, where one of them is plain `numeric`.
///
/// # Errors
/// The first value that does not fit.
pub(crate) fn convert_plain(column: &ArrayRef, to: &DataType) -> Result<ArrayRef, String> {
    let internal = |error: arrow::error::ArrowError| error.to_string();
    match (column.data_type(), to) {
        (DataType::List(_), DataType::List(element)) => {
            let lists = column.as_list::<i32>();
            let elements = convert_plain(lists.values(), element.data_type())?;
            let lists = ListArray::try_new(element.clone(), lists.offsets().clone(), elements, lists.nulls().cloned());
            lists.map(|lists| Arc::new(lists) as ArrayRef).map_err(internal)
        }
        (from, to) if *to == TYPE && is_text(from) => read(column),
        (from, to) if *to == TYPE => {
            numeric::encoded(column).ok_or_else(|| format!("cannot cast type {} to numeric", sql_name(from)))
        }
        (from, to) if *from == TYPE => convert_from(column.as_binary(), to),
        (_, to) => cast(column, to).map_err(internal),
    }
}

fn read(texts: &ArrayRef) -> Result<ArrayRef, String> {
    let texts = cast(texts, &DataType::Utf8View).map_err(|error| error.to_string())?;
    let mut builder = Builder::with_capacity(texts.len());
    for text in texts.as_string_view() {
        let number = text.map(|text| {
            numeric::parse(text).map_err(|problem| match problem {
                Unreadable::Syntax => format!("invalid input syntax for type numeric: \"{text}\""),
                Unreadable::Overflow => "value overflows numeric format".to_string(),
            })
        });
        builder.append(number.transpose()?.as_ref());
    }
    Ok(builder.finish())
}

fn convert_from(numbers: &LargeBinaryArray, to: &DataType) -> Result<ArrayRef, String> {
    let column: ArrayRef = Arc::new(numbers.clone());
    let reader = Reader::new(&column).ok_or("a column of numbers is expected")?;
    let values = || (0..numbers.len()).map(|row| reader.value(row));
    match to {
        DataType::Decimal128(precision, scale) => {
            let digits: Decimal128Array = values()
                .map(|value| value.map(|value| unscaled(&value, *precision, *scale, to)).transpose())
                .collect::<Result<_, String>>()?;
            let digits = digits.with_precision_and_scale(*precision, *scale).map_err(|error| error.to_string())?;
            Ok(Arc::new(digits))
        }
        DataType::Float32 | DataType::Float64 => {
            let floats: Float64Array = values()
                .map(|value| value.map(|value| float(&value, to)).transpose())
                .collect::<Result<_, String>>()?;
            let floats: ArrayRef = Arc::new(floats);
            if *to == DataType::Float64 { Ok(floats) } else { cast(&floats, to).map_err(|error| error.to_string()) }
        }
        to if to.is_integer() => {
            let out_of_range = || format!("{} out of range", sql_name(to));
            let whole = |value: Number| whole(&value, to)?.ok_or_else(out_of_range);
            let wholes: Int64Array =
                values().map(|value| value.map(whole).transpose()).collect::<Result<_, String>>()?;
            crate::functions::input::convert(&(Arc::new(wholes) as ArrayRef), to)
        }
        to if is_text(to) => {
            let mut texts = StringViewBuilder::with_capacity(numbers.len());
            values().for_each(|value| texts.append_option(value.map(|value| value.to_string())));
            let texts: ArrayRef = Arc::new(texts.finish());
            cast(&texts, to).map_err(|error| error.to_string())
        }
        other => Err(format!("cannot cast type numeric to {}", sql_name(other))),
    }
}

/// The nearest float of a type, as a double.
fn float(number: &Number, to: &DataType) -> Result<f64, String> {
    let float = numeric::to_f64(number);
    let narrow = if *to == DataType::Float32 { f64::from(float as f32) } else { float };
    let is_lost = narrow.is_infinite() || (narrow == 0.0 && *number != Number::ZERO);
    match number {
        Number::Finite(_) if is_lost => Err(format!("\"{number}\" is out of range for type {}", sql_name(to))),
        _ => Ok(float),
    }
}

/// The digits of a number at a scale, rounded half away from zero.
fn unscaled(number: &Number, precision: u8, scale: i8, to: &DataType) -> Result<i128, String> {
    let Number::Finite(finite) = number else {
        return Err(format!("cannot convert {number} to {}", sql_name(to)));
    };
    let rounded = finite.rounded(scale.into());
    let missing = u32::try_from(i64::from(scale) - i64::from(rounded.scale)).unwrap_or(0);
    let value = rounded.coefficient.shifted(missing).to_i128();
    let fits = |value: &i128| value.unsigned_abs() < 10u128.pow(precision.into());
    value.filter(fits).ok_or_else(|| format!("{}: {number}", field_overflow(to)))
}

/// The nearest whole number; `None` if it is out of range.
fn whole(number: &Number, to: &DataType) -> Result<Option<i64>, String> {
    let Number::Finite(finite) = number else {
        let special = if number.is_nan() { "NaN" } else { "infinity" };
        return Err(format!("cannot convert {special} to {}", sql_name(to)));
    };
    let rounded = finite.rounded(0);
    let Whole::Small(value) = rounded.coefficient else { return Ok(None) };
    Ok(i64::try_from(value).ok())
}
