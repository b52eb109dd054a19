//! Sharing a spine: one writer, many readers, and listeners that are told of every new run.
//!
//! Law: a reader may accumulate at any time from its own `since` to the `upper`; times that some reader still holds are never
//! advanced past it. A listener is told every update exactly once: what exists when it starts, then each run as it is sealed,
//! without gaps and in order.
//!
//! Cost: attaching a listener is O(runs), nothing is copied or sorted; a cloned reader is O(log holds). Without readers the
//! spine may forget all history up to its `upper`. When writer and readers are gone, so are the runs.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::rc::{Rc, Weak};

use anabranch_batch::{END, Time};

use crate::{Layout, MergeEffort, Run, Spine};

/// The one that appends to an arrangement.
#[derive(Debug)]
pub struct Writer {
    shared: Rc<RefCell<Shared>>,
}

/// One of those that read an arrangement. A clone inherits the hold; a dropped reader releases it.
#[derive(Debug)]
pub struct Reader {
    shared: Rc<RefCell<Shared>>,
    layout: Rc<Layout>,
    since: Time,
    /// Who reads; for people. Empty unless named.
    name: Rc<str>,
}

/// A way to a reader that keeps nothing alive.
#[derive(Clone, Debug)]
pub struct WeakReader {
    shared: Weak<RefCell<Shared>>,
}

/// Receives the existing runs of an arrangement, then each new one.
#[derive(Debug)]
pub struct Listener {
    queue: Rc<RefCell<Queue>>,
}

/// An interval of time that is complete, and its updates.
#[derive(Clone, Debug)]
pub struct Sealed {
    /// The updates; may be empty.
    pub run: Rc<Run>,
    /// The start of the interval: the `upper` of the one before, or later where there was no update between.
    pub lower: Time,
    /// The end of the interval: the arrangement is complete before this time.
    pub upper: Time,
}

/// What an arrangement holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stats {
    /// Rows in all runs.
    pub rows: usize,
    /// Bytes that the runs own.
    pub bytes: usize,
    /// Number of runs.
    pub runs: usize,
    /// Number of readers.
    pub readers: usize,
    /// Readable from this time on.
    pub since: Time,
    /// Complete before this time.
    pub upper: Time,
}

#[derive(Debug)]
struct Shared {
    spine: Spine,
    /// How many readers of each name hold each `since`.
    holds: BTreeMap<(Time, Rc<str>), usize>,
    /// Where new runs go.
    queues: Vec<Weak<RefCell<Queue>>>,
}

/// What a listener has not drained yet.
struct Queue {
    sealed: Vec<Sealed>,
    upper: Time,
    wake: Option<Rc<dyn Fn()>>,
}

/// An arrangement without updates, and its first reader, which holds every time.
pub fn arrangement(layout: Rc<Layout>, effort: MergeEffort) -> (Writer, Reader) {
    let spine = Spine::new(Rc::clone(&layout), effort);
    let name: Rc<str> = Rc::from("");
    let holds = BTreeMap::from([((Time::MIN, Rc::clone(&name)), 1)]);
    let shared = Rc::new(RefCell::new(Shared { spine, holds, queues: Vec::new() }));
    (Writer { shared: Rc::clone(&shared) }, Reader { shared, layout, since: Time::MIN, name })
}

impl Writer {
    /// Appends a run and tells every listener; merges in proportion to its rows.
    ///
    /// # Panics
    /// If the run does not start at `upper`.
    pub fn seal(&mut self, run: Run) {
        let run = Rc::new(run);
        let sealed = Sealed { lower: run.lower(), upper: run.upper(), run: Rc::clone(&run) };
        let mut shared = self.shared.borrow_mut();
        // What the run brings may be compacted at once, as far as readers allow.
        shared.settle_since(run.upper());
        shared.spine.insert(run);
        let queues = shared.live_queues();
        drop(shared);
        // Listeners may look at the arrangement when woken, so nothing is borrowed here.
        for queue in queues {
            Queue::push(&queue, sealed.clone());
        }
    }

    /// Declares that no further update before `upper` will come, where there was none since the last run. Listeners hear of the time only. O(listeners).
    pub fn advance(&mut self, upper: Time) {
        let mut shared = self.shared.borrow_mut();
        shared.settle_since(upper);
        shared.spine.advance(upper);
        if shared.queues.is_empty() {
            return;
        }
        let queues = shared.live_queues();
        drop(shared);
        queues.iter().for_each(|queue| Queue::advance(queue, upper));
    }

    /// Times are complete before this one.
    pub fn upper(&self) -> Time {
        self.shared.borrow().spine.upper()
    }

    /// Merges in the background, using up `fuel` rows of work at most. Returns whether there is more to do.
    pub fn exert(&mut self, fuel: &mut isize) -> bool {
        self.shared.borrow_mut().spine.exert(fuel)
    }

    /// Declares the arrangement complete for ever. Closing twice is fine.
    pub fn close(&mut self) {
        if self.upper() < END {
            self.advance(END);
        }
    }

    /// Whether anybody reads.
    pub fn has_readers(&self) -> bool {
        !self.shared.borrow().holds.is_empty()
    }
}

impl Reader {
    /// The time from which on this reader may accumulate.
    pub fn since(&self) -> Time {
        self.since
    }

    /// Gives up times before `since`. Going back is not possible and changes nothing.
    pub fn set_since(&mut self, since: Time) {
        if since > self.since {
            let mut shared = self.shared.borrow_mut();
            shared.hold(since, &self.name);
            shared.release(self.since, &self.name);
            self.since = since;
        }
    }

    /// The same reader under a name, which tells people who holds compaction back.
    pub fn named(mut self, name: &str) -> Reader {
        let name: Rc<str> = Rc::from(name);
        let mut shared = self.shared.borrow_mut();
        shared.hold(self.since, &name);
        shared.release(self.since, &self.name);
        drop(shared);
        self.name = name;
        self
    }

    /// The reader that holds the earliest time, and that time. Compaction follows it.
    pub fn slowest(&self) -> (Time, Rc<str>) {
        let shared = self.shared.borrow();
        let (since, name) = shared.holds.keys().next().expect("this reader holds a time");
        (*since, Rc::clone(name))
    }

    /// Times are complete before this one.
    pub fn upper(&self) -> Time {
        self.shared.borrow().spine.upper()
    }

    /// All updates, as sorted runs, oldest first. O(runs).
    pub fn runs(&self) -> Vec<Rc<Run>> {
        self.shared.borrow().spine.runs()
    }

    /// The same, to look `keys` keys up in them: an arrangement that is asked often has fewer runs.
    pub fn runs_for(&self, keys: usize) -> Vec<Rc<Run>> {
        let shared = self.shared.borrow();
        shared.spine.note_lookups(keys);
        shared.spine.runs()
    }

    /// The layout of the rows.
    pub fn layout(&self) -> &Rc<Layout> {
        &self.layout
    }

    /// Sizes and frontiers. O(runs + holds).
    pub fn stats(&self) -> Stats {
        let shared = self.shared.borrow();
        let spine = shared.spine.stats();
        Stats {
            rows: spine.rows,
            bytes: spine.size_bytes,
            runs: spine.runs,
            readers: shared.holds.values().sum(),
            since: shared.spine.since(),
            upper: shared.spine.upper(),
        }
    }

    /// Starts to listen: the existing runs are in the queue at once, each new run follows when it is sealed. `wake` is called after
    /// something new was queued (not for what exists).
    pub fn listen(&self, wake: Option<Box<dyn Fn()>>) -> Listener {
        let mut shared = self.shared.borrow_mut();
        let upper = shared.spine.upper();
        let sealed = sealed_so_far(&shared.spine);
        let queue = Rc::new(RefCell::new(Queue { sealed, upper, wake: wake.map(Rc::from) }));
        shared.queues.push(Rc::downgrade(&queue));
        Listener { queue }
    }

    /// A way to a reader that neither holds times nor keeps the arrangement alive.
    pub fn downgrade(&self) -> WeakReader {
        WeakReader { shared: Rc::downgrade(&self.shared) }
    }
}

impl Clone for Reader {
    fn clone(&self) -> Reader {
        self.shared.borrow_mut().hold(self.since, &self.name);
        Reader {
            shared: Rc::clone(&self.shared),
            layout: Rc::clone(&self.layout),
            since: self.since,
            name: Rc::clone(&self.name),
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.shared.borrow_mut().release(self.since, &self.name);
    }
}

impl WeakReader {
    /// A reader, which holds what is readable now. `None` when the arrangement is gone.
    pub fn upgrade(&self) -> Option<Reader> {
        let shared = self.shared.upgrade()?;
        let name: Rc<str> = Rc::from("");
        let (layout, since) = {
            let mut shared = shared.borrow_mut();
            let since = shared.spine.since();
            shared.hold(since, &name);
            (Rc::clone(shared.spine.layout()), since)
        };
        Some(Reader { shared, layout, since, name })
    }
}

impl Listener {
    /// What was sealed since the last call, in order. Between two intervals, and up to [`Listener::upper`], there is no update.
    pub fn drain(&mut self) -> Vec<Sealed> {
        std::mem::take(&mut self.queue.borrow_mut().sealed)
    }

    /// Complete before this time: the end of the last interval drained or queued, or later.
    pub fn upper(&self) -> Time {
        self.queue.borrow().upper
    }
}

impl Shared {
    /// The queues of listeners that still listen.
    fn live_queues(&mut self) -> Vec<Rc<RefCell<Queue>>> {
        self.queues.retain(|queue| queue.strong_count() > 0);
        self.queues.iter().filter_map(Weak::upgrade).collect()
    }

    fn hold(&mut self, since: Time, name: &Rc<str>) {
        *self.holds.entry((since, Rc::clone(name))).or_insert(0) += 1;
    }

    fn release(&mut self, since: Time, name: &Rc<str>) {
        let hold = (since, Rc::clone(name));
        let count = self.holds.get_mut(&hold).expect("every reader's hold is counted");
        *count -= 1;
        if *count == 0 {
            self.holds.remove(&hold);
        }
        self.settle_since(self.spine.upper());
    }

    /// The slowest reader bounds compaction; without readers, nothing before `upper` is asked for. Never as far as `upper`, so that an
    /// update sealed before `upper` keeps a time before it.
    fn settle_since(&mut self, upper: Time) {
        let latest = upper.saturating_sub(1);
        let slowest = self.holds.keys().next().map_or(latest, |(since, _)| *since);
        self.spine.set_since(slowest.min(latest));
    }
}

impl Queue {
    fn push(queue: &RefCell<Queue>, sealed: Sealed) {
        let wake = {
            let mut queue = queue.borrow_mut();
            assert_eq!(queue.upper, sealed.lower, "a listener is told every interval");
            queue.upper = sealed.upper;
            queue.sealed.push(sealed);
            queue.wake.clone()
        };
        if let Some(wake) = wake {
            wake();
        }
    }

    fn advance(queue: &RefCell<Queue>, upper: Time) {
        let wake = {
            let mut queue = queue.borrow_mut();
            queue.upper = upper;
            queue.wake.clone()
        };
        if let Some(wake) = wake {
            wake();
        }
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").field("sealed", &self.sealed.len()).field("upper", &self.upper).finish_non_exhaustive()
    }
}

/// The readable runs, and after them the time for which nothing was inserted.
fn sealed_so_far(spine: &Spine) -> Vec<Sealed> {
    let mut lower = Time::MIN;
    let mut sealed = Vec::new();
    let mut add = |run: Rc<Run>, upper: Time| {
        sealed.push(Sealed { run, lower, upper });
        lower = upper;
    };
    for run in spine.runs() {
        let upper = run.upper();
        add(run, upper);
    }
    let last = sealed.last().map_or(Time::MIN, |sealed: &Sealed| sealed.upper);
    if last < spine.upper() {
        let run = Run::new(Rc::clone(spine.layout()), last, spine.upper(), Time::MIN, Vec::new());
        sealed.push(Sealed { run: Rc::new(run), lower: last, upper: spine.upper() });
    }
    sealed
}
