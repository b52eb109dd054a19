//! What the translations of window functions share: their order and partition by columns, rows with
//! their numbers, the aggregate that a call asks for.

use std::sync::Arc;

use anabranch_plan::{Node, Plan, RankedBy, SortKey, TopK};
use arrow::datatypes::DataType;
use datafusion_common::DFSchema;
use datafusion_expr::expr::{AggregateFunctionParams, WindowFunction, WindowFunctionParams};
use datafusion_expr::{Expr, WindowFunctionDefinition};

use super::aggregate::{Resolve, WantedAggregate};
use super::expr::{resolve, resolve_key};
use super::schema::{drafts, schema};
use super::stage::{take, with_columns};
use crate::error::{Result, SqlError};
use crate::functions::user::UserAggregateFunction;

/// Groups and the order within them, by columns.
pub(super) struct Order {
    pub(super) group: Vec<usize>,
    pub(super) keys: Vec<SortKey>,
}

/// The call's order, by columns.
pub(super) fn order_of(call: &WindowFunction, columns: &[usize]) -> Vec<SortKey> {
    let keys = call.params.order_by.iter().zip(columns);
    keys.map(|(key, at)| SortKey { column: *at, descending: !key.asc, nulls_first: key.nulls_first }).collect()
}

/// Appends the row's place within its partition. A filter on the place becomes a limit in `stage`;
/// without one, the rewrite "row numbers" spells the place out.
pub(super) fn placed(plan: Arc<Plan>, call: &WindowFunction, from: &DFSchema, ranked: RankedBy) -> Result<Arc<Plan>> {
    let width = plan.schema.fields().len();
    let params = &call.params;
    let mut exprs = resolved(&params.partition_by, from, &plan)?;
    let n_groups = exprs.len();
    for key in &params.order_by {
        exprs.push(resolve_key(&key.expr, from, &plan.schema)?);
    }
    let (input, columns) = with_columns(plan, exprs)?;
    let keys = order_of(call, &columns[n_groups..]);
    let plan = number(input, Order { group: columns[..n_groups].to_vec(), keys }, ranked);
    let number = plan.schema.fields().len() - 1;
    let shown: Vec<usize> = (0..width).chain([number]).collect();
    Ok(take(plan, &shown))
}

/// Appends the row's number within its partition.
pub(super) fn numbered(plan: Arc<Plan>, call: &WindowFunction, from: &DFSchema) -> Result<Arc<Plan>> {
    placed(plan, call, from, RankedBy::Row)
}

/// Appends the row's place within its group.
pub(super) fn number(input: Arc<Plan>, order: Order, ranked: RankedBy) -> Arc<Plan> {
    let mut group: Vec<usize> = Vec::new();
    for at in order.group {
        if !group.contains(&at) {
            group.push(at);
        }
    }
    let mut keys: Vec<SortKey> = Vec::new();
    for key in order.keys {
        if !group.contains(&key.column) && !keys.iter().any(|known| known.column == key.column) {
            keys.push(key);
        }
    }
    let top = TopK { group, order: keys, ranked, offset: 0, limit: None, numbered: true };
    let mut columns = drafts(&input.schema);
    let name = match ranked {
        RankedBy::Row => "row_number",
        RankedBy::Rank => "rank",
        RankedBy::DenseRank => "dense_rank",
    };
    columns.push((name.into(), DataType::UInt64, false));
    Arc::new(Plan { node: Node::TopK { input, top }, schema: schema(columns) })
}

/// The aggregate that a call asks for.
pub(super) fn aggregate_of(
    call: &WindowFunction,
    output: &DataType,
    resolve: &dyn Fn(&Expr) -> Result<Expr>,
) -> Result<WantedAggregate> {
    let params = &call.params;
    if let WindowFunctionDefinition::AggregateUDF(function) = &call.fun
        && UserAggregateFunction::function_of(function).is_some()
    {
        return Err(SqlError::unsupported(
            format!("aggregate {}() of a user with OVER", function.name()),
            "Aggregate with GROUP BY in a subquery, and join its result.",
        ));
    }
    let aggregate = AggregateFunctionParams {
        args: params.args.clone(),
        distinct: params.distinct,
        filter: params.filter.clone(),
        order_by: vec![],
        null_treatment: params.null_treatment,
    };
    WantedAggregate::of(call.fun.name(), &aggregate, output, &Resolve::parts(resolve))
}

/// Whether all rows of a partition are peers.
pub(super) fn is_unordered(params: &WindowFunctionParams) -> bool {
    params.order_by.iter().all(|key| matches!(key.expr, Expr::Literal(..)))
}

pub(super) fn resolved(exprs: &[Expr], from: &DFSchema, plan: &Plan) -> Result<Vec<Expr>> {
    exprs.iter().map(|e| resolve(e, from, &plan.schema)).collect()
}
