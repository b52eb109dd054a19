//! The aggregates: what is computed over the rows in force.

use anabranch_operators::aggregate::custom::{CustomAggregate, Invertible, MergeSteps, Mergeable, UserAggregate};
use anabranch_plan::{AggregateFunction, Foreign, Fraction, explain};
use arrow::datatypes::DataType;
use datafusion_expr::Expr;

use super::expression::start;
use super::input::planned;
use crate::error::Error;

/// An aggregate of a group's rows, for [`GroupBy::agg`](super::GroupBy::agg).
#[derive(Clone, Debug)]
pub struct FrameAggregate {
    pub(super) function: AggregateFunction,
    /// `None` for `count(*)`.
    pub(super) argument: Option<Expr>,
    /// Further arguments, of a user's aggregate.
    pub(super) further: Vec<Expr>,
    pub(super) filter: Option<Expr>,
    pub(super) distinct: bool,
    /// Whether rows are taken in order of their starts.
    pub(super) by_start: bool,
    pub(super) name: Option<String>,
    /// The steps of a user's aggregate whose states can be put together.
    pub(super) steps: Option<Box<MergeSteps>>,
    /// What is wrong with a parameter.
    pub(super) error: Option<Error>,
}

impl FrameAggregate {
    fn new(function: AggregateFunction, argument: Option<Expr>) -> FrameAggregate {
        let (further, filter, name, steps, error) = (vec![], None, None, None, None);
        FrameAggregate { function, argument, further, filter, distinct: false, by_start: false, name, steps, error }
    }

    /// An aggregate of rows in order of their starts.
    fn by_start(function: AggregateFunction, argument: Expr) -> FrameAggregate {
        FrameAggregate { by_start: true, ..FrameAggregate::new(function, Some(argument)) }
    }

    /// Over the rows for which `predicate` is true.
    #[must_use]
    pub fn filter(mut self, predicate: Expr) -> FrameAggregate {
        self.filter = Some(match self.filter {
            Some(before) => before.and(predicate),
            None => predicate,
        });
        self
    }

    /// Equal arguments count once. A [`collect`] of them is in ascending order.
    #[must_use]
    pub fn distinct(mut self) -> FrameAggregate {
        self.distinct = true;
        // (Equal values may have several starts; the first and the last stay the same.)
        self.by_start &= self.function != AggregateFunction::ArrayAgg;
        self
    }

    /// With this name as a column.
    #[must_use]
    pub fn alias(mut self, name: &str) -> FrameAggregate {
        self.name = Some(name.to_owned());
        self
    }

    /// The name of the result's column.
    pub(super) fn name(&self) -> String {
        self.name.clone().unwrap_or_else(|| {
            let arguments = self.argument.iter().chain(&self.further).map(explain::expression).collect::<Vec<_>>();
            let argument = if arguments.is_empty() { "*".to_owned() } else { arguments.join(", ") };
            let distinct = if self.distinct { "distinct " } else { "" };
            format!("{}({distinct}{argument})", self.function.name())
        })
    }

    /// The type of the result over arguments of these types.
    pub(super) fn output_type(&self, arguments: &[DataType]) -> Result<DataType, Error> {
        use AggregateFunction::*;
        let argument = arguments.first();
        let number = |output: DataType| match argument {
            Some(argument) if argument.is_numeric() => Ok(output),
            Some(argument) => {
                Err(Error::invalid(format!("{} is of numbers, but its argument is of type {argument}", self.name())))
            }
            None => Err(Error::invalid(format!("{} needs an argument", self.name()))),
        };
        match &self.function {
            Count => Ok(DataType::Int64),
            Custom(custom, _) => {
                let function: &CustomAggregate = custom.function().expect("aggregates here are of this type only");
                let told = &arguments[..arguments.len() - usize::from(function.reads_starts())];
                let output = function.output_type(told).map_err(|reason| {
                    Error::invalid(format!("aggregate \"{}\" is refused: {reason}", custom.name()))
                })?;
                Ok(planned(&output))
            }
            BoolAnd | BoolOr => match argument {
                Some(DataType::Boolean) => Ok(DataType::Boolean),
                Some(argument) => Err(Error::invalid(format!(
                    "{} is of conditions, but its argument is of type {argument}",
                    self.name()
                ))),
                None => Err(Error::invalid(format!("{} needs an argument", self.name()))),
            },
            ArrayAgg => argument
                .map(|argument| DataType::new_list(argument.clone(), true))
                .ok_or_else(|| Error::invalid(format!("{} needs an argument", self.name()))),
            Sum => match argument {
                Some(DataType::Decimal128(_, scale)) => Ok(DataType::Decimal128(38, *scale)),
                Some(argument) if argument.is_floating() => Ok(DataType::Float64),
                Some(DataType::UInt64) => Ok(DataType::UInt64),
                _ => number(DataType::Int64),
            },
            Avg | Median | PercentileCont(_) | VarianceSample | VariancePopulation | StddevSample
            | StddevPopulation => number(DataType::Float64),
            TopK(_) => argument
                .map(anabranch_operators::aggregate::ranked_type)
                .ok_or_else(|| Error::invalid(format!("{} needs an argument", self.name()))),
            _ => argument.cloned().ok_or_else(|| Error::invalid(format!("{} needs an argument", self.name()))),
        }
    }
}

/// Number of rows.
pub fn count_rows() -> FrameAggregate {
    FrameAggregate::new(AggregateFunction::Count, None)
}

/// Number of rows on which the expression is not NULL.
pub fn count(expr: Expr) -> FrameAggregate {
    FrameAggregate::new(AggregateFunction::Count, Some(expr))
}

/// Sum, exact for integers and decimals; NULL over nothing.
pub fn sum(expr: Expr) -> FrameAggregate {
    FrameAggregate::new(AggregateFunction::Sum, Some(expr))
}

/// Sum of squares; see [`sum`].
pub fn sum_squares(expr: Expr) -> FrameAggregate {
    sum(expr.clone() * expr)
}

/// Mean of squares, as a double.
pub fn avg_squares(expr: Expr) -> FrameAggregate {
    avg(expr.clone() * expr)
}

/// Mean, as a double.
pub fn avg(expr: Expr) -> FrameAggregate {
    FrameAggregate::new(AggregateFunction::Avg, Some(expr))
}

/// Least value.
pub fn min(expr: Expr) -> FrameAggregate {
    FrameAggregate::new(AggregateFunction::Min, Some(expr))
}

/// Greatest value.
pub fn max(expr: Expr) -> FrameAggregate {
    FrameAggregate::new(AggregateFunction::Max, Some(expr))
}

/// Whether the condition is true of all rows for which it is known.
pub fn bool_and(condition: Expr) -> FrameAggregate {
    FrameAggregate::new(AggregateFunction::BoolAnd, Some(condition))
}

/// Whether the condition is true of any row.
pub fn bool_or(condition: Expr) -> FrameAggregate {
    FrameAggregate::new(AggregateFunction::BoolOr, Some(condition))
}

/// Value of the row that began first; of those that began together the least, NULLs last.
pub fn first(expr: Expr) -> FrameAggregate {
    FrameAggregate::by_start(AggregateFunction::FirstValue, expr)
}

/// Value of the row that began last; of those that began together the greatest, NULLs before all
/// values.
pub fn last(expr: Expr) -> FrameAggregate {
    FrameAggregate::by_start(AggregateFunction::LastValue, expr)
}

/// List of the values of all rows, NULLs too, in order of their starts; of those that began
/// together in ascending order, NULLs last.
pub fn collect(expr: Expr) -> FrameAggregate {
    FrameAggregate::by_start(AggregateFunction::ArrayAgg, expr)
}

/// Middle value, or the mean of the two middle ones.
pub fn median(expr: Expr) -> FrameAggregate {
    FrameAggregate::new(AggregateFunction::Median, Some(expr))
}

/// The value at `part` (0 to 1) of the way through the values in order, interpolated, as a double.
pub fn percentile_cont(expr: Expr, part: f64) -> FrameAggregate {
    percentile(expr, part, AggregateFunction::PercentileCont)
}

/// The first value in order with at least `part` (0 to 1) of the values at or before it.
pub fn percentile_disc(expr: Expr, part: f64) -> FrameAggregate {
    percentile(expr, part, AggregateFunction::PercentileDisc)
}

/// The most frequent value, the least of those that are as frequent.
pub fn mode(expr: Expr) -> FrameAggregate {
    FrameAggregate::new(AggregateFunction::Mode, Some(expr))
}

/// A user's aggregate of these arguments, which see NULLs too. See [`UserAggregate`], also for what
/// it costs; one whose rows can be taken out again is better given to [`custom_invertible`].
pub fn custom(aggregate: impl UserAggregate, arguments: impl IntoIterator<Item = Expr>) -> FrameAggregate {
    of_user(CustomAggregate::new(aggregate), arguments.into_iter().collect())
}

/// As [`custom`], of an aggregate whose rows can be taken out again.
pub fn custom_invertible(aggregate: impl Invertible, arguments: impl IntoIterator<Item = Expr>) -> FrameAggregate {
    of_user(CustomAggregate::invertible(aggregate), arguments.into_iter().collect())
}

/// As [`custom`], of an aggregate whose states over parts of the rows can be put together: see
/// [`in_parts`](super::in_parts).
pub fn custom_mergeable(aggregate: impl Mergeable, arguments: impl IntoIterator<Item = Expr>) -> FrameAggregate {
    let (whole, steps) = CustomAggregate::in_steps(aggregate);
    FrameAggregate { steps: Some(Box::new(steps)), ..of_user(whole, arguments.into_iter().collect()) }
}

pub(super) fn of_user(aggregate: CustomAggregate, mut arguments: Vec<Expr>) -> FrameAggregate {
    if aggregate.reads_starts() {
        arguments.push(start());
    }
    let name = aggregate.name().to_owned();
    let further = arguments.split_off(arguments.len().min(1));
    let function = AggregateFunction::Custom(Foreign::new(&name, aggregate), vec![]);
    FrameAggregate { further, ..FrameAggregate::new(function, arguments.pop()) }
}

fn percentile(expr: Expr, part: f64, function: impl Fn(Fraction) -> AggregateFunction) -> FrameAggregate {
    match Fraction::new(part) {
        Some(part) => FrameAggregate::new(function(part), Some(expr)),
        None => {
            let error = Error::invalid(format!("a percentile lies between 0 and 1, not at {part}"));
            FrameAggregate { error: Some(error), ..FrameAggregate::new(AggregateFunction::Median, Some(expr)) }
        }
    }
}

/// The `k` greatest values with their ranks, as a list of (rank, value); ties come or stay out
/// together.
pub fn top_k(expr: Expr, k: usize) -> FrameAggregate {
    FrameAggregate::new(AggregateFunction::TopK(k), Some(expr))
}

/// Sample variance; NULL for fewer than two values.
pub fn variance(expr: Expr) -> FrameAggregate {
    FrameAggregate::new(AggregateFunction::VarianceSample, Some(expr))
}

/// Population variance.
pub fn variance_population(expr: Expr) -> FrameAggregate {
    FrameAggregate::new(AggregateFunction::VariancePopulation, Some(expr))
}

/// Sample standard deviation; NULL for fewer than two values.
pub fn stddev(expr: Expr) -> FrameAggregate {
    FrameAggregate::new(AggregateFunction::StddevSample, Some(expr))
}

/// Population standard deviation.
pub fn stddev_population(expr: Expr) -> FrameAggregate {
    FrameAggregate::new(AggregateFunction::StddevPopulation, Some(expr))
}
