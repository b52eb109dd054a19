//! The run time: how what verbs do becomes tasks and operators of a dataflow, and when these have
//! their turn.
//!
//! Operators run on timely: [`Parcel`] is its container, one timely message carries many logical
//! times, so progress traffic is per batch and not per row. No crate above names timely but those
//! that measure.
//!
//! Reading order: [`tactic`] (what a verb is to the run time), [`parcel`], [`exchange`], [`relay`],
//! [`import`] and [`runs`] (how rows enter a dataflow), [`hidden`], [`line`] and [`chain`] (steps
//! that are scheduled as one; `opening` connects them), [`drive`] (frontiers, and the right to
//! send), [`arrange`], [`sink`] and [`egress`] (how rows leave), [`events`] and [`paced`] (verbs on
//! events as links); `tasks` and `waker` (when chains have their turn), [`worker`], [`service`] and
//! [`threads`] (the loop; `processors`: where each runs), [`limit`] (state that leaves),
//! [`account`] (which dataflow has failed), [`steps`] (how long turns take).
//!
#![doc = include_str!("scheduling.md")]
#![forbid(unsafe_code)]

pub mod account;
mod advancing;
pub mod arrange;
pub mod chain;
mod counting;
mod cpu_clock;
mod dealt;
pub mod drive;
pub mod egress;
mod event_verb;
pub mod events;
pub mod exchange;
pub mod hidden;
pub mod import;
pub mod limit;
pub mod line;
mod opening;
pub mod paced;
pub mod parcel;
pub mod pending;
pub mod processors;
pub mod pulled;
mod recall;
pub mod relay;
pub mod runs;
mod scope;
pub mod service;
pub mod sink;
mod sizes;
pub mod steps;
pub mod tactic;
mod tasks;
pub mod threads;
mod waker;
pub mod worker;

pub use opening::{Edges, Open, Opening};
pub use parcel::Parcel;
pub use scope::{Scope, Stream};
