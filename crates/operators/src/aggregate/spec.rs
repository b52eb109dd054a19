//! What an aggregate is asked to compute.

use anabranch_arrangement::MergeEffort;
use anabranch_spec::aggregate::{AggregateCall, AggregateFunction};
use arrow::datatypes::DataType;
use std::fmt;

/// Groups and calls of an aggregate. Columns are positions in the input.
#[derive(Clone, Debug)]
pub struct AggregateSpec {
    /// Grouping columns; none means one group that always has a row.
    pub keys: Vec<usize>,
    /// The results to compute for each group, one output column each, after the keys.
    pub calls: Vec<AggregateCall>,
    /// Types of all input columns.
    pub input_types: Vec<DataType>,
    /// Whether rows are never taken back: then least and greatest values need not remember the
    /// others.
    pub is_append_only: bool,
    /// How eagerly the state of ordered calls is merged.
    pub effort: MergeEffort,
}

impl AggregateSpec {
    /// Whether it is of all rows, and each call the least or the greatest value.
    pub fn is_of_extremes(&self) -> bool {
        let is_extreme = |call: &AggregateCall| {
            matches!(call.function, AggregateFunction::Min | AggregateFunction::Max) && call.argument.is_some()
        };
        self.keys.is_empty() && !self.calls.is_empty() && self.calls.iter().all(is_extreme)
    }

    /// The same in two steps, the first of which each worker does over the rows that it has: for
    /// least and greatest values of all rows, which cannot be made fewer batch by batch, since each
    /// may be taken back: by the worker that has the row. The second step is over a row a worker.
    pub fn in_two_steps(&self) -> Option<(AggregateSpec, AggregateSpec)> {
        if !self.is_of_extremes() {
            return None;
        }
        let of_first =
            |(at, call): (usize, &AggregateCall)| AggregateCall { argument: Some(at), filter: None, ..call.clone() };
        let second = AggregateSpec {
            calls: self.calls.iter().enumerate().map(of_first).collect(),
            input_types: self.calls.iter().map(|call| call.output_type.clone()).collect(),
            // (A greater value takes the place of that of the worker before.)
            is_append_only: false,
            ..self.clone()
        };
        Some((self.clone(), second))
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
    pub(crate) fn types(function: &AggregateFunction, argument: Option<&DataType>, output: &DataType) -> Unsupported {
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
