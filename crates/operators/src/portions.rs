//! A large batch in portions, each of which has its own part of the groups.
//!
//! Law: every row is in one portion, rows of equal keys in one and the same, in their order. So operators whose groups do not look at each other may take
//! one portion after the other.
//!
//! Cost: a scatter of the rows, some 10 ns each. In return all that is made on the way is small enough to stay in the second-level cache, and to be memory
//! that was used before; and the part of the group table that a portion touches is a neighbourhood.
//! Source: radix partitioning (Manegold, Boncz, Kersten, *Optimizing main-memory join on modern hardware*, TKDE 2002), here of aggregation.

use anabranch_batch::hash::spread;
use anabranch_batch::{Batch, partition_by};

/// Rows that a portion aims for.
const PORTION_ROWS: usize = 1 << 16;

/// Rows that a turn of an operator takes on, after which others have theirs: some tens of milliseconds.
pub(crate) const TURN_ROWS: usize = 1 << 18;

/// More portions than this would not all stay in the cache while they are written.
const PORTIONS_MAX: usize = 64;

/// The portions of a keyed batch, whose keys are looked up among `n_groups` groups.
pub(crate) fn portions(batch: Batch, n_groups: usize) -> Vec<Batch> {
    let n_portions = (batch.len() / PORTION_ROWS).min(PORTIONS_MAX);
    if n_portions < 2 {
        return vec![batch];
    }
    // A group table takes the low bits of the spread hash for the place: the highest of these name a neighbourhood.
    let bits = n_portions.ilog2();
    let place_bits = (n_groups + batch.len() / 2).next_power_of_two().ilog2();
    let shift = place_bits.saturating_sub(bits);
    let mut portions = partition_by(&batch, 1 << bits, |hash| (spread(hash) >> shift) as usize & ((1 << bits) - 1));
    portions.retain(|portion| !portion.is_empty());
    portions
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_batch::{Diffs, Times};
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
        let portions = portions(batch.with_key(&[0]), 1000);
        assert!(portions.len() > 1);
        assert_eq!(portions.iter().map(Batch::len).sum::<usize>(), n as usize);
        let mut portion_of = HashMap::new();
        for (number, portion) in portions.iter().enumerate() {
            let column = |column: usize| portion.column(column).as_primitive::<Int64Type>().values().to_vec();
            assert!(column(1).is_sorted());
            assert!(column(0).into_iter().all(|key| *portion_of.entry(key).or_insert(number) == number));
        }
    }
}
