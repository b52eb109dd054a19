//! `__block(array, from, to, from, to ..)`: `a[1:2][2:3]`, a slice of each dimension of an array.
//!
//! As in PostgreSQL a subscript alone is a slice from 1, dimensions without a slice are whole, a
//! bound that is NULL makes NULL, and what lies outside of the array is the empty array. Cost: the
//! size of the slices.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListArray, new_empty_array};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::{cast, concat};
use arrow::datatypes::{DataType, Field, FieldRef, Int64Type};
use datafusion_common::{Result as DfResult, plan_err};
use datafusion_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::resolve::type_names::sql_name;

/// The function's name, which no user writes.
pub(crate) const BLOCK: &str = "__block";

/// The function.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct SlicedBlock {
    signature: Signature,
}

impl SlicedBlock {
    pub(crate) fn udf() -> Arc<ScalarUDF> {
        Arc::new(ScalarUDF::from(Self { signature: Signature::variadic_any(Volatility::Immutable) }))
    }
}

impl ScalarUDFImpl for SlicedBlock {
    fn name(&self) -> &str {
        BLOCK
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arg_types: &[DataType]) -> DfResult<DataType> {
        match arg_types {
            [list @ DataType::List(_), bounds @ ..] => {
                match bounds.iter().find(|bound| !bound.is_integer() && !bound.is_null()) {
                    None => Ok(list.clone()),
                    Some(_) => plan_err!("array subscript must have type integer"),
                }
            }
            [other, ..] => {
                plan_err!("cannot subscript type {} because it does not support subscripting", sql_name(other))
            }
            [] => plan_err!("a slice has an array"),
        }
    }

    /// (A list of documents stays one.)
    fn return_field_from_args(&self, args: ReturnFieldArgs) -> DfResult<FieldRef> {
        let types: Vec<DataType> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let field = Field::new(self.name(), self.return_type(&types)?, true);
        Ok(Arc::new(field.with_metadata(args.arg_fields[0].metadata().clone())))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let lists = args.args[0].to_array(args.number_rows)?;
        let bounds = args.args[1..]
            .iter()
            .map(|bound| Ok(cast(&bound.to_array(args.number_rows)?, &DataType::Int64)?))
            .collect::<DfResult<Vec<_>>>()?;
        let bound = |at: usize, row: usize| {
            let column = bounds[at].as_primitive::<Int64Type>();
            column.is_valid(row).then(|| column.value(row))
        };
        let lists = lists.as_list::<i32>();
        let rows = (0..args.number_rows).map(|row| {
            let sides: Option<Vec<i64>> = (0..bounds.len()).map(|at| bound(at, row)).collect();
            let (Some(sides), true) = (sides, lists.is_valid(row)) else { return Ok(None) };
            let slices: Vec<(i64, i64)> = sides.chunks_exact(2).map(|side| (side[0], side[1])).collect();
            let empty = || new_empty_array(&lists.value_type());
            Ok(Some(cut(&lists.value(row), &slices)?.unwrap_or_else(empty)))
        });
        let rows = rows.collect::<DfResult<Vec<_>>>()?;
        let nulls = NullBuffer::from_iter(rows.iter().map(Option::is_some));
        let values: Vec<ArrayRef> =
            rows.into_iter().map(|row| row.unwrap_or_else(|| new_empty_array(&lists.value_type()))).collect();
        Ok(ColumnarValue::Array(Arc::new(lists_of(&values, lists.data_type(), Some(nulls))?)))
    }
}

/// The slices of an array's elements; `None` where nothing is within.
fn cut(elements: &ArrayRef, slices: &[(i64, i64)]) -> DfResult<Option<ArrayRef>> {
    let Some(((from, to), further)) = slices.split_first() else { return Ok(Some(elements.clone())) };
    let (from, to) = ((*from).max(1), (*to).min(elements.len() as i64));
    if from > to {
        return Ok(None);
    }
    let kept = elements.slice(from as usize - 1, (to - from + 1) as usize);
    if further.is_empty() {
        return Ok(Some(kept));
    }
    let Some(lists) = kept.as_list_opt::<i32>() else { return Ok(None) };
    let parts = (0..lists.len()).map(|row| cut(&lists.value(row), further));
    let Some(parts) = parts.collect::<DfResult<Option<Vec<_>>>>()? else { return Ok(None) };
    Ok(Some(Arc::new(lists_of(&parts, lists.data_type(), None)?)))
}

/// The lists of that type with these elements.
fn lists_of(parts: &[ArrayRef], list: &DataType, nulls: Option<NullBuffer>) -> DfResult<ListArray> {
    let DataType::List(element) = list else { unreachable!("a list's type is that of lists") };
    let offsets = OffsetBuffer::from_lengths(parts.iter().map(|part| part.len()));
    let parts: Vec<&dyn Array> = parts.iter().map(AsRef::as_ref).collect();
    let values = if parts.is_empty() { new_empty_array(element.data_type()) } else { concat(&parts)? };
    Ok(ListArray::try_new(element.clone(), offsets, values, nulls)?)
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::Int32Type;

    use super::*;

    fn lists(rows: Vec<Vec<i32>>) -> ArrayRef {
        let rows = rows.into_iter().map(|row| Some(row.into_iter().map(Some).collect::<Vec<_>>()));
        Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(rows))
    }

    #[test]
    fn each_dimension_is_sliced() {
        let square = lists(vec![vec![1, 2, 3], vec![4, 5, 6], vec![7, 8, 9]]);
        assert_eq!(cut(&square, &[(2, 3), (1, 2)]).unwrap(), Some(lists(vec![vec![4, 5], vec![7, 8]])));
        assert_eq!(cut(&square, &[(0, 1)]).unwrap(), Some(lists(vec![vec![1, 2, 3]])));
        assert_eq!(cut(&square, &[(1, 2), (4, 5)]).unwrap(), None);
        assert_eq!(cut(&square, &[(1, 1), (1, 1), (1, 1)]).unwrap(), None);
    }
}
