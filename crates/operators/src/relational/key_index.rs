//! The rows of a join's smaller side, by key.
//!
//! Law: a row of another batch finds all rows with an equal key, and no others; NULL keys only
//! where NULLs are equal.
//!
//! The hash of a key leads to a *place*, and a place to the keys that have it. Hashes of exact keys
//! that lie close together are places themselves, so rows that come in order look at places in
//! order; others are spread. Cost: a load or two a look-up; verification of keys whose hashes are
//! not exact, of all rows of a batch together.

use anabranch_batch::hash::{is_exact, spread};
use anabranch_batch::order::Nulls;
use anabranch_batch::{Batch, Columns, Diff, equal};
use arrow::array::{Array, ArrayRef};
use arrow::buffer::NullBuffer;

use crate::aggregate::group_table::GroupTable;

/// There is no (further) key.
const NONE: u32 = u32::MAX;

/// Exact keys are places themselves if there are so many places for each key, at most.
const PLACES_PER_KEY: u64 = 8;

/// Rows by key.
#[derive(Debug)]
pub(in crate::relational) struct KeyIndex {
    pub rows: Batch,
    key: Vec<usize>,
    nulls: Nulls,
    /// Equal hashes of rows here mean equal keys.
    is_exact: bool,
    places: Places,
    /// For each key its hash, a row that has it, and the next key of the same place.
    hashes: Vec<u64>,
    first_row: Vec<u32>,
    next: Vec<u32>,
    /// The key of each row.
    key_of_row: Vec<u32>,
    /// The rows of key `k` are `rows_by_key[starts[k]..starts[k + 1]]`; empty if each row has a key
    /// of its own.
    starts: Vec<u32>,
    rows_by_key: Vec<u32>,
}

/// Where keys are found.
#[derive(Debug)]
enum Places {
    /// At their hash less the least one.
    Near { first: u64, heads: Vec<u32> },
    /// At the low bits of their spread hash.
    Spread { heads: Vec<u32> },
}

impl Places {
    #[inline]
    fn head(&self, hash: u64) -> u32 {
        match self {
            Places::Near { first, heads } => heads.get(hash.wrapping_sub(*first) as usize).copied().unwrap_or(NONE),
            Places::Spread { heads } => heads[spread(hash) as usize & (heads.len() - 1)],
        }
    }
}

/// Rows of a batch that met a key, in order: the row, and the key's number.
#[derive(Debug, Default)]
pub(in crate::relational) struct Met {
    pub rows: Vec<u32>,
    pub keys: Vec<u32>,
}

impl KeyIndex {
    /// The index of some rows. Absent ones, and those whose key matches nothing, are left out.
    pub fn new(batches: Vec<Batch>, key: &[usize], nulls: Nulls) -> Option<KeyIndex> {
        let batches: Vec<Batch> = batches.into_iter().map(|batch| with_keys(batch.compact(), key, nulls)).collect();
        let rows = Batch::concat(&batches)?.with_key(key);
        drop(batches);
        let columns = key_columns(&rows, key);
        let hashes_of_rows = &rows.key().expect("it was just keyed").hashes;
        let types: Vec<_> = columns.iter().map(|column| column.data_type().clone()).collect();
        let touched = GroupTable::new(&types).touch(&columns, hashes_of_rows);
        let (key_of_row, first_row) = (touched.of_row, touched.first_row);
        let hashes: Vec<u64> = first_row.iter().map(|&row| hashes_of_rows[row as usize]).collect();
        let is_exact = is_exact(&columns);
        let (places, next) = places(&hashes, is_exact);
        let (starts, rows_by_key) = match first_row.len() == rows.len() {
            true => Default::default(),
            false => by_key(&key_of_row, first_row.len()),
        };
        Some(KeyIndex {
            rows,
            key: key.to_vec(),
            nulls,
            is_exact,
            places,
            hashes,
            first_row,
            next,
            key_of_row,
            starts,
            rows_by_key,
        })
    }

    /// How many keys there are.
    pub fn n_keys(&self) -> usize {
        self.first_row.len()
    }

    /// The key of each row.
    pub fn key_of_row(&self) -> &[u32] {
        &self.key_of_row
    }

    /// The rows of a key.
    pub fn rows_of(&self, key: u32) -> &[u32] {
        match self.starts.is_empty() {
            // (Rows and keys have the same numbers then.)
            true => std::slice::from_ref(&self.first_row[key as usize]),
            false => &self.rows_by_key[self.starts[key as usize] as usize..self.starts[key as usize + 1] as usize],
        }
    }

    /// The multiplicity of each key, in sum.
    pub fn sums(&self) -> Vec<Diff> {
        let mut sums = vec![0; self.n_keys()];
        for (row, &key) in self.key_of_row.iter().enumerate() {
            sums[key as usize] += self.rows.diffs().get(row);
        }
        sums
    }

    /// The rows of a batch, by the columns `key`, that meet a key here.
    pub fn meet(&self, batch: &Batch, key: &[usize]) -> Met {
        let hashes = &batch.key().expect("what is looked up is keyed").hashes;
        let columns = key_columns(batch, key);
        let nulls = if self.nulls == Nulls::Differ { nulls_of(&columns) } else { None };
        let mut met = Met::default();
        match (batch.present(), nulls) {
            (None, None) => self.look_up(hashes, |_| true, &mut met),
            (present, nulls) => {
                let is_present = |row: usize| present.is_none_or(|present| present.value(row));
                let is_valid = |row: usize| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
                self.look_up(hashes, |row| is_present(row) && is_valid(row), &mut met);
            }
        }
        if !(self.is_exact && is_exact_but_nulls(&columns, self.nulls)) {
            self.verify(&columns, &mut met);
        }
        met
    }

    #[inline]
    fn look_up(&self, hashes: &[u64], is_wanted: impl Fn(usize) -> bool, met: &mut Met) {
        for (row, &hash) in hashes.iter().enumerate() {
            let mut key = self.places.head(hash);
            while key != NONE {
                if self.hashes[key as usize] == hash && is_wanted(row) {
                    met.rows.push(row as u32);
                    met.keys.push(key);
                }
                key = self.next[key as usize];
            }
        }
    }

    /// Leaves out what met by its hash alone.
    fn verify(&self, columns: &[ArrayRef], met: &mut Met) {
        let own = key_columns(&self.rows, &self.key);
        let firsts: Vec<u32> = met.keys.iter().map(|&key| self.first_row[key as usize]).collect();
        let equal = equal::rows_equal(&own, &firsts, columns, &met.rows);
        if !equal.iter().all(|equal| *equal) {
            let mut of_row = equal.iter();
            met.rows.retain(|_| *of_row.next().expect("each has a verdict"));
            let mut of_key = equal.iter();
            met.keys.retain(|_| *of_key.next().expect("each has a verdict"));
        }
    }

    pub fn size_bytes(&self) -> usize {
        let heads = match &self.places {
            Places::Near { heads, .. } | Places::Spread { heads } => heads.capacity(),
        };
        let lists = [&self.first_row, &self.next, &self.key_of_row, &self.starts, &self.rows_by_key];
        let lists: usize = lists.iter().map(|list| list.capacity()).sum();
        self.rows.size_bytes() + (heads + lists) * size_of::<u32>() + self.hashes.capacity() * size_of::<u64>()
    }
}

/// The columns of a key.
fn key_columns(batch: &Batch, key: &[usize]) -> Vec<ArrayRef> {
    key.iter().map(|&column| batch.column(column).clone()).collect()
}

/// Whether hashes are exact where a NULL is not looked up.
fn is_exact_but_nulls(columns: &[ArrayRef], nulls: Nulls) -> bool {
    match columns {
        [column] if nulls == Nulls::Differ && column.null_count() > 0 => {
            // (The type decides.)
            is_exact(&[arrow::array::new_empty_array(column.data_type())])
        }
        columns => is_exact(columns),
    }
}

/// Where some of the columns are NULL, if there are such rows.
fn nulls_of(columns: &[ArrayRef]) -> Option<NullBuffer> {
    let all = columns
        .iter()
        .fold(None, |all: Option<NullBuffer>, column| NullBuffer::union(all.as_ref(), column.logical_nulls().as_ref()));
    all.filter(|nulls| nulls.null_count() > 0)
}

/// The rows with a key that may match something.
fn with_keys(batch: Batch, key: &[usize], nulls: Nulls) -> Batch {
    match nulls_of(&key_columns(&batch, key)).filter(|_| nulls == Nulls::Differ) {
        Some(nulls) => batch.filter(&arrow::array::BooleanArray::new(nulls.into_inner(), None)),
        None => batch,
    }
}

/// The places of keys with these hashes, and for each key the next of its place.
fn places(hashes: &[u64], is_exact: bool) -> (Places, Vec<u32>) {
    let mut next = vec![NONE; hashes.len()];
    let span = hashes.iter().fold((u64::MAX, 0), |(least, most), &hash| (least.min(hash), most.max(hash)));
    let span = span.1.checked_sub(span.0).map(|span_length| (span.0, span_length));
    if let Some((first, length)) = span.filter(|(_, length)| is_exact && *length < PLACES_PER_KEY * hashes.len() as u64)
    {
        let mut heads = vec![NONE; length as usize + 1];
        (0u32..).zip(hashes).for_each(|(key, &hash)| heads[(hash - first) as usize] = key);
        return (Places::Near { first, heads }, next);
    }
    let mut heads = vec![NONE; (2 * hashes.len()).next_power_of_two()];
    let mask = heads.len() - 1;
    for (key, &hash) in (0u32..).zip(hashes) {
        let head = &mut heads[spread(hash) as usize & mask];
        next[key as usize] = std::mem::replace(head, key);
    }
    (Places::Spread { heads }, next)
}

/// The rows of each key, one key behind the other, and where those of each begin.
fn by_key(key_of_row: &[u32], n_keys: usize) -> (Vec<u32>, Vec<u32>) {
    let mut starts = vec![0u32; n_keys + 1];
    key_of_row.iter().for_each(|&key| starts[key as usize + 1] += 1);
    for key in 0..n_keys {
        starts[key + 1] += starts[key];
    }
    let mut next = starts.clone();
    let mut rows = vec![0u32; key_of_row.len()];
    for (row, &key) in (0u32..).zip(key_of_row) {
        rows[next[key as usize] as usize] = row;
        next[key as usize] += 1;
    }
    (starts, rows)
}

/// Columns of a batch, in an order of rows.
pub(in crate::relational) fn gathered(batch: &Batch, columns: &[usize], rows: &[u32]) -> Columns {
    let columns: Vec<ArrayRef> = key_columns(batch, columns);
    anabranch_batch::gather::take(&columns, rows)
}
