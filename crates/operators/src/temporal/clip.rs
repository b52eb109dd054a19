//! Lifetimes that end when an event of another stream begins.
//!
//! ```text
//!     left    [1, 10) a    [2, 4) b          right begins at 2, 5
//!     out     [1, 2) a     [2, 4) b
//! ```
//!
//! Law: an event [s, e) of the left input becomes [s, min(e, r)), where r is the first time *after*
//! s at which an event of the right input with an equal key begins. A right event at s itself, or
//! one that began earlier, does not clip; when right events end does not matter. NULL keys match
//! nothing. A stream clipped by itself is "the last value until the next".
//!
//! State: left events in force; nothing of the right. An event comes out as a start edge when time
//! has passed its start, and its end when time has passed that; when both happen at once, as an
//! interval. Source: Trill, `ClipEventDuration`, 2.4 of its semantics here.

use anabranch_batch::{Batch, END, Time, hash};
use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::aggregate::group_table::GroupTable;
use anabranch_flow::tactic::{Output, Timed};

use super::events::{EventKind, EventOutput, EventQueue, Ready, kind};
use super::rows::RowSet;

/// The tactic. See the module's page.
#[derive(Debug)]
pub struct Clip {
    left_key: Vec<usize>,
    right_key: Vec<usize>,
    left: EventQueue,
    right: EventQueue,
    table: GroupTable,
    /// By the table's slot.
    groups: Vec<Group>,
    rows: RowSet,
    /// Known ends of left events in force: end and slot. Some are of events that have been clipped.
    ends: BinaryHeap<Reverse<(Time, u32)>>,
}

/// Left events of one key.
#[derive(Debug, Default)]
struct Group {
    /// Of the key; `None` while the slot is free.
    hash: Option<u64>,
    open: Vec<Open>,
}

/// A left event in force.
#[derive(Clone, Copy, Debug)]
struct Open {
    start: Time,
    /// Where it ends unless it is clipped; [`END`] if unknown.
    end: Time,
    /// Its row.
    id: u32,
    /// Its row in the batch at hand, if it is not out yet.
    fresh: Option<u32>,
}

/// Something that happens at a time, in the order in which things of one time happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happens {
    RightBegins,
    LeftEnds,
    LeftBegins,
}

/// One thing that happens, in the order of things.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Happening {
    time: Time,
    what: Happens,
    row: u32,
    slot: u32,
}

impl Clip {
    /// Clips left events of rows of types `left_types` by right events whose columns `right_key`
    /// equal the left's `left_key`.
    pub fn new(left_key: Vec<usize>, left_types: &[DataType], right_key: Vec<usize>) -> Clip {
        let key_types: Vec<DataType> = left_key.iter().map(|&column| left_types[column].clone()).collect();
        Clip {
            left_key,
            right_key,
            left: EventQueue::default(),
            right: EventQueue::default(),
            table: GroupTable::new(&key_types),
            groups: Vec::new(),
            rows: RowSet::new(left_types),
            ends: BinaryHeap::new(),
        }
    }

    /// The slots of rows by key; new groups remember their hash.
    fn slots(&mut self, ready: &Ready, columns: &[usize]) -> Vec<u32> {
        let key: Vec<ArrayRef> = columns.iter().map(|&column| ready.batch.column(column).clone()).collect();
        let hashes = hash::hash_columns(&key, ready.len());
        let touched = self.table.touch(&key, &hashes);
        if self.groups.len() < self.table.n_slots() {
            self.groups.resize_with(self.table.n_slots(), Group::default);
        }
        for (&slot, &row) in touched.slot.iter().zip(&touched.first_row) {
            self.groups[slot as usize].hash = Some(hashes[row as usize]);
        }
        touched.of_row.iter().map(|&index| touched.slot[index as usize]).collect()
    }

    /// Takes a left row that begins or ends an event.
    fn take_left(&mut self, ready: &Ready, row: u32, slot: u32, id: u32, done: &mut Done) {
        let (time, until) = (ready.times[row as usize], ready.untils[row as usize]);
        let group = &mut self.groups[slot as usize];
        match kind(time, until) {
            Some(EventKind::Start | EventKind::Interval) => {
                group.open.push(Open { start: time, end: until, id, fresh: Some(row) });
                if until < END {
                    self.ends.push(Reverse((until, slot)));
                }
            }
            Some(EventKind::End) => {
                done.released.push(id);
                let found = group.open.iter().position(|open| (open.start, open.end, open.id) == (until, END, id));
                if let Some(index) = found {
                    let open = group.open.swap_remove(index);
                    done.put_out(open, time);
                }
            }
            None => done.released.push(id),
        }
    }

    /// Ends the left events of a group that began before `time`, and are still in force then.
    fn clip(&mut self, slot: u32, time: Time, done: &mut Done) {
        self.groups[slot as usize].open.retain(|open| {
            if open.start < time {
                done.put_out(*open, open.end.min(time));
            }
            open.start >= time
        });
    }

    /// Ends left intervals whose end has come.
    fn end_upto(&mut self, upto: Time, done: &mut Done) {
        while let Some(&Reverse((end, slot))) = self.ends.peek().filter(|Reverse((end, _))| *end <= upto) {
            self.ends.pop();
            self.groups[slot as usize].open.retain(|open| {
                if open.end <= end {
                    done.put_out(*open, open.end);
                }
                open.end > end
            });
            done.touched.push(slot);
        }
    }

    /// Start edges of the events that stay in force.
    fn put_out_starts(&mut self, done: &mut Done) {
        for &slot in &done.touched {
            for open in &mut self.groups[slot as usize].open {
                if let Some(row) = open.fresh.take() {
                    done.emit.fresh(row, open.start, END);
                }
            }
        }
    }

    /// Frees groups without events.
    fn forget_empty(&mut self, slots: Vec<u32>) {
        for slot in slots {
            let group = &mut self.groups[slot as usize];
            if group.open.is_empty()
                && let Some(hash) = group.hash.take()
            {
                group.open = Vec::new();
                self.table.release(slot, hash);
            }
        }
    }
}

/// Whether no key column of a row is NULL.
fn known_keys(batch: &Batch, key: &[usize]) -> impl Fn(usize) -> bool {
    let nulls: Vec<_> = key.iter().filter_map(|&column| batch.column(column).logical_nulls()).collect();
    move |row| nulls.iter().all(|nulls| nulls.is_valid(row))
}

/// What an advance has done so far.
#[derive(Debug, Default)]
struct Done {
    emit: EventOutput,
    released: Vec<u32>,
    touched: Vec<u32>,
}

impl Done {
    /// The event ends at `end`.
    fn put_out(&mut self, open: Open, end: Time) {
        match open.fresh {
            Some(row) => self.emit.fresh(row, open.start, end),
            None => self.emit.stored(open.id, end, open.start),
        }
        self.released.push(open.id);
    }
}

impl Timed for Clip {
    fn push(&mut self, input: usize, batch: Batch) {
        match input {
            0 => self.left.push(batch),
            _ => self.right.push_starts(batch),
        }
    }

    fn advance(&mut self, upto: Time, out: &mut Output) {
        let (left, right) = (self.left.take_before(upto), self.right.take_before(upto));
        let mut done = Done::default();
        let mut happens = Vec::new();
        let mut ids = Vec::new();
        if let Some(left) = &left {
            ids = self.rows.hold(left.batch.columns(), left.len());
            let slots = self.slots(left, &self.left_key.clone());
            done.touched.extend(&slots);
            happens.extend((0u32..).zip(slots).map(|(row, slot)| {
                let (time, until) = (left.times[row as usize], left.untils[row as usize]);
                let what = if until < time { Happens::LeftEnds } else { Happens::LeftBegins };
                Happening { time, what, row, slot }
            }));
        }
        if let Some(right) = &right {
            let slots = self.slots(right, &self.right_key.clone());
            done.touched.extend(&slots);
            let is_known = known_keys(&right.batch, &self.right_key);
            let rows = (0u32..).zip(slots).filter(|&(row, _)| is_known(row as usize));
            happens.extend(rows.map(|(row, slot)| Happening {
                time: right.times[row as usize],
                what: Happens::RightBegins,
                row,
                slot,
            }));
        }
        happens.sort_unstable();
        for Happening { time, what, row, slot } in happens {
            match (what, &left) {
                (Happens::RightBegins, _) => self.clip(slot, time, &mut done),
                (_, Some(left)) => self.take_left(left, row, slot, ids[row as usize], &mut done),
                (_, None) => unreachable!("left events happen when there are any"),
            }
        }
        self.end_upto(upto, &mut done);
        done.touched.sort_unstable();
        done.touched.dedup();
        self.put_out_starts(&mut done);
        let fresh = left.as_ref().map_or(&[][..], |left| left.batch.columns());
        out.give_rows(done.emit.finish(fresh, self.rows.store()));
        done.released.into_iter().for_each(|id| self.rows.release(id));
        self.forget_empty(done.touched);
    }

    fn pending_from(&self) -> Option<Time> {
        let end = self.ends.peek().map(|Reverse((end, _))| *end);
        [self.left.pending_from(), self.right.pending_from(), end].into_iter().flatten().min()
    }

    fn size_bytes(&self) -> usize {
        let open: usize = self.groups.iter().map(|group| group.open.capacity() * size_of::<Open>()).sum();
        let ends = self.ends.len() * size_of::<(Time, u32)>();
        let queues = self.left.size_bytes() + self.right.size_bytes();
        queues + self.table.size_bytes() + self.rows.size_bytes() + open + ends
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::temporal::Hold;
    use crate::temporal::testing::*;

    fn clip() -> Clip {
        Clip::new(vec![], &types(), vec![])
    }

    #[test]
    fn only_a_later_start_clips() {
        let left = [(1, 10, 1), (2, 4, 2), (105, 110, 3), (115, 120, 4), (150, END, 5)];
        let right = [(2, 3, 0), (5, END, 0), (105, 106, 0), (114, 190, 0), (116, 117, 0), (160, 161, 0)];
        let expected = [(1, 2, 1), (2, 4, 2), (105, 110, 3), (115, 116, 4), (150, 160, 5)];
        check_inputs(Hold::Same, clip, &[&left, &right], &expected);
    }

    #[test]
    fn the_last_value_until_the_next() {
        let signal = [(1, END, 1), (4, END, 2), (4, END, 3), (9, END, 4)];
        check_inputs(Hold::Same, clip, &[&signal, &signal], &[(1, 4, 1), (4, 9, 2), (4, 9, 3), (9, END, 4)]);
    }

    #[test]
    fn keys_clip_their_own() {
        let left = [(1, END, 1), (1, END, 2), (6, 1, 2)];
        let right = [(3, 4, 1), (8, END, 2), (9, END, 7)];
        let keyed = || Clip::new(vec![0], &types(), vec![0]);
        check_inputs(Hold::Same, keyed, &[&left, &right], &[(1, 3, 1), (1, 6, 2)]);
    }
}
