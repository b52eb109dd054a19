//! A worker: what its operators know of it and of their dataflow, its dataflows, and its rounds.
//!
//! Law: a worker shares nothing with another worker, on its thread or elsewhere, but the channels
//! between its peers: tasks, lengths of steps, and whether there is time to spare are its own. So
//! two sessions whose workers are on one thread do not mix.
//!
//! A panic while a dataflow is built fails the dataflow. What is left behind is whole: tasks that
//! were made are dropped, the run time enters a dataflow only when all of it is built, and inputs
//! and arrangements forget subscribers and readers that were dropped. Peers may have built theirs;
//! their messages to channels without an end here are dropped by the run time. Numbers of channels
//! go on as the peers' do.

use std::cell::Cell;
use std::fmt;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::time::{Duration, Instant};

use anabranch_batch::Time;
use timely::WorkerConfig;
use timely::communication::Allocator;
use timely::communication::allocator::thread::Thread;

use crate::account::Account;
use crate::scope::Scope;
use crate::steps::{Meter, StepClock};
use crate::tasks::{TaskId, Tasks};

/// What operators know of their worker and of their dataflow, and are handed when they are made.
/// Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct WorkerContext {
    worker: Rc<Inner>,
    /// Of the dataflow; the worker itself has an account of its own, which no caller looks at.
    account: Account,
}

#[derive(Debug, Default)]
struct Inner {
    tasks: Tasks,
    clock: StepClock,
    /// A dataflow is behind its inputs, or may be.
    is_behind: Cell<bool>,
}

impl WorkerContext {
    pub(crate) fn tasks(&self) -> &Tasks {
        &self.worker.tasks
    }

    /// Counts the steps of an operator of this kind.
    pub fn meter(&self, kind: &'static str) -> Meter {
        self.worker.clock.meter(kind)
    }

    /// The lengths of the worker's steps.
    pub fn clock(&self) -> &StepClock {
        &self.worker.clock
    }

    /// Whether the worker has time to spare. It has none while one of its dataflows is behind its
    /// inputs: a reader that waits for the dataflow would wait for the spare work too. Law: what is
    /// done in spare time changes no answer.
    pub fn has_spare_time(&self) -> bool {
        !self.worker.is_behind.get()
    }

    /// Says whether a dataflow is behind its inputs.
    pub fn set_behind(&self, is_behind: bool) {
        self.worker.is_behind.set(is_behind);
    }

    /// Whether a dataflow was behind its inputs when that was last looked at.
    pub fn is_behind(&self) -> bool {
        self.worker.is_behind.get()
    }

    /// The account of the dataflow.
    pub fn account(&self) -> &Account {
        &self.account
    }

    /// The same worker, for operators of another dataflow.
    fn of_dataflow(&self, account: Account) -> WorkerContext {
        WorkerContext { worker: Rc::clone(&self.worker), account }
    }
}

/// A worker.
pub struct Worker {
    timely: timely::worker::Worker,
    context: WorkerContext,
    /// There may be dataflows of which timely knows.
    has_dataflows: bool,
}

/// A dataflow that was built: a name to drop it by.
#[derive(Debug)]
pub struct Dataflow {
    /// Timely's number.
    index: usize,
    /// The operators that timely need not know.
    tasks: Range<TaskId>,
}

impl Worker {
    /// The one worker of the caller, on the caller's thread.
    pub fn on_this_thread() -> Worker {
        let allocator = Allocator::Thread(Thread::default());
        Worker::of(timely::worker::Worker::new(WorkerConfig::default(), allocator, Some(Instant::now())))
    }

    pub(crate) fn of(timely: timely::worker::Worker) -> Worker {
        Worker { timely, context: WorkerContext::default(), has_dataflows: false }
    }

    /// The worker's number among its peers.
    pub fn index(&self) -> usize {
        self.timely.index()
    }

    /// How many workers there are.
    pub fn peers(&self) -> usize {
        self.timely.peers()
    }

    /// What operators are handed.
    pub fn context(&self) -> &WorkerContext {
        &self.context
    }

    /// Builds a dataflow. All peers build the same dataflows in the same order.
    ///
    /// # Panics
    /// As `build` does.
    pub fn dataflow<R>(&mut self, name: &str, build: impl FnOnce(Scope<'_>) -> R) -> (R, Dataflow) {
        self.dataflow_of(name, Account::default(), build).expect("outside of all accounts panics are the caller's")
    }

    /// Builds a dataflow whose failure its account tells. `None` when the dataflow has failed, on
    /// this worker or on another, before it was built or while it was: nothing of it is left here.
    ///
    /// # Panics
    /// If peers do not build the same dataflow.
    pub fn dataflow_of<R>(
        &mut self,
        name: &str,
        account: Account,
        build: impl FnOnce(Scope<'_>) -> R,
    ) -> Option<(R, Dataflow)> {
        let index = self.timely.next_dataflow_index();
        let first = self.context.tasks().next_id();
        let context = self.context.of_dataflow(account.clone());
        let timely = &mut self.timely;
        let built =
            account.turn(|| timely.dataflow_named::<Time, _, _>(name, |timely| build(Scope::new(timely, context))));
        self.has_dataflows = true;
        let tasks = first..self.context.tasks().next_id();
        self.number_as_peers_do(&account, built.is_some());
        if built.is_none() {
            self.drop_dataflow(Dataflow { index, tasks });
            return None;
        }
        built.map(|built| (built, Dataflow { index, tasks }))
    }

    /// Peers find each other's channels by numbers, which each worker gives in the order in which
    /// it builds. A worker that has built a part of a dataflow, or none of it, takes the numbers
    /// that the peers have given to the rest.
    fn number_as_peers_do(&self, account: &Account, is_built: bool) {
        let peers = self.peers();
        if peers == 1 {
            return;
        }
        let own = self.timely.peek_identifier();
        account.note_numbered(own);
        if !is_built {
            let upto = account.numbered_by_all(peers);
            (own..upto).for_each(|_| _ = self.timely.new_identifier());
        }
    }

    /// Drops a dataflow with its operators and tasks.
    ///
    /// # Panics
    /// If called by a task.
    pub fn drop_dataflow(&mut self, dataflow: Dataflow) {
        let (timely, tasks) = (&mut self.timely, self.context.tasks());
        let operators = catch_unwind(AssertUnwindSafe(|| timely.drop_dataflow(dataflow.index)));
        let tasks = catch_unwind(AssertUnwindSafe(|| tasks.remove(dataflow.tasks)));
        // What a failed turn has left half done may panic once more: then a part of it stays in
        // memory, and nothing else.
        let _ = (operators, tasks);
    }

    /// One round: the tasks that were woken, then the dataflows of timely. Nothing sleeps.
    pub fn step(&mut self) {
        self.context.clock().begin_round();
        self.context.tasks().run_round();
        self.step_dataflows();
        self.context.clock().end_round();
    }

    /// Has [rounds](Worker::step) as long as a condition holds.
    pub fn step_while(&mut self, mut condition: impl FnMut() -> bool) {
        while condition() {
            self.step();
        }
    }

    /// Begins a round, and has the turns of tasks and operators. Sleeps before the latter if
    /// nothing is to be done, but not longer than `sleep_max`; `is_busy` says that there is
    /// something to be done after them. The round goes on until [`end_round`](Worker::end_round).
    pub(crate) fn begin_round(&mut self, is_busy: bool, sleep_max: Duration) {
        self.context.clock().begin_round();
        // (After tasks have run there may be answers, and tasks that they woke.)
        let is_busy = self.context.tasks().run_round() || is_busy;
        if sleep_max.is_zero() {
            return self.step_dataflows();
        }
        let mut sleep = Duration::ZERO;
        if !is_busy {
            // The next step begins after the sleep, so that the sleep is not counted with it.
            self.context.clock().begin_round();
            sleep = self.context.tasks().idle_for().map_or(sleep_max, |idle| idle.min(sleep_max));
        }
        // (Timely also wakes the worker, and moves what comes from peers.)
        self.timely.step_or_park(Some(sleep));
    }

    pub(crate) fn end_round(&mut self) {
        self.context.clock().end_round();
    }

    fn step_dataflows(&mut self) {
        if self.has_dataflows {
            self.has_dataflows = self.timely.step();
        }
    }
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("index", &self.index()).field("peers", &self.peers()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use anabranch_batch::{Batch, Diffs, END, Times};
    use arrow::array::Int64Array;

    use super::*;
    use crate::import::{Content, StreamImport, constant, import, no_horizon};
    use crate::relay::Relay;
    use crate::sink::{Bounds, capture};

    fn rows(values: &[i64], time: Time) -> Batch {
        Batch::new(vec![Arc::new(Int64Array::from(values.to_vec()))], Times::Constant(time), Diffs::Constant(1))
    }

    #[test]
    fn a_dataflow_without_edges_is_tasks_alone() {
        let (mut worker, mut relay) = (Worker::on_this_thread(), Relay::new(0));
        let live = Some(relay.subscribe());
        let input = StreamImport {
            name: "input".to_owned(),
            as_of: 0,
            history: None,
            live,
            horizon: no_horizon(),
            columns: vec![0],
            content: Content::Rows,
            dealing: None,
        };
        let ((changes, literals), dataflow) = worker.dataflow("two ends", |scope| {
            let literals = constant(scope.clone(), 0, Some(rows(&[7], 5)));
            (capture(import(scope, vec![input]), Some(1), Bounds::NONE), capture(literals, Some(1), Bounds::NONE))
        });
        worker.step();
        assert!(!worker.has_dataflows, "timely has nothing to do");
        assert_eq!((changes.borrow().upper, changes.borrow().rows.len()), (0, 0));
        let literals = literals.borrow();
        assert_eq!((literals.upper, literals.rows[0].len(), literals.rows[0].times().max()), (END, 1, 0));
        relay.push(&rows(&[1, 2], 1));
        relay.advance(2);
        worker.step();
        assert_eq!((changes.borrow().upper, changes.borrow().rows[0].len()), (2, 2));
        worker.drop_dataflow(dataflow);
        relay.advance(3);
        worker.step();
        assert_eq!(changes.borrow().upper, 2, "what was dropped has no turn");
    }
}
