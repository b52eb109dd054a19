//! Patterns over time: an automaton whose instances each carry a register.
//!
//! ```text
//!     A B* C, the register sums the x of B, at most 1000 ticks:
//!     in    A@100  C@110  A@120  B(6)@130  B(8)@140  C@150
//!     out   [110, 1100) 0                            [150, 1120) 14
//! ```
//!
//! Law: events count by their start alone. An event at t takes every instance of its group that
//! began less than the maximum duration ago along every arc whose condition holds for the event and
//! the instance's register; an instance that goes nowhere is dead (to skip events, write a part of
//! the pattern that matches them). Then it may begin instances. An instance in a final state yields
//! its register as an event from t to its beginning plus the maximum duration, and goes on if it
//! can. Where instances may not overlap, one begins only when none is in progress.
//!
//! Events at the same time: an *event* element accepts nothing at an instant with several events of
//! a group, so that results do not depend on an order that does not exist. An *instant* element
//! looks at all events of the instant: some, all or none meet its condition; its register is folded
//! over those that do, and must not depend on their order. Under [`Simultaneous::Arrival`] each
//! event is an instant of its own, in order of arrival: a promise of the user's that this order
//! means something.
//!
//! State: instances, freed when they die or their maximum duration is over. Matches are put out
//! when time has passed their last event. Conditions that do not read the register are evaluated
//! over whole batches; the others, and the transfers, over the candidates of the k-th instant of
//! all groups at once. Source: Trill, `Detect` (augmented finite automata), without its quirk that
//! the maximum counts from the last transition.
//!
//! Reading order: [`pattern`], [`tactic`].

pub mod pattern;
mod step;
mod tactic;
#[cfg(test)]
mod tests;

pub use pattern::Automaton;
pub use tactic::Detect;

use anabranch_batch::Time;
use anabranch_spec::pattern::{Overlap, Simultaneous, Takes};
use arrow::array::ArrayRef;
use arrow::datatypes::DataType;

use crate::expression::ExpressionRef;

/// What is looked for. Expressions read the columns of the event, then those of the register.
#[derive(Clone)]
pub struct DetectSpec {
    /// What elements of a match follow each other.
    pub automaton: Automaton,
    /// What the automaton's elements accept.
    pub elements: Vec<Element>,
    /// Columns that patterns are looked for within.
    pub group: Vec<usize>,
    /// Types of the input's columns.
    pub input_types: Vec<DataType>,
    /// The register of a new instance: one row.
    pub register: Vec<ArrayRef>,
    /// Ticks from the beginning of an instance to its end; [`anabranch_batch::END`] for no end.
    pub duration: Time,
    /// Whether an instance may begin while another is in progress.
    pub overlap: Overlap,
    /// What several events at one time mean.
    pub simultaneous: Simultaneous,
    /// Most instances that a group may have in progress; more are a row error, and the group begins
    /// anew.
    pub instances_max: usize,
}

/// What an element accepts, and what it makes of the register.
#[derive(Clone)]
pub struct Element {
    /// How many events it looks at.
    pub takes: Takes,
    /// What an event must meet; `None` is met by all.
    pub condition: Option<ExpressionRef>,
    /// Whether the condition reads the register.
    pub reads_register: bool,
    /// The new register, one expression a column; `None` leaves it as it is.
    pub register: Option<Vec<ExpressionRef>>,
}
