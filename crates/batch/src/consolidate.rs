//! Summing equal updates and dropping those that cancel.
//!
//! Law: the result means what the input means, has no two equal rows at one time, and no zero diff.
//! It is the smallest batch of plain updates with that meaning: absent rows are gone and lifetimes
//! are written out.
//!
//! Equal updates are brought together by sorting on (row hash, time), never on the columns
//! themselves:
//!
//! ```text
//!   rows    hash  time  diff          sorted             repeats        summed
//!   ant      70     1    +1           bee  20  1  +1                    bee  1  +1
//!   bee      20     1    +1    sort   ant  70  1  +1              sum
//!   ant      70     2    -1   ----->  ant  70  1  +1     = above ---->  ant  1  +2
//!   ant      70     1    +1           ant  70  2  -1                    ant  2  -1
//! ```
//!
//! Two rows with one hash may still differ; neighbours in the sorted order are therefore compared
//! on the columns, all at once. Only where they do differ is their little run sorted by value. A
//! collision costs time, never an answer.
//!
//! Cost: one hash, one radix sort, one comparison of the neighbours with equal hashes, and one
//! gather: about 9 ns per row of one integer column on uniform hashes (examples/kernels.rs). Sums
//! wrap.

use std::cmp::Ordering;
use std::ops::Range;

use crate::batch::Batch;
use crate::control::{Diff, Diffs, Times};
use crate::order::{Comparator, ValueOrder, sort_by_hash, sort_by_time};
use crate::{equal, hash};

/// So few rows of a time are compared with each other; hashing more is cheaper.
const COMPARED_ROWS_MAX: usize = 16;

/// Sums the diffs of equal (row, time) and drops zeros. The result is ordered by (row hash, time);
/// among equal updates the first stands for all. A key stays.
///
/// ```
/// use anabranch_batch::{Batch, Diffs, Times, consolidate::consolidate};
/// use arrow::array::Int64Array;
/// use std::sync::Arc;
/// let column = Arc::new(Int64Array::from(vec![7, 8, 7]));
/// let batch = Batch::new(vec![column], Times::Constant(1), Diffs::Column(vec![1, 1, -1].into()));
/// let batch = consolidate(batch);
/// assert_eq!((batch.len(), batch.diffs().get(0)), (1, 1));
/// ```
pub fn consolidate(batch: Batch) -> Batch {
    let batch = batch.flatten();
    let hashes = hash_rows(&batch);
    let mut rows = sort_by_hash(&hashes);
    sort_ties_by_time(&mut rows, &hashes, batch.times());
    let repeats = find_repeats(&mut rows, &hashes, &batch);
    let (kept, diffs): (Vec<u32>, Vec<Diff>) = sum_repeats(&rows, &repeats, batch.diffs()).into_iter().unzip();
    batch.take(&kept).with_diffs(Diffs::Column(diffs.into()).simplify())
}

/// As [`consolidate`], but ordered by time; of one time what is taken back comes first, and each
/// part is ordered by the columns, ascending. O(rows) where times come in order and each has few
/// rows: what changes from one row to another is not even copied. Many rows of one time are brought
/// together by the order that they are to have ([`ValueOrder`]), not by their hashes.
pub fn consolidate_in_time_order(batch: Batch) -> Batch {
    let batch = batch.flatten();
    let mut rows: Vec<u32> = match batch.times() {
        Times::Column(times) => sort_by_time(times),
        Times::Constant(_) => (0..batch.len() as u32).collect(),
    };
    let order = ValueOrder::new(batch.columns(), batch.len());
    let mut kept = Vec::with_capacity(rows.len());
    for rows in rows.chunk_by_mut(|&a, &b| batch.times().get(a as usize) == batch.times().get(b as usize)) {
        match rows.len() {
            ..=COMPARED_ROWS_MAX => sum_compared(rows, batch.diffs(), |a, b| order.compare(a, b), &mut kept),
            _ => {
                order.sort(rows);
                sum_sorted(rows, batch.diffs(), &order, &mut kept);
            }
        }
    }
    let (kept, sums): (Vec<u32>, Vec<Diff>) = kept.into_iter().unzip();
    let is_as_it_was = kept.len() == batch.len() && kept.is_sorted();
    if is_as_it_was { batch } else { batch.take(&kept).with_diffs(Diffs::Column(sums.into()).simplify()) }
}

/// Appends the sorted rows of one time with the sums of their diffs, without those that cancel:
/// losses, then gains.
fn sum_sorted(rows: &[u32], diffs: &Diffs, order: &ValueOrder, kept: &mut Vec<(u32, Diff)>) {
    let mut gains = Vec::with_capacity(rows.len());
    for equal in rows.chunk_by(|&a, &b| order.is_equal(a, b)) {
        let sum = equal.iter().fold(0, |sum: Diff, &row| sum.wrapping_add(diffs.get(row as usize)));
        match sum {
            0 => {}
            _ if is_gain(sum) => gains.push((equal[0], sum)),
            _ => kept.push((equal[0], sum)),
        }
    }
    kept.append(&mut gains);
}

/// Appends the few rows of one time with the sums of their diffs, in order and without those that
/// cancel. Mostly they are one row, or two: what it was and what it is.
fn sum_compared(rows: &mut [u32], diffs: &Diffs, order: impl Fn(u32, u32) -> Ordering, kept: &mut Vec<(u32, Diff)>) {
    let start = kept.len();
    let diff = |row: u32| diffs.get(row as usize);
    let mut keep = |row: u32, sum: Diff| {
        if sum != 0 {
            kept.push((row, sum));
        }
    };
    match *rows {
        [row] => keep(row, diff(row)),
        [a, b] => match (order(a, b), is_gain(diff(a)).cmp(&is_gain(diff(b)))) {
            (Ordering::Equal, _) => keep(a, diff(a).wrapping_add(diff(b))),
            (order, gain) if gain.then(order).is_lt() => [a, b].into_iter().for_each(|row| keep(row, diff(row))),
            _ => [b, a].into_iter().for_each(|row| keep(row, diff(row))),
        },
        _ => {
            rows.sort_by(|&a, &b| order(a, b));
            let equal = rows.chunk_by(|&a, &b| order(a, b).is_eq());
            equal.for_each(|rows| keep(rows[0], rows.iter().fold(0, |sum: Diff, &row| sum.wrapping_add(diff(row)))));
            sort_changes(&mut kept[start..], order);
        }
    }
}

/// Orders distinct rows of one time, each with its diff.
fn sort_changes(rows: &mut [(u32, Diff)], order: impl Fn(u32, u32) -> Ordering) {
    rows.sort_unstable_by(|a, b| is_gain(a.1).cmp(&is_gain(b.1)).then_with(|| order(a.0, b.0)));
}

fn is_gain(diff: Diff) -> bool {
    diff > 0
}

/// The hash of each whole row, which is that of its key when all columns are the key.
fn hash_rows(batch: &Batch) -> Vec<u64> {
    match batch.key() {
        Some(key) if key.columns.iter().copied().eq(0..batch.columns().len()) => key.hashes.to_vec(),
        _ => hash::hash_columns(batch.columns(), batch.len()),
    }
}

/// Orders each run of equal hashes by (time, row).
fn sort_ties_by_time(rows: &mut [u32], hashes: &[u64], times: &Times) {
    if let Times::Column(times) = times {
        for ties in rows.chunk_by_mut(|&a, &b| hashes[a as usize] == hashes[b as usize]) {
            if ties.len() > 1 {
                ties.sort_unstable_by_key(|&row| (times[row as usize], row));
            }
        }
    }
}

/// For each position in `rows`, whether the update there equals the one before it. Reorders rows of
/// equal hash and time if that is what it takes to make equal rows neighbours.
fn find_repeats(rows: &mut [u32], hashes: &[u64], batch: &Batch) -> Vec<bool> {
    let ties = find_ties(rows, hashes, batch.times());
    let mut equal = ties_equal(&ties, rows, batch);
    if equal.contains(&false) {
        separate_collisions(&ties, rows, batch);
        equal = ties_equal(&ties, rows, batch);
    }
    let mut repeats = vec![false; rows.len()];
    for (&position, equal) in ties.iter().zip(equal) {
        repeats[position as usize] = equal;
    }
    repeats
}

/// Positions in `rows` with the hash and time of the position before.
fn find_ties(rows: &[u32], hashes: &[u64], times: &Times) -> Vec<u32> {
    let same_hash = |a: u32, b: u32| hashes[a as usize] == hashes[b as usize];
    let same_time = |a: u32, b: u32| times.get(a as usize) == times.get(b as usize);
    let pairs = rows.windows(2).zip(1..);
    pairs.filter(|(pair, _)| same_hash(pair[0], pair[1]) && same_time(pair[0], pair[1])).map(|(_, at)| at).collect()
}

/// For each tie, whether it also has the row of the position before.
fn ties_equal(ties: &[u32], rows: &[u32], batch: &Batch) -> Vec<bool> {
    if hash::is_exact(batch.columns()) {
        return vec![true; ties.len()];
    }
    let before: Vec<u32> = ties.iter().map(|&at| rows[at as usize - 1]).collect();
    let here: Vec<u32> = ties.iter().map(|&at| rows[at as usize]).collect();
    equal::rows_equal(batch.columns(), &before, batch.columns(), &here)
}

/// Sorts each run of ties by (row value, row), so that equal rows become neighbours.
fn separate_collisions(ties: &[u32], rows: &mut [u32], batch: &Batch) {
    let order = Comparator::ascending(batch.columns());
    for run in ties.chunk_by(|&a, &b| a + 1 == b) {
        let run: Range<usize> = run[0] as usize - 1..run[run.len() - 1] as usize + 1;
        rows[run].sort_unstable_by(|&a, &b| order.compare(a as usize, b as usize).then(a.cmp(&b)));
    }
}

/// The first row of each run of repeats whose diffs do not cancel, and the sum of those diffs.
fn sum_repeats(rows: &[u32], repeats: &[bool], diffs: &Diffs) -> Vec<(u32, Diff)> {
    let mut kept = Vec::with_capacity(rows.len());
    let mut at = 0;
    while at < rows.len() {
        let (first, mut sum) = (rows[at], diffs.get(rows[at] as usize));
        at += 1;
        while at < rows.len() && repeats[at] {
            sum = sum.wrapping_add(diffs.get(rows[at] as usize));
            at += 1;
        }
        if sum != 0 {
            kept.push((first, sum));
        }
    }
    kept
}

#[cfg(test)]
mod tests;
