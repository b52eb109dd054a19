//! Rows of partitions from which no match will begin any more, and that no other will read.
//!
//! Law: no row below a bound of the first order column comes or goes. So the rows of a partition
//! below it stay as they are, and a search over them that does not come to their end has the same
//! result for ever: the row from which it began is *decided*. The matches from decided rows are
//! out. Rows before the first undecided one leave, but for those that an offset reaches back to.
//!
//! A partition with an error keeps its rows. Where an error comes later, matches from decided rows
//! stay beside it.
//!
//! Cost: a search over all rows below the bound, when as many have come as half of them.

use std::collections::HashMap;
use std::ops::ControlFlow;

use anabranch_arrangement::{Keys, ticks};
use anabranch_batch::equal::rows_equal;
use anabranch_batch::{Batch, Diff, Diffs, Time, Times, gather};
use anabranch_spec::recognize::{Cell, CellValue};
use arrow::array::{Array, ArrayRef, Int64Array};

use super::found::{Found, Rows, SearchRange};
use crate::ordered::trace::{OrderedTrace, Place, TraceWalk, only_used};

/// What is decided of all partitions, and when to look again.
#[derive(Debug, Default)]
pub(super) struct Decided {
    /// Rows that came since the last look.
    n_new: usize,
    /// Rows that the last look left there.
    n_kept: usize,
    /// Partitions that had rows at the last look.
    keys: Vec<ArrayRef>,
    by_hash: HashMap<u64, Vec<u32>>,
    of_key: Vec<Start>,
    /// Rows that leave, as retractions that the trace has not taken in.
    leaving: Option<Batch>,
}

/// Where the search of a partition begins.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Start {
    /// Rows at the beginning of the partition that are decided.
    n_rows: usize,
    /// The same, with those that have left from this time on.
    n_rows_before: usize,
    left_at: Time,
    /// Matches that began at them.
    n_matches: i64,
}

/// How far cells read from the rows of a match.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reach {
    pub back: usize,
    pub ahead: usize,
    /// Whether matches are numbered.
    pub has_numbers: bool,
}

impl Reach {
    pub fn of<'a>(cells: impl Iterator<Item = &'a Cell>) -> Reach {
        let mut reach = Reach::default();
        for cell in cells {
            match cell.value {
                CellValue::Column { at, .. } if at.offset < 0 => {
                    reach.back = reach.back.max(at.offset.unsigned_abs() as usize);
                }
                CellValue::Column { at, .. } => reach.ahead = reach.ahead.max(at.offset as usize),
                CellValue::MatchNumber => reach.has_numbers = true,
                CellValue::Classifier | CellValue::Fold { .. } => {}
            }
        }
        // (The number of the last match is known while a row of its partition is.)
        reach.back = reach.back.max(usize::from(reach.has_numbers));
        reach
    }
}

impl Start {
    /// The first row to begin at, as of a time, and the matches before it.
    pub fn at(&self, time: Time) -> (usize, i64) {
        let n_rows = if time < self.left_at { self.n_rows_before } else { self.n_rows };
        (n_rows, self.n_matches)
    }
}

impl Decided {
    /// Takes note of rows that come.
    pub fn note(&mut self, n_rows: usize) {
        self.n_new += n_rows;
    }

    /// Rows that leave, if some do.
    pub fn take_leaving(&mut self) -> Option<Batch> {
        self.leaving.take()
    }

    /// Whether rows are to leave.
    pub fn has_leaving(&self) -> bool {
        self.leaving.is_some()
    }

    /// Where the searches of these partitions begin.
    pub fn starts(&self, keys: &Keys) -> Vec<Start> {
        let (mut asked, mut known) = (Vec::new(), Vec::new());
        for (key, hash) in keys.hashes().iter().enumerate() {
            for at in self.by_hash.get(hash).into_iter().flatten() {
                asked.push(key as u32);
                known.push(*at);
            }
        }
        let mut starts = vec![Start::default(); keys.len()];
        if asked.is_empty() {
            return starts;
        }
        let equal = rows_equal(keys.columns(), &asked, &self.keys, &known);
        for ((key, at), _) in asked.iter().zip(&known).zip(equal).filter(|(_, equal)| *equal) {
            starts[*key as usize] = self.of_key[*at as usize];
        }
        starts
    }

    /// Finds the rows that leave, if it is time to look: those of which the order column `column`
    /// is below `below`, as far as `search` finds them decided.
    pub fn look(
        &mut self,
        trace: &OrderedTrace,
        (column, below): (usize, i64),
        read: &[usize],
        reach: Reach,
        search: impl FnOnce(&[SearchRange], Vec<ArrayRef>) -> (Found, Vec<Result<usize, ()>>),
    ) {
        if self.leaving.is_some() || self.n_new == 0 || 2 * self.n_new < self.n_kept {
            return;
        }
        let keys = trace.keys();
        let starts = self.starts(&keys);
        let mut frozen = Frozen::of(trace, &keys, column, below);
        if frozen.values.is_empty() {
            // (A partition of which rows are decided has some.)
            self.by_hash.clear();
            (self.keys, self.of_key) = (Vec::new(), Vec::new());
            (self.n_new, self.n_kept) = (0, self.n_kept + self.n_new);
            return;
        }
        let spans: Vec<SearchRange> = (starts.iter().zip(frozen.ends.windows(2)))
            .map(|(start, rows)| {
                let (n_rows, n_matches) = start.at(Time::MAX);
                // (A match reads rows ahead of it, all of which must be there.)
                let end = rows[1].saturating_sub(reach.ahead).max(rows[0]);
                let start = (rows[0] + n_rows).min(end);
                SearchRange { from: rows[0], to: rows[1], start, stop: end, end, n_matches, clean_from: 0 }
            })
            .collect();
        let (found, decided) = search(&spans, frozen.columns(read));
        let mut n_matches = vec![0; keys.len()];
        found.matches.iter().for_each(|found| n_matches[found.span] += 1);
        let mut of_key = Vec::with_capacity(keys.len());
        for (key, decided) in decided.into_iter().enumerate() {
            let (from, before) = (frozen.ends[key], starts[key]);
            let Ok(decided) = decided else {
                of_key.push(Start { left_at: Time::MIN, ..before });
                continue;
            };
            let decided = (decided - from).max(before.n_rows);
            let n_left = frozen.leave(key, decided.saturating_sub(reach.back));
            let n_matches = if reach.has_numbers { before.n_matches + n_matches[key] } else { 0 };
            let (n_rows, left_at) = (decided - n_left, trace.upto());
            of_key.push(Start { n_rows, n_rows_before: decided, left_at, n_matches });
        }
        self.by_hash.clear();
        for (key, hash) in keys.hashes().iter().enumerate() {
            self.by_hash.entry(*hash).or_default().push(key as u32);
        }
        (self.keys, self.of_key) = (keys.columns().to_vec(), of_key);
        self.leaving = frozen.finish(trace);
        let n_left = self.leaving.as_ref().map_or(0, Batch::len);
        (self.n_new, self.n_kept) = (0, (self.n_kept + self.n_new).saturating_sub(n_left));
    }

    pub fn size_bytes(&self) -> usize {
        let keys: usize = self.keys.iter().map(|column| column.get_buffer_memory_size()).sum();
        let starts = self.of_key.len() * (size_of::<Start>() + size_of::<(u64, Vec<u32>)>() + size_of::<u32>());
        keys + starts + self.leaving.as_ref().map_or(0, Batch::size_bytes)
    }
}

/// The rows of all partitions that stay as they are.
struct Frozen {
    walk: TraceWalk,
    /// Different rows, with their multiplicities, and where those of each partition begin.
    values: Vec<(Place, Diff)>,
    values_from: Vec<usize>,
    /// Where the rows of each partition begin, each as often as it is there; and where all end.
    ends: Vec<usize>,
    leaving: Vec<(Place, Diff)>,
}

impl Frozen {
    fn of(trace: &OrderedTrace, keys: &Keys, column: usize, below: i64) -> Frozen {
        let mut walk = trace.walk();
        let times: Vec<Int64Array> = walk.column(column).iter().map(ticks).collect();
        let (mut values, mut values_from, mut ends) = (Vec::new(), vec![0], vec![0]);
        for key in 0..keys.len() {
            let mut n_rows = ends[key];
            walk.group(keys, key, &[trace.upto().saturating_sub(1)], |place, counts| {
                let times = &times[place.0 as usize];
                let row = place.1 as usize;
                if times.is_null(row) || times.value(row) >= below {
                    return ControlFlow::Break(());
                }
                values.push((place, counts[0]));
                n_rows += counts[0] as usize;
                ControlFlow::Continue(())
            });
            ends.push(n_rows);
            values_from.push(values.len());
        }
        Frozen { walk, values, values_from, ends, leaving: Vec::new() }
    }

    /// Some columns of all rows.
    fn columns(&self, read: &[usize]) -> Vec<ArrayRef> {
        let columns: Vec<Vec<ArrayRef>> = self
            .walk
            .sources()
            .iter()
            .map(|source| read.iter().map(|column| source[*column].clone()).collect())
            .collect();
        let sources: Vec<&[ArrayRef]> = columns.iter().map(|columns| &**columns).collect();
        let places = self.values.iter().flat_map(|(place, count)| std::iter::repeat_n(*place, *count as usize));
        let (sources, places) = only_used(&sources, places.collect());
        gather::interleave(&sources, &places).to_vec()
    }

    /// Has the first rows of a partition leave, `n_rows` at most, equal ones together. Returns how
    /// many.
    fn leave(&mut self, key: usize, n_rows: usize) -> usize {
        let mut n_left = 0;
        for &(place, count) in &self.values[self.values_from[key]..self.values_from[key + 1]] {
            if n_left + count as usize > n_rows {
                break;
            }
            n_left += count as usize;
            self.leaving.push((place, -count));
        }
        n_left
    }

    fn finish(self, trace: &OrderedTrace) -> Option<Batch> {
        if self.leaving.is_empty() {
            return None;
        }
        let (places, diffs): (Vec<Place>, Vec<Diff>) = self.leaving.into_iter().unzip();
        let n_rows = places.len();
        let sources = self.walk.sources();
        let (sources, places) = only_used(&sources, places);
        let columns = gather::interleave(&sources, &places);
        // (The time is the first that the trace has not taken in.)
        Some(Batch::with_len(columns, n_rows, Times::Constant(trace.upto()), Diffs::Column(diffs.into())))
    }
}

/// Whether the rows that a search read at most, of those that are decided, include the last: then
/// rows to come may change its result.
pub(super) fn is_open(rows: &Rows, start: usize, span: &SearchRange, within: Option<u64>, below: i64) -> bool {
    // (All rows to come are too far from the first.)
    let is_far =
        within.is_some_and(|within| rows.instant(start).is_some_and(|at| at.saturating_add_unsigned(within) <= below));
    span.end < span.to || !is_far
}
