//! Keys that come twice: of primary keys, and of UNIQUE, which is an index that is checked.
//!
//! Cost: a look-up of the changed rows' keys for each key of the table.

use std::borrow::Cow;
use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};

use anabranch_batch::consolidate::consolidate;
use anabranch_batch::hash::hash_columns;
use anabranch_batch::{Batch, TextLimit, json};
use anabranch_sql::table::own_name;
use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Schema};

use crate::catalog::Object;
use crate::coerce::row_text;
use crate::error::Error;
use crate::spool::Spool;

/// Keys of rows that were read and are not in the table yet.
#[derive(Default)]
pub(crate) struct SeenKeys(Vec<SeenKey>);

/// Hashes of the values of a key.
struct SeenKey {
    key: UniqueKey,
    hashes: Hashes,
    /// Hashes that came more than once.
    repeated: Hashes,
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
    pub(crate) fn of(keys: Vec<UniqueKey>) -> SeenKeys {
        let seen = |key| SeenKey { key, hashes: Hashes::default(), repeated: Hashes::default() };
        SeenKeys(keys.into_iter().map(seen).collect())
    }

    /// Takes note of a block's keys.
    pub(crate) fn add(&mut self, block: &Batch) {
        for SeenKey { key, hashes, repeated } in &mut self.0 {
            let keys = key.of_rows(block);
            for hash in hash_columns(keys.columns(), keys.len()) {
                if !hashes.insert(hash) {
                    repeated.insert(hash);
                }
            }
        }
    }

    /// Compares the keys whose hashes were repeated. `keys` are those that the table has by now.
    pub(crate) fn check_repeated(&self, object: &Object, keys: Vec<UniqueKey>, spool: &mut Spool) -> Result<(), Error> {
        let is_new = |key: &UniqueKey| self.0.iter().all(|seen| seen.key != *key);
        let (new, known): (Vec<_>, Vec<_>) = keys.into_iter().partition(is_new);
        let mut later = SeenKeys::of(new);
        if !later.0.is_empty() {
            spool.each(|block| {
                later.add(&block);
                Ok(())
            })?;
        }
        let known = self.0.iter().filter(|seen| known.contains(&seen.key));
        for SeenKey { key, repeated, .. } in known.chain(&later.0).filter(|seen| !seen.repeated.is_empty()) {
            let mut suspects: Vec<Batch> = Vec::new();
            spool.each(|block| {
                let hashes = hash_columns(block.project(&key.columns).columns(), block.len());
                let rows = (0..block.len()).filter(|row| repeated.contains(&hashes[*row])).map(|row| row as u32);
                suspects.push(key.of_rows(&block.take(&rows.collect::<Vec<_>>())));
                Ok(())
            })?;
            check_sums(object, key, &suspects)?;
        }
        Ok(())
    }

    /// The first row, from 0, whose key a row before it has, and the error.
    pub(super) fn first_repeated(&self, object: &Object, spool: &mut Spool) -> Result<Option<(usize, Error)>, Error> {
        let mut first: Option<(usize, Error)> = None;
        for SeenKey { key, repeated, .. } in self.0.iter().filter(|seen| !seen.repeated.is_empty()) {
            let (mut places, mut suspects, mut n_before) = (Vec::new(), Vec::new(), 0);
            spool.each(|block| {
                let hashes = hash_columns(block.project(&key.columns).columns(), block.len());
                let rows = (0..block.len()).filter(|row| repeated.contains(&hashes[*row])).map(|row| row as u32);
                let rows: Vec<u32> = rows.collect();
                places.extend(rows.iter().map(|row| n_before + *row as usize));
                suspects.push(block.take(&rows));
                n_before += block.len();
                Ok(())
            })?;
            let Some(suspects) = Batch::concat(&suspects) else { continue };
            let check = |n: usize| {
                let rows: Vec<u32> = (0..n as u32).collect();
                check_distinct(object, key, &[suspects.take(&rows)])
            };
            let found = first_refused(suspects.len(), check).map(|(at, error)| (places[at], error));
            first = first.into_iter().chain(found).min_by_key(|(row, _)| *row);
        }
        Ok(first)
    }
}

/// The row, from 0, with which rows are refused, and why: `check` tells of the first n rows whether
/// they are good.
pub(super) fn first_refused(
    n_rows: usize,
    mut check: impl FnMut(usize) -> Result<(), Error>,
) -> Option<(usize, Error)> {
    let mut error = check(n_rows).err()?;
    let (mut good, mut bad) = (0, n_rows);
    while bad - good > 1 {
        let middle = good + (bad - good) / 2;
        match check(middle) {
            Ok(()) => good = middle,
            Err(earlier) => (bad, error) = (middle, earlier),
        }
    }
    Some((bad - 1, error))
}

/// Columns in which the rows of a table differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UniqueKey {
    pub(crate) columns: Vec<usize>,
    /// The index that is UNIQUE; a primary key has none.
    pub(crate) index: Option<String>,
}

impl UniqueKey {
    pub(crate) fn primary(object: &Object) -> UniqueKey {
        UniqueKey { columns: object.primary_key.clone(), index: None }
    }

    /// Rows with NULL in one of the columns of another key are all distinct.
    pub(crate) fn is_primary(&self) -> bool {
        self.index.is_none()
    }

    /// The name of the constraint, without its schema.
    fn name(&self, object: &Object) -> String {
        match &self.index {
            Some(index) => own_name(index).to_owned(),
            None => format!("{}_pkey", own_name(&object.name)),
        }
    }

    /// Columns and values of one key, as PostgreSQL tells them.
    pub(super) fn shown(&self, object: &Object, values: &str) -> String {
        format!("Key ({})=({values})", object.column_list(&self.columns))
    }

    /// The first key that these rows have more than once, as PostgreSQL tells it.
    pub(super) fn repeated_in(&self, object: &Object, rows: &[Batch]) -> Option<String> {
        let keys: Vec<Batch> = rows.iter().map(|batch| self.of_rows(batch)).collect();
        repeated(&keys).map(|values| self.shown(object, &values))
    }

    /// Refuses a key whose values are equal in several spellings, and so several keys here.
    pub(crate) fn check_types(columns: &[usize], schema: &Schema) -> Result<(), Error> {
        let of_interval = |at: &&usize| matches!(schema.field(**at).data_type(), DataType::Interval(_));
        let Some(at) = columns.iter().find(of_interval) else { return Ok(()) };
        let name = schema.field(*at).name();
        Err(Error::invalid(format!("a key of intervals (column \"{name}\") is not supported"))
            .with_detail("1 day and 24 hours are equal, and would be two keys.")
            .with_hint("Keep seconds or days as a number."))
    }

    /// Refuses new rows whose keys equal documents of other spellings, which would be other keys
    /// here.
    pub(crate) fn check_spellings(&self, object: &Object, rows: &Batch) -> Result<(), Error> {
        let is_jsonb = |at: &&usize| TextLimit::of(object.schema.field(**at)) == Some(TextLimit::Jsonb);
        for at in self.columns.iter().filter(is_jsonb) {
            let Some(documents) = rows.columns()[*at].as_string_view_opt() else { continue };
            let is_new = |row: &usize| rows.diffs().get(*row) > 0 && documents.is_valid(*row);
            let mut spelled = (0..documents.len()).filter(is_new).map(|row| documents.value(row));
            if let Some(document) = spelled.find(|document| matches!(json::without_zeros(document), Cow::Owned(_))) {
                let name = object.schema.field(*at).name();
                let message = "a number with zeros at its end in a key of jsonb is not supported";
                return Err(Error::invalid(message)
                    .with_sqlstate("0A000")
                    .with_detail(format!(
                        "Column \"{name}\" has {document}: 1.0 and 1 are equal, and would be two keys."
                    ))
                    .with_hint("Write the number without the zeros."));
            }
        }
        Ok(())
    }

    /// The keys of these rows, those left out that equal no other.
    pub(crate) fn of_rows(&self, rows: &Batch) -> Batch {
        let keys = rows.project(&self.columns);
        let nulls: Vec<&ArrayRef> = keys.columns().iter().filter(|column| column.null_count() > 0).collect();
        if self.is_primary() || nulls.is_empty() {
            return keys;
        }
        let places: Vec<u32> = (0..keys.len())
            .filter(|row| nulls.iter().all(|column| column.is_valid(*row)))
            .map(|row| row as u32)
            .collect();
        keys.take(&places)
    }
}

/// Refuses rows of a table whose keys add up to more than one row.
pub(crate) fn check_distinct(object: &Object, key: &UniqueKey, rows: &[Batch]) -> Result<(), Error> {
    check_sums(object, key, &rows.iter().map(|batch| key.of_rows(batch)).collect::<Vec<_>>())
}

/// Refuses keys that add up to more than one row.
pub(super) fn check_sums(object: &Object, key: &UniqueKey, keys: &[Batch]) -> Result<(), Error> {
    let Some(values) = repeated(keys) else { return Ok(()) };
    let name = key.name(object);
    Err(Error::data(format!("duplicate key value violates unique constraint \"{name}\""))
        .with_detail(format!("{} already exists.", key.shown(object, &values)))
        .about_constraint(&object.name, &name))
}

/// The first key that adds up to more than one row, as text.
fn repeated(keys: &[Batch]) -> Option<String> {
    let sums = consolidate(Batch::concat(keys)?);
    let row = (0..sums.len()).find(|row| sums.diffs().get(*row) > 1)?;
    Some(row_text(sums.columns(), row))
}
