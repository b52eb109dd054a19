//! Memory of dataflows and of clients: counted where it is held, limited for all together.
//!
//! Law: what an operator holds is counted under the account of its dataflow, and taken off when the
//! operator goes. The sum of all accounts is compared with the limit whenever a part has grown.
//! Above the limit a dataflow is ended: the largest of the queries that are asked once, or else the
//! largest of all that stand; but none that holds too little to help. Rows of tables are never
//! ended. A dataflow that was ended counts as gone: it has no further turn, and is taken down.
//!
//! Cost: a part is measured again when so many rows have passed that its size may have changed by
//! an eighth ([`Gauge`]), and for a thirty-second part of the time at most. So a part may be an
//! eighth larger than is known. What one turn adds is seen after the turn, or before, where the
//! operator says what it is about to make ([`super::midway`]). A measurement takes the lock of its
//! account, which the other workers take as rarely.

use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::{Account, Accounts, Cause, Failure};

/// What memory is held for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MemoryPart {
    /// Rows by key, of arrangements.
    Arrangements,
    /// What operators remember, and rows that wait for their time.
    State,
    /// Changes that were not fetched yet.
    Changes,
    /// Answers on their way to a client.
    Results,
    /// What a client's cursors hold, and what its transaction and its COPY have set aside.
    Held,
}

/// All parts, in the order of their numbers.
pub const PARTS: [MemoryPart; 5] =
    [MemoryPart::Arrangements, MemoryPart::State, MemoryPart::Changes, MemoryPart::Results, MemoryPart::Held];

/// Whose memory it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Holder {
    /// A query that is asked once.
    Query,
    /// A query that stands: a view, a subscription, a frame, or a part of several.
    #[default]
    Standing,
    /// The rows of a table or a source.
    Rows,
    /// A client: no dataflow, and so never ended. What does not fit is refused ([`Hold::set`]).
    Client,
}

/// What one operator holds of one part. Dropped, it is taken off.
#[derive(Debug)]
pub(super) struct Share {
    account: Account,
    part: MemoryPart,
    bytes: usize,
}

impl Share {
    /// Nothing yet.
    pub fn none(account: Account, part: MemoryPart) -> Share {
        Share { account, part, bytes: 0 }
    }

    /// So much is held from now on.
    pub fn set(&mut self, bytes: usize) {
        let (before, after) = (self.bytes as i64, bytes as i64);
        self.bytes = bytes;
        self.account.add(self.part, after - before);
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.set(0);
    }
}

/// What a client holds of one part. Dropped, it is taken off.
#[derive(Debug)]
pub struct Hold(Share);

impl Hold {
    /// So much is held from now on. False, and nothing has changed, if that is more than before and
    /// than the limit allows.
    #[must_use]
    pub fn set(&mut self, bytes: usize) -> bool {
        let grows = bytes.saturating_sub(self.0.bytes);
        let has_room = |book: &Accounts| book.limit().is_none_or(|limit| book.held_bytes() + grows <= limit);
        if grows > 0 && !self.0.account.0.book.as_ref().is_none_or(has_room) {
            return false;
        }
        self.0.set(bytes);
        true
    }
}

/// Measures what an operator holds, now and then.
#[derive(Debug)]
pub(crate) struct Gauge {
    share: Share,
    /// Rows since the last measurement, and rows after which the next is due.
    rows: usize,
    rows_max: usize,
    /// Turns since the last measurement.
    turns: usize,
    /// When the next measurement may be made, where the last one took long.
    not_before: Option<Instant>,
}

/// What is ended holds at least one part in so many of what is too much.
const HELP_MIN: i64 = 8;

/// A row takes so many bytes, at least.
const ROW_BYTES: usize = 64;

/// Turns after which state is measured, however few rows have come: rows leave without others.
/// (Arrangements shrink by merges alone, whose rows are noted.)
const TURNS_MAX: usize = 256;

/// A measurement that takes longer than this is made more rarely.
const LONG: Duration = Duration::from_micros(500);

/// How many times as long as a long measurement took passes before the next one.
const PAUSE_PER_MEASUREMENT: u32 = 32;

impl Gauge {
    pub fn new(account: Account, part: MemoryPart) -> Gauge {
        Gauge { share: Share::none(account, part), rows: 0, rows_max: 1, turns: 0, not_before: None }
    }

    /// So many rows have passed in a turn; `measure` tells what is held.
    pub fn note(&mut self, rows: usize, measure: impl FnOnce() -> usize) {
        self.rows += rows;
        self.turns += 1;
        let is_overdue = self.turns >= TURNS_MAX && self.share.part != MemoryPart::Arrangements;
        if self.rows < self.rows_max && !is_overdue {
            return;
        }
        let started = Instant::now();
        if self.not_before.is_some_and(|not_before| started < not_before) {
            return;
        }
        let bytes = measure();
        let took = started.elapsed();
        self.not_before = (took > LONG).then(|| started + took * PAUSE_PER_MEASUREMENT);
        self.measured(bytes);
    }

    /// So much is held.
    pub fn measured(&mut self, bytes: usize) {
        (self.rows, self.turns) = (0, 0);
        self.rows_max = 1 + bytes / ROW_BYTES / 8;
        if bytes != self.share.bytes {
            self.share.set(bytes);
        }
    }
}

impl Accounts {
    /// The most that all dataflows may hold together; `None` for no limit.
    pub fn set_limit(&self, bytes: Option<usize>) {
        let limit = bytes.map_or(i64::MAX, |bytes| i64::try_from(bytes).unwrap_or(i64::MAX));
        self.0.limit.store(limit, Ordering::Relaxed);
        self.relieve();
    }

    /// The limit, if there is one.
    pub fn limit(&self) -> Option<usize> {
        usize::try_from(self.0.limit.load(Ordering::Relaxed)).ok().filter(|limit| *limit < i64::MAX as usize)
    }

    /// What all dataflows hold together.
    pub fn held_bytes(&self) -> usize {
        usize::try_from(self.0.held.load(Ordering::Relaxed)).unwrap_or(0)
    }

    /// All that there are, in the order in which they were opened.
    pub fn all(&self) -> Vec<Account> {
        let entries = self.0.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.iter().filter_map(|entry| Some(Account(entry.upgrade()?))).collect()
    }

    /// Ends dataflows until the others are within the limit.
    fn relieve(&self) {
        let limit = self.0.limit.load(Ordering::Relaxed);
        if self.0.held.load(Ordering::Relaxed) <= limit {
            return;
        }
        let entries = self.0.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let mut live: Vec<Account> = entries.iter().filter_map(|entry| Some(Account(entry.upgrade()?))).collect();
        live.retain(|account| account.failure().is_none());
        live.retain(|account| !matches!(account.0.holder, Holder::Rows | Holder::Client) && account.held() > 0);
        // Queries come before what stands, since to ask again is cheaper than to build a view
        // again.
        live.sort_by_key(|account| (account.0.holder, -account.held()));
        for account in live {
            // (What fails is taken off at once. Other workers may have let go of something.)
            let held = self.0.held.load(Ordering::Relaxed);
            if held <= limit {
                break;
            }
            let bytes = account.held();
            // (To end what holds little would not help: something else has grown.)
            if bytes.saturating_mul(HELP_MIN) < held - limit {
                continue;
            }
            let message = format!(
                "out of memory: it held {} of the {} that memory_limit allows for all",
                readable(bytes),
                readable(limit)
            );
            account.fail(Failure { cause: Cause::Memory, message });
        }
    }
}

impl Account {
    /// What the dataflow holds of a part.
    pub fn held_of(&self, part: MemoryPart) -> usize {
        usize::try_from(self.lock_held()[part as usize]).unwrap_or(0)
    }

    /// Nothing yet of a part, which a client is about to hold.
    pub fn hold(&self, part: MemoryPart) -> Hold {
        Hold(Share::none(self.clone(), part))
    }

    /// The number of the client that it belongs to, if there is one.
    pub fn client(&self) -> Option<u64> {
        self.0.client
    }

    /// Whose memory it is.
    pub fn holder(&self) -> Holder {
        self.0.holder
    }

    fn held(&self) -> i64 {
        self.lock_held().iter().sum()
    }

    /// Bytes by part. (They are whole whatever a thread that panicked was about to add.)
    pub(super) fn lock_held(&self) -> MutexGuard<'_, [i64; PARTS.len()]> {
        self.0.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, part: MemoryPart, bytes: i64) {
        let mut held = self.lock_held();
        held[part as usize] += bytes;
        // (Under the lock: a dataflow that fails takes all of its bytes off the book at once.)
        let Some(book) = self.0.book.as_ref().filter(|_| self.failure().is_none()) else { return };
        book.0.held.fetch_add(bytes, Ordering::Relaxed);
        drop(held);
        if bytes > 0 {
            book.relieve();
        }
    }
}

/// A number of bytes for people.
pub fn readable(bytes: i64) -> String {
    match bytes {
        ..10_000 => format!("{bytes} bytes"),
        10_000..10_000_000 => format!("{} kB", bytes / 1_000),
        _ => format!("{} MB", bytes / 1_000_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holding(accounts: &Accounts, holder: Holder, bytes: usize) -> (Account, Gauge) {
        let account = accounts.open_for(holder, None);
        let mut gauge = Gauge::new(account.clone(), MemoryPart::State);
        gauge.note(1, || bytes);
        (account, gauge)
    }

    #[test]
    fn the_largest_query_is_ended_first_then_what_stands_and_never_rows() {
        let accounts = Accounts::default();
        let (rows, _rows) = holding(&accounts, Holder::Rows, 1_000);
        let (view, _view) = holding(&accounts, Holder::Standing, 500);
        let (small, _small) = holding(&accounts, Holder::Query, 10);
        let (large, large_gauge) = holding(&accounts, Holder::Query, 300);
        assert_eq!(accounts.held_bytes(), 1_810);
        accounts.set_limit(Some(1_600));
        let cause = |account: &Account| account.failure().map(|failure| failure.cause);
        assert_eq!((cause(&large), cause(&small)), (Some(Cause::Memory), None));
        // What was ended is counted as gone already.
        assert_eq!(accounts.held_bytes(), 1_510);
        drop(large_gauge);
        assert_eq!((accounts.held_bytes(), large.held_of(MemoryPart::State)), (1_510, 0));
        accounts.set_limit(Some(1_100));
        // (The small query is not to blame.)
        assert_eq!((cause(&small), cause(&view)), (None, Some(Cause::Memory)));
        accounts.set_limit(Some(100));
        assert_eq!((cause(&rows), accounts.limit(), accounts.held_bytes()), (None, Some(100), 1_010));
        accounts.set_limit(None);
        assert_eq!(accounts.limit(), None);
    }

    #[test]
    fn what_a_client_is_about_to_hold_is_refused_and_ends_nothing() {
        let accounts = Accounts::default();
        let (view, _view) = holding(&accounts, Holder::Standing, 500);
        let client = accounts.open_for(Holder::Client, Some(3));
        let mut results = client.hold(MemoryPart::Results);
        accounts.set_limit(Some(1_000));
        assert!(results.set(400) && !results.set(600) && results.set(500) && results.set(10));
        assert_eq!((accounts.held_bytes(), client.held_of(MemoryPart::Results)), (510, 10));
        drop(results);
        assert_eq!((accounts.held_bytes(), client.client()), (500, Some(3)));
        assert!(view.failure().is_none());
    }

    #[test]
    fn a_gauge_measures_when_an_eighth_may_have_changed() {
        let accounts = Accounts::default();
        let (account, mut gauge) = holding(&accounts, Holder::Query, 6_400);
        gauge.note(12, || unreachable!("twelve rows are not an eighth of a hundred"));
        gauge.note(1, || 7_000);
        assert_eq!(account.held_of(MemoryPart::State), 7_000);
        drop(gauge);
        assert_eq!((account.held_of(MemoryPart::State), accounts.held_bytes()), (0, 0));
    }
}
