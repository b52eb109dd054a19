//! Control columns of a batch: when each row changes, by how much, for how long, and under which
//! key.
//!
//! Law: a control column that says the same for every row is one constant, and costs nothing.
//! `get(i)` is the meaning; the physical form never shows in results. Slices share memory with
//! their origin.

use arrow::array::{Array, BooleanArray};
use arrow::buffer::ScalarBuffer;
use std::sync::Arc;

use crate::route::ShardNumber;

/// A time in ticks of a timeline. Legal times of updates are less than [`END`].
pub type Time = i64;

/// Signed multiplicity of a row.
pub type Diff = i64;

/// No update has this time: a lifetime up to `END` never ends, and an upper of `END` is complete
/// for ever.
pub const END: Time = i64::MAX;

/// The time of each row.
#[derive(Clone, Debug)]
pub enum Times {
    /// Every row has this time.
    Constant(Time),
    /// One time per row, in no particular order.
    Column(ScalarBuffer<i64>),
}

/// The signed multiplicity of each row.
#[derive(Clone, Debug)]
pub enum Diffs {
    /// Every row has this multiplicity; usually 1.
    Constant(Diff),
    /// One multiplicity per row.
    Column(ScalarBuffer<i64>),
}

/// The end of each row's lifetime `[time, until)`. An end before the time makes the row an end
/// edge: it ends, at `time`, what began at `until`.
#[derive(Clone, Debug)]
pub enum Until {
    /// Rows are plain updates; nothing ends.
    Forever,
    /// Every lifetime lasts this many ticks.
    Duration(i64),
    /// One end per row; [`END`] for none.
    Column(ScalarBuffer<i64>),
}

/// The columns a batch is keyed by, and the hash of every row's key.
#[derive(Clone, Debug)]
pub struct Key {
    /// Positions of the key columns, in key order.
    pub columns: Arc<[usize]>,
    /// One hash per row, as [`crate::hash::hash_columns`] computes it.
    pub hashes: ScalarBuffer<u64>,
    /// The shard that has all of these hashes, if rows were dealt out by them.
    pub home: Option<ShardNumber>,
}

impl Times {
    /// The time of row `i`.
    #[inline]
    pub fn get(&self, i: usize) -> Time {
        match self {
            Times::Constant(time) => *time,
            Times::Column(times) => times[i],
        }
    }

    /// The times of rows `offset .. offset + len`, without copying.
    pub fn slice(&self, offset: usize, len: usize) -> Times {
        match self {
            Times::Constant(time) => Times::Constant(*time),
            Times::Column(times) => Times::Column(times.slice(offset, len)),
        }
    }

    /// The earliest time; [`END`] for an empty column.
    pub fn min(&self) -> Time {
        match self {
            Times::Constant(time) => *time,
            Times::Column(times) => fold_lanes(times, END, Time::min),
        }
    }

    /// The latest time; `Time::MIN` for an empty column.
    pub fn max(&self) -> Time {
        match self {
            Times::Constant(time) => *time,
            Times::Column(times) => fold_lanes(times, Time::MIN, Time::max),
        }
    }

    /// The earliest and the latest time, in one look at times in order; ([`END`], `Time::MIN`) for
    /// an empty column.
    pub fn range(&self) -> (Time, Time) {
        match self {
            Times::Constant(time) => (*time, *time),
            Times::Column(times) if times.is_sorted() => match (times.first(), times.last()) {
                (Some(&first), Some(&last)) => (first, last),
                _ => (END, Time::MIN),
            },
            Times::Column(_) => (self.min(), self.max()),
        }
    }

    /// One time per entry of `rows`.
    pub fn take(&self, rows: &[u32]) -> Times {
        match self {
            Times::Constant(time) => Times::Constant(*time),
            Times::Column(times) => Times::Column(take_scalars(times, rows)),
        }
    }

    /// A constant when all times are the same, else as it is. O(rows).
    pub fn simplify(self) -> Times {
        match &self {
            Times::Column(times) => constant_of(times).map_or(self, Times::Constant),
            Times::Constant(_) => self,
        }
    }

    /// One time per row for `len` rows.
    pub fn to_column(&self, len: usize) -> ScalarBuffer<i64> {
        match self {
            Times::Constant(time) => vec![*time; len].into(),
            Times::Column(times) => times.clone(),
        }
    }

    pub(crate) fn fits(&self, len: usize) -> bool {
        matches!(self, Times::Column(times) if times.len() == len) || matches!(self, Times::Constant(_))
    }

    pub(crate) fn filter(&self, keep: &BooleanArray) -> Times {
        match self {
            Times::Constant(time) => Times::Constant(*time),
            Times::Column(times) => Times::Column(filter_scalars(times, keep)),
        }
    }

    pub(crate) fn concat(parts: &[(&Times, usize)]) -> Times {
        match constant_in_all(parts, |times| match times {
            Times::Constant(time) => Some(*time),
            Times::Column(_) => None,
        }) {
            Some(time) => Times::Constant(time),
            None => Times::Column(concat_scalars(parts, |times, i| times.get(i))),
        }
    }

    pub(crate) fn size_bytes(&self) -> usize {
        match self {
            Times::Constant(_) => 0,
            Times::Column(times) => times.inner().capacity(),
        }
    }
}

impl Diffs {
    /// The multiplicity of row `i`.
    #[inline]
    pub fn get(&self, i: usize) -> Diff {
        match self {
            Diffs::Constant(diff) => *diff,
            Diffs::Column(diffs) => diffs[i],
        }
    }

    /// The multiplicities of rows `offset .. offset + len`, without copying.
    pub fn slice(&self, offset: usize, len: usize) -> Diffs {
        match self {
            Diffs::Constant(diff) => Diffs::Constant(*diff),
            Diffs::Column(diffs) => Diffs::Column(diffs.slice(offset, len)),
        }
    }

    /// One multiplicity per entry of `rows`.
    pub fn take(&self, rows: &[u32]) -> Diffs {
        match self {
            Diffs::Constant(diff) => Diffs::Constant(*diff),
            Diffs::Column(diffs) => Diffs::Column(take_scalars(diffs, rows)),
        }
    }

    /// The opposite of every multiplicity (wrapping).
    pub fn negate(&self) -> Diffs {
        match self {
            Diffs::Constant(diff) => Diffs::Constant(diff.wrapping_neg()),
            Diffs::Column(diffs) => Diffs::Column(diffs.iter().map(|diff| diff.wrapping_neg()).collect()),
        }
    }

    /// A constant when all multiplicities are the same, else as it is. O(rows).
    pub fn simplify(self) -> Diffs {
        match &self {
            Diffs::Column(diffs) => constant_of(diffs).map_or(self, Diffs::Constant),
            Diffs::Constant(_) => self,
        }
    }

    /// One multiplicity per row for `len` rows.
    pub fn to_column(&self, len: usize) -> ScalarBuffer<i64> {
        match self {
            Diffs::Constant(diff) => vec![*diff; len].into(),
            Diffs::Column(diffs) => diffs.clone(),
        }
    }

    pub(crate) fn fits(&self, len: usize) -> bool {
        matches!(self, Diffs::Column(diffs) if diffs.len() == len) || matches!(self, Diffs::Constant(_))
    }

    pub(crate) fn filter(&self, keep: &BooleanArray) -> Diffs {
        match self {
            Diffs::Constant(diff) => Diffs::Constant(*diff),
            Diffs::Column(diffs) => Diffs::Column(filter_scalars(diffs, keep)),
        }
    }

    pub(crate) fn concat(parts: &[(&Diffs, usize)]) -> Diffs {
        match constant_in_all(parts, |diffs| match diffs {
            Diffs::Constant(diff) => Some(*diff),
            Diffs::Column(_) => None,
        }) {
            Some(diff) => Diffs::Constant(diff),
            None => Diffs::Column(concat_scalars(parts, |diffs, i| diffs.get(i))),
        }
    }

    pub(crate) fn size_bytes(&self) -> usize {
        match self {
            Diffs::Constant(_) => 0,
            Diffs::Column(diffs) => diffs.inner().capacity(),
        }
    }
}

impl Until {
    /// The end of the lifetime of row `i`, which starts at `time`; [`END`] for none.
    #[inline]
    pub fn get(&self, i: usize, time: Time) -> Time {
        match self {
            Until::Forever => END,
            Until::Duration(ticks) => time.saturating_add(*ticks),
            Until::Column(untils) => untils[i],
        }
    }

    /// The ends of rows `offset .. offset + len`, without copying.
    pub fn slice(&self, offset: usize, len: usize) -> Until {
        match self {
            Until::Column(untils) => Until::Column(untils.slice(offset, len)),
            constant => constant.clone(),
        }
    }

    /// One end per entry of `rows`.
    pub fn take(&self, rows: &[u32]) -> Until {
        match self {
            Until::Column(untils) => Until::Column(take_scalars(untils, rows)),
            constant => constant.clone(),
        }
    }

    pub(crate) fn fits(&self, len: usize) -> bool {
        !matches!(self, Until::Column(untils) if untils.len() != len)
    }

    pub(crate) fn filter(&self, keep: &BooleanArray) -> Until {
        match self {
            Until::Column(untils) => Until::Column(filter_scalars(untils, keep)),
            constant => constant.clone(),
        }
    }

    /// The ends of all parts in turn; `(until, times, rows)` each.
    pub(crate) fn concat(parts: &[(&Until, &Times, usize)]) -> Until {
        if parts.iter().all(|(until, ..)| matches!(until, Until::Forever)) {
            return Until::Forever;
        }
        if let Some((Until::Duration(ticks), ..)) = parts.first()
            && parts.iter().all(|(until, ..)| matches!(until, Until::Duration(other) if other == ticks))
        {
            return Until::Duration(*ticks);
        }
        let ends = parts.iter().flat_map(|&(until, times, len)| (0..len).map(move |i| until.get(i, times.get(i))));
        Until::Column(ends.collect())
    }

    pub(crate) fn size_bytes(&self) -> usize {
        match self {
            Until::Column(untils) => untils.inner().capacity(),
            _ => 0,
        }
    }
}

impl Key {
    /// The key of these columns, whose hashes the caller computed.
    pub fn new(columns: impl Into<Arc<[usize]>>, hashes: impl Into<ScalarBuffer<u64>>) -> Key {
        Key { columns: columns.into(), hashes: hashes.into(), home: None }
    }

    /// The same hashes at these columns.
    pub fn at(&self, columns: Arc<[usize]>) -> Key {
        Key { columns, ..self.clone() }
    }

    /// Some of its rows.
    fn of(&self, hashes: ScalarBuffer<u64>) -> Key {
        Key { columns: self.columns.clone(), hashes, home: self.home }
    }

    pub(crate) fn take(&self, rows: &[u32]) -> Key {
        self.of(rows.iter().map(|&row| self.hashes[row as usize]).collect())
    }

    pub(crate) fn filter(&self, keep: &BooleanArray) -> Key {
        self.of(keep.values().set_indices().map(|row| self.hashes[row]).collect())
    }

    pub(crate) fn slice(&self, offset: usize, len: usize) -> Key {
        self.of(self.hashes.slice(offset, len))
    }
}

/// A fold in four independent lanes, so that no step waits for the one before.
#[inline]
fn fold_lanes(values: &[i64], start: i64, fold: impl Fn(i64, i64) -> i64) -> i64 {
    let (chunks, rest) = values.as_chunks::<4>();
    let mut lanes = [start; 4];
    for chunk in chunks {
        lanes =
            [fold(lanes[0], chunk[0]), fold(lanes[1], chunk[1]), fold(lanes[2], chunk[2]), fold(lanes[3], chunk[3])];
    }
    lanes.iter().chain(rest).copied().fold(start, &fold)
}

fn take_scalars(values: &[i64], rows: &[u32]) -> ScalarBuffer<i64> {
    rows.iter().map(|&row| values[row as usize]).collect()
}

/// The values whose bit of `keep` is set; `keep` has no nulls.
fn filter_scalars(values: &[i64], keep: &BooleanArray) -> ScalarBuffer<i64> {
    debug_assert!(keep.nulls().is_none());
    let mut kept = Vec::with_capacity(keep.values().count_set_bits());
    for (start, end) in keep.values().set_slices() {
        kept.extend_from_slice(&values[start..end]);
    }
    kept.into()
}

fn constant_of(values: &[i64]) -> Option<i64> {
    let (first, rest) = values.split_first()?;
    rest.iter().all(|value| value == first).then_some(*first)
}

fn constant_in_all<T>(parts: &[(&T, usize)], constant: impl Fn(&T) -> Option<i64>) -> Option<i64> {
    let first = constant(parts.first()?.0)?;
    parts.iter().all(|(part, _)| constant(part) == Some(first)).then_some(first)
}

fn concat_scalars<T>(parts: &[(&T, usize)], get: impl Fn(&T, usize) -> i64) -> ScalarBuffer<i64> {
    let mut values = Vec::with_capacity(parts.iter().map(|(_, len)| len).sum());
    for (part, len) in parts {
        values.extend((0..*len).map(|i| get(part, i)));
    }
    values.into()
}
