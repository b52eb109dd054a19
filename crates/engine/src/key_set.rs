//! Keys to find among rows, by their hashes.
//!
//! Law: a row is found by a key that equals it in all columns; NULL equals NULL.
//!
//! Cost: a hash of each key once, and of each row that is asked about.

use std::collections::HashMap;

use anabranch_batch::equal::rows_equal;
use anabranch_batch::hash::hash_columns;
use arrow::array::{Array, ArrayRef};

/// Keys.
#[derive(Debug)]
pub(crate) struct KeySet {
    columns: Vec<ArrayRef>,
    by_hash: HashMap<u64, Vec<u32>>,
}

impl KeySet {
    pub fn new(columns: Vec<ArrayRef>) -> KeySet {
        let mut by_hash: HashMap<u64, Vec<u32>> = HashMap::new();
        for (key, hash) in hash_columns(&columns, n_rows(&columns)).into_iter().enumerate() {
            by_hash.entry(hash).or_default().push(key as u32);
        }
        KeySet { columns, by_hash }
    }

    /// The rows that equal one of the keys, in order.
    pub fn rows_among(&self, rows: &[ArrayRef]) -> Vec<u32> {
        let mut rows: Vec<u32> = self.pairs_of(rows).into_iter().map(|(row, _)| row).collect();
        rows.dedup();
        rows
    }

    /// The rows that equal one of the keys, in order, each with that key.
    pub fn pairs_of(&self, rows: &[ArrayRef]) -> Vec<(u32, u32)> {
        let (mut left, mut right) = (Vec::new(), Vec::new());
        for (row, hash) in hash_columns(rows, n_rows(rows)).into_iter().enumerate() {
            for key in self.by_hash.get(&hash).into_iter().flatten() {
                left.push(row as u32);
                right.push(*key);
            }
        }
        let equal = rows_equal(rows, &left, &self.columns, &right);
        let pairs = left.into_iter().zip(right);
        pairs.zip(equal).filter(|(_, equal)| *equal).map(|(pair, _)| pair).collect()
    }
}

fn n_rows(columns: &[ArrayRef]) -> usize {
    columns.first().map_or(0, |column| column.len())
}
