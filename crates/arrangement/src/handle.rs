//! Sharing a spine: one writer, many readers, and those that are told what is new.
//!
//! Law: a reader may accumulate at any time from its own `since` to the `upper`; times that some reader still holds are never
//! advanced past it. A listener is told every update exactly once: what exists when it starts, then each run as it is sealed,
//! without gaps and in order. So is a follower, but of batches as they are written.
//!
//! What nobody looks at is not sorted: while there is no listener, complete updates are *held* as they came until a reader asks for the runs, or until they are
//! many. They become a run together, with the times that readers still tell apart; so an answer that is read once a second costs one small sort a second, and what
//! came and went in between nothing but that.
//!
//! Cost: attaching a listener or follower is O(runs), nothing is copied, and only what is held is sorted; a cloned reader is O(log holds). Without readers the
//! spine may forget all history up to its `upper`. When writer and readers are gone, so are the runs.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::rc::{Rc, Weak};

use anabranch_batch::{Batch, END, Time};

use crate::{Builder, Layout, MergeEffort, Run, Spine};

/// Rows that are held in any case: sorting them while somebody waits takes a tenth of a millisecond.
const HELD_ROWS: usize = 1 << 10;
/// Where nobody has asked lately a quarter of all rows is held, but so many at most: some ten milliseconds.
const HELD_PART: usize = 4;
const HELD_ROWS_MAX: usize = 1 << 17;
/// A batch is as dear to keep as so many rows; and so many batches are held in any case.
const HELD_BATCHES: usize = 32;

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
    queue: Rc<RefCell<Queue<Sealed>>>,
}

/// Receives the updates of an arrangement, then each new batch, in no order.
#[derive(Debug)]
pub struct Follower {
    queue: Rc<RefCell<Queue<Batch>>>,
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
    /// What is in no run: held, or not complete.
    builder: Builder,
    /// Times are complete before this one; those from the spine's `upper` on are held.
    upper: Time,
    /// Somebody has asked for what was held since it last became too much.
    asked: bool,
    /// How many readers of each name hold each `since`.
    holds: BTreeMap<(Time, Rc<str>), usize>,
    /// Where new runs go,
    listeners: Vec<Weak<RefCell<Queue<Sealed>>>>,
    /// and where new batches go.
    followers: Vec<Weak<RefCell<Queue<Batch>>>>,
}

/// What is not drained yet.
struct Queue<T> {
    news: Vec<T>,
    upper: Time,
    wake: Option<Rc<dyn Fn()>>,
}

/// An arrangement without updates, and its first reader, which holds every time.
pub fn arrangement(layout: Rc<Layout>, effort: MergeEffort) -> (Writer, Reader) {
    let name: Rc<str> = Rc::from("");
    let shared = Shared {
        spine: Spine::new(Rc::clone(&layout), effort),
        builder: Builder::new(Rc::clone(&layout)),
        upper: Time::MIN,
        asked: false,
        holds: BTreeMap::from([((Time::MIN, Rc::clone(&name)), 1)]),
        listeners: Vec::new(),
        followers: Vec::new(),
    };
    let shared = Rc::new(RefCell::new(shared));
    (Writer { shared: Rc::clone(&shared) }, Reader { shared, layout, since: Time::MIN, name })
}

impl Writer {
    /// Takes a batch of rows. Lifetimes are written out as two updates.
    ///
    /// # Panics
    /// If a time is complete already, or the batch does not have the layout's columns.
    pub fn push(&mut self, batch: Batch) {
        let batch = batch.flatten();
        if batch.is_empty() {
            return;
        }
        let mut shared = self.shared.borrow_mut();
        assert!(batch.times().min() >= shared.upper, "no update is earlier than what is complete");
        for follower in live(&mut shared.followers) {
            follower.borrow_mut().news.push(batch.clone());
        }
        shared.builder.push(batch);
    }

    /// Declares that no further update before `upper` will come, and tells all who listen or follow. Merges in proportion to the rows of a run, if one is made.
    /// A time before the last one changes nothing.
    pub fn complete(&mut self, upper: Time) {
        let mut shared = self.shared.borrow_mut();
        if upper <= shared.upper {
            return;
        }
        shared.upper = upper;
        let listeners = live(&mut shared.listeners);
        let sealed = match listeners.is_empty() {
            true if !shared.holds_too_much() => None,
            true => {
                shared.asked = false;
                shared.seal(true)
            }
            false => shared.seal(false),
        };
        let followers = live(&mut shared.followers);
        drop(shared);
        // Those who are told may look at the arrangement when woken, so nothing is borrowed here.
        for queue in listeners {
            match &sealed {
                Some(sealed) => {
                    assert_eq!(queue.borrow().upper, sealed.lower, "a listener is told every interval");
                    Queue::tell(&queue, Some(sealed.clone()), upper);
                }
                None => Queue::tell(&queue, None, upper),
            }
        }
        followers.iter().for_each(|queue| Queue::tell(queue, None, upper));
    }

    /// Times are complete before this one.
    pub fn upper(&self) -> Time {
        self.shared.borrow().upper
    }

    /// Whether updates wait for their time to be complete.
    pub fn is_waiting(&self) -> bool {
        let shared = self.shared.borrow();
        shared.builder.max_time().is_some_and(|last| last >= shared.upper)
    }

    /// Merges in the background, using up `fuel` rows of work at most. Returns whether there is more to do.
    pub fn exert(&mut self, fuel: &mut isize) -> bool {
        let mut shared = self.shared.borrow_mut();
        let holds_much = shared.builder.rows() >= HELD_ROWS && shared.has_held();
        if holds_much && *fuel > 0 {
            shared.settle();
            return shared.spine.exert(fuel);
        }
        shared.spine.exert(fuel) || holds_much
    }

    /// Merges the parts of very large runs, and what much was taken back of, using up `fuel` rows of work at most. Returns whether there is more to do.
    pub fn tidy(&mut self, fuel: &mut isize) -> bool {
        self.shared.borrow_mut().spine.tidy(fuel)
    }

    /// Declares the arrangement complete for ever. Closing twice is fine.
    pub fn close(&mut self) {
        self.complete(END);
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
        self.shared.borrow().upper
    }

    /// All updates, as sorted runs, oldest first. O(runs), and what is held is sorted.
    pub fn runs(&self) -> Vec<Rc<Run>> {
        let mut shared = self.shared.borrow_mut();
        shared.asked |= shared.settle();
        shared.spine.runs()
    }

    /// The same, to look `keys` keys up in them: an arrangement that is asked often has fewer runs.
    pub fn runs_for(&self, keys: usize) -> Vec<Rc<Run>> {
        let runs = self.runs();
        self.shared.borrow().spine.note_lookups(keys);
        runs
    }

    /// The layout of the rows.
    pub fn layout(&self) -> &Rc<Layout> {
        &self.layout
    }

    /// Sizes and frontiers. O(runs + holds), and what is held is sorted.
    pub fn stats(&self) -> Stats {
        let mut shared = self.shared.borrow_mut();
        shared.settle();
        let spine = shared.spine.stats();
        Stats {
            rows: spine.rows,
            bytes: spine.size_bytes,
            runs: spine.runs,
            readers: shared.holds.values().sum(),
            since: shared.spine.since(),
            upper: shared.upper,
        }
    }

    /// Starts to listen: the existing runs are in the queue at once, each new run follows when it is sealed. `wake` is called after
    /// something new was queued (not for what exists).
    pub fn listen(&self, wake: Option<Box<dyn Fn()>>) -> Listener {
        let mut shared = self.shared.borrow_mut();
        shared.settle();
        let queue = Queue::new(sealed_so_far(&shared.spine), shared.upper, wake);
        shared.listeners.push(Rc::downgrade(&queue));
        Listener { queue }
    }

    /// Starts to follow: updates that exist are in the queue at once, as far as their batches have times after `after`; each new batch follows. `wake` is called
    /// when a time has become complete.
    pub fn follow(&self, after: Time, wake: Option<Box<dyn Fn()>>) -> Follower {
        let mut shared = self.shared.borrow_mut();
        shared.settle();
        let runs = shared.spine.runs();
        let chunks = runs.iter().flat_map(|run| run.chunks()).filter(|chunk| chunk.facts().time_max > after);
        let batches = chunks.map(|chunk| chunk.to_batch()).chain(shared.builder.batches()).collect();
        let queue = Queue::new(batches, shared.upper, wake);
        shared.followers.push(Rc::downgrade(&queue));
        Follower { queue }
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
        std::mem::take(&mut self.queue.borrow_mut().news)
    }

    /// Complete before this time: the end of the last interval drained or queued, or later.
    pub fn upper(&self) -> Time {
        self.queue.borrow().upper
    }
}

impl Follower {
    /// The batches that came since the last call, and the time before which all have come.
    pub fn drain(&mut self) -> (Vec<Batch>, Time) {
        let mut queue = self.queue.borrow_mut();
        (std::mem::take(&mut queue.news), queue.upper)
    }
}

impl Shared {
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

    fn has_held(&self) -> bool {
        self.builder.min_time().is_some_and(|first| first < self.upper)
    }

    fn holds_too_much(&self) -> bool {
        let (rows, batches) = (self.builder.rows(), self.builder.parts());
        if rows < HELD_ROWS && batches < HELD_BATCHES || !self.has_held() {
            return false;
        }
        let held_max = match self.asked {
            true => HELD_ROWS,
            false => (self.spine.rows() / HELD_PART).clamp(HELD_ROWS, HELD_ROWS_MAX),
        };
        rows >= held_max || batches >= HELD_BATCHES.max(rows / HELD_BATCHES)
    }

    /// Puts what is held where readers see it. Returns whether there was anything.
    fn settle(&mut self) -> bool {
        self.spine.upper() < self.upper && self.seal(true).is_some()
    }

    /// Makes a run of what is complete, if there is anything. What the run brings may be compacted at once, as far as readers allow, if `compact`.
    fn seal(&mut self, compact: bool) -> Option<Sealed> {
        if !self.has_held() {
            self.settle_since(self.upper);
            self.spine.advance(self.upper);
            return None;
        }
        self.settle_since(self.upper);
        let since = if compact { self.spine.since() } else { Time::MIN };
        let run = Rc::new(self.builder.seal(self.spine.upper(), self.upper, since));
        self.spine.insert(Rc::clone(&run));
        Some(Sealed { lower: run.lower(), upper: run.upper(), run })
    }
}

impl<T> Queue<T> {
    fn new(news: Vec<T>, upper: Time, wake: Option<Box<dyn Fn()>>) -> Rc<RefCell<Queue<T>>> {
        Rc::new(RefCell::new(Queue { news, upper, wake: wake.map(Rc::from) }))
    }

    fn tell(queue: &RefCell<Queue<T>>, news: Option<T>, upper: Time) {
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

impl<T> fmt::Debug for Queue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").field("news", &self.news.len()).field("upper", &self.upper).finish_non_exhaustive()
    }
}

/// The queues that somebody still drains.
fn live<T>(queues: &mut Vec<Weak<RefCell<Queue<T>>>>) -> Vec<Rc<RefCell<Queue<T>>>> {
    if queues.is_empty() {
        return Vec::new();
    }
    queues.retain(|queue| queue.strong_count() > 0);
    queues.iter().filter_map(Weak::upgrade).collect()
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
