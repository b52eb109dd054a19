//! Which shard a hash belongs to, and which place it has there.
//!
//! ```text
//! far from zero                                  near zero
//! field of 3 x 8    0 .. 7 | 8 .. 15 | 16 .. 23     0 1 2 | 3 4 5 | .. | 21 22 23
//! turned by         +1 for the field                   +1 |    +0 | .. |       +2
//! shard                 1  |    2    |    0         1 2 0 | 0 1 2 | .. |    2 0 1
//! ```
//!
//! Law: each *field* of eight times as many neighbouring hashes as there are shards has eight
//! hashes in each shard, and those have the eight *places* of the field there. How parts of fields
//! are turned is as good as random. So shards get equally many of any hashes, and integers that lie
//! close together still do among those of one shard, where they have an array in place of a hash
//! table.
//!
//! Small integers that follow each other are dealt out one by one: there may be few of them. Others
//! go to a shard eight at a time: rows that come in the order of a key then come in runs of one
//! shard, which are found and copied as such.
//!
//! Cost: a multiplication of 32 bits a hash, of which a processor does several at once; a division
//! where the number of shards is no power of two.

/// One of several shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardNumber {
    index: usize,
    of: usize,
}

/// Neighbouring hashes of a shard, far from zero.
const RUN: u64 = 8;

/// The hash of the integer zero.
const ZERO: u64 = 1 << 63;

/// Fields on either side of zero whose hashes are dealt out one by one. (With one shard some 32,000
/// integers: what databases number from one, and days.)
const NEAR_FIELDS: u64 = 1 << 12;

/// The shard, of `shards`, that a hash belongs to.
#[inline]
pub fn route(hash: u64, shards: usize) -> usize {
    let Spot { part, offset, .. } = Spot::of(hash, shards as u64);
    let shard = offset + turn(part, shards as u64);
    (if shard < shards as u64 { shard } else { shard - shards as u64 }) as usize
}

/// Where a hash is.
struct Spot {
    /// What is turned as one: a field, or an eighth of it.
    part: u64,
    /// Where in that.
    offset: u64,
    place: u64,
}

impl Spot {
    #[inline]
    fn of(hash: u64, shards: u64) -> Spot {
        let (field, rest) = match shards.is_power_of_two() {
            true => (hash / RUN >> shards.trailing_zeros(), hash & (RUN * shards - 1)),
            false => (hash / (RUN * shards), hash % (RUN * shards)),
        };
        match is_near(field, shards) {
            true => {
                let part = field * RUN + rest / shards;
                Spot { part, offset: rest % shards, place: part }
            }
            false => Spot { part: field, offset: rest / RUN, place: field * RUN + rest % RUN },
        }
    }
}

/// Whether the hashes of a field are dealt out one by one.
#[inline]
fn is_near(field: u64, shards: u64) -> bool {
    field.wrapping_sub(ZERO / (RUN * shards)).wrapping_add(NEAR_FIELDS) < 2 * NEAR_FIELDS
}

/// How far a part is turned.
#[inline]
fn turn(part: u64, shards: u64) -> u64 {
    (u64::from(mixed(part)) * shards) >> 32
}

/// Bits that are as good as random for the numbers of parts: the product of both halves with the
/// golden section.
#[inline]
fn mixed(part: u64) -> u32 {
    let product = u64::from((part ^ (part >> 32)) as u32) * 0x9e37_79b1;
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
        2.. if shards.is_power_of_two() && bits < 29 => {
            let field_bits = bits + RUN.trailing_zeros();
            let first_near = (ZERO >> field_bits) - NEAR_FIELDS;
            of_each.for_each(|(&hash, shard)| {
                let field = hash >> field_bits;
                let from_near = field.wrapping_sub(first_near) / (2 * NEAR_FIELDS);
                let is_near = (from_near as u32 | (from_near >> 32) as u32) == 0;
                let part = if is_near { hash >> bits } else { field };
                let offset = if is_near { hash as u32 } else { hash as u32 / RUN as u32 };
                let turn = mixed(part) >> (32 - bits);
                *shard = offset.wrapping_add(turn) & (shards as u32 - 1);
            });
        }
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
        Spot::of(hash, self.of as u64).place
    }

    /// The hash of a place.
    #[inline]
    pub fn hash(self, place: u64) -> u64 {
        let (index, of, field) = (self.index as u64, self.of as u64, place / RUN);
        let offset = |part: u64| (index + of - turn(part, of)) % of;
        match is_near(field, of) {
            true => place * of + offset(place),
            false => (field * of + offset(field)) * RUN + place % RUN,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Rng;

    #[test]
    fn a_shard_has_eight_hashes_of_each_field_in_eight_places() {
        let mut rng = Rng::from_env(57);
        for of in [1, 2, 3, 4, 7, 8, 100] {
            let hashes = RUN * of as u64;
            let near = |rng: &mut Rng| (ZERO / hashes + NEAR_FIELDS).wrapping_add(rng.next() % 20) - 10;
            let far = |rng: &mut Rng| rng.next() / hashes - 1;
            let fields: Vec<u64> =
                (0..500).map(|at| if at % 2 == 0 { far(&mut rng) } else { near(&mut rng) }).collect();
            for field in fields {
                let mut places = vec![Vec::new(); of];
                for hash in field * hashes..(field + 1) * hashes {
                    let shard = ShardNumber::new(route(hash, of), of);
                    assert!(shard.has(hash));
                    let place = shard.place(hash);
                    assert_eq!((place / RUN, shard.hash(place)), (field, hash));
                    places[shard.index].push(place);
                    let mut routed = [0];
                    routes(&[hash], of, &mut routed);
                    assert_eq!(routed[0] as usize, shard.index);
                    assert!(of == 1 || !ShardNumber::new((shard.index + 1) % of, of).has(hash));
                }
                assert!(places.iter().all(|places| places.is_sorted() && places.len() == RUN as usize));
                assert!(places.iter_mut().all(|places| places.windows(2).all(|pair| pair[0] < pair[1])));
            }
        }
    }

    #[test]
    fn small_integers_are_dealt_out_one_by_one_and_others_in_runs() {
        let shards = |first: i64| -> Vec<usize> {
            (first..first + 64).map(|n| route(crate::hash::hash_word(n as u64), 2)).collect()
        };
        for first in [-20_000, -8, 0, 1_000, 40_000] {
            let (even, odd): (Vec<usize>, Vec<usize>) = shards(first).chunks(2).map(|pair| (pair[0], pair[1])).unzip();
            assert!(even.iter().zip(&odd).all(|(even, odd)| even != odd));
        }
        for first in [-1 << 40, 1 << 20, 1 << 50] {
            assert!(shards(first).chunks(RUN as usize).all(|run| run.iter().all(|shard| *shard == run[0])));
        }
    }
}
