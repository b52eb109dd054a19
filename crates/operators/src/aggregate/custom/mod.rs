//! Aggregates of the user's own.
//!
//! [`UserAggregate`] is Trill's aggregate (Trill 5.2.1: initial, accumulate, deaccumulate,
//! difference, compute) over columns: a call is about many rows of many groups, so that the loop
//! over rows is the user's, compiled as tightly as a built-in one, and the engine's dynamic call is
//! made once a batch.
//!
//! ```text
//!     rows        state of row   column             states before      after accumulate
//!     0           1              x: 5               [0] sum 7          [0] sum 9
//!     1           0              x: 2               [1] sum 0          [1] sum 11
//!     2           1              x: 6
//! ```
//!
//! Law, for the one who writes one: the state is a function of the multiset of rows that were
//! accumulated and not taken out again, whatever their order and the cut into calls; `deaccumulate`
//! undoes `accumulate`, and `difference(a, b)` is what is left of `a` without the rows of `b`,
//! which `a` has seen. A result that does not exist is an error of `compute`: it concerns that
//! group at that time, and is retracted with it. An error of the other functions (or a panic)
//! leaves states of which nothing is known: from there on every result of the aggregate is that
//! error. The run goes on, and so does the session.
//!
//! Cost: over tumbling windows nothing is taken out, and every aggregate costs its `accumulate`.
//! Over other lifetimes an [`Invertible`] one costs two operations a row and one a group and time;
//! one that is not costs a walk over all rows of a group in force whenever a row comes or goes, and
//! these rows are kept.

mod extreme;
mod merge;
mod ranked;
mod store;
mod user;

use anabranch_spec::foreign::Foreign;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;

pub(crate) use extreme::Extreme;
pub use merge::{MergeSteps, Mergeable, StateStep, StatesOf};
use store::{Always, Erased, Growing, Never, Typed};
pub(crate) use store::{Results, States};
pub use user::{GroupRows, Invertible, UserAggregate};

/// A user's aggregate as the engine carries it. Two are equal when they are the same object.
#[derive(Clone)]
pub struct CustomAggregate {
    erased: Arc<dyn Erased>,
    /// What it does with stored states, if it is a step of a [`Mergeable`] one.
    step: Option<StateStep>,
}

impl CustomAggregate {
    /// The aggregate that a call carries.
    ///
    /// # Panics
    /// If it carries something else: calls are made by [`into_foreign`](Self::into_foreign) alone.
    pub fn of(carried: &Foreign) -> &CustomAggregate {
        carried.function().expect("calls carry aggregates of this type only")
    }

    /// As calls carry it.
    pub fn into_foreign(self) -> Foreign {
        let name = self.name().to_owned();
        Foreign::new(&name, self)
    }

    fn of_erased(aggregate: impl Erased + 'static) -> CustomAggregate {
        CustomAggregate { erased: Arc::new(aggregate), step: None }
    }

    /// What it does with stored states; `None` if it is no step of a [`Mergeable`] one.
    pub fn step(&self) -> Option<&StateStep> {
        self.step.as_ref()
    }

    /// One whose rows cannot be taken out.
    pub fn new(aggregate: impl UserAggregate) -> CustomAggregate {
        CustomAggregate::of_erased(Typed::<_, Never> { aggregate: Arc::new(aggregate), inverse: PhantomData })
    }

    /// One whose rows can.
    pub fn invertible(aggregate: impl Invertible) -> CustomAggregate {
        CustomAggregate::of_erased(Typed::<_, Always> { aggregate: Arc::new(aggregate), inverse: PhantomData })
    }

    /// The least or greatest value, of which nothing is taken out.
    pub(crate) fn extreme(extreme: Extreme) -> CustomAggregate {
        CustomAggregate::of_erased(Typed::<_, Growing> { aggregate: Arc::new(extreme), inverse: PhantomData })
    }

    /// See [`UserAggregate::name`].
    pub fn name(&self) -> &str {
        self.erased.name()
    }

    /// See [`UserAggregate::output_type`].
    ///
    /// # Errors
    /// The aggregate's.
    pub fn output_type(&self, arguments: &[DataType]) -> Result<DataType, String> {
        self.erased.output_type(arguments)
    }

    /// Whether starts of events are to come as a last argument.
    pub fn reads_starts(&self) -> bool {
        self.erased.reads_starts()
    }

    pub(crate) fn is_invertible(&self) -> bool {
        self.erased.is_invertible()
    }

    /// Whether states can be added to each other.
    pub(crate) fn can_combine(&self) -> bool {
        self.erased.can_combine()
    }

    pub(crate) fn states(&self, output_type: &DataType) -> Box<dyn States> {
        self.erased.states(output_type)
    }

    /// Rows whose columns are the arguments.
    pub(crate) fn rows<'a>(&self, states: &'a [u32], first: usize, columns: &'a [ArrayRef]) -> GroupRows<'a> {
        GroupRows { states, first, columns, reads_starts: self.reads_starts() }
    }
}

impl PartialEq for CustomAggregate {
    fn eq(&self, other: &CustomAggregate) -> bool {
        Arc::ptr_eq(&self.erased, &other.erased)
    }
}

impl fmt::Debug for CustomAggregate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CustomAggregate").field(&self.name()).finish()
    }
}
