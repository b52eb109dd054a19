//! What a dataflow may read instead of computing it: arrangements that others have made.

use std::sync::Arc;

use anabranch_plan::Plan;

use crate::cluster::spec::ArrangementId;
use crate::error::Error;

/// What there is beside the arrangements of relations.
pub(crate) trait Shares {
    /// Whether arrangements of relations are read by their keys, or only for their rows.
    fn reads_indexes(&self) -> bool;

    /// Whether the answer is asked for as of the dataflow's first time, and then dropped.
    fn is_asked_once(&self) -> bool {
        false
    }

    /// A shared arrangement of the plan by this key.
    fn arrangement(&mut self, plan: &Arc<Plan>, key: &[usize]) -> Result<Option<Found>, Error>;

    /// The order of the key's columns in which there is a shared arrangement of the plan.
    fn key_order(&self, plan: &Arc<Plan>, key: &[usize]) -> Option<Vec<usize>>;

    /// An arrangement that exists and holds the plan's rows, where that saves computing them again.
    fn rows(&self, plan: &Arc<Plan>) -> Option<ArrangementId>;

    /// As [`rows`](Self::rows), or one that will exist.
    fn shared_rows(&mut self, plan: &Arc<Plan>) -> Result<Option<ArrangementId>, Error>;
}

/// A shared arrangement.
pub(crate) struct Found {
    pub arrangement: ArrangementId,
    /// Position in the arrangement's rows of each column of the plan.
    pub columns: Vec<usize>,
}

/// Nothing but the arrangements of relations.
pub(crate) struct NoShares;

impl Shares for NoShares {
    fn reads_indexes(&self) -> bool {
        true
    }

    fn arrangement(&mut self, _plan: &Arc<Plan>, _key: &[usize]) -> Result<Option<Found>, Error> {
        Ok(None)
    }

    fn key_order(&self, _plan: &Arc<Plan>, _key: &[usize]) -> Option<Vec<usize>> {
        None
    }

    fn rows(&self, _plan: &Arc<Plan>) -> Option<ArrangementId> {
        None
    }

    fn shared_rows(&mut self, _plan: &Arc<Plan>) -> Result<Option<ArrangementId>, Error> {
        Ok(None)
    }
}
