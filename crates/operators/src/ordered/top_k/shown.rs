//! What is known of a group without asking for its rows: how many there are, how many of them are
//! shown, and where the last one shown stands.
//!
//! Law: an insertion is decided here when that much says all. A group that shows all its rows and
//! has room for more shows the new ones as well, unless rows are numbered; a group that is full
//! does not show a row that stands behind the last one shown. Everything else is left to the rows
//! in order ([`crate::ordered::trace`]): retractions, rows that push others out, and groups in
//! which some row's multiplicity is negative (which are those that show fewer rows than they have
//! room for, and not as many as their multiplicities add up to).
//!
//! State: 24 bytes a group beside the group table. Cost: one visit of a slot for each touched group
//! and time, like a sum. Source: the early stop of "TPC-H on differential dataflow" (McSherry
//! 2017), taken one step further, as in `aggregate::extreme`.

use std::hint::black_box;
use std::ops::Range;

use anabranch_arrangement::Keys;
use anabranch_batch::order::Nulls;
use anabranch_batch::order::{Direction, prefixes};
use anabranch_batch::{Batch, Diff, Time, gather};
use arrow::array::ArrayRef;
use arrow::datatypes::DataType;

use crate::aggregate::freeing::{Leisure, by_key, leaving};
use crate::aggregate::group_table::GroupTable;
use crate::aggregate::segments::Segments;
use anabranch_flow::tactic::Passed;

/// How rows of a group that has room for more are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reveals {
    AtOnce,
    /// With their numbers, which the rows in order tell.
    InOrder,
}

/// What is known of all groups.
#[derive(Debug)]
pub(super) struct Shown {
    /// Rows that a group shows at most.
    limit: Diff,
    reveals: Reveals,
    /// Positions of the key columns.
    group: Vec<usize>,
    /// Columns that decide the order, as far as they go.
    order: Vec<(usize, Direction)>,
    key_types: Vec<DataType>,
    groups: GroupTable,
    /// By slot.
    states: Vec<ShownState>,
    leisure: Leisure,
}

#[derive(Clone, Copy, Debug, Default)]
struct ShownState {
    /// Sum of the multiplicities of all rows.
    total: Diff,
    /// Rows shown.
    shown: Diff,
    /// Where the last row shown stands: no row shown has a greater prefix.
    last: u64,
}

/// What a segment changes.
#[derive(Clone, Copy)]
struct Delta {
    inserted: Diff,
    /// Sum of all diffs.
    sum: Diff,
    /// Least and greatest prefix of what is inserted.
    first: u64,
    last: u64,
    has_gone: bool,
}

/// What became of a batch.
pub(super) struct Decided {
    /// Rows that are shown from their times on.
    pub rows: Vec<u32>,
    /// Ranges of segments, each of one slot, of which the rows in order must tell what is shown.
    asked: Vec<Range<usize>>,
    segments: Segments,
    /// Where each row stands.
    words: Vec<u64>,
}

/// Groups to ask for, in the order of their keys.
pub(super) struct AskedRanks {
    pub keys: Keys,
    /// For each key the times asked for: just before the first change in question, then at each
    /// change.
    pub times: Vec<Vec<Time>>,
    /// The slot of each key.
    slots: Vec<u32>,
    /// Of how many rows of each key the place is behind those shown in the end: of rows that are
    /// [kept](Shown::kept).
    pub n_behind: Vec<Diff>,
}

/// Segments whose slots are fetched together: they fit the first-level cache.
const WARM_SEGMENTS: usize = 128;

impl Shown {
    /// Nothing. `types` are those of all columns.
    pub fn new(
        limit: Diff,
        reveals: Reveals,
        group: Vec<usize>,
        order: Vec<(usize, Direction)>,
        types: &[DataType],
    ) -> Shown {
        let key_types: Vec<DataType> = group.iter().map(|&column| types[column].clone()).collect();
        Shown {
            limit,
            reveals,
            group,
            order,
            groups: GroupTable::new(&key_types),
            key_types,
            states: Vec::new(),
            leisure: Leisure::default(),
        }
    }

    /// Decides what it can of a batch that is keyed by the group.
    pub fn decide(&mut self, batch: &Batch) -> Decided {
        let hashes = &batch.key().expect("the batch is keyed").hashes;
        self.leisure.note(batch.len());
        let touched = self.groups.touch(&self.key_columns(batch), hashes);
        let segments = Segments::new(touched, batch.times());
        self.states.resize(self.states.len().max(self.groups.n_slots()), ShownState::default());

        let words = self.prefixes(|column| batch.column(column).clone(), batch.len());
        let deltas = deltas(batch, &segments, &words);
        let mut is_shown = vec![false; segments.len()];
        let mut asked: Vec<Range<usize>> = Vec::new();
        for start in (0..segments.len()).step_by(WARM_SEGMENTS) {
            let end = segments.len().min(start + WARM_SEGMENTS);
            // Slots lie anywhere: a tight loop waits for all their cache lines at once.
            black_box(segments.slot[start..end].iter().fold(0, |sum, &slot| sum ^ self.states[slot as usize].total));
            for segment in start..end {
                let slot = segments.slot[segment];
                let state = &mut self.states[slot as usize];
                let delta = &deltas[segment];
                let is_asked = |range: &&mut Range<usize>| range.end == segment && segments.slot[segment - 1] == slot;
                match asked.last_mut().filter(is_asked) {
                    Some(range) => range.end += 1,
                    None => match state.take_up(delta, self.limit, self.reveals) {
                        Some(shows) => is_shown[segment] = shows,
                        None => asked.push(segment..segment + 1),
                    },
                }
                state.total += delta.sum;
            }
        }
        let rows = (0..batch.len() as u32).filter(|&row| is_shown[segments.of_row[row as usize] as usize]).collect();
        Decided { rows, asked, segments, words }
    }

    /// The rows that are shown, or that may be: not those that stand behind the last one shown of a
    /// full group. Where no row is taken back, these are all that matter.
    pub fn kept(&self, batch: &Batch, decided: &Decided) -> Vec<u32> {
        let Decided { rows, asked, segments, words } = decided;
        let mut is_asked = vec![false; segments.len()];
        asked.iter().for_each(|range| is_asked[range.clone()].fill(true));
        let mut shown = rows.iter().peekable();
        let mut is_kept = |row: u32| {
            let is_shown = shown.next_if(|next| **next == row).is_some();
            let segment = segments.of_row[row as usize] as usize;
            let state = &self.states[segments.slot[segment] as usize];
            let may_be_shown = || state.shown < self.limit || words[row as usize] <= state.last;
            is_shown || is_asked[segment] && may_be_shown()
        };
        (0..batch.len() as u32).filter(|row| is_kept(*row)).collect()
    }

    fn key_columns(&self, batch: &Batch) -> Vec<ArrayRef> {
        self.group.iter().map(|&column| batch.column(column).clone()).collect()
    }

    fn prefixes(&self, column: impl Fn(usize) -> ArrayRef, rows: usize) -> Vec<u64> {
        let columns: Vec<ArrayRef> = self.order.iter().map(|&(at, _)| column(at)).collect();
        let directions: Vec<Direction> = self.order.iter().map(|&(_, direction)| direction).collect();
        prefixes(&columns, &directions, rows).0
    }

    /// The groups of a batch that must be asked for; `None` if there are none.
    pub fn asked(&self, batch: &Batch, decided: &Decided, kept: &[u32]) -> Option<AskedRanks> {
        if decided.asked.is_empty() {
            return None;
        }
        let segments = &decided.segments;
        let hashes = &batch.key().expect("the batch is keyed").hashes;
        let first_rows: Vec<u32> = decided.asked.iter().map(|range| segments.first_row[range.start]).collect();
        let hashes: Vec<u64> = first_rows.iter().map(|&row| hashes[row as usize]).collect();
        let columns = gather::take(&self.key_columns(batch), &first_rows);
        let (keys, key_of_range) = Keys::from_columns(&columns, &hashes, Nulls::Equal);
        let (times, n_behind) = (vec![Vec::new(); keys.len()], vec![0; keys.len()]);
        let mut asked = AskedRanks { times, slots: vec![0; keys.len()], n_behind, keys };
        let mut key_of_segment = vec![None; segments.len()];
        for (range, key) in decided.asked.iter().zip(key_of_range) {
            let before = segments.times.get(range.start).saturating_sub(1);
            let times = range.clone().map(|segment| segments.times.get(segment));
            asked.times[key as usize] = std::iter::once(before).chain(times).collect();
            asked.slots[key as usize] = segments.slot[range.start];
            asked.n_behind[key as usize] = self.states[segments.slot[range.start] as usize].shown - self.limit;
            key_of_segment[range.clone()].fill(Some(key as usize));
        }
        for &row in kept {
            if let Some(key) = key_of_segment[segments.of_row[row as usize] as usize] {
                asked.n_behind[key] += batch.diffs().get(row as usize);
            }
        }
        Some(asked)
    }

    /// Takes up how many rows each group that was asked for shows in the end, and, of those that
    /// show some, the last one (rows of `columns`, in turn).
    pub fn learn(&mut self, asked: &AskedRanks, shown: &[Diff], columns: &[ArrayRef]) {
        let n_last = shown.iter().filter(|shown| **shown > 0).count();
        let words = if n_last > 0 { self.prefixes(|column| columns[column].clone(), n_last) } else { Vec::new() };
        let mut words = words.into_iter();
        for (&slot, &shown) in asked.slots.iter().zip(shown) {
            let state = &mut self.states[slot as usize];
            state.shown = shown;
            state.last = if shown > 0 { words.next().expect("a group that shows a row has a last one") } else { 0 };
        }
    }

    /// Gives back the groups of which nothing is left.
    pub fn release(&mut self, batch: &Batch, decided: &Decided) {
        let hashes = &batch.key().expect("the batch is keyed").hashes;
        for range in decided.segments.by_slot() {
            let slot = decided.segments.slot[range.start];
            let state = &mut self.states[slot as usize];
            if state.total == 0 && state.shown == 0 {
                *state = ShownState::default();
                self.groups.release(slot, hashes[decided.segments.first_row[range.start] as usize]);
            }
        }
        self.shrink();
    }

    fn shrink(&mut self) {
        if self.groups.is_empty() {
            (self.groups, self.states) = (GroupTable::new(&self.key_types), Vec::new());
        } else if let Some(old_of_new) = self.groups.shrink() {
            self.states = old_of_new.iter().map(|&old| self.states[old as usize]).collect();
        }
    }

    /// Lets go of groups of which no change will come.
    pub fn free(&mut self, passed: &[Passed]) {
        let passed = by_key(passed, &self.group);
        if !self.leisure.is_due(self.groups.len()) {
            return;
        }
        for (slot, hash) in leaving(&self.groups, &passed) {
            self.states[slot as usize] = ShownState::default();
            self.groups.release(slot, hash);
        }
        self.shrink();
    }

    pub fn size_bytes(&self) -> usize {
        self.groups.size_bytes() + self.states.capacity() * size_of::<ShownState>()
    }
}

/// What each segment changes; `words` are where its rows stand.
fn deltas(batch: &Batch, segments: &Segments, words: &[u64]) -> Vec<Delta> {
    let nothing = Delta { inserted: 0, sum: 0, first: u64::MAX, last: 0, has_gone: false };
    let mut deltas = vec![nothing; segments.len()];
    for (row, (&segment, &word)) in segments.of_row.iter().zip(words).enumerate() {
        let (delta, diff) = (&mut deltas[segment as usize], batch.diffs().get(row));
        delta.sum += diff;
        if diff > 0 {
            delta.inserted += diff;
            (delta.first, delta.last) = (delta.first.min(word), delta.last.max(word));
        }
        delta.has_gone |= diff < 0;
    }
    deltas
}

impl ShownState {
    /// Whether a segment's rows are shown, all or none; `None` if that is not known.
    #[inline]
    fn take_up(&mut self, delta: &Delta, limit: Diff, reveals: Reveals) -> Option<bool> {
        if delta.has_gone {
            return None;
        }
        if delta.inserted == 0 {
            return Some(false);
        }
        let shows_all = self.shown == self.total;
        if reveals == Reveals::AtOnce && shows_all && self.total.saturating_add(delta.inserted) <= limit {
            self.last = if self.shown == 0 { delta.last } else { self.last.max(delta.last) };
            self.shown += delta.inserted;
            return Some(true);
        }
        (self.shown == limit && delta.first > self.last).then_some(false)
    }
}
