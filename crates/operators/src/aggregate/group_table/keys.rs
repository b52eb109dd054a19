//! The keys of a group table: columns addressed by slot.
//!
//! Law: between [`KeyStore::append`] and [`KeyStore::release`] a slot's key is what was appended
//! for it. Keys lie in segments in order of arrival; a segment is merged into the one before it
//! when that is less than twice as long, so there are O(log keys) segments and a key is copied
//! O(log keys) times. Keys of released slots stay as garbage until they outnumber the others, then
//! all is rewritten.

use anabranch_batch::{Columns, equal, gather};
use arrow::array::{Array, ArrayRef};

/// Position of a slot that has no key.
const NOWHERE: u32 = u32::MAX;

/// Garbage keys that are not worth a rewrite.
const GARBAGE_MIN: usize = 4096;

/// Keys by slot. See the module's page.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeyStore {
    /// Non-empty, in order of their starts; together they cover `0..end`.
    segments: Vec<Segment>,
    /// Where each slot's key lies, or [`NOWHERE`].
    positions: Vec<u32>,
    /// Slots that have a key.
    live: usize,
}

#[derive(Clone, Debug)]
struct Segment {
    start: u32,
    len: u32,
    columns: Columns,
}

impl KeyStore {
    /// The key of `slots[i]` is row `rows[i]` of `columns`. The slots have no key so far.
    pub(crate) fn append(&mut self, slots: &[u32], columns: &[ArrayRef], rows: &[u32]) {
        if slots.is_empty() {
            return;
        }
        let start = self.end();
        assert!((start as usize + slots.len()) < NOWHERE as usize, "a worker has fewer than four billion groups");
        for (position, &slot) in (start..).zip(slots) {
            if self.positions.len() <= slot as usize {
                self.positions.resize(slot as usize + 1, NOWHERE);
            }
            debug_assert_eq!(self.positions[slot as usize], NOWHERE);
            self.positions[slot as usize] = position;
        }
        self.live += slots.len();
        let columns = gather::compact_views(gather::take(columns, rows));
        self.segments.push(Segment { start, len: slots.len() as u32, columns });
        self.merge_segments();
    }

    /// Forgets all keys, and keeps their room.
    pub(crate) fn clear(&mut self) {
        self.segments.clear();
        self.positions.clear();
        self.live = 0;
    }

    /// Forgets the key of `slot`.
    pub(crate) fn release(&mut self, slot: u32) {
        let position = std::mem::replace(&mut self.positions[slot as usize], NOWHERE);
        assert_ne!(position, NOWHERE, "a released slot has a key");
        self.live -= 1;
        if self.end() as usize > 2 * self.live + GARBAGE_MIN {
            self.rewrite();
        }
    }

    /// Slot `i` is from now on what slot `old_of_new[i]` was.
    pub(crate) fn renumber(&mut self, old_of_new: &[u32]) {
        self.positions = old_of_new.iter().map(|&old| self.positions[old as usize]).collect();
        self.rewrite();
    }

    /// Whether the key of `slots[i]` equals row `rows[i]` of `columns`, for each `i`.
    pub(crate) fn equal(&self, slots: &[u32], columns: &[ArrayRef], rows: &[u32]) -> Vec<bool> {
        let positions: Vec<u32> = slots.iter().map(|&slot| self.positions[slot as usize]).collect();
        if let [only] = self.segments.as_slice() {
            return equal::rows_equal(&only.columns, &positions, columns, rows);
        }
        let mut of_segment: Vec<(Vec<u32>, Vec<u32>, Vec<u32>)> = vec![Default::default(); self.segments.len()];
        for (index, &position) in positions.iter().enumerate() {
            let segment = self.segment_of(position);
            let (stored, given, indexes) = &mut of_segment[segment];
            stored.push(position - self.segments[segment].start);
            given.push(rows[index]);
            indexes.push(index as u32);
        }
        let mut result = vec![false; slots.len()];
        for (segment, (stored, given, indexes)) in self.segments.iter().zip(of_segment) {
            if !indexes.is_empty() {
                let equal = equal::rows_equal(&segment.columns, &stored, columns, &given);
                indexes.iter().zip(equal).for_each(|(&index, equal)| result[index as usize] = equal);
            }
        }
        result
    }

    /// The columns that keys lie in.
    pub(crate) fn sources(&self) -> Vec<&[ArrayRef]> {
        self.segments.iter().map(|segment| &*segment.columns).collect()
    }

    /// Where the key of `slot` lies: which of the sources, and where in it.
    pub(crate) fn place(&self, slot: u32) -> (u32, u32) {
        let position = self.positions[slot as usize];
        debug_assert_ne!(position, NOWHERE, "the slot has a key");
        let segment = self.segment_of(position);
        (segment as u32, position - self.segments[segment].start)
    }

    pub(crate) fn size_bytes(&self) -> usize {
        let columns = self.segments.iter().flat_map(|segment| segment.columns.iter());
        let columns: usize = columns.map(|column| column.get_buffer_memory_size()).sum();
        columns + self.positions.capacity() * size_of::<u32>()
    }

    /// Positions given out so far.
    fn end(&self) -> u32 {
        self.segments.last().map_or(0, |last| last.start + last.len)
    }

    fn segment_of(&self, position: u32) -> usize {
        self.segments.partition_point(|segment| segment.start <= position) - 1
    }

    fn merge_segments(&mut self) {
        while let [.., before, last] = self.segments.as_slice()
            && before.len < 2 * last.len
        {
            let columns = gather::compact_views(gather::concat(&[&before.columns, &last.columns]));
            let merged = Segment { start: before.start, len: before.len + last.len, columns };
            self.segments.truncate(self.segments.len() - 2);
            self.segments.push(merged);
        }
    }

    /// Copies the live keys into one segment, in slot order.
    fn rewrite(&mut self) {
        let mut picks = Vec::with_capacity(self.live);
        for slot in 0..self.positions.len() {
            let position = self.positions[slot];
            if position != NOWHERE {
                let segment = self.segment_of(position);
                self.positions[slot] = picks.len() as u32;
                picks.push((segment as u32, position - self.segments[segment].start));
            }
        }
        let sources: Vec<&[ArrayRef]> = self.segments.iter().map(|segment| &*segment.columns).collect();
        let segment = (!picks.is_empty()).then(|| {
            let columns = gather::compact_views(gather::interleave(&sources, &picks));
            Segment { start: 0, len: picks.len() as u32, columns }
        });
        self.segments = segment.into_iter().collect();
    }
}
