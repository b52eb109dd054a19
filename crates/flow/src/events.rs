//! Drivers for verbs on events.
//!
//! Law: an operator's frontier comes to `reach` of the least of its inputs' frontiers, exactly,
//! once all before that is out. So the frontier at a query's end is known from the plan and from
//! the frontiers pushed in, and a reader that waits for it waits for nothing else. The operator
//! always holds the right to send from its frontier on.

use anabranch_batch::{Batch, END, Time};
use timely::container::NoopBuilder;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::Capability;
use timely::dataflow::operators::generic::OutputBuilder;
use timely::dataflow::operators::generic::builder_rc::OperatorBuilder;

use crate::account::memory::{Gauge, MemoryPart};
use crate::drive::{frontier_of, send};
use crate::exchange::by_key;
use crate::paced::Paced;
use crate::parcel::Parcel;
use crate::scope::Stream;
use crate::tactic::{Output, Timed};

/// Applies a function to every batch of events; row errors pass. Events out are at or after `reach`
/// of the events in that cause them; `reach` is monotone, not after its argument, and leaves both
/// ends of time alone.
pub fn stateless<'s>(
    stream: Stream<'s>,
    name: &'static str,
    reach: impl Fn(Time) -> Time + 'static,
    mut apply: impl FnMut(Batch, &mut Output) + 'static,
) -> Stream<'s> {
    let scope = stream.scope();
    let worker = scope.worker().clone();
    let mut operator = OperatorBuilder::new(name.to_owned(), scope.timely());
    let mut puller = operator.new_input(stream.into_timely(), Pipeline);
    let (output, stream) = operator.new_output::<Parcel>();
    let mut output = OutputBuilder::<_, NoopBuilder<Parcel>>::from(output);
    operator.build(move |mut capabilities| {
        let mut held = Some(capabilities.pop().expect("one output"));
        let mut out = Output::default();
        let meter = worker.meter(name);
        move |frontiers| {
            let _step = meter.step();
            let Some(capability) = &held else { return };
            let turned = worker.account().turn(|| {
                puller.for_each(|_capability, parcel| match std::mem::take(parcel) {
                    Parcel::Empty => {}
                    Parcel::Rows(batch) => apply(batch, &mut out),
                    Parcel::Errors(batch) => out.give_errors(batch),
                });
            });
            let Some(()) = turned else { return };
            send(&mut out, capability, &mut output.activate());
            held = lowered(held.take(), reach(frontier_of(&frontiers[0])));
        }
    });
    Stream::new(stream, scope.worker().clone())
}

/// Runs a [`Timed`] tactic on events: batches come as they are, with lifetimes and end edges, all
/// rows present. One or two inputs, each exchanged by key columns first. The tactic may put out
/// events at or after `reach` of the frontier before its turn. Work beyond a turn's limit is put
/// out in several turns ([`Paced`]), between which other operators have theirs.
pub fn events<'s>(
    inputs: Vec<(Stream<'s>, Vec<usize>)>,
    name: &'static str,
    reach: impl Fn(Time) -> Time + 'static,
    tactic: Box<dyn Timed>,
) -> Stream<'s> {
    let scope = inputs.first().expect("an operator has an input").0.scope();
    let worker = scope.worker().clone();
    let mut operator = OperatorBuilder::new(name.to_owned(), scope.timely());
    let input = |(stream, key): (Stream<'s>, _)| operator.new_input(stream.into_timely(), by_key(key));
    let mut pullers: Vec<_> = inputs.into_iter().map(input).collect();
    let (output, stream) = operator.new_output::<Parcel>();
    let mut output = OutputBuilder::<_, NoopBuilder<Parcel>>::from(output);
    let activator = scope.timely().activator_for(operator.operator_info().address);
    operator.build(move |mut capabilities| {
        let mut held = Some(capabilities.pop().expect("one output"));
        let mut tactic = Paced::new(tactic);
        let mut gauge = Gauge::new(worker.account().clone(), MemoryPart::State);
        let meter = worker.meter(name);
        move |frontiers| {
            let _step = meter.step();
            let Some(capability) = &held else { return };
            let mut out = Output::default();
            let mut n_rows = 0;
            let turned = worker.account().turn(|| {
                for (index, input) in pullers.iter_mut().enumerate() {
                    input.for_each(|_capability, parcel| match std::mem::take(parcel) {
                        Parcel::Empty => {}
                        Parcel::Rows(batch) => {
                            n_rows += batch.len();
                            tactic.push(index, batch.compact());
                        }
                        Parcel::Errors(batch) => out.give_errors(batch),
                    });
                }
                let upto = frontiers.iter().map(frontier_of).min().expect("an operator has an input");
                let is_idle = tactic.is_idle_before(upto);
                if !tactic.turn(upto, &mut out) {
                    activator.activate();
                } else if is_idle && worker.has_spare_time() {
                    tactic.idle();
                }
            });
            let Some(()) = turned else { return };
            gauge.note(n_rows, || tactic.size_bytes());
            send(&mut out, capability, &mut output.activate());
            // Rows may wait for a later turn: the frontier follows what is out, not what has come
            // in.
            held = lowered(held.take(), reach(tactic.done()));
        }
    });
    Stream::new(stream, scope.worker().clone())
}

/// The capability at `frontier`; none at the end.
fn lowered(held: Option<Capability<Time>>, frontier: Time) -> Option<Capability<Time>> {
    let mut held = held.filter(|_| frontier < END)?;
    if frontier > *held.time() {
        held.downgrade(&frontier);
    }
    Some(held)
}
