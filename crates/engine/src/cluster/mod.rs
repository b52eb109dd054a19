//! The workers of a session: on the caller's thread, or on threads of their own; one interface.
//!
//! Law: all workers get the same commands in the same order, so they build the same dataflows with
//! the same channels. All workers get the same batches, of which each takes its own rows: a piece,
//! or those of its keys ([`anabranch_flow::import`]); operators exchange rows by key. Every answer
//! is collected from all workers.
//!
//! With `workers = 0` there is one worker and no thread: each call that waits steps it. Otherwise N
//! threads run its loop and are woken by commands.
//!
//! A turn of an operator that panics, or a panic while a dataflow is built or taken up for an
//! answer, fails the dataflow and those that read it ([`tenants`]): these are taken down, and a
//! statement that asks for them hears why. A worker that panics elsewhere has broken an invariant:
//! it marks the cluster as failed, and every later call says so.
//!
//! Reading order: this page (dataflows, answers), [`inputs`] (what comes in), [`worker`],
//! [`counts`] (what is held).

mod asked;
mod counts;
mod deferred;
mod inputs;
pub(crate) mod marks;
pub(crate) mod promised;
mod published;
mod shown;
pub(crate) mod spec;
mod tenants;
mod worker;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::time::{Duration, Instant};

use anabranch_arrangement::MergeEffort;
use anabranch_batch::Time;
use anabranch_flow::account::memory::Holder;
use anabranch_flow::account::{Accounts, Failure, OperatorCounts, ShardWork};
use anabranch_flow::egress::Item;
use anabranch_flow::service::Host;
use anabranch_flow::threads::Threads;

pub(crate) use asked::{Asked, Waited};
pub use spec::{
    ArrangementId, ArrangementStats, ChangeSpec, CollectionId, DataflowId, DataflowSpec, Egress, Export, LimitStep,
    Peek, PeekResult, Read, WantedKeys,
};

use crate::error::Error;
use crate::interrupt::Interrupt;
use crate::render::physical::Physical;
use crate::render::{Leaves, NoShares, prepare};
use deferred::Deferred;
pub(crate) use promised::{Reading, leaving};
pub(crate) use published::Publication;
pub(crate) use shown::Shown;
use tenants::Tenants;
pub(crate) use tenants::{InstalledDataflow, failed};
use worker::{Command, EventsPart, WorkerState};

/// A session's workers.
pub struct Cluster {
    workers: Workers,
    n_workers: usize,
    /// The worker that has the next piece of a batch.
    next_worker: usize,
    accounts: Accounts,
    tenants: Tenants,
    /// Whether rows, and promises to advance, may wait for the next [`flush`](Cluster::flush).
    defers: bool,
    /// What waits.
    deferred: Deferred,
}

enum Workers {
    /// Stepped by the caller.
    Local(Box<Host<WorkerState>>),
    Threads(Threads<Command>),
}

/// How often a waiting caller looks for interrupts and failed workers.
const LOOK_EVERY: Duration = Duration::from_millis(20);

impl Cluster {
    /// Starts the workers: 0 for one on the caller's thread.
    ///
    /// # Errors
    /// `Unavailable` when threads cannot be started.
    pub fn start(workers: usize, effort: MergeEffort) -> Result<Cluster, Error> {
        let (workers, n_workers) = match workers {
            0 => (Workers::Local(Box::new(Host::on_this_thread(|worker| WorkerState::new(effort, worker)))), 1),
            n => (Workers::Threads(started(n, effort)?), n),
        };
        let (accounts, tenants) = (Accounts::default(), Tenants::default());
        Ok(Cluster {
            workers,
            n_workers,
            next_worker: 0,
            accounts,
            tenants,
            defers: false,
            deferred: Deferred::default(),
        })
    }

    /// How many workers share the data; at least 1.
    pub fn workers(&self) -> usize {
        self.n_workers
    }

    /// The events that left a dataflow since the last call, a list for each worker.
    ///
    /// # Errors
    /// `Internal` when a worker has failed.
    pub fn events(&mut self, dataflow: DataflowId) -> Result<Vec<Vec<Item>>, Error> {
        let (sender, receiver) = channel();
        self.tell(|| Command::FetchEvents { dataflow, reply: sender.clone() });
        let mut parts = self.collect_from(Some(dataflow), &receiver, &Interrupt::new())?;
        parts.sort_by_key(|part: &EventsPart| part.worker);
        Ok(parts.into_iter().map(|part| part.items).collect())
    }

    /// Builds a dataflow on all workers.
    ///
    /// # Errors
    /// `Invalid` when the plan cannot be run; nothing is left behind.
    pub fn install(&mut self, spec: DataflowSpec) -> Result<(), Error> {
        let physical = prepare(&spec.plan, &Leaves::of(&spec.plan), &spec.reads, &spec.exports, &mut NoShares)?;
        self.check()?;
        self.install_prepared(spec.dataflow, &spec.name, &physical, spec.as_of, spec.egress, (Holder::Standing, None));
        Ok(())
    }

    /// Builds a dataflow from its steps on all workers.
    pub(crate) fn install_prepared(
        &mut self,
        dataflow: DataflowId,
        name: &str,
        physical: &Physical,
        as_of: Time,
        egress: Egress,
        (holder, client): (Holder, Option<u64>),
    ) {
        let account = self.accounts.open_for(holder, client);
        self.tenants.add(dataflow, name, physical, account.clone());
        self.tell(|| Command::Install {
            dataflow,
            name: name.to_owned(),
            physical: Box::new(physical.clone()),
            as_of,
            egress,
            account: account.clone(),
        });
    }

    /// Drops a dataflow and what it exports, unless others read it.
    pub fn uninstall(&mut self, dataflow: DataflowId) {
        // (A worker comes to the command when its turn is over, and this ends the turn.)
        self.tenants.give_up(dataflow);
        self.tenants.remove(dataflow);
        self.tell(|| Command::Uninstall { dataflow });
    }

    /// The contents of an arrangement at a time, once they are complete.
    ///
    /// # Errors
    /// `Cancelled` by the interrupt, `Internal` when a worker has failed.
    pub fn peek(&mut self, peek: Peek, interrupt: &Interrupt) -> Result<PeekResult, Error> {
        let maker = self.tenants.maker(peek.arrangement);
        let (sender, receiver) = channel();
        self.tell(|| Command::Peek { peek: peek.clone(), reply: sender.clone() });
        Ok(PeekResult::of_parts(self.collect_from(maker, &receiver, interrupt)?))
    }

    /// Asks for the contents of an arrangement, for a caller that then waits for the answers.
    ///
    /// # Errors
    /// `Internal` when a worker, or what is asked, has failed.
    pub(crate) fn ask(&mut self, peek: &Peek) -> Result<Asked<PeekResult>, Error> {
        self.take_down_failed();
        self.check()?;
        self.check_sound(peek.arrangement)?;
        let (sender, receiver) = channel();
        self.tell(|| Command::Peek { peek: peek.clone(), reply: sender.clone() });
        Ok(Asked::new(receiver, self.n_workers))
    }

    /// Has workers publish an arrangement, from their next turn on.
    ///
    /// # Errors
    /// `Internal` when a worker, or the arrangement's maker, has failed.
    pub(crate) fn publish(&mut self, arrangement: ArrangementId) -> Result<Arc<Publication>, Error> {
        self.take_down_failed();
        self.check()?;
        self.check_sound(arrangement)?;
        let publication = Arc::new(Publication::new(self.n_workers));
        self.tell(|| Command::Publish { arrangement, publication: Arc::clone(&publication) });
        Ok(publication)
    }

    /// Why a question to an arrangement was let fall.
    pub(crate) fn lost_peek(&mut self, arrangement: ArrangementId) -> Error {
        let maker = self.tenants.maker(arrangement);
        match self.check() {
            Ok(()) => self.lost(maker),
            Err(error) => error,
        }
    }

    /// Asks when those of the dataflows that have not failed are complete at `past`.
    pub(crate) fn ask_frontiers(&mut self, dataflows: &[DataflowId], past: Time) -> Asked<()> {
        self.take_down_failed();
        let (sender, receiver) = channel();
        let sound: Vec<DataflowId> =
            dataflows.iter().copied().filter(|dataflow| self.failure(*dataflow).is_none()).collect();
        for dataflow in &sound {
            self.tell(|| Command::Await { dataflow: *dataflow, past, reply: sender.clone() });
        }
        Asked::new(receiver, sound.len() * self.n_workers)
    }

    /// Lets an arrangement forget which changes happened before `since`.
    pub fn allow_compaction(&mut self, arrangement: ArrangementId, since: Time) {
        self.tell(|| Command::AllowCompaction { arrangement, since });
    }

    /// The accounts of all dataflows.
    pub(crate) fn accounts(&self) -> Accounts {
        self.accounts.clone()
    }

    /// Tells dataflows up to which time no reader will tell times later than `after` apart in
    /// anything they make. Such a time is not greater than that of any dataflow that reads them,
    /// nor than the times that their own arrangements and changes are read at; and no dataflow
    /// begins between the two.
    pub fn set_horizons(&mut self, after: Time, horizons: Vec<(DataflowId, Time)>) {
        let horizons: Arc<[(DataflowId, Time)]> = horizons.into();
        self.tell(|| Command::SetHorizons { after, horizons: Arc::clone(&horizons) });
    }

    /// Waits until everything that a dataflow exports is complete at `past`.
    ///
    /// # Errors
    /// As [`peek`](Cluster::peek).
    pub fn await_frontier(&mut self, dataflow: DataflowId, past: Time, interrupt: &Interrupt) -> Result<(), Error> {
        self.take_down_failed();
        self.tenants.check(dataflow)?;
        if let Workers::Local(local) = &mut self.workers {
            while local.service().upper(dataflow).ok_or_else(lost_answer)? <= past {
                local.turn();
                interrupt.check()?;
                self.tenants.check(dataflow)?;
            }
            return Ok(());
        }
        let (sender, receiver) = channel();
        self.tell(|| Command::Await { dataflow, past, reply: sender.clone() });
        self.collect_from(Some(dataflow), &receiver, interrupt)?;
        Ok(())
    }

    /// Waits as [`await_frontier`](Cluster::await_frontier) does, but not for what has failed.
    ///
    /// # Errors
    /// `Cancelled` by the interrupt, `Internal` when a worker has failed.
    pub(crate) fn await_sound(&mut self, dataflow: DataflowId, past: Time, interrupt: &Interrupt) -> Result<(), Error> {
        let waited = self.await_frontier(dataflow, past, interrupt);
        match self.failure(dataflow) {
            Some(_) => Ok(()),
            None => waited,
        }
    }

    /// The changes of a subscribed dataflow since the last call; waits up to `timeout` for the
    /// first.
    ///
    /// # Errors
    /// `Internal` when a worker has failed.
    pub fn changes(&mut self, dataflow: DataflowId, timeout: Duration) -> Result<ChangeSpec, Error> {
        let deadline = Instant::now() + timeout;
        loop {
            let changes = self.fetch(dataflow)?;
            let left = deadline.saturating_duration_since(Instant::now());
            if !changes.batches.is_empty() || !changes.errors.is_empty() || left.is_zero() {
                return Ok(changes);
            }
            self.await_changes(dataflow, left);
        }
    }

    /// Has workers ring once they have changes of a dataflow to give. Returns how many rings are
    /// enough.
    pub fn ring_with_changes(&mut self, dataflow: DataflowId, reply: &Sender<()>) -> usize {
        self.tell(|| Command::Notify { dataflow, reply: reply.clone() });
        1
    }

    /// Has workers ring once all that a dataflow makes is complete past a time. Returns how many
    /// rings that are.
    pub fn ring_past(&mut self, dataflow: DataflowId, past: Time, reply: &Sender<()>) -> usize {
        self.tell(|| Command::Await { dataflow, past, reply: reply.clone() });
        self.n_workers
    }

    fn fetch(&mut self, dataflow: DataflowId) -> Result<ChangeSpec, Error> {
        let (sender, receiver) = channel();
        self.tell(|| Command::Fetch { dataflow, reply: sender.clone() });
        let mut all = ChangeSpec { upper: anabranch_batch::END, ..ChangeSpec::default() };
        let mut parts = self.collect_from(Some(dataflow), &receiver, &Interrupt::new())?;
        // (Pieces of a batch are the workers' in their order.)
        parts.sort_by_key(|(worker, _)| *worker);
        for (_, part) in parts {
            all.batches.extend(part.batches);
            all.errors.extend(part.errors);
            all.upper = all.upper.min(part.upper);
            all.coalesced = all.coalesced.max(part.coalesced);
            all.only_comes |= part.only_comes;
        }
        Ok(all)
    }

    /// Waits until some worker has changes of a dataflow, but not longer than `timeout`, nor than
    /// until it is time to look for failed workers.
    fn await_changes(&mut self, dataflow: DataflowId, timeout: Duration) {
        let timeout = timeout.min(LOOK_EVERY);
        match &mut self.workers {
            Workers::Local(local) => {
                if !local.turn() {
                    std::thread::sleep(timeout);
                }
            }
            Workers::Threads(_) => {
                let (sender, receiver) = channel();
                self.tell(|| Command::Notify { dataflow, reply: sender.clone() });
                // (Nothing came in time, or workers failed: who fetches next hears which.)
                let _ = receiver.recv_timeout(timeout);
            }
        }
    }

    /// Runs a turn of the worker on the caller's thread; true if there is more to do. Threads need
    /// no turn.
    pub fn step(&mut self) -> bool {
        match &mut self.workers {
            Workers::Local(local) => local.turn(),
            Workers::Threads(_) => false,
        }
    }

    /// Fails if a worker has.
    pub(crate) fn check(&self) -> Result<(), Error> {
        match &self.workers {
            Workers::Threads(threads) => check_threads(threads),
            Workers::Local(_) => Ok(()),
        }
    }

    /// Takes down what has failed since the last call, with all that read it.
    pub(crate) fn take_down_failed(&mut self) {
        for dataflow in self.tenants.newly_failed(&self.accounts) {
            self.tell(|| Command::Uninstall { dataflow });
        }
    }

    /// What is installed, in order of its numbers.
    pub(crate) fn installed(&self) -> Vec<InstalledDataflow<'_>> {
        self.tenants.installed()
    }

    /// How many dataflows have failed so far: it grows with each.
    pub(crate) fn failures(&self) -> u64 {
        self.accounts.failures()
    }

    /// Refuses what is made by a dataflow that has failed.
    pub(crate) fn check_sound(&self, arrangement: ArrangementId) -> Result<(), Error> {
        self.tenants.maker(arrangement).map_or(Ok(()), |maker| self.tenants.check(maker))
    }

    /// What the steps of a dataflow have done, by number; no worker is asked.
    pub(crate) fn operators(&self, dataflow: DataflowId) -> BTreeMap<usize, OperatorCounts> {
        self.tenants.operators(dataflow)
    }

    /// What the steps of a dataflow have done on each worker, by number; no worker is asked.
    pub(crate) fn work_of_shards(&self, dataflow: DataflowId) -> BTreeMap<usize, BTreeMap<usize, ShardWork>> {
        self.tenants.work_of_shards(dataflow)
    }

    /// Why a dataflow has failed, if it has.
    pub(crate) fn failure(&self, dataflow: DataflowId) -> Option<&Failure> {
        self.tenants.failure(dataflow)
    }

    /// The failure of a dataflow as an error, if it has failed.
    pub(crate) fn check_dataflow(&self, dataflow: DataflowId) -> Result<(), Error> {
        self.tenants.check(dataflow)
    }

    /// Lets a dataflow, and those that read it, fail.
    pub(crate) fn fail(&mut self, dataflow: DataflowId, failure: Failure) {
        self.tenants.fail(dataflow, failure);
        self.take_down_failed();
    }

    /// Lets the next turn of every dataflow of this name panic, for tests of what follows.
    pub(crate) fn panic_in(&self, name: &str) {
        self.tenants.panic_in(name);
    }

    fn tell(&mut self, command: impl Fn() -> Command) {
        self.flush();
        for worker in 0..self.n_workers {
            self.tell_one(worker, command());
        }
    }

    fn tell_one(&mut self, worker: usize, command: Command) {
        match &mut self.workers {
            Workers::Local(local) => local.obey(command),
            Workers::Threads(threads) => threads.send(worker, command),
        }
    }

    /// As [`tell_one`](Self::tell_one), but a worker that sleeps goes on sleeping.
    fn put_one(&mut self, worker: usize, command: Command) {
        match &mut self.workers {
            Workers::Local(local) => local.obey(command),
            Workers::Threads(threads) => threads.put(worker, command),
        }
    }

    /// One answer of every worker.
    fn collect<T>(&mut self, receiver: &Receiver<T>, interrupt: &Interrupt) -> Result<Vec<T>, Error> {
        self.collect_from(None, receiver, interrupt)
    }

    /// One answer of every worker, unless the dataflow that is asked fails.
    fn collect_from<T>(
        &mut self,
        dataflow: Option<DataflowId>,
        receiver: &Receiver<T>,
        interrupt: &Interrupt,
    ) -> Result<Vec<T>, Error> {
        let mut answers = Vec::with_capacity(self.n_workers);
        while answers.len() < self.n_workers {
            self.take_down_failed();
            dataflow.map_or(Ok(()), |dataflow| self.tenants.check(dataflow))?;
            match &mut self.workers {
                Workers::Local(local) => match receiver.try_recv() {
                    Ok(answer) => answers.push(answer),
                    Err(TryRecvError::Empty) => {
                        local.turn();
                        interrupt.check()?;
                    }
                    Err(TryRecvError::Disconnected) => return Err(self.lost(dataflow)),
                },
                Workers::Threads(threads) => match receiver.recv_timeout(LOOK_EVERY) {
                    Ok(answer) => answers.push(answer),
                    Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {
                        check_threads(threads)?;
                        interrupt.check()?;
                    }
                    Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => {
                        check_threads(threads)?;
                        return Err(self.lost(dataflow));
                    }
                },
            }
        }
        Ok(answers)
    }

    /// The error for a question that a worker let fall.
    fn lost(&mut self, dataflow: Option<DataflowId>) -> Error {
        self.take_down_failed();
        let failed = dataflow.and_then(|dataflow| self.tenants.check(dataflow).err());
        failed.unwrap_or_else(lost_answer)
    }
}

/// Where a worker sends its answer.
type Reply<T> = Sender<T>;

fn started(n: usize, effort: MergeEffort) -> Result<Threads<Command>, Error> {
    Threads::start(n, move |worker| WorkerState::new(effort, worker))
        .map_err(|error| Error::unavailable(format!("cannot start worker threads: {error}")))
}

/// Fails if a worker has.
fn check_threads(threads: &Threads<Command>) -> Result<(), Error> {
    match threads.failure() {
        None => Ok(()),
        Some(message) => Err(Error::internal(format!("a worker has failed: {message}"))
            .with_hint("open a new session; please report this.")),
    }
}

fn lost_answer() -> Error {
    Error::internal("a question was let fall: what was asked for was dropped meanwhile, or reading it has panicked")
}
