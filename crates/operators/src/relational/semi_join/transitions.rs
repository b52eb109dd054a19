//! When the answer flips: the times at which a running count becomes positive, and stops being so.

use anabranch_batch::{Diff, Time};

/// Turns the updates of a count into the updates of "is it positive", in order of time.
///
/// `updates` is sorted in place. Cost: O(n log n), O(n) when all times are equal or ascending.
pub(super) fn flips(updates: &mut [(Time, Diff)], out: &mut Vec<(Time, Diff)>) {
    out.clear();
    if !updates.is_sorted_by_key(|update| update.0) {
        updates.sort_unstable_by_key(|update| update.0);
    }
    let mut count: Diff = 0;
    let mut was = false;
    let mut next = 0;
    while next < updates.len() {
        let time = updates[next].0;
        while next < updates.len() && updates[next].0 == time {
            count += updates[next].1;
            next += 1;
        }
        let is = count > 0;
        if is != was {
            out.push((time, if is { 1 } else { -1 }));
            was = is;
        }
    }
}

/// The flips of each key, packed: those of key `k` are `flips[starts[k]..starts[k + 1]]`.
pub(super) struct FlipLists {
    pub starts: Vec<u32>,
    pub flips: Vec<(Time, Diff)>,
}

impl FlipLists {
    /// From updates sorted by owner: `owner[i]` owns `updates[i]`; owners are `0..n`.
    pub fn new(n: usize, updates: impl Iterator<Item = (u32, Time, Diff)>) -> FlipLists {
        let mut lists = FlipLists { starts: Vec::with_capacity(n + 1), flips: Vec::new() };
        lists.starts.push(0);
        let (mut pending, mut scratch) = (Vec::new(), Vec::new());
        for (owner, time, diff) in updates {
            while lists.starts.len() <= owner as usize {
                lists.close(&mut pending, &mut scratch);
            }
            pending.push((time, diff));
        }
        while lists.starts.len() <= n {
            lists.close(&mut pending, &mut scratch);
        }
        lists
    }

    fn close(&mut self, pending: &mut Vec<(Time, Diff)>, scratch: &mut Vec<(Time, Diff)>) {
        if !pending.is_empty() {
            flips(pending, scratch);
            self.flips.extend_from_slice(scratch);
            pending.clear();
        }
        self.starts.push(self.flips.len() as u32);
    }

    /// The flips of one owner, in order of time.
    pub fn of(&self, owner: usize) -> &[(Time, Diff)] {
        &self.flips[self.starts[owner] as usize..self.starts[owner + 1] as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_flips_when_it_crosses_zero() {
        let mut out = Vec::new();
        flips(&mut [(5, 1), (3, 1), (7, -2), (9, 1)], &mut out);
        assert_eq!(out, vec![(3, 1), (7, -1), (9, 1)]);
        flips(&mut [(3, 1), (3, -1)], &mut out);
        assert_eq!(out, vec![]);
        flips(&mut [(3, -1), (4, 1)], &mut out);
        assert_eq!(out, vec![]);
    }

    #[test]
    fn owners_without_updates_have_no_flips() {
        let lists = FlipLists::new(4, [(1, 3, 1), (1, 4, -1), (3, 2, 2)].into_iter());
        assert_eq!(lists.of(0), &[]);
        assert_eq!(lists.of(1), &[(3, 1), (4, -1)]);
        assert_eq!(lists.of(2), &[]);
        assert_eq!(lists.of(3), &[(2, 1)]);
    }
}
