//! Aggregates of parts of the rows, put together.
//!
//! A [`Mergeable`] aggregate can store its state as a value. Three aggregates follow from one
//! ([`CustomAggregate::in_steps`]):
//!
//! ```text
//!     store     rows            -> stored state    over each part of the rows
//!     merge     stored states   -> stored state    as often as wanted
//!     finish    stored states   -> result
//! ```
//!
//! Law: `finish` over the stored states of disjoint parts is the aggregate over all rows, whatever
//! the cut into parts and the order of merges. Source: summable aggregates (Trill TR), and their
//! use in shards (Quill, 3.5).
//!
//! Cost: stored states are not taken out of others. `merge` and `finish` walk the states in force
//! whenever one of them changes: as many as there are parts.

use std::sync::Arc;

use anabranch_spec::foreign::Foreign;
use arrow::array::ArrayRef;
use arrow::datatypes::DataType;

use super::CustomAggregate;
use super::ranked::RankedLists;
use super::user::{GroupRows, UserAggregate};

/// An aggregate whose states of disjoint parts of the rows can be put together.
pub trait Mergeable: UserAggregate {
    /// The type of stored states over arguments of these types.
    ///
    /// # Errors
    /// As for [`UserAggregate::output_type`].
    fn stored_type(&self, arguments: &[DataType]) -> Result<DataType, String>;

    /// The type of results over stored states of this type.
    ///
    /// # Errors
    /// As for [`UserAggregate::output_type`].
    fn merged_type(&self, stored: &DataType) -> Result<DataType, String>;

    /// One value for each state, of the stored type. Equal states have equal values: a value that
    /// is retracted must be the one that was given.
    ///
    /// # Errors
    /// As for [`UserAggregate::compute`].
    fn store(&self, states: &[&Self::State]) -> Result<ArrayRef, String>;

    /// Adds the rows that stored states have seen to states. Stored states are the first column;
    /// a NULL is the state of no rows.
    ///
    /// # Errors
    /// As for [`UserAggregate::accumulate`].
    fn merge(&self, states: &mut [Self::State], stored: &GroupRows<'_>) -> Result<(), String>;
}

/// Whose states are stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatesOf {
    /// The lists of the so many greatest values.
    TopK(usize),
    /// A user's: equal are those of the same object.
    User(Foreign),
}

/// What an aggregate does with stored states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StateStep {
    /// Rows become a stored state.
    Store(StatesOf),
    /// Stored states become a stored state.
    Merge(StatesOf),
    /// Stored states become a result.
    Finish(StatesOf),
}

/// The aggregates that follow from a [`Mergeable`] one; see the [module page](self).
#[derive(Clone, Debug)]
pub struct MergeSteps {
    /// Of rows, a stored state.
    pub store: CustomAggregate,
    /// Of stored states, a stored state.
    pub merge: CustomAggregate,
    /// Of stored states, the result.
    pub finish: CustomAggregate,
}

impl CustomAggregate {
    /// A mergeable aggregate over all rows, and its steps.
    pub fn in_steps(aggregate: impl Mergeable) -> (CustomAggregate, MergeSteps) {
        let aggregate = Arc::new(aggregate);
        let of = StatesOf::User(Foreign::new(aggregate.name(), Arc::clone(&aggregate)));
        let step = |custom: CustomAggregate, step: StateStep| CustomAggregate { step: Some(step), ..custom };
        let steps = MergeSteps {
            store: step(CustomAggregate::new(Stored(Arc::clone(&aggregate))), StateStep::Store(of.clone())),
            merge: step(CustomAggregate::new(Merged(Arc::clone(&aggregate))), StateStep::Merge(of.clone())),
            finish: step(CustomAggregate::new(Finished(Arc::clone(&aggregate))), StateStep::Finish(of)),
        };
        (CustomAggregate::new(Whole(aggregate)), steps)
    }

    /// The list of the `k` greatest values, of such lists.
    pub fn top_k_of_lists(k: usize) -> CustomAggregate {
        let step = Some(StateStep::Merge(StatesOf::TopK(k)));
        CustomAggregate { step, ..CustomAggregate::new(RankedLists { k }) }
    }
}

/// The aggregate itself.
struct Whole<A>(Arc<A>);

/// Rows to stored states.
struct Stored<A>(Arc<A>);

/// Stored states to a stored state.
struct Merged<A>(Arc<A>);

/// Stored states to a result.
struct Finished<A>(Arc<A>);

impl<A: Mergeable> UserAggregate for Whole<A> {
    type State = A::State;

    fn name(&self) -> &str {
        self.0.name()
    }

    fn output_type(&self, arguments: &[DataType]) -> Result<DataType, String> {
        self.0.output_type(arguments)
    }

    fn initial(&self) -> A::State {
        self.0.initial()
    }

    fn accumulate(&self, states: &mut [A::State], rows: &GroupRows<'_>) -> Result<(), String> {
        self.0.accumulate(states, rows)
    }

    fn compute(&self, states: &[&A::State]) -> Result<ArrayRef, String> {
        self.0.compute(states)
    }

    fn reads_starts(&self) -> bool {
        self.0.reads_starts()
    }

    fn heap_bytes(&self, state: &A::State) -> usize {
        self.0.heap_bytes(state)
    }
}

impl<A: Mergeable> UserAggregate for Stored<A> {
    type State = A::State;

    fn name(&self) -> &str {
        self.0.name()
    }

    fn output_type(&self, arguments: &[DataType]) -> Result<DataType, String> {
        // (Arguments that the aggregate refuses are refused by the step too.)
        self.0.output_type(arguments)?;
        self.0.stored_type(arguments)
    }

    fn initial(&self) -> A::State {
        self.0.initial()
    }

    fn accumulate(&self, states: &mut [A::State], rows: &GroupRows<'_>) -> Result<(), String> {
        self.0.accumulate(states, rows)
    }

    fn compute(&self, states: &[&A::State]) -> Result<ArrayRef, String> {
        self.0.store(states)
    }

    fn reads_starts(&self) -> bool {
        self.0.reads_starts()
    }

    fn heap_bytes(&self, state: &A::State) -> usize {
        self.0.heap_bytes(state)
    }
}

fn stored(arguments: &[DataType]) -> Result<&DataType, String> {
    arguments.first().ok_or_else(|| "it takes stored states".to_owned())
}

impl<A: Mergeable> UserAggregate for Merged<A> {
    type State = A::State;

    fn name(&self) -> &str {
        self.0.name()
    }

    fn output_type(&self, arguments: &[DataType]) -> Result<DataType, String> {
        stored(arguments).cloned()
    }

    fn initial(&self) -> A::State {
        self.0.initial()
    }

    fn accumulate(&self, states: &mut [A::State], rows: &GroupRows<'_>) -> Result<(), String> {
        self.0.merge(states, rows)
    }

    fn compute(&self, states: &[&A::State]) -> Result<ArrayRef, String> {
        self.0.store(states)
    }

    fn heap_bytes(&self, state: &A::State) -> usize {
        self.0.heap_bytes(state)
    }
}

impl<A: Mergeable> UserAggregate for Finished<A> {
    type State = A::State;

    fn name(&self) -> &str {
        self.0.name()
    }

    fn output_type(&self, arguments: &[DataType]) -> Result<DataType, String> {
        self.0.merged_type(stored(arguments)?)
    }

    fn initial(&self) -> A::State {
        self.0.initial()
    }

    fn accumulate(&self, states: &mut [A::State], rows: &GroupRows<'_>) -> Result<(), String> {
        self.0.merge(states, rows)
    }

    fn compute(&self, states: &[&A::State]) -> Result<ArrayRef, String> {
        self.0.compute(states)
    }

    fn heap_bytes(&self, state: &A::State) -> usize {
        self.0.heap_bytes(state)
    }
}
