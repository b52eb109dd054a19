//! Aggregates of the rows of a match.

use anabranch_spec::recognize::Fold;
use std::sync::Arc;

use anabranch_batch::order::{Comparator, Direction};
use arrow::array::{Array, ArrayRef, AsArray, Int64Array, PrimitiveArray, UInt32Array};
use arrow::compute;
use arrow::datatypes::{
    ArrowNativeTypeOp, ArrowPrimitiveType, DataType, Decimal64Type, Decimal128Type, Float64Type, Int64Type,
};

/// The aggregate of each group of rows of `column` (`None` counts rows). Where a sum does not fit
/// its type the entry is NULL, and its number is among the failures.
pub(super) fn fold(function: Fold, column: Option<&ArrayRef>, groups: &[Vec<u32>]) -> (ArrayRef, Vec<usize>) {
    let column = match (function, column) {
        (Fold::Count, None) => {
            return (Arc::new(groups.iter().map(|rows| Some(rows.len() as i64)).collect::<Int64Array>()), vec![]);
        }
        (_, None) => unreachable!("only counts go without a column"),
        (_, Some(column)) => column,
    };
    let nulls = column.logical_nulls();
    let is_valid = |row: &&u32| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(**row as usize));
    match function {
        Fold::Count => {
            let count = |rows: &Vec<u32>| Some(rows.iter().filter(is_valid).count() as i64);
            (Arc::new(groups.iter().map(count).collect::<Int64Array>()), vec![])
        }
        Fold::Sum => match column.data_type() {
            DataType::Int64 => sum::<Int64Type>(column, groups),
            DataType::Float64 => sum::<Float64Type>(column, groups),
            DataType::Decimal64(..) => sum::<Decimal64Type>(column, groups),
            DataType::Decimal128(..) => sum::<Decimal128Type>(column, groups),
            other => panic!("the planner sums no {other}"),
        },
        Fold::Min | Fold::Max => {
            let columns = std::slice::from_ref(column);
            let comparator = Comparator::new(columns, columns, &[Direction::ASCENDING]);
            let compare = |a: &&u32, b: &&u32| comparator.compare(**a as usize, **b as usize);
            let best = |rows: &Vec<u32>| {
                let valid = rows.iter().filter(is_valid);
                if function == Fold::Min { valid.min_by(compare) } else { valid.max_by(compare) }.copied()
            };
            let picks: UInt32Array = groups.iter().map(best).collect();
            (compute::take(column, &picks, None).expect("rows are in bounds"), vec![])
        }
    }
}

fn sum<T: ArrowPrimitiveType>(column: &ArrayRef, groups: &[Vec<u32>]) -> (ArrayRef, Vec<usize>) {
    let values = column.as_primitive::<T>();
    let mut failures = Vec::new();
    let mut sums: Vec<Option<T::Native>> = Vec::with_capacity(groups.len());
    for (n, rows) in groups.iter().enumerate() {
        let mut present = rows.iter().map(|row| *row as usize).filter(|row| values.is_valid(*row)).peekable();
        let is_empty = present.peek().is_none();
        let total = present.try_fold(T::Native::default(), |sum, row| sum.add_checked(values.value(row)));
        failures.extend(total.is_err().then_some(n));
        sums.push(total.ok().filter(|_| !is_empty));
    }
    let sums = PrimitiveArray::<T>::from_iter(sums).with_data_type(column.data_type().clone());
    (Arc::new(sums), failures)
}
