//! Slots of integers that lie close together: an array, where others need a hash table.
//!
//! Law: a dictionary from hashes to slots. The hashes are those of exact keys, so they follow each
//! other as the integers do; of several workers, their places ([`ShardNumber::place`]) do so as
//! closely. A hash that belongs to another worker ends the directory, so what is said about the
//! worker is a hint.
//!
//! Cost: a load for a hash, from memory beside that of its neighbours; four bytes for each place
//! between the least and the greatest, and four a slot. So it is for hashes of which those are few
//! for each group ([`ENTERED_PART`], [`KEPT_PART`]): a hash table has some twenty to forty bytes a
//! group.

use anabranch_batch::ShardNumber;

/// No group has this hash.
const NOBODY: u32 = u32::MAX;

/// A directory is begun when the places between the least and the greatest are so many for each
/// group, at most,
const ENTERED_PART: usize = 5;
/// and given up when they are more than so many.
const KEPT_PART: usize = 10;

/// A dictionary from neighbouring hashes to slots. See the module's page.
#[derive(Clone, Debug)]
pub(super) struct Directory {
    /// The worker that has the hashes.
    shard: ShardNumber,
    /// The least place for which there is room.
    first: u64,
    /// The slot of each place from there on.
    slots: Vec<u32>,
    n_groups: usize,
    /// For each slot where it is in the [`super::Touched`] under construction, if what is there is
    /// the slot.
    pub indexes: Vec<u32>,
}

impl Directory {
    /// A directory of these hashes and slots, at least one; `None` if they are too far apart, or
    /// not of this worker.
    pub fn new(groups: &[(u64, u32)], shard: ShardNumber) -> Option<Directory> {
        let (least, greatest) = span(groups.iter().map(|(hash, _)| shard.place(*hash)))?;
        if greatest - least >= (ENTERED_PART * groups.len()) as u64 {
            return None;
        }
        if !shard.has_all(groups.iter().map(|(hash, _)| *hash)) {
            return None;
        }
        let mut slots = vec![NOBODY; (greatest - least) as usize + 1];
        groups.iter().for_each(|&(hash, slot)| slots[(shard.place(hash) - least) as usize] = slot);
        let n_slots = groups.iter().map(|(_, slot)| *slot as usize + 1).max()?;
        Some(Directory { shard, first: least, slots, n_groups: groups.len(), indexes: vec![NOBODY; n_slots] })
    }

    /// Makes room for some hashes. Returns whether that is worth it, for what it has and those;
    /// else nothing changes.
    pub fn make_room(&mut self, hashes: impl ExactSizeIterator<Item = u64> + Clone) -> bool {
        let (n_hashes, shard) = (hashes.len(), self.shard);
        let Some((least, greatest)) = span(hashes.clone().map(|hash| shard.place(hash))) else { return true };
        if !shard.has_all(hashes) {
            return false;
        }
        let (least, greatest) = (least.min(self.first), greatest.max(self.first + (self.slots.len() as u64 - 1)));
        if greatest - least >= (KEPT_PART * self.n_groups + n_hashes) as u64 {
            return false;
        }
        if least < self.first {
            // (Some more, so that keys that go down do not move all each time.)
            let n_before = (self.first - least).max(self.slots.len() as u64 / 4).min(self.first) as usize;
            self.slots.splice(..0, std::iter::repeat_n(NOBODY, n_before));
            self.first -= n_before as u64;
        }
        self.slots.resize((greatest - self.first) as usize + 1, NOBODY);
        true
    }

    /// The slot of a hash; one that `new_slot` makes if it has none.
    ///
    /// # Panics
    /// If there is no room for it.
    #[inline]
    pub fn find_or_insert(&mut self, hash: u64, new_slot: impl FnOnce() -> u32) -> u32 {
        let slot = &mut self.slots[(self.shard.place(hash) - self.first) as usize];
        if *slot == NOBODY {
            *slot = new_slot();
            self.n_groups += 1;
            if self.indexes.len() <= *slot as usize {
                self.indexes.resize(*slot as usize + 1, NOBODY);
            }
        }
        *slot
    }

    /// Forgets the slot of a hash; returns which it was.
    pub fn remove(&mut self, hash: u64) -> Option<u32> {
        let at = usize::try_from(self.shard.place(hash).checked_sub(self.first)?).ok()?;
        let slot = std::mem::replace(self.slots.get_mut(at)?, NOBODY);
        self.n_groups -= usize::from(slot != NOBODY);
        (slot != NOBODY).then_some(slot)
    }

    /// Number of groups.
    pub fn len(&self) -> usize {
        self.n_groups
    }

    /// All hashes and slots.
    pub fn groups(&self) -> impl Iterator<Item = (u64, u32)> + '_ {
        let all = self.slots.iter().enumerate().filter(|(_, slot)| **slot != NOBODY);
        all.map(|(at, slot)| (self.shard.hash(self.first + at as u64), *slot))
    }

    /// Bytes of memory.
    pub fn size_bytes(&self) -> usize {
        (self.slots.capacity() + self.indexes.capacity()) * size_of::<u32>()
    }
}

/// The least and the greatest.
fn span(mut hashes: impl Iterator<Item = u64>) -> Option<(u64, u64)> {
    let first = hashes.next()?;
    Some(hashes.fold((first, first), |(least, greatest), hash| (least.min(hash), greatest.max(hash))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_have_room_and_others_have_not() {
        let groups: Vec<(u64, u32)> = (0..100).map(|number| (1000 + 2 * number, number as u32)).collect();
        let mut directory = Directory::new(&groups, ShardNumber::SINGLE).expect("every other hash is one of them");
        assert!(Directory::new(&[(0, 0), (100, 1)], ShardNumber::SINGLE).is_none());
        assert_eq!(directory.groups().collect::<Vec<_>>(), groups);
        assert!(!directory.make_room([5000].into_iter()) && !directory.make_room([u64::MAX - 1, 0].into_iter()));
        assert!(directory.make_room([990, 1300].into_iter()) && directory.make_room(std::iter::empty()));
        assert_eq!(directory.find_or_insert(990, || 100), 100);
        assert_eq!(directory.find_or_insert(990, || 101), 100);
        assert_eq!(directory.find_or_insert(1300, || 101), 101);
        assert_eq!((directory.remove(990), directory.remove(990), directory.remove(7)), (Some(100), None, None));
        assert_eq!((directory.len(), directory.remove(1300), directory.len()), (101, Some(101), 100));
        assert_eq!(directory.groups().collect::<Vec<_>>(), groups);
        assert!(directory.size_bytes() < 5000);
    }

    #[test]
    fn hashes_of_a_worker_are_as_close_as_those_of_all() {
        for of in [2, 3, 8] {
            let shard = ShardNumber::new(1, of);
            let own = |numbers: std::ops::Range<u64>| numbers.filter(|&hash| shard.has(hash)).collect::<Vec<_>>();
            let groups: Vec<(u64, u32)> = own(6000..9000).into_iter().zip(0..).collect();
            assert_eq!(groups.len(), 3000 / of);
            let mut directory = Directory::new(&groups, shard).expect("each place is that of one of them");
            assert_eq!(directory.slots.len(), groups.len());
            assert_eq!(directory.groups().collect::<Vec<_>>(), groups);
            assert!(directory.make_room(own(4000..10_000).into_iter()));
            let other = (0..).find(|&hash| hash > 7000 && !shard.has(hash)).expect("others have hashes");
            assert!(!directory.make_room([other].into_iter()) && directory.len() == groups.len());
            assert!(Directory::new(&[&groups[..], &[(other, 9999)]].concat(), shard).is_none());
        }
    }

    #[test]
    fn the_ends_of_all_hashes_are_hashes() {
        for ends in [[0, 3], [u64::MAX - 3, u64::MAX]] {
            let groups: Vec<(u64, u32)> = vec![(ends[0], 0), (ends[1], 1)];
            let mut directory = Directory::new(&groups, ShardNumber::SINGLE).expect("they are near each other");
            assert!(directory.make_room([0, 1, 3].into_iter().map(|at| ends[0] + at)));
            assert_eq!(directory.find_or_insert(ends[0] + 1, || 2), 2);
            assert_eq!(directory.groups().count(), 3);
            assert!(!directory.make_room([0, u64::MAX].into_iter()));
        }
    }
}
