//! Listeners and followers: queues of what is new in an arrangement.
//!
//! Law: a listener gets every update exactly once: first the runs that exist, then each run as it
//! is sealed, without gaps and in order. A follower gets every update exactly once, too, in batches
//! as they are written.
//!
//! Cost: a pointer a run or batch.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::{Rc, Weak};
use std::sync::Arc;

use anabranch_batch::{Batch, FlatBatch, Time};

use crate::run::Run;
use crate::spine::Spine;

/// Receives the existing runs of an arrangement, then each new one.
#[derive(Debug)]
pub struct Listener {
    pub(crate) queue: Rc<RefCell<ListenerQueue<Sealed>>>,
}

/// Receives the updates of an arrangement, then each new batch, in no order.
#[derive(Debug)]
pub struct Follower {
    pub(crate) queue: Rc<RefCell<ListenerQueue<FlatBatch>>>,
}

/// An interval of time that is complete, and its updates.
#[derive(Clone, Debug)]
pub struct Sealed {
    /// The updates; may be empty.
    pub run: Arc<Run>,
    /// The start of the interval: the `upper` of the one before, or later where there was no update
    /// between.
    pub lower: Time,
    /// The end of the interval: the arrangement is complete before this time.
    pub upper: Time,
}

/// What is not drained yet.
pub(crate) struct ListenerQueue<T> {
    pub news: Vec<T>,
    upper: Time,
    /// Counts instead of it while nothing was written: the upper of the arrangement beside.
    quiet_upper: Option<Rc<Cell<Time>>>,
    wake: Option<Rc<dyn Fn()>>,
}

impl Listener {
    /// What was sealed since the last call, in order. Between two intervals, and up to
    /// [`Listener::upper`], there is no update.
    pub fn drain(&mut self) -> Vec<Sealed> {
        std::mem::take(&mut self.queue.borrow_mut().news)
    }

    /// Complete before this time: the end of the last interval drained or queued, or later.
    pub fn upper(&self) -> Time {
        self.queue.borrow().upper()
    }
}

impl Follower {
    /// The batches that came since the last call, and the time before which all have come.
    pub fn drain(&mut self) -> (Vec<Batch>, Time) {
        let mut queue = self.queue.borrow_mut();
        let news = std::mem::take(&mut queue.news);
        (news.into_iter().map(FlatBatch::into_batch).collect(), queue.upper())
    }

    /// Whether batches wait to be drained.
    pub fn has_news(&self) -> bool {
        !self.queue.borrow().news.is_empty()
    }

    /// The time before which all batches have come.
    pub fn upper(&self) -> Time {
        self.queue.borrow().upper()
    }
}

impl<T> ListenerQueue<T> {
    pub fn new(
        news: Vec<T>,
        upper: Time,
        quiet_upper: Option<Rc<Cell<Time>>>,
        wake: Option<Box<dyn Fn()>>,
    ) -> Rc<RefCell<ListenerQueue<T>>> {
        Rc::new(RefCell::new(ListenerQueue { news, upper, quiet_upper, wake: wake.map(Rc::from) }))
    }

    pub fn upper(&self) -> Time {
        self.quiet_upper.as_ref().map_or(self.upper, |upper| upper.get())
    }

    /// From now on the upper is what is told.
    pub fn own_upper(&mut self, upper: Time) {
        self.upper = upper;
        self.quiet_upper = None;
    }

    /// What wakes the reader that drains the queue, if a reader does that is to be woken.
    pub fn waker(queue: &Weak<RefCell<ListenerQueue<T>>>) -> Option<Rc<dyn Fn()>> {
        queue.upgrade()?.borrow().wake.clone()
    }

    pub fn tell(queue: &RefCell<ListenerQueue<T>>, news: Option<T>, upper: Time) {
        let wake = {
            let mut queue = queue.borrow_mut();
            queue.upper = upper;
            queue.news.extend(news);
            queue.wake.clone()
        };
        if let Some(wake) = wake {
            wake();
        }
    }
}

impl<T> fmt::Debug for ListenerQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").field("news", &self.news.len()).field("upper", &self.upper()).finish_non_exhaustive()
    }
}

/// The queues that a reader still drains.
pub(crate) fn live<T>(queues: &mut Vec<Weak<RefCell<ListenerQueue<T>>>>) -> Vec<Rc<RefCell<ListenerQueue<T>>>> {
    if queues.is_empty() {
        return Vec::new();
    }
    queues.retain(|queue| queue.strong_count() > 0);
    queues.iter().filter_map(Weak::upgrade).collect()
}

/// The readable runs, and after them the time for which nothing was inserted.
pub(crate) fn sealed_so_far(spine: &Spine) -> Vec<Sealed> {
    let mut lower = Time::MIN;
    let mut sealed = Vec::new();
    let mut add = |run: Arc<Run>, upper: Time| {
        sealed.push(Sealed { run, lower, upper });
        lower = upper;
    };
    for run in spine.runs() {
        let upper = run.upper();
        add(run, upper);
    }
    let last = sealed.last().map_or(Time::MIN, |sealed: &Sealed| sealed.upper);
    if last < spine.upper() {
        let run = Run::new(Arc::clone(spine.layout()), last, spine.upper(), Time::MIN, Vec::new());
        sealed.push(Sealed { run: Arc::new(run), lower: last, upper: spine.upper() });
    }
    sealed
}
