//! The type that several types have in common, as in PostgreSQL.

use anabranch_batch::numeric::TYPE;
use arrow::datatypes::DataType;
use datafusion_expr::type_coercion::binary::type_union_coercion;

use crate::resolve::type_names::is_number;

/// The type of timestamps, if there are dates among them.
pub(crate) fn timestamp_among_dates(types: &[DataType]) -> Option<DataType> {
    let is_moment = |is: &DataType| matches!(is, DataType::Timestamp(..) | DataType::Date32 | DataType::Null);
    let has_both = types.contains(&DataType::Date32) && types.iter().all(is_moment);
    types.iter().find(|is| has_both && matches!(is, DataType::Timestamp(..))).cloned()
}

/// The widest float among numbers, if there are only numbers, and floats among them.
pub(crate) fn float_of_numbers(types: &[DataType]) -> Option<DataType> {
    float_among(types).filter(|_| are_numbers(types))
}

/// Plain `numeric`, if there are only exact numbers, and one of them is plain.
pub(crate) fn plain_of_numbers(types: &[DataType]) -> Option<DataType> {
    (types.contains(&TYPE) && are_numbers(types) && float_among(types).is_none()).then_some(TYPE)
}

/// Arrays of plain `numeric`, if there are only arrays of numerics, and one of them is of plain
/// ones: arrays have no elements of several scales.
pub(crate) fn plain_of_lists(types: &[DataType]) -> Option<DataType> {
    let elements = |is: &DataType| match is {
        DataType::List(field) => Some(field.data_type().clone()),
        is => is.is_null().then_some(DataType::Null),
    };
    let elements = types.iter().map(elements).collect::<Option<Vec<DataType>>>()?;
    let is_exact = |is: &DataType| is.is_null() || is.is_decimal() || *is == TYPE;
    let common = match elements.iter().all(is_exact) {
        true => elements.contains(&TYPE).then_some(TYPE)?,
        false => plain_of_lists(&elements)?,
    };
    let of_common = |is: &&DataType| matches!(is, DataType::List(field) if *field.data_type() == common);
    types.iter().find(of_common).cloned()
}

/// Whether all are numbers.
pub(crate) fn are_numbers(types: &[DataType]) -> bool {
    types.iter().all(|is| is_number(is) || is.is_null())
}

/// The type that both convert to without loss, to stand in one column.
pub(crate) fn union_type(left: &DataType, right: &DataType) -> Option<DataType> {
    if left == right {
        return Some(left.clone());
    }
    let types = [left.clone(), right.clone()];
    let ours = float_of_numbers(&types).or_else(|| plain_of_numbers(&types)).or_else(|| timestamp_among_dates(&types));
    let ours = ours.or_else(|| plain_of_lists(&types));
    ours.or_else(|| type_union_coercion(left, right))
}

/// The widest float, if there are floats.
pub(crate) fn float_among(types: &[DataType]) -> Option<DataType> {
    [DataType::Float64, DataType::Float32].into_iter().find(|float| types.contains(float))
}
