//! Histories that are joined before they are sorted.
//!
//! When a query is installed, all rows of its inputs come at one time. They are pairs whatever
//! their order, so what is not sorted yet stays so: a change that meets it later sorts it then, or
//! spare time has before (`unsorted` in the arrangements).

use std::sync::Arc;

use anabranch_arrangement::Run;
use anabranch_batch::{Batch, Time};

use super::join::spec::SMALL_PART;

/// Whether some of the runs are not sorted, all updates take place by `as_of` and before a time,
/// and going through all rows costs less than looking up those that have no order.
pub(super) fn is_unsorted_history<'a>(
    runs: impl Iterator<Item = &'a Arc<Run>> + Clone,
    as_of: Time,
    before: Time,
) -> bool {
    let is_past = |run: &Arc<Run>| run.is_before(before) && run.is_before(as_of.saturating_add(1));
    let rows = |is_sorted: bool| {
        let some = runs.clone().filter(|run| run.is_sorted() == is_sorted);
        some.map(|run| run.len()).sum::<usize>()
    };
    let n_unsorted = rows(false);
    n_unsorted > 0 && rows(true) / SMALL_PART <= n_unsorted && runs.clone().all(is_past)
}

/// The rows of some runs, in whatever order.
pub(super) fn rows_of<'a>(runs: impl IntoIterator<Item = &'a Arc<Run>>) -> Vec<Batch> {
    runs.into_iter().flat_map(|run| run.batches()).map(|batch| batch.into_batch()).collect()
}
