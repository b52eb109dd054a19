//! `string_agg` of bytes: the bytes of its rows with those of the separator between them.
//!
//! The aggregate joins texts. Bytes are written in hexadecimal digits below it, and read of them
//! above: what is joined digit by digit is joined byte by byte.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion_common::tree_node::Transformed;
use datafusion_common::{Column, Result as DfResult};
use datafusion_expr::logical_plan::{Aggregate, LogicalPlan, LogicalPlanBuilder};
use datafusion_expr::{Expr, ExprSchemable, lit};

use crate::functions::conversions::ByteaIn;
use crate::functions::table::FUNCTIONS;

/// Joins bytes where an aggregate would join their printed texts.
pub(crate) fn join_bytes(node: LogicalPlan) -> DfResult<Transformed<LogicalPlan>> {
    let LogicalPlan::Aggregate(aggregate) = &node else { return Ok(Transformed::no(node)) };
    let joined: Vec<Option<Expr>> =
        aggregate.aggr_expr.iter().enumerate().map(|(n, call)| digits_joined(call, n, aggregate)).collect();
    if joined.iter().all(Option::is_none) {
        return Ok(Transformed::no(node));
    }
    let calls = aggregate.aggr_expr.iter().zip(&joined).map(|(call, digits)| digits.as_ref().unwrap_or(call).clone());
    let over = Aggregate::try_new(Arc::clone(&aggregate.input), aggregate.group_expr.clone(), calls.collect())?;
    let n_groups = aggregate.schema.fields().len() - joined.len();
    let column = |(at, (qualifier, field)): (usize, (_, &Arc<_>))| {
        let field: &arrow::datatypes::Field = field;
        let qualifier: Option<&datafusion_common::TableReference> = qualifier;
        match at.checked_sub(n_groups).filter(|n| joined[*n].is_some()) {
            Some(n) => {
                let digits = Expr::Column(Column::from_name(name_of(n)));
                called("decode", vec![digits, lit("hex")]).alias_qualified(qualifier.cloned(), field.name())
            }
            None => Expr::Column(Column::new(qualifier.cloned(), field.name())),
        }
    };
    let columns: Vec<Expr> = aggregate.schema.iter().enumerate().map(column).collect();
    let plan = LogicalPlanBuilder::from(LogicalPlan::Aggregate(over)).project(columns)?.build()?;
    Ok(Transformed::yes(plan))
}

/// The aggregate over digits, if it is one over bytes.
fn digits_joined(call: &Expr, n: usize, aggregate: &Aggregate) -> Option<Expr> {
    let Expr::AggregateFunction(mut call) = call.clone().unalias() else { return None };
    if call.func.name() != "string_agg" {
        return None;
    }
    let [value, separator] = call.params.args.as_mut_slice() else { return None };
    let is_bytes =
        |expr: &Expr| matches!(expr.get_type(aggregate.input.schema()), Ok(DataType::Binary | DataType::BinaryView));
    if !is_bytes(value) {
        return None;
    }
    let digits = |bytes: Expr| called("encode", vec![bytes, lit("hex")]);
    if !is_bytes(separator) {
        *separator = ByteaIn::udf().call(vec![separator.clone()]);
    }
    (*value, *separator) = (digits(value.clone()), digits(separator.clone()));
    Some(Expr::AggregateFunction(call).alias(name_of(n)))
}

fn name_of(n: usize) -> String {
    format!("__digits_{n}")
}

fn called(name: &str, args: Vec<Expr>) -> Expr {
    match FUNCTIONS.scalar.get(name) {
        Some(function) => function.call(args),
        None => Expr::default(),
    }
}
