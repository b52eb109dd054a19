//! Places of partitions from which a search can go on, and to which a changed one comes back.
//!
//! Law: at a cut begins a search, and it is known how far earlier ones have read beyond. So what
//! changes behind that changes no match before the cut; and where the search of changed rows comes
//! to a cut behind all changes, the matches from there on are those of before.
//!
//! A cut is a word, an order-preserving prefix of the rows' order: it is at the first row with that
//! word or a greater one, whatever rows come and go.
//!
//! Cost: one cut for each `CUT_ROWS` rows at most, where searches allow for it. A change costs
//! the rows from the cut before it to one behind it, the next that serves of those 1, 4, 16 .. cuts
//! on. Searches that read up to the end of the partition, and numbers of matches that change, leave
//! no cut to come back to.

use anabranch_arrangement::{Floor, Keys};
use anabranch_batch::{Columns, Time, gather};

use super::decided::Reach;
use super::found::{Cut, SearchRange, SpanEnd};
use crate::ordered::by_partition::{ByPartition, Kept};
use crate::ordered::versions::Stretch;

/// The cuts of a partition, ascending.
struct PartitionCuts {
    /// The partition.
    key: Columns,
    cuts: Vec<Cut>,
}

impl Kept for PartitionCuts {
    fn sample(&self) -> &Columns {
        &self.key
    }

    fn size_bytes(&self) -> usize {
        let key: usize = self.key.iter().map(|column| column.get_array_memory_size()).sum();
        size_of::<PartitionCuts>() + key + self.cuts.capacity() * size_of::<Cut>()
    }
}

/// The cuts of all partitions.
pub(super) struct Cuts {
    partitions: ByPartition<PartitionCuts>,
    /// The partitions' columns.
    key: Vec<usize>,
}

impl Cuts {
    /// None yet.
    pub fn new(key: &[usize]) -> Cuts {
        Cuts { partitions: ByPartition::new((0..key.len()).collect()), key: key.to_vec() }
    }

    /// Takes the cuts of a partition, until they are put back.
    pub fn take(&mut self, keys: &Keys, group: usize) -> Vec<Cut> {
        let taken = self.partitions.take(keys.hashes()[group], keys.columns(), group as u32);
        taken.map(|taken| taken.cuts).unwrap_or_default()
    }

    /// Puts back what was taken.
    pub fn put(&mut self, keys: &Keys, group: usize, cuts: Vec<Cut>) {
        if cuts.is_empty() {
            return;
        }
        let key = gather::take(keys.columns(), &[group as u32]);
        self.partitions.put(keys.hashes()[group], PartitionCuts { key, cuts });
    }

    /// Forgets all cuts: rows have left.
    pub fn forget(&mut self) {
        self.partitions.forget();
    }

    /// Forgets the cuts of partitions below a floor.
    pub fn set_floor(&mut self, floor: Floor) {
        let column = self.key.iter().position(|column| *column == floor.column);
        column.into_iter().for_each(|column| self.partitions.set_floor(Floor { column, ..floor }));
    }

    pub fn size_bytes(&self) -> usize {
        self.partitions.size_bytes()
    }
}

/// A partition that is searched again.
pub(super) struct Resumed {
    pub group: usize,
    /// The time before the first change, and those of changes.
    pub times: Vec<Time>,
    /// The least and the greatest word of a row that has changed.
    words: (u64, u64),
    pub cuts: Vec<Cut>,
    n_tries: u32,
    /// From the first row to the last, whatever cuts there are.
    is_whole: bool,
}

impl Resumed {
    /// Not searched yet.
    pub fn new(group: usize, times: Vec<Time>, words: (u64, u64), cuts: Vec<Cut>) -> Resumed {
        Resumed { group, times, words, cuts, n_tries: 0, is_whole: false }
    }

    /// The number of the cut to begin at, if it is not the first row.
    fn first(&self) -> Option<usize> {
        let n_clean = self.cuts.partition_point(|cut| cut.clean_from <= self.words.0);
        n_clean.checked_sub(1).filter(|_| !self.is_whole)
    }

    /// The number of the cut to come to, if it is not the end.
    fn last(&self) -> Option<usize> {
        let n_touched = self.cuts.partition_point(|cut| cut.from_word <= self.words.1);
        let last = n_touched.saturating_add(self.further());
        Some(last).filter(|last| *last < self.cuts.len() && !self.is_whole)
    }

    /// How many cuts to leave out.
    fn further(&self) -> usize {
        if self.n_tries == 0 { 0 } else { 4usize.saturating_pow(self.n_tries) }
    }

    /// The cut to begin at, if it is not the first row.
    pub fn begin(&self) -> Option<Cut> {
        self.first().map(|first| self.cuts[first])
    }

    /// The word of the cut to come to, if it is not the end.
    pub fn stop(&self) -> Option<u64> {
        self.last().map(|last| self.cuts[last].word)
    }

    /// The rows to search, with those that matches read before them and, up to some cut, behind.
    pub fn stretch(&self) -> Stretch {
        let from = self.begin().map_or(0, |cut| cut.from_word);
        let behind = self.last().map(|last| last.saturating_add(self.further()).saturating_add(1));
        let until = behind.and_then(|behind| self.cuts.get(behind)).map(|cut| cut.word);
        Stretch { group: self.group, from, until }
    }

    /// Whether the searches of all versions say what they would say of the whole partition. If not,
    /// the next stretch is longer.
    pub fn fits(&mut self, spans: &[SearchRange], ends: &[Result<SpanEnd, ()>], reach: Reach) -> bool {
        let last = self.last().map(|last| self.cuts[last]);
        if ends.iter().any(Result::is_err) {
            // (An error takes the place of all matches.)
            let is_all = last.is_none() && self.first().is_none();
            self.is_whole = true;
            return is_all;
        }
        let Some(last) = last else { return true };
        let has_all = self.stretch().until.is_none();
        let comes_to = |(span, end): (&SearchRange, &Result<SpanEnd, ()>)| {
            let Ok(end) = end else { return false };
            end.at == span.stop
                && (has_all || end.clean_from.is_some())
                && (!reach.has_numbers || end.n_matches == last.n_matches)
        };
        let fits = spans.iter().zip(ends).all(comes_to);
        self.n_tries += u32::from(!fits);
        fits
    }

    /// The cuts as they are now, with those that the search of the present version has found.
    pub fn cuts_after(&mut self, span: &SearchRange, end: Result<SpanEnd, ()>) -> Vec<Cut> {
        let (first, last) = (self.first(), self.last());
        let mut cuts = std::mem::take(&mut self.cuts);
        let Ok(end) = end else { return vec![] };
        let mut behind = last.map(|last| cuts.split_off(last)).unwrap_or_default();
        cuts.truncate(first.map_or(0, |first| first + 1));
        cuts.extend(end.cuts);
        match end.clean_from {
            Some(from) => behind.iter_mut().for_each(|cut| cut.clean_from = cut.clean_from.max(from)),
            None => behind.clear(),
        }
        // (Without a row between them, two cuts are one.)
        let is_same = first.is_some() && span.start == span.stop && !behind.is_empty();
        cuts.extend(behind.drain(usize::from(is_same)..));
        cuts.shrink_to_fit();
        cuts
    }
}
