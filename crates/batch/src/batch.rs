//! A batch: immutable columnar updates, cheap to clone.
//!
//! Law: a batch *means* its updates: row `i` at `times.get(i)` with `diffs.get(i)`, for every row
//! that is present, and the opposite update at the end of its lifetime if it has one. A row whose
//! `until` lies before its time is an *end edge*: the end, at `time`, of a row that began at
//! `until` without an end, so it means the opposite update at `time` (Trill 2.2: sync-time and
//! other-time). A row that ends when it begins means nothing. Every method says what it does to
//! that meaning; which physical form it picks (constants, absence bitmap, shared buffers) is free.
//!
//! Cost: `clone`, `slice`, `project` and the `with_` methods move pointers only (`with_key` hashes
//! unless the batch is already keyed so). `take`, `filter`, `compact`, `concat` copy the rows they
//! keep, column by column.

use arrow::array::{Array, ArrayRef, BooleanArray};
use arrow::buffer::BooleanBuffer;
use arrow::compute;
use std::sync::Arc;

use crate::control::{Diffs, END, Key, Time, Times, Until};
use crate::order::sort_by_time;
use crate::route::ShardNumber;
use crate::{gather, hash};

/// The columns of a batch, one array a column, all of the same length.
pub type Columns = Arc<[ArrayRef]>;

/// Immutable columnar updates. See the module's page for what it means and costs.
#[derive(Clone, Debug)]
pub struct Batch {
    /// Payload; every array has `len` rows.
    columns: Columns,
    /// Physical rows, absent ones included. Kept because zero columns are legal.
    len: usize,
    /// Time of each row; less than [`END`].
    times: Times,
    /// Signed multiplicity of each row.
    diffs: Diffs,
    /// End of each row's lifetime.
    until: Until,
    /// Key columns and their hashes, when computed.
    key: Option<Key>,
    /// Rows that count; `None` when all do.
    present: Option<BooleanBuffer>,
}

impl Default for Batch {
    /// No rows and no columns.
    fn default() -> Self {
        Batch::with_len(Arc::from([]), 0, Times::Constant(0), Diffs::Constant(1))
    }
}

impl Batch {
    /// A batch of these columns, all rows present, without lifetimes and unkeyed.
    ///
    /// The number of rows is that of the first column; without columns, that of `times` or `diffs`,
    /// and 0 if both are constant.
    ///
    /// # Panics
    /// If columns, times and diffs differ in length.
    ///
    /// ```
    /// use anabranch_batch::{Batch, Diffs, Times};
    /// use arrow::array::Int64Array;
    /// use std::sync::Arc;
    /// let batch = Batch::new(vec![Arc::new(Int64Array::from(vec![7, 8]))], Times::Constant(3), Diffs::Constant(1));
    /// assert_eq!((batch.len(), batch.times().get(1), batch.diffs().get(1)), (2, 3, 1));
    /// ```
    pub fn new(columns: Vec<ArrayRef>, times: Times, diffs: Diffs) -> Batch {
        let len = match (columns.first(), &times, &diffs) {
            (Some(column), ..) => column.len(),
            (None, Times::Column(times), _) => times.len(),
            (None, _, Diffs::Column(diffs)) => diffs.len(),
            (None, ..) => 0,
        };
        Batch::with_len(columns.into(), len, times, diffs)
    }

    /// As [`Batch::new`], with the number of rows said aloud: rows without columns are legal.
    ///
    /// # Panics
    /// If columns, times or diffs are not `len` long.
    pub fn with_len(columns: Columns, len: usize, times: Times, diffs: Diffs) -> Batch {
        assert!(columns.iter().all(|column| column.len() == len), "columns of a batch have {len} rows each");
        assert!(times.fits(len) && diffs.fits(len), "times and diffs of a batch have {len} entries each");
        Batch { columns, len, times, diffs, until: Until::Forever, key: None, present: None }
    }

    /// Physical rows, absent ones included.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no physical rows.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Rows that are present.
    pub fn n_present(&self) -> usize {
        self.present.as_ref().map_or(self.len, BooleanBuffer::count_set_bits)
    }

    /// The payload.
    pub fn columns(&self) -> &Columns {
        &self.columns
    }

    /// One column.
    ///
    /// # Panics
    /// If there is no such column.
    pub fn column(&self, column: usize) -> &ArrayRef {
        &self.columns[column]
    }

    /// The time of each row.
    pub fn times(&self) -> &Times {
        &self.times
    }

    /// The multiplicity of each row.
    pub fn diffs(&self) -> &Diffs {
        &self.diffs
    }

    /// The end of each row's lifetime.
    pub fn until(&self) -> &Until {
        &self.until
    }

    /// Which rows count; `None` when all do.
    pub fn present(&self) -> Option<&BooleanBuffer> {
        self.present.as_ref()
    }

    /// The key columns and their hashes, if the batch is keyed.
    pub fn key(&self) -> Option<&Key> {
        self.key.as_ref()
    }

    /// Keyed by these columns. Hashes every row unless the batch is already keyed by exactly these
    /// columns in this order.
    ///
    /// # Panics
    /// If there is no such column.
    pub fn with_key(self, columns: &[usize]) -> Batch {
        if self.key.as_ref().is_some_and(|key| *key.columns == *columns) {
            return self;
        }
        let arrays: Vec<ArrayRef> = columns.iter().map(|&column| self.columns[column].clone()).collect();
        let hashes = hash::hash_columns(&arrays, self.len);
        Batch { key: Some(Key::new(columns, hashes)), ..self }
    }

    /// Keyed by `key`, whose hashes the caller computed.
    ///
    /// # Panics
    /// If `key` does not have one hash per row, or names a column that is not there.
    pub fn with_hashes(self, key: Key) -> Batch {
        assert_eq!(key.hashes.len(), self.len, "a key has one hash per row");
        assert!(key.columns.iter().all(|&column| column < self.columns.len()), "key columns exist");
        Batch { key: Some(key), ..self }
    }

    /// All rows belong to this shard by the hashes of their key.
    pub(crate) fn with_home(self, home: ShardNumber) -> Batch {
        let key = self.key.map(|key| Key { home: Some(home), ..key });
        Batch { key, ..self }
    }

    /// Without a key.
    pub fn without_key(self) -> Batch {
        Batch { key: None, ..self }
    }

    /// With these lifetimes instead.
    ///
    /// # Panics
    /// If `until` is a column of another length.
    pub fn with_until(self, until: Until) -> Batch {
        assert!(until.fits(self.len), "lifetimes of a batch have {} entries", self.len);
        Batch { until, ..self }
    }

    /// With only those present rows whose bit of `present` is set.
    ///
    /// # Panics
    /// If `present` does not have one bit per row.
    pub fn with_present(self, present: BooleanBuffer) -> Batch {
        assert_eq!(present.len(), self.len, "a presence bitmap has one bit per row");
        let present = match &self.present {
            Some(before) => before & &present,
            None => present,
        };
        Batch { present: present.has_false().then_some(present), ..self }
    }

    /// At these times instead. Lifetimes given as durations move along; those given as ends stay.
    ///
    /// # Panics
    /// If `times` is a column of another length.
    pub fn with_times(self, times: Times) -> Batch {
        assert!(times.fits(self.len), "times of a batch have {} entries", self.len);
        Batch { times, ..self }
    }

    /// With these multiplicities instead.
    ///
    /// # Panics
    /// If `diffs` is a column of another length.
    pub fn with_diffs(self, diffs: Diffs) -> Batch {
        assert!(diffs.fits(self.len), "diffs of a batch have {} entries", self.len);
        Batch { diffs, ..self }
    }

    /// With this payload instead, unkeyed.
    ///
    /// # Panics
    /// If a column has another length.
    pub fn with_columns(self, columns: Columns) -> Batch {
        assert!(columns.iter().all(|column| column.len() == self.len), "columns of a batch have {} rows", self.len);
        Batch { columns, key: None, ..self }
    }

    /// The payload reduced to `columns`, in that order; repeats are fine. The key stays if all its
    /// columns do.
    ///
    /// # Panics
    /// If there is no such column.
    pub fn project(&self, columns: &[usize]) -> Batch {
        let key = self.key.as_ref().and_then(|key| {
            let position = |column: &usize| columns.iter().position(|kept| kept == column);
            let moved = key.columns.iter().map(position).collect::<Option<Arc<[usize]>>>()?;
            Some(key.at(moved))
        });
        let columns = columns.iter().map(|&column| self.columns[column].clone()).collect();
        Batch { columns, key, ..self.clone() }
    }

    /// The same updates without absent rows. No work when all are present.
    pub fn compact(self) -> Batch {
        match self.present {
            None => self,
            Some(present) => Batch { present: None, ..self }.filter_non_null(&BooleanArray::new(present, None)),
        }
    }

    /// The same updates without absent rows and lifetimes: +1 at `time`, -1 at `until` when that is
    /// before [`END`]; -1 at `time` for an end edge. Rows whose lifetime is empty cancel and are
    /// left out. No work when there is nothing to write out.
    pub fn flatten(self) -> Batch {
        let batch = self.compact();
        if matches!(batch.until, Until::Forever) {
            return batch;
        }
        let (mut starts, mut stops) = (Vec::with_capacity(batch.len), Vec::with_capacity(batch.len));
        let mut stop_times = Vec::with_capacity(batch.len);
        for row in 0..batch.len {
            let time = batch.times.get(row);
            let until = batch.until.get(row, time);
            if until > time {
                starts.push(row as u32);
            }
            // (An end edge ends at its own time.)
            if until != time && until < END {
                stops.push(row as u32);
                stop_times.push(until.max(time));
            }
        }
        let stop_times = Times::Column(stop_times.into()).simplify();
        let start_edges = Batch { until: Until::Forever, ..batch.take(&starts) };
        let stop_edges = Batch { until: Until::Forever, times: stop_times, ..batch.take(&stops).negate() };
        Batch::concat(&[start_edges, stop_edges]).expect("two batches were given")
    }

    /// The physical rows `rows`, in that order; repeats are fine.
    ///
    /// # Panics
    /// If a row is out of bounds.
    pub fn take(&self, rows: &[u32]) -> Batch {
        Batch {
            columns: gather::take(&self.columns, rows),
            len: rows.len(),
            times: self.times.take(rows),
            diffs: self.diffs.take(rows),
            until: self.until.take(rows),
            key: self.key.as_ref().map(|key| key.take(rows)),
            present: self.present.as_ref().map(|bits| rows.iter().map(|&row| bits.value(row as usize)).collect()),
        }
    }

    /// The physical rows `offset .. offset + len`, sharing memory with this batch.
    ///
    /// # Panics
    /// If the range is out of bounds.
    pub fn slice(&self, offset: usize, len: usize) -> Batch {
        assert!(offset.checked_add(len).is_some_and(|end| end <= self.len), "a slice lies inside its batch");
        Batch {
            columns: self.columns.iter().map(|column| column.slice(offset, len)).collect(),
            len,
            times: self.times.slice(offset, len),
            diffs: self.diffs.slice(offset, len),
            until: self.until.slice(offset, len),
            key: self.key.as_ref().map(|key| key.slice(offset, len)),
            present: self.present.as_ref().map(|present| present.slice(offset, len)),
        }
    }

    /// The physical rows for which `keep` is true; null counts as false.
    ///
    /// # Panics
    /// If `keep` does not have one entry per row.
    pub fn filter(&self, keep: &BooleanArray) -> Batch {
        assert_eq!(keep.len(), self.len, "a filter has one entry per row");
        match keep.nulls() {
            Some(_) => self.filter_non_null(&compute::prep_null_mask_filter(keep)),
            None => self.filter_non_null(keep),
        }
    }

    /// All rows of all batches, in turn; `None` for no batches. Keyed when all (non-empty) batches
    /// are keyed alike.
    ///
    /// # Panics
    /// If column types differ, empty batches aside.
    pub fn concat(batches: &[Batch]) -> Option<Batch> {
        let full: Vec<&Batch> = batches.iter().filter(|batch| !batch.is_empty()).collect();
        match full.as_slice() {
            [] => batches.first().cloned(),
            [one] => Some((*one).clone()),
            many => Some(Batch::concat_full(many)),
        }
    }

    /// The rows in order of time, rows of one time as they were.
    pub fn in_time_order(self) -> Batch {
        match &self.times {
            Times::Column(times) if !times.is_sorted() => self.take(&sort_by_time(times)),
            _ => self,
        }
    }

    /// The updates with times after `time`.
    pub fn after(&self, time: Time) -> Batch {
        match &self.times {
            times if times.min() > time => self.clone(),
            Times::Constant(_) => self.slice(0, 0),
            Times::Column(times) => {
                let keep: BooleanArray = times.iter().map(|of_row| Some(*of_row > time)).collect();
                self.filter(&keep)
            }
        }
    }

    /// The same rows with opposite multiplicities.
    pub fn negate(self) -> Batch {
        Batch { diffs: self.diffs.negate(), ..self }
    }

    /// Bytes this batch keeps alive. A buffer shared by several columns or batches counts for each.
    pub fn size_bytes(&self) -> usize {
        let columns: usize = self.columns.iter().map(|column| column.get_buffer_memory_size()).sum();
        let control = self.times.size_bytes() + self.diffs.size_bytes() + self.until.size_bytes();
        let key = self.key.as_ref().map_or(0, |key| key.hashes.inner().capacity());
        let present = self.present.as_ref().map_or(0, |present| present.inner().capacity());
        columns + control + key + present
    }

    /// All rows declared present; the caller left out the absent ones.
    pub(crate) fn assume_present(self) -> Batch {
        debug_assert!(self.present.as_ref().is_none_or(|present| !present.has_false()));
        Batch { present: None, ..self }
    }

    fn filter_non_null(&self, keep: &BooleanArray) -> Batch {
        let len = keep.values().count_set_bits();
        if len == self.len {
            return self.clone();
        }
        if let Some(rows) = gather::scattered_rows(keep.values()) {
            return self.take(&rows);
        }
        Batch {
            columns: gather::filter(&self.columns, keep),
            len,
            times: self.times.filter(keep),
            diffs: self.diffs.filter(keep),
            until: self.until.filter(keep),
            key: self.key.as_ref().map(|key| key.filter(keep)),
            present: self.present.as_ref().map(|bits| keep.values().set_indices().map(|row| bits.value(row)).collect()),
        }
    }

    fn concat_full(batches: &[&Batch]) -> Batch {
        let width = batches[0].columns.len();
        assert!(
            batches.iter().all(|batch| batch.columns.len() == width),
            "batches of one stream have the same columns"
        );
        let times: Vec<_> = batches.iter().map(|batch| (&batch.times, batch.len)).collect();
        let diffs: Vec<_> = batches.iter().map(|batch| (&batch.diffs, batch.len)).collect();
        let until: Vec<_> = batches.iter().map(|batch| (&batch.until, &batch.times, batch.len)).collect();
        let sources: Vec<&[ArrayRef]> = batches.iter().map(|batch| &*batch.columns).collect();
        Batch {
            columns: gather::concat(&sources),
            len: batches.iter().map(|batch| batch.len).sum(),
            times: Times::concat(&times),
            diffs: Diffs::concat(&diffs),
            until: Until::concat(&until),
            key: concat_keys(batches),
            present: concat_present(batches),
        }
    }
}

fn concat_keys(batches: &[&Batch]) -> Option<Key> {
    let columns = batches[0].key.as_ref()?.columns.clone();
    let keys: Option<Vec<&Key>> = batches.iter().map(|batch| batch.key.as_ref()).collect();
    let keys = keys.filter(|keys| keys.iter().all(|key| key.columns == columns))?;
    let hashes: Vec<u64> = keys.iter().flat_map(|key| key.hashes.iter().copied()).collect();
    let home = keys[0].home.filter(|home| keys.iter().all(|key| key.home == Some(*home)));
    Some(Key { home, ..Key::new(columns, hashes) })
}

fn concat_present(batches: &[&Batch]) -> Option<BooleanBuffer> {
    batches.iter().find(|batch| batch.present.is_some())?;
    let mut bits = arrow::array::BooleanBufferBuilder::new(batches.iter().map(|batch| batch.len).sum());
    for batch in batches {
        match &batch.present {
            Some(present) => bits.append_buffer(present),
            None => bits.append_n(batch.len, true),
        }
    }
    Some(bits.finish())
}

#[cfg(test)]
mod tests;
