//! A large batch in portions, each of which has its own part of the groups.
//!
//! Law: every row is in one portion, rows of equal keys in one and the same, in their order. So
//! operators whose groups do not look at each other may take one portion after the other.
//!
//! Cost: a scatter of the rows, some 10 ns each. In return all that is made on the way is small
//! enough to stay in the second-level cache, and to be memory that was used before; and the part of
//! the group table that a portion touches is a neighbourhood. Source: radix partitioning (Manegold,
//! Boncz, Kersten, *Optimizing main-memory join on modern hardware*, TKDE 2002), here of
//! aggregation.

use anabranch_batch::hash::spread;
use anabranch_batch::{Batch, Times, partition_by};

/// Rows that a portion aims for.
const PORTION_ROWS: usize = 1 << 16;

/// More portions than this would not all stay in the cache while they are written.
const PORTIONS_MAX: usize = 64;

/// The portions of some batches, whose keys are looked up among `n_groups` groups. Each is the list
/// of its rows in each of the batches, keyed: so nothing as large as all of them is made.
pub(crate) fn portions(batches: Vec<Batch>, key: &[usize], n_groups: usize) -> Vec<Vec<Batch>> {
    let n_rows: usize = batches.iter().map(Batch::len).sum();
    let keyed = batches.into_iter().map(|batch| batch.with_key(key));
    let n_portions = (n_rows / PORTION_ROWS).min(PORTIONS_MAX);
    if n_portions < 2 {
        return vec![keyed.collect()];
    }
    // A group table takes the low bits of the spread hash for the place: the highest of these name
    // a neighbourhood.
    let bits = n_portions.ilog2();
    let place_bits = (n_groups + n_rows / 2).next_power_of_two().ilog2();
    let shift = place_bits.saturating_sub(bits);
    let mut portions = vec![Vec::new(); 1 << bits];
    for batch in keyed {
        let parts = partition_by(&batch, 1 << bits, |hash| (spread(hash) >> shift) as usize & ((1 << bits) - 1));
        for (portion, part) in portions.iter_mut().zip(parts) {
            portion.extend((!part.is_empty()).then_some(part));
        }
    }
    portions.retain(|portion| !portion.is_empty());
    portions
}

/// Whether all rows of some batches have one time, and are enough for portions.
pub(crate) fn is_one_large_time(batches: &[Batch]) -> bool {
    let [first, rest @ ..] = batches else { return false };
    let one = |batch: &Batch| match batch.times() {
        Times::Constant(time) => Some(*time),
        Times::Column(_) => None,
    };
    let is_one = one(first).is_some() && rest.iter().all(|batch| one(batch) == one(first));
    is_one && batches.iter().map(Batch::len).sum::<usize>() >= 2 * PORTION_ROWS
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_batch::Diffs;
    use arrow::array::{AsArray, Int64Array};
    use arrow::datatypes::Int64Type;
    use std::collections::HashMap;
    use std::sync::Arc;

    #[test]
    fn rows_of_a_key_stay_together_and_in_order() {
        let n = 5 * PORTION_ROWS as i64 + 3;
        let keys: Int64Array = (0..n).map(|row| row * 7919 % 100_003).collect::<Vec<_>>().into();
        let rows: Int64Array = (0..n).collect::<Vec<_>>().into();
        let batch = Batch::new(vec![Arc::new(keys), Arc::new(rows)], Times::Constant(1), Diffs::Constant(1));
        let halves =
            [0, n as usize / 3, n as usize].windows(2).map(|cut| batch.slice(cut[0], cut[1] - cut[0])).collect();
        let portions = portions(halves, &[0], 1000);
        assert!(portions.len() > 1);
        let portions: Vec<Batch> = portions.iter().filter_map(|parts| Batch::concat(parts)).collect();
        assert_eq!(portions.iter().map(Batch::len).sum::<usize>(), n as usize);
        let mut portion_of = HashMap::new();
        for (number, portion) in portions.iter().enumerate() {
            let column = |column: usize| portion.column(column).as_primitive::<Int64Type>().values().to_vec();
            assert!(column(1).is_sorted());
            assert!(column(0).into_iter().all(|key| *portion_of.entry(key).or_insert(number) == number));
        }
    }
}
