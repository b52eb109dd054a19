//! Drivers: they give tactics their batches, their frontiers and the right to send.
//!
//! Law: a driver sends nothing at a time that its capability does not allow, and holds no capability once there is nothing more to
//! send before the input frontier; so frontiers move as soon as they can.

use anabranch_batch::{Batch, END, Time};
use timely::container::NoopBuilder;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::Capability;
use timely::dataflow::operators::generic::OutputBuilder;
use timely::dataflow::operators::generic::builder_rc::OperatorBuilder;
use timely::dataflow::operators::generic::operator::Operator;
use timely::dataflow::operators::{CapabilityTrait, Concatenate};
use timely::progress::frontier::MutableAntichain;

use crate::exchange::by_key;
use crate::parcel::Parcel;
use crate::steps::Meter;
use crate::tactic::{Output, Timed};
use crate::{Scope, Stream};

/// The least time that may still come; [`END`] when nothing may.
pub fn frontier_of(frontier: &MutableAntichain<Time>) -> Time {
    frontier.frontier().first().copied().unwrap_or(END)
}

/// A session of a parcel output.
pub(crate) type ParcelOutput<'a> =
    timely::dataflow::operators::generic::OutputBuilderSession<'a, Time, NoopBuilder<Parcel>>;

/// Sends what a tactic put out, at a capability.
pub(crate) fn send(out: &mut Output, capability: &impl CapabilityTrait<Time>, output: &mut ParcelOutput<'_>) {
    if out.rows.is_empty() && out.errors.is_empty() {
        return;
    }
    let mut session = output.session_with_builder(capability);
    for batch in out.rows.drain(..) {
        session.give_container(&mut Parcel::Rows(batch));
    }
    for batch in out.errors.drain(..) {
        session.give_container(&mut Parcel::Errors(batch));
    }
}

/// Applies a function to every batch of rows; row errors pass.
pub fn stateless<'s>(
    stream: Stream<'s>,
    name: &'static str,
    mut apply: impl FnMut(Batch, &mut Output) + 'static,
) -> Stream<'s> {
    stream.unary::<NoopBuilder<Parcel>, _, _, _>(Pipeline, name, move |_capability, _info| {
        let mut out = Output::default();
        let meter = Meter::new(name);
        move |input, output| {
            let _step = meter.step();
            input.for_each(|capability, parcel| {
                match std::mem::take(parcel) {
                    Parcel::Empty => {}
                    Parcel::Rows(batch) => apply(batch, &mut out),
                    Parcel::Errors(batch) => out.give_errors(batch),
                }
                send(&mut out, &capability, output);
            });
        }
    })
}

/// The rows and errors of all streams together.
pub fn union<'s>(scope: Scope<'s>, streams: Vec<Stream<'s>>) -> Stream<'s> {
    scope.concatenate(streams)
}

/// The same rows with opposite diffs; row errors keep theirs.
pub fn negate(stream: Stream<'_>) -> Stream<'_> {
    stateless(stream, "Negate", |batch, out| out.give_rows(batch.negate()))
}

/// The row errors of a stream as rows of a collection of messages; its rows are left out.
pub fn errors_as_rows(stream: Stream<'_>) -> Stream<'_> {
    stream.unary::<NoopBuilder<Parcel>, _, _, _>(Pipeline, "Errors", move |_capability, _info| {
        move |input, output| {
            input.for_each(|capability, parcel| {
                if let Parcel::Errors(batch) = std::mem::take(parcel) {
                    output.session_with_builder(&capability).give_container(&mut Parcel::Rows(batch));
                }
            });
        }
    })
}

/// Runs a [`Timed`] tactic over one or two streams, each exchanged by key columns first.
///
/// The tactic may put out rows at `as_of` even if nothing comes in.
pub fn timed<'s>(
    inputs: Vec<(Stream<'s>, Vec<usize>)>,
    name: &'static str,
    as_of: Time,
    mut tactic: Box<dyn Timed>,
) -> Stream<'s> {
    let scope = inputs.first().expect("an operator has an input").0.scope();
    let mut operator = OperatorBuilder::new(name.to_owned(), scope);
    let mut pullers: Vec<_> = inputs.into_iter().map(|(stream, key)| operator.new_input(stream, by_key(key))).collect();
    let (output, stream) = operator.new_output::<Parcel>();
    let mut output = OutputBuilder::<_, NoopBuilder<Parcel>>::from(output);
    operator.build(move |mut capabilities| {
        let mut initial = capabilities.pop().expect("one output");
        initial.downgrade(&as_of);
        let mut held = Hold::new(initial);
        let mut done = Time::MIN;
        let meter = Meter::new(name);
        move |frontiers| {
            let _step = meter.step();
            let mut output = output.activate();
            let mut out = Output::default();
            for (index, input) in pullers.iter_mut().enumerate() {
                input.for_each(|capability, parcel| match std::mem::take(parcel) {
                    Parcel::Empty => {}
                    Parcel::Rows(batch) => {
                        tactic.push(index, batch.flatten());
                        held.lower_to(capability.retain_least(0).expect("a message has a time"));
                    }
                    Parcel::Errors(batch) => {
                        out.give_errors(batch);
                        send(&mut out, &capability, &mut output);
                    }
                });
            }
            let upto = frontiers.iter().map(frontier_of).min().expect("an operator has an input");
            if upto <= done.max(as_of) {
                return;
            }
            done = upto;
            if let Some(capability) = held.capability() {
                tactic.advance(upto, &mut out);
                send(&mut out, capability, &mut output);
            }
            held.release(tactic.pending_from().map(|_| upto));
        }
    });
    stream
}

/// The capability that pending work is to be sent at.
pub(crate) struct Hold(Option<Capability<Time>>);

impl Hold {
    pub(crate) fn new(capability: Capability<Time>) -> Hold {
        Hold(Some(capability))
    }

    /// Nothing held.
    pub(crate) fn none() -> Hold {
        Hold(None)
    }

    pub(crate) fn capability(&self) -> Option<&Capability<Time>> {
        self.0.as_ref()
    }

    /// Keeps the earlier of what is held and `capability`.
    pub(crate) fn lower_to(&mut self, capability: Capability<Time>) {
        if self.0.as_ref().is_none_or(|held| capability.time() < held.time()) {
            self.0 = Some(capability);
        }
    }

    /// Keeps what is held from `pending` on, or nothing.
    pub(crate) fn release(&mut self, pending: Option<Time>) {
        match (pending, &mut self.0) {
            (Some(time), Some(held)) if time > *held.time() => held.downgrade(&time),
            (Some(_), _) => {}
            (None, held) => *held = None,
        }
    }
}
