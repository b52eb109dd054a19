//! Loops: variables that are defined by themselves, evaluated in rounds to a fixed point, and kept
//! current.
//!
//! Law: at every time outside, what leaves a loop is what its rounds yield over what has entered
//! it, as `docs/semantics.md` has it: all variables start empty; a round evaluates the bindings in
//! their order; the loop ends with the round that changes nothing, or with its limit.
//!
//! An update inside has two times: the *epoch*, which is the time outside, and the *round*.
//! Contents at (epoch, round) are the sum of all updates with an earlier or the same epoch and an
//! earlier or the same round. Epochs are worked on one after the other, and the rounds of an epoch
//! in ascending order. So of two updates that meet, one is of the present epoch, and only rounds
//! are to be compared: the pair is a change of the later of the two rounds, which may lie ahead.
//!
//! ```text
//!              round 1   2   3   4   5
//!   epoch 10      +3    +2  +1   .   .      the loop as it was built
//!   epoch 11      -1     .  +1  -1   .      what a change of the data changes, round by round
//!   epoch 12       .    +1   .   .   .
//! ```
//!
//! An epoch so visits the rounds in which its data changes something, and no others. The fixed
//! point of an epoch is the sum of all its rounds: that is what leaves.
//!
//! Negation, aggregates and all else that is no sum look at the history of a key by rounds: see
//! `reduce`. A loop within a loop is such a function, of all its rows at once: it is kept for each
//! outer round that changes what enters it (`stages`).
//!
//! State: arrangements with rounds for times (`trace`), and the histories of distinct rows. Cost:
//! an epoch costs the (row, round) pairs that it changes and their joins; the first one is worked
//! on in batches of whole rounds. Work is cut by fuel; the frontier waits for the epoch.
//!
//! Source: differential dataflow (McSherry, Murray, Isaacs, Isard, CIDR 2013), for the meaning and
//! for what must be looked at again. There, times are a lattice and operators run concurrently over
//! it; here, one task goes through it in order, so nothing stored needs a partial order (decision
//! 0070).
//!
//! Reading order: [`LoopSpec`], `machine`, `trace`, `pairs`, `distinct` on `histories` and `kept`,
//! `least` on `values` and `steps`, `reduce`, `stages`, `overrun`, `waiting`,
//! `feed`.

mod distinct;
mod feed;
mod histories;
mod kept;
mod least;
mod machine;
mod moment;
mod overrun;
mod pairs;
mod reduce;
mod round_rows;
mod spec;
mod stages;
mod steps;
mod trace;
mod values;
mod waiting;

#[cfg(test)]
mod tests;

pub use feed::{LoopBegin, recursive};
pub use spec::{LeastSpec, LoopNode, LoopSpec, NodeId, ROUNDS_MAX, Ranks, TacticMaker};
