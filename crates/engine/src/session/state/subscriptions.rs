//! Subscriptions: what was taken from workers, and what is ready to be given.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::mpsc::Sender;

use anabranch_batch::consolidate::consolidate_in_time_order;
use anabranch_batch::{Batch, Diff, Diffs, Time, Times};
use anabranch_flow::sink::WhenFull;
use anabranch_sql::output::shown_values;
use arrow::array::{ArrayRef, BooleanArray, Int64Array, RecordBatch};
use arrow::datatypes::SchemaRef;

use crate::catalog::system::SubscriptionState;
use crate::cluster::{self, DataflowId};
use crate::direct::row_error;
use crate::error::Error;
use crate::finish::record_batch;
use crate::session::envelope::Envelope;
use crate::session::outcome::Changes;

/// Changes that a batch of them has at least, where there are more.
pub(crate) const BATCH_ROWS_MIN: usize = 1 << 12;

/// Subscriptions of a session.
#[derive(Debug, Default)]
pub(crate) struct Subscriptions {
    pub(crate) next_id: u64,
    pub(crate) live: BTreeMap<u64, Live>,
}

impl Subscriptions {
    /// Ends those that have a table or source behind them which has gone, or was made anew: no
    /// change of it will come. They tell the changes up to the last commit first. (A view that goes
    /// leaves its dataflow to them.)
    pub fn end_readers(&mut self, relation: &str, last: Time) {
        for live in self.live.values_mut().filter(|live| live.inputs.contains(relation) && !live.ended) {
            let message = format!("the subscription has ended: \"{relation}\" was dropped, altered or made anew");
            let hint = "Subscribe again, to a relation that is there.";
            live.end_behind(last, Error::closed(message).with_sqlstate("42P01").with_hint(hint));
        }
    }

    /// A relation has another name.
    pub fn rename(&mut self, from: &str, to: &str) {
        for live in self.live.values_mut() {
            if live.inputs.remove(from) {
                live.inputs.insert(to.to_owned());
            }
        }
    }

    /// Whether one has a relation behind it.
    pub fn read(&self, input: &str) -> bool {
        self.live.values().any(|live| live.inputs.contains(input))
    }
}

#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) dataflow: DataflowId,
    /// Whose it is.
    pub(crate) client: u64,
    pub(crate) schema: SchemaRef,
    /// Changes are told by key.
    pub(crate) envelope: Option<Envelope>,
    /// What was taken from the cluster and not given yet.
    pub(crate) queue: VecDeque<Result<Changes, Error>>,
    /// What was taken from the cluster and is not complete yet.
    pub(crate) pending: Vec<Batch>,
    /// Row errors, likewise: time, message, diff.
    pub(crate) pending_errors: Vec<(Time, String, Diff)>,
    pub(crate) up_to: Option<Time>,
    pub(crate) progress: bool,
    /// Tables and sources behind the query.
    pub(crate) inputs: BTreeSet<String>,
    /// Ends it, once the changes up to a commit are told.
    pub(crate) end: Option<(Time, Error)>,
    /// Rings for the client that waits for it, and how many rings are an answer.
    pub(crate) alarm: Option<(Sender<()>, usize)>,
    /// Changes before this time were taken.
    pub(crate) upper: Time,
    /// Some worker has moved its changes at earlier times to this one.
    pub(crate) coalesced: Time,
    /// Whether workers give rows that only come, as they come.
    pub(crate) only_comes: bool,
    pub(crate) ended: bool,
}

/// What is held for a subscriber that takes no changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Buffer {
    /// Bytes on each worker, at most; `None` for no limit.
    pub bytes_max: Option<usize>,
    pub when_full: WhenFull,
}

impl Default for Buffer {
    fn default() -> Buffer {
        Buffer { bytes_max: Some(64 << 20), when_full: WhenFull::Coalesce }
    }
}

impl Subscriptions {
    /// Where each stands.
    pub fn states(&self) -> Vec<SubscriptionState> {
        let state = |(id, live): (&u64, &Live)| SubscriptionState {
            id: *id,
            dataflow: live.dataflow.0,
            connection: live.client,
            bytes: 0,
            waiting_batches: live.queue.len(),
            ended: live.ended,
        };
        self.live.iter().map(state).collect()
    }
}

impl Live {
    /// Whether nothing waits for a slower worker.
    pub(crate) fn is_settled(&self) -> bool {
        self.pending.is_empty() && self.pending_errors.is_empty()
    }

    /// Takes changes over from the cluster, and queues those that are complete: workers may be
    /// ahead of one another.
    pub(crate) fn absorb(&mut self, changes: cluster::ChangeSpec) -> Result<(), Error> {
        let before = self.up_to.unwrap_or(Time::MAX);
        self.pending_errors.extend(changes.errors);
        // (An answer of no worker says nothing of it.)
        self.only_comes |= changes.only_comes;
        let batches = changes.batches.into_iter().map(Batch::flatten);
        self.pending.extend(batches.filter(|batch| !batch.is_empty()));
        self.coalesce(changes.coalesced);
        // What was moved to a time is told as one with what other workers have up to it.
        if changes.upper > self.upper.max(self.coalesced) {
            self.upper = changes.upper;
            let (rows, errors) = (self.take_complete(), self.take_errors());
            self.give(rows, errors)?;
            if self.progress {
                self.queue.push_back(Ok(Changes::Progress(self.upper.min(before))));
            }
        }
        if let Some((_, error)) = self.end.take_if(|(last, _)| self.upper > *last) {
            self.queue.push_back(Err(error));
            self.ended = true;
        }
        self.ended |= self.upper >= before;
        Ok(())
    }

    /// Lets it end with an error, behind the changes up to a commit. A client that waits for it
    /// looks again.
    fn end_behind(&mut self, last: Time, error: Error) {
        self.end.get_or_insert((last, error));
        if let Some((sender, rings)) = &self.alarm {
            // (A client that has gone waits for nothing.)
            for _ in 0..*rings {
                let _ = sender.send(());
            }
        }
    }

    /// Moves what waits, as a worker has moved its own.
    pub(crate) fn coalesce(&mut self, to: Time) {
        if to <= self.coalesced {
            return;
        }
        self.coalesced = to;
        self.pending_errors.iter_mut().for_each(|(time, ..)| *time = to.max(*time));
        let moved = |batch: Batch| {
            let times = match batch.times() {
                _ if batch.times().min() >= to => return batch,
                Times::Constant(_) => Times::Constant(to),
                Times::Column(times) => Times::Column(times.iter().map(|time| to.max(*time)).collect()),
            };
            // (Rows that were apart may meet.)
            consolidate_in_time_order(batch.with_times(times))
        };
        let pending = std::mem::take(&mut self.pending).into_iter().map(moved);
        self.pending = pending.filter(|batch| !batch.is_empty()).collect();
    }

    /// Queues changes and errors, both in order of time: an error before the changes of its own
    /// time.
    pub(crate) fn give(&mut self, rows: Vec<Together>, errors: Vec<(Time, Error)>) -> Result<(), Error> {
        let mut errors = errors.into_iter().peekable();
        for mut rest in rows {
            while let Some(last) = rest.last().map(|batch| batch.times().max()) {
                let error = errors.next_if(|(time, _)| *time <= last);
                let (before, behind) = match &error {
                    Some((time, _)) => split_before(&rest, *time),
                    None => (rest, vec![]),
                };
                if !before.is_empty() {
                    let batches = before.iter().map(|changes| self.shown(changes)).collect::<Result<_, Error>>()?;
                    self.queue.push_back(Ok(Changes::Rows(batches)));
                }
                self.queue.extend(error.map(|(_, error)| Err(error)));
                rest = behind;
            }
        }
        self.queue.extend(errors.map(|(_, error)| Err(error)));
        Ok(())
    }

    fn shown(&self, changes: &Batch) -> Result<RecordBatch, Error> {
        match &self.envelope {
            Some(envelope) => envelope.told(&self.schema, changes),
            None => changes_batch(&self.schema, changes),
        }
    }

    /// The times before `upper` at which rows come that cannot be computed, and what is said of
    /// those of each.
    pub(crate) fn take_errors(&mut self) -> Vec<(Time, Error)> {
        let upper = self.upper;
        let mut complete: Vec<(Time, String, Diff)> =
            self.pending_errors.extract_if(.., |(time, ..)| *time < upper).collect();
        complete.sort_by_key(|(time, ..)| *time);
        let told = |errors: &[(Time, String, Diff)]| {
            let error = row_error(errors.iter().map(|(_, text, diff)| (text.as_str(), *diff)))?;
            Some((errors[0].0, error))
        };
        complete.chunk_by(|a, b| a.0 == b.0).filter_map(told).collect()
    }

    /// Pending changes before `upper`, ordered by time, losses first, as one; or as several, none
    /// small but the last, which have no time in common. Each worker has summed its own, and equal
    /// rows are on one, unless rows only come: these are told as they come, but summed up where
    /// they are told by key.
    pub(crate) fn take_complete(&mut self) -> Vec<Together> {
        let upper = self.upper;
        let mut complete = Vec::new();
        for batch in std::mem::take(&mut self.pending) {
            let parts = [filter_by_time(&batch, |time| time < upper), filter_by_time(&batch, |time| time >= upper)];
            let [before, after] = parts.map(|part| (!part.is_empty()).then_some(part));
            complete.extend(before);
            self.pending.extend(after);
        }
        complete.sort_by_key(|batch| batch.times().min());
        let follows = |before: &Batch, batch: &Batch| before.times().max() < batch.times().min();
        let mut given: Vec<Vec<Batch>> = Vec::new();
        for batch in complete {
            let joins = |last: &Vec<Batch>| {
                let is_small = last.iter().map(Batch::len).sum::<usize>() < BATCH_ROWS_MIN;
                is_small || last.iter().any(|other| !follows(other, &batch))
            };
            match given.last_mut().filter(|last| joins(last)) {
                Some(last) => last.push(batch),
                None => given.push(vec![batch]),
            }
        }
        let told = |parts: Vec<Batch>| -> Together {
            if let Some(apart) = self.apart(&parts) {
                return apart;
            }
            let as_they_come = self.only_comes && self.envelope.is_none();
            // (Each is in order, as its worker gave it.)
            let is_in_order = parts.windows(2).all(|pair| follows(&pair[0], &pair[1]));
            let all = Batch::concat(&parts);
            let all = match () {
                () if as_they_come => all.map(Batch::in_time_order),
                () if is_in_order && !self.only_comes => all,
                () => all.map(consolidate_in_time_order),
            };
            all.filter(|batch| !batch.is_empty()).into_iter().collect()
        };
        given.into_iter().map(told).collect()
    }

    /// Many changes of one time, of several workers: what leaves of each of them, and then what
    /// comes. To bring them into one order, or into one batch, would cost more than most queries;
    /// and equal rows are on one worker, or only come.
    fn apart(&self, parts: &[Batch]) -> Option<Together> {
        let time = parts.first()?.times().min();
        let is_of_time = |part: &Batch| matches!(part.times(), Times::Constant(of_part) if *of_part == time);
        let n_rows: usize = parts.iter().map(Batch::len).sum();
        // (What was moved to a time may be there several times.)
        let is_summed = self.only_comes || time > self.coalesced;
        if parts.len() < 2 || n_rows < BATCH_ROWS_MIN || self.envelope.is_some() || !is_summed {
            return None;
        }
        if !parts.iter().all(is_of_time) {
            return None;
        }
        let (leave, come): (Vec<Batch>, Vec<Batch>) = parts.iter().map(losses_and_gains).unzip();
        Some(leave.into_iter().chain(come).filter(|part| !part.is_empty()).collect())
    }
}

/// Changes that are told together, in order of time: one batch, or several of one time.
pub(crate) type Together = Vec<Batch>;

/// What leaves and what comes, of changes of one time that are in this order.
fn losses_and_gains(changes: &Batch) -> (Batch, Batch) {
    let n_losses = match changes.diffs() {
        Diffs::Constant(diff) if *diff < 0 => changes.len(),
        Diffs::Constant(_) => 0,
        Diffs::Column(diffs) => diffs.partition_point(|diff| *diff < 0),
    };
    (changes.slice(0, n_losses), changes.slice(n_losses, changes.len() - n_losses))
}

/// What comes before `time`, and what does not, of changes in order of time.
fn split_before(changes: &[Batch], time: Time) -> (Together, Together) {
    let split = |batch: &Batch| {
        let n_before = n_before(batch, time);
        (batch.slice(0, n_before), batch.slice(n_before, batch.len() - n_before))
    };
    let (before, behind): (Together, Together) = changes.iter().map(split).unzip();
    let filled = |parts: Together| parts.into_iter().filter(|part| !part.is_empty()).collect();
    (filled(before), filled(behind))
}

/// How many rows, which are in order of time, come before `time`.
pub(crate) fn n_before(batch: &Batch, time: Time) -> usize {
    match batch.times() {
        Times::Constant(of_all) => {
            if *of_all < time {
                batch.len()
            } else {
                0
            }
        }
        Times::Column(times) => times.partition_point(|of_row| *of_row < time),
    }
}

/// The rows at whose times `keep` holds: an interval.
pub(crate) fn filter_by_time(batch: &Batch, keep: impl Fn(Time) -> bool) -> Batch {
    let (first, last) = batch.times().range();
    if batch.is_empty() || (keep(first) && keep(last)) {
        return batch.clone();
    }
    if first == last {
        return batch.slice(0, 0);
    }
    let mask: BooleanArray = (0..batch.len()).map(|row| Some(keep(batch.times().get(row)))).collect();
    batch.filter(&mask).compact()
}

pub(crate) fn changes_batch(schema: &SchemaRef, batch: &Batch) -> Result<RecordBatch, Error> {
    let n_rows = batch.len();
    let times: ArrayRef = match batch.times() {
        Times::Constant(time) => Arc::new(Int64Array::from(vec![*time; n_rows])),
        Times::Column(times) => Arc::new(Int64Array::new(times.clone(), None)),
    };
    let diffs: ArrayRef = match batch.diffs() {
        Diffs::Constant(diff) => Arc::new(Int64Array::from(vec![*diff; n_rows])),
        Diffs::Column(diffs) => Arc::new(Int64Array::new(diffs.clone(), None)),
    };
    let shown =
        schema.fields().iter().skip(2).zip(batch.columns().iter()).map(|(field, column)| shown_values(field, column));
    let columns = [times, diffs].into_iter().chain(shown).collect();
    record_batch(schema, columns, n_rows)
}
