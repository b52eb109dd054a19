//! A large batch in portions, each of which has its own part of the groups.
//!
//! Law: every row is in one portion, rows of equal keys in one and the same, in their order. So
//! operators whose groups do not look at each other may take one portion after the other.
//!
//! Keys that are neighbours, as numbers of orders and parts are, are cut by their order; rows that
//! come in that order are not even moved. So a portion touches a piece of the table's directory
//! ([`crate::aggregate::group_table`]), where any other cut would leave its first groups too far
//! apart for one.
//!
//! Cost: a scatter of the rows, some 10 ns each; of rows in order of neighbouring keys a look at
//! their hashes. In return all that is made on the way is small enough to stay in the second-level
//! cache, and to be memory that was used before; and the part of the group table that a portion
//! touches is a neighbourhood. Source: radix partitioning (Manegold, Boncz, Kersten, *Optimizing
//! main-memory join on modern hardware*, TKDE 2002), here of aggregation.

use anabranch_batch::hash::{is_exact, spread};
use anabranch_batch::{Batch, Times, partition_by};

/// Rows that a portion aims for.
const PORTION_ROWS: usize = 1 << 16;

/// More portions than this would not all stay in the cache while they are written.
const PORTIONS_MAX: usize = 64;

/// Keys are neighbours when there are so many places between the least and the greatest for each
/// row, at most;
const PLACES_PER_ROW: u64 = 4;
/// when rows come in their order, so many.
const PLACES_PER_SORTED_ROW: u64 = 16;

/// Rows that are looked at for how evenly a cut divides them.
const SAMPLE_ROWS: usize = 1 << 10;

/// The portions of some batches, whose keys are looked up among `n_groups` groups. Each is the list
/// of its rows in each of the batches, keyed: so nothing as large as all of them is made.
pub(crate) fn portions(batches: Vec<Batch>, key: &[usize], n_groups: usize) -> Vec<Vec<Batch>> {
    let n_rows: usize = batches.iter().map(Batch::len).sum();
    let keyed: Vec<Batch> = batches.into_iter().map(|batch| batch.with_key(key)).collect();
    let n_portions = (n_rows / PORTION_ROWS).min(PORTIONS_MAX);
    if n_portions < 2 {
        return vec![keyed];
    }
    if let Some(ranges) = Ranges::of(&keyed, key, n_portions) {
        return ranges.portions(&keyed);
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

/// A cut by the order of hashes that are exact keys.
struct Ranges {
    first: u64,
    /// A range has two to the power of this many hashes.
    shift: u32,
    n_ranges: usize,
}

impl Ranges {
    /// The cut into so many ranges or somewhat fewer, if keys are neighbours and rows are divided
    /// evenly.
    fn of(keyed: &[Batch], key: &[usize], n_portions: usize) -> Option<Ranges> {
        let is_neighbourly = |batch: &Batch| {
            let columns: Vec<_> = key.iter().map(|&column| batch.column(column).clone()).collect();
            batch.present().is_none() && !columns.is_empty() && is_exact(&columns)
        };
        if !keyed.iter().all(is_neighbourly) {
            return None;
        }
        let n_rows: usize = keyed.iter().map(Batch::len).sum();
        let all = || keyed.iter().flat_map(hashes);
        let (first, last) = all().fold((u64::MAX, 0), |(least, most), &hash| (least.min(hash), most.max(hash)));
        let span = last.checked_sub(first)?;
        let places =
            if keyed.iter().all(|batch| hashes(batch).is_sorted()) { PLACES_PER_SORTED_ROW } else { PLACES_PER_ROW };
        if span >= places * n_rows as u64 {
            return None;
        }
        let shift = (span / n_portions as u64).checked_ilog2().map_or(0, |bits| bits + 1);
        let ranges = Ranges { first, shift, n_ranges: (span >> shift) as usize + 1 };
        let mut n_sampled = vec![0; ranges.n_ranges];
        let sample = all().step_by((n_rows / SAMPLE_ROWS).max(1));
        let n_sample = sample.map(|&hash| n_sampled[ranges.range(hash)] += 1).count();
        let most = n_sampled.into_iter().max().unwrap_or_default();
        (4 * n_sample >= most * ranges.n_ranges).then_some(ranges)
    }

    #[inline]
    fn range(&self, hash: u64) -> usize {
        ((hash - self.first) >> self.shift) as usize
    }

    fn portions(&self, keyed: &[Batch]) -> Vec<Vec<Batch>> {
        let mut portions = vec![Vec::new(); self.n_ranges];
        for batch in keyed {
            let parts = match hashes(batch).is_sorted() {
                true => self.slices(batch),
                false => partition_by(batch, self.n_ranges, |hash| self.range(hash)),
            };
            for (portion, part) in portions.iter_mut().zip(parts) {
                portion.extend((!part.is_empty()).then_some(part));
            }
        }
        portions.retain(|portion| !portion.is_empty());
        portions
    }

    /// The rows of each range, which lie behind each other.
    fn slices(&self, batch: &Batch) -> Vec<Batch> {
        let hashes = hashes(batch);
        let end = |range: usize| hashes.partition_point(|&hash| self.range(hash) <= range);
        let mut start = 0;
        let ranges = (0..self.n_ranges).map(|range| {
            let part = batch.slice(start, end(range) - start);
            start += part.len();
            part
        });
        ranges.collect()
    }
}

fn hashes(batch: &Batch) -> &[u64] {
    &batch.key().expect("batches are keyed before they are cut").hashes
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
        check(portions(halves, &[0], 1000), n);
    }

    #[test]
    fn neighbouring_keys_are_cut_by_their_order() {
        let n = 4 * PORTION_ROWS as i64;
        let batch = |keys: Vec<Option<i64>>, from: i64| {
            let rows: Int64Array = (from..from + keys.len() as i64).collect::<Vec<_>>().into();
            let keys = Arc::new(Int64Array::from(keys));
            Batch::new(vec![keys, Arc::new(rows)], Times::Constant(1), Diffs::Constant(1))
        };
        let sorted = |from: i64| batch((0..n / 2).map(|row| Some(row * 3 - 1000)).collect(), from);
        let shuffled = batch((0..n / 2).map(|row| Some(row * 7919 % (n / 3))).collect(), n / 2);
        let in_order = portions(vec![sorted(0), sorted(n / 2)], &[0], 0);
        let key_range = |portion: &[Batch]| {
            let keys = portion.iter().flat_map(|part| part.column(0).as_primitive::<Int64Type>().values().to_vec());
            keys.fold((i64::MAX, i64::MIN), |(least, most), key| (least.min(key), most.max(key)))
        };
        assert!(in_order.windows(2).all(|pair| key_range(&pair[0]).1 < key_range(&pair[1]).0));
        assert!(in_order.iter().flatten().all(|part| part.column(0).len() < n as usize / 2));
        check(in_order, n);
        let mixed = portions(vec![sorted(0), shuffled.clone()], &[0], 0);
        assert!(mixed.windows(2).all(|pair| key_range(&pair[0]).1 < key_range(&pair[1]).0));
        check(mixed, n);
        // Far apart, NULL among them, or nearly all of one key: cut by their spread hashes.
        let far = batch((0..n / 2).map(|row| Some(row * 1000)).collect(), 0);
        check(portions(vec![far, shuffled.clone()], &[0], 0), n);
        let one = batch((0..n / 2).map(|row| Some(if row % 50 == 0 { row } else { 7 })).collect(), 0);
        check(portions(vec![one, shuffled.clone()], &[0], 0), n);
        let nulls = batch((0..n / 2).map(|row| (row % 3 > 0).then_some(row)).collect(), 0);
        let nulls = portions(vec![nulls, shuffled], &[0], 0);
        assert_eq!(nulls.iter().flatten().map(Batch::len).sum::<usize>(), n as usize);
        let ends = batch((0..n).map(|row| Some(if row % 2 == 0 { i64::MIN } else { i64::MAX })).collect(), 0);
        check(portions(vec![ends], &[0], 0), n);
    }

    /// Portions of so many numbered rows.
    fn check(portions: Vec<Vec<Batch>>, n: i64) {
        assert!(portions.len() > 1);
        let portions: Vec<Batch> = portions.iter().filter_map(|parts| Batch::concat(parts)).collect();
        assert_eq!(portions.iter().map(Batch::len).sum::<usize>(), n as usize);
        let mut portion_of = HashMap::new();
        for (number, portion) in portions.iter().enumerate() {
            let column = |column: usize| portion.column(column).as_primitive::<Int64Type>().values().to_vec();
            assert!(column(1).is_sorted(), "rows keep their order");
            assert!(column(0).into_iter().all(|key| *portion_of.entry(key).or_insert(number) == number));
        }
    }
}
