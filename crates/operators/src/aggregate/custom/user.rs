//! What a user writes of an aggregate, and the rows that it is given.
//!
//! Law: states are a function of the rows of their group; how they are kept is not told. The
//! [module above](super) has the laws of each kind.

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::{DataType, Int64Type};

/// An aggregate written by a user. See the [module page](super).
pub trait UserAggregate: Send + Sync + 'static {
    /// What is remembered of the rows of one group.
    type State: Clone + 'static;

    /// The name, for messages and plans.
    fn name(&self) -> &str;

    /// The type of results over arguments of these types.
    ///
    /// # Errors
    /// Why there is none: the query is refused with that.
    fn output_type(&self, arguments: &[DataType]) -> Result<DataType, String>;

    /// The state of no rows.
    fn initial(&self) -> Self::State;

    /// Adds each row to its state.
    ///
    /// # Errors
    /// Ends the use of the aggregate; see the [module page](self).
    fn accumulate(&self, states: &mut [Self::State], rows: &GroupRows<'_>) -> Result<(), String>;

    /// One result for each state, of the output type.
    ///
    /// # Errors
    /// That some state has none; each state is then asked for alone.
    fn compute(&self, states: &[&Self::State]) -> Result<ArrayRef, String>;

    /// Whether [`GroupRows::starts`] is wanted.
    fn reads_starts(&self) -> bool {
        false
    }

    /// Bytes that a state owns beyond itself.
    fn heap_bytes(&self, _state: &Self::State) -> usize {
        0
    }
}

/// An aggregate whose rows can be taken out again.
pub trait Invertible: UserAggregate {
    /// Takes each row out of its state, which has seen it.
    ///
    /// # Errors
    /// As for [`UserAggregate::accumulate`].
    fn deaccumulate(&self, states: &mut [Self::State], rows: &GroupRows<'_>) -> Result<(), String>;

    /// Takes the rows that `other` has seen out of `state`.
    fn difference(&self, state: &mut Self::State, other: &Self::State);

    /// Adds the rows that `other` has seen to `state`: as here, or faster.
    fn combine(&self, state: &mut Self::State, other: &Self::State) {
        let mut without = self.initial();
        self.difference(&mut without, other);
        self.difference(state, &without);
    }
}

/// Rows on their way into states. NULLs are not left out.
#[derive(Clone, Copy, Debug)]
pub struct GroupRows<'a> {
    pub(super) states: &'a [u32],
    /// Place of the first row in the columns; the others follow.
    pub(super) first: usize,
    pub(super) columns: &'a [ArrayRef],
    pub(super) reads_starts: bool,
}

impl<'a> GroupRows<'a> {
    /// For each row the position of its state, and its place in the columns.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = (usize, usize)> + 'a {
        self.states.iter().zip(self.first..).map(|(&state, row)| (state as usize, row))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.states.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.states.is_empty()
    }

    /// The column of an argument. Only the places that [`GroupRows::iter`] names are of these rows.
    ///
    /// # Panics
    /// If there are not so many arguments.
    pub fn column(&self, argument: usize) -> &'a ArrayRef {
        &self.columns[argument]
    }

    /// By place, when the row's event began, in ticks.
    ///
    /// # Panics
    /// If the aggregate does not [ask for it](UserAggregate::reads_starts).
    pub fn starts(&self) -> &'a [i64] {
        assert!(self.reads_starts, "an aggregate that reads starts says so");
        self.columns.last().expect("starts are the last column").as_primitive::<Int64Type>().values()
    }
}
