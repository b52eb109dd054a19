//! Expressions over one row.
//!
//! DataFusion's evaluator defines what a scalar expression means, except that integers do not wrap
//! around: overflow is a row error, as in PostgreSQL. Here it sees batches of exactly one row, so
//! no row can influence another.

use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;
use datafusion_common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion_common::{DFSchema, ScalarValue};
use datafusion_expr::execution_props::ExecutionProps;
use datafusion_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion_expr::{ColumnarValue, Expr, Operator};
use datafusion_physical_expr::expressions::BinaryExpr;
use datafusion_physical_expr::{PhysicalExpr, create_physical_expr};

use crate::row::Row;

/// An expression, ready to be applied to rows of a schema.
pub struct Evaluator {
    expression: Arc<dyn PhysicalExpr>,
    schema: SchemaRef,
}

impl Evaluator {
    /// The expression over rows of `schema`.
    ///
    /// # Panics
    /// If it does not fit the schema.
    pub fn new(expr: &Expr, schema: &DFSchema) -> Evaluator {
        let context = PhysicalPlanningContext::default();
        let expression = create_physical_expr(expr, schema, &ExecutionProps::new(), &context)
            .and_then(|expression| expression.transform_up(|part| Ok(without_wrapping(part))).data())
            .unwrap_or_else(|error| panic!("{expr} does not fit {schema}: {error}"));
        Evaluator { expression, schema: Arc::new(schema.as_arrow().clone()) }
    }

    /// The expression's value on a row, or the text of the row's error.
    pub fn value(&self, row: &Row) -> Result<ScalarValue, String> {
        let columns = row.values().zip(self.schema.fields()).map(|(value, field)| {
            let array = value.to_array_of_size(1).expect("every supported type has an array form");
            arrow::compute::cast(&array, field.data_type()).expect("values are of the column's type")
        });
        let options = RecordBatchOptions::new().with_row_count(Some(1));
        let batch = RecordBatch::try_new_with_options(self.schema.clone(), columns.collect(), &options)
            .expect("the row fits its schema");
        match self.expression.evaluate(&batch).map_err(|error| error.to_string())? {
            ColumnarValue::Scalar(value) => Ok(value),
            ColumnarValue::Array(array) => ScalarValue::try_from_array(&array, 0).map_err(|error| error.to_string()),
        }
    }

    /// Whether a predicate is true on a row; NULL is not.
    pub fn is_true(&self, row: &Row) -> Result<bool, String> {
        Ok(matches!(self.value(row)?, ScalarValue::Boolean(Some(true))))
    }
}

fn without_wrapping(part: Arc<dyn PhysicalExpr>) -> Transformed<Arc<dyn PhysicalExpr>> {
    match part.downcast_ref::<BinaryExpr>() {
        Some(binary) if matches!(binary.op(), Operator::Plus | Operator::Minus | Operator::Multiply) => {
            let same = BinaryExpr::new(binary.left().clone(), *binary.op(), binary.right().clone());
            Transformed::yes(Arc::new(same.with_fail_on_overflow(true)))
        }
        _ => Transformed::no(part),
    }
}
