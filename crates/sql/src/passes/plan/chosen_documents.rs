//! Documents that CASE chooses in a derived table are documents to the query around it.
//!
//! CASE drops the marks of its values. Derived tables and named queries have those of the documents
//! that all branches are, as soon as they are planned. Cost: a call around the column.

use std::sync::Arc;

use anabranch_batch::TextLimit;
use datafusion_common::Result as DfResult;
use datafusion_expr::Expr;
use datafusion_expr::logical_plan::{LogicalPlan, Projection};

use crate::functions::table::call;
use crate::planned::ColumnForm;
use crate::resolve::documents::form_of;
use crate::resolve::shown_forms::forms_of;

/// The rows, with columns marked that are documents.
pub(super) fn mark(plan: LogicalPlan) -> DfResult<LogicalPlan> {
    let forms = forms_of(&plan);
    let lost = |at: usize| {
        let function = match forms.get(at).copied().flatten()? {
            ColumnForm::Text(TextLimit::Json) => "__json_document",
            ColumnForm::Text(TextLimit::Jsonb) => "__jsonb_document",
            _ => return None,
        };
        form_of(plan.schema().field(at)).is_none().then_some(function)
    };
    let functions: Vec<Option<&str>> = (0..plan.schema().fields().len()).map(lost).collect();
    if functions.iter().all(Option::is_none) {
        return Ok(plan);
    }
    let columns = plan.schema().columns().into_iter().zip(functions).map(|(column, function)| {
        let (relation, name) = (column.relation.clone(), column.name.clone());
        let value = Expr::Column(column);
        match function {
            Some(function) => call(function, vec![value]).alias_qualified(relation, name),
            None => value,
        }
    });
    Ok(LogicalPlan::Projection(Projection::try_new(columns.collect(), Arc::new(plan))?))
}
