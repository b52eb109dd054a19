//! A frame whose result is a relation.

use std::collections::BTreeMap;

use arrow::datatypes::DataType;

use crate::catalog::ObjectId;
use crate::cluster::{CollectionId, DataflowId};
use crate::frame::run::Suspended;
use crate::session::sealed::SealedRows;

/// A frame whose result is a relation.
pub(crate) struct FrameView {
    /// The relation.
    pub(crate) object: ObjectId,
    pub(crate) collection: CollectionId,
    /// Inputs of the frame, and the relations that they stand for.
    pub(crate) inputs: BTreeMap<String, ObjectId>,
    /// The frame at work; none once it has failed.
    pub(crate) run: Option<Suspended>,
    /// Whether its times are those of commits: it may change with each.
    pub(crate) is_by_commits: bool,
    /// Which of the events the relation holds.
    pub(crate) holds: Held,
    /// Whether it has followed a commit.
    pub(crate) has_begun: bool,
    /// Subscriptions to the inputs that are views of SQL.
    pub(crate) subscribed: BTreeMap<ObjectId, DataflowId>,
    /// Whether its rows come after all others of a commit, since it reads what workers make of
    /// them.
    pub(crate) comes_last: bool,
}

/// Which events a view of a frame holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    /// Those in force just before the frontier.
    InForce,
    /// All, with their start and end, of this type.
    All(DataType),
}

impl FrameView {
    /// Whether a commit may change it.
    pub(crate) fn is_due(&mut self, rows: &[SealedRows]) -> bool {
        let has_rows = rows.iter().any(|rows| self.inputs.values().any(|input| *input == rows.object));
        !std::mem::replace(&mut self.has_begun, true) || self.is_by_commits || has_rows
    }
}
