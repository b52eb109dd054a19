//! The verbs: what can be done to collections, one a file.
//!
//! Each verb is a *tactic*, a plain object that takes batches and gives batches, knows no runtime and is tested alone; the run time ([`anabranch_flow`]) gives it
//! frontiers and lets it have its turns.
//!
//! Law: for every operator the accumulated output at every time is a function of the accumulated input at that time,
//! whatever the cut into batches, the order of arrival between two frontiers, the number of workers, and the schedule of merges.
//!
//! Times are totally ordered here (`i64` ticks), so an aggregate needs its present state only, not its history.
//!
//! Reading order: [`stage`], [`join`], [`matched`] (semi, anti, outer), [`aggregate`], [`multiplicity`], [`top_k`], [`threshold`], [`asof`], [`recognize`],
//! [`temporal`] (verbs on events).
#![forbid(unsafe_code)]

pub mod aggregate;
pub mod arithmetic;
pub mod asof;
pub mod condition;
pub mod expression;
pub mod group_table;
mod instants;
pub mod join;
mod key_store;
pub mod matched;
pub mod multiplicity;
mod ordered_trace;
mod portions;
pub mod recognize;
mod segments;
pub mod stage;
pub mod temporal;
pub mod threshold;
pub mod top_k;
pub mod unnest;
