//! Where changes leave a dataflow: collected per interval of complete times, for the caller that
//! subscribed.
//!
//! Law: what a capture has given out up to its `upper` is exactly the change of the collection
//! below `upper` on its worker, in order of time. Rows that may be taken back meet their equals on
//! one worker first, and are consolidated there: each row comes once a time. Rows that only come
//! stay where they are, and as they are: nothing can cancel, and to find equal ones would cost more
//! than most queries that make them.
//!
//! A capture that is not fetched is *full* when its changes take more than [`Bounds::bytes_max`];
//! the first changes after a fetch are not counted, since a snapshot or a commit comes as a whole.
//! A full capture is *coalesced*: all its changes move to the latest of their times and are summed
//! up ([`Captured::coalesced`]). Where that does not help, or is not wanted, the dataflow fails.
//! Cost: coalescing halves what is counted at least, so a change is looked at twice, amortised.
//!
//! State: rows that wait for the frontier, and what was not yet fetched.

use std::cell::RefCell;
use std::rc::Rc;

use anabranch_batch::consolidate::consolidate_in_time_order;
use anabranch_batch::gather::compact_shared_views;
use anabranch_batch::{Batch, Time, Times};

use crate::account::memory::{Gauge, MemoryPart, readable};
use crate::account::{Account, Cause, Failure};
use crate::chain::Chain;
use crate::pending::{Pending, split_at};
use crate::sizes::size_bytes;

/// Which changes a capture collects, and how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bounds {
    /// Changes before this time are left out.
    pub from: Time,
    /// Changes from this time on are left out.
    pub before: Time,
    /// Bytes of changes that were not fetched yet, at most, on one worker.
    pub bytes_max: usize,
    /// What happens to more.
    pub when_full: WhenFull,
}

impl Bounds {
    /// All changes, however many.
    pub const NONE: Bounds =
        Bounds { from: Time::MIN, before: Time::MAX, bytes_max: usize::MAX, when_full: WhenFull::End };
}

/// What happens when changes are not fetched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum WhenFull {
    /// They are summed up at the latest of their times.
    #[default]
    Coalesce,
    /// The dataflow fails.
    End,
}

/// Texts of changes that wait may hold twice as many times their bytes: all of them, where workers
/// have equal parts of a batch, and less than is held, where one has most of it.
const SHARERS_MAX: usize = 4;

/// Which changes a capture collects, and as what.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    bounds: Bounds,
    /// Whether equal rows may come several times at one time.
    only_comes: bool,
    /// How many workers have parts of what may have been one batch, as far as it is believed.
    sharers: usize,
}

/// What a capture has collected and no caller has fetched.
#[derive(Debug)]
pub struct Captured {
    /// Changes of rows and of row errors, each batch in order of time, batches in order of time.
    pub(crate) rows: Vec<Batch>,
    errors: Vec<Batch>,
    /// Complete before this time.
    pub(crate) upper: Time,
    /// Changes at earlier times were moved to this one.
    coalesced: Time,
    wanted: Wanted,
    /// Bytes of the first changes since the last fetch, and of those that came behind.
    first_bytes: Option<usize>,
    more_bytes: usize,
    account: Account,
    gauge: Gauge,
}

/// Changes that were fetched.
#[derive(Debug)]
pub struct Fetched {
    /// Changes of rows, each batch in order of time, batches in order of time.
    pub rows: Vec<Batch>,
    /// Changes of row errors, likewise.
    pub errors: Vec<Batch>,
    /// Complete before this time.
    pub upper: Time,
    /// Changes at earlier times were moved to this one, if any were.
    pub coalesced: Time,
    /// Whether equal rows may come several times at one time, here and on several workers.
    pub only_comes: bool,
}

impl Captured {
    fn new(wanted: Wanted, account: Account) -> Captured {
        let gauge = Gauge::new(account.clone(), MemoryPart::Changes);
        let (rows, errors, first_bytes, more_bytes) = (vec![], vec![], None, 0);
        Captured {
            rows,
            errors,
            upper: Time::MIN,
            coalesced: Time::MIN,
            wanted,
            first_bytes,
            more_bytes,
            account,
            gauge,
        }
    }

    /// Whether there is nothing to fetch.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.errors.is_empty()
    }

    /// Changes before this time are there.
    pub fn upper(&self) -> Time {
        self.upper
    }

    /// Hands out what was collected.
    pub fn fetch(&mut self) -> Fetched {
        (self.first_bytes, self.more_bytes) = (None, 0);
        self.gauge.measured(0);
        Fetched {
            rows: std::mem::take(&mut self.rows),
            errors: std::mem::take(&mut self.errors),
            upper: self.upper,
            coalesced: self.coalesced,
            only_comes: self.wanted.only_comes,
        }
    }

    /// Takes changes over that are complete.
    fn take(&mut self, rows: &mut Pending, errors: &mut Pending, upper: Time) {
        let mut fresh = (Vec::new(), Vec::new());
        take_before(rows, upper, self.wanted, &mut fresh.0);
        take_before(errors, upper, Wanted { only_comes: false, ..self.wanted }, &mut fresh.1);
        let bytes = size_bytes(&fresh.0) + size_bytes(&fresh.1);
        self.rows.append(&mut fresh.0);
        self.errors.append(&mut fresh.1);
        self.upper = upper;
        if bytes > 0 {
            match self.first_bytes {
                None => self.first_bytes = Some(bytes),
                Some(_) => self.more_bytes += bytes,
            }
            self.keep_within_bounds();
        }
        self.gauge.measured(self.first_bytes.unwrap_or(0) + self.more_bytes);
    }

    fn keep_within_bounds(&mut self) {
        let bytes_max = self.wanted.bounds.bytes_max;
        if self.more_bytes <= bytes_max {
            return;
        }
        if self.wanted.bounds.when_full == WhenFull::Coalesce {
            self.coalesce();
            // (At most a half: else the next change would have all of them looked at again.)
            if self.more_bytes <= bytes_max / 2 {
                return;
            }
        }
        let message = format!(
            "its changes were not taken, and its buffer of {} is full",
            readable(i64::try_from(bytes_max).unwrap_or(i64::MAX))
        );
        self.account.fail(Failure { cause: Cause::Buffer, message });
        self.fetch();
    }

    /// Moves all changes to the latest of their times.
    fn coalesce(&mut self) {
        let all = self.rows.iter().chain(&self.errors);
        let Some(latest) = all.map(|batch| batch.times().max()).max() else { return };
        for batches in [&mut self.rows, &mut self.errors] {
            let moved = Batch::concat(batches).map(|batch| batch.with_times(Times::Constant(latest)));
            let summed = moved.map(consolidate_in_time_order).filter(|batch| !batch.is_empty());
            *batches = summed.into_iter().collect();
        }
        self.coalesced = latest;
        let first = self.first_bytes.unwrap_or(0);
        self.more_bytes = (size_bytes(&self.rows) + size_bytes(&self.errors)).saturating_sub(first);
    }
}

/// Shared between the dataflow and the worker.
pub type CaptureRef = Rc<RefCell<Captured>>;

/// Collects the changes of a chain's rows, which meet their equals by all of `n_columns` columns;
/// of rows that only come if that is not told.
pub fn capture(chain: Chain<'_>, n_columns: Option<usize>, bounds: Bounds) -> CaptureRef {
    let account = chain.worker().account().clone();
    let wanted = Wanted { bounds, only_comes: n_columns.is_none(), sharers: chain.scope().peers().min(SHARERS_MAX) };
    let captured = Rc::new(RefCell::new(Captured::new(wanted, account.clone())));
    let target = Rc::clone(&captured);
    let mut rows = Pending::default();
    let mut errors = Pending::default();
    let mut waiting = Gauge::new(account, MemoryPart::Changes);
    let all: Option<Vec<usize>> = n_columns.map(|n_columns| (0..n_columns).collect());
    let chain = match all.filter(|all| !chain.is_together(all)) {
        Some(all) => chain.by_key(all),
        None => chain,
    };
    chain.into_end("Capture".to_owned(), None, move |turn, _| {
        let n_rows = turn.out.rows.iter().map(Batch::len).sum();
        turn.out.rows.into_iter().for_each(|batch| rows.push(batch));
        turn.out.errors.into_iter().for_each(|batch| errors.push(batch));
        let mut target = target.borrow_mut();
        match turn.upto > target.upper {
            true => {
                target.take(&mut rows, &mut errors, turn.upto);
                waiting.measured(rows.size_bytes());
            }
            false => waiting.note(n_rows, || rows.size_bytes()),
        }
    });
    captured
}

/// Appends the updates before `upper`, in order of time: consolidated, unless they only come.
/// Batches that have no time in common are not made one.
fn take_before(waiting: &mut Pending, upper: Time, wanted: Wanted, out: &mut Vec<Batch>) {
    let Wanted { bounds, only_comes, sharers } = wanted;
    let ready = waiting.take_ready(upper);
    let follows = |a: &Batch, b: &Batch| {
        let (last, first) = (a.times().max(), b.times().min());
        last < first || (only_comes && last == first)
    };
    let ready = match ready.is_sorted_by(follows) {
        true => ready,
        false => Batch::concat(&ready).into_iter().collect(),
    };
    let within = ready.into_iter().map(|batch| {
        let (_, from) = split_at(&batch, bounds.from);
        split_at(&from, bounds.before).0
    });
    let within = within.filter(|batch| !batch.is_empty());
    let in_order = |batch: Batch| match only_comes {
        true => batch.flatten().in_time_order(),
        false => consolidate_in_time_order(batch),
    };
    let in_order = within.map(|batch| in_order(batch.without_key()));
    // (They may wait for long.)
    let compact = |batch: Batch| {
        let columns = compact_shared_views(batch.columns().to_vec().into(), sharers);
        batch.with_columns(columns)
    };
    out.extend(in_order.filter(|batch| !batch.is_empty()).map(compact));
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use anabranch_batch::Diffs;
    use arrow::array::{ArrayRef, Int64Array};

    use super::*;
    use crate::account::Accounts;

    fn bounds(bytes_max: usize, when_full: WhenFull) -> Wanted {
        wanted(Bounds { bytes_max, when_full, ..Bounds::NONE }, false)
    }

    fn wanted(bounds: Bounds, only_comes: bool) -> Wanted {
        Wanted { bounds, only_comes, sharers: 1 }
    }

    /// One row, which comes or goes.
    fn change(value: i64, time: Time, diff: i64) -> Batch {
        Batch::new(vec![Arc::new(Int64Array::from(vec![value]))], Times::Constant(time), Diffs::Constant(diff))
    }

    fn give(captured: &mut Captured, changes: impl IntoIterator<Item = Batch>) {
        let (mut rows, mut errors) = (Pending::default(), Pending::default());
        let upper = changes.into_iter().fold(captured.upper, |upper, batch| {
            let upper = upper.max(batch.times().max() + 1);
            rows.push(batch);
            upper
        });
        captured.take(&mut rows, &mut errors, upper);
    }

    /// Rows by value: sums of diffs, and the times they are told at.
    fn told(fetched: &Fetched) -> Vec<(i64, Time, i64)> {
        let rows = fetched.rows.iter().flat_map(|batch| {
            let values = batch.column(0).as_any().downcast_ref::<Int64Array>().unwrap().clone();
            let batch = batch.clone();
            (0..batch.len()).map(move |row| (values.value(row), batch.times().get(row), batch.diffs().get(row)))
        });
        rows.collect()
    }

    #[test]
    fn a_full_capture_sums_up_what_nobody_has_fetched() {
        let accounts = Accounts::default();
        let account = accounts.open();
        let mut captured = Captured::new(bounds(2_000, WhenFull::Coalesce), account.clone());
        give(&mut captured, [change(0, 1, 1)]);
        for time in 2..500 {
            give(&mut captured, [change(time - 2, time, -1), change(time - 1, time, 1)]);
            assert!(size_bytes(&captured.rows) <= 2_500);
        }
        assert!(account.failure().is_none());
        assert_eq!(account.held_of(MemoryPart::Changes), size_bytes(&captured.rows));
        let fetched = captured.fetch();
        assert!(fetched.coalesced > 1 && fetched.upper == 500);
        let told = told(&fetched);
        assert!(told.iter().all(|(_, time, _)| *time >= fetched.coalesced));
        let net: i64 = told.iter().map(|(value, _, diff)| value * diff).sum();
        assert_eq!((net, told.iter().map(|(_, _, diff)| diff).sum::<i64>()), (498, 1));
        assert_eq!(account.held_of(MemoryPart::Changes), 0);
        // What is fetched in time stays apart.
        give(&mut captured, [change(7, 600, 1)]);
        give(&mut captured, [change(8, 601, 1)]);
        assert_eq!(self::told(&captured.fetch()), [(7, 600, 1), (8, 601, 1)]);
    }

    #[test]
    fn what_cannot_be_summed_up_ends_its_dataflow() {
        for when_full in [WhenFull::Coalesce, WhenFull::End] {
            let accounts = Accounts::default();
            let account = accounts.open();
            let mut captured = Captured::new(bounds(2_000, when_full), account.clone());
            (1..500).for_each(|time| give(&mut captured, [change(time, time, 1)]));
            assert_eq!(account.failure().map(|failure| failure.cause), Some(Cause::Buffer));
            assert!(size_bytes(&captured.rows) <= 2_500);
        }
    }

    #[test]
    fn the_first_changes_after_a_fetch_are_taken_however_many_they_are() {
        let accounts = Accounts::default();
        let account = accounts.open();
        let mut captured = Captured::new(bounds(1_000, WhenFull::End), account.clone());
        give(&mut captured, (0..1_000).map(|value| change(value, 1, 1)));
        give(&mut captured, [change(0, 2, -1)]);
        assert!(account.failure().is_none());
        assert_eq!(told(&captured.fetch()).len(), 1_001);
    }

    #[test]
    fn changes_outside_of_the_wanted_times_are_left_out() {
        let bounds = Bounds { from: 2, before: 4, ..Bounds::NONE };
        for only_comes in [false, true] {
            let mut captured = Captured::new(wanted(bounds, only_comes), Accounts::default().open());
            give(&mut captured, (1..6).map(|time| change(time, time, 1)));
            assert_eq!(told(&captured.fetch()), [(2, 2, 1), (3, 3, 1)]);
        }
    }

    #[test]
    fn rows_that_only_come_stay_in_the_order_of_their_times_and_arrival() {
        let mut captured = Captured::new(wanted(Bounds::NONE, true), Accounts::default().open());
        let values: ArrayRef = Arc::new(Int64Array::from(vec![9, 5, 7, 5, 8]));
        let several = Batch::new(vec![values], Times::Column(vec![4, 3, 4, 3, 1].into()), Diffs::Constant(1));
        give(&mut captured, [change(6, 3, 1), several, change(2, 4, 1), change(2, 4, 1)]);
        let fetched = captured.fetch();
        assert!(fetched.only_comes);
        let wanted = [(8, 1), (6, 3), (5, 3), (5, 3), (9, 4), (7, 4), (2, 4), (2, 4)];
        assert_eq!(told(&fetched), wanted.map(|(value, time)| (value, time, 1)));
    }
}
