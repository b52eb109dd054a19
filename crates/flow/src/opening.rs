//! How feeds are connected to the operator, or task, that is being made for them.

use anabranch_batch::Time;
use timely::Container;
use timely::dataflow::channels::pact::{ParallelizationContract, Pipeline};
use timely::dataflow::operators::generic::InputHandleCore;
use timely::dataflow::operators::generic::builder_rc::OperatorBuilder;
use timely::progress::operate::FrontierInterest;

use crate::exchange::{CountedRoute, along};
use crate::line::{Edge, Feed};
use crate::scope::{Scope, Stream};
use crate::waker::Waker;

/// Opens a feed.
pub type Open<'s> = Box<dyn FnOnce(&mut Opening<'s>) -> Box<dyn Feed> + 's>;

/// Whether rows come to a feed over edges of the dataflow, so that an operator of timely is needed.
/// What comes from queues of inputs and of arrangements needs none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edges {
    /// At least one feed has an edge.
    Some,
    /// All rows come from queues.
    None,
}

impl Edges {
    /// Of several feeds together.
    pub fn of_any(feeds: impl IntoIterator<Item = Edges>) -> Edges {
        match feeds.into_iter().any(|edges| edges == Edges::Some) {
            true => Edges::Some,
            false => Edges::None,
        }
    }
}

/// What is being made.
pub struct Opening<'s> {
    /// None of a task.
    operator: Option<OperatorBuilder<'s, Time>>,
    waker: Waker,
    /// How closely edges follow their frontiers.
    interest: FrontierInterest,
}

impl<'s> Opening<'s> {
    pub(crate) fn of_operator(name: String, scope: &Scope<'s>) -> Opening<'s> {
        let operator = OperatorBuilder::new(name, scope.timely());
        let address = operator.operator_info().address;
        let waker = Waker::of_operator(scope.timely().activator_for(address));
        Opening { operator: Some(operator), waker, interest: FrontierInterest::Always }
    }

    pub(crate) fn of_task(waker: Waker) -> Opening<'s> {
        Opening { operator: None, waker, interest: FrontierInterest::Always }
    }

    /// The operator, with the inputs that feeds have asked for.
    pub(crate) fn into_operator(self) -> OperatorBuilder<'s, Time> {
        self.operator.expect("it was opened as an operator")
    }

    /// What wakes the operator or task.
    pub fn waker(&self) -> &Waker {
        &self.waker
    }

    pub(crate) fn interest(&self) -> FrontierInterest {
        self.interest
    }

    /// Opens a feed whose edges have this interest in their frontiers.
    pub(crate) fn feed(&mut self, open: Open<'s>, interest: FrontierInterest) -> Box<dyn Feed> {
        let outer = std::mem::replace(&mut self.interest, interest);
        let feed = open(self);
        self.interest = outer;
        feed
    }

    /// A stream as a feed, exchanged between several workers if there is a route.
    pub(crate) fn edge(
        &mut self,
        stream: Stream<'s>,
        movement: Option<CountedRoute>,
        interest: FrontierInterest,
    ) -> Box<dyn Feed> {
        let movement = movement.filter(|_| stream.scope().peers() > 1);
        let (feed, index): (Box<dyn Feed>, usize) = match movement {
            Some(movement) => {
                let counter = movement.counter.clone();
                let (input, index) = self.input(stream, along(movement));
                (Box::new(Edge { input, index, counter }), index)
            }
            None => {
                let (input, index) = self.input(stream, Pipeline);
                (Box::new(Edge { input, index, counter: None }), index)
            }
        };
        self.operator().set_notify_for(index, interest);
        feed
    }

    /// A new input of the operator, and its number.
    pub(crate) fn input<C: Container, P: ParallelizationContract<Time, C>>(
        &mut self,
        stream: Stream<'s, C>,
        contract: P,
    ) -> (InputHandleCore<Time, C, P::Puller>, usize) {
        let operator = self.operator();
        let index = operator.shape().inputs();
        (operator.new_input(stream.into_timely(), contract), index)
    }

    fn operator(&mut self) -> &mut OperatorBuilder<'s, Time> {
        self.operator.as_mut().expect("a feed with an edge says so")
    }
}
