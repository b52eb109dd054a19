//! Which stretch a value lies in: `stretch_of(size, value)`, and `stretches_of(size, low, high,
//! value)`, the list of those that hold what lies from `value + low` to `value + high`.
//!
//! Law: where `low <= v - value <= high`, `stretch_of(size, v)` is an element of
//! `stretches_of(size, low, high, value)`; also where `v` and `value` are the same end of time (an
//! infinite value is near itself, whatever is added to it). Neither fails, on no value. Both are
//! NULL of NULL.
//!
//! Cost: a division a value, two for a list.

use std::ops::RangeInclusive;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, ListArray};
use arrow::buffer::OffsetBuffer;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Int64Type};
use datafusion_common::{Result as DfResult, ScalarValue, exec_err};
use datafusion_expr::{ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, lit};

const STRETCH_OF: &str = "stretch_of";
const STRETCHES_OF: &str = "stretches_of";

/// Whether a function of this name tells stretches.
pub(super) fn is_ours(name: &str) -> bool {
    [STRETCH_OF, STRETCHES_OF].contains(&name)
}

pub(super) fn stretch_of() -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::from(Stretch { is_list: false, signature: Signature::any(2, Volatility::Immutable) }))
}

pub(super) fn stretches_of() -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::from(Stretch { is_list: true, signature: Signature::any(4, Volatility::Immutable) }))
}

/// The stretch of a value.
pub(super) fn call_of(size: i64, value: &Expr) -> Expr {
    stretch_of().call(vec![lit(size), value.clone()])
}

/// The stretches of what is so far from a value.
pub(super) fn call_of_all(size: i64, reach: RangeInclusive<i64>, value: &Expr) -> Expr {
    stretches_of().call(vec![lit(size), lit(*reach.start()), lit(*reach.end()), value.clone()])
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Stretch {
    is_list: bool,
    signature: Signature,
}

impl ScalarUDFImpl for Stretch {
    fn name(&self) -> &str {
        if self.is_list { STRETCHES_OF } else { STRETCH_OF }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arg_types: &[DataType]) -> DfResult<DataType> {
        Ok(match self.is_list {
            true => DataType::List(Arc::new(Field::new_list_field(DataType::Int64, true))),
            false => DataType::Int64,
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let Some((value, constants)) = args.args.split_last() else {
            return exec_err!("{} wants a value", self.name());
        };
        let constants = constants.iter().map(constant).collect::<DfResult<Vec<i64>>>()?;
        let values = value.to_array(args.number_rows)?;
        let ends = ends_of(values.data_type());
        let values = ticks(&values)?;
        let values = values.as_primitive::<Int64Type>();
        let stretches: ArrayRef = match constants[..] {
            [size] if size > 0 => Arc::new(values.unary::<_, Int64Type>(|value| value.div_euclid(size))),
            [size, low, high] if size > 0 => Arc::new(lists(values, size, low..=high, ends)),
            _ => return exec_err!("{} wants a size of one at least", self.name()),
        };
        Ok(ColumnarValue::Array(stretches))
    }
}

fn constant(value: &ColumnarValue) -> DfResult<i64> {
    match value {
        ColumnarValue::Scalar(ScalarValue::Int64(Some(value))) => Ok(*value),
        _ => exec_err!("the size and the reach of stretches are constant whole numbers"),
    }
}

/// Values as whole numbers.
fn ticks(values: &ArrayRef) -> DfResult<ArrayRef> {
    let values = if *values.data_type() == DataType::Date32 { cast(values, &DataType::Int32)? } else { values.clone() };
    Ok(cast(&values, &DataType::Int64)?)
}

/// The infinite values of a type of times.
fn ends_of(data_type: &DataType) -> Option<[i64; 2]> {
    match data_type {
        DataType::Date32 => Some([i64::from(i32::MIN), i64::from(i32::MAX)]),
        DataType::Timestamp(..) => Some([i64::MIN, i64::MAX]),
        _ => None,
    }
}

fn lists(values: &Int64Array, size: i64, reach: RangeInclusive<i64>, ends: Option<[i64; 2]>) -> ListArray {
    let mut stretches: Vec<i64> = Vec::with_capacity(values.len() + values.len() / 4);
    let mut lengths: Vec<usize> = Vec::with_capacity(values.len());
    for (row, &value) in values.values().iter().enumerate() {
        let before = stretches.len();
        if values.is_valid(row) {
            // (A sum beyond all values lies in the stretch of the last one.)
            let of = |by: i64| value.saturating_add(by).div_euclid(size);
            let is_end = ends.is_some_and(|ends| ends.contains(&value));
            match is_end {
                true => stretches.push(value.div_euclid(size)),
                false => stretches.extend(of(*reach.start())..=of(*reach.end())),
            }
        }
        lengths.push(stretches.len() - before);
    }
    let field = Arc::new(Field::new_list_field(DataType::Int64, true));
    let offsets = OffsetBuffer::from_lengths(lengths);
    ListArray::new(field, offsets, Arc::new(Int64Array::from(stretches)), values.nulls().cloned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_of(value: i64, size: i64, reach: RangeInclusive<i64>, ends: Option<[i64; 2]>) -> Vec<i64> {
        let lists = lists(&Int64Array::from(vec![value]), size, reach, ends);
        lists.value(0).as_primitive::<Int64Type>().values().to_vec()
    }

    #[test]
    fn what_is_near_lies_in_a_stretch_of_the_list() {
        for (low, high) in [(-2, 2), (0, 0), (3, 10), (-7, -1), (-1, 0)] {
            let size = ((high - low) * 4).max(1);
            for value in -50..50 {
                let all = all_of(value, size, low..=high, None);
                assert!(all.len() <= 2, "{all:?}");
                let near = (-100..100_i64).filter(|other| (low..=high).contains(&(other - value)));
                near.for_each(|other| assert!(all.contains(&other.div_euclid(size)), "{other} {value} {all:?}"));
            }
        }
    }

    #[test]
    fn values_at_the_ends_have_stretches() {
        let ends = Some([i64::MIN, i64::MAX]);
        assert_eq!(all_of(i64::MAX, 8, -9..=5, None), [i64::MAX / 8 - 1, i64::MAX / 8]);
        assert_eq!(all_of(i64::MAX - 2, 4, 0..=1, None).last(), Some(&(i64::MAX - 1).div_euclid(4)));
        // What is later than infinity is infinity.
        assert_eq!(all_of(i64::MAX, 40, -5000..=-4990, ends), [i64::MAX.div_euclid(40)]);
        assert_eq!(all_of(i64::MIN, 40, 4990..=5000, ends), [i64::MIN.div_euclid(40)]);
        assert_eq!(all_of(i64::MIN, 1, -5..=-5, None), [i64::MIN]);
    }

    #[test]
    fn dates_count_days_and_nulls_have_no_stretch() {
        let dates: ArrayRef = Arc::new(arrow::array::Date32Array::from(vec![Some(17), None]));
        let days = ticks(&dates).expect("dates are days");
        assert_eq!(days.as_primitive::<Int64Type>(), &Int64Array::from(vec![Some(17), None]));
        let lists = lists(days.as_primitive(), 8, -1..=1, ends_of(dates.data_type()));
        assert_eq!((lists.value(0).len(), lists.is_null(1)), (1, true));
    }
}
