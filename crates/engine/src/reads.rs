//! What a transaction has read, and what has changed since.
//!
//! Law: a transaction may commit if nothing that it has read has changed since: then all of it
//! could have happened at its commit. What it looked up by keys has changed if a row with one of
//! these keys came or went; what it read otherwise, if any row of the relation did. A conflict may
//! be found where there is none (two keys of one hash, a change that another takes back), never
//! missed.
//!
//! Cost: a key that is read costs its hash. A check costs the rows that have changed since the last
//! one, once for each set of columns by which the relation was asked. Relations whose changes no
//! transaction asks for are not followed.

use std::collections::{BTreeMap, HashSet, VecDeque};

use anabranch_batch::hash::hash_columns;
use anabranch_batch::{Batch, Time};
use arrow::array::ArrayRef;

use crate::catalog::ObjectId;

/// Keys of one relation that a transaction takes note of; with more, it has read all of it.
const KEYS_MAX: usize = 100_000;
/// Changed rows of a relation that are known, at most.
const ROWS_MAX: usize = 1 << 13;
/// Their bytes, at most.
const BYTES_MAX: usize = 4 << 20;
/// Commits to a relation after which its changes are followed no more, unless they are asked for.
const COMMITS_MAX: usize = 1 << 12;

/// What was read of a relation.
#[derive(Clone, Debug)]
pub(crate) enum ReadRows {
    /// Any of them may have been.
    All,
    /// By the columns that were fixed: hashes of their values.
    Keys(BTreeMap<Vec<usize>, HashSet<u64>>),
}

impl ReadRows {
    /// Of no row yet.
    pub fn none() -> ReadRows {
        ReadRows::Keys(BTreeMap::new())
    }

    /// Takes note of rows whose columns `key` have one of these values.
    pub fn add(&mut self, key: &[usize], keys: &[ArrayRef]) {
        let ReadRows::Keys(of) = self else { return };
        let hashes = hash_columns(keys, keys.first().map_or(0, |column| column.len()));
        of.entry(key.to_vec()).or_default().extend(hashes);
        if of.values().map(HashSet::len).sum::<usize>() > KEYS_MAX {
            *self = ReadRows::All;
        }
    }

    /// Whether a changed row is one of those that were read.
    fn meets(&self, changes: &Batch) -> bool {
        match self {
            ReadRows::All => !changes.is_empty(),
            ReadRows::Keys(of) => of.iter().any(|(key, hashes)| {
                hash_columns(changes.project(key).columns(), changes.len()).iter().any(|hash| hashes.contains(hash))
            }),
        }
    }
}

/// Relations that changed last, and when; of those that transactions look keys up in, with what.
#[derive(Debug, Default)]
pub(crate) struct ChangedRelations {
    last: BTreeMap<ObjectId, Time>,
    followed: BTreeMap<ObjectId, Followed>,
}

/// What has changed in a relation lately.
#[derive(Debug)]
struct Followed {
    /// All changes after this time are known.
    after: Time,
    changes: VecDeque<(Time, Batch)>,
    n_rows: usize,
    size_bytes: usize,
    /// Commits since they were asked for.
    n_unasked: usize,
}

impl ChangedRelations {
    /// Takes note of a change.
    pub fn note(&mut self, object: ObjectId, time: Time, changes: &Batch) {
        self.last.insert(object, time);
        let Some(followed) = self.followed.get_mut(&object) else { return };
        followed.n_unasked += 1;
        match followed.n_unasked > COMMITS_MAX {
            true => drop(self.followed.remove(&object)),
            false => followed.note(time, changes),
        }
    }

    /// Follows a relation's changes from the last commit on.
    pub fn follow(&mut self, object: ObjectId, last: Time) {
        let new = || Followed { after: last, changes: VecDeque::new(), n_rows: 0, size_bytes: 0, n_unasked: 0 };
        self.followed.entry(object).or_insert_with(new).n_unasked = 0;
    }

    /// Whether any of a relation's rows has changed after a time.
    pub fn has_changed(&self, object: ObjectId, after: Time) -> bool {
        self.last.get(&object).is_some_and(|time| *time > after)
    }

    /// Whether what was read of a relation may have changed after a time.
    pub fn have_met(&self, object: ObjectId, after: Time, read: &ReadRows) -> bool {
        if !self.has_changed(object, after) || matches!(read, ReadRows::All) {
            return self.has_changed(object, after);
        }
        let Some(followed) = self.followed.get(&object).filter(|followed| followed.after <= after) else { return true };
        followed.changes.iter().rev().take_while(|(time, _)| *time > after).any(|(_, changes)| read.meets(changes))
    }
}

impl Followed {
    fn note(&mut self, time: Time, changes: &Batch) {
        self.n_rows += changes.len();
        self.size_bytes += changes.size_bytes();
        self.changes.push_back((time, changes.clone()));
        while self.n_rows > ROWS_MAX || self.size_bytes > BYTES_MAX {
            let Some((time, gone)) = self.changes.pop_front() else { break };
            self.n_rows -= gone.len();
            self.size_bytes -= gone.size_bytes();
            self.after = time;
        }
    }
}
