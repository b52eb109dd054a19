//! Rows with documents in them, on their way to become documents themselves.
//!
//! Law: the row's columns keep the marks of documents, which DataFusion's `named_struct` drops. It
//! stands within functions of documents only: batches never have such a column.

use std::sync::Arc;

use arrow::array::StructArray;
use arrow::datatypes::{DataType, Field, FieldRef, Fields};
use datafusion_common::{DFSchema, Result as DfResult, ScalarValue, exec_err};
use datafusion_expr::expr::ScalarFunction;
use datafusion_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, lit,
};

use super::list;
use crate::resolve::documents::{form_in_list, form_of};
use crate::resolve::operands::markable;

const MARKED_ROW: &str = "__document_row";

/// Names and values, in turn.
#[derive(Debug, PartialEq, Eq, Hash)]
struct DocumentRow {
    signature: Signature,
}

/// The row with marks, if it is one of names and values and has documents. `mark` is a call around
/// a document.
pub(super) fn marked(row: &Expr, schema: &DFSchema, mark: fn(Expr) -> Expr) -> Option<Expr> {
    let Expr::ScalarFunction(ScalarFunction { func, args }) = row else { return None };
    if func.name() == "struct" {
        let named = args.iter().enumerate().flat_map(|(at, value)| [lit(format!("c{at}")), value.clone()]);
        let row = ScalarFunction { func: datafusion_functions::core::named_struct(), args: named.collect() };
        return marked(&Expr::ScalarFunction(row), schema, mark);
    }
    let has_marks = func.name() == MARKED_ROW;
    let is_document = |value: &Expr| {
        let is_call = matches!(value, Expr::ScalarFunction(_));
        !(has_marks && is_call)
            && markable(value, schema).is_some_and(|field| form_of(&field).or_else(|| form_in_list(&field)).is_some())
    };
    if !has_marks && func.name() != "named_struct" || !args.iter().skip(1).step_by(2).any(is_document) {
        return None;
    }
    let is_list = |value: &Expr| markable(value, schema).is_some_and(|field| form_in_list(&field).is_some());
    let values = args.iter().enumerate().map(|(at, value)| match at % 2 == 1 && is_document(value) {
        // (A column has no mark where rows are computed; a call has.)
        true if is_list(value) => list::marked(value.clone()),
        true => mark(value.clone()),
        false => value.clone(),
    });
    Some(Expr::ScalarFunction(ScalarFunction { func: udf(), args: values.collect() }))
}

/// The function.
pub(super) fn udf() -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::from(DocumentRow { signature: Signature::variadic_any(Volatility::Immutable) }))
}

impl ScalarUDFImpl for DocumentRow {
    fn name(&self) -> &str {
        MARKED_ROW
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _types: &[DataType]) -> DfResult<DataType> {
        exec_err!("the columns of a row depend on their names")
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> DfResult<FieldRef> {
        let columns = args.scalar_arguments.chunks(2).zip(args.arg_fields.chunks(2)).map(|(values, fields)| {
            let ([Some(name), _], [_, field]) = (values, fields) else {
                return exec_err!("a row is of names and values");
            };
            Ok(column(name, field))
        });
        let columns: Fields = columns.collect::<DfResult<Vec<Field>>>()?.into();
        Ok(Arc::new(Field::new(self.name(), DataType::Struct(columns), false)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let n_rows = args.number_rows;
        let (mut fields, mut columns) = (Vec::new(), Vec::new());
        for (values, given) in args.args.chunks(2).zip(args.arg_fields.chunks(2)) {
            let ([ColumnarValue::Scalar(name), value], [_, field]) = (values, given) else {
                return exec_err!("a row is of names and values");
            };
            fields.push(column(name, field));
            columns.push(value.to_array(n_rows)?);
        }
        let row = StructArray::try_new_with_length(fields.into(), columns, None, n_rows)?;
        Ok(ColumnarValue::Array(Arc::new(row)))
    }
}

fn column(name: &ScalarValue, value: &Field) -> Field {
    let name = name.try_as_str().flatten().unwrap_or_default();
    Field::new(name, value.data_type().clone(), true).with_metadata(value.metadata().clone())
}
