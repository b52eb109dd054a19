//! Branches of rows that are split: `split_branch(width, route)`, the number of a branch, and
//! `split_branches(width, broadcast, route)`, the list of them. What `SPLIT` in FROM stands for.
//!
//! Law: a route of `0 .. width` is its branch, NULL is none, and any other is an error. Where
//! `broadcast` is true, the list has every branch and the route does not matter. Cost: a comparison
//! a row, and a number for each branch of a row.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, ListArray};
use arrow::buffer::OffsetBuffer;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Int64Type};
use datafusion_common::{Result as DfResult, ScalarValue, exec_err, plan_err};
use datafusion_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

use crate::resolve::type_names::sql_name;

/// The number of a row's branch.
pub(crate) const BRANCH_OF: &str = "split_branch";

/// The numbers of a row's branches.
pub(crate) const BRANCHES_OF: &str = "split_branches";

/// Both functions.
pub(crate) fn all() -> impl Iterator<Item = Arc<ScalarUDF>> {
    let udf = |is_list: bool| {
        let signature = Signature::any(if is_list { 3 } else { 2 }, Volatility::Immutable);
        Arc::new(ScalarUDF::from(Branches { is_list, signature }))
    };
    [false, true].into_iter().map(udf)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Branches {
    /// Whether all branches of a row are listed.
    is_list: bool,
    signature: Signature,
}

impl ScalarUDFImpl for Branches {
    fn name(&self) -> &str {
        if self.is_list { BRANCHES_OF } else { BRANCH_OF }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arg_types: &[DataType]) -> DfResult<DataType> {
        let (broadcast, route) = match arg_types {
            [_, broadcast, route] => (Some(broadcast), route),
            [_, route] => (None, route),
            _ => return plan_err!("function {} does not take these arguments", self.name()),
        };
        if !matches!(route, DataType::Int16 | DataType::Int32 | DataType::Int64 | DataType::Null) {
            return plan_err!("the route of SPLIT is a whole number, not of type {}", sql_name(route));
        }
        if let Some(other) = broadcast.filter(|of| !matches!(of, DataType::Boolean | DataType::Null)) {
            return plan_err!("the broadcast of SPLIT is a condition, not of type {}", sql_name(other));
        }
        Ok(match self.is_list {
            true => DataType::List(Arc::new(Field::new_list_field(DataType::Int64, true))),
            false => DataType::Int64,
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let width = match &args.args[0] {
            ColumnarValue::Scalar(ScalarValue::Int64(Some(width))) => *width,
            _ => return exec_err!("the width of a split is a constant whole number"),
        };
        let column = |at: usize, of: &DataType| cast(&args.args[at].to_array(args.number_rows)?, of);
        let routes = column(args.args.len() - 1, &DataType::Int64)?;
        let routes = routes.as_primitive::<Int64Type>();
        if let Some(wrong) = routes.iter().flatten().find(|route| !(0..width).contains(route)) {
            return exec_err!("a row is routed to branch {wrong} of {width}");
        }
        if !self.is_list {
            return Ok(ColumnarValue::Array(Arc::new(routes.clone())));
        }
        let to_all = column(1, &DataType::Boolean)?;
        let to_all = to_all.as_boolean();
        let (mut numbers, mut lengths) = (Vec::new(), Vec::with_capacity(args.number_rows));
        for row in 0..args.number_rows {
            let before = numbers.len();
            match to_all.is_valid(row) && to_all.value(row) {
                true => numbers.extend(0..width),
                false if routes.is_valid(row) => numbers.push(routes.value(row)),
                false => {}
            }
            lengths.push(numbers.len() - before);
        }
        let DataType::List(element) = args.return_field.data_type() else {
            return exec_err!("branches are a list");
        };
        let offsets = OffsetBuffer::from_lengths(lengths);
        let numbers: ArrayRef = Arc::new(Int64Array::from(numbers));
        Ok(ColumnarValue::Array(Arc::new(ListArray::try_new(Arc::clone(element), offsets, numbers, None)?)))
    }
}
