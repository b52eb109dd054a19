//! Expressions that Python has written as SQL, over the columns of a query over events.

use anabranch_engine::Error;
use anabranch_engine::frame::{Expr, Frame as EngineFrame};
use arrow::datatypes::DataType;
use pyo3::prelude::*;

use crate::error::raised;
use crate::functions::{Function, by_name};
use crate::rows::Rows;

/// Columns of an answer: names and types.
pub fn columns_of(rows: &Rows) -> Vec<(String, DataType)> {
    rows.schema().fields().iter().map(|field| (field.name().clone(), field.data_type().clone())).collect()
}

/// Texts as expressions over the frame.
pub fn expressions(
    py: Python<'_>,
    frame: &EngineFrame,
    texts: &[String],
    more: &[(String, DataType)],
    functions: &[(String, PyRef<'_, Function>)],
) -> PyResult<Vec<Expr>> {
    if texts.is_empty() {
        return Ok(vec![]);
    }
    let functions = by_name(functions);
    let made: Result<Vec<Expr>, Error> = py.detach(|| frame.expressions(texts, more, &functions));
    made.map_err(|error| raised(py, &error, None))
}
