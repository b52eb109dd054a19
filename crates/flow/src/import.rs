//! Sources of a dataflow: what other dataflows and inputs already hold, and then what they get.
//!
//! Law: an import as of time `t` yields updates that accumulate, at every time from `t` on, to the
//! collection it reads; all its times are at least `t`. History comes consolidated, as one snapshot
//! at `t`, and everything after `t` follows once.
//!
//! A *stream* import is for operators that look at each change. It reads a large history in
//! portions, one each time it is scheduled, so that other dataflows go on; the frontier waits
//! meanwhile, and changes are queued. It holds the arrangement's compaction only until the history
//! is read. (Operators that look keys up share the runs themselves: [`crate::runs`].)
//!
//! A stream import moves times inside its [`Horizon`] up to the end of it: a batch of a hundred
//! thousand times of which only the last will be seen is then a batch of one time for every
//! operator behind. Operators answer at every time from what came until then, so the answers from
//! the horizon on are the same. Source: compaction by a frontier of readers, as in "Shared
//! arrangements" (VLDB 2020), section 4.2, applied before work is done instead of after.
//!
//! Of several workers each gets all rows of an input, and takes its own: a piece of each batch, or,
//! where they are *dealt out* ([`Dealing`]), those that it has by the hash of the key that the
//! operators behind want. Then nothing has to move.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use anabranch_arrangement::{Follower, Reader, Snapshot};
use anabranch_batch::{Batch, END, ShardNumber, Time, Times, at_home, gather, hash};
use arrow::array::ArrayRef;

use crate::account::midway;
use crate::chain::Chain;
pub use crate::dealt::SharedFilter;
use crate::dealt::WantedRows;
use crate::drive::{HeldCapability, advanced_to};
use crate::line::{Feed, Frontiers};
use crate::opening::{Edges, Open};
use crate::pulled::Pulled;
use crate::relay::{RelayedBatch, Subscriber};
use crate::scope::Scope;
use crate::tactic::Output;
use crate::waker::Waker;

/// Rows of history that one scheduling of an import reads: a few milliseconds, with what is done to
/// them downstream.
const ROWS_PER_TURN: usize = 1 << 15;
/// Rows of the first of these turns, which tells how long they take.
const FIRST_ROWS: usize = 1 << 6;
/// After a shorter turn the next one reads more,
const SHORT_TURN: Duration = Duration::from_millis(4);
/// after a longer one fewer rows.
const LONG_TURN: Duration = Duration::from_millis(50);

/// Times after the first and before the second are the same to all who read a dataflow. Shared by
/// its imports, and moved by the session, which knows the readers.
///
/// No reader begins between the two: who begins at a time takes what was until then from an
/// arrangement, and what comes after from elsewhere.
pub type Horizon = Rc<Cell<(Time, Time)>>;

/// A horizon that lets every time be.
pub fn no_horizon() -> Horizon {
    Rc::new(Cell::new((Time::MIN, Time::MIN)))
}

/// What to import as a stream.
pub struct StreamImport {
    /// Of the relation, for logs.
    pub name: String,
    /// History is read as of this time.
    pub as_of: Time,
    /// Where the history is; `None` starts without any.
    pub history: Option<Reader>,
    /// Where what follows comes from; `None` listens to the `history` arrangement.
    pub live: Option<Subscriber>,
    /// Times inside it are moved up to its end.
    pub horizon: Horizon,
    /// Positions of the columns wanted, in output order.
    pub columns: Vec<usize>,
    /// Whether the rows are a collection's rows or its row errors.
    pub content: Content,
    /// How rows of an input are dealt out to workers; `None` does so in pieces. History is to be
    /// where that has its rows.
    pub dealing: Option<Dealing>,
}

/// Rows of an input are the worker's by the hash of a key.
pub struct Dealing {
    /// Which of the workers this is.
    pub shard: ShardNumber,
    /// What is done to all rows before, on each worker: it costs less than moving rows.
    pub before: Option<SharedFilter>,
    /// Columns of what it makes.
    pub key: Vec<usize>,
    /// If rows can be made fewer where they are: columns, before that, by whose hash batches are
    /// dealt out only where there are many values of them. All workers find the same.
    pub unless_few: Option<Vec<usize>>,
}

/// Rows that tell whether there are many values.
const SAMPLED_ROWS: usize = 256;

impl Dealing {
    /// Whether rows of a batch are dealt out by the key. `columns` are those of the batch that are
    /// read.
    fn is_for(&self, batch: &Batch, columns: &[usize]) -> bool {
        let Some(of_key) = &self.unless_few else { return true };
        if batch.len() < SAMPLED_ROWS {
            return false;
        }
        let rows: Vec<u32> = (0..SAMPLED_ROWS).map(|at| (batch.len() * at / SAMPLED_ROWS) as u32).collect();
        let key: Vec<ArrayRef> = of_key.iter().map(|&column| Arc::clone(batch.column(columns[column]))).collect();
        let mut hashes = hash::hash_columns(&gather::take(&key, &rows), rows.len());
        hashes.sort_unstable();
        hashes.dedup();
        4 * hashes.len() >= 3 * SAMPLED_ROWS
    }

    /// Gives what is this worker's of a batch that all have.
    fn deal(&mut self, batch: Batch, out: &mut Output) {
        let Dealing { shard, before, key, .. } = self;
        let home = |batch: Batch, out: &mut Output| {
            let batch = at_home(batch, key, *shard);
            if !batch.is_empty() {
                out.give_rows(batch);
            }
        };
        let Some(before) = before else { return home(batch, out) };
        let mut made = Output::default();
        (before.apply)(batch, &mut made);
        made.rows.into_iter().for_each(|batch| home(batch, out));
        // (All workers have the same errors.)
        made.errors.into_iter().filter(|_| shard.index() == 0).for_each(|batch| out.give_errors(batch));
    }
}

/// What the rows of an imported arrangement mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Rows of the collection.
    Rows,
    /// Messages of its row errors.
    Errors,
}

/// Brings collections, or the rows and the row errors of one, into a dataflow together.
///
/// # Panics
/// Without an import.
pub fn import(scope: Scope<'_>, imports: Vec<StreamImport>) -> Chain<'_> {
    let as_of = imports.iter().map(|import| import.as_of).min().expect("something is imported");
    let open: Open<'_> = Box::new(move |opening| {
        let imports = imports.into_iter().map(|import| ImportState::new(import, opening.waker()));
        Box::new(Imports(imports.collect()))
    });
    Chain::of_feed(scope, "Import", as_of, Edges::None, open)
}

/// Imports as a feed.
struct Imports(Vec<ImportState>);

impl Feed for Imports {
    fn pull(&mut self, _frontiers: &Frontiers, _hold: &mut HeldCapability, pulled: &mut Pulled) {
        for import in &mut self.0 {
            let upper = import.pull(&mut pulled.out);
            pulled.reach(upper, (upper < END).then_some(upper));
            pulled.has_more |= import.has_more();
        }
    }
}

/// Rows that are there from `as_of` on, and do not change.
pub fn constant(scope: Scope<'_>, as_of: Time, rows: Option<Batch>) -> Chain<'_> {
    let rows = rows.map(|rows| rows.with_times(Times::Constant(as_of)));
    let open: Open<'_> = Box::new(move |_| Box::new(Constant(rows)));
    Chain::of_feed(scope, "Constant", as_of, Edges::None, open)
}

/// Rows that are brought once.
struct Constant(Option<Batch>);

impl Feed for Constant {
    fn pull(&mut self, _frontiers: &Frontiers, _hold: &mut HeldCapability, pulled: &mut Pulled) {
        self.0.take().into_iter().for_each(|rows| pulled.out.give_rows(rows));
    }
}

/// An import at work.
pub(crate) struct ImportState {
    as_of: Time,
    /// What comes has no time before this.
    upper: Time,
    /// Until it begins to be read.
    history: Option<Reader>,
    /// While it is being read.
    snapshot: Option<Snapshot>,
    pace: ReadPace,
    /// Wakes us when the history is complete, and feeds us afterwards unless there is a relay.
    follower: Option<Follower>,
    relay: Option<Subscriber>,
    horizon: Horizon,
    columns: Vec<usize>,
    content: Content,
    dealing: Option<Dealing>,
}

impl ImportState {
    pub fn new(import: StreamImport, waker: &Waker) -> ImportState {
        let follower = import.history.as_ref().map(|history| {
            let wake = waker.clone();
            history.follow(import.as_of, Some(Box::new(move || wake.wake())))
        });
        if let Some(relay) = &import.live {
            relay.wake_with(waker.clone());
        }
        ImportState {
            as_of: import.as_of,
            upper: Time::MIN,
            history: import.history,
            snapshot: None,
            pace: ReadPace::default(),
            follower,
            relay: import.live,
            horizon: import.horizon,
            columns: import.columns,
            content: import.content,
            dealing: import.dealing,
        }
    }

    /// Whether history is being read: to be called again.
    pub fn has_more(&self) -> bool {
        self.snapshot.is_some()
    }

    /// Brings what has come, and returns the frontier behind it.
    pub fn pull(&mut self, out: &mut Output) -> Time {
        if let Some(upper) = self.idle_upper() {
            self.upper = upper;
            return upper;
        }
        let mut batches = Vec::new();
        if let Some(history) = &self.history {
            if history.upper() <= self.as_of {
                return self.as_of;
            }
            self.snapshot = Some(Snapshot::loose(history.layout(), history.runs_until(self.as_of), self.as_of));
            self.history = None;
        }
        if let Some(snapshot) = &mut self.snapshot {
            let portion = snapshot.next_portion(self.pace.next_rows()).unwrap_or_default();
            if !snapshot.is_done() {
                self.give(portion, out);
                return self.as_of;
            }
            self.snapshot = None;
            batches = portion;
        }
        let (live, upper) = match (&mut self.relay, &mut self.follower) {
            (Some(relay), _) => {
                self.follower = None;
                relay.drain()
            }
            (None, Some(follower)) => {
                let (batches, upper) = follower.drain();
                (batches.into_iter().map(RelayedBatch::whole).collect(), upper)
            }
            (None, None) => (vec![], END),
        };
        self.give(batches, out);
        // (No update has the least time.)
        let is_all = self.upper > self.as_of || self.as_of == Time::MIN;
        let is_input = self.relay.is_some();
        for arrival in live {
            let dealing = self.dealing.as_ref().filter(|_| is_input);
            let is_dealt = dealing.is_some_and(|dealing| dealing.is_for(&arrival.batch, &self.columns));
            if is_dealt && is_all && self.give_shared(&arrival, out) {
                continue;
            }
            let batch = if is_dealt { arrival.batch } else { arrival.piece() };
            let batch = if is_all { batch } else { batch.after(self.as_of) };
            self.give_batch(batch, is_dealt, out);
        }
        self.upper = upper;
        upper
    }

    /// Gives this worker's rows of a batch as all workers and imports deal it out together; `false`
    /// if they cannot.
    fn give_shared(&self, arrival: &RelayedBatch, out: &mut Output) -> bool {
        let Some(Dealing { shard, before, key, .. }) = &self.dealing else { return false };
        if self.content != Content::Rows || arrival.batch.present().is_some() {
            return false;
        }
        let read = |columns: &[usize], of: &[usize]| columns.iter().map(|column| of[*column]).collect::<Vec<_>>();
        let columns = match before {
            Some(filter) => read(&filter.kept, &self.columns),
            None => self.columns.clone(),
        };
        let key = read(key, &columns);
        let filter = before.as_ref().map(|filter| (filter, self.columns.as_slice()));
        let wanted = WantedRows { columns: &columns, key: &key, filter, shard: *shard };
        let Some(batch) = arrival.dealt(&wanted) else { return false };
        if !batch.is_empty() {
            out.give_rows(moved(batch, self.horizon.get()));
        }
        true
    }

    /// The frontier, if there is nothing to bring.
    fn idle_upper(&self) -> Option<Time> {
        let follower = self.follower.as_ref().filter(|_| self.relay.is_none())?;
        let is_idle = self.history.is_none() && self.snapshot.is_none() && !follower.has_news();
        is_idle.then(|| follower.upper())
    }

    /// Gives rows that are this worker's.
    fn give(&mut self, batches: Vec<Batch>, out: &mut Output) {
        batches.into_iter().for_each(|batch| self.give_batch(batch, false, out));
    }

    /// Gives rows that are this worker's, or are to be dealt out if they are to be dealt out.
    fn give_batch(&mut self, batch: Batch, is_dealt: bool, out: &mut Output) {
        if batch.is_empty() {
            return;
        }
        let batch = moved(batch.project(&self.columns), self.horizon.get());
        match (self.content, &mut self.dealing) {
            (Content::Rows, Some(dealing)) if is_dealt => dealing.deal(batch, out),
            (Content::Rows, Some(Dealing { before: Some(before), .. })) => (before.apply)(batch, out),
            (Content::Rows, _) => out.give_rows(batch),
            (Content::Errors, _) => out.give_errors(batch),
        }
    }
}

/// How many rows of a history are read in a turn: few at first, and more while turns are short.
/// What is computed of a row may take as long as a whole turn should. (The time of other turns
/// between two of these does not count.)
#[derive(Default)]
struct ReadPace {
    /// Rows of the turn before, once there was one.
    rows: Option<usize>,
    /// How long the turn before took, once it is over.
    took: Rc<Cell<Option<Duration>>>,
}

impl ReadPace {
    /// Rows of the turn that runs.
    fn next_rows(&mut self) -> usize {
        let rows = match (self.rows, self.took.take()) {
            (None, _) => FIRST_ROWS,
            (Some(rows), Some(took)) if took > LONG_TURN => (rows / 8).max(1),
            (Some(rows), Some(took)) if took > SHORT_TURN => rows,
            // (A turn of no account is not timed.)
            (Some(rows), _) => (rows * 8).min(ROWS_PER_TURN),
        };
        self.rows = Some(rows);
        midway::time(&self.took);
        rows
    }
}

/// The batch with times that lie between two moved up to the second.
fn moved(batch: Batch, (after, until): (Time, Time)) -> Batch {
    match batch.times() {
        _ if until == Time::MIN => batch,
        times if times.min() > after => advanced_to(batch, until),
        Times::Constant(_) => batch,
        Times::Column(times) => {
            let moved = times.iter().map(|&time| if after < time && time < until { until } else { time });
            let moved = Times::Column(moved.collect()).simplify();
            batch.with_times(moved)
        }
    }
}
