//! Aggregates: what a plan says about them, for groups, window frames and events alike.
//!
//! All functions but `array_agg`, `first_value`, `last_value` and those of users ignore arguments
//! that are NULL; all but `count` are NULL over nothing.
//!
//! Law: a result depends on the rows of the group alone, and on their order where the call has one.

use std::fmt;

use arrow::datatypes::DataType;

use crate::foreign::Foreign;
use crate::order::SortKey;

/// One aggregate: one column of the result.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AggregateCall {
    /// What is computed.
    pub function: AggregateFunction,
    /// Input column; `None` for `count(*)`.
    pub argument: Option<usize>,
    /// Whether equal arguments of a group count once.
    pub distinct: bool,
    /// Boolean input column: rows on which it is not true are left out.
    pub filter: Option<usize>,
    /// Order of the elements, for `string_agg`, `array_agg`, `first_value`, `last_value`; of a
    /// discrete percentile, the end from which values are counted.
    pub order: Vec<SortKey>,
    /// Type of the result.
    pub output_type: DataType,
}

impl AggregateCall {
    /// The columns of its arguments.
    pub fn arguments(&self) -> impl Iterator<Item = usize> + '_ {
        let further = match &self.function {
            AggregateFunction::Custom(_, further) => further.as_slice(),
            _ => &[],
        };
        self.argument.into_iter().chain(further.iter().copied())
    }
}

/// The built-in aggregates.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AggregateFunction {
    /// Rows, or arguments that are not null; never null.
    Count,
    /// Sum of the arguments that are not null, in the output type; null without any.
    Sum,
    /// Mean of the arguments that are not null.
    Avg,
    /// Least argument.
    Min,
    /// Greatest argument.
    Max,
    /// Whether all are true.
    BoolAnd,
    /// Whether one is true.
    BoolOr,
    /// Bitwise and of integers.
    BitAnd,
    /// Bitwise or of integers.
    BitOr,
    /// Bitwise exclusive or of integers.
    BitXor,
    /// Variance with n - 1; null for fewer than two.
    VarianceSample,
    /// Variance with n.
    VariancePopulation,
    /// Square root of the sample variance.
    StddevSample,
    /// Square root of the population variance.
    StddevPopulation,
    /// Concatenation with a separator.
    StringAgg(String),
    /// List of the arguments, nulls too.
    ArrayAgg,
    /// Argument of the first row in the call's order.
    FirstValue,
    /// Argument of the last row in the call's order.
    LastValue,
    /// Middle argument; the mean of the two middle ones of an even number.
    Median,
    /// The value at this part of the way through the values in order, between two of them if it
    /// lies there.
    PercentileCont(Fraction),
    /// The first value at or after this part of the values in order.
    PercentileDisc(Fraction),
    /// The most frequent value, the least of those that are as frequent.
    Mode,
    /// The so many greatest arguments with their ranks, ties included: a list of (rank, value),
    /// greatest first.
    TopK(usize),
    /// A user's own, of the argument and these further input columns; of all rows, also where an
    /// argument is null.
    Custom(Foreign, Vec<usize>),
}

impl AggregateFunction {
    /// Whether the function looks only at which values there are, not at how many of each.
    pub fn ignores_duplicates(&self) -> bool {
        use AggregateFunction::*;
        matches!(self, Min | Max | BoolAnd | BoolOr | BitAnd | BitOr | FirstValue | LastValue)
    }

    /// Whether NULL arguments count.
    pub fn keeps_nulls(&self) -> bool {
        matches!(self, AggregateFunction::ArrayAgg | AggregateFunction::FirstValue | AggregateFunction::LastValue)
    }

    /// Whether the result is found among the values in order, which no sum of them holds.
    pub fn is_ordered(&self) -> bool {
        use AggregateFunction::*;
        matches!(self, Min | Max | StringAgg(_) | ArrayAgg | FirstValue | LastValue | Median)
            || matches!(self, PercentileCont(_) | PercentileDisc(_) | Mode | TopK(_))
    }

    /// The SQL name.
    pub fn name(&self) -> &str {
        match self {
            AggregateFunction::Count => "count",
            AggregateFunction::Sum => "sum",
            AggregateFunction::Avg => "avg",
            AggregateFunction::Min => "min",
            AggregateFunction::Max => "max",
            AggregateFunction::BoolAnd => "bool_and",
            AggregateFunction::BoolOr => "bool_or",
            AggregateFunction::BitAnd => "bit_and",
            AggregateFunction::BitOr => "bit_or",
            AggregateFunction::BitXor => "bit_xor",
            AggregateFunction::VarianceSample => "var_samp",
            AggregateFunction::VariancePopulation => "var_pop",
            AggregateFunction::StddevSample => "stddev_samp",
            AggregateFunction::StddevPopulation => "stddev_pop",
            AggregateFunction::StringAgg(_) => "string_agg",
            AggregateFunction::ArrayAgg => "array_agg",
            AggregateFunction::FirstValue => "first_value",
            AggregateFunction::LastValue => "last_value",
            AggregateFunction::Median => "median",
            AggregateFunction::PercentileCont(_) => "percentile_cont",
            AggregateFunction::PercentileDisc(_) => "percentile_disc",
            AggregateFunction::Mode => "mode",
            AggregateFunction::TopK(_) => "top_k",
            AggregateFunction::Custom(custom, _) => custom.name(),
        }
    }
}

/// The SQL name.
impl fmt::Display for AggregateFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A number from 0 to 1, comparable and hashable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fraction(u64);

impl Fraction {
    /// `None` for what is not from 0 to 1.
    pub fn new(value: f64) -> Option<Fraction> {
        // (Zero has one form only.)
        (0.0..=1.0).contains(&value).then(|| Fraction((value + 0.0).to_bits()))
    }

    /// The number.
    pub fn get(self) -> f64 {
        f64::from_bits(self.0)
    }
}
