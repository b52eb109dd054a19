//! Cutting a keyed batch into shards by its key hash.
//!
//! Law: every present row lands in shard `route(hash, shards)` and rows of one shard keep their
//! order. Cost: one gather of the columns, and before it one pass over the hashes that writes each
//! row's number behind those of its shard; none if all rows are of one shard. Of many shards, or
//! with absent rows, it is a counting sort, and shards are slices of one gather.

use crate::batch::Batch;
use crate::route::{ShardNumber, routes};

/// So many parts, at most, have a list of their rows each, as long as the batch.
const LISTED_PARTS_MAX: usize = 8;

/// Rows whose shards are found together.
const BLOCK_ROWS: usize = 64;

/// One batch a shard, possibly empty, each keyed as `batch` is. Absent rows are left out.
///
/// # Panics
/// If `batch` is not keyed or `shards` is 0.
pub fn partition(batch: &Batch, shards: usize) -> Vec<Batch> {
    // (Rows that were dealt out are looked at no more.)
    if let Some(home) = batch.key().and_then(|key| key.home).filter(|home| home.of() == shards) {
        let whole = batch.clone().compact();
        let of_shard = |shard: usize| if shard == home.index() { whole.clone() } else { whole.slice(0, 0) };
        return (0..shards).map(of_shard).collect();
    }
    let parts = parts_of(batch, shards, |hashes, parts| routes(hashes, shards, parts));
    let at_home = |(shard, part): (usize, Batch)| part.with_home(ShardNumber::new(shard, shards));
    parts.into_iter().enumerate().map(at_home).collect()
}

/// As [`partition`], where `part_of` says which of `parts` parts a hash belongs to.
///
/// # Panics
/// If `batch` is not keyed, `parts` is 0, or `part_of` names another part.
pub fn partition_by(batch: &Batch, parts: usize, part_of: impl Fn(u64) -> usize) -> Vec<Batch> {
    parts_of(batch, parts, |hashes, parts| {
        hashes.iter().zip(parts).for_each(|(&hash, part)| *part = part_of(hash) as u32);
    })
}

/// As [`partition`], where `find` says which of `parts` parts each of some hashes belongs to.
///
/// # Panics
/// If `batch` is not keyed, `parts` is 0, or `find` names another part.
pub fn parts_of(batch: &Batch, parts: usize, find: impl Fn(&[u64], &mut [u32])) -> Vec<Batch> {
    assert!(parts > 0, "a batch is partitioned into at least one part");
    let key = batch.key().expect("a batch is keyed before it is partitioned");
    if parts == 1 {
        return vec![batch.clone().compact()];
    }
    let mut of_row = vec![0u32; key.hashes.len()];
    find(&key.hashes, &mut of_row);
    if parts <= LISTED_PARTS_MAX && batch.present().is_none() {
        // (Small batches often go to one part, and large ones may be where they belong.)
        if let Some(&first) = of_row.first().filter(|&first| of_row.iter().all(|part| part == first)) {
            let of_part = |part: usize| if part == first as usize { batch.clone() } else { batch.slice(0, 0) };
            return (0..parts).map(of_part).collect();
        }
        let rows = rows_of_parts(&of_row, parts);
        let taken = |rows: &Vec<u32>| if rows.is_empty() { batch.slice(0, 0) } else { batch.take(rows) };
        return rows.iter().map(taken).collect();
    }
    let (rows, ends) = sort_by_route(batch, &of_row, parts);
    let sorted = batch.take(&rows).assume_present();
    (0..parts).map(|part| sorted.slice(ends[part], ends[part + 1] - ends[part])).collect()
}

/// The present rows that a shard has by the hash of these columns, keyed by them. Where all shards
/// are given the same batch, each row is kept by one of them.
///
/// # Panics
/// If there is no such column.
pub fn at_home(batch: Batch, key: &[usize], shard: ShardNumber) -> Batch {
    let batch = batch.with_key(key);
    let mut rows = rows_of_shard(&batch.key().expect("it was just keyed").hashes, shard);
    if let Some(present) = batch.present() {
        rows.retain(|&row| present.value(row as usize));
    }
    match rows.len() == batch.len() {
        true => batch,
        false => batch.take(&rows).assume_present(),
    }
    .with_home(shard)
}

/// The places of the hashes of each shard, in order.
///
/// # Panics
/// If there is no shard.
pub fn places_by_shard(hashes: &[u64], shards: usize) -> Vec<Vec<u32>> {
    let mut of_hash = vec![0u32; hashes.len()];
    routes(hashes, shards, &mut of_hash);
    if shards <= LISTED_PARTS_MAX {
        return rows_of_parts(&of_hash, shards);
    }
    let mut places = vec![Vec::new(); shards];
    (0u32..).zip(of_hash).for_each(|(place, shard)| places[shard as usize].push(place));
    places
}

/// The rows whose hashes a shard has.
fn rows_of_shard(hashes: &[u64], shard: ShardNumber) -> Vec<u32> {
    let mut rows = Vec::with_capacity(hashes.len() / shard.of() + BLOCK_ROWS);
    let (mut of_row, mut own) = ([0u32; BLOCK_ROWS], [0u32; BLOCK_ROWS]);
    for (block, hashes) in hashes.chunks(BLOCK_ROWS).enumerate() {
        routes(hashes, shard.of(), &mut of_row);
        let (first, mut len) = ((block * BLOCK_ROWS) as u32, 0);
        // (Which rows they are is for no processor to guess: no branch.)
        for (row, &part) in (first..).zip(&of_row[..hashes.len()]) {
            own[len % BLOCK_ROWS] = row;
            len += usize::from(part as usize == shard.index());
        }
        rows.extend_from_slice(&own[..len]);
    }
    rows
}

/// The rows of each part, in order.
fn rows_of_parts(of_row: &[u32], parts: usize) -> Vec<Vec<u32>> {
    let mut rows = vec![vec![0u32; of_row.len()]; parts];
    let mut lengths = [0usize; LISTED_PARTS_MAX];
    // (No branch, as above.)
    for (row, &part) in (0u32..).zip(of_row) {
        let part = part as usize;
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
    use crate::route::route;
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
                    assert_eq!(key.home, Some(ShardNumber::new(shard, shards)));
                    let again = partition(part, shards);
                    assert!((0..shards).all(|other| again[other].len() == if other == shard { part.len() } else { 0 }));
                    assert!(key.hashes.iter().all(|&hash| route(hash, shards) == shard));
                }
                assert_eq!(meaning(&Batch::concat(&parts).unwrap()), meaning(&batch));
                let kept: Vec<Batch> =
                    (0..shards).map(|shard| at_home(batch.clone(), &[0], ShardNumber::new(shard, shards))).collect();
                assert!(kept.iter().zip(&parts).all(|(kept, part)| meaning(kept) == meaning(part)));
                let hashes = &batch.key().expect("it is keyed").hashes;
                for (shard, places) in places_by_shard(hashes, shards).into_iter().enumerate() {
                    let is_own = |row: &u32| route(hashes[*row as usize], shards) == shard;
                    assert!((0..batch.len() as u32).filter(is_own).eq(places));
                }
            }
        }
    }
}
