//! Rows of a batch that all workers get, dealt out by the hash of a key: once for all readers.
//!
//! ```text
//! parts of the batch      0 1 2 3 4 5 6 7
//! worker 0 begins here    ^
//! worker 1 begins here            ^        and goes on with part 0 behind part 7
//! ```
//!
//! Law: what a worker takes are the rows whose hashes it has, in order, as
//! [`at_home`](anabranch_batch::at_home) gives them; of rows that pass a filter, if there is one.
//! No worker waits: one that finds a part begun by another, and not done, computes it for itself.
//! Cost: the filter and a hash of what passes a row in all, where each worker alone would compute
//! them for each import; columns are copied once a worker, however many imports want them. Memory:
//! numbers and hashes of rows, as long as the batch is on its way to one who reads it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use anabranch_batch::{Batch, Key, ShardNumber, gather, hash, places_by_shard};
use arrow::array::ArrayRef;
use arrow::buffer::ScalarBuffer;

use crate::account::Account;
use crate::line::Apply;

/// Rows of a part: some 20 microseconds of work.
const PART_ROWS: usize = 1 << 13;

/// The numbers of the rows that pass, of a batch without absent rows; `None` if one fails.
pub type Passing = Box<dyn Fn(&Batch) -> Option<Vec<u32>>>;

/// A filter that all workers have, of a step of a dataflow.
pub struct SharedFilter {
    /// The dataflow.
    pub of: Account,
    /// The number of the step.
    pub step: usize,
    /// What it does to a batch.
    pub apply: Apply,
    /// The rows that it lets pass.
    pub passing: Passing,
    /// The columns that it keeps, of those that it looks at.
    pub kept: Vec<usize>,
}

/// How a batch is dealt out. Columns are those of the batch.
pub(crate) struct WantedRows<'a> {
    /// Columns wanted.
    pub columns: &'a [usize],
    /// Columns of the key.
    pub key: &'a [usize],
    /// The filter, with the columns that it looks at.
    pub filter: Option<(&'a SharedFilter, &'a [usize])>,
    pub shard: ShardNumber,
}

/// Rows of one batch by the hashes of keys.
#[derive(Debug)]
pub(crate) struct DealtRows {
    workers: usize,
    keys: Mutex<Vec<Arc<KeyRows>>>,
}

/// Rows by the hash of one key, behind one filter.
#[derive(Debug)]
struct KeyRows {
    key: Vec<usize>,
    /// The dataflow and step whose filter it is.
    filter: Option<(Account, usize)>,
    parts: Vec<Part>,
    /// What each worker has taken.
    taken: Vec<Mutex<Taken>>,
}

/// A part of the batch.
#[derive(Debug, Default)]
struct Part {
    is_begun: AtomicBool,
    /// `None` if the filter fails for a row.
    rows: OnceLock<Option<PartRows>>,
}

/// The rows of a part that pass.
#[derive(Debug)]
struct PartRows {
    /// Numbers of the rows in the batch, unless all pass.
    passing: Option<Vec<u32>>,
    hashes: Vec<u64>,
    /// For each worker, which of these it has.
    places: Vec<Vec<u32>>,
}

/// What one worker has taken of the batch.
#[derive(Debug, Default)]
struct Taken {
    /// Its rows, once they are known.
    rows: Option<Arc<OwnRows>>,
    /// Columns of the batch by their numbers, with these rows alone.
    columns: Vec<(usize, ArrayRef)>,
}

/// Rows of one worker.
#[derive(Debug)]
struct OwnRows {
    rows: Vec<u32>,
    hashes: ScalarBuffer<u64>,
}

impl DealtRows {
    pub fn of_workers(workers: usize) -> DealtRows {
        DealtRows { workers, keys: Mutex::default() }
    }

    pub fn workers(&self) -> usize {
        self.workers
    }

    /// The rows that a shard has by the hash of the key, with the columns wanted. Keyed, if the key
    /// is among them. `None` if the filter fails for a row: all workers find the same.
    ///
    /// # Panics
    /// If the batch has absent rows or another number of shards than workers, or is not that of
    /// earlier calls.
    pub fn take(&self, batch: &Batch, wanted: &WantedRows<'_>) -> Option<Batch> {
        let WantedRows { columns, key, shard, .. } = *wanted;
        assert!(batch.present().is_none(), "batches that are dealt out are compact");
        assert_eq!(shard.of(), self.workers, "a shard is a worker");
        let known = self.rows_by(batch, wanted);
        // (What a panic left behind is whole: rows and columns are put in when they are made.)
        let mut taken = known.taken[shard.index()].lock().unwrap_or_else(PoisonError::into_inner);
        let own = match &taken.rows {
            Some(own) => Arc::clone(own),
            None => Arc::clone(taken.rows.insert(Arc::new(known.own_rows(batch, wanted)?))),
        };
        let of_column = |column: &usize| taken.column(batch, *column, &own.rows);
        let arrays: Vec<ArrayRef> = columns.iter().map(of_column).collect();
        let out = batch.project(&[]).take(&own.rows).with_columns(arrays.into());
        let place = |column: &usize| columns.iter().position(|wanted| wanted == column);
        Some(match key.iter().map(place).collect::<Option<Arc<[usize]>>>() {
            Some(columns) => out.with_hashes(Key { home: Some(shard), ..Key::new(columns, own.hashes.clone()) }),
            None => out,
        })
    }

    /// What is known of rows that are dealt out so.
    fn rows_by(&self, batch: &Batch, wanted: &WantedRows<'_>) -> Arc<KeyRows> {
        let filter = wanted.filter.map(|(filter, _)| (&filter.of, filter.step));
        let is_alike = |known: &&Arc<KeyRows>| {
            let same_filter = match (&known.filter, filter) {
                (None, None) => true,
                (Some((of, step)), Some((account, other))) => of.is(account) && *step == other,
                _ => false,
            };
            same_filter && known.key == wanted.key
        };
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = keys.iter().find(is_alike) {
            return Arc::clone(known);
        }
        let parts = (0..batch.len().div_ceil(PART_ROWS)).map(|_| Part::default()).collect();
        let taken = (0..self.workers).map(|_| Mutex::default()).collect();
        let filter = filter.map(|(of, step)| (of.clone(), step));
        let made = Arc::new(KeyRows { key: wanted.key.to_vec(), filter, parts, taken });
        keys.push(Arc::clone(&made));
        made
    }
}

impl KeyRows {
    /// The rows of one shard, of all parts. Parts that no worker has begun are computed for all.
    fn own_rows(&self, batch: &Batch, wanted: &WantedRows<'_>) -> Option<OwnRows> {
        let (n, shard) = (self.parts.len(), wanted.shard);
        let first = n * shard.index() / shard.of();
        for at in (first..n).chain(0..first) {
            let part = &self.parts[at];
            if !part.is_begun.swap(true, Ordering::Relaxed) {
                // (Who begins a part is the only one to set it.)
                let _ = part.rows.set(rows_of_part(batch, at, wanted));
            }
        }
        let most = batch.len() / shard.of() + PART_ROWS;
        let mut own = (Vec::with_capacity(most), Vec::with_capacity(most));
        for (at, part) in self.parts.iter().enumerate() {
            let made;
            let rows = match part.rows.get() {
                Some(rows) => rows.as_ref()?,
                None => {
                    made = rows_of_part(batch, at, wanted)?;
                    &made
                }
            };
            let places = &rows.places[shard.index()];
            match &rows.passing {
                Some(passing) => own.0.extend(places.iter().map(|place| passing[*place as usize])),
                None => own.0.extend(places.iter().map(|place| (at * PART_ROWS) as u32 + place)),
            }
            own.1.extend(places.iter().map(|place| rows.hashes[*place as usize]));
        }
        Some(OwnRows { rows: own.0, hashes: own.1.into() })
    }
}

/// The rows of a part, by shards.
fn rows_of_part(batch: &Batch, at: usize, wanted: &WantedRows<'_>) -> Option<PartRows> {
    let (first, shards) = (at * PART_ROWS, wanted.shard.of());
    let n = PART_ROWS.min(batch.len() - first);
    let key: Vec<ArrayRef> = wanted.key.iter().map(|column| batch.column(*column).slice(first, n)).collect();
    let Some((filter, columns)) = wanted.filter else {
        let hashes = hash::hash_columns(&key, n);
        return Some(PartRows { passing: None, places: places_by_shard(&hashes, shards), hashes });
    };
    let mut passing = (filter.passing)(&batch.project(columns).slice(first, n))?;
    let hashes = hash::hash_columns(&gather::take(&key, &passing), passing.len());
    passing.iter_mut().for_each(|row| *row += first as u32);
    Some(PartRows { passing: Some(passing), places: places_by_shard(&hashes, shards), hashes })
}

impl Taken {
    /// A column of the batch, with these rows alone.
    fn column(&mut self, batch: &Batch, column: usize, rows: &[u32]) -> ArrayRef {
        if let Some((_, array)) = self.columns.iter().find(|(known, _)| *known == column) {
            return Arc::clone(array);
        }
        let array = match rows.len() == batch.len() {
            true => Arc::clone(batch.column(column)),
            false => Arc::clone(&gather::take(&[Arc::clone(batch.column(column))], rows)[0]),
        };
        self.columns.push((column, Arc::clone(&array)));
        array
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use anabranch_batch::{Diffs, Times, at_home};
    use arrow::array::{AsArray, Int64Array};
    use arrow::datatypes::Int64Type;

    use super::*;

    fn batch(rows: usize) -> Batch {
        let column = |factor: i64| -> ArrayRef {
            Arc::new(Int64Array::from_iter_values((0..rows as i64).map(|n| n * factor % 977)))
        };
        let times = Times::Column((0..rows as i64).map(|n| n / 3).collect());
        Batch::new(vec![column(1), column(7), column(13)], times, Diffs::Constant(1))
    }

    fn filter(of: &Account, least: i64) -> SharedFilter {
        let passing: Passing = Box::new(move |batch| {
            let values = batch.column(0).as_primitive::<Int64Type>();
            if values.values().contains(&-1) {
                return None;
            }
            Some((0..batch.len() as u32).filter(|row| values.value(*row as usize) >= least).collect())
        });
        SharedFilter { of: of.clone(), step: 7, apply: Box::new(|_, _| {}), passing, kept: vec![0] }
    }

    fn check(batch: &Batch, got: &Batch, columns: &[usize], key: usize, shard: ShardNumber, least: i64) {
        let rows = batch.column(1).as_primitive::<Int64Type>();
        let passing: Vec<u32> = (0..batch.len() as u32).filter(|row| rows.value(*row as usize) >= least).collect();
        let wanted = at_home(batch.take(&passing), &[key], shard);
        assert_eq!(got.key().is_some(), columns.contains(&key));
        if let Some(known) = got.key() {
            assert_eq!(known.hashes, wanted.key().unwrap().hashes);
        }
        assert_eq!(got.columns(), wanted.project(columns).columns());
        assert!((0..got.len()).all(|row| got.times().get(row) == wanted.times().get(row)));
    }

    /// All workers at once, and each several times with other columns, get what each alone would.
    #[test]
    fn workers_get_their_rows_whoever_computes_them() {
        let (one, other) = (Account::default(), Account::default());
        for rows in [1, PART_ROWS - 1, PART_ROWS, 3 * PART_ROWS + 5] {
            let batch = batch(rows);
            for workers in [2, 3, 5, 9] {
                let dealt = DealtRows::of_workers(workers);
                let work = |index: usize| {
                    let shard = ShardNumber::new(index, workers);
                    for (columns, key) in [(vec![0, 1], 0), (vec![2, 0], 0), (vec![2, 1], 2), (vec![1], 0)] {
                        for (of, least) in [(None, 0), (Some(&one), 500), (Some(&other), 900), (Some(&one), 500)] {
                            let filter = of.map(|of| filter(of, least));
                            let filter = filter.as_ref().map(|filter| (filter, &[1usize][..]));
                            let got = dealt.take(&batch, &WantedRows { columns: &columns, key: &[key], filter, shard });
                            check(&batch, &got.unwrap(), &columns, key, shard, least);
                        }
                    }
                };
                thread::scope(|scope| (0..workers).for_each(|index| _ = scope.spawn(move || work(index))));
            }
        }
    }

    /// A row that fails in one part is found by all workers, whoever computes the part.
    #[test]
    fn all_workers_find_that_a_filter_fails() {
        let mut batch = batch(3 * PART_ROWS);
        let failing = (0..batch.len()).map(|row| if row == 2 * PART_ROWS { -1 } else { 3 });
        let mut columns = batch.columns().to_vec();
        columns[1] = Arc::new(Int64Array::from_iter_values(failing));
        batch = batch.with_columns(columns.into());
        let (dealt, account) = (DealtRows::of_workers(3), Account::default());
        for index in [1, 0, 2, 1] {
            let (filter, shard) = (filter(&account, 0), ShardNumber::new(index, 3));
            let filter = Some((&filter, &[1usize][..]));
            assert!(dealt.take(&batch, &WantedRows { columns: &[0], key: &[0], filter, shard }).is_none());
        }
    }
}
