//! Events that wait until their times are complete, and events on their way out.
//!
//! Law of [`EventQueue`]: every event pushed comes out once, at the first call whose bound is after
//! its sync time, in order of sync time, events of one time in order of arrival. Cost: a sort of
//! what is ready, none if it arrived in order.

use std::cmp::Ordering;

use anabranch_batch::{Batch, Columns, Diffs, END, Time, Times, Until, gather};
use arrow::array::ArrayRef;
use arrow::buffer::ScalarBuffer;

use anabranch_flow::pending::Pending;

use super::rows::RowStore;
use super::ticks::starts_only;

/// What a row of a batch of events is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventKind {
    /// Begins and ends at known times.
    Interval,
    /// Begins; the end comes later, or never.
    Start,
    /// The end of an event that began earlier.
    End,
}

/// What a row with these times is; `None` for an empty lifetime.
#[inline]
pub(crate) fn kind(time: Time, until: Time) -> Option<EventKind> {
    match until.cmp(&time) {
        Ordering::Greater if until == END => Some(EventKind::Start),
        Ordering::Greater => Some(EventKind::Interval),
        Ordering::Less => Some(EventKind::End),
        Ordering::Equal => None,
    }
}

/// Applies `map` to the lifetime of every row, as (time, until); `None` drops the row. All rows are
/// present; diffs stay.
pub(crate) fn map_lifetimes(batch: Batch, map: impl Fn(Time, Time) -> Option<(Time, Time)>) -> Batch {
    let len = batch.len();
    let (mut times, mut untils, mut kept) = (Vec::with_capacity(len), Vec::with_capacity(len), Vec::with_capacity(len));
    for row in 0..len {
        let time = batch.times().get(row);
        if let Some((time, until)) = map(time, batch.until().get(row, time)) {
            times.push(time);
            untils.push(until);
            kept.push(row as u32);
        }
    }
    let batch = if kept.len() == len { batch } else { batch.take(&kept) };
    with_lifetimes(batch, times, untils)
}

/// Events in order of arrival.
#[derive(Debug, Default)]
pub(crate) struct EventQueue {
    waiting: Pending,
}

/// Events in order of sync time, each standing for one.
#[derive(Debug)]
pub(crate) struct Ready {
    pub(crate) batch: Batch,
    pub(crate) times: ScalarBuffer<i64>,
    pub(crate) untils: ScalarBuffer<i64>,
}

impl EventQueue {
    /// Keeps the events of `batch` until their times are complete.
    ///
    /// # Panics
    /// If a diff is negative: the end of an event is an end edge.
    pub(crate) fn push(&mut self, batch: Batch) {
        self.waiting.keep(one_each(batch.compact()));
    }

    /// As [`EventQueue::push`], for those who ask only when events begin: without end edges.
    pub(crate) fn push_starts(&mut self, batch: Batch) {
        self.push(starts_only(batch.compact()));
    }

    /// All events with a sync time before `upto`, in order; `None` if there are none.
    pub(crate) fn take_before(&mut self, upto: Time) -> Option<Ready> {
        Some(Ready::new(self.waiting.take_before(upto)?.in_time_order()))
    }

    /// The least sync time that waits.
    pub(crate) fn pending_from(&self) -> Option<Time> {
        self.waiting.pending_from()
    }

    pub(crate) fn size_bytes(&self) -> usize {
        self.waiting.size_bytes()
    }
}

impl Ready {
    fn new(batch: Batch) -> Ready {
        let times = batch.times().to_column(batch.len());
        let untils = untils(&batch);
        Ready { batch, times, untils }
    }

    pub(crate) fn len(&self) -> usize {
        self.batch.len()
    }
}

/// The other time of every row.
pub(crate) fn untils(batch: &Batch) -> ScalarBuffer<i64> {
    match batch.until() {
        Until::Column(untils) => untils.clone(),
        constant => (0..batch.len()).map(|row| constant.get(row, batch.times().get(row))).collect(),
    }
}

/// The rows of `batch` with these lifetimes.
pub(crate) fn with_lifetimes(batch: Batch, times: Vec<Time>, untils: Vec<Time>) -> Batch {
    let until = simplify(&times, untils);
    batch.with_times(Times::Column(times.into()).simplify()).with_until(until)
}

/// One constant for all untils, where one says the same.
fn simplify(times: &[Time], untils: Vec<Time>) -> Until {
    let Some((&time, &until)) = times.first().zip(untils.first()) else { return Until::Forever };
    if untils.iter().all(|&until| until == END) {
        return Until::Forever;
    }
    let duration = until.saturating_sub(time);
    let is_constant = duration > 0
        && until != END
        && times.iter().zip(&untils).all(|(&time, &until)| time.checked_add(duration) == Some(until));
    if is_constant { Until::Duration(duration) } else { Until::Column(untils.into()) }
}

/// Every row once for each of the events it stands for; rows of none, and empty lifetimes, left
/// out.
pub(crate) fn one_each(batch: Batch) -> Batch {
    let is_empty = |row: usize| {
        let time = batch.times().get(row);
        batch.until().get(row, time) == time
    };
    let may_be_empty = matches!(batch.until(), Until::Column(_) | Until::Duration(0));
    if matches!(batch.diffs(), Diffs::Constant(1)) && !(may_be_empty && (0..batch.len()).any(is_empty)) {
        return batch;
    }
    let mut rows = Vec::with_capacity(batch.len());
    for row in (0..batch.len()).filter(|&row| !is_empty(row)) {
        let n = usize::try_from(batch.diffs().get(row)).expect("an event stands for no fewer than none");
        rows.extend(std::iter::repeat_n(row as u32, n));
    }
    batch.take(&rows).with_diffs(Diffs::Constant(1))
}

/// Output events under construction: rows of the batch at hand, or rows remembered.
#[derive(Debug, Default)]
pub(crate) struct EventOutput {
    picks: Vec<Pick>,
    times: Vec<Time>,
    untils: Vec<Time>,
}

/// Where an output row comes from.
#[derive(Clone, Copy, Debug)]
enum Pick {
    Fresh(u32),
    Stored(u32),
}

impl EventOutput {
    pub(crate) fn len(&self) -> usize {
        self.picks.len()
    }

    /// Row `row` of the batch at hand.
    pub(crate) fn fresh(&mut self, row: u32, time: Time, until: Time) {
        self.push(Pick::Fresh(row), time, until);
    }

    /// The remembered row `id`.
    pub(crate) fn stored(&mut self, id: u32, time: Time, until: Time) {
        self.push(Pick::Stored(id), time, until);
    }

    /// The events, made of the batch at hand (`fresh`) and the rows remembered in `store`.
    pub(crate) fn finish(self, fresh: &[ArrayRef], store: &RowStore) -> Batch {
        let len = self.picks.len();
        if len == 0 {
            return Batch::default();
        }
        let columns = self.gather(fresh, store);
        with_lifetimes(Batch::with_len(columns, len, Times::Constant(0), Diffs::Constant(1)), self.times, self.untils)
    }

    fn push(&mut self, pick: Pick, time: Time, until: Time) {
        self.picks.push(pick);
        self.times.push(time);
        self.untils.push(until);
    }

    fn gather(&self, fresh: &[ArrayRef], store: &RowStore) -> Columns {
        let rows: Option<Vec<u32>> = self.picks.iter().map(|pick| pick.as_fresh()).collect();
        if let Some(rows) = rows {
            let first = rows[0] as usize;
            let is_slice = rows.iter().enumerate().all(|(at, &row)| row as usize == first + at);
            return match is_slice {
                true => fresh.iter().map(|column| column.slice(first, rows.len())).collect(),
                false => gather::take(fresh, &rows),
            };
        }
        let mut sources = store.sources();
        let fresh_source = sources.len() as u32;
        let places: Vec<(u32, u32)> = self
            .picks
            .iter()
            .map(|pick| match *pick {
                Pick::Fresh(row) => (fresh_source, row),
                Pick::Stored(id) => store.place(id),
            })
            .collect();
        if self.picks.iter().any(|pick| pick.as_fresh().is_some()) {
            sources.push(fresh);
        }
        gather::interleave(&sources, &places)
    }
}

impl Pick {
    fn as_fresh(self) -> Option<u32> {
        match self {
            Pick::Fresh(row) => Some(row),
            Pick::Stored(_) => None,
        }
    }
}
