//! Rows on their way to shards.
//!
//! Law: the shard of a row is a function of its key or its columns, never of its time or the batch it came in: what takes a row back follows it. Rows of
//! one shard keep their order. Hashes that a batch holds are not computed again.

use anabranch_batch::{Batch, partition_by};
use anabranch_engine::Error;
use datafusion_common::ScalarValue;

use crate::layout::{Layout, Move, To};
use crate::program::{Kind, Targets};

/// A batch for each of all shards, of the rows that `shard` sends; empty ones are left out.
///
/// # Errors
/// `Data` when a multicast names a shard that is not there.
pub fn routed(
    batch: &Batch,
    kind: &Kind,
    reach: Move,
    layout: Layout,
    shard: usize,
) -> Result<Vec<(usize, Batch)>, Error> {
    let parts = match kind {
        Kind::Redistribute => partition_by(batch, layout.shards(), |hash| layout.route(shard, hash, reach)),
        Kind::Reshard => {
            let all: Vec<usize> = (0..batch.columns().len()).collect();
            let hashed = batch.clone().without_key().with_key(&all);
            let parts = partition_by(&hashed, layout.shards(), |hash| layout.route(shard, hash, reach));
            let key = batch.key().map(|key| key.columns.clone());
            let keyed = |part: Batch| match &key {
                // (The key's own hashes go with their rows.)
                Some(columns) => part.without_key().with_key(columns),
                None => part.without_key(),
            };
            parts.into_iter().map(keyed).collect()
        }
        Kind::Broadcast => {
            let targets = match reach.to {
                To::Same => layout.peers(shard, reach.scope),
                To::Shards(shards) => (0..shards).collect(),
            };
            return Ok(targets.into_iter().map(|target| (target, batch.clone())).collect());
        }
        Kind::Multicast(targets) => multicast(batch, targets, layout)?,
    };
    Ok(parts.into_iter().enumerate().filter(|(_, part)| !part.is_empty()).collect())
}

fn multicast(batch: &Batch, targets: &Targets, layout: Layout) -> Result<Vec<Batch>, Error> {
    let mut rows: Vec<Vec<u32>> = vec![Vec::new(); layout.shards()];
    for row in 0..batch.len() {
        let cells = batch.columns().iter().map(|column| ScalarValue::try_from_array(column, row));
        let cells = cells.collect::<Result<Vec<_>, _>>().map_err(|error| Error::internal(error.strip_backtrace()))?;
        let mut named = targets(&cells);
        named.sort_unstable();
        named.dedup();
        for target in named {
            let Some(rows) = rows.get_mut(target) else {
                return Err(Error::data(format!("a row is multicast to shard {target} of {}", layout.shards())));
            };
            rows.push(row as u32);
        }
    }
    Ok(rows.iter().map(|rows| batch.take(rows)).collect())
}
