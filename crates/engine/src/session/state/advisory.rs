//! Advisory locks: what clients hold by agreement, of numbers that mean something to them alone.
//!
//! Law: an exclusive lock is held by one client, a shared one by clients that all share it. A
//! client may take what it holds once more, and holds it until it was given back as often; what it
//! holds for its transaction goes with that. Nothing outlives its client. Cost: a look at one map
//! for each call; a wait looks at all that wait.
//!
//! Source: PostgreSQL 15, "Explicit locking", advisory locks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What is locked: one number of 64 bits, or two of 32. They do not meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LockKey {
    One(i64),
    Two(i32, i32),
}

/// A lock as it is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct AdvisoryLock {
    pub key: LockKey,
    /// Whether others may share it.
    pub is_shared: bool,
}

/// How long a lock is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum HeldFor {
    /// Until it is given back.
    Client,
    /// Until the transaction ends.
    Transaction,
}

/// The locks of a session's clients. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct AdvisoryLocks(Arc<Mutex<LockTable>>);

/// One client's part in the locks; nothing is left of it when it is dropped.
#[derive(Debug)]
pub(crate) struct ClientLocks {
    owner: u64,
    /// Whether it has ever taken a lock, or waited for one.
    is_used: AtomicBool,
    /// Whether it has taken one for its transaction.
    has_transaction: AtomicBool,
    locks: AdvisoryLocks,
}

#[derive(Debug, Default)]
struct LockTable {
    /// The last owner that there was.
    owners: u64,
    /// How often each is held.
    held: BTreeMap<LockKey, BTreeMap<(u64, bool, HeldFor), usize>>,
    /// What the statements that run have taken.
    taken: BTreeMap<u64, Vec<(AdvisoryLock, HeldFor)>>,
    /// What statements wait for.
    awaited: BTreeMap<u64, AwaitedLock>,
}

/// A wait for a lock, over all attempts of its statement.
#[derive(Clone, Copy, Debug)]
struct AwaitedLock {
    lock: AdvisoryLock,
    since: Instant,
    /// Whether the attempt that runs could not have it: a later attempt may fail for another
    /// reason.
    is_missed: bool,
}

impl LockTable {
    /// The others that keep a client from a lock.
    fn in_the_way(&self, owner: u64, lock: AdvisoryLock) -> impl Iterator<Item = u64> {
        let held = self.held.get(&lock.key).into_iter().flat_map(BTreeMap::keys);
        held.filter(move |(other, is_shared, _)| *other != owner && !(*is_shared && lock.is_shared))
            .map(|(other, ..)| *other)
    }

    fn give_back(&mut self, owner: u64, lock: AdvisoryLock, held_for: HeldFor) -> bool {
        let Some(holders) = self.held.get_mut(&lock.key) else { return false };
        let holder = (owner, lock.is_shared, held_for);
        let Some(times) = holders.get_mut(&holder) else { return false };
        *times -= 1;
        if *times == 0 {
            holders.remove(&holder);
        }
        if holders.is_empty() {
            self.held.remove(&lock.key);
        }
        true
    }

    fn let_go(&mut self, which: impl Fn(u64, HeldFor) -> bool) {
        self.held.retain(|_, holders| {
            holders.retain(|(owner, _, held_for), _| !which(*owner, *held_for));
            !holders.is_empty()
        });
    }

    /// Whether a client waits for one that waits for it, over however many others.
    fn is_deadlocked(&self, owner: u64) -> bool {
        let (mut seen, mut open) = (BTreeSet::new(), vec![owner]);
        while let Some(waiting) = open.pop() {
            for other in self.awaited.get(&waiting).into_iter().flat_map(|of| self.in_the_way(waiting, of.lock)) {
                if other == owner {
                    return true;
                }
                if seen.insert(other) {
                    open.push(other);
                }
            }
        }
        false
    }
}

impl AdvisoryLocks {
    /// The part of another client.
    pub fn client(&self) -> ClientLocks {
        let mut table = self.table();
        table.owners += 1;
        let (is_used, has_transaction) = (AtomicBool::new(false), AtomicBool::new(false));
        ClientLocks { owner: table.owners, is_used, has_transaction, locks: self.clone() }
    }

    fn table(&self) -> MutexGuard<'_, LockTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientLocks {
    fn table(&self) -> MutexGuard<'_, LockTable> {
        self.locks.table()
    }

    /// (The session calls for one client at a time.)
    fn is_used(&self) -> bool {
        self.is_used.load(Ordering::Relaxed)
    }

    /// Takes a lock, if no other client is in the way.
    pub fn take(&self, lock: AdvisoryLock, held_for: HeldFor) -> bool {
        let mut table = self.table();
        if table.in_the_way(self.owner, lock).next().is_some() {
            return false;
        }
        self.is_used.store(true, Ordering::Relaxed);
        self.has_transaction.fetch_or(held_for == HeldFor::Transaction, Ordering::Relaxed);
        *table.held.entry(lock.key).or_default().entry((self.owner, lock.is_shared, held_for)).or_default() += 1;
        table.taken.entry(self.owner).or_default().push((lock, held_for));
        true
    }

    /// Notes that the statement which runs has to wait for a lock.
    pub fn want(&self, lock: AdvisoryLock) {
        self.is_used.store(true, Ordering::Relaxed);
        let mut table = self.table();
        let since = table.awaited.get(&self.owner).map_or_else(Instant::now, |of| of.since);
        table.awaited.insert(self.owner, AwaitedLock { lock, since, is_missed: true });
    }

    /// Gives a lock back once; false if the client does not hold it.
    pub fn give_back(&self, lock: AdvisoryLock) -> bool {
        self.table().give_back(self.owner, lock, HeldFor::Client)
    }

    /// Gives back all that is not held for a transaction.
    pub fn give_all_back(&self) {
        self.table().let_go(|owner, held_for| owner == self.owner && held_for == HeldFor::Client);
    }

    /// How long the statement that runs has waited, if it waits.
    pub fn waited(&self) -> Option<Duration> {
        if !self.is_used() {
            return None;
        }
        self.table().awaited.get(&self.owner).filter(|of| of.is_missed).map(|of| of.since.elapsed())
    }

    /// Whether it would wait for ever.
    pub fn is_deadlocked(&self) -> bool {
        self.table().is_deadlocked(self.owner)
    }

    /// The statement is done, or has failed: it waits no longer. What it took stays.
    pub fn end_statement(&self) {
        if !self.is_used() {
            return;
        }
        let mut table = self.table();
        table.awaited.remove(&self.owner);
        table.taken.remove(&self.owner);
    }

    /// The statement is to be attempted again: what it took is given back.
    pub fn undo_statement(&self) {
        if !self.is_used() {
            return;
        }
        let mut table = self.table();
        if let Some(awaited) = table.awaited.get_mut(&self.owner) {
            awaited.is_missed = false;
        }
        for (lock, held_for) in table.taken.remove(&self.owner).unwrap_or_default() {
            table.give_back(self.owner, lock, held_for);
        }
    }

    /// The client has gone: nothing is held any more.
    pub fn leave(&self) {
        self.end_statement();
        self.table().let_go(|owner, _| owner == self.owner);
    }

    /// The transaction has ended.
    pub fn end_transaction(&self) {
        if self.has_transaction.swap(false, Ordering::Relaxed) {
            self.table().let_go(|owner, held_for| owner == self.owner && held_for == HeldFor::Transaction);
        }
    }
}

impl Drop for ClientLocks {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn lock(key: i64, is_shared: bool) -> AdvisoryLock {
        AdvisoryLock { key: LockKey::One(key), is_shared }
    }

    #[test]
    fn exclusive_locks_are_of_one_client_and_shared_ones_of_many() {
        let locks = AdvisoryLocks::default();
        let [a, b, c] = [locks.client(), locks.client(), locks.client()];
        assert!(a.take(lock(1, true), HeldFor::Client) && b.take(lock(1, true), HeldFor::Transaction));
        assert!(!c.take(lock(1, false), HeldFor::Client) && !a.take(lock(1, false), HeldFor::Client));
        b.end_transaction();
        assert!(a.take(lock(1, false), HeldFor::Client) && !c.take(lock(1, true), HeldFor::Client));
        assert!(c.take(AdvisoryLock { key: LockKey::Two(0, 1), is_shared: false }, HeldFor::Client));
        assert!(a.give_back(lock(1, false)) && !a.give_back(lock(1, false)));
        assert!(c.take(lock(1, true), HeldFor::Client));
        a.give_all_back();
        assert!(!a.give_back(lock(1, true)) && c.take(lock(1, false), HeldFor::Client));
        drop(c);
        assert!(a.take(lock(1, false), HeldFor::Client));
        assert_eq!(locks.table().held.len(), 1);
    }

    #[test]
    fn what_is_taken_twice_is_given_back_twice() {
        let locks = AdvisoryLocks::default();
        let [a, b] = [locks.client(), locks.client()];
        assert!(a.take(lock(7, false), HeldFor::Client));
        a.end_statement();
        assert!(a.take(lock(7, false), HeldFor::Client));
        a.undo_statement();
        assert!(!b.take(lock(7, false), HeldFor::Client));
        assert!(a.give_back(lock(7, false)) && b.take(lock(7, false), HeldFor::Client));
    }

    #[test]
    fn waits_in_a_circle_are_found() {
        let locks = AdvisoryLocks::default();
        let clients: Vec<ClientLocks> = (0..3).map(|_| locks.client()).collect();
        for (at, client) in clients.iter().enumerate() {
            assert!(client.take(lock(at as i64, false), HeldFor::Client));
        }
        clients[0].want(lock(1, false));
        clients[1].want(lock(2, true));
        assert!(!clients[1].is_deadlocked());
        clients[2].want(lock(0, false));
        assert!(clients.iter().all(ClientLocks::is_deadlocked));
        clients[1].end_statement();
        assert!(!clients[0].is_deadlocked() && clients[1].waited().is_none());
    }
}
