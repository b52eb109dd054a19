//! The changes of a batch, by group and time: what stateful operators walk.
//!
//! Law: two rows are in the same segment exactly when they have the same slot and the same time.
//! Segments of one slot are in order of time. They are neighbours, and slots in order of their
//! first row; or, where that is asked for, all segments are in order of time: so is then what is
//! made of them, without being sorted. Cost: nothing when all rows have one time; O(rows) when rows
//! come in order of time; a sort by time otherwise.

use anabranch_batch::order::sort_by_time;
use anabranch_batch::{Time, Times};
use arrow::buffer::BooleanBuffer;

use crate::aggregate::group_table::Touched;

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
    /// Slots, each with a row, that absent rows alone have, so that they are in no segment.
    pub(crate) vacant: Vec<(u32, u32)>,
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

    /// The same of those rows that are `present`; all in order of time if the rows are, and then
    /// those of one slot are no neighbours. Absent rows have a number of their own, so that what
    /// sums rows up need not ask.
    pub(crate) fn in_time_order(touched: Touched, times: &Times, present: Option<&BooleanBuffer>) -> Segments {
        match times.clone().simplify() {
            Times::Column(column) if column.is_sorted() && !column.is_empty() => {
                Segments::new_ordered(touched, &column, present)
            }
            times => Segments::new(touched, &times).without_absent(present),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.slot.len()
    }

    /// Numbers of segments that rows may have: theirs, and that of absent rows if there are any.
    pub(crate) fn n_numbers(&self) -> usize {
        self.len() + usize::from(self.has_absent)
    }

    /// Absent rows belong to none of the segments, of which some may be left without a row.
    fn without_absent(mut self, present: Option<&BooleanBuffer>) -> Segments {
        if let Some(present) = present {
            let number = self.len() as u32;
            (!present).set_indices().for_each(|row| self.of_row[row] = number);
            self.has_absent = true;
        }
        self
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

    /// Segments of each slot: ranges of equal slots, unless segments are in order of time.
    pub(crate) fn by_slot(&self) -> impl Iterator<Item = std::ops::Range<usize>> {
        let mut end = 0;
        self.slot.chunk_by(|left, right| left == right).map(move |chunk| {
            end += chunk.len();
            end - chunk.len()..end
        })
    }

    fn new_at(touched: Touched, time: Time) -> Segments {
        let Touched { of_row, slot, first_row } = touched;
        Segments { of_row, slot, first_row, times: Times::Constant(time), has_absent: false, vacant: vec![] }
    }

    fn new_ordered(touched: Touched, times: &[Time], present: Option<&BooleanBuffer>) -> Segments {
        let mut of_row = touched.of_row;
        let mut segment_times: Vec<Time> = Vec::with_capacity(times.len());
        let (mut slot, mut first_row) = (Vec::with_capacity(times.len()), Vec::with_capacity(times.len()));
        let mut last_of_index = vec![u32::MAX; touched.slot.len()];
        let is_present = |row: u32| present.is_none_or(|present| present.value(row as usize));
        for (row, (of_row, &time)) in (0u32..).zip(of_row.iter_mut().zip(times)) {
            if !is_present(row) {
                *of_row = u32::MAX;
                continue;
            }
            let last = &mut last_of_index[*of_row as usize];
            if segment_times.get(*last as usize) != Some(&time) {
                *last = slot.len() as u32;
                slot.push(touched.slot[*of_row as usize]);
                first_row.push(row);
                segment_times.push(time);
            }
            *of_row = *last;
        }
        let of_all = touched.slot.iter().zip(&touched.first_row).zip(last_of_index);
        let vacant = of_all.filter(|(_, last)| *last == u32::MAX).map(|((&slot, &row), _)| (slot, row)).collect();
        let times = Times::Column(segment_times.into());
        let segments = Segments { of_row, slot, first_row, times, has_absent: false, vacant };
        segments.without_absent(present)
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
        let times = Times::Column(segment_times.into());
        Segments { of_row, slot, first_row, times, has_absent: false, vacant: vec![] }
    }
}

/// Rows sorted by the index of their slot; rows of one slot stay in the order given (a counting
/// sort).
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
    fn segments_are_in_order_of_time_where_that_is_asked_for() {
        let touched = Touched { of_row: vec![0, 1, 0, 0, 1], slot: vec![7, 4], first_row: vec![0, 1] };
        let segments = Segments::in_time_order(touched.clone(), &Times::Column(vec![2, 3, 3, 3, 5].into()), None);
        assert_eq!(segments.slot, [7, 4, 7, 4]);
        assert_eq!(segments.first_row, [0, 1, 2, 4]);
        assert_eq!((0..4).map(|segment| segments.times.get(segment)).collect::<Vec<_>>(), [2, 3, 3, 5]);
        assert_eq!(segments.of_row, [0, 1, 2, 2, 3]);
        // Rows that are not leave them by slot.
        let segments = Segments::in_time_order(touched.clone(), &Times::Column(vec![5, 3, 2, 5, 3].into()), None);
        assert_eq!(segments.slot, [7, 7, 4]);
        // Absent rows have no segment, and slot 4 none but theirs.
        let present: BooleanBuffer = [true, false, false, true, false].into_iter().collect();
        let segments = Segments::in_time_order(touched, &Times::Column(vec![2, 3, 3, 3, 5].into()), Some(&present));
        assert_eq!((segments.slot.as_slice(), segments.first_row.as_slice()), ([7, 7].as_slice(), [0, 3].as_slice()));
        assert_eq!((segments.of_row.as_slice(), segments.n_numbers()), ([0, 2, 2, 1, 2].as_slice(), 3));
        assert_eq!(segments.vacant, [(4, 1)]);
    }

    #[test]
    fn one_time_needs_no_sorting() {
        let touched = Touched { of_row: vec![0, 1, 0], slot: vec![9, 8], first_row: vec![0, 1] };
        let segments = Segments::new(touched, &Times::Column(vec![4, 4, 4].into()));
        assert_eq!((segments.slot.as_slice(), segments.of_row.as_slice()), ([9, 8].as_slice(), [0, 1, 0].as_slice()));
        assert!(matches!(segments.times, Times::Constant(4)));
    }
}
