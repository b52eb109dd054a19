//! `(a, b) OVERLAPS (c, d)`, as a function of the list of the four ends.
//!
//! Law: a span goes from the earlier of its ends to the later. An end that is NULL lies anywhere
//! behind the other one: the answer is NULL where it depends on it. The list gives the ends one
//! type, by the rules of lists. Cost: a comparison or two a row; each end is computed once.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, make_comparator};
use arrow::compute::SortOptions;
use arrow::datatypes::DataType;
use datafusion_common::{Result as DfResult, ScalarValue};
use datafusion_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

use crate::error::{ErrorKind, SqlError};
use crate::resolve::type_names::sql_name;

/// Its name in statements, which no user writes.
pub(crate) const OVERLAPS: &str = "__overlaps";

#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Overlaps {
    signature: Signature,
}

impl Overlaps {
    pub(crate) fn udf() -> Arc<ScalarUDF> {
        Arc::new(ScalarUDF::from(Self { signature: Signature::any(1, Volatility::Immutable) }))
    }
}

impl ScalarUDFImpl for Overlaps {
    fn name(&self) -> &str {
        OVERLAPS
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arg_types: &[DataType]) -> DfResult<DataType> {
        match &arg_types[0] {
            DataType::List(ends) if ends.data_type().is_temporal() || ends.data_type().is_null() => {
                Ok(DataType::Boolean)
            }
            other => {
                let of = match other {
                    DataType::List(ends) => sql_name(ends.data_type()),
                    other => sql_name(other),
                };
                let message = format!("OVERLAPS takes two pairs of times: (a, b) OVERLAPS (c, d), not of type {of}");
                Err(SqlError::new(ErrorKind::Type, message).with_hint("Cast the ends: a::timestamp.").into())
            }
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let spans = args.args[0].to_array(args.number_rows)?;
        let spans = spans.as_list::<i32>();
        let ends = spans.values();
        if ends.data_type().is_null() {
            return Ok(ColumnarValue::Scalar(ScalarValue::Boolean(None)));
        }
        let order = make_comparator(ends, ends, SortOptions::default())?;
        let of_row = |row: usize| {
            let from = spans.value_offsets()[row] as usize;
            overlap([from, from + 1, from + 2, from + 3].map(|at| ends.is_valid(at).then_some(at)), &order)
        };
        let answers: BooleanArray =
            (0..spans.len()).map(|row| if spans.is_null(row) { None } else { of_row(row) }).collect();
        Ok(ColumnarValue::Array(Arc::new(answers) as ArrayRef))
    }
}

/// Whether two spans overlap, by the places of their ends; an end that is none is NULL.
fn overlap([a, b, c, d]: [Option<usize>; 4], order: &dyn Fn(usize, usize) -> Ordering) -> Option<bool> {
    // The start, and the end if there is one.
    let span = |a: Option<usize>, b: Option<usize>| match (a, b) {
        (Some(a), Some(b)) if order(a, b).is_gt() => Some((b, Some(a))),
        (Some(a), b) => Some((a, b)),
        (None, Some(b)) => Some((b, None)),
        (None, None) => None,
    };
    let ((start, end), (other_start, other_end)) = (span(a, b)?, span(c, d)?);
    // The later start is before the end of the other span, or behind its own.
    let later = |start: usize, own_end: Option<usize>, end: Option<usize>| match order(start, end?) {
        Ordering::Less => Some(true),
        _ => own_end.map(|_| false),
    };
    match order(start, other_start) {
        Ordering::Greater => later(start, end, other_end),
        Ordering::Less => later(other_start, other_end, end),
        Ordering::Equal => end.and(other_end).map(|_| true),
    }
}
