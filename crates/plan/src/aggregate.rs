//! Aggregates: what a plan says about them, for groups, window frames and events alike.
//!
//! Law: a result depends on the rows of the group alone, and on their order where the call has one.

use std::any::Any;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::datatypes::DataType;

use crate::order::SortKey;

/// One aggregate of an [`Node::Aggregate`](crate::Node::Aggregate).
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
    /// Order of the elements, for `string_agg`, `array_agg`, `first_value`, `last_value`.
    pub order: Vec<SortKey>,
    /// Type of the result.
    pub output_type: DataType,
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

/// A function that a plan carries without knowing what it does. Equal are those that are the same
/// object.
#[derive(Clone)]
pub struct Foreign {
    name: String,
    function: Arc<dyn Any + Send + Sync>,
}

impl Foreign {
    /// A function with the name that plans show.
    pub fn new(name: &str, function: impl Any + Send + Sync) -> Foreign {
        Foreign { name: name.to_owned(), function: Arc::new(function) }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The function itself, if it is of this type.
    pub fn function<F: Any>(&self) -> Option<&F> {
        self.function.downcast_ref()
    }

    fn address(&self) -> usize {
        Arc::as_ptr(&self.function).cast::<()>() as usize
    }
}

impl PartialEq for Foreign {
    fn eq(&self, other: &Foreign) -> bool {
        self.address() == other.address()
    }
}

impl Eq for Foreign {}

impl Hash for Foreign {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.address().hash(state);
    }
}

impl fmt::Debug for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Foreign").field(&self.name).finish()
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
