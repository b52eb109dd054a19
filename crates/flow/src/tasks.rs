//! Operators that the runtime need not know.
//!
//! An operator that takes nothing from an edge and sends nothing over one, such as most
//! arrangements of a worker without others, and what leaves a dataflow, has no progress to track:
//! what it reads are queues of inputs and arrangements, and what it makes has an `upper` of its
//! own. It is a *task*: a function that is called when its waker wakes it.
//!
//! Law: a task that is woken is called later, once for all that woke it meanwhile. In a round tasks
//! are called in the order in which they were made, which is the order of what they read: so a
//! commit goes through all of them in one round. What a task wakes that was made before it, itself
//! included, has its turn in the next round.
//!
//! Why: the runtime takes some 1,500 instructions to schedule a dataflow of one operator, a fifth
//! of what a commit of one row costs a query of eight of them. Cost: an entry of a heap.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::fmt;
use std::ops::Range;
use std::rc::{Rc, Weak};
use std::time::{Duration, Instant};

/// The tasks of a worker. Clones are the same.
#[derive(Clone, Default)]
pub struct Tasks(Rc<Inner>);

/// Tasks in the order in which they were made.
pub type TaskId = u64;

/// Has a turn. Returns whether there may be another.
type Task = Box<dyn FnMut() -> bool>;

#[derive(Default)]
struct Inner {
    /// A task is out while it has its turn.
    tasks: RefCell<BTreeMap<TaskId, Option<Task>>>,
    next: Cell<TaskId>,
    /// Woken, to be called in this round, or in the next one if none is under way.
    active: RefCell<BinaryHeap<Reverse<TaskId>>>,
    /// Woken in this round, to be called in the next.
    later: RefCell<Vec<TaskId>>,
    /// The task that has its turn.
    current: Cell<Option<TaskId>>,
    timers: RefCell<BinaryHeap<Reverse<(Instant, TaskId)>>>,
}

/// What wakes a task.
pub(crate) struct TaskWaker {
    tasks: Weak<Inner>,
    id: TaskId,
}

impl Tasks {
    /// Names a task that is to be made, and returns what wakes it.
    pub(crate) fn reserve(&self) -> TaskWaker {
        let id = self.0.next.get();
        self.0.next.set(id + 1);
        TaskWaker { tasks: Rc::downgrade(&self.0), id }
    }

    /// Adds the task of that name, which is woken.
    pub(crate) fn start(&self, id: TaskId, task: impl FnMut() -> bool + 'static) {
        self.0.tasks.borrow_mut().insert(id, Some(Box::new(task)));
        self.0.wake(id);
    }

    /// What the next task is called: those made between two calls have the names between.
    pub fn next_id(&self) -> TaskId {
        self.0.next.get()
    }

    /// Drops tasks.
    ///
    /// # Panics
    /// If called by a task.
    pub fn remove(&self, ids: Range<TaskId>) {
        assert!(self.0.current.get().is_none(), "tasks are dropped between rounds");
        for id in ids {
            // (What a task drops may wake others.)
            let task = self.0.tasks.borrow_mut().remove(&id);
            drop(task);
        }
    }

    /// Calls all tasks that were woken, and those that they wake after them. Returns whether there
    /// were any.
    pub fn run_round(&self) -> bool {
        self.0.wake_due();
        let has_any = self.is_active();
        while let Some(id) = self.0.pop() {
            let Some(mut task) = self.0.tasks.borrow_mut().get_mut(&id).and_then(Option::take) else { continue };
            self.0.current.set(Some(id));
            match task() {
                true => _ = self.0.tasks.borrow_mut().insert(id, Some(task)),
                false => _ = self.0.tasks.borrow_mut().remove(&id),
            }
        }
        self.0.current.set(None);
        let later = self.0.later.take();
        self.0.active.borrow_mut().extend(later.into_iter().map(Reverse));
        has_any
    }

    /// Whether a task waits for its turn.
    pub fn is_active(&self) -> bool {
        !self.0.active.borrow().is_empty()
    }

    /// How long until a task is to be woken.
    pub fn idle_for(&self) -> Option<Duration> {
        let timers = self.0.timers.borrow();
        let Reverse((due, _)) = timers.peek()?;
        Some(due.saturating_duration_since(Instant::now()))
    }
}

impl fmt::Debug for Tasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tasks").field("tasks", &self.0.tasks.borrow().len()).finish_non_exhaustive()
    }
}

impl Inner {
    fn wake(&self, id: TaskId) {
        match self.current.get() {
            Some(current) if id <= current => self.later.borrow_mut().push(id),
            _ => self.active.borrow_mut().push(Reverse(id)),
        }
    }

    fn wake_due(&self) {
        let mut timers = self.timers.borrow_mut();
        if timers.is_empty() {
            return;
        }
        let now = Instant::now();
        while let Some(Reverse((due, id))) = timers.peek()
            && *due <= now
        {
            self.active.borrow_mut().push(Reverse(*id));
            timers.pop();
        }
    }

    /// The next task of this round, once however often it was woken.
    fn pop(&self) -> Option<TaskId> {
        let mut active = self.active.borrow_mut();
        let Reverse(id) = active.pop()?;
        while active.peek() == Some(&Reverse(id)) {
            active.pop();
        }
        Some(id)
    }
}

impl TaskWaker {
    pub fn id(&self) -> TaskId {
        self.id
    }

    pub fn wake(&self) {
        if let Some(tasks) = self.tasks.upgrade() {
            tasks.wake(self.id);
        }
    }

    pub fn wake_after(&self, delay: Duration) {
        if let Some(tasks) = self.tasks.upgrade() {
            tasks.timers.borrow_mut().push(Reverse((Instant::now() + delay, self.id)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Log = Rc<RefCell<Vec<usize>>>;
    type Wakers = Rc<RefCell<Vec<TaskWaker>>>;

    /// Adds a task that notes its number, and wakes others.
    fn add(tasks: &Tasks, log: &Log, wakers: &Wakers, wakes: &'static [usize], goes_on: bool) {
        let number = wakers.borrow().len();
        let (log, others) = (Rc::clone(log), Rc::clone(wakers));
        let waker = tasks.reserve();
        tasks.start(waker.id(), move || {
            log.borrow_mut().push(number);
            wakes.iter().for_each(|other| others.borrow()[*other].wake());
            goes_on
        });
        wakers.borrow_mut().push(waker);
    }

    #[test]
    fn a_round_goes_through_tasks_in_their_order() {
        let (tasks, log, wakers) = (Tasks::default(), Log::default(), Wakers::default());
        add(&tasks, &log, &wakers, &[2, 2], true);
        add(&tasks, &log, &wakers, &[0, 1], true);
        add(&tasks, &log, &wakers, &[], true);
        add(&tasks, &log, &wakers, &[], false);
        let round = || {
            tasks.run_round();
            log.take()
        };
        // (Who is made is woken.)
        assert_eq!(round(), [0, 1, 2, 3]);
        // What 1 woke, and what that wakes.
        assert_eq!(round(), [0, 1, 2]);
        tasks.remove(1..2);
        assert_eq!((round(), tasks.is_active()), (vec![0, 2], false));
        assert!(round().is_empty());
        // One that has ended, one that was dropped, and one that is woken twice.
        for number in [3, 1, 2, 2] {
            wakers.borrow()[number].wake();
        }
        assert_eq!(round(), [2]);
        assert_eq!(tasks.next_id(), 4);
    }

    #[test]
    fn a_task_is_woken_after_a_while() {
        let (tasks, log, wakers) = (Tasks::default(), Log::default(), Wakers::default());
        add(&tasks, &log, &wakers, &[], true);
        tasks.run_round();
        assert_eq!(tasks.idle_for(), None);
        wakers.borrow()[0].wake_after(Duration::from_secs(1000));
        wakers.borrow()[0].wake_after(Duration::ZERO);
        assert_eq!(tasks.idle_for(), Some(Duration::ZERO));
        tasks.run_round();
        assert_eq!(log.take(), [0, 0]);
        assert!(tasks.idle_for() > Some(Duration::from_secs(900)) && !tasks.is_active());
        // No caller misses the tasks of a worker that is gone.
        drop(tasks);
        wakers.borrow()[0].wake();
        wakers.borrow()[0].wake_after(Duration::ZERO);
    }
}
