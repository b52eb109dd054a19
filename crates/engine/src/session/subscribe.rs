//! SUBSCRIBE: a query's changes as they happen.
//!
//! Law: the changes given with times up to `t` add up to the query's rows as of `t`, for every `t`
//! that progress has passed. With a snapshot, what was there at the start comes first, at the time
//! of the start. Within one time, each row appears once.
//!
//! Changes that are not taken are held up to `subscribe_buffer` bytes on each worker. More are
//! *coalesced*: changes of several times are told as those of the latest of them, and progress is
//! told of no time before it. So the law holds. With `subscribe_overflow = 'error'`, or where
//! summing up does not help, the subscription ends with an error instead.
//!
//! Rows that cannot be computed are an error for each time at which some come, told after the
//! changes of all times before.
//!
//! A subscription ends when nothing can come any more: its time limit is reached, or its inputs are
//! gone or are sources that are read to their end. A table is never at its end. One whose dataflow
//! fails ends with that error.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use anabranch_batch::consolidate::consolidate_in_time_order;
use anabranch_batch::{Batch, Diff, Diffs, Time, Times};
use anabranch_flow::sink::{Bounds, WhenFull};
use anabranch_sql::output::{shown_column, shown_schema};
use anabranch_sql::statement::{ObjectKind, Subscribe};
use arrow::array::{ArrayRef, BooleanArray, Int64Array};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use super::Session;
use super::context::{Named, visible_schema};
use super::dataflows::Sink;
use super::envelope::Envelope;
use super::outcome::{Changes, SourceState, Step, Subscription};
use crate::catalog::system::SubscriptionState;
use crate::cluster::{self, DataflowId};
use crate::direct::row_error;
use crate::error::{Error, ErrorKind};
use crate::finish::record_batch;

/// Changes that a batch of them has at least, where there are more.
const BATCH_ROWS_MIN: usize = 1 << 12;

/// Longest wait for changes between two looks at sources and interrupts.
const NAP_MAX: Duration = Duration::from_millis(20);

/// Longest wait for an alarm: failures of workers are looked for so often.
const ALARM_MAX: Duration = Duration::from_secs(5);

/// The longest timeout that is told apart from none.
const A_YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

/// Subscriptions of a session.
#[derive(Debug, Default)]
pub(super) struct Subscriptions {
    next_id: u64,
    live: BTreeMap<u64, Live>,
}

/// How an alarm was set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AlarmSet {
    /// Rings that come before there is something.
    pub rings: usize,
    /// How often to look for what workers do not ring for.
    pub pace: Duration,
}

impl Subscriptions {
    /// Whether one has a relation behind it.
    pub fn read(&self, input: &str) -> bool {
        self.live.values().any(|live| live.inputs.contains(input))
    }
}

#[derive(Debug)]
struct Live {
    dataflow: DataflowId,
    /// Whose it is.
    client: u64,
    schema: SchemaRef,
    /// Changes are told by key.
    envelope: Option<Envelope>,
    /// What was taken from the cluster and not given yet.
    queue: VecDeque<Result<Changes, Error>>,
    /// What was taken from the cluster and is not complete yet.
    pending: Vec<Batch>,
    /// Row errors, likewise: time, message, diff.
    pending_errors: Vec<(Time, String, Diff)>,
    up_to: Option<Time>,
    progress: bool,
    /// Tables and sources behind the query.
    inputs: BTreeSet<String>,
    /// Changes before this time were taken.
    upper: Time,
    /// Some worker has moved its changes at earlier times to this one.
    coalesced: Time,
    ended: bool,
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

impl Session {
    pub(super) fn subscribe(&mut self, subscribe: &Subscribe) -> Result<Subscription, Error> {
        let Named { planned, names, .. } = self.plan_view(&subscribe.query)?;
        let past = self.past(subscribe.as_of.as_deref(), &planned.plan)?;
        let as_of = past.as_ref().map_or(self.timeline.last(), |past| past.at);
        let (schema, envelope) = told_schema(subscribe, &visible_schema(&planned))?;
        let from = if subscribe.snapshot { Time::MIN } else { as_of + 1 };
        let Buffer { bytes_max, when_full } = self.client.subscribe_buffer;
        let (before, bytes_max) = (subscribe.up_to.unwrap_or(Time::MAX), bytes_max.unwrap_or(usize::MAX));
        let sink = Sink::Changes(Bounds { from, before, bytes_max, when_full });
        let (dataflow, _) = self.install_as_of("a subscription", &planned.plan, &[], sink, past.as_ref())?;
        self.subscriptions.next_id += 1;
        let id = self.subscriptions.next_id;
        let live = Live {
            dataflow,
            client: self.client.number,
            schema: schema.clone(),
            envelope,
            queue: VecDeque::new(),
            pending: Vec::new(),
            pending_errors: Vec::new(),
            up_to: subscribe.up_to,
            progress: subscribe.progress,
            inputs: self.catalog.inputs_behind(&names),
            upper: as_of,
            coalesced: Time::MIN,
            ended: false,
        };
        self.subscriptions.live.insert(id, live);
        Ok(Subscription { id, schema, progress: subscribe.progress })
    }

    /// The next changes of a subscription. Takes turns of the session meanwhile, so sources go on.
    ///
    /// Returns as soon as there is something, or [`Changes::Nothing`] after `timeout`.
    ///
    /// # Errors
    /// `Data` for rows that cannot be computed, once for each time at which some come; reading may
    /// go on. `Cancelled` when interrupted. `Closed` for a subscription that was taken back.
    pub fn next_changes(&mut self, subscription: &Subscription, timeout: Duration) -> Result<Changes, Error> {
        let now = Instant::now();
        let deadline = now.checked_add(timeout).unwrap_or(now + A_YEAR);
        let next = self.next_before(subscription, deadline);
        if next.as_ref().is_err_and(|error| error.kind == ErrorKind::Cancelled) {
            self.interrupt.clear();
        }
        self.await_lasting()?;
        next
    }

    fn next_before(&mut self, subscription: &Subscription, deadline: Instant) -> Result<Changes, Error> {
        loop {
            if let Some(changes) = self.live(subscription)?.queue.pop_front() {
                return changes;
            }
            if self.live(subscription)?.ended {
                return Ok(Changes::End);
            }
            self.interrupt.check()?;
            self.take_changes(subscription, deadline)?;
            if Instant::now() >= deadline
                && self.live(subscription)?.queue.is_empty()
                && !self.live(subscription)?.ended
            {
                return Ok(Changes::Nothing);
            }
        }
    }

    /// Ends a subscription and frees what it holds.
    pub fn unsubscribe(&mut self, subscription: Subscription) {
        if let Some(live) = self.subscriptions.live.remove(&subscription.id) {
            self.release_dataflow(live.dataflow);
        }
    }

    /// Has workers ring once a subscription has something new: rows of any worker or, where rows
    /// wait for slower workers or progress is told, a later time of all workers.
    pub(crate) fn set_alarm(&mut self, subscription: &Subscription, sender: &Sender<()>) -> Result<AlarmSet, Error> {
        let live = self.live(subscription)?;
        let (dataflow, upper) = (live.dataflow, live.upper);
        let waits_for_all = live.progress || live.up_to.is_some() || !live.is_settled();
        let inputs = live.inputs.clone();
        let rings = match waits_for_all {
            true => self.cluster.ring_past(dataflow, upper, sender),
            false => self.cluster.ring_with_changes(dataflow, sender),
        };
        let is_source = |name: &String| self.catalog.find(name).is_some_and(|object| object.kind == ObjectKind::Source);
        // (The end of a source makes no change.)
        let pace = if inputs.iter().any(is_source) { NAP_MAX } else { ALARM_MAX };
        Ok(AlarmSet { rings, pace })
    }

    fn live(&mut self, subscription: &Subscription) -> Result<&mut Live, Error> {
        let live = self.subscriptions.live.get_mut(&subscription.id);
        live.ok_or_else(|| Error::closed("the subscription was ended"))
    }

    /// One turn, then what the subscription's dataflow gave.
    fn take_changes(&mut self, subscription: &Subscription, deadline: Instant) -> Result<(), Error> {
        let nap = match self.turn()? {
            Step::Working => Duration::ZERO,
            Step::Idle { retry_after } => retry_after.unwrap_or(NAP_MAX).min(NAP_MAX),
        };
        let nap = nap.min(deadline.saturating_duration_since(Instant::now()));
        let dataflow = self.live(subscription)?.dataflow;
        let changes = self.cluster.changes(dataflow, nap);
        // What has failed is told once, and is the end.
        self.live(subscription)?.ended |= self.cluster.failure(dataflow).is_some();
        let changes = changes?;
        let last = self.timeline.last();
        let live = self.live(subscription)?;
        live.absorb(changes)?;
        let inputs = live.inputs.clone();
        if live.upper > last && !live.ended && self.client.wait_for_sources {
            self.end_with_inputs(subscription, &inputs)?;
        }
        Ok(())
    }

    /// Ends the subscription when none of its inputs can give more.
    fn end_with_inputs(&mut self, subscription: &Subscription, inputs: &BTreeSet<String>) -> Result<(), Error> {
        let statuses = self.pump.statuses();
        let status = |name: &String| statuses.iter().find(|status| status.name == *name);
        let is_open = |name: &String| match self.catalog.find(name).map(|object| object.kind) {
            None => false,
            Some(ObjectKind::Source) => status(name).is_some_and(|status| status.state == SourceState::Running),
            Some(_) => true,
        };
        if inputs.iter().any(is_open) {
            return Ok(());
        }
        let failures: Vec<Error> = inputs
            .iter()
            .filter_map(status)
            .filter_map(|status| match &status.state {
                SourceState::Failed(text) => Some(Error::data(format!("source \"{}\" failed: {text}", status.name))),
                _ => None,
            })
            .collect();
        let live = self.live(subscription)?;
        live.queue.extend(failures.into_iter().map(Err));
        live.ended = true;
        Ok(())
    }
}

impl Live {
    /// Whether nothing waits for a slower worker.
    fn is_settled(&self) -> bool {
        self.pending.is_empty() && self.pending_errors.is_empty()
    }

    /// Takes changes over from the cluster, and queues those that are complete: workers may be
    /// ahead of one another.
    fn absorb(&mut self, changes: cluster::Changes) -> Result<(), Error> {
        let before = self.up_to.unwrap_or(Time::MAX);
        self.pending_errors.extend(changes.errors);
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
        self.ended |= self.upper >= before;
        Ok(())
    }

    /// Moves what waits, as a worker has moved its own.
    fn coalesce(&mut self, to: Time) {
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
    fn give(&mut self, rows: Vec<Batch>, errors: Vec<(Time, Error)>) -> Result<(), Error> {
        let mut errors = errors.into_iter().peekable();
        for mut rest in rows {
            while !rest.is_empty() {
                let last = rest.times().get(rest.len() - 1);
                let error = errors.next_if(|(time, _)| *time <= last);
                let n_before = error.as_ref().map_or(rest.len(), |(time, _)| n_before(&rest, *time));
                if n_before > 0 {
                    let changes = rest.slice(0, n_before);
                    let batch = match &self.envelope {
                        Some(envelope) => envelope.told(&self.schema, &changes)?,
                        None => changes_batch(&self.schema, &changes)?,
                    };
                    self.queue.push_back(Ok(Changes::Rows(batch)));
                }
                self.queue.extend(error.map(|(_, error)| Err(error)));
                rest = rest.slice(n_before, rest.len() - n_before);
            }
        }
        self.queue.extend(errors.map(|(_, error)| Err(error)));
        Ok(())
    }

    /// The times before `upper` at which rows come that cannot be computed, and what is said of
    /// those of each.
    fn take_errors(&mut self) -> Vec<(Time, Error)> {
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

    /// Pending changes before `upper`, ordered by time, losses first, in one batch; or in several,
    /// none small but the last. Each worker has summed its own, and equal rows are on one.
    fn take_complete(&mut self) -> Vec<Batch> {
        let upper = self.upper;
        let mut complete = Vec::new();
        for batch in std::mem::take(&mut self.pending) {
            let parts = [filter_by_time(&batch, |time| time < upper), filter_by_time(&batch, |time| time >= upper)];
            let [before, after] = parts.map(|part| (!part.is_empty()).then_some(part));
            complete.extend(before);
            self.pending.extend(after);
        }
        complete.sort_by_key(|batch| batch.times().min());
        let mut given: Vec<Vec<Batch>> = Vec::new();
        for batch in complete {
            let joins = |last: &Vec<Batch>| {
                let is_small = last.iter().map(Batch::len).sum::<usize>() < BATCH_ROWS_MIN;
                is_small || last.iter().any(|other| other.times().max() >= batch.times().min())
            };
            match given.last_mut().filter(|last| joins(last)) {
                Some(last) => last.push(batch),
                None => given.push(vec![batch]),
            }
        }
        let give = |parts: Vec<Batch>| {
            // (Each is in order, as its worker gave it.)
            let is_in_order = parts.windows(2).all(|pair| pair[0].times().max() < pair[1].times().min());
            let batch = Batch::concat(&parts)?;
            Some(if is_in_order { batch } else { consolidate_in_time_order(batch) })
        };
        given.into_iter().filter_map(give).collect()
    }
}

/// How many rows, which are in order of time, come before `time`.
fn n_before(batch: &Batch, time: Time) -> usize {
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
fn filter_by_time(batch: &Batch, keep: impl Fn(Time) -> bool) -> Batch {
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

/// The columns of a subscription's changes, and how they are told by key, if they are.
pub(super) fn told_schema(subscribe: &Subscribe, schema: &SchemaRef) -> Result<(SchemaRef, Option<Envelope>), Error> {
    let shown = shown_schema(schema);
    if subscribe.upsert_key.is_empty() {
        return Ok((changes_schema(&shown), None));
    }
    let envelope = Envelope::new(schema, &subscribe.upsert_key)?;
    Ok((envelope.schema(&shown), Some(envelope)))
}

/// `time`, `diff`, and the query's columns.
fn changes_schema(schema: &Schema) -> SchemaRef {
    let control = ["time", "diff"].map(|name| Arc::new(Field::new(name, DataType::Int64, false)));
    Arc::new(Schema::new(control.into_iter().chain(schema.fields().iter().cloned()).collect::<Vec<_>>()))
}

fn changes_batch(schema: &SchemaRef, batch: &Batch) -> Result<arrow::array::RecordBatch, Error> {
    let n_rows = batch.len();
    let times: ArrayRef = match batch.times() {
        Times::Constant(time) => Arc::new(Int64Array::from(vec![*time; n_rows])),
        Times::Column(times) => Arc::new(Int64Array::new(times.clone(), None)),
    };
    let diffs: ArrayRef = match batch.diffs() {
        Diffs::Constant(diff) => Arc::new(Int64Array::from(vec![*diff; n_rows])),
        Diffs::Column(diffs) => Arc::new(Int64Array::new(diffs.clone(), None)),
    };
    let n_columns = schema.fields().len() - 2;
    let columns = [times, diffs].into_iter().chain(batch.columns().iter().take(n_columns).map(shown_column)).collect();
    record_batch(schema, columns, n_rows)
}
