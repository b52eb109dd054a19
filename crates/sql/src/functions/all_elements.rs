//! `all_elements(list)`: the elements of a list of lists in one list, which is what `unnest` yields
//! of an array of several dimensions.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListArray};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion_common::Result as DfResult;
use datafusion_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

/// The function's name, which no user writes.
pub(crate) const ALL_ELEMENTS: &str = "__all_elements";

/// The function. A list of plain values is what it was.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct AllElements {
    signature: Signature,
}

impl AllElements {
    pub(crate) fn udf() -> Arc<ScalarUDF> {
        Arc::new(ScalarUDF::from(Self { signature: Signature::any(1, Volatility::Immutable) }))
    }
}

impl ScalarUDFImpl for AllElements {
    fn name(&self) -> &str {
        ALL_ELEMENTS
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arg_types: &[DataType]) -> DfResult<DataType> {
        let mut list = &arg_types[0];
        while let DataType::List(element) = list
            && matches!(element.data_type(), DataType::List(_))
        {
            list = element.data_type();
        }
        Ok(list.clone())
    }

    /// (A list of documents stays one.)
    fn return_field_from_args(&self, args: ReturnFieldArgs) -> DfResult<FieldRef> {
        let list = &args.arg_fields[0];
        let field = Field::new(self.name(), self.return_type(&[list.data_type().clone()])?, true);
        Ok(Arc::new(field.with_metadata(list.metadata().clone())))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let mut lists = args.args[0].to_array(args.number_rows)?;
        while let DataType::List(element) = lists.data_type()
            && matches!(element.data_type(), DataType::List(_))
        {
            lists = Arc::new(without_a_level(lists.as_list())?) as ArrayRef;
        }
        Ok(ColumnarValue::Array(lists))
    }

    fn simplify(&self, mut args: Vec<Expr>, info: &SimplifyContext) -> DfResult<ExprSimplifyResult> {
        let is_flat = |list: &DataType| match list {
            DataType::List(element) => !matches!(element.data_type(), DataType::List(_)),
            _ => true,
        };
        match args.as_slice() {
            [list] if is_flat(&info.get_data_type(list)?) => Ok(ExprSimplifyResult::Simplified(args.remove(0))),
            _ => Ok(ExprSimplifyResult::Original(args)),
        }
    }
}

/// Each list with the elements of its lists in their place. The values stay where they are: a list
/// of lists that lie behind each other is one list of all that lies there.
fn without_a_level(outer: &ListArray) -> DfResult<ListArray> {
    let inner = outer.values().as_list::<i32>();
    let ends = inner.offsets();
    let offsets: Vec<i32> = outer.offsets().iter().map(|at| ends[*at as usize]).collect();
    let DataType::List(element) = inner.data_type() else { unreachable!("a list's type is that of lists") };
    let offsets = OffsetBuffer::new(offsets.into());
    Ok(ListArray::try_new(element.clone(), offsets, inner.values().clone(), outer.nulls().cloned())?)
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::Int32Type;

    use super::*;

    #[test]
    fn rows_of_lists_become_lists_of_elements() {
        let inner = ListArray::from_iter_primitive::<Int32Type, _, _>(vec![
            Some(vec![Some(1), None]),
            Some(vec![Some(3), Some(4)]),
            Some(vec![Some(5)]),
        ]);
        let field = arrow::datatypes::Field::new_list_field(inner.data_type().clone(), true);
        let offsets = OffsetBuffer::new(vec![0, 2, 2, 3].into());
        let outer = ListArray::new(Arc::new(field), offsets, Arc::new(inner), None);
        let expected = ListArray::from_iter_primitive::<Int32Type, _, _>(vec![
            Some(vec![Some(1), None, Some(3), Some(4)]),
            Some(vec![]),
            Some(vec![Some(5)]),
        ]);
        assert_eq!(without_a_level(&outer).unwrap(), expected);
        assert_eq!(without_a_level(&outer.slice(2, 1)).unwrap(), expected.slice(2, 1));
    }
}
