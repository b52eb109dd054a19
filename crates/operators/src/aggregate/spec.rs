//! What an aggregate is asked to compute.

use anabranch_arrangement::MergeEffort;
use anabranch_batch::order::Direction;
use arrow::datatypes::DataType;
use std::fmt;

use super::custom::CustomAggregate;

/// Groups and calls of an aggregate. Columns are positions in the input.
#[derive(Clone, Debug)]
pub struct AggregateSpec {
    /// Grouping columns; none means one group that always has a row.
    pub keys: Vec<usize>,
    /// The results to compute for each group, one output column each, after the keys.
    pub calls: Vec<Call>,
    /// Types of all input columns.
    pub input_types: Vec<DataType>,
    /// Whether rows are never taken back: then least and greatest values need not remember the
    /// others.
    pub is_append_only: bool,
    /// How eagerly the state of ordered calls is merged.
    pub effort: MergeEffort,
}

/// One result column.
#[derive(Clone, Debug)]
pub struct Call {
    /// What is computed.
    pub function: Function,
    /// The column it is computed over; `None` for `count(*)`.
    pub argument: Option<usize>,
    /// Whether equal arguments of a group count once.
    pub distinct: bool,
    /// A boolean column: rows on which it is not true are left out.
    pub filter: Option<usize>,
    /// The order of the elements, for [`Function::StringAgg`], [`Function::ArrayAgg`],
    /// [`Function::FirstValue`] and [`Function::LastValue`].
    pub order: Vec<(usize, Direction)>,
    /// Type of the result.
    pub output_type: DataType,
}

impl Call {
    /// The columns of its arguments.
    pub(crate) fn arguments(&self) -> impl Iterator<Item = usize> + '_ {
        let further = match &self.function {
            Function::Custom(_, further) => further.as_slice(),
            _ => &[],
        };
        self.argument.into_iter().chain(further.iter().copied())
    }
}

/// The functions. All but [`Function::ArrayAgg`], [`Function::FirstValue`] and
/// [`Function::LastValue`] ignore NULL arguments; all but [`Function::Count`] are NULL over
/// nothing.
#[derive(Clone, Debug, PartialEq)]
pub enum Function {
    /// Number of rows, or of arguments that are not NULL.
    Count,
    /// Exact for integers and decimals (out of range is a row error); correctly rounded for floats.
    Sum,
    /// The mean: exact sum, one rounding.
    Avg,
    /// The least value.
    Min,
    /// The greatest value. NaN is greater than every number.
    Max,
    /// Whether all are true.
    BoolAnd,
    /// Whether any is true.
    BoolOr,
    /// Bits set in all.
    BitAnd,
    /// Bits set in any.
    BitOr,
    /// Bits set in an odd number.
    BitXor,
    /// Variance with divisor n - 1; NULL for fewer than two values.
    VarianceSample,
    /// Variance with divisor n.
    VariancePopulation,
    /// Square root of [`Function::VarianceSample`].
    StddevSample,
    /// Square root of [`Function::VariancePopulation`].
    StddevPopulation,
    /// Concatenation of texts with this separator, in the order asked for, else in text order.
    StringAgg(String),
    /// List of all arguments, NULLs included, in the order asked for, else ascending.
    ArrayAgg,
    /// The first argument in the order.
    FirstValue,
    /// The last argument in the order.
    LastValue,
    /// The middle value, or the mean of the two middle values.
    Median,
    /// The value at this part (0 to 1) of the way through the values, interpolated between the two
    /// nearest.
    PercentileCont(f64),
    /// The value of rank `ceil(part * n)`, at least the first.
    PercentileDisc(f64),
    /// The most frequent value, the least of those that are as frequent.
    Mode,
    /// The so many greatest arguments, greatest first, each with its rank: equal ones have one
    /// rank, and come or stay out together.
    TopK(usize),
    /// A user's, of the argument and these further columns; NULLs are seen.
    Custom(CustomAggregate, Vec<usize>),
}

impl Function {
    /// Whether the function looks only at which values there are, not at how many of each.
    pub(crate) fn ignores_duplicates(&self) -> bool {
        use Function::*;
        matches!(self, Min | Max | BoolAnd | BoolOr | BitAnd | BitOr | FirstValue | LastValue)
    }

    /// Whether NULL arguments count.
    pub(crate) fn keeps_nulls(&self) -> bool {
        matches!(self, Function::ArrayAgg | Function::FirstValue | Function::LastValue)
    }

    /// Whether values are kept in order, instead of an accumulator.
    pub(crate) fn is_ordered(&self) -> bool {
        use Function::*;
        matches!(self, Min | Max | StringAgg(_) | ArrayAgg | FirstValue | LastValue | Median)
            || matches!(self, PercentileCont(_) | PercentileDisc(_) | Mode | TopK(_))
    }
}

/// The SQL name.
impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Function::Count => "count",
            Function::Sum => "sum",
            Function::Avg => "avg",
            Function::Min => "min",
            Function::Max => "max",
            Function::BoolAnd => "bool_and",
            Function::BoolOr => "bool_or",
            Function::BitAnd => "bit_and",
            Function::BitOr => "bit_or",
            Function::BitXor => "bit_xor",
            Function::VarianceSample => "var_samp",
            Function::VariancePopulation => "var_pop",
            Function::StddevSample => "stddev_samp",
            Function::StddevPopulation => "stddev_pop",
            Function::StringAgg(_) => "string_agg",
            Function::ArrayAgg => "array_agg",
            Function::FirstValue => "first_value",
            Function::LastValue => "last_value",
            Function::Median => "median",
            Function::PercentileCont(_) => "percentile_cont",
            Function::PercentileDisc(_) => "percentile_disc",
            Function::Mode => "mode",
            Function::TopK(_) => "top_k",
            Function::Custom(custom, _) => custom.name(),
        })
    }
}

/// A call that no state can answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unsupported {
    /// The function is not defined from this argument type to this output type.
    Types {
        /// SQL name of the function.
        function: String,
        /// Type of the argument, if it has one.
        argument: Option<DataType>,
        /// Type the result should have.
        output: DataType,
    },
    /// A user's aggregate cannot leave out equal arguments.
    DistinctCustom {
        /// Its name.
        function: String,
    },
    /// A DISTINCT call is ordered by something other than its argument.
    DistinctOrder {
        /// SQL name of the function.
        function: String,
    },
}

impl Unsupported {
    pub(crate) fn types(function: &Function, argument: Option<&DataType>, output: &DataType) -> Unsupported {
        Unsupported::Types { function: function.to_string(), argument: argument.cloned(), output: output.clone() }
    }
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unsupported::Types { function, argument: Some(argument), output } => {
                write!(f, "aggregate {function} of {argument} with result {output} is not supported")
            }
            Unsupported::Types { function, argument: None, .. } => write!(f, "aggregate {function} needs an argument"),
            Unsupported::DistinctCustom { function } => {
                write!(f, "{function}(DISTINCT ..) is not supported: make the rows distinct first")
            }
            Unsupported::DistinctOrder { function } => {
                write!(f, "{function}(DISTINCT ..) can only be ordered by its argument")
            }
        }
    }
}

impl std::error::Error for Unsupported {}
