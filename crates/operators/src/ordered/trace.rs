//! Values of groups in order, with their history: the private state of ordered aggregates, top-k,
//! as-of joins and patterns.
//!
//! Law: [`OrderedTrace::walk`] shows each value of a group in order, with its multiplicity at each
//! of the times asked for, from just before the last [`OrderedTrace::absorb`] on. Values stay while
//! their multiplicity is not zero; merging sums and drops the others.
//!
//! Cost: `absorb` sorts what comes in and merges in proportion; a walk costs what it walks.

use std::ops::ControlFlow;
use std::sync::Arc;

use anabranch_arrangement::{Builder, Floor, Keys, Layout, MergeEffort, Spine, ValueCursor};
use anabranch_batch::order::Nulls;
use anabranch_batch::{Batch, Columns, Diff, END, Time, Times, gather, hash};
use arrow::array::ArrayRef;

/// Rows of merging done in an idle turn.
const IDLE_FUEL: isize = 4096;

/// Rows of merging done with an interval while much was taken back.
const TIDY_FUEL: isize = 1 << 16;

/// Rows that are sorted at the latest when there are so many.
const DEFERRED_ROWS_MAX: usize = 1 << 16;

/// Where a row lies: index among the chunks of the walk, and row.
pub(crate) type Place = (u32, u32);

/// An arrangement of one owner that is its only reader.
#[derive(Debug)]
pub(crate) struct OrderedTrace {
    layout: Arc<Layout>,
    builder: Builder,
    spine: Spine,
    /// Updates that the builder holds are before this time, and
    upto: Time,
    /// no reader asks for times before the one before this.
    from: Time,
}

impl OrderedTrace {
    /// An empty trace of rows laid out so; values must be sorted.
    pub(crate) fn new(layout: Layout, effort: MergeEffort) -> OrderedTrace {
        let layout = Arc::new(layout);
        OrderedTrace {
            builder: Builder::new(layout.clone()),
            spine: Spine::new(layout.clone(), effort),
            layout,
            upto: Time::MIN,
            from: Time::MIN,
        }
    }

    /// Takes the updates with times from the last `upto` to this one.
    pub(crate) fn absorb(&mut self, batch: Batch, upto: Time) {
        self.defer(batch, upto);
        self.settle();
    }

    /// Takes updates as [`OrderedTrace::absorb`] does, but need not show them before
    /// [`OrderedTrace::settle`].
    pub(crate) fn defer(&mut self, batch: Batch, upto: Time) {
        if upto <= self.upto {
            assert!(batch.is_empty(), "updates come after the times that are complete");
            return;
        }
        // What follows asks for times from just before the ones that come in.
        (self.from, self.upto) = (self.upto, upto);
        self.builder.push(batch);
        if self.builder.rows() >= DEFERRED_ROWS_MAX {
            self.settle();
        }
    }

    /// Shows all that was taken.
    pub(crate) fn settle(&mut self) {
        if self.upto > self.spine.upper() {
            if self.from > Time::MIN {
                self.spine.set_since(self.from - 1);
            }
            let run = self.builder.seal(self.spine.upper(), self.upto, self.spine.since());
            // (Nearly every change looks its group up.)
            self.spine.note_lookups(run.len());
            // (Groups are walked in order: of parts, that costs each of them.)
            let mut fuel = if run.is_in_parts() { isize::MAX } else { TIDY_FUEL };
            self.spine.insert(Arc::new(run));
            self.spine.tidy(&mut fuel);
        }
    }

    /// Updates taken in are before this time.
    pub(crate) fn upto(&self) -> Time {
        self.upto
    }

    /// Rows below the floor will not be asked for, nor will any come: merges leave them out.
    pub(crate) fn set_floor(&mut self, floor: Floor) {
        self.spine.set_floor(floor);
    }

    /// Does a little merging; for spare time.
    pub(crate) fn idle(&mut self) {
        self.settle();
        let upper = self.spine.upper();
        if upper > Time::MIN && upper < END {
            self.spine.set_since((upper - 1).max(self.spine.since()));
        }
        self.spine.exert(&mut { IDLE_FUEL });
    }

    /// All groups that have rows, or had until they are merged. O(rows).
    pub(crate) fn keys(&self) -> Keys {
        let walk = self.walk();
        let rows = walk.sources();
        let keyed = |columns: &&[ArrayRef]| self.layout.key.iter().map(|column| columns[*column].clone()).collect();
        let chunks: Vec<Vec<ArrayRef>> = rows.iter().map(keyed).collect();
        let chunks: Vec<&[ArrayRef]> = chunks.iter().map(|columns| &**columns).collect();
        let n_rows = rows.iter().filter_map(|columns| Some(columns.first()?.len())).sum();
        let columns: Columns = if chunks.is_empty() { Columns::default() } else { gather::concat(&chunks) };
        Keys::from_columns(&columns, &hash::hash_columns(&columns, n_rows), Nulls::Equal).0
    }

    /// A walk over all groups.
    pub(crate) fn walk(&self) -> TraceWalk {
        TraceWalk {
            cursor: ValueCursor::new(&self.layout, &self.spine.runs()),
            before: self.spine.upper(),
            history: Vec::new(),
            counts: Vec::new(),
            lacks_rows: false,
        }
    }

    /// Updates that are kept.
    pub(crate) fn n_rows(&self) -> usize {
        self.spine.stats().rows + self.builder.rows()
    }

    pub(crate) fn size_bytes(&self) -> usize {
        self.spine.stats().size_bytes + self.builder.size_bytes()
    }
}

/// Walks the values of one group after another.
pub(crate) struct TraceWalk {
    cursor: ValueCursor,
    before: Time,
    history: Vec<(Time, Diff)>,
    counts: Vec<Diff>,
    /// A value of the group has a negative multiplicity.
    lacks_rows: bool,
}

impl TraceWalk {
    /// Calls `visit(place, counts)` for each value of group `key`, in order, with its multiplicity
    /// at each of `times` (ascending; negative ones count as none), until `visit` breaks. Values
    /// that are absent at all these times are not shown.
    pub(crate) fn group(
        &mut self,
        keys: &Keys,
        key: usize,
        times: &[Time],
        mut visit: impl FnMut(Place, &[Diff]) -> ControlFlow<()>,
    ) {
        self.cursor.seek(keys, key, self.before);
        self.lacks_rows = false;
        while let Some(place) = self.cursor.next_value(&mut self.history) {
            if self.count_at(times) && visit(place, &self.counts).is_break() {
                return;
            }
        }
    }

    /// Moves to the first value of group `key` whose word is at least `word`; see
    /// [`ValueCursor::seek_from`].
    pub(crate) fn seek(&mut self, keys: &Keys, key: usize, word: u64) {
        self.cursor.seek_from(keys, key, self.before, word);
        self.lacks_rows = false;
    }

    /// The word of the row at a place.
    pub(crate) fn word(&self, place: Place) -> u64 {
        self.cursor.word(place)
    }

    /// The next value after [`Walk::seek`] that is there at one of `times` (ascending), with its
    /// multiplicity at each (negative ones count as none).
    pub(crate) fn next(&mut self, times: &[Time]) -> Option<(Place, &[Diff])> {
        loop {
            let place = self.cursor.next_value(&mut self.history)?;
            if self.count_at(times) {
                return Some((place, &self.counts));
            }
        }
    }

    /// Whether a value of the group that [`TraceWalk::group`] showed had a negative multiplicity.
    pub(crate) fn lacks_rows(&self) -> bool {
        self.lacks_rows
    }

    /// Whether group `key` has no value at all, be it with a negative multiplicity.
    pub(crate) fn is_empty(&mut self, keys: &Keys, key: usize) -> bool {
        self.cursor.seek(keys, key, self.before);
        while self.cursor.next_value(&mut self.history).is_some() {
            if self.history.iter().map(|&(_, diff)| diff).sum::<Diff>() != 0 {
                return false;
            }
        }
        true
    }

    /// For each chunk that places refer to, one of its columns.
    pub(crate) fn column(&self, column: usize) -> Vec<ArrayRef> {
        self.cursor.chunks().iter().map(|chunk| chunk.column(column)).collect()
    }

    /// For each chunk that places refer to, all its columns.
    pub(crate) fn sources(&self) -> Vec<&[ArrayRef]> {
        self.cursor.sources()
    }

    /// Fills in `counts`; returns whether any is positive.
    fn count_at(&mut self, times: &[Time]) -> bool {
        self.counts.clear();
        let mut updates = self.history.iter().peekable();
        let (mut sum, mut is_present) = (0, false);
        for &time in times {
            while let Some((_, diff)) = updates.next_if(|(at, _)| *at <= time) {
                sum += diff;
            }
            self.counts.push(sum.max(0));
            self.lacks_rows |= sum < 0;
            is_present |= sum > 0;
        }
        is_present
    }
}

/// For each key, the times to ask for: just before its first change, then at each change. `of_row`
/// is the key of each row that changes.
pub(crate) fn touched_times(of_row: &[u32], times: &Times) -> Vec<Vec<Time>> {
    let mut touches: Vec<(u32, Time)> = of_row.iter().enumerate().map(|(row, key)| (*key, times.get(row))).collect();
    touches.sort_unstable();
    touches.dedup();
    let times_of_key = touches.chunk_by(|left, right| left.0 == right.0).map(|touches| {
        let before = touches[0].1.saturating_sub(1);
        std::iter::once(before).chain(touches.iter().map(|&(_, time)| time)).collect()
    });
    times_of_key.collect()
}

/// The sources that are referred to, and the places as they are numbered there.
pub(crate) fn only_used<'a>(sources: &[&'a [ArrayRef]], mut places: Vec<Place>) -> (Vec<&'a [ArrayRef]>, Vec<Place>) {
    let mut numbers = vec![u32::MAX; sources.len()];
    let mut used = Vec::new();
    for (source, _) in &mut places {
        let number = &mut numbers[*source as usize];
        if *number == u32::MAX {
            *number = used.len() as u32;
            used.push(sources[*source as usize]);
        }
        *source = *number;
    }
    (used, places)
}
