//! Aggregates in two steps: of parts of the rows, and of what the parts give.
//!
//! | aggregate | of a part | put together |
//! |---|---|---|
//! | `count`, `sum` | `count`, `sum` | `sum` |
//! | `min`, `max`, `bool_and`, `bool_or` | the same | the same |
//! | `avg` | `sum`, `count` | `sum`, `sum`; their quotient is the mean |
//! | `variance`, `variance_population` | `count`, `sum`, sum of squares | `sum` of each; then the variance |
//! | `top_k` | `top_k` | the greatest of the lists |
//! | `custom_mergeable` | [`Mergeable::store`](super::Mergeable::store) | [`Mergeable::merge`](super::Mergeable::merge) |
//!
//! Law: [`AggregateParts::results`] over [`AggregateParts::parts`] of disjoint parts of the rows is
//! the aggregate over all rows, at every time, also with any number of
//! [`AggregateParts::merged`] between. Sums of floats, and variances, are equal up to rounding. A
//! mean of integers whose sum does not fit into 64 bits is an error of the part.

use anabranch_operators::aggregate::custom::CustomAggregate;
use anabranch_plan::{AggregateFunction, Foreign};
use arrow::datatypes::DataType;
use datafusion_common::DataFusionError;
use datafusion_expr::{Expr, cast, lit, when};

use super::aggregate::{FrameAggregate, count, of_user, sum};
use super::expression::col;
use super::query::Frame;
use crate::error::Error;

/// Aggregates in two steps; see [`in_parts`].
#[derive(Clone, Debug)]
pub struct AggregateParts {
    steps: Result<Vec<PartSteps>, Error>,
}

/// The steps of one aggregate.
#[derive(Clone, Debug)]
struct PartSteps {
    /// Of rows; their columns have names of their own.
    parts: Vec<FrameAggregate>,
    /// Of parts, parts of the same names.
    merged: Vec<FrameAggregate>,
    /// Of parts, columns of the same names for `result`.
    last: Vec<FrameAggregate>,
    /// The result, of the columns of `last`.
    result: Expr,
}

/// The two steps of aggregates. An aggregate that has none (a median, or one of distinct values)
/// is an error, which stays with the frames that the steps make.
///
/// ```
/// use anabranch_engine::frame::{Events, avg, col, in_parts};
/// use arrow::datatypes::{DataType, Field, Schema};
///
/// let schema = Schema::new(vec![Field::new("x", DataType::Int64, true)]);
/// let means = in_parts([avg(col("x")).alias("m")]);
/// let parts = means.parts(&Events::input("here", schema).frame().tumbling(10));
/// let names = |frame: &anabranch_engine::frame::Frame| {
///     frame.schema().map(|schema| schema.fields().iter().map(|field| field.name().clone()).collect::<Vec<_>>())
/// };
/// assert_eq!(names(&parts)?, ["m_sum", "m_count"]);
/// assert_eq!(names(&means.results(&parts))?, ["m"]);
/// # Ok::<(), anabranch_engine::Error>(())
/// ```
pub fn in_parts(aggregates: impl IntoIterator<Item = FrameAggregate>) -> AggregateParts {
    AggregateParts { steps: aggregates.into_iter().map(|aggregate| PartSteps::of(&aggregate)).collect() }
}

impl AggregateParts {
    /// The first step, over a part of the rows.
    pub fn parts(&self, rows: &Frame) -> Frame {
        self.aggregated(rows, |steps| &steps.parts)
    }

    /// Parts of parts: as often as wanted.
    pub fn merged(&self, parts: &Frame) -> Frame {
        self.aggregated(parts, |steps| &steps.merged)
    }

    /// The second step, over all parts: the aggregates, with their names.
    pub fn results(&self, parts: &Frame) -> Frame {
        let whole = self.aggregated(parts, |steps| &steps.last);
        match &self.steps {
            Ok(steps) => whole.select(steps.iter().map(|steps| steps.result.clone())),
            Err(_) => whole,
        }
    }

    fn aggregated(&self, rows: &Frame, step: impl Fn(&PartSteps) -> &Vec<FrameAggregate>) -> Frame {
        match &self.steps {
            Ok(steps) => rows.agg(steps.iter().flat_map(|steps| step(steps).clone())),
            Err(error) => Frame::failed(error.clone()),
        }
    }
}

impl PartSteps {
    fn of(aggregate: &FrameAggregate) -> Result<PartSteps, Error> {
        use AggregateFunction::{
            Avg, BitAnd, BitOr, BitXor, BoolAnd, BoolOr, Count, Max, Min, Sum, TopK, VariancePopulation, VarianceSample,
        };
        aggregate.error.clone().map_or(Ok(()), Err)?;
        let name = aggregate.name();
        let is_idempotent = matches!(aggregate.function, Min | Max | BoolAnd | BoolOr | BitAnd | BitOr);
        let refused = || {
            Err(Error::invalid(format!("{name} cannot be computed in parts"))
                .with_hint("Move rows of a group into one shard first, and aggregate them there."))
        };
        if aggregate.distinct && !is_idempotent {
            return refused();
        }
        let argument = || aggregate.argument.clone().unwrap_or_else(|| lit(1i64));
        let part = |of: FrameAggregate| FrameAggregate { filter: aggregate.filter.clone(), ..of };
        let again = |function: &AggregateFunction| FrameAggregate {
            function: function.clone(),
            filter: None,
            argument: Some(col(&name)),
            ..aggregate.clone()
        };
        let steps = |parts: Vec<FrameAggregate>, merged: Vec<FrameAggregate>, result: Expr| PartSteps {
            parts,
            last: merged.clone(),
            merged,
            result: result.alias(&name),
        };
        // Sums of each of these, under the aggregate's name and a suffix.
        let sums = |parts: Vec<(&str, FrameAggregate)>, result: Expr| {
            let named = |suffix: &str| format!("{name}{suffix}");
            let merged = parts.iter().map(|(suffix, _)| sum(col(&named(suffix))).alias(&named(suffix))).collect();
            steps(parts.into_iter().map(|(suffix, of)| part(of).alias(&named(suffix))).collect(), merged, result)
        };
        let double = |expr: Expr| cast(expr, DataType::Float64);
        let column = |suffix: &str| double(col(&format!("{name}{suffix}")));
        Ok(match &aggregate.function {
            Count => steps(vec![aggregate.clone().alias(&name)], vec![again(&Sum).alias(&name)], col(&name)),
            Sum | Min | Max | BoolAnd | BoolOr | BitAnd | BitOr | BitXor => {
                let merged = again(&aggregate.function).alias(&name);
                steps(vec![aggregate.clone().alias(&name)], vec![merged], col(&name))
            }
            Avg => {
                let mean = column("_sum") / more_than(0.0, column("_count"))?;
                sums(vec![("_sum", sum(argument())), ("_count", count(argument()))], mean)
            }
            VarianceSample | VariancePopulation => {
                let x = double(argument());
                let squares = sum(x.clone() * x.clone());
                let taken = if aggregate.function == VarianceSample { 1.0 } else { 0.0 };
                let n = more_than(taken, column("_count"))?;
                let scaled = n.clone() * column("_squares") - column("_sum") * column("_sum");
                let variance = scaled / n.clone() / (n - lit(taken));
                // (Rounding may leave less than nothing.)
                let value = when(variance.clone().lt(lit(0.0)), lit(0.0)).otherwise(variance).map_err(internal)?;
                let parts = vec![("_count", count(argument())), ("_sum", sum(x)), ("_squares", squares)];
                sums(parts, value)
            }
            TopK(k) => {
                let merged = of_user(CustomAggregate::top_k_of_lists(*k), vec![col(&name)]).alias(&name);
                steps(vec![aggregate.clone().alias(&name)], vec![merged], col(&name))
            }
            AggregateFunction::Custom(..) => {
                let Some(user) = aggregate.steps.as_deref() else { return refused() };
                let store = Foreign::new(user.store.name(), user.store.clone());
                let store = FrameAggregate { function: AggregateFunction::Custom(store, vec![]), ..aggregate.clone() };
                let one = |custom: &CustomAggregate| of_user(custom.clone(), vec![col(&name)]).alias(&name);
                PartSteps {
                    parts: vec![store.alias(&name)],
                    merged: vec![one(&user.merge)],
                    last: vec![one(&user.finish)],
                    result: col(&name),
                }
            }
            _ => return refused(),
        })
    }
}

/// The number, or NULL if it is not more than `least`: a divisor that is never zero.
fn more_than(least: f64, number: Expr) -> Result<Expr, Error> {
    when(number.clone().gt(lit(least)), number).end().map_err(internal)
}

fn internal(error: DataFusionError) -> Error {
    Error::internal(error.to_string())
}
