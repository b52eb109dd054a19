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
//! Cost: a multiplication of 32 bits a hash, of which a processor does several at once; a division
//! where the number of shards is no power of two.

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
    (u64::from(mixed(block)) * shards) >> 32
}

/// Bits that are as good as random for the numbers of blocks: the product of both halves with the
/// golden section.
#[inline]
fn mixed(block: u64) -> u32 {
    let product = u64::from((block ^ (block >> 32)) as u32) * 0x9e37_79b1;
    (product >> 32) as u32 ^ product as u32
}

/// The shards, of `shards`, that hashes belong to, one for each.
///
/// # Panics
/// If there is no shard.
pub(crate) fn routes(hashes: &[u64], shards: usize, routes: &mut [u32]) {
    let of_each = hashes.iter().zip(routes);
    let bits = shards.trailing_zeros();
    match shards {
        1 => of_each.for_each(|(_, shard)| *shard = 0),
        // (The same as below, in a form of which a processor does several at once.)
        2.. if shards.is_power_of_two() && bits < 32 => of_each.for_each(|(&hash, shard)| {
            let turn = mixed(hash >> bits) >> (32 - bits);
            *shard = (hash as u32).wrapping_add(turn) & (shards as u32 - 1);
        }),
        _ => of_each.for_each(|(&hash, shard)| *shard = route(hash, shards) as u32),
    }
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

    /// Its number.
    pub fn index(self) -> usize {
        self.index
    }

    /// How many there are.
    pub fn of(self) -> usize {
        self.of
    }

    /// Whether it has all of these.
    pub fn has_all(self, hashes: impl Iterator<Item = u64>) -> bool {
        // (All are looked at, without a branch.)
        match self.of {
            1 => true,
            2 => hashes.fold(true, |all, hash| all & (route(hash, 2) == self.index)),
            of => hashes.fold(true, |all, hash| all & (route(hash, of) == self.index)),
        }
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
                    let mut routed = [0];
                    routes(&[hash], of, &mut routed);
                    assert_eq!(routed[0] as usize, shard.index);
                    assert_eq!(shard.hash(block), hash);
                    assert!(of == 1 || !ShardNumber::new((shard.index + 1) % of, of).has(hash));
                }
            }
        }
    }
}
