//! Keys that come twice.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};

use anabranch_batch::Batch;
use anabranch_batch::consolidate::consolidate;
use anabranch_batch::hash::hash_columns;
use arrow::array::ArrayRef;

use crate::catalog::Object;
use crate::coerce::row_text;
use crate::error::Error;
use crate::spool::Spool;

/// Hashes of the primary keys read so far.
#[derive(Default)]
pub(crate) struct SeenKeys {
    pub(crate) hashes: Hashes,
    /// Hashes that came in more than one block.
    pub(crate) repeated: Hashes,
}

/// A set of hashes, which need not be hashed again. (A tenth of loading a large file went into
/// that.)
type Hashes = HashSet<u64, BuildHasherDefault<Spread>>;

/// Spreads the bits of a hash, which keeps the order of integers, by one multiplication.
#[derive(Default)]
pub(crate) struct Spread(u64);

impl Hasher for Spread {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = (self.0 ^ hash).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

impl SeenKeys {
    /// Takes note of a block's keys, which may come more than once within it.
    pub(crate) fn add_all(&mut self, key: &[usize], block: &Batch) {
        if key.is_empty() {
            return;
        }
        let columns: Vec<ArrayRef> = key.iter().map(|column| block.column(*column).clone()).collect();
        for hash in hash_columns(&columns, block.len()) {
            if !self.hashes.insert(hash) {
                self.repeated.insert(hash);
            }
        }
    }

    /// Takes note of a block's keys, which are distinct within it.
    pub(crate) fn add(&mut self, key: &[usize], block: &Batch) {
        if key.is_empty() {
            return;
        }
        let columns: Vec<ArrayRef> = key.iter().map(|column| block.column(*column).clone()).collect();
        let hashes: Hashes = hash_columns(&columns, block.len()).into_iter().collect();
        self.repeated.extend(hashes.iter().filter(|hash| self.hashes.contains(hash)));
        self.hashes.extend(hashes);
    }

    /// Compares the keys whose hashes were repeated.
    pub(crate) fn check_repeated(&self, object: &Object, spool: &mut Spool) -> Result<(), Error> {
        if self.repeated.is_empty() {
            return Ok(());
        }
        let mut suspects: Vec<Batch> = Vec::new();
        spool.each(|block| {
            let keys = block.project(&object.primary_key);
            let hashes = hash_columns(keys.columns(), keys.len());
            let rows: Vec<u32> =
                (0..keys.len()).filter(|row| self.repeated.contains(&hashes[*row])).map(|row| row as u32).collect();
            suspects.push(keys.take(&rows));
            Ok(())
        })?;
        check_distinct(object, &suspects)
    }
}

/// Refuses keys of a table that add up to more than one row.
pub(crate) fn check_distinct(object: &Object, keys: &[Batch]) -> Result<(), Error> {
    let Some(sums) = Batch::concat(keys).map(consolidate) else { return Ok(()) };
    let Some(row) = (0..sums.len()).find(|row| sums.diffs().get(*row) > 1) else { return Ok(()) };
    Err(Error::data(format!("duplicate key in table \"{}\"", object.name)).with_detail(format!(
        "The primary key ({}) = ({}) would appear {} times.",
        object.column_list(&object.primary_key),
        row_text(sums.columns(), row),
        sums.diffs().get(row)
    )))
}
