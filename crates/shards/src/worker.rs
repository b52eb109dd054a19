//! A shard at work: its part of each step, on a thread of its own.
//!
//! Queries are runs of frames in sessions without threads: a shard's rows, state and operators
//! belong to its thread, and nothing but messages leaves it. Law: rows are sent before the frontier
//! that passes them, and channels keep the order of each sender, so a frontier holds when it
//! arrives.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use anabranch_batch::{Batch, Time, types, wire};
use anabranch_engine::frame::{FrameRun, Item};
use anabranch_engine::{Error, ErrorKind, Options, Session};
use rustix::time::{ClockId, clock_gettime};

use crate::address::{Address, ShardClient};
use crate::appending::Dealt;
use crate::counts::StepCounts;
use crate::in_time::InTime;
use crate::layout::Move;
use crate::message::{Carry, Load, Message, Said, share};
use crate::moved::Distance;
use crate::program::{ActionKind, BRANCH, INPUTS, ProgramStep, Verb};
use crate::recent_branches::RecentBranches;
use crate::route::{Movement, RoutedRows, in_range, routed};
use crate::split::handed::ConstantColumns;
use crate::tasks::Tasks;
use crate::traffic::Traffic;

/// What a shard is given.
pub struct Post {
    /// Its number.
    pub shard: usize,
    /// The program.
    pub tasks: Arc<Tasks>,
    /// How rows cross.
    pub carry: Carry,
    /// What comes.
    pub inbox: Receiver<Message>,
    /// To all shards.
    pub shards: Vec<Address>,
    /// To the client.
    pub client: ShardClient,
    /// What is under way.
    pub traffic: Arc<Traffic>,
}

/// Works until it is told to stop, or fails; a failure is said to the client.
pub fn work(post: Post) {
    let guard = Guard { shard: post.shard, traffic: Arc::clone(&post.traffic) };
    let mut branches = RecentBranches::default();
    if let Err(error) = serve(&post, &mut branches) {
        // (What a failed dataflow says of others does not hold here: the run ends.)
        let known = error.detail.clone().filter(|_| error.kind != ErrorKind::Internal);
        let detail = known.map_or_else(String::new, |detail| format!("{detail} "));
        post.traffic.fail(error.with_detail(format!("{detail}In shard {}{branches}.", post.shard)));
    }
    drop(guard);
}

/// Says that a shard panicked.
struct Guard {
    shard: usize,
    traffic: Arc<Traffic>,
}

impl Drop for Guard {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.traffic.fail(Error::internal(format!("shard {} panicked", self.shard)));
        }
    }
}

fn serve(post: &Post, branches: &mut RecentBranches) -> Result<(), Error> {
    let is_query = |verb: &Verb| matches!(verb, Verb::Query { .. });
    let sessions = post.tasks.list.iter().map(|task| match is_query(&task.step.verb) {
        true => Session::new(Options::default()).map(Some),
        false => Ok(None),
    });
    let mut sessions = sessions.collect::<Result<Vec<Option<Session>>, Error>>()?;
    let mut places = Vec::new();
    for (session, task) in sessions.iter_mut().zip(&post.tasks.list) {
        let run = match (&task.step.verb, session) {
            (Verb::Query { .. }, _) if task.is_first_only && post.shard > 0 => None,
            (Verb::Query { frame }, Some(session)) => Some(session.start(frame)?.heeding(&post.traffic.interrupt)),
            _ => None,
        };
        let senders = post.shards.len();
        let inputs = task.step.inputs.len().max(1);
        let (heard, ports) = (vec![Time::MIN; senders], vec![Time::MIN; inputs]);
        let (held, dealt) = (InTime::default(), Dealt::default());
        places.push(Place { run, held, heard, ports, told: Time::MIN, dealt });
    }
    let clock = thread_nanos();
    let constants = ConstantColumns::default();
    let mut shard = Shard { post, places, waiting: VecDeque::new(), batches: 0, clock, constants, branches };
    while let Ok(message) = post.inbox.recv() {
        if matches!(message.load, Load::Stop) || post.traffic.interrupt.is_triggered() {
            break;
        }
        post.traffic.counts[post.shard].unqueue();
        let (owed, bytes) = (message.owed, message.bytes);
        shard.receive(message)?;
        post.traffic.counted(post.shard);
        post.traffic.end(owed, bytes);
    }
    Ok(())
}

/// A step's part in a shard.
struct Place<'s> {
    /// Of a query.
    run: Option<FrameRun<'s>>,
    /// Of an order: rows that wait.
    held: InTime,
    /// Of a movement: the frontier of each sender.
    heard: Vec<Time>,
    /// Of each input.
    ports: Vec<Time>,
    /// What readers were told.
    told: Time,
    /// Of a movement of whole batches: what was sent.
    dealt: Dealt,
}

/// What waits for a step of its shard.
struct Waiting {
    /// The step.
    task: usize,
    /// Which of its inputs.
    port: usize,
    /// What it takes.
    item: Item,
    /// Bytes of the rows in the wire form; `None` where nothing behind the step asks for them.
    bytes: Option<usize>,
}

struct Shard<'p, 's> {
    post: &'p Post,
    /// The branches at work.
    branches: &'p mut RecentBranches,
    places: Vec<Place<'s>>,
    /// Rows and promises for steps of this shard.
    waiting: VecDeque<Waiting>,
    /// Batches sent so far.
    batches: u64,
    /// CPU time of the thread when it was last read, in nanoseconds.
    clock: u64,
    /// Numbers of branches, as columns.
    constants: ConstantColumns,
}

impl Shard<'_, '_> {
    fn receive(&mut self, message: Message) -> Result<(), Error> {
        let Message { task, from, load, bytes, .. } = message;
        self.clock = thread_nanos();
        match load {
            Load::Branches(rows, branches) => {
                let batch = rows_of(*rows)?;
                let place = place_of(BRANCH, &self.post.tasks.list[task].step)?;
                let mut constants = std::mem::take(&mut self.constants);
                let handed: Vec<Batch> = constants.in_branches(&batch, place, &branches).collect();
                self.constants = constants;
                let own = bytes.saturating_sub(size_of_val(branches.as_slice()));
                handed.into_iter().try_for_each(|rows| self.hand_on(task, Item::Rows(rows), Some(own)))?;
            }
            Load::Frontier(time) => self.hear(task, from, time)?,
            Load::Stop => {}
            rows => self.hand_on(task, Item::Rows(rows_of(rows)?), Some(bytes))?,
        }
        self.charge(task);
        while let Some(Waiting { task, port, item, bytes }) = self.waiting.pop_front() {
            if let Item::Rows(batch) = &item {
                let rows = batch.len() as u64;
                self.count(task, |counts| {
                    (counts.rows_in, counts.batches_in) = (counts.rows_in + rows, counts.batches_in + 1)
                });
            }
            self.take(task, port, item, bytes)?;
            self.charge(task);
        }
        Ok(())
    }

    fn count(&self, task: usize, change: impl FnOnce(&mut StepCounts)) {
        self.post.traffic.counts[self.post.shard].count(task, change);
    }

    /// The CPU time since the last look is that of a step.
    fn charge(&mut self, task: usize) {
        let now = thread_nanos();
        let passed = now.saturating_sub(std::mem::replace(&mut self.clock, now));
        self.count(task, |counts| counts.cpu_nanos += passed);
    }

    /// A promise of one sender: what the least of them promise is passed on.
    fn hear(&mut self, task: usize, from: usize, time: Time) -> Result<(), Error> {
        let step = &self.post.tasks.list[task].step;
        let frontier = match &step.verb {
            Verb::Move { reach, .. } => {
                let place = &mut self.places[task];
                place.heard[from] = place.heard[from].max(time);
                let senders = step.layout.peers(self.post.shard, reach.scope);
                senders.into_iter().map(|sender| place.heard[sender]).min().unwrap_or(time)
            }
            _ => time,
        };
        self.promise(task, frontier)
    }

    fn promise(&mut self, task: usize, frontier: Time) -> Result<(), Error> {
        if frontier > self.places[task].told {
            self.places[task].told = frontier;
            self.count(task, |counts| counts.frontier = frontier);
            self.emit(task, Item::Frontier(frontier))?;
        }
        Ok(())
    }

    /// Hands what a step has made to its readers. Rows are measured here if a movement behind hands
    /// them on: that one reads no row, so its cost is that of a batch.
    fn emit(&mut self, task: usize, item: Item) -> Result<(), Error> {
        match item {
            Item::Rows(batch) if self.post.tasks.list[task].is_measured => {
                let batch = batch.compact();
                let bytes = wire::length_in_bytes(&batch);
                self.hand_on(task, Item::Rows(batch), Some(bytes))
            }
            item => self.hand_on(task, item, None),
        }
    }

    /// Hands what a step yields to its readers, with the bytes of its rows; without readers it is
    /// the result.
    fn hand_on(&mut self, task: usize, item: Item, bytes: Option<usize>) -> Result<(), Error> {
        if let Item::Rows(batch) = &item {
            let rows = batch.len() as u64;
            self.count(task, |counts| {
                (counts.rows_out, counts.batches_out) = (counts.rows_out + rows, counts.batches_out + 1)
            });
        }
        let readers = &self.post.tasks.list[task].readers;
        if readers.is_empty() || matches!(item, Item::Errors(_)) {
            self.post.client.say(Said { shard: self.post.shard, item }, &self.post.traffic);
            return Ok(());
        }
        for &(reader, port) in readers {
            self.waiting.push_back(Waiting { task: reader, port, item: item.clone(), bytes });
        }
        Ok(())
    }

    fn take(&mut self, task: usize, port: usize, item: Item, bytes: Option<usize>) -> Result<(), Error> {
        let step = Arc::clone(&self.post.tasks.list[task].step);
        match (&step.verb, item) {
            (Verb::Move { kind, reach }, Item::Rows(batch)) => self.send_rows(task, kind, reach, batch, bytes),
            (Verb::Move { reach, .. }, Item::Frontier(time)) => {
                for target in step.layout.peers(self.post.shard, reach.scope) {
                    self.send(target, Message::new(task, self.post.shard, Load::Frontier(time)));
                }
                Ok(())
            }
            (Verb::Rekey, Item::Rows(batch)) if step.key.is_empty() => {
                let is_as_it_was = batch.present().is_none() && batch.key().is_none();
                let batch = batch.compact().without_key();
                match is_as_it_was {
                    true => self.hand_on(task, Item::Rows(batch), bytes),
                    false => self.emit(task, Item::Rows(batch)),
                }
            }
            (Verb::Rekey, Item::Rows(batch)) => {
                let batch = self.keyed(task, batch);
                self.emit(task, Item::Rows(batch))
            }
            (Verb::Choose(places), Item::Rows(batch)) => self.emit(task, Item::Rows(batch.compact().project(places))),
            (Verb::InTime, Item::Rows(batch)) => {
                self.places[task].held.push(batch);
                Ok(())
            }
            (Verb::InTime, Item::Frontier(time)) => {
                for batch in self.places[task].held.take_before(time) {
                    self.emit(task, Item::Rows(batch))?;
                }
                self.promise(task, time)
            }
            (Verb::Query { .. }, item) => self.query(task, port, item),
            (_, Item::Frontier(time)) => self.promise(task, time),
            (_, item) => self.emit(task, item),
        }
    }

    fn query(&mut self, task: usize, port: usize, item: Item) -> Result<(), Error> {
        let place = &mut self.places[task];
        let Some(run) = place.run.as_mut() else {
            // (The query is asked in the first shard only; copies of rows come here for nothing.)
            let Item::Frontier(time) = item else { return Ok(()) };
            place.ports[port] = time;
            let frontier = place.ports.iter().copied().min().unwrap_or(time);
            return self.promise(task, frontier);
        };
        let is_time = matches!(item, Item::Frontier(_));
        self.branches.enter(task, &self.post.tasks.list[task].step.inputs[port], &item)?;
        match item {
            Item::Rows(batch) => run.push(INPUTS[port], batch)?,
            Item::Frontier(time) => {
                place.ports[port] = time;
                run.advance(INPUTS[port], time)?;
            }
            Item::Errors(_) => {}
        }
        let drained = run.drain()?;
        self.branches.leave(task, is_time);
        for item in drained {
            match item {
                Item::Rows(batch) => self.emit(task, Item::Rows(narrowed(batch)?))?,
                Item::Frontier(time) => self.promise(task, time)?,
                errors => self.emit(task, errors)?,
            }
        }
        Ok(())
    }

    /// The batch with the hash of the step's key: that which it holds, if it is of the same
    /// columns.
    fn keyed(&self, task: usize, batch: Batch) -> Batch {
        let key = &self.post.tasks.list[task].key;
        let is_hashed = batch.key().is_some_and(|known| *known.columns == **key);
        let rows = if is_hashed { 0 } else { batch.len() as u64 };
        self.count(task, |counts| counts.moved.rows_hashed += rows);
        batch.compact().with_key(key)
    }

    /// Sends rows to the shards of a movement. `bytes` are those of the batch, if they are known.
    fn send_rows(
        &mut self,
        task: usize,
        kind: &ActionKind,
        reach: &Move,
        batch: Batch,
        bytes: Option<usize>,
    ) -> Result<(), Error> {
        let batch = match kind {
            ActionKind::Redistribute => self.keyed(task, batch),
            _ => batch.compact(),
        };
        let step = Arc::clone(&self.post.tasks.list[task].step);
        let (here, layout) = (self.post.shard, step.layout);
        self.batches += 1;
        let movement = Movement { kind, reach, schema: &step.schema, sequence: self.batches };
        let (batch, errors) = in_range(batch, &movement)?;
        if let Some(errors) = errors {
            self.emit(task, Item::Errors(errors))?;
        }
        for part in routed(&batch, &movement, layout, here, &mut self.places[task].dealt)? {
            let RoutedRows { target, rows: part, window, branches } = part;
            let listed = branches.as_ref().map_or(0, |branches| 8 * branches.len());
            let rows = window.as_ref().map_or(part.len(), ExactSizeIterator::len);
            let bytes = match bytes {
                // (Only the header of a batch that is handed on is read: texts are measured row by
                // row.)
                Some(bytes) if kind.hands_on() => share(bytes, rows, part.len()),
                _ => wire::length_in_bytes(&part) + listed,
            };
            let distance = match (target == here, layout.process(here) == layout.process(target)) {
                (true, _) => Distance::Kept,
                (_, true) => Distance::Near,
                (_, false) => Distance::Far,
            };
            self.count(task, |counts| counts.moved.count(distance, rows as u64, bytes as u64));
            let window = window.filter(|window| window.len() < part.len());
            let rows = match (self.post.carry, window) {
                (Carry::Wire, Some(window)) if target != here => wired(&part.slice(window.start, window.len()))?,
                (Carry::Wire, None) if target != here => wired(&part)?,
                (_, Some(window)) => Load::Window(part, window),
                (_, None) => Load::Rows(part),
            };
            let load = match branches {
                Some(branches) => Load::Branches(Box::new(rows), branches),
                None => rows,
            };
            self.send(target, Message { task, from: here, load, bytes, owed: None });
        }
        Ok(())
    }

    fn send(&self, target: usize, message: Message) {
        self.post.shards[target].send(message, &self.post.traffic);
    }
}

/// Rows in the wire form.
fn wired(rows: &Batch) -> Result<Load, Error> {
    let mut bytes = Vec::with_capacity(wire::length_in_bytes(rows));
    wire::write(rows, &mut bytes).map_err(|error| Error::internal(error.to_string()))?;
    Ok(Load::Wire(bytes))
}

/// Rows of either form.
fn rows_of(load: Load) -> Result<Batch, Error> {
    match load {
        Load::Rows(batch) => Ok(batch),
        Load::Window(batch, rows) => Ok(batch.slice(rows.start, rows.len())),
        Load::Wire(bytes) => wire::read(&bytes).map_err(|error| Error::internal(error.to_string())),
        _ => Err(Error::internal("rows of a message that holds none")),
    }
}

/// The place of a column.
fn place_of(column: &str, step: &ProgramStep) -> Result<usize, Error> {
    step.schema.index_of(column).map_err(|error| Error::internal(error.to_string()))
}

/// CPU time of this thread, in nanoseconds.
fn thread_nanos() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Rows in the types that batches hold.
fn narrowed(batch: Batch) -> Result<Batch, Error> {
    let is_narrow = |column: &arrow::array::ArrayRef| types::narrowed_type(column.data_type()) == *column.data_type();
    if batch.columns().iter().all(is_narrow) {
        return Ok(batch);
    }
    let columns = batch.columns().iter().map(types::narrowed).collect::<Result<Vec<_>, _>>();
    Ok(batch.with_columns(columns.map_err(|error| Error::data(error.to_string()))?.into()))
}
