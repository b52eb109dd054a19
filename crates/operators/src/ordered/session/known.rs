//! The sessions of all partitions, as they are after the last change.
//!
//! Law: sessions of a partition lie further apart than the gap, so the order of their first times
//! is that of their last times. A partition without sessions is forgotten.
//!
//! Cost: a look-up is one in a hash table a partition and a turn, and O(log sessions) each time.
//! Most partitions of a stream have one session at a time, which is kept without a tree.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};

use anabranch_arrangement::Keys;
use anabranch_batch::Diff;
use arrow::datatypes::DataType;

use crate::aggregate::group_table::GroupTable;

/// A session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SessionBounds {
    /// Time of its first row.
    pub first: i64,
    /// Time of its last row.
    pub last: i64,
    /// Its rows.
    pub n_rows: Diff,
}

/// The sessions of a partition.
#[derive(Debug, Default)]
pub(super) enum PartitionSessions {
    #[default]
    None,
    One(SessionBounds),
    /// By their first times. (On the heap, since most partitions have none.)
    #[expect(clippy::box_collection, reason = "the tree's own 24 bytes would make each partition larger")]
    Many(Box<BTreeMap<i64, SessionBounds>>),
}

/// The sessions of all partitions.
#[derive(Debug)]
pub(super) struct KnownSessions {
    table: GroupTable,
    /// By the table's slot.
    of_slot: Vec<PartitionSessions>,
    /// Hash of the partition, by slot.
    hashes: Vec<u64>,
    /// Rows of all sessions.
    n_rows: Diff,
}

impl PartitionSessions {
    /// The last session that begins at a time or before.
    pub fn at_or_before(&self, time: i64) -> Option<SessionBounds> {
        match self {
            PartitionSessions::None => None,
            PartitionSessions::One(known) => Some(*known).filter(|known| known.first <= time),
            PartitionSessions::Many(many) => many.range(..=time).next_back().map(|(_, known)| *known),
        }
    }

    /// The first session that begins after a time.
    pub fn after(&self, time: i64) -> Option<SessionBounds> {
        match self {
            PartitionSessions::None => None,
            PartitionSessions::One(known) => Some(*known).filter(|known| known.first > time),
            PartitionSessions::Many(many) => many.range((Excluded(time), Unbounded)).next().map(|(_, known)| *known),
        }
    }

    fn insert(&mut self, new: SessionBounds) {
        *self = match std::mem::take(self) {
            PartitionSessions::None => PartitionSessions::One(new),
            PartitionSessions::One(old) => {
                PartitionSessions::Many(Box::new(BTreeMap::from([(old.first, old), (new.first, new)])))
            }
            PartitionSessions::Many(mut many) => {
                many.insert(new.first, new);
                PartitionSessions::Many(many)
            }
        };
    }

    fn remove(&mut self, first: i64) {
        *self = match std::mem::take(self) {
            PartitionSessions::Many(mut many) => {
                many.remove(&first);
                PartitionSessions::of_tree(many)
            }
            _ => PartitionSessions::None,
        };
    }

    #[expect(clippy::box_collection, reason = "the tree stays where it is")]
    fn of_tree(many: Box<BTreeMap<i64, SessionBounds>>) -> PartitionSessions {
        match (many.len(), many.first_key_value()) {
            (0, _) => PartitionSessions::None,
            (1, Some((_, known))) => PartitionSessions::One(*known),
            _ => PartitionSessions::Many(many),
        }
    }

    /// Forgets the sessions that have ended before a time; returns their rows.
    fn forget_before(&mut self, time: i64) -> Diff {
        match self {
            PartitionSessions::One(known) if known.last < time => {
                let n_rows = known.n_rows;
                *self = PartitionSessions::None;
                n_rows
            }
            PartitionSessions::None | PartitionSessions::One(_) => 0,
            PartitionSessions::Many(many) => {
                let mut n_rows = 0;
                while let Some(entry) = many.first_entry().filter(|entry| entry.get().last < time) {
                    n_rows += entry.remove().n_rows;
                }
                *self = PartitionSessions::of_tree(std::mem::take(many));
                n_rows
            }
        }
    }

    fn first(&self) -> Option<i64> {
        match self {
            PartitionSessions::None => None,
            PartitionSessions::One(known) => Some(known.first),
            PartitionSessions::Many(many) => many.first_key_value().map(|(first, _)| *first),
        }
    }
}

impl KnownSessions {
    /// No sessions, of partitions with columns of these types.
    pub fn new(key_types: &[DataType]) -> KnownSessions {
        KnownSessions { table: GroupTable::new(key_types), of_slot: Vec::new(), hashes: Vec::new(), n_rows: 0 }
    }

    /// The slots of partitions, for each of the keys.
    pub fn slots(&mut self, keys: &Keys) -> Vec<u32> {
        let touched = self.table.touch(keys.columns(), keys.hashes());
        if self.of_slot.len() < self.table.n_slots() {
            self.of_slot.resize_with(self.table.n_slots(), PartitionSessions::default);
            self.hashes.resize(self.table.n_slots(), 0);
        }
        let slots: Vec<u32> = touched.of_row.iter().map(|index| touched.slot[*index as usize]).collect();
        slots.iter().zip(keys.hashes()).for_each(|(slot, hash)| self.hashes[*slot as usize] = *hash);
        slots
    }

    /// The sessions of a partition.
    pub fn of(&self, slot: u32) -> &PartitionSessions {
        &self.of_slot[slot as usize]
    }

    /// Puts sessions in the place of others.
    pub fn replace(&mut self, slot: u32, old: &[SessionBounds], new: &[SessionBounds]) {
        let of_partition = &mut self.of_slot[slot as usize];
        if let (PartitionSessions::One(known), [_], [new]) = (&mut *of_partition, old, new) {
            self.n_rows += new.n_rows - known.n_rows;
            *known = *new;
            return;
        }
        for old in old {
            of_partition.remove(old.first);
            self.n_rows -= old.n_rows;
        }
        for new in new {
            of_partition.insert(*new);
            self.n_rows += new.n_rows;
        }
    }

    /// Forgets those of these partitions that have no session.
    pub fn forget_empty(&mut self, slots: impl IntoIterator<Item = u32>) {
        for slot in slots {
            if matches!(self.of_slot[slot as usize], PartitionSessions::None) {
                self.table.release(slot, self.hashes[slot as usize]);
            }
        }
    }

    /// Forgets sessions that have ended before a time. Returns the first time of those that are
    /// left. O(partitions and sessions that end).
    pub fn forget_before(&mut self, time: i64) -> Option<i64> {
        let mut first: Option<i64> = None;
        let mut ended = Vec::new();
        for (slot, of_partition) in self.of_slot.iter_mut().enumerate() {
            if matches!(of_partition, PartitionSessions::None) {
                continue;
            }
            self.n_rows -= of_partition.forget_before(time);
            match of_partition.first() {
                Some(of_slot) => first = Some(first.map_or(of_slot, |first| first.min(of_slot))),
                None => ended.push(slot as u32),
            }
        }
        self.forget_empty(ended);
        if let Some(old_of_new) = self.table.shrink() {
            self.of_slot = old_of_new.iter().map(|old| std::mem::take(&mut self.of_slot[*old as usize])).collect();
            self.hashes = old_of_new.iter().map(|old| self.hashes[*old as usize]).collect();
        }
        first
    }

    /// Partitions that have sessions.
    pub fn n_partitions(&self) -> usize {
        self.table.len()
    }

    /// Rows of all sessions.
    pub fn n_rows(&self) -> usize {
        usize::try_from(self.n_rows).unwrap_or(0)
    }

    pub fn size_bytes(&self) -> usize {
        let trees = self.of_slot.iter().map(|of_partition| match of_partition {
            PartitionSessions::Many(many) => many.len() * size_of::<(i64, SessionBounds)>(),
            _ => 0,
        });
        self.table.size_bytes()
            + self.of_slot.capacity() * size_of::<PartitionSessions>()
            + self.hashes.capacity() * size_of::<u64>()
            + trees.sum::<usize>()
    }
}
