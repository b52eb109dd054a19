//! A frame at work: rows and time in, events out.
//!
//! Law: what comes out, edges paired, is a function of the events pushed in and the order of time
//! alone, whatever was pushed when between two advances. Every call returns when the workers have
//! done all that it made possible.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;

use anabranch_batch::consolidate::consolidate;
use anabranch_batch::{Batch, END, Time, types};
use anabranch_flow::egress::{Item, release};
use anabranch_operators::temporal::ingress::{Ingress, Item as Arrived};
use anabranch_operators::temporal::ticks::{self, FIRST, event};
use anabranch_plan::pattern::Simultaneous;
use anabranch_plan::temporal::Verb;
use anabranch_plan::{Node, Plan};
use arrow::datatypes::{DataType, SchemaRef};
use datafusion_common::ScalarValue;

use super::declare::Reached;
use super::events::Events;
use super::input::IntoEvents;
use super::latency::Held;
use super::query::Frame;
use super::relation::{Timing, with_lifetimes};
use crate::clock::Clock;
use crate::cluster::{Cluster, CollectionId, DataflowId};
use crate::error::Error;
use crate::interrupt::Interrupt;
use crate::nearest::nearest;
use crate::render::temporal::output_frontier;

/// A frame at work in a session; dropped, it is gone. See the [module page](self).
pub struct FrameRun<'s> {
    pub(super) cluster: &'s mut Cluster,
    dataflow: DataflowId,
    frame: Frame,
    pub(super) inputs: BTreeMap<String, RunInput>,
    /// Whether a pattern goes by the order of arrival.
    pub(super) goes_by_arrival: bool,
    pub(super) clock: Arc<dyn Clock>,
    merge: Merge,
    pairs: Pairs,
    /// Changes that lie in the future of the frontier.
    future: Vec<Batch>,
    /// Rows that came out beside an error.
    undrained: Vec<Batch>,
    /// Lifetimes that came out beside an error.
    complete: Vec<ResultLifetime>,
    /// What stops it.
    interrupt: Interrupt,
    /// Whether another has taken its parts over.
    is_suspended: bool,
}

/// A run that the session holds between two turns: its dataflow stands.
pub(crate) struct Suspended {
    dataflow: DataflowId,
    frame: Frame,
    inputs: BTreeMap<String, RunInput>,
    clock: Arc<dyn Clock>,
    merge: Merge,
    future: Vec<Batch>,
    undrained: Vec<Batch>,
}

impl Suspended {
    /// Lets the run go on.
    pub fn resume<'s>(self, cluster: &'s mut Cluster) -> FrameRun<'s> {
        let Suspended { dataflow, frame, inputs, clock, merge, future, undrained } = self;
        let mut run = FrameRun::new(cluster, dataflow, frame, inputs, clock);
        (run.merge, run.future, run.undrained) = (merge, future, undrained);
        run
    }
}

/// An input of a run.
pub(crate) struct RunInput {
    pub collection: CollectionId,
    pub events: Events,
    /// No event before this time may come.
    pub frontier: Time,
    /// What brings rows in order, if anything does.
    pub ingress: Option<Ingress>,
    /// Whether it is not to hold up others.
    pub is_idle: bool,
    /// What the ingress let through, if that is recorded.
    pub journal: Option<Vec<Arrived>>,
    /// What waits to be handed on.
    pub held: Held,
    /// How far it has come, as its promises see it.
    pub reached: Reached,
}

impl RunInput {
    /// An input to which nothing has come.
    pub fn new(collection: CollectionId, events: &Events) -> Result<RunInput, Error> {
        Ok(RunInput {
            collection,
            events: events.clone(),
            frontier: Time::MIN,
            ingress: events.ingress()?,
            is_idle: false,
            journal: None,
            held: Held::default(),
            reached: Reached::default(),
        })
    }
}

impl<'s> FrameRun<'s> {
    pub(crate) fn new(
        cluster: &'s mut Cluster,
        dataflow: DataflowId,
        frame: Frame,
        inputs: BTreeMap<String, RunInput>,
        clock: Arc<dyn Clock>,
    ) -> FrameRun<'s> {
        let merge = Merge::new(cluster.workers());
        let goes_by_arrival = frame.state().is_ok_and(|state| goes_by_arrival(&state.plan));
        let (pairs, future, undrained) = (Pairs::default(), Vec::new(), Vec::new());
        let complete = Vec::new();
        let (interrupt, is_suspended) = (Interrupt::new(), false);
        FrameRun {
            cluster,
            dataflow,
            frame,
            inputs,
            goes_by_arrival,
            clock,
            merge,
            pairs,
            future,
            undrained,
            complete,
            interrupt,
            is_suspended,
        }
    }

    /// The run, whose calls fail with an error of kind `Cancelled` once `interrupt` is triggered.
    #[must_use]
    pub fn heeding(mut self, interrupt: &Interrupt) -> FrameRun<'s> {
        self.interrupt = interrupt.clone();
        self
    }

    /// Gives the session back its cluster. Lifetimes are not kept.
    pub(crate) fn suspend(mut self) -> Suspended {
        self.is_suspended = true;
        Suspended {
            dataflow: self.dataflow,
            frame: self.frame.clone(),
            inputs: std::mem::take(&mut self.inputs),
            clock: Arc::clone(&self.clock),
            merge: std::mem::replace(&mut self.merge, Merge::new(0)),
            future: std::mem::take(&mut self.future),
            undrained: std::mem::take(&mut self.undrained),
        }
    }

    /// What the times of an input's rows are, if they are those of a relation of the session.
    ///
    /// # Errors
    /// `Invalid` when there is no such input.
    pub(crate) fn timing(&mut self, input: &str) -> Result<Option<Timing>, Error> {
        Ok(self.input(input)?.events.timing())
    }

    /// Takes rows of a relation that an input stands for.
    ///
    /// # Errors
    /// As [`push`](Run::push).
    pub(crate) fn push_rows(&mut self, input: &str, rows: Batch) -> Result<(), Error> {
        let events = self.input(input)?.events.of_rows(rows)?;
        self.push(input, events)
    }

    /// Gives rows to an input, in any order between two advances.
    ///
    /// # Errors
    /// `Invalid` when there is no such input or columns do not fit; `Data` when a row lies before
    /// the input's frontier. Then none of the rows was taken.
    pub fn push(&mut self, input: &str, rows: impl IntoEvents) -> Result<(), Error> {
        let place = self.input(input)?;
        let batch = rows.into_events(&place.events)?.compact();
        if batch.is_empty() {
            return Ok(());
        }
        place.is_idle = false;
        let (first, last) = batch.times().range();
        if place.ingress.is_none() && first < place.frontier {
            return Err(late(input, first, place.frontier));
        }
        if first < FIRST || last == END {
            return Err(Error::data(format!("a row of input \"{input}\" lies outside of time"))
                .with_detail("Times of events lie strictly between the least and the greatest 64-bit integer."));
        }
        place.reached = place.events.check_promises(&batch, &place.reached)?;
        if place.ingress.is_some() {
            return self.push_arriving(input, batch);
        }
        self.keep(input, batch)?;
        self.hand_on_due()
    }

    /// Promises that no row before `time` will be pushed into an input, and waits for what follows
    /// from that. A time that is not after the last one says nothing.
    ///
    /// # Errors
    /// `Invalid` when there is no such input, `Internal` when a worker has failed.
    pub fn advance(&mut self, input: &str, time: Time) -> Result<(), Error> {
        let place = self.input(input)?;
        if place.ingress.is_some() {
            return self.advance_arriving(input, time);
        }
        if time <= place.frontier {
            return Ok(());
        }
        self.promise(input, time)?;
        self.follow()?;
        self.hand_on_due()
    }

    /// [`advance`](FrameRun::advance) for all inputs.
    ///
    /// # Errors
    /// As for one input.
    pub fn advance_all(&mut self, time: Time) -> Result<(), Error> {
        let names: Vec<String> = self.inputs.keys().cloned().collect();
        names.iter().try_for_each(|name| self.advance(name, time))
    }

    /// Hands on rows that wait to be batched, and waits until all that can come out has. Changes no
    /// result.
    ///
    /// # Errors
    /// `Internal` when a worker has failed.
    pub fn flush(&mut self) -> Result<(), Error> {
        self.hand_on_all()?;
        self.settle()
    }

    /// Ends all inputs: nothing more will come, so everything comes out.
    ///
    /// # Errors
    /// `Internal` when a worker has failed.
    pub fn finish(&mut self) -> Result<(), Error> {
        self.advance_all(END)
    }

    /// What has come out since the last call: events in order of time, and the frontiers between
    /// them.
    ///
    /// # Errors
    /// `Internal` when a worker has failed.
    pub fn drain(&mut self) -> Result<Vec<Item>, Error> {
        self.hand_on_due()?;
        let parts = self.cluster.events(self.dataflow)?;
        let items = self.merge.merge(parts).into_iter().map(|item| match item {
            Item::Rows(batch) => Item::Rows(shown(batch)),
            other => other,
        });
        Ok(items.collect())
    }

    /// What has come out as the changes of a collection: consolidated updates in order of time, up
    /// to the frontier.
    ///
    /// # Errors
    /// `Data` when a row is in error, `Internal` when a worker has failed.
    pub fn changes(&mut self) -> Result<Vec<Batch>, Error> {
        let rows = self.drain_rows()?;
        self.future.extend(rows.into_iter().map(Batch::flatten).filter(|batch| !batch.is_empty()));
        let frontier = self.merge.frontier();
        let mut items = Vec::new();
        // (Changes at the frontier are not complete.)
        let upto = if frontier == END { END } else { frontier.saturating_sub(1) };
        release(&mut self.future, upto, &mut items);
        let batches = items.into_iter().filter_map(|item| match item {
            Item::Rows(batch) => Some(batch.without_key()),
            _ => None,
        });
        let Some(batch) = Batch::concat(&batches.collect::<Vec<_>>()) else { return Ok(vec![]) };
        let batch = consolidate(batch).in_time_order();
        Ok(if batch.is_empty() { vec![] } else { vec![batch] })
    }

    /// What has come out since the last call as changes of the relation that holds all events, with
    /// their start and end of the type `times` before the other columns.
    ///
    /// # Errors
    /// As [`changes`](FrameRun::changes).
    pub(crate) fn all_events(&mut self, times: &DataType) -> Result<Vec<Batch>, Error> {
        let rows = self.drain_rows()?;
        rows.iter().filter(|batch| !batch.is_empty()).map(|batch| with_lifetimes(batch, times)).collect()
    }

    /// The lifetimes that have come out complete since the last call, in order of their ends'
    /// arrival; start edges are paired with their ends. After [`finish`](FrameRun::finish) also
    /// those that never end.
    ///
    /// # Errors
    /// `Data` when a row is in error, `Internal` when a worker has failed.
    pub fn lifetimes(&mut self) -> Result<Vec<ResultLifetime>, Error> {
        for batch in self.drain_rows()? {
            self.pairs.add(&batch, &mut self.complete);
        }
        // (An error is said once; the lifetimes that came with it are there the next time.)
        if let Some(error) = self.pairs.error.take() {
            return Err(error);
        }
        let mut complete = std::mem::take(&mut self.complete);
        if self.merge.frontier() == END {
            complete.extend(self.pairs.open());
        }
        Ok(complete)
    }

    /// Columns of the rows that come out.
    pub(super) fn schema(&self) -> Result<SchemaRef, Error> {
        self.frame.schema()
    }

    /// No event before this time will come out.
    pub fn frontier(&self) -> Time {
        self.merge.frontier()
    }

    /// Rows that have come out. An error is said once; what came with it is there the next time.
    fn drain_rows(&mut self) -> Result<Vec<Batch>, Error> {
        let mut rows = std::mem::take(&mut self.undrained);
        let mut errors = Vec::new();
        for item in self.drain()? {
            match item {
                Item::Rows(batch) => rows.push(batch),
                Item::Frontier(_) => {}
                Item::Errors(batch) => errors.push(batch),
            }
        }
        let Some(first) = errors.first() else { return Ok(rows) };
        self.undrained = rows;
        let message = ScalarValue::try_from_array(first.column(0), 0).map(|value| value.to_string());
        let error = Error::data(message.unwrap_or_else(|error| error.to_string()));
        match errors.iter().map(Batch::len).sum() {
            0 | 1 => Err(error),
            n => Err(error.with_detail(format!("{n} rows have errors."))),
        }
    }

    pub(super) fn settle(&mut self) -> Result<(), Error> {
        let frontiers = self.inputs.iter().map(|(name, input)| (name.clone(), input.held.told())).collect();
        let target = output_frontier(&self.frame.state()?.plan, &frontiers);
        if target == Time::MIN {
            return Ok(());
        }
        self.cluster.await_frontier(self.dataflow, target - 1, &self.interrupt)
    }

    pub(super) fn input(&mut self, name: &str) -> Result<&mut RunInput, Error> {
        if !self.inputs.contains_key(name) {
            let error = Error::invalid(format!("the frame has no input \"{name}\""));
            return Err(match nearest(name, self.inputs.keys().map(String::as_str)) {
                Some(near) => error.with_hint(format!("Did you mean \"{near}\"?")),
                None => error,
            });
        }
        Ok(self.inputs.get_mut(name).expect("it was just found"))
    }
}

impl Drop for FrameRun<'_> {
    fn drop(&mut self) {
        if self.is_suspended {
            return;
        }
        self.cluster.uninstall(self.dataflow);
        for input in self.inputs.values() {
            self.cluster.drop_input(input.collection);
        }
    }
}

/// Rows as users see them: of planned types.
pub(super) fn shown(batch: Batch) -> Batch {
    if !batch.columns().iter().any(|column| matches!(column.data_type(), DataType::Decimal64(..))) {
        return batch;
    }
    let columns = batch.columns().iter().map(types::widened).collect();
    batch.with_columns(columns)
}

/// Whether some pattern of the plan takes events of one time in order of arrival.
fn goes_by_arrival(plan: &Plan) -> bool {
    let is_ordered = match &plan.node {
        Node::Temporal { verb: Verb::Detect(detect), .. } => detect.simultaneous == Simultaneous::Arrival,
        _ => false,
    };
    is_ordered || plan.inputs().into_iter().any(|input| goes_by_arrival(input))
}

fn late(input: &str, time: Time, frontier: Time) -> Error {
    Error::data(format!("a row of input \"{input}\" at {time} comes after the input was complete before {frontier}"))
        .with_hint("Push rows before advancing past them, or give the input a disorder policy.")
}

/// The events of several workers as one stream.
struct Merge {
    /// The frontier of each worker.
    frontiers: Vec<Time>,
    waiting: Vec<Batch>,
}

impl Merge {
    fn new(workers: usize) -> Merge {
        Merge { frontiers: vec![Time::MIN; workers], waiting: Vec::new() }
    }

    fn frontier(&self) -> Time {
        self.frontiers.iter().copied().min().unwrap_or(END)
    }

    fn merge(&mut self, parts: Vec<Vec<Item>>) -> Vec<Item> {
        let before = self.frontier();
        let is_alone = self.frontiers.len() == 1;
        let mut merged = Vec::new();
        for (worker, items) in parts.into_iter().enumerate() {
            for item in items {
                match item {
                    Item::Frontier(time) => self.frontiers[worker] = time,
                    Item::Rows(batch) if !is_alone => {
                        self.waiting.push(batch);
                        continue;
                    }
                    _ => {}
                }
                if is_alone || matches!(item, Item::Errors(_)) {
                    merged.push(item);
                }
            }
        }
        if !is_alone {
            let frontier = self.frontier();
            release(&mut self.waiting, frontier, &mut merged);
            if frontier > before {
                merged.push(Item::Frontier(frontier));
            }
        }
        merged
    }
}

/// A row and when it is in force.
#[derive(Clone, Debug, PartialEq)]
pub struct ResultLifetime {
    /// From this time on,
    pub start: Time,
    /// until just before this one; [`FOREVER`](super::FOREVER) for no end.
    pub end: Time,
    /// One value a column.
    pub row: Vec<ScalarValue>,
}

impl fmt::Display for ResultLifetime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values: Vec<String> = self.row.iter().map(ToString::to_string).collect();
        match self.end {
            END => write!(f, "[{}, ∞) {}", self.start, values.join(", ")),
            end => write!(f, "[{}, {end}) {}", self.start, values.join(", ")),
        }
    }
}

/// Start edges that wait for their end edges.
#[derive(Default)]
struct Pairs {
    open: HashMap<(Time, Vec<ScalarValue>), u64>,
    /// In order of arrival, for an answer that is the same each time.
    order: VecDeque<(Time, Vec<ScalarValue>)>,
    /// The first thing that was wrong; the rows behind it were taken.
    error: Option<Error>,
}

/// The row that stands for all that are equal to it: there is one zero.
fn as_equal(row: &[ScalarValue]) -> Vec<ScalarValue> {
    let value = |value: &ScalarValue| match value {
        ScalarValue::Float64(Some(0.0)) => ScalarValue::Float64(Some(0.0)),
        ScalarValue::Float32(Some(0.0)) => ScalarValue::Float32(Some(0.0)),
        other => other.clone(),
    };
    row.iter().map(value).collect()
}

impl Pairs {
    fn add(&mut self, batch: &Batch, complete: &mut Vec<ResultLifetime>) {
        for at in 0..batch.len() {
            let values = batch.columns().iter().map(|column| ScalarValue::try_from_array(column, at));
            let row = match values.collect::<Result<Vec<_>, _>>() {
                Ok(row) => row,
                Err(error) => {
                    self.error.get_or_insert_with(|| Error::internal(format!("a cell has no value: {error}")));
                    continue;
                }
            };
            match event(batch, at) {
                ticks::Event::Start { start, end: END } => {
                    *self.open.entry((start, as_equal(&row))).or_default() += 1;
                    self.order.push_back((start, row));
                }
                ticks::Event::Start { start, end } => complete.push(ResultLifetime { start, end, row }),
                ticks::Event::End { start, end } => {
                    match self.open.get_mut(&(start, as_equal(&row))) {
                        Some(count) if *count > 0 => *count -= 1,
                        _ => {
                            let message =
                                || Error::data(format!("an event that began at {start} ends without a start"));
                            self.error.get_or_insert_with(message);
                            continue;
                        }
                    }
                    complete.push(ResultLifetime { start, end, row });
                }
                ticks::Event::Nothing => {}
            }
        }
        if self.order.len() > 2 * self.open.len() + 1024 {
            self.forget_closed();
        }
    }

    /// Drops what has ended from the order of arrival.
    fn forget_closed(&mut self) {
        self.open.retain(|_, count| *count > 0);
        let mut left: HashMap<&(Time, Vec<ScalarValue>), u64> =
            self.open.iter().map(|(key, count)| (key, *count)).collect();
        let mut kept = VecDeque::new();
        for key in self.order.iter().rev() {
            let count = left.get_mut(&(key.0, as_equal(&key.1)));
            if let Some(count) = count.filter(|count| **count > 0) {
                *count -= 1;
                kept.push_front(key.clone());
            }
        }
        self.order = kept;
    }

    /// What never ends.
    fn open(&mut self) -> Vec<ResultLifetime> {
        self.forget_closed();
        self.open.clear();
        self.order.drain(..).map(|(start, row)| ResultLifetime { start, end: END, row }).collect()
    }
}
