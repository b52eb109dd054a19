//! The changes of a batch, by group and time: what stateful operators walk.
//!
//! Law: two rows are in the same segment exactly when they have the same slot and the same time. Segments of one slot are
//! neighbours, in order of time; slots are in order of their first row. Cost: nothing when all rows have one time; O(rows)
//! when rows come in order of time; a sort by time otherwise.

use anabranch_batch::order::sort_by_time;
use anabranch_batch::{Time, Times};
use arrow::buffer::BooleanBuffer;

use crate::group_table::Touched;

/// Distinct (slot, time) pairs of a batch.
#[derive(Debug)]
pub(crate) struct Segments {
    /// The segment of each row.
    pub(crate) of_row: Vec<u32>,
    /// The slot of each segment.
    pub(crate) slot: Vec<u32>,
    /// Some row of each segment.
    pub(crate) first_row: Vec<u32>,
    /// The time of each segment.
    pub(crate) times: Times,
    /// Whether rows that are absent have a number of their own, one more than the last segment's.
    has_absent: bool,
}

impl Segments {
    /// The segments of rows with these slots and times.
    pub(crate) fn new(touched: Touched, times: &Times) -> Segments {
        match times.clone().simplify() {
            Times::Column(column) if !column.is_empty() => Segments::new_timed(touched, &column),
            Times::Column(_) => Segments::new_at(touched, 0),
            Times::Constant(time) => Segments::new_at(touched, time),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.slot.len()
    }

    /// Numbers of segments that rows may have: theirs, and that of absent rows if there are any.
    pub(crate) fn n_numbers(&self) -> usize {
        self.len() + usize::from(self.has_absent)
    }

    /// Absent rows belong to none of the segments from now on, but have a number of their own, so that what sums rows up need not ask.
    pub(crate) fn leave_out_absent(&mut self, present: Option<&BooleanBuffer>) {
        let Some(present) = present else { return };
        let number = self.len() as u32;
        (!present).set_indices().for_each(|row| self.of_row[row] = number);
        self.has_absent = true;
    }

    /// Makes sure that slot 0, the only one, has a segment at `time`, be it of no rows.
    pub(crate) fn insert_time(&mut self, time: Time) {
        let times: Vec<Time> = (0..self.len()).map(|segment| self.times.get(segment)).collect();
        let Err(segment) = times.binary_search(&time) else { return };
        self.of_row.iter_mut().filter(|of_row| **of_row >= segment as u32).for_each(|of_row| *of_row += 1);
        self.slot.insert(segment, 0);
        self.first_row.insert(segment, 0);
        let times = [&times[..segment], &[time], &times[segment..]].concat();
        self.times = Times::Column(times.into()).simplify();
    }

    /// Segments of each slot: ranges of equal slots.
    pub(crate) fn by_slot(&self) -> impl Iterator<Item = std::ops::Range<usize>> {
        let mut end = 0;
        self.slot.chunk_by(|left, right| left == right).map(move |chunk| {
            end += chunk.len();
            end - chunk.len()..end
        })
    }

    fn new_at(touched: Touched, time: Time) -> Segments {
        let Touched { of_row, slot, first_row } = touched;
        Segments { of_row, slot, first_row, times: Times::Constant(time), has_absent: false }
    }

    fn new_timed(touched: Touched, times: &[Time]) -> Segments {
        let rows = rows_by_slot(&touched, &sort_by_time(times));
        let mut of_row = vec![0; times.len()];
        let mut segment_times = Vec::with_capacity(touched.slot.len());
        let (mut slot, mut first_row) =
            (Vec::with_capacity(touched.slot.len()), Vec::with_capacity(touched.slot.len()));
        let mut last = None;
        for row in rows {
            let (index, time) = (touched.of_row[row as usize], times[row as usize]);
            if last != Some((index, time)) {
                last = Some((index, time));
                slot.push(touched.slot[index as usize]);
                first_row.push(row);
                segment_times.push(time);
            }
            of_row[row as usize] = slot.len() as u32 - 1;
        }
        Segments { of_row, slot, first_row, times: Times::Column(segment_times.into()), has_absent: false }
    }
}

/// Rows sorted by the index of their slot; rows of one slot stay in the order given (a counting sort).
fn rows_by_slot(touched: &Touched, rows: &[u32]) -> Vec<u32> {
    let mut next = vec![0u32; touched.slot.len() + 1];
    touched.of_row.iter().for_each(|&index| next[index as usize + 1] += 1);
    for index in 0..touched.slot.len() {
        next[index + 1] += next[index];
    }
    let mut sorted = vec![0; rows.len()];
    for &row in rows {
        let place = &mut next[touched.of_row[row as usize] as usize];
        sorted[*place as usize] = row;
        *place += 1;
    }
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_by_slot_then_time() {
        let touched = Touched { of_row: vec![0, 1, 0, 0, 1], slot: vec![7, 4], first_row: vec![0, 1] };
        let times = Times::Column(vec![5, 3, 2, 5, 3].into());
        let segments = Segments::new(touched, &times);
        assert_eq!(segments.slot, [7, 7, 4]);
        assert_eq!((0..3).map(|segment| segments.times.get(segment)).collect::<Vec<_>>(), [2, 5, 3]);
        assert_eq!(segments.of_row, [1, 2, 0, 1, 2]);
        assert_eq!(segments.by_slot().collect::<Vec<_>>(), [0..2, 2..3]);
    }

    #[test]
    fn one_time_needs_no_sorting() {
        let touched = Touched { of_row: vec![0, 1, 0], slot: vec![9, 8], first_row: vec![0, 1] };
        let segments = Segments::new(touched, &Times::Column(vec![4, 4, 4].into()));
        assert_eq!((segments.slot.as_slice(), segments.of_row.as_slice()), ([9, 8].as_slice(), [0, 1, 0].as_slice()));
        assert!(matches!(segments.times, Times::Constant(4)));
    }
}
