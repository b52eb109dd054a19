//! EXCEPT and INTERSECT of rows with intervals, by the lengths of the intervals.
//!
//! Law: a row of the left side meets a row of the right side where PostgreSQL's `=` calls all their
//! columns equal. The rows of the left that are equal are numbered, the least spelling first; how
//! many equal rows the right side has tells which of the numbers stay.
//!
//! Cost: a numbering of the left side, an aggregate of the right, and a join of both.

use anabranch_plan::SetOperation;
use arrow::datatypes::DataType;
use datafusion_common::{Column, NullEquality, Result as DfResult};
use datafusion_expr::expr::{Sort, WindowFunction, WindowFunctionParams};
use datafusion_expr::logical_plan::{LogicalPlan, LogicalPlanBuilder};
use datafusion_expr::{Expr, JoinType, WindowFrame, WindowFunctionDefinition, cast, col, ident, lit};

use crate::functions::aggregates;

use super::interval_keys::{compared, has_spellings};
use super::set_operations::SetNode;

const COUNT: &str = "__count";

/// The operation as a numbered left side, joined with the counts of the right one.
pub(super) fn by_lengths(node: &SetNode) -> DfResult<LogicalPlan> {
    let SetNode { operation, left, right, .. } = node;
    let (rows, keys) = with_keys(left.clone(), "__left")?;
    let spellings = left.schema().iter().filter(|(_, field)| has_spellings(field));
    let spellings = spellings.map(|(_, field)| Sort::new(ident(field.name()), true, false)).collect();
    let number = Expr::from(WindowFunction {
        fun: WindowFunctionDefinition::WindowUDF(datafusion_functions_window::row_number::row_number_udwf()),
        params: WindowFunctionParams {
            args: vec![],
            partition_by: keys.iter().map(ident).collect(),
            order_by: spellings,
            window_frame: WindowFrame::new(Some(false)),
            filter: None,
            null_treatment: None,
            distinct: false,
        },
    });
    let number_name = ident(number.schema_name().to_string());
    let numbered = LogicalPlanBuilder::from(rows).window(vec![number])?;

    let (rows, right_keys) = with_keys(right.clone(), "__right")?;
    let counts = aggregates::count().call(vec![lit(1i64)]).alias(COUNT);
    let counts = LogicalPlanBuilder::from(rows).aggregate(right_keys.iter().map(ident), vec![counts])?.build()?;

    let on: (Vec<_>, Vec<_>) =
        (keys.iter().map(Column::from_name).collect(), right_keys.iter().map(Column::from_name).collect());
    numbered
        .join_detailed(counts, JoinType::Left, on, None, NullEquality::NullEqualsNull)?
        .filter(stays(*operation, number_name))?
        .project(node_columns(left))?
        .build()
}

/// The side's rows with what is compared beside them, and the names of that.
fn with_keys(side: LogicalPlan, prefix: &str) -> DfResult<(LogicalPlan, Vec<String>)> {
    let mut columns = node_columns(&side);
    let mut keys = Vec::with_capacity(columns.len());
    for (index, (_, field)) in side.schema().iter().enumerate() {
        let value = ident(field.name());
        let compared = if has_spellings(field) { compared(value, side.schema()) } else { value };
        keys.push(format!("{prefix}_{index}"));
        columns.push(compared.alias(&keys[index]));
    }
    Ok((LogicalPlanBuilder::from(side).project(columns)?.build()?, keys))
}

fn node_columns(side: &LogicalPlan) -> Vec<Expr> {
    side.schema().iter().map(|(_, field)| ident(field.name())).collect()
}

/// Whether the row of the left side that has the number is a row of the result.
fn stays(operation: SetOperation, number: Expr) -> Expr {
    let is_met = col(COUNT).is_not_null();
    let is_matched = number.clone().lt_eq(cast(col(COUNT), DataType::UInt64));
    match operation {
        SetOperation::Except => number.eq(lit(1u64)).and(col(COUNT).is_null()),
        SetOperation::Intersect => number.eq(lit(1u64)).and(is_met),
        SetOperation::ExceptAll => is_matched.is_not_true(),
        SetOperation::IntersectAll => is_met.and(is_matched),
    }
}
