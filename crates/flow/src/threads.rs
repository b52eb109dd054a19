//! Workers on threads of their own: a queue of commands each, woken when something is put in.
//!
//! A turn of an operator that panics fails its dataflow alone ([`crate::account`]). A worker that
//! panics elsewhere has broken an invariant: the others end too, so that none waits for the dead,
//! and [`Threads::failure`] says why.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex};
use std::thread::Thread;
use std::time::Duration;

use timely::communication::initialize::WorkerGuards;
use timely::{CommunicationConfig, Config, WorkerConfig};

use crate::account::panic_message;
use crate::processors;
use crate::service::{Host, Service};
use crate::worker::Worker;

/// How long a worker with nothing to do sleeps before it looks around by itself.
const SLEEP_MAX: Duration = Duration::from_millis(100);

/// Workers on threads, which obey commands.
pub struct Threads<C> {
    /// `None` while shutting down: a closed queue ends its worker.
    queues: Option<Vec<Sender<C>>>,
    handles: Vec<Thread>,
    failure: Failure,
    guards: Option<WorkerGuards<()>>,
}

/// The panic message of a worker that has failed; workers look at it too.
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
struct Start<C> {
    commands: Receiver<C>,
    started: Sender<(usize, Thread)>,
}

impl<C: Send + 'static> Threads<C> {
    /// Starts `n` workers, each with a service of its own.
    ///
    /// # Errors
    /// When threads cannot be started: the message says why.
    pub fn start<S: Service<Command = C>>(
        n: usize,
        serve: impl Fn(&Worker) -> S + Send + Sync + 'static,
    ) -> Result<Threads<C>, String> {
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
        let guards = timely::execute(config, move |timely| {
            let start = {
                let mut starts = starts.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                starts[timely.index()].take().expect("each worker starts once")
            };
            processors::take_own(timely.index(), n);
            // (Clones of a worker are the same.)
            run(Host::of(Worker::of(timely.clone()), &serve), timely.index(), start, &shared_failure);
        })?;
        let mut handles: Vec<(usize, Thread)> = starting.iter().collect();
        handles.sort_by_key(|(index, _)| *index);
        let handles = handles.into_iter().map(|(_, handle)| handle).collect();
        Ok(Threads { queues: Some(queues), handles, failure, guards: Some(guards) })
    }

    /// Puts a command into a worker's queue without waking the worker: one that sleeps obeys when
    /// the next command is sent.
    pub fn put(&mut self, worker: usize, command: C) {
        if let Some(queues) = &self.queues {
            let _ = queues[worker].send(command);
        }
    }

    /// Puts a command into a worker's queue, and wakes the worker. A worker that has ended has
    /// failed: [`failure`](Threads::failure) tells.
    pub fn send(&mut self, worker: usize, command: C) {
        if let Some(queues) = &self.queues {
            let _ = queues[worker].send(command);
            self.handles[worker].unpark();
        }
    }

    /// The panic message of the worker that has failed, if one has.
    pub fn failure(&self) -> Option<String> {
        self.failure.get()
    }
}

impl<C> Drop for Threads<C> {
    fn drop(&mut self) {
        self.queues = None;
        self.handles.iter().for_each(Thread::unpark);
        if self.failure.get().is_some() {
            // Peers of a failed worker wait for it for ever: leave the threads to the end of the
            // process.
            std::mem::forget(self.guards.take());
        }
    }
}

fn run<S: Service>(mut host: Host<S>, index: usize, start: Start<S::Command>, failure: &Failure) {
    let _ = start.started.send((index, std::thread::current()));
    drop(start.started);
    let outcome = catch_unwind(AssertUnwindSafe(|| serve(&mut host, &start.commands, failure)));
    if let Err(panic) = outcome {
        failure.set(panic_message(panic.as_ref()));
        // Dropping broken state could panic again.
        std::mem::forget(host);
    }
}

fn serve<S: Service>(host: &mut Host<S>, commands: &Receiver<S::Command>, failure: &Failure) {
    loop {
        loop {
            match commands.try_recv() {
                Ok(command) => host.obey(command),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return,
            }
        }
        host.turn_after(SLEEP_MAX);
        if failure.get().is_some() {
            return;
        }
    }
}
