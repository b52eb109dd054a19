//! The product of numbers, as a user would write an aggregate.
//!
//! Law: of whole numbers the exact product as a bigint, an error when it does not fit; of floats
//! the product in ascending order, so that it is the same whatever the order of the rows. NULLs are
//! left out; over nothing else it is NULL.
//!
//! Cost: not invertible, since a factor cannot be taken out of a product that is zero or rounded:
//! over lifetimes that overlap it walks the rows in force at each change (see [`UserAggregate`]).
//! Of floats it keeps the factors. Source: Trill, `Product`.

use std::sync::Arc;

use anabranch_operators::aggregate::custom::{GroupRows, UserAggregate};
use arrow::array::{Array, ArrayRef, AsArray, Float64Array, Int64Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, Int64Type};

use super::aggregate::{FrameAggregate, custom};
use datafusion_expr::Expr;

/// Product of integers, exact, or of floats; NULL over nothing.
pub fn product(expr: Expr) -> FrameAggregate {
    custom(Product, [expr])
}

struct Product;

/// The factors seen.
#[derive(Clone)]
enum Factors {
    None,
    /// Whether one is zero, and the product of the others unless it is too large for any result.
    Whole(bool, Option<i128>),
    Floats(Vec<f64>),
}

impl Factors {
    fn take_whole(&mut self, factor: i64) {
        let (has_zero, others) = match self {
            Factors::Whole(has_zero, others) => (*has_zero, *others),
            _ => (false, Some(1)),
        };
        *self = match factor {
            0 => Factors::Whole(true, others),
            _ => Factors::Whole(has_zero, others.and_then(|others| others.checked_mul(i128::from(factor)))),
        };
    }

    fn take_float(&mut self, factor: f64) {
        match self {
            Factors::Floats(factors) => factors.push(factor),
            _ => *self = Factors::Floats(vec![factor]),
        }
    }

    fn whole(&self) -> Result<Option<i64>, String> {
        let out_of_range = || "bigint out of range".to_owned();
        match self {
            Factors::Whole(true, _) => Ok(Some(0)),
            Factors::Whole(false, product) => {
                product.and_then(|product| i64::try_from(product).ok()).map(Some).ok_or_else(out_of_range)
            }
            _ => Ok(None),
        }
    }

    fn float(&self) -> Option<f64> {
        let Factors::Floats(factors) = self else { return None };
        let mut factors = factors.clone();
        factors.sort_unstable_by(f64::total_cmp);
        Some(factors.into_iter().product())
    }
}

impl UserAggregate for Product {
    type State = Factors;

    fn name(&self) -> &str {
        "product"
    }

    fn output_type(&self, arguments: &[DataType]) -> Result<DataType, String> {
        match arguments {
            [is] if is.is_signed_integer() => Ok(DataType::Int64),
            [is] if is.is_floating() => Ok(DataType::Float64),
            _ => Err("it takes one number, whole or a float".into()),
        }
    }

    fn initial(&self) -> Factors {
        Factors::None
    }

    fn accumulate(&self, states: &mut [Factors], rows: &GroupRows<'_>) -> Result<(), String> {
        let Some((_, first)) = rows.iter().next() else { return Ok(()) };
        let column = rows.column(0).slice(first, rows.len());
        let is_whole = column.data_type().is_integer();
        let wanted = if is_whole { DataType::Int64 } else { DataType::Float64 };
        let column = cast(&column, &wanted).map_err(|error| error.to_string())?;
        let seen = rows.iter().map(|(state, row)| (state, row - first)).filter(|(_, row)| column.is_valid(*row));
        if is_whole {
            let values = column.as_primitive::<Int64Type>();
            seen.for_each(|(state, row)| states[state].take_whole(values.value(row)));
        } else {
            let values = column.as_primitive::<Float64Type>();
            seen.for_each(|(state, row)| states[state].take_float(values.value(row)));
        }
        Ok(())
    }

    fn compute(&self, states: &[&Factors]) -> Result<ArrayRef, String> {
        let has_floats = states.iter().any(|state| matches!(state, Factors::Floats(_)));
        if has_floats {
            return Ok(Arc::new(states.iter().map(|state| state.float()).collect::<Float64Array>()));
        }
        let products = states.iter().map(|state| state.whole()).collect::<Result<Vec<_>, String>>()?;
        Ok(Arc::new(Int64Array::from(products)))
    }

    fn heap_bytes(&self, state: &Factors) -> usize {
        match state {
            Factors::Floats(factors) => factors.capacity() * size_of::<f64>(),
            _ => 0,
        }
    }
}
