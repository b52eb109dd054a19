//! What is on its way between shards, what went wrong there, and what was done.
//!
//! When is a run of several processes at rest? After Dijkstra and Scholten (Termination detection
//! for diffusing computations, 1980): each process counts its messages until they are
//! acknowledged. A process at rest is *engaged* by the message that reaches it, and acknowledges
//! that one only when it is at rest again. Others are acknowledged as soon as they are dealt with.
//! So the client's process counts zero only when all processes are at rest.

use std::collections::BTreeSet;
use std::sync::mpsc::Sender;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anabranch_engine::{Error, Interrupt};

use crate::counts::{ShardCounts, StepCounts};
use crate::processes::frame::WireFrame;

/// How long the client waits before it looks whether it is to stop.
const LOOK: Duration = Duration::from_millis(20);

/// The process of the client.
pub(crate) const CLIENT: usize = 0;

/// Messages under way, and the first error. The only thing that threads of a process share.
pub struct Traffic {
    /// Number of this process.
    process: usize,
    /// To the other processes, by their numbers.
    links: Vec<Option<Sender<WireFrame>>>,
    state: Mutex<TrafficState>,
    changed: Condvar,
    /// What each shard has done.
    pub counts: Vec<ShardCounts>,
    /// Triggered when the run fails or is over: shards stop their work.
    pub interrupt: Interrupt,
}

#[derive(Default)]
struct TrafficState {
    /// Messages of this process that are not dealt with, here and elsewhere.
    under_way: usize,
    /// Bytes of their rows.
    bytes_under_way: usize,
    /// The process whose message ended the rest of this one, and the bytes of its rows.
    engaged_by: Option<(usize, usize)>,
    error: Option<Error>,
    /// Shards of this process whose counts the client's process has not heard of.
    unsaid: BTreeSet<usize>,
    /// Whether the run is over.
    is_stopped: bool,
    /// Connections that have ended.
    links_ended: usize,
}

impl Traffic {
    /// Of a process with these connections, in a run of so many shards and steps.
    pub fn new(process: usize, links: Vec<Option<Sender<WireFrame>>>, shards: usize, steps: usize) -> Traffic {
        Traffic {
            process,
            links,
            state: Mutex::default(),
            changed: Condvar::new(),
            counts: (0..shards).map(|_| ShardCounts::new(steps)).collect(),
            interrupt: Interrupt::new(),
        }
    }

    /// A message of so many bytes of rows was sent.
    pub fn begin(&self, bytes: usize) {
        let mut state = self.lock();
        state.under_way += 1;
        state.bytes_under_way += bytes;
    }

    /// Bytes of rows that are under way.
    pub fn bytes_under_way(&self) -> usize {
        self.lock().bytes_under_way
    }

    /// A message of another process came in, of so many bytes of rows. Returns the process to
    /// acknowledge it to when it is dealt with.
    pub fn arrived(&self, from: usize, bytes: usize) -> Option<usize> {
        let mut state = self.lock();
        state.under_way += 1;
        // (The number is the sender's, and may be any.)
        state.bytes_under_way = state.bytes_under_way.saturating_add(bytes);
        if self.process == CLIENT || state.engaged_by.is_some() {
            return Some(from);
        }
        state.engaged_by = Some((from, bytes));
        None
    }

    /// A message of so many bytes of rows was dealt with, and all that follows from it was sent.
    pub fn end(&self, owed: Option<usize>, bytes: usize) {
        if let Some(process) = owed {
            self.tell(process, WireFrame::Acknowledged(bytes));
        }
        let mut state = self.lock();
        state.bytes_under_way = state.bytes_under_way.saturating_sub(bytes);
        state.under_way = state.under_way.saturating_sub(1);
        if state.under_way == 0 {
            self.rest(&mut state);
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Nothing is left to do here: the process that engaged this one is told, after the client's
    /// has heard what was done.
    fn rest(&self, state: &mut TrafficState) {
        let Some((process, bytes)) = state.engaged_by else { return };
        let unsaid = std::mem::take(&mut state.unsaid);
        if !unsaid.is_empty() {
            state.under_way += unsaid.len();
            for shard in unsaid {
                self.tell(CLIENT, WireFrame::Counted { shard, steps: self.counts[shard].steps() });
            }
            return;
        }
        state.engaged_by = None;
        self.tell(process, WireFrame::Acknowledged(bytes));
    }

    /// Sends a frame to another process. (A process that has gone away is noticed by its reader.)
    pub fn tell(&self, process: usize, frame: WireFrame) {
        if let Some(Some(link)) = self.links.get(process) {
            let _ = link.send(frame);
        }
    }

    /// Sends a frame to all other processes that are not frames of messages.
    pub fn tell_all(&self, frame: impl Fn() -> WireFrame) {
        (0..self.links.len()).for_each(|process| self.tell(process, frame()));
    }

    /// A shard has failed; the first reason counts.
    pub fn fail(&self, error: Error) {
        let mut state = self.lock();
        if state.error.is_none() {
            state.error = Some(error.clone());
            self.tell(CLIENT, WireFrame::Failed(error));
        }
        drop(state);
        self.interrupt.trigger();
        self.changed.notify_all();
    }

    /// What has ended the run, if something has.
    pub fn error(&self) -> Option<Error> {
        self.lock().error.clone()
    }

    /// Whether the run goes on.
    ///
    /// # Errors
    /// That of a shard that failed.
    pub fn check(&self) -> Result<(), Error> {
        self.error().map_or(Ok(()), Err)
    }

    /// Waits until at most so many messages are under way.
    ///
    /// # Errors
    /// That of a shard that failed; `Cancelled` when `stop` is triggered, which fails the run.
    pub fn wait(&self, messages_max: usize, stop: &Interrupt) -> Result<(), Error> {
        self.wait_until(|state| state.under_way <= messages_max, stop)
    }

    /// Waits until there is room for so many bytes more: no rows are under way, or those that are
    /// and these are at most `bytes_max`.
    ///
    /// # Errors
    /// As for [`wait`](Traffic::wait).
    pub fn wait_for_room(&self, bytes: usize, bytes_max: usize, stop: &Interrupt) -> Result<(), Error> {
        let has_room = |under_way: usize| under_way == 0 || under_way.saturating_add(bytes) <= bytes_max;
        self.wait_until(|state| has_room(state.bytes_under_way), stop)
    }

    fn wait_until(&self, is_enough: impl Fn(&TrafficState) -> bool, stop: &Interrupt) -> Result<(), Error> {
        let mut state = self.lock();
        while state.error.is_none() && !is_enough(&state) {
            if let Err(error) = stop.check() {
                drop(state);
                self.fail(error);
                state = self.lock();
                continue;
            }
            let waited = self.changed.wait_timeout(state, LOOK);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.error.clone().map_or(Ok(()), Err)
    }

    /// The run is over.
    pub fn stop(&self) {
        self.lock().is_stopped = true;
        self.interrupt.trigger();
        self.changed.notify_all();
    }

    /// Waits until the run is over.
    ///
    /// # Errors
    /// That of a shard that failed.
    pub fn wait_for_stop(&self) -> Result<(), Error> {
        let mut state = self.lock();
        while !state.is_stopped {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.error.clone().map_or(Ok(()), Err)
    }

    /// A connection has ended.
    pub fn link_ended(&self) {
        self.lock().links_ended += 1;
        self.changed.notify_all();
    }

    /// Waits until all connections have ended, at most so long.
    pub fn wait_for_links(&self, patience: Duration) {
        let links = self.links.iter().flatten().count();
        let is_waiting = |state: &mut TrafficState| state.links_ended < links;
        // (Those that have not ended by then are cut.)
        drop(self.changed.wait_timeout_while(self.lock(), patience, is_waiting));
    }

    /// A shard of this process has counted something that the client's has not heard of.
    pub fn counted(&self, shard: usize) {
        if self.process != CLIENT {
            self.lock().unsaid.insert(shard);
        }
    }

    /// What each step has done in a shard of another process.
    pub fn counted_there(&self, shard: usize, steps: Vec<StepCounts>) {
        if let Some(counts) = self.counts.get(shard) {
            counts.replace(steps);
        }
    }

    fn lock(&self) -> MutexGuard<'_, TrafficState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
