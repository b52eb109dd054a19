//! The verbs: what can be done to collections, one a file.
//!
//! Each verb is a *tactic*, a plain object that takes batches and gives batches, knows no runtime and is tested alone, inside
//! a *driver* that gives it frontiers and capabilities. Operators run on timely: [`Parcel`] is its container, one timely
//! message carries many logical times, so progress traffic is per batch and not per row.
//!
//! Law: for every operator the accumulated output at every time is a function of the accumulated input at that time,
//! whatever the cut into batches, the order of arrival between two frontiers, the number of workers, and the schedule of merges.
//!
//! Times are totally ordered here (`i64` ticks), so an aggregate needs its present state only, not its history.
//!
//! Reading order: [`parcel`], [`exchange`], [`relay`], [`import`] and [`runs`] (how rows enter a dataflow), [`stage`], [`arrange`], [`join`],
//! [`matched`] (semi, anti, outer), [`aggregate`], [`multiplicity`], [`top_k`], [`threshold`], [`asof`], [`recognize`], [`drive`] (drivers), [`sink`] (how changes leave),
//! [`temporal`] (verbs on events), [`chain`] (steps that are one operator of the runtime), [`tasks`] (operators that the runtime need not know), `recall` (steps that tell their rows again), [`steps`] (how long they run).
#![forbid(unsafe_code)]

pub mod aggregate;
pub mod arithmetic;
pub mod arrange;
pub mod asof;
pub mod chain;
pub mod condition;
pub mod drive;
pub mod exchange;
pub mod expression;
pub mod group_table;
pub mod import;
mod instants;
pub mod join;
mod key_store;
pub mod leisure;
mod line;
pub mod matched;
pub mod multiplicity;
mod ordered_trace;
pub mod parcel;
mod pending;
mod portions;
mod recall;
pub mod recognize;
pub mod relay;
pub mod runs;
mod segments;
pub mod sink;
pub mod stage;
pub mod steps;
pub mod tactic;
pub mod tasks;
pub mod temporal;
pub mod threshold;
pub mod top_k;
pub mod unnest;
mod waker;

pub use parcel::Parcel;

/// A stream of parcels: the rows and row errors of a collection on their way.
pub type Stream<'s> = timely::dataflow::Stream<'s, anabranch_batch::Time, Parcel>;
/// A place in a dataflow to put operators.
pub type Scope<'s> = timely::dataflow::Scope<'s, anabranch_batch::Time>;
