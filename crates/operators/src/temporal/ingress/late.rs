//! Late rows: an error, dropped, or moved to the current time; and what that means for the end
//! edges of late start edges.
//!
//! An end edge is the end of what has become of its event by the time it is let through: its start
//! edge may come, late, while it waits.

use std::sync::Arc;

use anabranch_batch::{Batch, Diffs, END, Time, Times, Until, gather};
use arrow::array::{ArrayRef, Int64Array};

use super::stream::{Arriving, Ingress};
use super::waiting::{Place, WaitingEvent};
use super::{Disorder, IngressEnds, Late};
use crate::temporal::events::{EventKind, kind};

impl Ingress {
    /// Does with a late row what the policy says.
    pub(super) fn take_late(&mut self, row: usize, arriving: &mut Arriving) -> Result<(), Late> {
        let (slot, time, until) = (arriving.slots[row], arriving.times[row], arriving.untils[row]);
        let current = self.partition(slot).current;
        let kind = kind(time, until);
        match (self.policy.disorder, kind) {
            (Disorder::Error, _) => return Err(Late { row, time, current }),
            (Disorder::Drop, Some(EventKind::Start)) => {
                self.remember(row, time, None, arriving);
                self.drop_row(row, arriving);
            }
            (Disorder::Drop, Some(EventKind::End)) => {
                // (Forgets the start edge if that was dropped.)
                self.moved_start(row, until, arriving);
                self.drop_row(row, arriving);
            }
            (Disorder::Adjust, Some(EventKind::Start)) => {
                self.remember(row, time, Some(current), arriving);
                self.move_row(row, END, arriving);
            }
            (Disorder::Adjust, Some(EventKind::End)) => {
                let start = self.moved_start(row, until, arriving).unwrap_or(until);
                self.move_row(row, start, arriving);
            }
            (Disorder::Adjust, Some(EventKind::Interval)) if until > current => {
                self.move_row(row, until, arriving);
            }
            (Disorder::Drop | Disorder::Adjust, _) => self.drop_row(row, arriving),
        }
        Ok(())
    }

    pub(super) fn drop_row(&mut self, row: usize, arriving: &mut Arriving) {
        self.counts.dropped += 1;
        if self.policy.report {
            arriving.late.push((row as u32, None));
        }
    }

    /// Lets a late row through at the current time.
    fn move_row(&mut self, row: usize, until: Time, arriving: &mut Arriving) {
        let slot = arriving.slots[row];
        let current = self.partition(slot).current;
        self.counts.adjusted += 1;
        if self.policy.report {
            arriving.late.push((row as u32, Some(current.saturating_sub(arriving.times[row]))));
        }
        let entry = WaitingEvent::fresh(row, current, until);
        let is_end = kind(arriving.times[row], arriving.untils[row]) == Some(EventKind::End);
        let entry = if is_end { entry.ending(until) } else { entry };
        self.let_through(slot, current, entry, arriving);
    }

    /// Remembers what became of a late start edge.
    fn remember(&mut self, row: usize, start: Time, moved: Option<Time>, arriving: &mut Arriving) {
        if self.policy.ends == IngressEnds::Never {
            return;
        }
        let id = self.id_of(row, arriving);
        self.rows.hold_again(id);
        self.moved.entry((id, start)).or_default().push_back(moved);
    }

    /// Where the event of an end edge begins now that began at `start`: nowhere if that was
    /// dropped.
    pub(super) fn moved_start(&mut self, row: usize, start: Time, arriving: &mut Arriving) -> Option<Time> {
        if self.moved.is_empty() {
            return Some(start);
        }
        let id = self.id_of(row, arriving);
        self.moved_start_of(id, start)
    }

    fn moved_start_of(&mut self, id: u32, start: Time) -> Option<Time> {
        let Some(moved) = self.moved.get_mut(&(id, start)) else { return Some(start) };
        let first = moved.pop_front().expect("an entry has a start");
        if moved.is_empty() {
            self.moved.remove(&(id, start));
        }
        self.rows.release(id);
        first
    }

    /// An end edge that is to wait: its start edge may come late before it is let through.
    pub(super) fn awaits_start(&mut self, row: usize, entry: WaitingEvent, arriving: &mut Arriving) -> WaitingEvent {
        if self.policy.disorder == Disorder::Error || self.policy.ends == IngressEnds::Never {
            return entry;
        }
        let id = self.id_of(row, arriving);
        self.rows.hold_again(id);
        WaitingEvent { contents: Some(id), ..entry }
    }

    /// A row that has waited; an end edge as the end of what has become of its event, `None` if
    /// that was dropped.
    pub(super) fn settled(&mut self, entry: WaitingEvent, arriving: &mut Arriving) -> Option<WaitingEvent> {
        let Some(id) = entry.contents else { return Some(entry) };
        let start = self.moved_start_of(id, entry.until);
        self.rows.release(id);
        if start.is_none() {
            self.drop_waited(entry, arriving);
        }
        start.map(|start| entry.ending(start))
    }

    /// Drops a row that has waited.
    fn drop_waited(&mut self, entry: WaitingEvent, arriving: &mut Arriving) {
        match entry.place {
            Place::Fresh(row) => self.drop_row(row as usize, arriving),
            Place::Stored(id) => {
                self.counts.dropped += 1;
                if self.policy.report {
                    let store = &self.waiting.store;
                    let row = gather::interleave(&store.sources(), &[store.place(id)]);
                    let dropped: ArrayRef = Arc::new(Int64Array::new_null(1));
                    let columns = row.iter().cloned().chain([dropped]).collect();
                    let batch = Batch::with_len(columns, 1, Times::Constant(entry.time), Diffs::Constant(1));
                    self.report.push(batch.with_until(Until::Column(vec![entry.until].into())));
                }
                arriving.released.push(id);
            }
            Place::Gone => unreachable!("a row is let through once"),
        }
    }

    /// The number of a row's contents.
    fn id_of(&mut self, row: usize, arriving: &mut Arriving) -> u32 {
        let rows = &mut self.rows;
        arriving.ids.get_or_insert_with(|| rows.hold(arriving.batch.columns(), arriving.batch.len()))[row]
    }
}
