//! Arrange: a stream becomes an arrangement, indexed by key, shared by whoever asks.
//!
//! Law: when the frontier has passed a time, the arrangement holds exactly the updates up to it; each run covers the interval
//! between two frontiers. Rows with equal keys are on one worker.
//!
//! State: the arrangement, and the rows that wait for the frontier. It is freed when the dataflow is dropped and no reader is left.
//! Cost: sort each interval once (see `anabranch-arrangement`); merging is paid in proportion to what comes in, and goes on, a little at a time,
//! when nothing comes in.
//! Source: shared arrangements (VLDB 2020), section 4.

use std::rc::Rc;
use std::time::Duration;

use anabranch_arrangement::{Builder, Layout, Listener, MergeEffort, Reader, Sealed, Writer, arrangement};
use anabranch_batch::{Batch, END, Time, Times};
use timely::container::NoopBuilder;
use timely::dataflow::operators::Capability;
use timely::dataflow::operators::generic::OutputBuilder;
use timely::dataflow::operators::generic::builder_rc::OperatorBuilder;

use crate::Stream;
use crate::drive::frontier_of;
use crate::exchange::by_key;
use crate::parcel::Parcel;
use crate::steps::Meter;

/// Rows of merging done at a time when nothing comes in: below a tenth of a millisecond,
const IDLE_FUEL: isize = 4096;

/// and how long other operators have the worker in between.
const IDLE_PAUSE: Duration = Duration::from_millis(2);

/// After so many turns with input the pause is taken to be over: its end may have fallen into one of them.
const PAUSE_TURNS_MAX: u32 = 1000;

/// The runs of an arrangement as they are sealed; empty ones show in the frontier only.
pub type SealedStream<'s> = timely::dataflow::Stream<'s, Time, Vec<Sealed>>;

/// An arrangement inside a dataflow.
pub struct Arranged<'s> {
    /// Reads what is arranged so far.
    pub reader: Reader,
    /// Its runs: first those that exist, then each new one.
    pub sealed: SealedStream<'s>,
    /// Row errors of the collection; they are not arranged here.
    pub errors: Option<Stream<'s>>,
}

impl Clone for Arranged<'_> {
    fn clone(&self) -> Self {
        Arranged { reader: self.reader.clone(), sealed: self.sealed.clone(), errors: self.errors.clone() }
    }
}

/// Arranges a stream of rows; times before `as_of` are advanced to it.
pub fn arrange<'s>(
    stream: Stream<'s>,
    name: &str,
    layout: Rc<Layout>,
    effort: MergeEffort,
    as_of: Time,
) -> Arranged<'s> {
    let scope = stream.scope();
    let mut operator = OperatorBuilder::new(format!("Arrange {name}"), scope);
    let mut input = operator.new_input(stream, by_key(layout.key.clone()));
    let (sealed_output, sealed) = operator.new_output::<Vec<Sealed>>();
    let (errors_output, errors) = operator.new_output::<Parcel>();
    let mut sealed_output = OutputBuilder::<_, NoopBuilder<Vec<Sealed>>>::from(sealed_output);
    let mut errors_output = OutputBuilder::<_, NoopBuilder<Parcel>>::from(errors_output);

    let activator = scope.activator_for(operator.operator_info().address);
    let (writer, reader) = arrangement(Rc::clone(&layout), effort);
    let listener = reader.listen(None);
    operator.build(move |capabilities| {
        drop(capabilities);
        let mut sealer = Sealer::new(layout, writer, listener, as_of);
        let meter = Meter::new("Arrange");
        let mut idler = Idler::default();
        move |frontiers| {
            let _step = meter.step();
            let mut errors = errors_output.activate();
            let mut is_idle = true;
            input.for_each(|capability, parcel| match std::mem::take(parcel) {
                Parcel::Empty => {}
                Parcel::Rows(batch) => {
                    is_idle = false;
                    sealer.push(batch);
                    sealer.hold(capability.retain_least(0).expect("a message has a time"));
                }
                mut other => errors.session_with_builder(&capability).give_container(&mut other),
            });
            let mut output = sealed_output.activate();
            let upper = frontier_of(&frontiers[0]);
            is_idle &= upper <= sealer.writer.upper();
            if let Some((capability, sealed)) = sealer.seal_before(upper) {
                output.session_with_builder(&capability).give_container(&mut vec![sealed]);
            }
            if effort != MergeEffort::LAZY && idler.should_wait(is_idle, &mut sealer.writer) {
                activator.activate_after(IDLE_PAUSE);
            }
        }
    });
    Arranged { reader, sealed, errors: Some(errors) }
}

/// Merges when there is nothing else to do.
#[derive(Default)]
struct Idler {
    /// Turns since the pause began that had something else to do; `None` while there is no pause.
    busy_turns: Option<u32>,
}

impl Idler {
    /// Merges a little in an idle turn. Returns whether to be woken after a pause, because there is more to merge.
    fn should_wait(&mut self, is_idle: bool, writer: &mut Writer) -> bool {
        let is_over = is_idle || self.busy_turns.is_none_or(|turns| turns >= PAUSE_TURNS_MAX);
        if !is_over {
            self.busy_turns = self.busy_turns.map(|turns| turns + 1);
            return false;
        }
        let has_more = writer.exert(&mut { if is_idle { IDLE_FUEL } else { 0 } });
        self.busy_turns = has_more.then_some(0);
        has_more
    }
}

/// Collects rows until the frontier has passed them, then seals a run.
struct Sealer {
    builder: Builder,
    writer: Writer,
    /// Hears the runs as they become part of the arrangement.
    listener: Listener,
    as_of: Time,
    /// Least of the capabilities that the waiting rows came with.
    held: Option<Capability<Time>>,
}

impl Sealer {
    fn new(layout: Rc<Layout>, writer: Writer, listener: Listener, as_of: Time) -> Sealer {
        Sealer { builder: Builder::new(layout), writer, listener, as_of, held: None }
    }

    fn push(&mut self, batch: Batch) {
        self.builder.push(advanced_to(batch.flatten(), self.as_of));
    }

    fn hold(&mut self, capability: Capability<Time>) {
        if self.held.as_ref().is_none_or(|held| capability.time() < held.time()) {
            self.held = Some(capability);
        }
    }

    /// Seals everything before `upper`. A run that is not empty comes with the capability to send it at.
    fn seal_before(&mut self, upper: Time) -> Option<(Capability<Time>, Sealed)> {
        let lower = self.writer.upper();
        if upper <= lower {
            return None;
        }
        self.writer.seal(self.builder.seal(lower, upper));
        let sealed = self.listener.drain().pop().expect("a run was just sealed");
        let mut held = self.held.take()?;
        let message = (!sealed.run.is_empty()).then(|| (held.clone(), sealed));
        if self.builder.rows() > 0 {
            if upper > *held.time() && upper != END {
                held.downgrade(&upper);
            }
            self.held = Some(held);
        }
        message
    }
}

/// The same updates with times before `as_of` moved to it.
pub(crate) fn advanced_to(batch: Batch, as_of: Time) -> Batch {
    if batch.times().min() >= as_of || batch.is_empty() {
        return batch;
    }
    let times = match batch.times() {
        times if times.max() <= as_of => Times::Constant(as_of),
        Times::Constant(time) => Times::Constant(*time),
        Times::Column(times) => Times::Column(times.iter().map(|time| *time.max(&as_of)).collect()),
    };
    batch.with_times(times)
}
