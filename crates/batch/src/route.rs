//! Which shard a hash belongs to, and which place it has there.
//!
//! ```text
//! blocks of 3:    0 1 2 | 3 4 5 | 6 7 8 | ..
//! turned by          +1 |    +0 |    +2 |
//! shard           1 2 0 | 0 1 2 | 2 0 1 |
//! ```
//!
//! Law: each block of as many neighbouring hashes as there are shards has one hash in each shard.
//! How a block is turned is as good as random. So shards get equally many of any hashes, integers
//! that follow each other are dealt out one by one, and *the block is a place of its own for each
//! hash of a shard*: integers that lie close together still do among those of one shard, where they
//! have an array in place of a hash table.
//!
//! Cost: two multiplications a hash; a division where the number of shards is no power of two.

use crate::hash::spread;

/// One of several shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardNumber {
    index: usize,
    of: usize,
}

/// The shard, of `shards`, that a hash belongs to.
#[inline]
pub fn route(hash: u64, shards: usize) -> usize {
    let shards = shards as u64;
    let (block, offset) = match shards.is_power_of_two() {
        true => (hash >> shards.trailing_zeros(), hash & (shards - 1)),
        false => (hash / shards, hash % shards),
    };
    let shard = offset + turn(block, shards);
    (if shard < shards { shard } else { shard - shards }) as usize
}

/// How far the hashes of a block are turned.
#[inline]
fn turn(block: u64, shards: u64) -> u64 {
    (u64::from(spread(block) as u32) * shards) >> 32
}

impl ShardNumber {
    /// The only one.
    pub const SINGLE: ShardNumber = ShardNumber { index: 0, of: 1 };

    /// The shard of this index, of so many.
    ///
    /// # Panics
    /// If there is no such shard.
    pub fn new(index: usize, of: usize) -> ShardNumber {
        assert!(index < of, "shard {index} is one of {of}");
        ShardNumber { index, of }
    }

    /// Whether it has a hash.
    #[inline]
    pub fn has(self, hash: u64) -> bool {
        self.of == 1 || route(hash, self.of) == self.index
    }

    /// The place of a hash that it has: another for each.
    #[inline]
    pub fn place(self, hash: u64) -> u64 {
        match self.of.is_power_of_two() {
            true => hash >> self.of.trailing_zeros(),
            false => hash / self.of as u64,
        }
    }

    /// The hash of a place.
    #[inline]
    pub fn hash(self, place: u64) -> u64 {
        let (index, of) = (self.index as u64, self.of as u64);
        place * of + (index + of - turn(place, of)) % of
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Rng;

    #[test]
    fn a_shard_has_one_hash_of_each_block() {
        let mut rng = Rng::from_env(57);
        for of in [1, 2, 3, 4, 7, 8, 100] {
            for _ in 0..500 {
                let block = rng.next() / of as u64 - 1;
                let mut seen = vec![false; of];
                for hash in block * of as u64..(block + 1) * of as u64 {
                    let shard = ShardNumber::new(route(hash, of), of);
                    assert!(shard.has(hash));
                    assert!(!std::mem::replace(&mut seen[shard.index], true));
                    assert_eq!(shard.place(hash), block);
                    assert_eq!(shard.hash(block), hash);
                    assert!(of == 1 || !ShardNumber::new((shard.index + 1) % of, of).has(hash));
                }
            }
        }
    }
}
