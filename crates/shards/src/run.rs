//! A program at work: the client's side.
//!
//! Law: what comes out is a function of what was pushed into which shard and of time alone. An
//! error of any shard stops the run and is returned by every call that follows; row errors come out
//! with the results.

use std::collections::BTreeSet;
use std::sync::Arc;

use anabranch_batch::consolidate::consolidate;
use anabranch_batch::{Batch, END, Time};
use anabranch_engine::connector::{Poll, ReadProgress, SourceReader};
use anabranch_engine::frame::{Events, IntoEvents, Reached, ResultLifetime};
use anabranch_engine::{Error, Interrupt, Options, Session};
use arrow::datatypes::SchemaRef;

use crate::counts::ShardCounts;
use crate::follow::{RunWatch, Subscriber};
use crate::group::Group;
use crate::message::{Carry, Load, Message};
use crate::moved::Moved;
use crate::packed::Ranges;
use crate::processes::Processes;
use crate::program::{Shards, Verb};
use crate::row_errors::RowErrors;
use crate::tasks::{Task, Tasks};
use crate::traffic::CLIENT;

/// Messages under way before the client waits.
const MESSAGES_MAX: usize = 256;

/// Bytes of rows under way before the client waits, unless it says another number: 64 MiB.
const BYTES_MAX: usize = 1 << 26;

/// Rows asked of a source at once.
const ROWS_MAX: usize = 8192;

/// A program at work, a thread for each shard; dropped, it is gone.
pub struct ShardRun {
    tasks: Arc<Tasks>,
    pub(crate) group: Group,
    /// Tells how far it has come.
    pub(crate) watch: RunWatch,
    /// Takes what comes out.
    pub(crate) subscriber: Option<Subscriber>,
    /// For each step and shard, how far a source has come there.
    frontiers: Vec<Vec<Time>>,
    /// The same, of what a source promises of its rows.
    reached: Vec<Vec<Reached>>,
    /// Sources and shards that are idle.
    idle: BTreeSet<(usize, usize)>,
    /// For each step that is a packed source, what its shards hold.
    ranges: Vec<Option<Ranges>>,
    pub(crate) outcome: RunOutcome,
    /// Row errors that were said.
    pub(crate) errors: RowErrors,
    /// Whether rows were handed out.
    pub(crate) has_given: bool,
    /// Bytes of rows under way before the client waits.
    bytes_max: usize,
    /// What stops it.
    stop: Interrupt,
}

/// What has come out of a program.
#[derive(Clone, Debug)]
pub struct RunOutcome {
    /// Columns of the rows.
    pub schema: SchemaRef,
    /// Events of each shard, in order of time.
    pub shards: Vec<Vec<Batch>>,
    /// No further event of each shard lies before this time.
    pub frontiers: Vec<Time>,
}

impl Shards {
    /// Sets the program to work, unchecked.
    ///
    /// # Errors
    /// The first error of building it; `Unavailable` when threads cannot be had.
    pub fn run(&self) -> Result<ShardRun, Error> {
        self.run_with(Carry::Batches)
    }

    /// As [`run`](Shards::run); rows cross as said.
    ///
    /// # Errors
    /// As for `run`.
    pub fn run_with(&self, carry: Carry) -> Result<ShardRun, Error> {
        self.start(carry, None)
    }

    /// Sets the program to work in several processes, of which this one is the client's, number 0.
    /// The others build the same program and [serve](Shards::serve_in). The layout says how many
    /// there are.
    ///
    /// # Errors
    /// As for `run`; `Invalid` when this is not process 0, or the layout has another number of
    /// processes. A process that goes away, or runs another program, is an error of the run.
    pub fn run_in(&self, processes: Processes) -> Result<ShardRun, Error> {
        match processes.process {
            CLIENT => self.start(Carry::Batches, Some(processes)),
            other => Err(Error::invalid(format!("process {other} is not the client's, which is 0"))
                .with_hint("Call serve_in there.")),
        }
    }

    /// Works at the shards of this process until the client's run is dropped.
    ///
    /// # Errors
    /// That of a shard of this process; `Invalid` when this is process 0, or the layout has another
    /// number of processes; `Unavailable` when another process goes away.
    pub fn serve_in(&self, processes: Processes) -> Result<(), Error> {
        if processes.process == CLIENT {
            return Err(Error::invalid("process 0 is the client's").with_hint("Call run_in there."));
        }
        let tasks = Arc::new(Tasks::of(self)?);
        let group = Group::start(&tasks, self.step()?.layout, Carry::Batches, Some(processes))?;
        group.traffic.wait_for_stop()
    }

    fn start(&self, carry: Carry, processes: Option<Processes>) -> Result<ShardRun, Error> {
        let tasks = Arc::new(Tasks::of(self)?);
        let step = self.step()?;
        let (layout, schema) = (step.layout, step.schema.clone());
        let group = Group::start(&tasks, layout, carry, processes)?;
        let frontiers = vec![vec![Time::MIN; layout.shards()]; tasks.list.len()];
        let reached = vec![vec![Reached::default(); layout.shards()]; tasks.list.len()];
        let outcome =
            RunOutcome { schema, shards: vec![vec![]; layout.shards()], frontiers: vec![Time::MIN; layout.shards()] };
        let ranges = |task: &Task| match &task.step.verb {
            Verb::Source { packed: Some(column), .. } => {
                Some(Ranges::new(column, task.step.schema.index_of(column).ok()?, layout.shards()))
            }
            _ => None,
        };
        let ranges = tasks.list.iter().map(ranges).collect();
        let watch = RunWatch::new(Arc::clone(&group.traffic), &tasks, layout.shards());
        let mut run = ShardRun {
            tasks,
            group,
            watch,
            subscriber: None,
            frontiers,
            reached,
            idle: BTreeSet::new(),
            ranges,
            outcome,
            errors: RowErrors::default(),
            has_given: false,
            bytes_max: BYTES_MAX,
            stop: Interrupt::new(),
        };
        run.send_datasets()?;
        Ok(run)
    }
}

impl ShardRun {
    /// Gives rows to a shard of a source, in any order between two advances, unless the source
    /// promises one.
    ///
    /// # Errors
    /// `Invalid` when there is no such source or shard, or columns do not fit; `Data` when a row
    /// lies before the frontier there, or breaks a promise of the source.
    pub fn push(&mut self, source: &str, shard: usize, rows: impl IntoEvents) -> Result<(), Error> {
        let task = self.source(source, shard)?;
        let batch = rows.into_events(self.events(task)?)?.compact();
        if batch.is_empty() {
            return Ok(());
        }
        let (first, frontier) = (batch.times().min(), self.frontiers[task][shard]);
        if first < frontier {
            return Err(Error::data(format!(
                "a row of source \"{source}\" at {first} comes after shard {shard} was complete before {frontier}"
            ))
            .with_hint("Push rows before advancing past them."));
        }
        let reached = self.events(task)?.check_promises(&batch, &self.reached[task][shard])?;
        if let Some(ranges) = &mut self.ranges[task] {
            ranges.note(source, shard, &batch)?;
        }
        self.reached[task][shard] = reached;
        self.idle.remove(&(task, shard));
        self.watch.pushed(task, batch.len());
        self.send(shard, task, Load::Rows(batch))
    }

    /// Promises that no row before `time` will be pushed into a shard of a source.
    ///
    /// # Errors
    /// `Invalid` when there is no such source or shard; that of a shard that failed.
    pub fn advance(&mut self, source: &str, shard: usize, time: Time) -> Result<(), Error> {
        let task = self.source(source, shard)?;
        self.idle.remove(&(task, shard));
        self.promise(task, shard, time)?;
        self.promise_idle(task)
    }

    /// Says that nothing comes into a shard of a source for now: from here on its promises are
    /// those of the source's other shards, so that none of them waits for it. A push or an advance
    /// of its own ends that. Rows that come later than the others have promised are an error, as
    /// those of any shard. A shard that is at its end needs no such word.
    ///
    /// # Errors
    /// As for [`advance`](ShardRun::advance).
    pub fn idle(&mut self, source: &str, shard: usize) -> Result<(), Error> {
        let task = self.source(source, shard)?;
        self.idle.insert((task, shard));
        self.promise_idle(task)
    }

    /// Promises for the idle shards of a source what all others have promised.
    fn promise_idle(&mut self, task: usize) -> Result<(), Error> {
        if self.idle.is_empty() {
            return Ok(());
        }
        let (idle, awake): (Vec<usize>, Vec<usize>) =
            (0..self.shards()).partition(|shard| self.idle.contains(&(task, *shard)));
        let Some(time) = awake.into_iter().map(|shard| self.frontiers[task][shard]).min() else { return Ok(()) };
        idle.into_iter().try_for_each(|shard| self.promise(task, shard, time))
    }

    fn promise(&mut self, task: usize, shard: usize, time: Time) -> Result<(), Error> {
        if time <= self.frontiers[task][shard] {
            return Ok(());
        }
        self.frontiers[task][shard] = time;
        self.watch.promised(task, shard, time);
        self.send(shard, task, Load::Frontier(time))
    }

    /// [`advance`](ShardRun::advance) for all shards of all sources.
    ///
    /// # Errors
    /// That of a shard that failed.
    pub fn advance_all(&mut self, time: Time) -> Result<(), Error> {
        let sources = self.tasks.list.iter().filter_map(Task::source_name).map(str::to_owned);
        for source in sources.collect::<Vec<_>>() {
            (0..self.group.shards.len()).try_for_each(|shard| self.advance(&source, shard, time))?;
        }
        Ok(())
    }

    /// Reads a source of any connector into a shard, to its end. Several shards are read by several
    /// calls; time moves only at the end of each.
    ///
    /// # Errors
    /// Those of the reader and of [`push`](ShardRun::push).
    pub fn play(&mut self, source: &str, shard: usize, mut reader: Box<dyn SourceReader>) -> Result<(), Error> {
        let (task, mut read) = (self.source(source, shard)?, ReadProgress::default());
        loop {
            let polled = reader.poll(ROWS_MAX)?;
            self.watch.played(task, &mut read, reader.progress());
            match polled {
                Poll::Rows(rows) => self.push(source, shard, rows)?,
                Poll::Pending { retry_after } => std::thread::sleep(retry_after),
                Poll::Done => return self.advance(source, shard, END),
            }
        }
    }

    /// Waits until the shards have done all that can be done, and returns what has come out since
    /// the last call.
    ///
    /// # Errors
    /// `Data` when rows have come to be in error since the last call, and those are told no more;
    /// that of a shard that failed. What was before all rows is no error when rows have come.
    pub fn drain(&mut self) -> Result<RunOutcome, Error> {
        self.group.traffic.wait(0, &self.stop)?;
        self.take_ready()
    }

    /// What has come out since the last call.
    pub(crate) fn take_ready(&mut self) -> Result<RunOutcome, Error> {
        self.take_said();
        let frontier = self.outcome.frontiers.iter().copied().min().unwrap_or(Time::MIN);
        if let Some(message) = self.errors.take_first(frontier) {
            return Err(Error::data(message));
        }
        let empty = vec![vec![]; self.group.shards.len()];
        let shards = std::mem::replace(&mut self.outcome.shards, empty);
        self.has_given |= shards.iter().any(|batches| !batches.is_empty());
        let (schema, frontiers) = (self.outcome.schema.clone(), self.outcome.frontiers.clone());
        Ok(RunOutcome { schema, shards, frontiers })
    }

    /// Ends all sources, and returns what has come out since the last call.
    ///
    /// # Errors
    /// As for [`drain`](ShardRun::drain).
    pub fn finish(&mut self) -> Result<RunOutcome, Error> {
        self.advance_all(END)?;
        self.drain()
    }

    /// Gives each shard its part of the datasets that the program begins with.
    fn send_datasets(&mut self) -> Result<(), Error> {
        let tasks = Arc::clone(&self.tasks);
        for (number, task) in tasks.list.iter().enumerate() {
            let Verb::Dataset(dataset) = &task.step.verb else { continue };
            dataset.each(&mut |shard, batch| self.send(shard, number, Load::Rows(batch)))?;
            (0..self.shards()).try_for_each(|shard| self.send(shard, number, Load::Frontier(END)))?;
        }
        Ok(())
    }

    /// The number of shards.
    pub fn shards(&self) -> usize {
        self.group.shards.len()
    }

    /// For each shard, before which time no further event of it lies; as of the last call of
    /// [`drain`](ShardRun::drain).
    pub fn frontiers(&self) -> &[Time] {
        &self.outcome.frontiers
    }

    /// Ends all sources, and returns all that has come out; `what` of it is wanted.
    ///
    /// # Errors
    /// As for [`finish`](ShardRun::finish); `Invalid` when [`drain`](ShardRun::drain) has taken a
    /// part of it before.
    pub fn whole(&mut self, what: &str) -> Result<RunOutcome, Error> {
        self.check_untaken(what)?;
        self.finish()
    }

    /// Columns of the result.
    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.outcome.schema
    }

    /// No part of the result was handed out: it can be kept as a whole.
    pub(crate) fn check_untaken(&self, name: &str) -> Result<(), Error> {
        if self.has_given {
            return Err(Error::invalid(format!("a part of the result \"{name}\" was taken by drain() before"))
                .with_hint("Put what drain() and finish() return together, and keep it with Datasets::keep."));
        }
        Ok(())
    }

    /// Rows of these columns can be pushed into a source.
    pub(crate) fn check_columns(&self, source: &str, shard: usize, schema: &SchemaRef) -> Result<(), Error> {
        let step = &self.tasks.list[self.source(source, shard)?].step;
        let of = |schema: &SchemaRef| -> Vec<String> {
            schema.fields().iter().map(|field| format!("{} {}", field.name(), field.data_type())).collect()
        };
        let (ours, theirs) = (of(&step.schema), of(schema));
        if ours != theirs {
            return Err(Error::invalid(format!("rows of ({}) are read into source \"{source}\"", theirs.join(", ")))
                .with_hint(format!("Its columns are ({}).", ours.join(", "))));
        }
        Ok(())
    }

    /// Bounds the bytes of rows under way, which are 64 MiB at most if it is not called: rows that
    /// were pushed, or sent from shard to shard, and are not taken yet, as of this process. A push
    /// waits until its rows have room. Rows that alone are more wait until nothing else is under
    /// way, and pass. What shards make of rows that were pushed counts, and does not wait.
    pub fn limit_bytes(&mut self, bytes: usize) {
        self.bytes_max = bytes;
    }

    /// Bytes of rows under way now; see [`limit_bytes`](ShardRun::limit_bytes).
    pub fn bytes_under_way(&self) -> usize {
        self.group.traffic.bytes_under_way()
    }

    /// What each step hashed and moved so far, in order of the program.
    pub fn moved(&self) -> Vec<(&'static str, Moved)> {
        let mut moved: Vec<(&'static str, Moved)> =
            self.actions().into_iter().map(|action| (action, Moved::default())).collect();
        for counts in self.counts() {
            for ((_, moved), step) in moved.iter_mut().zip(counts.steps()) {
                *moved += step.moved;
            }
        }
        moved
    }

    /// What each step does, in order of the program.
    pub(crate) fn actions(&self) -> Vec<&'static str> {
        let action = |task: &Task| match &task.step.verb {
            Verb::Source { .. } => "source",
            Verb::Dataset(_) => "dataset",
            Verb::Rekey => "rekey",
            Verb::Choose(_) => "branches",
            Verb::InTime => "in order of time",
            Verb::Query { .. } => "query",
            Verb::Move { kind, .. } => kind.name(),
        };
        self.tasks.list.iter().map(action).collect()
    }

    /// Whether each step is a movement, in order of the program.
    pub(crate) fn are_movements(&self) -> impl Iterator<Item = bool> {
        self.tasks.list.iter().map(|task| matches!(task.step.verb, Verb::Move { .. }))
    }

    /// What each shard has done.
    pub(crate) fn counts(&self) -> &[ShardCounts] {
        &self.group.traffic.counts
    }

    /// How far the source has come that is furthest ahead; none if all have ended or none has
    /// begun.
    pub(crate) fn furthest_source(&self) -> Option<Time> {
        let frontiers = self.frontiers.iter().flatten().copied();
        frontiers.filter(|frontier| *frontier > Time::MIN && *frontier < END).max()
    }

    /// Lets another thread stop the run: when `stop` is triggered, the call that waits fails with
    /// an error of kind `Cancelled`, and so do those that follow.
    pub fn heed(&mut self, stop: &Interrupt) {
        self.stop = stop.clone();
    }

    fn source(&self, name: &str, shard: usize) -> Result<usize, Error> {
        if shard >= self.group.shards.len() {
            return Err(Error::invalid(format!("there is no shard {shard}: there are {}", self.group.shards.len())));
        }
        self.tasks.source(name).ok_or_else(|| Error::invalid(format!("the program has no source \"{name}\"")))
    }

    fn events(&self, task: usize) -> Result<&Events, Error> {
        match &self.tasks.list[task].step.verb {
            Verb::Source { events, .. } => Ok(events),
            _ => Err(Error::internal("rows come in at a source")),
        }
    }

    fn send(&mut self, shard: usize, task: usize, load: Load) -> Result<(), Error> {
        self.group.traffic.wait(MESSAGES_MAX, &self.stop)?;
        let message = Message::new(task, shard, load);
        if !matches!(message.load, Load::Frontier(_)) {
            self.group.traffic.wait_for_room(message.bytes, self.bytes_max, &self.stop)?;
        }
        self.group.shards[shard].send(message, &self.group.traffic);
        self.tell_subscriber();
        Ok(())
    }
}

impl RunOutcome {
    /// The changes of all shards together: consolidated updates in order of time.
    pub fn changes(&self) -> Batch {
        contents(self.shards.iter().flatten())
    }

    /// The changes of one shard.
    pub fn changes_of(&self, shard: usize) -> Batch {
        contents(&self.shards[shard])
    }

    /// Lifetimes of rows, complete: for what has come out of a run from its beginning to its end.
    ///
    /// # Errors
    /// `Invalid` when columns cannot be read back.
    pub fn lifetimes(&self) -> Result<Vec<ResultLifetime>, Error> {
        let frame = Events::input("result", self.schema.clone()).frame();
        let mut session = Session::new(Options::default())?;
        let mut run = session.start(&frame)?;
        for batch in self.shards.iter().flatten() {
            run.push("result", batch.clone().without_key())?;
        }
        run.finish()?;
        let mut lifetimes = run.lifetimes()?;
        lifetimes.sort_by_cached_key(|lifetime| (lifetime.start, lifetime.to_string()));
        Ok(lifetimes)
    }
}

fn contents<'a>(batches: impl IntoIterator<Item = &'a Batch>) -> Batch {
    let flat: Vec<Batch> = batches.into_iter().map(|batch| batch.clone().without_key().flatten()).collect();
    let batch = Batch::concat(&flat).unwrap_or_default();
    consolidate(batch).in_time_order()
}
