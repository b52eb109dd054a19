//! The temporal algebra: verbs on streams of events (Trill 2.2, 3; Quill).
//!
//! An **event** is a row with a lifetime. Batches hold events as they hold updates: `times` is the
//! sync-time, `until` the other time.
//!
//! ```text
//!     until > time     interval [time, until)
//!     until = END      start edge: the end is not known yet, or never comes
//!     until < time     end edge: the event that began at `until` ends at `time`
//!     until = time     nothing
//! ```
//!
//! Law: a start edge with its end edge means the same as the interval, everywhere. The multiset of
//! events that a verb puts out, edges paired, is the same whatever the cut into batches, the order
//! of arrival between two frontiers, and the number of workers. Neighbours that touch are not
//! merged: `[1, 5) a` and `[5, 9) a` are two events, and the verbs that look at single events see
//! two. What the events add up to is the collection that
//! [`Batch::flatten`](anabranch_batch::Batch::flatten) writes out.
//!
//! Streams are not in order here, as they are in Trill: a verb may put out an event in the future
//! of the frontier (an extended end, a window to come), and an operator that needs order waits for
//! the frontier. So most lifetime verbs need no state. A verb that puts events *before* their
//! input's times (a floor, a shift back, a shortening) holds the frontier back accordingly:
//! [`Hold`].
//!
//! Reading order: [`ticks`] (arithmetic); the verbs without state, [`bounds`], [`shift`],
//! [`duration`], [`lifetime`], [`hopping`], [`quantize`]; the verbs with state, which remember
//! [`rows`]: [`extend`], [`clip_duration`], [`chop`], [`stitch`], [`changes`], [`session`],
//! [`clip`], [`detect`]; with [`lists`] of rows [`append_join`], [`asof`]; and, with [`in_force`]
//! instead, [`join`], [`absent`]; and [`ingress`], which brings rows in order before all of them.

pub mod absent;
mod agenda;
pub mod append_join;
mod arrivals;
pub mod asof;
pub mod bounds;
pub mod changes;
pub mod chop;
pub mod clip;
pub mod clip_duration;
mod cover;
pub mod custom;
pub mod detect;
pub mod duration;
mod events;
pub mod extend;
mod hold;
pub mod hopping;
mod in_force;
pub mod ingress;
pub mod join;
#[cfg(test)]
mod laws;
pub mod lifetime;
mod lists;
mod open_pairs;
#[cfg(test)]
mod paced_tests;
pub mod point_at_end;
pub mod quantize;
pub mod rows;
pub mod session;
pub mod shift;
pub mod sliding;
mod slots;
pub mod stitch;
#[cfg(test)]
mod testing;
pub mod ticks;
mod turn;
mod walk;

pub use hold::Hold;
