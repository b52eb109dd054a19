//! Casts of documents and uuids to other types.
//!
//! ```text
//! j::integer    __jsonb_scalar(j, 'number', 'integer')::numeric::integer    of '1.7' it is 2
//! j::date       cannot cast type jsonb to date
//! ```

use anabranch_batch::TextLimit;
use anabranch_batch::numeric::TYPE;
use arrow::datatypes::DataType;
use datafusion_common::tree_node::Transformed;
use datafusion_common::{DFSchema, Result as DfResult, plan_err};
use datafusion_expr::{Cast, Expr, ExprSchemable, cast, lit};

use crate::functions::table::call;
use crate::resolve::documents::{DocumentForm, form_of, shown_form_of};
use crate::resolve::type_names::{is_number, is_text, sql_name};

/// Reads the number or the boolean that a `jsonb` is, and refuses other casts.
pub(super) fn settle(expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    let Expr::Cast(Cast { expr: document, field }) = expr else { return Ok(Transformed::no(expr)) };
    let to = field.data_type().clone();
    let of = document.to_field(schema).map(|(_, of)| of);
    let form = of.as_ref().ok().and_then(|of| form_of(of));
    let is_uuid = of.as_ref().is_ok_and(|of| shown_form_of(of) == Some(TextLimit::Uuid));
    if is_text(&to) || form.is_none() && !is_uuid {
        return Ok(Transformed::no(Expr::Cast(Cast { expr: document, field })));
    }
    let (from, kind) = match form {
        Some(DocumentForm::Jsonb) if is_number(&to) => ("jsonb", Some("number")),
        Some(DocumentForm::Jsonb) if to == DataType::Boolean => ("jsonb", Some("boolean")),
        Some(DocumentForm::Jsonb) => ("jsonb", None),
        Some(DocumentForm::Json) => ("json", None),
        None => ("uuid", None),
    };
    let Some(kind) = kind else { return plan_err!("cannot cast type {from} to {}", sql_name(&to)) };
    let name = if to.is_decimal() { "numeric".to_owned() } else { sql_name(&to) };
    let text = call("__jsonb_scalar", vec![*document, lit(kind), lit(name)]);
    // (A float is read from its digits, a whole number is rounded.)
    let value = if to.is_integer() { cast(text, TYPE) } else { text };
    Ok(Transformed::yes(Expr::Cast(Cast { expr: Box::new(value), field })))
}
