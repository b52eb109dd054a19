//! The handles of an arrangement: one writer, many readers.
//!
//! Law: a reader may accumulate at any time from its own `since` to the `upper`. Times that some
//! reader holds are never advanced past its hold.
//!
//! An arrangement without listeners keeps complete updates *held*: unsorted, as they arrived. The
//! first reader that asks for runs has them sorted; so has a bound on held rows. Held updates
//! become one run, with only those times apart that readers still tell apart. An answer read once a
//! second so costs one small sort a second; updates that cancel between two reads cost nothing
//! more. The states are in `state`.
//!
//! Cost: attaching a listener or follower is O(runs); nothing is copied, and only held updates are
//! sorted. A cloned reader is O(1). Without readers the spine may forget all history up to its
//! `upper`. Runs are freed with the last handle.

use std::cell::RefCell;
use std::rc::{Rc, Weak};
use std::sync::Arc;

use anabranch_batch::{END, FlatBatch, Time};

use crate::floor::Floor;
use crate::holds::HoldId;
use crate::layout::Layout;
use crate::listener::{Follower, Listener, ListenerQueue, live, sealed_so_far};
use crate::run::Run;
use crate::shared::{Origin, Shared};
use crate::spine::MergeEffort;

/// The one that appends to an arrangement.
#[derive(Debug)]
pub struct Writer {
    shared: Rc<RefCell<Shared>>,
}

/// Those that listen to an arrangement or follow it, for a step that can tell before the writer
/// does that something will come.
#[derive(Debug)]
pub struct Audience {
    shared: Weak<RefCell<Shared>>,
}

/// One of those that read an arrangement. A clone inherits the hold; a dropped reader releases it.
#[derive(Debug)]
pub struct Reader {
    shared: Rc<RefCell<Shared>>,
    layout: Arc<Layout>,
    hold: HoldId,
    since: Time,
    /// Who reads; for people. Empty unless named.
    name: Rc<str>,
}

/// What an arrangement holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stats {
    /// Rows in all runs; or, where they were left to their origin, how many it would tell at most.
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

/// An arrangement without updates, and its first reader, which holds every time.
pub fn arrangement(layout: Arc<Layout>, effort: MergeEffort) -> (Writer, Reader) {
    let shared = Rc::new(RefCell::new(Shared::new(&layout, effort, None)));
    (Writer { shared: Rc::clone(&shared) }, Reader::new(shared, layout, Time::MIN, Rc::from("")))
}

impl Writer {
    /// An arrangement without updates for what goes with these rows, seldom, and is read by who
    /// reads them: until something is written to it, it is complete where this one is, and no
    /// reader is woken. Cost: none, until then.
    pub fn beside(&self, layout: Arc<Layout>, effort: MergeEffort) -> (Writer, Reader) {
        let shared = Shared::new(&layout, effort, Some(&self.shared.borrow()));
        let shared = Rc::new(RefCell::new(shared));
        (Writer { shared: Rc::clone(&shared) }, Reader::new(shared, layout, Time::MIN, Rc::from("")))
    }

    /// Takes a batch of rows. Lifetimes are written out as two updates.
    ///
    /// # Panics
    /// If a time is complete already, or the batch does not have the layout's columns.
    pub fn push(&mut self, batch: impl Into<FlatBatch>) {
        self.push_flat(batch.into());
    }

    fn push_flat(&mut self, batch: FlatBatch) {
        if batch.is_empty() {
            return;
        }
        let mut shared = self.shared.borrow_mut();
        shared.end_quiet();
        assert!(batch.times().min() >= shared.upper(), "no update is earlier than what is complete");
        for follower in live(&mut shared.followers) {
            follower.borrow_mut().news.push(batch.clone());
        }
        shared.push(batch);
    }

    /// From now on what no reader asks for may be left to `origin`, which tells all that was
    /// pushed, while that is `recalled_rows_max` rows at most.
    pub fn set_origin(&mut self, origin: Rc<dyn Origin>, recalled_rows_max: usize) {
        self.shared.borrow_mut().set_origin(origin, recalled_rows_max);
    }

    /// Declares that no further update before `upper` will come, and tells all who listen or
    /// follow. Merges in proportion to the rows of a run, if one is made. A time before the last
    /// one changes nothing.
    pub fn complete(&mut self, upper: Time) {
        let mut shared = self.shared.borrow_mut();
        if !shared.set_upper(upper) {
            return;
        }
        let (listeners, followers) = (live(&mut shared.listeners), live(&mut shared.followers));
        let sealed = match listeners.is_empty() {
            true => {
                shared.bound_held();
                None
            }
            false => shared.seal(false),
        };
        drop(shared);
        // Those who are told may look at the arrangement when woken, so nothing is borrowed here.
        for queue in listeners {
            if let Some(sealed) = &sealed {
                assert_eq!(queue.borrow().upper(), sealed.lower, "a listener is told every interval");
            }
            ListenerQueue::tell(&queue, sealed.clone(), upper);
        }
        followers.iter().for_each(|queue| ListenerQueue::tell(queue, None, upper));
    }

    /// Times are complete before this one.
    pub fn upper(&self) -> Time {
        self.shared.borrow().upper()
    }

    /// Whether updates wait for their time to be complete.
    pub fn is_waiting(&self) -> bool {
        let shared = self.shared.borrow();
        shared.builder.max_time().is_some_and(|last| last >= shared.upper())
    }

    /// Bytes that runs and held updates own. O(runs + batches held); nothing is sorted.
    pub fn size_bytes(&self) -> usize {
        let shared = self.shared.borrow();
        shared.spine.stats().size_bytes + shared.builder.size_bytes()
    }

    /// Merges in the background, using up `fuel` rows of work at most. Returns whether there is
    /// more to do.
    pub fn exert(&mut self, fuel: &mut isize) -> bool {
        self.shared.borrow_mut().exert(fuel)
    }

    /// Merges the parts of very large runs, and what much was taken back of, using up `fuel` rows
    /// of work at most. Returns whether there is more to do.
    pub fn tidy(&mut self, fuel: &mut isize) -> bool {
        self.shared.borrow_mut().tidy(fuel)
    }

    /// Declares the arrangement complete for ever. Closing twice is fine.
    pub fn close(&mut self) {
        self.complete(END);
    }

    /// Those that listen or follow, now and later.
    pub fn audience(&self) -> Audience {
        Audience { shared: Rc::downgrade(&self.shared) }
    }

    /// Whether there are readers.
    pub fn has_readers(&self) -> bool {
        self.shared.borrow().holds.len() > 0
    }
}

impl Audience {
    /// Wakes them all, though nothing is there yet. O(listeners).
    pub fn wake(&self) {
        let Some(shared) = self.shared.upgrade() else { return };
        // (As when they are told: nothing is borrowed while they are woken.)
        for at in 0.. {
            let waker = {
                let shared = shared.borrow();
                let n_listeners = shared.listeners.len();
                match (shared.listeners.get(at), at.checked_sub(n_listeners)) {
                    (Some(listener), _) => ListenerQueue::waker(listener),
                    (None, Some(at)) if at < shared.followers.len() => ListenerQueue::waker(&shared.followers[at]),
                    _ => return,
                }
            };
            if let Some(wake) = waker {
                wake();
            }
        }
    }
}

impl Reader {
    fn new(shared: Rc<RefCell<Shared>>, layout: Arc<Layout>, since: Time, name: Rc<str>) -> Reader {
        let hold = shared.borrow_mut().holds.add(since, &name);
        Reader { shared, layout, hold, since, name }
    }

    /// The time from which on this reader may accumulate.
    pub fn since(&self) -> Time {
        self.since
    }

    /// Gives up times before `since`. Going back is not possible and changes nothing.
    pub fn set_since(&mut self, since: Time) {
        if since > self.since {
            self.shared.borrow_mut().holds.set_since(&self.hold, since);
            self.since = since;
        }
    }

    /// Gives up rows below `floor`: this reader will not look at them, and no update below it will
    /// come. A floor does not go down, nor change its column.
    pub fn set_floor(&mut self, floor: Floor) {
        self.shared.borrow_mut().holds.set_floor(&self.hold, floor);
    }

    /// The same reader under a name, which tells people who holds compaction back.
    pub fn named(mut self, name: &str) -> Reader {
        self.name = Rc::from(name);
        self.shared.borrow_mut().holds.set_name(&self.hold, &self.name);
        self
    }

    /// The reader that holds the earliest time, and that time. Compaction follows it.
    pub fn slowest(&self) -> (Time, Rc<str>) {
        let shared = self.shared.borrow();
        let (since, name) = shared.holds.slowest().expect("this reader holds a time");
        (since, Rc::clone(name))
    }

    /// Times are complete before this one.
    pub fn upper(&self) -> Time {
        self.shared.borrow().upper()
    }

    /// All updates, as sorted runs, oldest first. O(runs), and what is held is sorted, or all where
    /// it was left to its origin.
    pub fn runs(&self) -> Vec<Arc<Run>> {
        let mut shared = self.shared.borrow_mut();
        shared.settle_for_reader();
        shared.spine.runs()
    }

    /// Runs that have all updates up to `time`, and perhaps later ones: what came later need not be
    /// sorted.
    pub fn runs_until(&self, time: Time) -> Vec<Arc<Run>> {
        let mut shared = self.shared.borrow_mut();
        shared.settle_until(time);
        shared.spine.runs()
    }

    /// All updates, to look `keys` keys up in them: an arrangement that is asked often has fewer
    /// runs.
    pub fn runs_for(&self, keys: usize) -> Vec<Arc<Run>> {
        let runs = self.runs();
        self.shared.borrow().spine.note_lookups(keys);
        runs
    }

    /// The layout of the rows.
    pub fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }

    /// Sizes and frontiers. O(runs + holds), and what is held is sorted; unless all was left to its
    /// origin.
    pub fn stats(&self) -> Stats {
        let mut shared = self.shared.borrow_mut();
        shared.settle();
        shared.follow_readers();
        let spine = shared.spine.stats();
        Stats {
            rows: shared.n_rows_at_origin().unwrap_or(spine.rows),
            bytes: spine.size_bytes,
            runs: spine.runs,
            readers: shared.holds.len(),
            since: shared.spine.since(),
            upper: shared.upper(),
        }
    }

    /// Starts to listen: the existing runs are in the queue at once, each new run follows when it
    /// is sealed. `wake` is called after something new was queued (not for what exists).
    pub fn listen(&self, wake: Option<Box<dyn Fn()>>) -> Listener {
        let mut shared = self.shared.borrow_mut();
        shared.settle_for_reader();
        let queue = ListenerQueue::new(sealed_so_far(&shared.spine), shared.upper(), shared.quiet_upper(), wake);
        shared.listeners.push(Rc::downgrade(&queue));
        Listener { queue }
    }

    /// Starts to follow: updates that exist are in the queue at once, as far as their batches have
    /// times after `after`; each new batch follows. `wake` is called when a time has become
    /// complete.
    pub fn follow(&self, after: Time, wake: Option<Box<dyn Fn()>>) -> Follower {
        let mut shared = self.shared.borrow_mut();
        if !shared.has_rows_after(after) {
            shared.wake();
        }
        shared.settle();
        let runs = shared.spine.runs();
        let later = runs.iter().filter(|run| !run.is_before(after.saturating_add(1)));
        let batches = later.flat_map(|run| run.batches()).filter(|batch| batch.times().max() > after);
        let batches = batches.chain(shared.builder.batches()).collect();
        let queue = ListenerQueue::new(batches, shared.upper(), shared.quiet_upper(), wake);
        shared.followers.push(Rc::downgrade(&queue));
        Follower { queue }
    }
}

impl Clone for Reader {
    fn clone(&self) -> Reader {
        Reader::new(Rc::clone(&self.shared), Arc::clone(&self.layout), self.since, Rc::clone(&self.name))
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.shared.borrow_mut().holds.remove(&self.hold);
    }
}
