//! Where the last rows of a batch were found.
//!
//! Law: what it knows of a hash is where [`super::GroupTable`] put the last row that had it, in
//! this batch.
//!
//! Cost: a look at two hashes beside each other; clearing it, once a batch.

use anabranch_batch::hash::spread;

/// Groups of a table of which it is remembered, within a batch, where rows found them.
const RECENT_GROUPS_MAX: usize = 1 << 12;

/// Rows that a batch has, at least, for each set of such memories: fewer do not pay for clearing
/// them.
const RECENT_ROWS_MIN: usize = 4;

/// Where rows of a batch found the slots of their hashes: sets of two, the later first.
#[derive(Debug)]
pub(super) struct Recent {
    /// Hashes and indexes into [`super::Touched::slot`]; [`u32::MAX`] for nothing. A power of two
    /// of them.
    sets: Vec<[(u64, u32); 2]>,
}

impl Recent {
    /// Room for as many groups and some more, if it is worth it for so many rows.
    pub fn new(n_groups: usize, n_rows: usize) -> Option<Recent> {
        let n_sets = (2 * n_groups).next_power_of_two().max(16);
        let is_worth_it = n_groups <= RECENT_GROUPS_MAX && RECENT_ROWS_MIN * n_sets <= n_rows;
        is_worth_it.then(|| Recent { sets: vec![[(0, u32::MAX); 2]; n_sets] })
    }

    /// Where the first of `hashes` were found, up to the first that is not known: into `indexes`.
    /// Returns how many.
    pub fn find_while_known(&self, hashes: &[u64], indexes: &mut [u32]) -> usize {
        let mask = self.sets.len() - 1;
        for (at, (&hash, index)) in hashes.iter().zip(indexes).enumerate() {
            let [first, second] = &self.sets[spread(hash) as usize & mask];
            let (is_first, is_second) = (first.0 == hash, second.0 == hash);
            // (Which of the two it is is for no processor to guess: no branch.)
            *index = first.1 ^ ((first.1 ^ second.1) & u32::from(is_second).wrapping_neg());
            if !(is_first | is_second) | (*index == u32::MAX) {
                return at;
            }
        }
        hashes.len()
    }

    /// Whether so many groups push each other out.
    pub fn is_crowded(&self, n_groups: usize) -> bool {
        n_groups > self.sets.len()
    }

    pub fn enter(&mut self, hash: u64, index: u32) {
        let at = spread(hash) as usize & (self.sets.len() - 1);
        self.sets[at] = [(hash, index), self.sets[at][0]];
    }
}
