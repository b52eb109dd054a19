//! What the calls of an aggregate share within one turn.

use std::cell::RefCell;

use anabranch_arrangement::Keys;
use anabranch_batch::{Batch, Diff, Time};

use super::segments::Segments;
use super::state::KnownDeltas;

/// What all calls of one turn share.
pub(crate) struct AggregateTurn<'a> {
    /// All rows: the used columns.
    pub(crate) batch: &'a Batch,
    pub(crate) segments: &'a Segments,
    /// Sum of diffs of each segment.
    pub(crate) multiplicities: &'a [Diff],
    /// The multiplicity of its group before each segment.
    pub(crate) multiplicities_before: &'a [Diff],
    /// Keys of the touched groups and the number of each group's key; for ordered calls.
    pub(crate) keys: Option<&'a (Keys, Vec<u32>)>,
    /// Hash of each row's key.
    pub(crate) hashes: &'a [u64],
    /// Slots in use.
    pub(crate) n_slots: usize,
    /// All times of rows are before this one.
    pub(crate) upto: Time,
    /// What calls have made of all rows, for those that ask for the same.
    pub(crate) deltas: RefCell<Vec<KnownDeltas>>,
}
