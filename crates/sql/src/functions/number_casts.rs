//! Casts between numbers where Arrow's are not exact, or go out of range in silence: long decimals
//! to floats, doubles to reals, and lists of numbers.
//!
//! Law: a decimal becomes the nearest float; an element of a list becomes what it would be outside
//! of the list. Cost: one division a row up to 2^53, else a number is written and read.

use std::sync::Arc;

use anabranch_batch::numeric::{self, Number, TYPE};
use arrow::array::{Array, ArrayRef, AsArray, Float32Array, Float64Array, ListArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Decimal128Type, Float64Type};
use datafusion_common::tree_node::Transformed;
use datafusion_common::{DFSchema, Result as DfResult, exec_err};
use datafusion_expr::{Cast, Expr, ExprSchemable};

use crate::functions::conversions::Conversion;
use crate::functions::digits;
use crate::functions::input::convert;
use crate::functions::numeric_casts::convert_plain;
use crate::resolve::type_names::{is_number, sql_name};

/// Digits of which each whole number is a float.
const EXACT_DIGITS: u8 = 15;

/// Whole numbers up to here are floats.
const EXACT_MAX: u128 = 1 << 53;

/// Powers of ten up to here are floats.
const EXACT_SCALE: i8 = 22;

/// A cast of a decimal to a float, or of a list of numbers to another, made ours.
pub(crate) fn settle_numbers(expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    let (from, to) = match &expr {
        Expr::Cast(cast) => match cast.expr.get_type(schema) {
            Ok(from) => (from, cast.field.data_type().clone()),
            Err(_) => return Ok(Transformed::no(expr)),
        },
        _ => return Ok(Transformed::no(expr)),
    };
    let is_long = matches!(from, DataType::Decimal128(precision, _) if precision > EXACT_DIGITS) && to.is_floating();
    let is_narrowed = from == DataType::Float64 && to == DataType::Float32;
    if !is_long && !is_narrowed && !is_list_of_others(&from, &to) {
        return Ok(Transformed::no(expr));
    }
    let Expr::Cast(Cast { expr: value, .. }) = expr else { return Ok(Transformed::no(expr)) };
    let name = format!("to_{}", sql_name(&to).replace(' ', "_"));
    Ok(Transformed::yes(Conversion::call(name, *value, &to, |values, to| {
        convert_numbers(values, to).or_else(|problem| exec_err!("{problem}"))
    })))
}

fn is_list_of_others(from: &DataType, to: &DataType) -> bool {
    let (DataType::List(from), DataType::List(to)) = (from, to) else { return false };
    match (from.data_type(), to.data_type()) {
        (from @ DataType::List(_), to) => is_list_of_others(from, to),
        (from, to) if *from == TYPE || *to == TYPE => false,
        (from, to) => from != to && is_number(from) && is_number(to) && !(from.is_integer() && to.is_floating()),
    }
}

fn convert_numbers(column: &ArrayRef, to: &DataType) -> Result<ArrayRef, String> {
    match (column.data_type(), to) {
        (DataType::List(_), DataType::List(element)) => {
            let lists = column.as_list::<i32>();
            let elements = convert_numbers(lists.values(), element.data_type())?;
            let lists = ListArray::try_new(element.clone(), lists.offsets().clone(), elements, lists.nulls().cloned());
            lists.map(|lists| Arc::new(lists) as ArrayRef).map_err(|error| error.to_string())
        }
        (DataType::Decimal128(..), to) if to.is_floating() => to_floats(column, to),
        (DataType::Decimal128(..), to) if to.is_integer() => {
            let plain = numeric::encoded(column).ok_or("decimals are numbers")?;
            convert_plain(&plain, to)
        }
        (from, to) if from.is_floating() && to.is_integer() => {
            let floats = cast(column, &DataType::Float64).map_err(|error| error.to_string())?;
            let whole: Float64Array = floats.as_primitive::<Float64Type>().unary(f64::round_ties_even);
            convert(&(Arc::new(whole) as ArrayRef), to)
        }
        (DataType::Float64, DataType::Float32) => narrowed(column),
        (from, DataType::Decimal128(..)) if from.is_floating() => {
            digits::convert(column, to).map_err(|error| error.strip_backtrace())
        }
        _ => convert(column, to),
    }
}

/// Doubles as reals.
fn narrowed(column: &ArrayRef) -> Result<ArrayRef, String> {
    let narrow = |value: f64| match value as f32 {
        real if real.is_infinite() && value.is_finite() => Err("value out of range: overflow".to_owned()),
        real if real == 0.0 && value != 0.0 => Err("value out of range: underflow".to_owned()),
        real => Ok(real),
    };
    let reals: Float32Array = column.as_primitive::<Float64Type>().try_unary(narrow)?;
    Ok(Arc::new(reals))
}

fn to_floats(decimals: &ArrayRef, to: &DataType) -> Result<ArrayRef, String> {
    let decimals = decimals.as_primitive::<Decimal128Type>();
    let scale = decimals.scale();
    let unit = 10f64.powi(scale.into());
    let is_short = (0..=EXACT_SCALE).contains(&scale);
    let float = |digits: i128| match is_short && digits.unsigned_abs() <= EXACT_MAX {
        true => digits as f64 / unit,
        false => numeric::to_f64(&Number::new(digits, scale.unsigned_abs().into())),
    };
    let floats: Float64Array = decimals.iter().map(|digits| digits.map(float)).collect();
    cast(&floats, to).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use arrow::array::Decimal128Array;

    use super::*;

    #[test]
    fn decimals_become_the_nearest_float() {
        let of = |digits: i128, scale: i8| {
            let column = Decimal128Array::from(vec![digits]).with_precision_and_scale(38, scale).expect("it fits");
            let column: ArrayRef = Arc::new(column);
            to_floats(&column, &DataType::Float64).expect("it is a number").as_primitive::<Float64Type>().value(0)
        };
        assert_eq!(of(900_719_925_474_099_300, 2), 9_007_199_254_740_992.0);
        assert_eq!(of(1_234_567_890_123_456_789, 19), 0.123_456_789_012_345_68);
        assert_eq!(of(5, 1), 0.5);
    }
}
