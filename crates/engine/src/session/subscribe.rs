//! SUBSCRIBE: a query's changes as they happen.
//!
//! Law: the changes given with times up to `t` add up to the query's rows as of `t`, for every `t`
//! that progress has passed. With a snapshot, what was there at the start comes first, at the time
//! of the start. Within one time, each row appears once; but rows of queries to which rows only
//! come are told as they come.
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
//! sources that are read to their end. A table is never at its end. One whose dataflow fails ends
//! with that error, and one over a table or source that is dropped or made anew with an error
//! behind the last changes before. A view that is dropped or replaced ends nothing: the
//! subscription goes on with its query as it was.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use anabranch_batch::Time;
use anabranch_flow::sink::Bounds;
use anabranch_sql::output::shown_schema;
use anabranch_sql::statement::{ObjectKind, Subscribe};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use super::context::Named;
use super::dataflows::Sink;
use super::envelope::Envelope;
use super::outcome::{Changes, SourceState, StepStatus, Subscription};
use super::state::Session;
use super::state::subscriptions::{Buffer, Live};
use crate::error::{Error, ErrorKind};

/// Longest wait for changes between two looks at sources and interrupts.
const NAP_MAX: Duration = Duration::from_millis(20);

/// Longest wait for an alarm: failures of workers are looked for so often.
const ALARM_MAX: Duration = Duration::from_secs(5);

/// The longest timeout that is told apart from none.
const A_YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

/// How an alarm was set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AlarmSet {
    /// Rings that come before there is something.
    pub rings: usize,
    /// How often to look for what workers do not ring for.
    pub pace: Duration,
}

impl Session {
    pub(super) fn subscribe(&mut self, subscribe: &Subscribe) -> Result<Subscription, Error> {
        let Named { mut planned, names, .. } = self.plan_subscribed(subscribe)?;
        let (plan, followed) = self.follow_system(&planned.plan)?;
        planned.plan = plan;
        let past = self.past(subscribe.as_of.as_deref(), &planned.plan)?;
        let as_of = past.as_ref().map_or(self.timeline.last(), |past| past.at);
        let (schema, envelope) = told_schema(subscribe, &planned.columns())?;
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
            inputs: self.catalog.inputs_behind(names.iter().chain(&followed)),
            end: None,
            alarm: None,
            upper: as_of,
            coalesced: Time::MIN,
            only_comes: false,
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
        self.live(subscription)?.alarm = Some((sender.clone(), rings));
        Ok(AlarmSet { rings, pace })
    }

    fn live(&mut self, subscription: &Subscription) -> Result<&mut Live, Error> {
        let live = self.subscriptions.live.get_mut(&subscription.id);
        live.ok_or_else(|| Error::closed("the subscription was ended"))
    }

    /// One turn, then what the subscription's dataflow gave.
    fn take_changes(&mut self, subscription: &Subscription, deadline: Instant) -> Result<(), Error> {
        let nap = match self.turn()? {
            StepStatus::Working => Duration::ZERO,
            StepStatus::Idle { retry_after } => retry_after.unwrap_or(NAP_MAX).min(NAP_MAX),
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
