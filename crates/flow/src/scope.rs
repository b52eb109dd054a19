//! Places in a dataflow, and the streams between its operators, each with what operators know of
//! the worker that they are on.

use anabranch_batch::Time;

use crate::parcel::Parcel;
use crate::worker::WorkerContext;

/// A place in a dataflow to put operators.
#[derive(Clone)]
pub struct Scope<'s> {
    timely: timely::dataflow::Scope<'s, Time>,
    worker: WorkerContext,
}

impl<'s> Scope<'s> {
    pub(crate) fn new(timely: timely::dataflow::Scope<'s, Time>, worker: WorkerContext) -> Scope<'s> {
        Scope { timely, worker }
    }

    /// The worker that its operators are on.
    pub fn worker(&self) -> &WorkerContext {
        &self.worker
    }

    /// The worker's number among its peers.
    pub fn index(&self) -> usize {
        self.timely.index()
    }

    /// How many workers there are.
    pub fn peers(&self) -> usize {
        self.timely.peers()
    }

    /// The place as timely knows it, for operators that are timely's own.
    pub fn timely(&self) -> timely::dataflow::Scope<'s, Time> {
        self.timely
    }
}

/// An edge from an operator to those that follow it. By default it carries parcels: the rows and
/// row errors of a collection on their way.
#[derive(Clone)]
pub struct Stream<'s, C: 'static = Parcel> {
    timely: timely::dataflow::Stream<'s, Time, C>,
    worker: WorkerContext,
}

impl<'s, C: 'static> Stream<'s, C> {
    pub(crate) fn new(timely: timely::dataflow::Stream<'s, Time, C>, worker: WorkerContext) -> Stream<'s, C> {
        Stream { timely, worker }
    }

    /// Where the operator is.
    pub fn scope(&self) -> Scope<'s> {
        Scope { timely: self.timely.scope(), worker: self.worker.clone() }
    }

    /// The edge as timely knows it, for operators that are timely's own.
    pub fn into_timely(self) -> timely::dataflow::Stream<'s, Time, C> {
        self.timely
    }
}
