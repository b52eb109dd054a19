//! `expanded(list)`: a list of the records (element, place), which
//! `information_schema._pg_expandarray` yields row by row.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int32Array, ListArray, StructArray};
use arrow::datatypes::{DataType, Field, FieldRef, Fields};
use datafusion_common::{Result as DfResult, plan_err};
use datafusion_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

/// The function's name, which no user writes.
pub(crate) const EXPANDED: &str = "__expanded";

/// The function. Places count from 1; NULL and an empty list give no records.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Expanded {
    signature: Signature,
}

impl Expanded {
    pub(crate) fn udf() -> Arc<ScalarUDF> {
        Arc::new(ScalarUDF::from(Self { signature: Signature::any(1, Volatility::Immutable) }))
    }
}

impl ScalarUDFImpl for Expanded {
    fn name(&self) -> &str {
        EXPANDED
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arg_types: &[DataType]) -> DfResult<DataType> {
        match &arg_types[0] {
            DataType::List(element) => Ok(DataType::List(record(element))),
            other => plan_err!("_pg_expandarray() takes an array, not {other}"),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let lists = args.args[0].to_array(args.number_rows)?;
        Ok(ColumnarValue::Array(Arc::new(records(lists.as_list())?)))
    }
}

/// The type of a record: `x` is the element, `n` its place.
fn record(element: &Field) -> FieldRef {
    let element = Field::new("x", element.data_type().clone(), true);
    let fields = Fields::from(vec![element, Field::new("n", DataType::Int32, true)]);
    Arc::new(Field::new_list_field(DataType::Struct(fields), true))
}

fn records(lists: &ListArray) -> DfResult<ListArray> {
    let DataType::List(element) = lists.data_type() else { unreachable!("a list's type is that of lists") };
    let record = record(element);
    let DataType::Struct(fields) = record.data_type().clone() else { unreachable!("a record is a struct") };
    let (offsets, values) = (lists.offsets(), lists.values());
    let mut places = vec![0; values.len()];
    for pair in offsets.windows(2) {
        let places = &mut places[pair[0] as usize..pair[1] as usize];
        places.iter_mut().zip(1..).for_each(|(place, n)| *place = n);
    }
    let columns: Vec<ArrayRef> = vec![Arc::clone(values), Arc::new(Int32Array::from(places))];
    let records = StructArray::try_new(fields, columns, None)?;
    Ok(ListArray::try_new(record, offsets.clone(), Arc::new(records), lists.nulls().cloned())?)
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::Int32Type;

    use super::*;

    #[test]
    fn places_count_from_one_in_each_list() {
        let lists = ListArray::from_iter_primitive::<Int32Type, _, _>(vec![
            Some(vec![Some(7), Some(8)]),
            Some(vec![]),
            None,
            Some(vec![Some(9)]),
        ]);
        let records = records(&lists.slice(1, 3)).unwrap();
        assert_eq!(records.value(0).len(), 0);
        assert!(records.is_null(1));
        let last = records.value(2);
        let columns = last.as_struct().columns();
        assert_eq!(columns[0].as_primitive::<Int32Type>().values(), &[9]);
        assert_eq!(columns[1].as_primitive::<Int32Type>().values(), &[1]);
    }
}
