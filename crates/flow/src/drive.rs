//! What drivers of tactics have in common: frontiers, and the right to send.
//!
//! Law: a driver sends nothing at a time that its capability does not allow, and holds no
//! capability once there is nothing more to send before the input frontier; so frontiers move as
//! soon as they can.

use anabranch_batch::{Batch, END, Time, Times};
use timely::container::NoopBuilder;
use timely::dataflow::operators::{Capability, CapabilityTrait, InputCapability};
use timely::progress::frontier::MutableAntichain;

use crate::parcel::Parcel;
use crate::tactic::Output;

/// The least time that may still come; [`END`] when nothing may.
pub(crate) fn frontier_of(frontier: &MutableAntichain<Time>) -> Time {
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

/// The same updates with times before `as_of` moved to it.
pub fn advanced_to(batch: Batch, as_of: Time) -> Batch {
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

/// The capability that pending work is to be sent at, in operators that send.
pub struct HeldCapability {
    capability: Option<Capability<Time>>,
    sends: bool,
}

impl HeldCapability {
    pub(crate) fn new(capability: Capability<Time>) -> HeldCapability {
        HeldCapability { capability: Some(capability), sends: true }
    }

    /// That of an operator without an output: nothing is ever held.
    pub(crate) fn none() -> HeldCapability {
        HeldCapability { capability: None, sends: false }
    }

    pub(crate) fn capability(&self) -> Option<&Capability<Time>> {
        self.capability.as_ref()
    }

    /// Keeps the earlier of what is held and what a message allows. Returns the time of the
    /// message.
    pub(crate) fn lower_to(&mut self, message: &InputCapability<Time>) -> Time {
        let time = *message.least().expect("a message has a time");
        if self.sends && self.capability.as_ref().is_none_or(|held| time < *held.time()) {
            self.capability = Some(message.retain_least(0).expect("a message has a time"));
        }
        time
    }

    /// Keeps what is held from `pending` on, or nothing.
    pub(crate) fn release(&mut self, pending: Option<Time>) {
        match (pending, &mut self.capability) {
            (Some(time), Some(held)) if time > *held.time() => held.downgrade(&time),
            (Some(_), _) => {}
            (None, held) => *held = None,
        }
    }
}
