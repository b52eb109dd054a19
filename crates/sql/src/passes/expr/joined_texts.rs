//! `string_agg` of what is no text: refused, as in PostgreSQL.
//!
//! ```text
//! string_agg(k, ',')      function string_agg(integer, unknown) does not exist
//! ```
//!
//! DataFusion prints the values. Law: both arguments are texts, or both bytes; a literal in quotes
//! and NULL are either.

use arrow::datatypes::DataType;
use datafusion_common::{DFSchema, Result as DfResult, plan_err};
use datafusion_expr::{Expr, ExprSchemable};

use crate::resolve::operands::{marked_type, operand_name};
use crate::resolve::type_names::is_text;

/// Refuses the call of such an aggregate.
pub(super) fn check(expr: &Expr, schema: &DFSchema) -> DfResult<()> {
    let (name, args) = match expr {
        Expr::AggregateFunction(call) => (call.func.name(), &call.params.args),
        Expr::WindowFunction(call) => (call.fun.name(), &call.params.args),
        _ => return Ok(()),
    };
    if name != "string_agg" || args.iter().all(|arg| is_joined(arg, schema)) {
        return Ok(());
    }
    let types: Vec<String> = args.iter().map(|arg| operand_name(arg, schema)).collect();
    plan_err!("function string_agg({}) does not exist", types.join(", "))
}

fn is_joined(arg: &Expr, schema: &DFSchema) -> bool {
    let Ok(is) = arg.get_type(schema) else { return true };
    let is_bytes = matches!(is, DataType::Binary | DataType::BinaryView);
    (is_text(&is) || is.is_null() || is_bytes) && marked_type(arg, schema).is_none()
}
