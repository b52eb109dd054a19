//! What a transaction changes in one table.
//!
//! Law: changes are kept in the order in which they came, so that a savepoint is a number of them;
//! their sums are what COMMIT pushes. Those of some keys are found without looking at the others.
//!
//! Cost: a change costs its rows, once for itself and once for each set of columns by which changes
//! were asked for; a question by keys costs the changes that it finds. So a transaction of n
//! statements that each change a row by its key costs n, not n x n.

use std::collections::HashMap;

use anabranch_batch::consolidate::consolidate;
use anabranch_batch::hash::hash_columns;
use anabranch_batch::{Batch, Times};
use arrow::array::ArrayRef;

use crate::catalog::{Object, ObjectId};

/// What a transaction changes in one table.
#[derive(Debug)]
pub(crate) struct Staged {
    pub object: ObjectId,
    /// How often the table had been altered when the rows were made for it.
    n_altered: u64,
    /// In the order in which they came; times mean nothing.
    changes: Vec<Batch>,
    size_bytes: usize,
    indexes: Vec<StagedIndex>,
}

/// Where the changes of a key are.
#[derive(Debug)]
struct StagedIndex {
    key: Vec<usize>,
    /// Changes that it knows, the first ones.
    n_changes: usize,
    /// By the hash of the key: the change, and the row of it.
    places: HashMap<u64, Vec<(usize, u32)>>,
}

impl Staged {
    /// Of a table as it is now.
    pub fn new(table: &Object) -> Staged {
        Staged { object: table.id, n_altered: table.n_altered, changes: Vec::new(), size_bytes: 0, indexes: Vec::new() }
    }

    /// Whether the rows were made for the table as it is now.
    pub fn fits(&self, table: &Object) -> bool {
        self.object == table.id && self.n_altered == table.n_altered
    }

    /// The transaction itself has changed what the table obeys, and no row of these.
    pub fn follow(&mut self, table: &Object) {
        self.n_altered = table.n_altered;
    }

    pub fn push(&mut self, changes: Batch) {
        let changes = changes.with_times(Times::Constant(0)).flatten();
        self.size_bytes += changes.size_bytes();
        self.changes.push(changes);
    }

    /// How many changes there were.
    pub fn n_changes(&self) -> usize {
        self.changes.len()
    }

    pub fn size_bytes(&self) -> usize {
        self.size_bytes
    }

    /// Forgets all changes but the first ones.
    pub fn truncate(&mut self, n_changes: usize) {
        for index in &mut self.indexes {
            index.truncate(n_changes, &self.changes);
        }
        let gone = self.changes.split_off(n_changes.min(self.changes.len()));
        self.size_bytes -= gone.iter().map(Batch::size_bytes).sum::<usize>();
    }

    /// The sums of the changes.
    pub fn net(&self) -> Option<Batch> {
        Batch::concat(&self.changes).map(consolidate).filter(|changes| !changes.is_empty())
    }

    /// The sums of the changes whose columns `key` have one of these values, and perhaps of others.
    pub fn net_of_keys(&mut self, key: &[usize], keys: &[ArrayRef]) -> Option<Batch> {
        let at = match self.indexes.iter().position(|index| index.key == key) {
            Some(at) => at,
            None => {
                self.indexes.push(StagedIndex { key: key.to_vec(), n_changes: 0, places: HashMap::new() });
                self.indexes.len() - 1
            }
        };
        let index = &mut self.indexes[at];
        index.follow(&self.changes);
        let found: Vec<Batch> = index.rows(keys).map(|(change, rows)| self.changes[change].take(&rows)).collect();
        Batch::concat(&found).map(consolidate).filter(|changes| !changes.is_empty())
    }
}

impl StagedIndex {
    /// Takes in changes that came since.
    fn follow(&mut self, changes: &[Batch]) {
        for (change, batch) in changes.iter().enumerate().skip(self.n_changes) {
            for (row, hash) in (0..).zip(self.hashes(batch)) {
                self.places.entry(hash).or_default().push((change, row));
            }
        }
        self.n_changes = changes.len();
    }

    fn truncate(&mut self, n_changes: usize, changes: &[Batch]) {
        let known = &changes[..self.n_changes.min(changes.len())];
        for batch in known.iter().skip(n_changes) {
            for hash in self.hashes(batch) {
                // (Places of a key are in the order of the changes.)
                let Some(places) = self.places.get_mut(&hash) else { continue };
                let n_left = places.partition_point(|(change, _)| *change < n_changes);
                places.truncate(n_left);
                if places.is_empty() {
                    self.places.remove(&hash);
                }
            }
        }
        self.n_changes = self.n_changes.min(n_changes);
    }

    fn hashes(&self, batch: &Batch) -> Vec<u64> {
        let key: Vec<ArrayRef> = self.key.iter().map(|column| batch.column(*column).clone()).collect();
        hash_columns(&key, batch.len())
    }

    /// Rows with one of the keys, change by change.
    fn rows(&self, keys: &[ArrayRef]) -> impl Iterator<Item = (usize, Vec<u32>)> {
        let mut wanted = hash_columns(keys, keys.first().map_or(0, |column| column.len()));
        wanted.sort_unstable();
        wanted.dedup();
        let mut places: Vec<(usize, u32)> =
            wanted.iter().filter_map(|hash| self.places.get(hash)).flatten().copied().collect();
        places.sort_unstable();
        let mut rows: Vec<(usize, Vec<u32>)> = Vec::new();
        for (change, row) in places {
            match rows.last_mut() {
                Some((last, of_last)) if *last == change => of_last.push(row),
                _ => rows.push((change, vec![row])),
            }
        }
        rows.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use anabranch_batch::Diffs;
    use anabranch_sql::statement::ObjectKind;
    use arrow::array::Int64Array;
    use arrow::datatypes::Schema;

    use super::*;

    fn batch(rows: &[(i64, i64, i64)]) -> Batch {
        let column = |of: fn(&(i64, i64, i64)) -> i64| -> ArrayRef {
            Arc::new(Int64Array::from(rows.iter().map(of).collect::<Vec<_>>()))
        };
        let diffs = Diffs::Column(rows.iter().map(|row| row.2).collect::<Vec<_>>().into());
        Batch::with_len(vec![column(|row| row.0), column(|row| row.1)].into(), rows.len(), Times::Constant(0), diffs)
    }

    /// Keys of random changes, cut back at random, are found as all changes tell.
    #[test]
    fn changes_of_keys_are_those_of_all() {
        let mut state = 7u64;
        let mut random = |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % n
        };
        let mut staged = Staged::new(&Object::new("t", ObjectKind::Table, Arc::new(Schema::empty()), String::new()));
        for round in 0..500 {
            let rows: Vec<_> =
                (0..=random(3)).map(|_| (random(20) as i64, random(3) as i64, random(3) as i64 - 1)).collect();
            staged.push(batch(&rows));
            if round % 7 == 0 {
                let n_changes = staged.n_changes() - random(9).min(staged.n_changes() as u64) as usize;
                staged.truncate(n_changes);
            }
            let (of, wanted) =
                ([[0, 1], [1, 0]][random(2) as usize], batch(&[(random(20) as i64, random(3) as i64, 1)]));
            let key = &of[..=random(2) as usize];
            let keys: Vec<ArrayRef> = key.iter().map(|column| wanted.column(*column).clone()).collect();
            let is_wanted = |row: &u32| {
                let rows = staged.net().map(|net| hash_columns(net.project(key).columns(), net.len()));
                rows.is_some_and(|hashes| hashes[*row as usize] == hash_columns(&keys, 1)[0])
            };
            let all = staged.net();
            let n_rows = all.as_ref().map_or(0, Batch::len) as u32;
            let wanted: Vec<u32> = (0..n_rows).filter(is_wanted).collect();
            let expected = all.map(|net| net.take(&wanted)).filter(|rows| !rows.is_empty());
            let found = staged.net_of_keys(key, &keys);
            let rows = |batch: &Batch| {
                (batch.columns().to_vec(), (0..batch.len()).map(|row| batch.diffs().get(row)).collect::<Vec<_>>())
            };
            assert_eq!(found.as_ref().map(rows), expected.as_ref().map(rows), "round {round}");
        }
    }
}
