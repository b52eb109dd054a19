//! Operators of the user's own: complete rows in, in order of time; rows out.
//!
//! ```text
//!     in    a [1, 2)   b [3, 4)   c [3, 4)      advance to 4
//!     call  advance(4, rows [a at 1, b at 3, c at 3], out)
//! ```
//!
//! Law: an [`Instance`] sees every row once, in the call whose `upto` is the first after its time,
//! in order of time; the order of rows of one time is open. Cuts of the input into batches, and the
//! order of arrival between two frontiers, reach an instance only as that order. What an instance
//! gives must not depend on how calls cut time: rows of one time always come in one call.
//!
//! State: the rows that wait for the frontier, beside what the instance keeps. There is one
//! instance a worker; rows of equal keys meet in one instance. Timers are calls: each move of
//! the frontier is a call, also without rows, so an instance acts at all times that have passed.
//! Source: Trill's user-defined operators; SCSQ's stream functions.

use anabranch_batch::{Batch, Diffs, END, Time, Times, Until};
use arrow::array::{ArrayRef, StringViewArray};
use arrow::buffer::ScalarBuffer;
use arrow::datatypes::DataType;
use std::fmt;
use std::sync::Arc;

use anabranch_flow::tactic::{Output, Timed};

use super::events::{EventQueue, Ready};

/// An operator written by a user: what it is called, what it gives, and how an instance begins.
pub trait UserOperator: Send + Sync + 'static {
    /// The name, for plans and messages.
    fn name(&self) -> &str;

    /// Names and types of the columns that come out, by the types of each input's columns.
    ///
    /// # Errors
    /// Why there are none: the query is refused with that.
    fn output(&self, inputs: &[Vec<DataType>]) -> Result<Vec<(String, DataType)>, String>;

    /// The instance of one worker, which has seen nothing.
    fn start(&self) -> Box<dyn Instance>;
}

/// A user's operator at work on one worker.
pub trait Instance {
    /// Takes the rows of each input whose times lie before `upto`, and gives what follows from
    /// all that is complete before `upto`. Called whenever the frontier has moved, so `inputs`
    /// may be empty of rows.
    ///
    /// # Errors
    /// Ends the operator: the error is its last result, and stays in force.
    fn advance(&mut self, upto: Time, inputs: &[Arrived<'_>], out: &mut Given) -> Result<(), String>;

    /// Bytes of state, roughly.
    fn size_bytes(&self) -> usize {
        0
    }
}

/// Rows of one input, in order of time.
#[derive(Clone, Copy, Debug)]
pub struct Arrived<'a> {
    columns: &'a [ArrayRef],
    times: &'a [Time],
    untils: &'a [Time],
}

impl<'a> Arrived<'a> {
    /// The columns, in the types that batches keep.
    pub fn columns(&self) -> &'a [ArrayRef] {
        self.columns
    }

    /// By row, when it begins; ascending.
    pub fn times(&self) -> &'a [Time] {
        self.times
    }

    /// By row, when it ends; for an end edge, when the row that ends had begun.
    pub fn untils(&self) -> &'a [Time] {
        self.untils
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.times.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.times.is_empty()
    }
}

/// Receives what an instance gives.
#[derive(Debug, Default)]
pub struct Given {
    batches: Vec<Batch>,
}

impl Given {
    /// Gives rows as points: one time a row, at or after the `upto` of the call before, in any
    /// order.
    pub fn points(&mut self, columns: Vec<ArrayRef>, times: Vec<Time>) {
        self.lasting(columns, times, Until::Duration(1));
    }

    /// Gives rows with lifetimes: times as in [`points`](Given::points).
    pub fn lasting(&mut self, columns: Vec<ArrayRef>, times: Vec<Time>, until: Until) {
        if times.is_empty() {
            return;
        }
        let len = times.len();
        let times = Times::Column(times.into()).simplify();
        self.batches.push(Batch::with_len(columns.into(), len, times, Diffs::Constant(1)).with_until(until));
    }
}

/// A user's operator as a plan carries it.
#[derive(Clone)]
pub struct CustomOperator(Arc<dyn UserOperator>);

impl CustomOperator {
    /// The operator as a value.
    pub fn new(operator: impl UserOperator) -> CustomOperator {
        CustomOperator(Arc::new(operator))
    }

    /// See [`UserOperator::name`].
    pub fn name(&self) -> &str {
        self.0.name()
    }

    /// See [`UserOperator::output`].
    ///
    /// # Errors
    /// As there.
    pub fn output(&self, inputs: &[Vec<DataType>]) -> Result<Vec<(String, DataType)>, String> {
        self.0.output(inputs)
    }

    /// The tactic of one worker, over inputs with so many columns, giving rows of these types.
    pub fn tactic(&self, n_inputs: usize, types: Vec<DataType>) -> Custom {
        Custom {
            name: self.name().to_owned(),
            instance: Some(self.0.start()),
            queues: (0..n_inputs).map(|_| EventQueue::default()).collect(),
            types,
            done: Time::MIN,
        }
    }
}

impl fmt::Debug for CustomOperator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CustomOperator").field(&self.name()).finish()
    }
}

/// The tactic. See the module's page.
pub struct Custom {
    name: String,
    /// `None` after an error.
    instance: Option<Box<dyn Instance>>,
    queues: Vec<EventQueue>,
    /// Of the columns given.
    types: Vec<DataType>,
    done: Time,
}

impl Custom {
    /// What is wrong with rows that an instance gave.
    fn check(&self, batch: &Batch) -> Result<(), String> {
        let types: Vec<&DataType> = batch.columns().iter().map(|column| column.data_type()).collect();
        if !types.iter().copied().eq(&self.types) {
            return Err(format!("it gave columns of types {types:?}, but promised {:?}", self.types));
        }
        if let Some(column) = batch.columns().iter().find(|column| column.len() != batch.len()) {
            return Err(format!("it gave {} times for a column of {} rows", batch.len(), column.len()));
        }
        let (first, last) = batch.times().range();
        if first < self.done || last == END {
            return Err(format!("it gave a row at {first} after all before {} was complete", self.done));
        }
        Ok(())
    }

    fn call(&mut self, upto: Time, ready: &[Option<Ready>], out: &mut Output) -> Result<(), String> {
        let Some(instance) = &mut self.instance else { return Ok(()) };
        let inputs: Vec<Arrived<'_>> = ready.iter().map(arrived).collect();
        let mut given = Given::default();
        instance.advance(upto, &inputs, &mut given)?;
        for batch in given.batches {
            self.check(&batch)?;
            out.give_rows(batch);
        }
        Ok(())
    }
}

fn arrived(ready: &Option<Ready>) -> Arrived<'_> {
    match ready {
        Some(ready) => Arrived { columns: ready.batch.columns(), times: &ready.times, untils: &ready.untils },
        None => Arrived { columns: &[], times: &[], untils: &[] },
    }
}

impl Timed for Custom {
    fn push(&mut self, input: usize, batch: Batch) {
        if self.instance.is_some() {
            self.queues[input].push(batch);
        }
    }

    fn advance(&mut self, upto: Time, out: &mut Output) {
        let ready: Vec<Option<Ready>> = self.queues.iter_mut().map(|queue| queue.take_before(upto)).collect();
        if let Err(reason) = self.call(upto, &ready, out) {
            let message = format!("operator \"{}\" has failed: {reason}", self.name);
            self.instance = None;
            let message: ArrayRef = Arc::new(StringViewArray::from(vec![message]));
            let times = Times::Column(ScalarBuffer::from(vec![self.done.max(upto.saturating_sub(1))]));
            out.give_errors(Batch::new(vec![message], times, Diffs::Constant(1)));
        }
        self.done = self.done.max(upto);
    }

    fn pending_from(&self) -> Option<Time> {
        self.queues.iter().filter_map(EventQueue::pending_from).min()
    }

    fn size_bytes(&self) -> usize {
        let waiting: usize = self.queues.iter().map(EventQueue::size_bytes).sum();
        waiting + self.instance.as_ref().map_or(0, |instance| instance.size_bytes())
    }
}
