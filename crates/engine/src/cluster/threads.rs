//! Workers on threads of their own: a queue of commands each, woken when something is put in.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex};
use std::thread::Thread;
use std::time::Duration;

use anabranch_arrangement::MergeEffort;
use timely::communication::initialize::WorkerGuards;
use timely::worker::Worker;
use timely::{CommunicationConfig, Config, WorkerConfig};

use super::worker::{Command, WorkerState};
use crate::error::Error;

/// How long a worker with nothing to do sleeps before it looks around by itself.
const SLEEP_MAX: Duration = Duration::from_millis(100);

/// The threads of a cluster.
pub(super) struct Threads {
    /// `None` while shutting down: a closed queue ends its worker.
    queues: Option<Vec<Sender<Command>>>,
    handles: Vec<Thread>,
    failure: Failure,
    guards: Option<WorkerGuards<()>>,
}

/// The panic message of a worker that has failed; workers look at it too, so that none waits for the dead.
#[derive(Clone, Default)]
struct Failure(Arc<Mutex<Option<String>>>);

impl Failure {
    fn get(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
    }

    fn set(&self, message: String) {
        let mut failure = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        failure.get_or_insert(message);
    }
}

/// What a thread takes with it; each takes the one at its number.
struct Start {
    commands: Receiver<Command>,
    started: Sender<(usize, Thread)>,
}

impl Threads {
    pub(super) fn start(n: usize, effort: MergeEffort) -> Result<Threads, Error> {
        let (started, starting) = channel();
        let mut queues = Vec::with_capacity(n);
        let mut starts = Vec::with_capacity(n);
        for _ in 0..n {
            let (queue, commands) = channel();
            queues.push(queue);
            starts.push(Some(Start { commands, started: started.clone() }));
        }
        drop(started);
        let starts = Arc::new(Mutex::new(starts));
        let failure = Failure::default();
        let shared_failure = failure.clone();
        let config = Config { communication: CommunicationConfig::Process(n), worker: WorkerConfig::default() };
        let guards = timely::execute(config, move |worker| {
            let start = {
                let mut starts = starts.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                starts[worker.index()].take().expect("each worker starts once")
            };
            run(worker, start, effort, &shared_failure);
        });
        let guards = guards.map_err(|error| Error::unavailable(format!("cannot start worker threads: {error}")))?;
        let mut handles: Vec<(usize, Thread)> = starting.iter().collect();
        handles.sort_by_key(|(index, _)| *index);
        let handles = handles.into_iter().map(|(_, handle)| handle).collect();
        Ok(Threads { queues: Some(queues), handles, failure, guards: Some(guards) })
    }

    pub(super) fn send(&mut self, worker: usize, command: Command) {
        if let Some(queues) = &self.queues {
            // A worker that has ended has failed: `check` tells.
            let _ = queues[worker].send(command);
            self.handles[worker].unpark();
        }
    }

    /// # Errors
    /// `Internal` when a worker has failed.
    pub(super) fn check(&self) -> Result<(), Error> {
        match self.failure.get() {
            None => Ok(()),
            Some(message) => Err(Error::internal(format!("a worker has failed: {message}"))
                .with_hint("open a new session; please report this.")),
        }
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.queues = None;
        self.handles.iter().for_each(Thread::unpark);
        if self.failure.get().is_some() {
            // Peers of a failed worker wait for it for ever: leave the threads to the end of the process.
            std::mem::forget(self.guards.take());
        }
    }
}

fn run(worker: &mut Worker, start: Start, effort: MergeEffort, failure: &Failure) {
    let mut state = WorkerState::new(effort);
    let _ = start.started.send((worker.index(), std::thread::current()));
    drop(start.started);
    let outcome = catch_unwind(AssertUnwindSafe(|| serve(worker, &mut state, &start.commands, failure)));
    if let Err(panic) = outcome {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        failure.set(text.unwrap_or_else(|| "no message".to_owned()));
        // Dropping broken state could panic again.
        std::mem::forget(state);
        return;
    }
    state.shut_down(worker);
}

fn serve(worker: &mut Worker, state: &mut WorkerState, commands: &Receiver<Command>, failure: &Failure) {
    loop {
        loop {
            match commands.try_recv() {
                Ok(command) => state.handle(worker, command),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return,
            }
        }
        let sleep = state.enter_turn(SLEEP_MAX);
        worker.step_or_park(Some(sleep));
        state.answer();
        state.leave_turn();
        if failure.get().is_some() {
            return;
        }
    }
}
