//! What is known of a dataflow beside its rows: whether it has failed, and what memory it holds
//! ([`memory`]). And of rows that no dataflow has taken in yet: how many bytes they are.
//!
//! Law: a turn that panics fails the dataflow of its operator, and no other. From then on no
//! operator of the dataflow has a turn, on any worker, and none lets go of the right to send: so no
//! frontier passes rows that are missing, and nothing incomplete is seen as complete. A dataflow
//! that reads it fails next; that is for the owner of the workers to say, who knows the readers.
//!
//! A query that is asked once and not read any more is given up: from then on it has no turns
//! either, and the one that runs ends where it looks ([`midway`]).
//!
//! Building a dataflow, and answering from what it makes, are turns of it too. A worker that has
//! not built all of a dataflow learns from the account how far its peers have numbered channels.
//!
//! An [`Account`] is shared by the workers and by their owner, who sees a failure without asking a
//! worker. Cost: one load a turn.

mod operators;

pub mod memory;
pub mod midway;

use std::any::Any;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use memory::{Holder, PARTS};
use midway::Begun;

pub(crate) use operators::HeldState;
pub use operators::{MoveCounter, MovedCounts, OperatorCounter, OperatorCounts, ShardWork};

/// The accounts of the dataflows of a group of workers. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Accounts(Arc<Book>);

#[derive(Debug)]
struct Book {
    /// How many dataflows have failed so far.
    failures: AtomicU64,
    /// Bytes of rows that were pushed and that some dataflow has not taken in.
    backlog: AtomicUsize,
    /// Bytes that the dataflows hold which have not failed, and the most that they may.
    held: AtomicI64,
    limit: AtomicI64,
    entries: Mutex<Vec<Weak<OperatorEntry>>>,
}

impl Default for Book {
    fn default() -> Book {
        Book {
            failures: AtomicU64::new(0),
            backlog: AtomicUsize::new(0),
            held: AtomicI64::new(0),
            limit: AtomicI64::new(i64::MAX),
            entries: Mutex::default(),
        }
    }
}

/// A part of the backlog, until this is dropped by the last of those that take the rows in.
#[derive(Debug)]
pub struct Load {
    book: Accounts,
    bytes: usize,
}

impl Drop for Load {
    fn drop(&mut self) {
        self.book.0.backlog.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// The account of one dataflow. Clones are the same. The default is of a dataflow outside of all
/// accounts: its panics are its caller's.
#[derive(Clone, Debug, Default)]
pub struct Account(Arc<OperatorEntry>);

#[derive(Debug, Default)]
struct OperatorEntry {
    /// None outside of all accounts.
    book: Option<Accounts>,
    failure: OnceLock<Failure>,
    /// Whether all that the dataflow makes is about to be dropped.
    is_given_up: AtomicBool,
    holder: Holder,
    /// The client that it belongs to.
    client: Option<u64>,
    /// Bytes by part.
    held: Mutex<[i64; PARTS.len()]>,
    /// Whether the next turn panics on purpose.
    panics_next: AtomicBool,
    operators: operators::Operators,
    numbered: Mutex<Numbered>,
    has_numbered: Condvar,
}

/// How far workers have numbered channels, once each has built the dataflow or failed to.
#[derive(Debug, Default)]
struct Numbered {
    workers: usize,
    /// The highest number, exclusive.
    upto: usize,
}

/// How long a worker waits for its peers to build a dataflow that has failed. They only have to
/// get to the command.
const NUMBERED_WAIT_MAX: Duration = Duration::from_secs(60);

/// Why a dataflow has no turns any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What kind of failure it is.
    pub cause: Cause,
    /// What happened, in words.
    pub message: String,
}

/// Kinds of failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// An operator panicked.
    Panic,
    /// All dataflows together held more than they may.
    Memory,
    /// Its changes were not taken, and its buffer was full.
    Buffer,
    /// The dataflow reads one that has failed.
    Reads,
    /// A row that the dataflow is made of is in error.
    Rows,
}

impl Accounts {
    /// A new account, of what stands.
    pub fn open(&self) -> Account {
        self.open_for(Holder::Standing, None)
    }

    /// A new account, of a client if there is one.
    pub fn open_for(&self, holder: Holder, client: Option<u64>) -> Account {
        let account =
            Account(Arc::new(OperatorEntry { book: Some(self.clone()), holder, client, ..OperatorEntry::default() }));
        let mut entries = self.0.entries.lock().unwrap_or_else(PoisonError::into_inner);
        // (Those that are gone are cleared away when as many have come.)
        if entries.len() == entries.capacity() {
            entries.retain(|entry| entry.strong_count() > 0);
        }
        entries.push(Arc::downgrade(&account.0));
        account
    }

    /// Counts rows that are pushed.
    pub fn load(&self, bytes: usize) -> Arc<Load> {
        self.0.backlog.fetch_add(bytes, Ordering::Relaxed);
        Arc::new(Load { book: self.clone(), bytes })
    }

    /// Bytes of rows that were pushed and that some dataflow has not taken in.
    pub fn backlog_bytes(&self) -> usize {
        self.0.backlog.load(Ordering::Relaxed)
    }

    /// How many dataflows have failed so far: it grows with each.
    pub fn failures(&self) -> u64 {
        self.0.failures.load(Ordering::Acquire)
    }
}

impl Account {
    /// Whether both are of one dataflow.
    pub fn is(&self, other: &Account) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The account of a question of the same client, which is answered without a dataflow.
    pub fn question(&self) -> Account {
        match &self.0.book {
            Some(book) => book.open_for(Holder::Query, self.0.client),
            None => Account::default(),
        }
    }

    /// Why the dataflow has failed, if it has.
    pub fn failure(&self) -> Option<&Failure> {
        self.0.failure.get()
    }

    /// Fails the dataflow. The first failure is kept.
    pub fn fail(&self, failure: Failure) {
        let held = self.lock_held();
        if self.0.failure.set(failure).is_ok()
            && let Some(book) = &self.0.book
        {
            book.0.held.fetch_sub(held.iter().sum(), Ordering::Relaxed);
            book.0.failures.fetch_add(1, Ordering::Release);
        }
    }

    /// Has the dataflow do nothing any more: all that it makes is about to be dropped. For a query
    /// that is asked once alone, since what stands may have readers.
    pub fn give_up(&self) {
        if self.0.holder == Holder::Query {
            self.0.is_given_up.store(true, Ordering::Relaxed);
        }
    }

    /// Whether the dataflow has no turns any more.
    fn has_ended(&self) -> bool {
        self.0.is_given_up.load(Ordering::Relaxed) || self.failure().is_some()
    }

    /// A counter for an operator of the dataflow on a worker.
    pub fn count_operator(&self, operator: usize, worker: usize) -> Arc<OperatorCounter> {
        self.0.operators.count(operator, worker)
    }

    /// A counter for what a worker sends and takes, of the rows of an operator of the dataflow.
    pub(crate) fn count_moves(&self, operator: usize, worker: usize, peers: usize) -> Arc<MoveCounter> {
        self.0.operators.count_moves(operator, worker, peers)
    }

    /// The counts of the dataflow's operators.
    pub fn operators(&self) -> BTreeMap<usize, OperatorCounts> {
        self.0.operators.counts()
    }

    /// What each operator has done on each worker: by operator, then by worker.
    pub fn work_of_shards(&self) -> BTreeMap<usize, BTreeMap<usize, ShardWork>> {
        self.0.operators.work_of_shards()
    }

    /// Lets the next turn panic, for tests of what follows.
    #[doc(hidden)]
    pub fn panic_next(&self) {
        self.0.panics_next.store(true, Ordering::Relaxed);
    }

    /// A worker is done with building, and the next channel would have this number.
    pub(crate) fn note_numbered(&self, next: usize) {
        let mut numbered = self.0.numbered.lock().unwrap_or_else(PoisonError::into_inner);
        numbered.workers += 1;
        numbered.upto = numbered.upto.max(next);
        self.0.has_numbered.notify_all();
    }

    /// The number of the next channel after the dataflow was built, once all workers are done with
    /// building. All those that have built all of it tell the same; the others have built a part.
    /// If all have built a part, the longest one decides.
    ///
    /// # Panics
    /// If a worker does not build the dataflow.
    pub(crate) fn numbered_by_all(&self, workers: usize) -> usize {
        let deadline = Instant::now() + NUMBERED_WAIT_MAX;
        let mut numbered = self.0.numbered.lock().unwrap_or_else(PoisonError::into_inner);
        while numbered.workers < workers {
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "a worker has not built a dataflow that another failed to build");
            numbered = self.0.has_numbered.wait_timeout(numbered, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        numbered.upto
    }

    /// What a turn of an operator returns; nothing when the dataflow has failed, or fails in this
    /// turn because it panics.
    pub fn turn<R>(&self, turn: impl FnOnce() -> R) -> Option<R> {
        if self.0.book.is_none() {
            return Some(turn());
        }
        if self.has_ended() {
            return None;
        }
        let begun = Begun::new(self);
        // What the turn has left half done is not looked at again: the dataflow has no further
        // turn.
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            assert!(!self.0.panics_next.swap(false, Ordering::Relaxed), "this panic is on purpose");
            turn()
        }));
        drop(begun);
        match outcome {
            Ok(returned) => Some(returned),
            // (The turn ended midway, or what it left half done panicked then.)
            Err(_) if self.has_ended() => None,
            Err(panic) => {
                self.fail(Failure { cause: Cause::Panic, message: panic_message(panic.as_ref()) });
                None
            }
        }
    }
}

/// What a panic says.
pub fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
    text.unwrap_or_else(|| "no message".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_ends_the_turns_of_its_dataflow_alone() {
        let accounts = Accounts::default();
        let (mine, other) = (accounts.open(), accounts.open());
        assert_eq!(mine.turn(|| 1), Some(1));
        assert_eq!(mine.turn(|| -> i32 { panic!("a bad {}", "turn") }), None);
        assert_eq!(mine.turn(|| 2), None);
        let failure = Failure { cause: Cause::Panic, message: "a bad turn".to_owned() };
        assert_eq!((mine.failure(), other.failure()), (Some(&failure), None));
        // The first failure is the one that is told.
        mine.fail(Failure { cause: Cause::Reads, message: String::new() });
        assert_eq!((mine.failure(), accounts.failures()), (Some(&failure), 1));
        let loads = [accounts.load(10), accounts.load(5)];
        assert_eq!(accounts.backlog_bytes(), 15);
        drop(loads);
        assert_eq!(accounts.backlog_bytes(), 0);
        other.panic_next();
        assert_eq!((other.turn(|| 1), accounts.failures()), (None, 2));
    }

    #[test]
    fn a_turn_ends_midway_when_its_query_is_given_up_or_holds_too_much() {
        let accounts = Accounts::default();
        let (query, view) = (accounts.open_for(Holder::Query, None), accounts.open());
        let holding = |account: &Account, bytes: usize| account.turn(|| midway::holds(bytes));
        assert_eq!((holding(&query, 90_000), accounts.held_bytes()), (Some(()), 0));
        accounts.set_limit(Some(50_000));
        assert_eq!((holding(&query, 40_000), query.failure()), (Some(()), None));
        // What stands is ended when it holds too much, as a query is.
        assert_eq!(holding(&view, 90_000), None);
        assert_eq!(view.failure().map(|failure| failure.cause), Some(Cause::Memory));
        let (other, mut is_over) = (query.clone(), false);
        let ended = query.turn(|| {
            midway::puts_out(1 << 20);
            other.give_up();
            midway::puts_out(1 << 10);
            midway::puts_out(1 << 20);
            is_over = true;
        });
        assert_eq!((ended, is_over, query.failure(), holding(&query, 1)), (None, false, None, None));
        assert_eq!((accounts.held_bytes(), accounts.failures()), (0, 1));
        // What is made adds up, until the turn ends.
        let making = |account: &Account| account.turn(|| (0..60).for_each(|_| midway::makes(1 << 19)));
        accounts.set_limit(Some(20 << 20));
        let (small, large) = (accounts.open_for(Holder::Query, None), accounts.open_for(Holder::Query, None));
        assert_eq!(small.turn(|| (0..30).for_each(|_| midway::makes(1 << 19))), Some(()));
        assert_eq!((making(&large), accounts.held_bytes()), (None, 0));
        // It is told how long a turn took, once it is over.
        let took = std::rc::Rc::default();
        assert_eq!(accounts.open().turn(|| midway::time(&took)), Some(()));
        assert!(took.take().is_some());
        // Outside of a turn, and in one of no account, nothing ends.
        midway::holds(1 << 40);
        assert_eq!(holding(&Account::default(), 1 << 40), Some(()));
        // What stands goes on, for it may have readers.
        let standing = accounts.open();
        standing.give_up();
        assert_eq!(holding(&standing, 1), Some(()));
    }
}
