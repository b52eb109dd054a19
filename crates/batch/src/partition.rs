//! Cutting a keyed batch into shards by its key hash.
//!
//! Law: every present row lands in shard `route(hash, shards)` and rows of one shard keep their
//! order. Cost: one gather of the columns, and before it one pass over the hashes that writes each
//! row's number behind those of its shard; none if all rows are of one shard. Of many shards, or
//! with absent rows, it is a counting sort, and shards are slices of one gather.

use crate::batch::Batch;
use crate::route::route;

/// So many parts, at most, have a list of their rows each, as long as the batch.
const LISTED_PARTS_MAX: usize = 8;

/// One batch a shard, possibly empty, each keyed as `batch` is. Absent rows are left out.
///
/// # Panics
/// If `batch` is not keyed or `shards` is 0.
pub fn partition(batch: &Batch, shards: usize) -> Vec<Batch> {
    partition_by(batch, shards, |hash| route(hash, shards))
}

/// As [`partition`], where `part_of` says which of `parts` parts a hash belongs to.
///
/// # Panics
/// If `batch` is not keyed, `parts` is 0, or `part_of` names another part.
pub fn partition_by(batch: &Batch, parts: usize, part_of: impl Fn(u64) -> usize) -> Vec<Batch> {
    assert!(parts > 0, "a batch is partitioned into at least one part");
    let key = batch.key().expect("a batch is keyed before it is partitioned");
    if parts == 1 {
        return vec![batch.clone().compact()];
    }
    if parts <= LISTED_PARTS_MAX && batch.present().is_none() {
        let rows = rows_of_parts(&key.hashes, parts, part_of);
        // (Small batches often go to one shard: it gets what there is.)
        let taken = |rows: &Vec<u32>| match rows.len() {
            0 => batch.slice(0, 0),
            len if len == batch.len() => batch.clone(),
            _ => batch.take(rows),
        };
        return rows.iter().map(taken).collect();
    }
    let routes: Vec<u32> = key.hashes.iter().map(|&hash| part_of(hash) as u32).collect();
    let (rows, ends) = sort_by_route(batch, &routes, parts);
    let sorted = batch.take(&rows).assume_present();
    (0..parts).map(|part| sorted.slice(ends[part], ends[part + 1] - ends[part])).collect()
}

/// The rows of each part, in order.
fn rows_of_parts(hashes: &[u64], parts: usize, part_of: impl Fn(u64) -> usize) -> Vec<Vec<u32>> {
    let mut rows = vec![vec![0u32; hashes.len()]; parts];
    let mut lengths = [0usize; LISTED_PARTS_MAX];
    // (Which part it is is for no processor to guess: no branch.)
    for (row, &hash) in (0u32..).zip(hashes) {
        let part = part_of(hash);
        let length = &mut lengths[part];
        rows[part][*length] = row;
        *length += 1;
    }
    rows.iter_mut().zip(lengths).for_each(|(rows, length)| rows.truncate(length));
    rows
}

/// Present rows in order of their route, and the bounds of each route among them (`shards + 1`
/// entries).
fn sort_by_route(batch: &Batch, routes: &[u32], shards: usize) -> (Vec<u32>, Vec<usize>) {
    let is_present = |row: usize| batch.present().is_none_or(|present| present.value(row));
    let mut bounds = vec![0; shards + 1];
    for row in (0..routes.len()).filter(|&row| is_present(row)) {
        bounds[routes[row] as usize + 1] += 1;
    }
    for shard in 0..shards {
        bounds[shard + 1] += bounds[shard];
    }
    let mut next = bounds.clone();
    let mut rows = vec![0; bounds[shards]];
    for row in (0..routes.len()).filter(|&row| is_present(row)) {
        let slot = &mut next[routes[row] as usize];
        rows[*slot] = row as u32;
        *slot += 1;
    }
    (rows, bounds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Rng, meaning, random_batch};

    #[test]
    fn every_row_goes_to_the_shard_of_its_hash() {
        let mut rng = Rng::from_env(31);
        for _ in 0..200 {
            let batch = random_batch(&mut rng);
            let batch = batch.with_key(&[]).with_key(&[0]);
            for shards in [1, 2, 3, 7, 9, 40] {
                let parts = partition(&batch, shards);
                assert_eq!(parts.len(), shards);
                for (shard, part) in parts.iter().enumerate() {
                    let key = part.key().expect("parts are keyed");
                    assert!(part.present().is_none());
                    assert!(key.hashes.iter().all(|&hash| route(hash, shards) == shard));
                }
                assert_eq!(meaning(&Batch::concat(&parts).unwrap()), meaning(&batch));
            }
        }
    }
}
