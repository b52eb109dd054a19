//! Window functions that follow from row numbers: they become joins of the numbered rows with
//! groups of them or with themselves, so they are kept current by operators that exist.
//!
//! ```text
//! ntile(k)      from the number and the count of the partition
//! lag(x, n)     x of the row whose number is n less, where n is computed
//! first_value   x of the row numbered 1
//! ```
//!
//! Rows that the order does not tell apart are numbered by their remaining columns, as everywhere.
//! Cost: a change costs what it moves: buckets of a partition that grows, and numbers of orders
//! behind one that comes or goes. (`rank` beside other functions, and `lag` and `lead` by a
//! constant, are functions over frames.)

use std::sync::Arc;

use anabranch_plan::{JoinKind, Nulls, Plan, RankedBy};
use anabranch_spec::frame::Exclude;
use arrow::datatypes::DataType;
use datafusion_common::{DFSchema, ScalarValue};
use datafusion_expr::expr::{AggregateFunctionParams, WindowFunction};
use datafusion_expr::{Expr, WindowFrameBound, cast, lit, when};

use super::aggregate::{Resolve, WantedAggregate, grouped};
use super::expr::{column, resolve};
use super::join::{Draw, joined};
use super::stage::{Column, all_columns, filter, stage, with_columns};
use super::window_parts::{numbered, placed, resolved};
use crate::error::{ErrorKind, Result, SqlError};

/// Appends the call's result; `None` if the function is none of these.
pub(super) fn ranked(
    plan: Arc<Plan>,
    call: &WindowFunction,
    from: &DFSchema,
    exclude: Exclude,
) -> Result<Option<Arc<Plan>>> {
    let plan = match call.fun.name() {
        "dense_rank" => placed(plan, call, from, RankedBy::DenseRank)?,
        "ntile" => ntile(plan, call, from)?,
        "lag" | "lead" if is_by_column(call) => shifted(plan, call, from)?,
        "first_value" if exclude == Exclude::Nothing && starts_at_the_first(call) => first_value(plan, call, from)?,
        _ => return Ok(None),
    };
    Ok(Some(plan))
}

/// Whether each frame begins with the partition, and none is empty.
fn starts_at_the_first(call: &WindowFunction) -> bool {
    let frame = &call.params.window_frame;
    matches!(&frame.start_bound, WindowFrameBound::Preceding(from) if from.is_null())
        && !matches!(&frame.end_bound, WindowFrameBound::Preceding(_))
}

/// An aggregate over columns of a plan.
pub(super) fn aggregate(name: &str, args: Vec<Expr>, output: &DataType) -> Result<WantedAggregate> {
    let params =
        AggregateFunctionParams { args, distinct: false, filter: None, order_by: vec![], null_treatment: None };
    WantedAggregate::of(name, &params, output, &Resolve::parts(&|e| Ok(e.clone())))
}

/// The first `width` columns of the left side, then one column of the right.
pub(super) fn looked_up(
    (left, left_key): (Arc<Plan>, Vec<usize>),
    (right, right_key): (Arc<Plan>, Vec<usize>),
    kind: JoinKind,
    width: usize,
    wanted: &[usize],
) -> Arc<Plan> {
    let left_width = left.schema.fields().len();
    let output = (0..width).chain(wanted.iter().map(|at| left_width + at)).collect();
    joined(Draw { kind, left, right, left_key, right_key, nulls: Nulls::Equal, residual: None, output })
}

/// The first n mod k of k buckets have one row more than the others.
fn ntile(plan: Arc<Plan>, call: &WindowFunction, from: &DFSchema) -> Result<Arc<Plan>> {
    if let Some(Expr::Literal(value, _)) = call.params.args.first()
        && value.is_null()
    {
        let width = plan.schema.fields().len();
        return with_result(plan, width, Expr::Literal(ScalarValue::Int64(None), None));
    }
    let buckets = match (whole(call.params.args.first()), call.params.args.first()) {
        (Some(buckets), _) if buckets > 0 => lit(buckets),
        (None, Some(buckets)) => resolve(buckets, from, &plan.schema)?,
        _ => return Err(SqlError::new(ErrorKind::Invalid, "argument of ntile must be greater than zero")),
    };
    let width = plan.schema.fields().len();
    let plan = numbered(plan, call, from)?;
    let (left, key) = with_columns(plan.clone(), resolved(&call.params.partition_by, from, &plan)?)?;
    let group: Vec<Expr> = key.iter().map(|at| column(&left.schema, *at)).collect();
    let count = aggregate("count", vec![], &DataType::Int64)?;
    let counts = grouped(left.clone(), group.clone(), vec![count])?;
    let n_keys = key.len();
    let counted = |left| looked_up(left, (counts, (0..n_keys).collect()), JoinKind::Inner, width + 1, &[n_keys]);
    if let Expr::Literal(..) = &buckets {
        let plan = counted((left, key));
        let tile = tile(&plan, width, || lit(1i64), || buckets.clone())?;
        return with_result(plan, width, tile);
    }
    // The first row that says a number of buckets says it for itself and all behind.
    let said = filter(left.clone(), vec![buckets.clone().is_not_null()])?;
    let number = cast(column(&said.schema, width), DataType::Int64);
    let first = aggregate("min", vec![number.clone()], &DataType::Int64)?;
    let firsts = grouped(said.clone(), group, vec![first])?;
    let mut own: Vec<usize> = key.clone();
    let (right, right_key) = with_columns(said, vec![number, cast(buckets, DataType::Int64)])?;
    own.push(right_key[0]);
    let firsts_key = (0..=n_keys).collect();
    let said = looked_up((firsts, firsts_key), (right, own), JoinKind::Inner, n_keys + 1, &[right_key[1]]);
    let plan = counted((left, key));
    let (left, key) = with_columns(plan.clone(), resolved(&call.params.partition_by, from, &plan)?)?;
    let by_partition = (said, (0..n_keys).collect());
    let plan = looked_up((left, key), by_partition, JoinKind::Left, width + 2, &[n_keys, n_keys + 1]);
    let (first, buckets) = (|| column(&plan.schema, width + 2), || column(&plan.schema, width + 3));
    let is_behind = cast(column(&plan.schema, width), DataType::Int64).gt_eq(first());
    let nothing = Expr::Literal(ScalarValue::Int64(None), None);
    let tile = when(buckets().lt_eq(lit(0i64)), lit(1i64) / (buckets() - buckets()))
        .when(is_behind, tile(&plan, width, first, buckets)?)
        .otherwise(nothing)?;
    with_result(plan.clone(), width, tile)
}

/// The bucket of a row: its number is in column `width`, the count of its partition behind.
fn tile(plan: &Plan, width: usize, first: impl Fn() -> Expr, buckets: impl Fn() -> Expr) -> Result<Expr> {
    let before = || cast(column(&plan.schema, width), DataType::Int64) - first();
    let count = || column(&plan.schema, width + 1);
    let (size, larger) = (|| count() / buckets(), || count() % buckets());
    let in_larger = || larger() * (size() + lit(1i64));
    // A bucket is never empty where there are as many rows; else every row has a bucket of its own.
    Ok(when(before().lt(in_larger()), before() / (size() + lit(1i64)) + lit(1i64))
        .otherwise(larger() + (before() - in_larger()) / size() + lit(1i64))?)
}

/// Whether the distance of `lag` or `lead` is computed of each row.
fn is_by_column(call: &WindowFunction) -> bool {
    let by = call.params.args.get(1);
    let is_constant = |by: &Expr| whole(Some(by)).is_some() || matches!(by, Expr::Literal(..) | Expr::Placeholder(_));
    by.is_some_and(|by| !is_constant(by)) && call.params.null_treatment.is_none()
}

/// The value of the row that is as far before or behind as the row says; its default where there is
/// none, NULL where the distance is.
fn shifted(plan: Arc<Plan>, call: &WindowFunction, from: &DFSchema) -> Result<Arc<Plan>> {
    let [value, by, default @ ..] = call.params.args.as_slice() else {
        return Err(SqlError::internal("lag() and lead() have a value and a distance"));
    };
    let width = plan.schema.fields().len();
    let numbers = numbered(plan, call, from)?;
    let number = || cast(column(&numbers.schema, width), DataType::Int64);
    let distance = cast(resolve(by, from, &numbers.schema)?, DataType::Int64);
    let mut own = resolved(&call.params.partition_by, from, &numbers)?;
    let mut wanted = own.clone();
    wanted.push(if call.fun.name() == "lag" { number() - distance } else { number() + distance });
    own.extend([number(), resolve(value, from, &numbers.schema)?]);
    let left = with_columns(numbers.clone(), wanted)?;
    let (right, mut right_key) = with_columns(numbers.clone(), own)?;
    let value = right_key.pop().unwrap_or_default();
    let found = right_key.last().copied().unwrap_or_default();
    let plan = looked_up(left, (right, right_key), JoinKind::Left, width, &[found, value]);
    let value = column(&plan.schema, width + 1);
    let nothing = Expr::Literal(ScalarValue::try_from(plan.schema.field(width + 1).data_type())?, None);
    let default = match default.first() {
        Some(default) => resolve(default, from, &plan.schema)?,
        None => nothing.clone(),
    };
    let result = when(resolve(by, from, &plan.schema)?.is_null(), nothing)
        .when(column(&plan.schema, width).is_not_null(), value)
        .otherwise(default)?;
    with_result(plan, width, result)
}

fn first_value(plan: Arc<Plan>, call: &WindowFunction, from: &DFSchema) -> Result<Arc<Plan>> {
    let Some(value) = call.params.args.first().filter(|_| call.params.null_treatment.is_none()) else {
        return Err(SqlError::unsupported("this form of first_value()", "Write first_value(x) OVER (..)."));
    };
    let width = plan.schema.fields().len();
    let numbers = numbered(plan.clone(), call, from)?;
    let is_first = column(&numbers.schema, width).eq(Expr::Literal(ScalarValue::UInt64(Some(1)), None));
    let firsts = filter(numbers, vec![is_first])?;
    let mut exprs = resolved(&call.params.partition_by, from, &firsts)?;
    exprs.push(resolve(value, from, &firsts.schema)?);
    let (right, mut right_key) = with_columns(firsts, exprs)?;
    let value = right_key.pop().unwrap_or_default();
    let left = with_columns(plan.clone(), resolved(&call.params.partition_by, from, &plan)?)?;
    Ok(looked_up(left, (right, right_key), JoinKind::Inner, width, &[value]))
}

/// The first `width` columns and the result.
fn with_result(plan: Arc<Plan>, width: usize, result: Expr) -> Result<Arc<Plan>> {
    let mut columns: Vec<Column> = all_columns(&plan.schema);
    columns.truncate(width);
    columns.push((result, None));
    stage(plan, vec![], columns)
}

pub(super) fn whole(expr: Option<&Expr>) -> Option<i64> {
    match expr? {
        Expr::Literal(value, _) if value.data_type().is_integer() => match value.cast_to(&DataType::Int64) {
            Ok(ScalarValue::Int64(n)) => n,
            _ => None,
        },
        Expr::Cast(cast) => whole(Some(&cast.expr)),
        Expr::Negative(inner) => whole(Some(inner)).map(|n| -n),
        _ => None,
    }
}
