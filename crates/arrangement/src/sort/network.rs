//! Sorting very many groups of a few rows each.
//!
//! Law: each group comes out in order of (word, row). Cost: a fixed number of exchanges for up to
//! four rows, eight, and sixteen, each made or not without a branch: neither which it will be nor
//! how many rows the next group has can be foretold. Source: Knuth, *The Art of Computer
//! Programming* 3, 5.3.4: networks of 5, 19 and 63 exchanges.

/// More rows than this are for other ways of sorting.
pub(super) const NETWORK_ROWS_MAX: usize = 16;

/// The first rows of the groups, and the number of rows at the end: neighbours are in one group if
/// they `tie`.
pub(super) fn group_starts(hashes: &[u64], ties: impl Fn(u64, u64) -> bool) -> Vec<u32> {
    let mut starts = vec![0; hashes.len() + 1];
    let mut n_groups = usize::from(!hashes.is_empty());
    for (at, pair) in (1u32..).zip(hashes.windows(2)) {
        starts[n_groups] = at;
        n_groups += usize::from(!ties(pair[0], pair[1]));
    }
    starts[n_groups] = hashes.len() as u32;
    starts.truncate(n_groups + 1);
    starts
}

/// Sorts the first `n` rows, at most [`NETWORK_ROWS_MAX`]. Returns whether it did: it looks at a
/// few more, and they must be there.
#[inline]
pub(super) fn sort_group(words: &mut [u64], rows: &mut [u32], n: usize) -> bool {
    match n {
        ..=4 => sort_lanes(words, rows, n, sort_four),
        5..=8 => sort_lanes(words, rows, n, sort_eight),
        _ => sort_lanes(words, rows, n, sort_sixteen),
    }
}

#[inline]
fn sort_lanes<const N: usize>(
    words: &mut [u64],
    rows: &mut [u32],
    n: usize,
    sort: impl FnOnce(&mut [u128; N]),
) -> bool {
    let (Some(words), Some(rows)) = (words.first_chunk_mut(), rows.first_chunk_mut()) else { return false };
    let mut lanes = lanes(words, rows, n);
    sort(&mut lanes);
    give_back(&lanes, words, rows, n);
    true
}

/// Words and rows as one number each; those that do not belong to the group come last.
#[inline]
fn lanes<const N: usize>(words: &[u64; N], rows: &[u32; N], n: usize) -> [u128; N] {
    std::array::from_fn(|lane| {
        let number = u128::from(words[lane]) << 32 | u128::from(rows[lane]);
        if lane < n { number } else { u128::MAX }
    })
}

#[inline]
fn give_back<const N: usize>(lanes: &[u128; N], words: &mut [u64; N], rows: &mut [u32; N], n: usize) {
    for lane in 0..N {
        words[lane] = if lane < n { (lanes[lane] >> 32) as u64 } else { words[lane] };
        rows[lane] = if lane < n { lanes[lane] as u32 } else { rows[lane] };
    }
}

#[inline]
fn exchange<const N: usize>(lanes: &mut [u128; N], a: usize, b: usize) {
    let (left, right) = (lanes[a], lanes[b]);
    let is_less = right < left;
    lanes[a] = if is_less { right } else { left };
    lanes[b] = if is_less { left } else { right };
}

#[inline]
fn sort_four(lanes: &mut [u128; 4]) {
    exchange(lanes, 0, 1);
    exchange(lanes, 2, 3);
    exchange(lanes, 0, 2);
    exchange(lanes, 1, 3);
    exchange(lanes, 1, 2);
}

#[inline]
fn sort_eight(lanes: &mut [u128; 8]) {
    [(0, 2), (1, 3), (4, 6), (5, 7)].into_iter().for_each(|(a, b)| exchange(lanes, a, b));
    [(0, 4), (1, 5), (2, 6), (3, 7)].into_iter().for_each(|(a, b)| exchange(lanes, a, b));
    [(0, 1), (2, 3), (4, 5), (6, 7)].into_iter().for_each(|(a, b)| exchange(lanes, a, b));
    [(2, 4), (3, 5)].into_iter().for_each(|(a, b)| exchange(lanes, a, b));
    [(1, 4), (3, 6)].into_iter().for_each(|(a, b)| exchange(lanes, a, b));
    [(1, 2), (3, 4), (5, 6)].into_iter().for_each(|(a, b)| exchange(lanes, a, b));
}

/// Two networks for eight, and one that merges what they have sorted.
fn sort_sixteen(lanes: &mut [u128; 16]) {
    let (first, last) = lanes.split_at_mut(8);
    for half in [first, last] {
        if let Some(half) = half.first_chunk_mut() {
            sort_eight(half);
        }
    }
    (0..8).for_each(|lane| exchange(lanes, lane, lane + 8));
    (4..8).for_each(|lane| exchange(lanes, lane, lane + 4));
    [2, 3, 6, 7, 10, 11].into_iter().for_each(|lane| exchange(lanes, lane, lane + 2));
    [1, 3, 5, 7, 9, 11, 13].into_iter().for_each(|lane| exchange(lanes, lane, lane + 1));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_order_of_zeros_and_ones_is_sorted_and_nothing_else_is_moved() {
        // (A network that sorts these sorts everything: the zero-one principle.)
        for n in 1..=NETWORK_ROWS_MAX {
            for bits in 0..1u64 << n {
                let mut words: Vec<u64> = (0..20).map(|at| if at < n { bits >> at & 1 } else { 0 }).collect();
                let mut rows: Vec<u32> = (0..20).collect();
                let mut expected: Vec<(u64, u32)> = words.iter().copied().zip(0..).collect();
                expected[..n].sort_unstable();
                assert!(sort_group(&mut words, &mut rows, n));
                assert_eq!(words.into_iter().zip(rows).collect::<Vec<_>>(), expected, "{n} rows, {bits:b}");
            }
        }
        assert!(!sort_group(&mut [2, 1, 0], &mut [0, 1, 2], 3), "there are not four");
    }

    #[test]
    fn groups_begin_where_neighbours_differ() {
        assert_eq!(group_starts(&[], |a, b| a == b), [0]);
        assert_eq!(group_starts(&[5], |a, b| a == b), [0, 1]);
        assert_eq!(group_starts(&[5, 5, 6, 7, 7, 7], |a, b| a == b), [0, 2, 3, 6]);
    }
}
