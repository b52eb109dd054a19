//! What the inputs of system relations hold.

use std::collections::BTreeMap;

use anabranch_batch::Batch;

use crate::cluster::CollectionId;

/// System relations that subscriptions read.
#[derive(Debug, Default)]
pub(crate) struct Followed {
    /// By name, the rows that the input has, each once for each time that it is there; none before
    /// the first reading.
    pub(crate) shown: BTreeMap<String, Option<Batch>>,
    /// When they were read last, micros of the session's clock.
    pub(crate) read_at: i64,
    /// Changes of the reading that is being committed, at its time.
    pub(crate) staged: Vec<(CollectionId, Batch)>,
}
