//! The run time: how what verbs do becomes operators of a dataflow, and when these have their turn.
//!
//! Operators run on timely: [`Parcel`] is its container, one timely message carries many logical times, so progress traffic is per batch and not per row.
//!
//! Reading order: [`tactic`] (what a verb is to the run time), [`parcel`], [`exchange`], [`relay`], [`import`] and [`runs`] (how rows enter a dataflow),
//! [`drive`], [`line`] and [`chain`] (steps that are one operator), [`arrange`], [`sink`] and [`egress`] (how rows leave), [`events`] (drivers of verbs on events),
//! [`tasks`] and [`waker`] (when operators have their turn), [`steps`] (how long they run), [`leisure`] (spare time).
#![forbid(unsafe_code)]

pub mod arrange;
pub mod chain;
pub mod drive;
pub mod egress;
pub mod events;
pub mod exchange;
pub mod import;
pub mod leisure;
pub mod line;
pub mod parcel;
pub mod pending;
mod recall;
pub mod relay;
pub mod runs;
pub mod sink;
pub mod steps;
pub mod tactic;
pub mod tasks;
pub mod waker;

pub use parcel::Parcel;

/// A stream of parcels: the rows and row errors of a collection on their way.
pub type Stream<'s> = timely::dataflow::Stream<'s, anabranch_batch::Time, Parcel>;
/// A place in a dataflow to put operators.
pub type Scope<'s> = timely::dataflow::Scope<'s, anabranch_batch::Time>;
