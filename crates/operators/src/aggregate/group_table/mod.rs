//! Keys to dense slots: which group does each row of a batch belong to?
//!
//! Law: two rows get the same slot exactly when their keys are equal (NULL equals NULL), as long as
//! the slot is not released. Slots are small numbers, reused after [`GroupTable::release`], so that
//! state lies in plain vectors indexed by slot.
//!
//! A whole batch is looked up by hash alone at first. Then keys are verified, column by column:
//! rows against the first row of their slot in the batch, and that row against the stored key. Rows
//! that fail (their hash collides) take a slow, exact path: a collision costs time, never an
//! answer. Keys whose hash is exact (one integer-like column) are not stored at all; NULL, whose
//! hash might be some integer's, has a slot of its own then. Many such keys that lie close together
//! have a [`Directory`] instead of a hash table. Rows of a few groups with short keys
//! ([`anabranch_batch::few`]) are found by comparing keys.
//!
//! Cost: one hash table probe a row, none for a row with the hash of the row before (rows often
//! come sorted by what they are grouped by); or, with a few thousand groups, mostly a look at two
//! hashes beside each other that rows of the batch had; verification reads the key columns once. 16
//! bytes a group, and its key unless exact. Source of directories: what DuckDB calls perfect hash
//! aggregates.

use anabranch_batch::hash::spread;
use anabranch_batch::{Columns, ShardNumber, gather, hash};
use arrow::array::{Array, ArrayRef, new_empty_array, new_null_array};
use arrow::datatypes::DataType;
use hashbrown::HashTable;
use std::collections::HashMap;
use std::hint::black_box;

use crate::aggregate::group_table::directory::Directory;
use crate::aggregate::group_table::keys::KeyStore;
use crate::aggregate::group_table::recent::Recent;

mod directory;
mod few;
pub(crate) mod keys;
mod recent;
mod verify;

/// Slots below this number are never renumbered: there is too little to give back.
const SHRINK_MIN: usize = 4096;

/// Rows looked up together.
const WARM_ROWS: usize = 64;

/// Groups of a table that does not stay in the second-level cache by itself.
const WARM_GROUPS_MIN: usize = 1 << 16;

/// Room of a table that is kept when it is cleared: what looks at all groups looks at all of it.
const KEPT_MAX: usize = 1 << 14;

/// With fewer groups a directory is not worth beginning.
const DIRECTORY_GROUPS_MIN: usize = 32;

/// A dictionary from keys to slots. See the module's page.
#[derive(Clone, Debug)]
pub struct GroupTable {
    key_types: Vec<DataType>,
    /// Whether equal hashes mean equal keys.
    exact: bool,
    /// Hash and slot of every live group, except that of NULL when exact; empty if there is a
    /// directory.
    table: HashTable<GroupEntry>,
    /// The same, of exact keys that lie close together.
    directory: Option<Directory>,
    /// The worker that has the keys, as far as is known.
    shard: ShardNumber,
    /// With so many groups it is looked at again whether they do.
    directory_at: usize,
    /// The NULL key, when exact.
    null: Option<GroupEntry>,
    /// Slots below `n_slots` that no group has.
    free: Vec<u32>,
    n_slots: u32,
    /// The live groups' keys, unless exact.
    keys: KeyStore,
}

/// A live group.
#[derive(Clone, Copy, Debug)]
struct GroupEntry {
    hash: u64,
    slot: u32,
    /// Where the slot is in the [`Touched`] under construction, if what is there is the slot. It is
    /// here because the row that looks for it has just fetched this cache line.
    index: u32,
}

/// The slots a batch touches.
#[derive(Clone, Debug, Default)]
pub struct Touched {
    /// For each row an index into `slot`.
    pub of_row: Vec<u32>,
    /// Distinct slots, in order of their first row.
    pub slot: Vec<u32>,
    /// For each of `slot` its first row.
    pub first_row: Vec<u32>,
}

impl GroupTable {
    /// A table without groups, for keys of these types. Zero columns are legal: all rows are one
    /// group.
    pub fn new(key_types: &[DataType]) -> GroupTable {
        let empty: Vec<ArrayRef> = key_types.iter().map(new_empty_array).collect();
        GroupTable {
            key_types: key_types.to_vec(),
            exact: empty.is_empty() || hash::is_exact(&empty),
            table: HashTable::new(),
            directory: None,
            shard: ShardNumber::SINGLE,
            directory_at: DIRECTORY_GROUPS_MIN,
            null: None,
            free: Vec::new(),
            n_slots: 0,
            keys: KeyStore::default(),
        }
    }

    /// Forgets all groups, and keeps their room unless it is much.
    pub(crate) fn clear(&mut self) {
        if self.table.capacity() > KEPT_MAX {
            *self = GroupTable::new(&self.key_types).on_shard(self.shard);
            return;
        }
        let (mut table, mut keys, mut free) =
            (std::mem::take(&mut self.table), std::mem::take(&mut self.keys), std::mem::take(&mut self.free));
        table.clear();
        keys.clear();
        free.clear();
        *self = GroupTable { table, keys, free, shard: self.shard, ..GroupTable::new(&self.key_types) };
    }

    /// Says that keys are, as a rule, those of this worker.
    pub fn on_shard(self, shard: ShardNumber) -> GroupTable {
        GroupTable { shard, ..self }
    }

    /// The slots of all rows; keys seen for the first time get one. `hashes` are those of
    /// `key_columns`, one a row.
    pub fn touch(&mut self, key_columns: &[ArrayRef], hashes: &[u64]) -> Touched {
        let mut touched = Touched { of_row: Vec::with_capacity(hashes.len()), ..Touched::default() };
        let mut new = New::default();
        if self.exact {
            self.touch_exact(key_columns, hashes, &mut touched, &mut new);
            return touched;
        }
        self.touch_recent(hashes, &mut touched, &mut new);
        for (row, &hash) in hashes.iter().enumerate().skip(touched.of_row.len()) {
            self.warm(hashes, row);
            let index = match touched.of_row.last() {
                Some(&index) if hashes[row - 1] == hash => index,
                _ => self.touch_hash(hash, row as u32, &mut touched, &mut new),
            };
            touched.of_row.push(index);
        }
        self.verify(key_columns, hashes, touched, new)
    }

    /// Touches rows as long as there are few groups. Most rows then have the hash of one of the
    /// last rows, of which it is known where their slot is.
    fn touch_recent(&mut self, hashes: &[u64], touched: &mut Touched, new: &mut New) {
        let Some(mut recent) = Recent::new(self.table.len(), hashes.len()) else { return };
        let mut of_row = std::mem::take(&mut touched.of_row);
        of_row.resize(hashes.len(), 0);
        let mut row = 0;
        loop {
            row += recent.find_while_known(&hashes[row..], &mut of_row[row..]);
            let Some(&hash) = hashes.get(row) else { break };
            if recent.is_crowded(self.table.len()) {
                let Some(larger) = Recent::new(self.table.len(), hashes.len() - row) else { break };
                recent = larger;
            }
            of_row[row] = self.touch_hash(hash, row as u32, touched, new);
            recent.enter(hash, of_row[row]);
            row += 1;
        }
        of_row.truncate(row);
        touched.of_row = of_row;
    }

    /// Makes room for so many more groups: a table that grows by doubling touches twice the memory.
    pub(crate) fn reserve(&mut self, groups: usize) {
        if self.directory.is_some() {
            return;
        }
        self.table.reserve(groups, |entry| spread(entry.hash));
    }

    /// Gives back `slot`, whose key has this hash.
    ///
    /// # Panics
    /// If no live group has this slot and hash.
    pub fn release(&mut self, slot: u32, hash: u64) {
        if self.null.is_some_and(|entry| entry.slot == slot) {
            self.null = None;
        } else if let Some(directory) = &mut self.directory {
            assert_eq!(directory.remove(hash), Some(slot), "a released slot is in the directory under its hash");
        } else {
            let entry = self.table.find_entry(spread(hash), |entry| entry.slot == slot);
            let Ok(entry) = entry else { panic!("a released slot is in the table under its hash") };
            entry.remove();
            if !self.exact {
                self.keys.release(slot);
            }
        }
        self.free.push(slot);
    }

    /// Gives memory back when most slots are free: renumbers the slots, and returns for each new
    /// slot the old one. An operator that has state by slot must follow.
    pub fn shrink(&mut self) -> Option<Vec<u32>> {
        let n_slots = self.n_slots as usize;
        if n_slots < SHRINK_MIN || self.free.len() < n_slots / 4 * 3 {
            return None;
        }
        self.give_up_directory();
        let mut old_of_new: Vec<u32> = self.table.iter().chain(&self.null).map(|entry| entry.slot).collect();
        old_of_new.sort_unstable();
        let mut new_of_old = vec![u32::MAX; n_slots];
        old_of_new.iter().enumerate().for_each(|(new, &old)| new_of_old[old as usize] = new as u32);

        let renumbered = |entry: GroupEntry| GroupEntry { slot: new_of_old[entry.slot as usize], ..entry };
        let mut table = HashTable::with_capacity(old_of_new.len());
        for entry in self.table.drain().map(renumbered) {
            table.insert_unique(spread(entry.hash), entry, |other| spread(other.hash));
        }
        self.table = table;
        self.null = self.null.map(renumbered);
        if !self.exact {
            self.keys.renumber(&old_of_new);
        }
        self.free = Vec::new();
        self.n_slots = old_of_new.len() as u32;
        self.directory_at = DIRECTORY_GROUPS_MIN;
        Some(old_of_new)
    }

    /// One more than the greatest slot in use: the length of state by slot.
    pub fn n_slots(&self) -> usize {
        self.n_slots as usize
    }

    /// Live groups.
    pub fn len(&self) -> usize {
        let directory = self.directory.as_ref().map_or(0, Directory::len);
        self.table.len() + directory + usize::from(self.null.is_some())
    }

    /// Whether there is no group.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The slots of all live groups, and their keys' columns.
    pub(crate) fn groups(&self) -> (Vec<u32>, Columns) {
        let (hashes, mut slots): (Vec<u64>, Vec<u32>) = self.hashes_and_slots().into_iter().unzip();
        if !self.exact {
            let places: Vec<(u32, u32)> = slots.iter().map(|&slot| self.keys.place(slot)).collect();
            let keys = match places.is_empty() {
                true => self.key_types.iter().map(new_empty_array).collect(),
                false => gather::interleave(&self.keys.sources(), &places),
            };
            return (slots, keys);
        }
        let mut keys: Columns = self.key_types.iter().map(|key_type| hash::unhash(key_type, &hashes)).collect();
        if let Some(null) = self.null {
            slots.push(null.slot);
            let null: Columns = self.key_types.iter().map(|key_type| new_null_array(key_type, 1)).collect();
            keys = gather::concat(&[&keys, &null]);
        }
        (slots, keys)
    }

    /// Bytes of the table and the stored keys.
    pub fn size_bytes(&self) -> usize {
        let directory = self.directory.as_ref().map_or(0, Directory::size_bytes);
        self.table.allocation_size() + directory + self.keys.size_bytes() + self.free.capacity() * size_of::<u32>()
    }

    fn touch_exact(&mut self, columns: &[ArrayRef], hashes: &[u64], touched: &mut Touched, new: &mut New) {
        let nulls = columns.first().and_then(|column| column.logical_nulls()).filter(|nulls| nulls.null_count() > 0);
        match nulls {
            Some(nulls) => self.touch_exact_rows(|row| nulls.is_null(row), hashes, touched, new),
            None => self.touch_exact_rows(|_| false, hashes, touched, new),
        }
    }

    fn touch_exact_rows(
        &mut self,
        is_null: impl Fn(usize) -> bool,
        hashes: &[u64],
        touched: &mut Touched,
        new: &mut New,
    ) {
        self.choose_form(&is_null, hashes);
        if let Some(directory) = self.directory.take() {
            self.directory = Some(self.touch_near(directory, is_null, hashes, touched));
            return;
        }
        if !(0..hashes.len()).any(&is_null) {
            self.touch_recent(hashes, touched, new);
        }
        for (row, &hash) in hashes.iter().enumerate().skip(touched.of_row.len()) {
            self.warm(hashes, row);
            let index = match touched.of_row.last() {
                _ if is_null(row) => self.touch_null(row as u32, touched),
                Some(&index) if hashes[row - 1] == hash && !is_null(row - 1) => index,
                _ => self.touch_hash(hash, row as u32, touched, new),
            };
            touched.of_row.push(index);
        }
    }

    /// Touches rows of groups that have a directory, in which there is room for them.
    fn touch_near(
        &mut self,
        mut directory: Directory,
        is_null: impl Fn(usize) -> bool,
        hashes: &[u64],
        touched: &mut Touched,
    ) -> Directory {
        for (row, &hash) in hashes.iter().enumerate() {
            if is_null(row) {
                let index = self.touch_null(row as u32, touched);
                touched.of_row.push(index);
                continue;
            }
            let slot = directory.find_or_insert(hash, || self.next_slot());
            let index = &mut directory.indexes[slot as usize];
            *index = touched.enter(slot, *index, row as u32);
            touched.of_row.push(*index);
        }
        directory
    }

    /// Begins a directory, or gives it up, by how far apart the groups are with those of some rows.
    fn choose_form(&mut self, is_null: impl Fn(usize) -> bool, hashes: &[u64]) {
        if self.directory.is_none() && self.table.len() >= self.directory_at {
            self.directory_at = self.table.len() / 2 * 3;
            self.directory = Directory::new(&self.hashes_and_slots(), self.shard);
            if self.directory.is_some() {
                self.table = HashTable::new();
            }
        }
        let some = (0..hashes.len()).find(|row| !is_null(*row)).map(|row| hashes[row]);
        let (Some(directory), Some(some)) = (&mut self.directory, some) else { return };
        let hashes = hashes.iter().enumerate().map(|(row, &hash)| if is_null(row) { some } else { hash });
        if !directory.make_room(hashes) {
            self.give_up_directory();
        }
    }

    /// Puts the groups of a directory into a hash table.
    fn give_up_directory(&mut self) {
        let Some(directory) = self.directory.take() else { return };
        self.directory_at = 2 * directory.len().max(DIRECTORY_GROUPS_MIN);
        self.table.reserve(directory.len(), |entry| spread(entry.hash));
        for (hash, slot) in directory.groups() {
            let entry = GroupEntry { hash, slot, index: u32::MAX };
            self.table.insert_unique(spread(hash), entry, |other| spread(other.hash));
        }
    }

    /// The hash and slot of every live group, except that of NULL when exact.
    fn hashes_and_slots(&self) -> Vec<(u64, u32)> {
        let hashed = self.table.iter().map(|entry| (entry.hash, entry.slot));
        hashed.chain(self.directory.iter().flat_map(Directory::groups)).collect()
    }

    /// Fetches the table's cache lines for the next rows, if it is large: a tight loop waits for
    /// all of them at once.
    #[inline]
    fn warm(&self, hashes: &[u64], row: usize) {
        if row.is_multiple_of(WARM_ROWS) && self.table.len() >= WARM_GROUPS_MIN {
            let next = hashes[row..hashes.len().min(row + WARM_ROWS)].chunk_by(|a, b| a == b).map(|same| &same[0]);
            black_box(
                next.filter(|&&hash| self.table.find(spread(hash), |entry| entry.hash == hash).is_some()).count(),
            );
        }
    }

    /// Enters a row with some slot whose key has this hash; returns where that is among those
    /// touched.
    #[inline]
    fn touch_hash(&mut self, hash: u64, row: u32, touched: &mut Touched, new: &mut New) -> u32 {
        if let Some(entry) = self.table.find_mut(spread(hash), |entry| entry.hash == hash) {
            entry.index = touched.enter(entry.slot, entry.index, row);
            return entry.index;
        }
        let slot = self.next_slot();
        let index = touched.enter(slot, u32::MAX, row);
        self.table.insert_unique(spread(hash), GroupEntry { hash, slot, index }, |entry| spread(entry.hash));
        new.push(slot, row);
        index
    }

    fn touch_null(&mut self, row: u32, touched: &mut Touched) -> u32 {
        let slot = self.null.map(|entry| entry.slot).unwrap_or_else(|| self.next_slot());
        let entry = self.null.get_or_insert(GroupEntry { hash: 0, slot, index: u32::MAX });
        entry.index = touched.enter(slot, entry.index, row);
        entry.index
    }

    fn next_slot(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.n_slots += 1;
            self.n_slots - 1
        })
    }
}

impl Touched {
    /// Where `slot` is, which a row has: at `index`, if that is its own.
    #[inline]
    fn enter(&mut self, slot: u32, index: u32, row: u32) -> u32 {
        if self.slot.get(index as usize) == Some(&slot) {
            return index;
        }
        self.slot.push(slot);
        self.first_row.push(row);
        self.slot.len() as u32 - 1
    }

    /// What rows with these slots touch.
    fn of_slots(slot_of_row: &[u32]) -> Touched {
        let mut touched = Touched::default();
        let mut index_of_slot = HashMap::new();
        for (row, &slot) in slot_of_row.iter().enumerate() {
            let index = index_of_slot.entry(slot).or_insert(u32::MAX);
            *index = touched.enter(slot, *index, row as u32);
            touched.of_row.push(*index);
        }
        touched
    }
}

/// Slots given out for a batch, each with the row whose key it stands for.
#[derive(Debug, Default)]
struct New {
    slots: Vec<u32>,
    rows: Vec<u32>,
}

impl New {
    fn push(&mut self, slot: u32, row: u32) {
        self.slots.push(slot);
        self.rows.push(row);
    }
}

#[cfg(test)]
mod tests;
