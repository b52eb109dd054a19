//! What a session tells its workers: plain data that can be sent to threads.

use std::collections::BTreeMap;
use std::sync::Arc;

use anabranch_batch::{Batch, Time};
use anabranch_flow::sink::Bounds;
use anabranch_plan::Plan;
use anabranch_plan::bounds::{Bound, Promises};
use arrow::array::ArrayRef;

/// A set of rows that changes: an input or what a dataflow exports. Assigned by the session, never
/// reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CollectionId(pub u64);

/// An arrangement, the same on all workers (each holds its shard). Assigned by the session, never
/// reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ArrangementId(pub u64);

/// An installed dataflow. Assigned by the session, never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DataflowId(pub u64);

/// A dataflow to install.
#[derive(Clone, Debug)]
pub struct DataflowSpec {
    /// Its number.
    pub dataflow: DataflowId,
    /// For logs and errors.
    pub name: String,
    /// What it computes.
    pub plan: Arc<Plan>,
    /// How each relation that the plan scans is to be read.
    pub reads: BTreeMap<String, Read>,
    /// The history of what it reads is taken as of this time; its results are right from here on.
    pub as_of: Time,
    /// Arrangements of the plan's output that others may read.
    pub exports: Vec<Export>,
    /// What of the plan's output is collected.
    pub egress: Egress,
}

/// What of a plan's output is collected for the caller that installed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Egress {
    /// Nothing: its arrangements are read.
    Nothing,
    /// The consolidated changes, for [`Cluster::changes`](super::Cluster::changes).
    Changes(Bounds),
    /// The events as they are, for [`Cluster::events`](super::Cluster::events).
    Events,
}

/// How a relation is read.
#[derive(Clone, Debug)]
pub struct Read {
    /// Its number.
    pub collection: CollectionId,
    /// Whether it was made by [`Cluster::create_input`](super::Cluster::create_input).
    pub is_input: bool,
    /// Arrangements of it that exist, each with its key columns (positions in the relation's
    /// schema). The first one is read for the history. An input without any is read from here on
    /// only.
    pub arrangements: Vec<(ArrangementId, Vec<usize>)>,
    /// Positions of the enforced primary key; empty without one.
    pub primary_key: Vec<usize>,
    /// What is known of changes to come.
    pub promises: Promises,
}

/// Rows of an input that are below a bound: no change of them will come.
#[derive(Clone, Debug)]
pub struct LimitStep {
    /// Number of the input.
    pub input: usize,
    /// Position in the input's rows; in those of the arrangement where the input is one.
    pub column: usize,
    /// In ticks of the column.
    pub below: Bound,
}

/// An arrangement to make of a plan's output.
#[derive(Clone, Debug)]
pub struct Export {
    /// Its number.
    pub arrangement: ArrangementId,
    /// Key columns, positions in the plan's schema.
    pub key: Vec<usize>,
    /// Whether it is a part of queries, and nothing that has a name: while no query looks into it,
    /// its rows need not be kept.
    pub is_part: bool,
}

/// A question to an arrangement.
#[derive(Clone, Debug)]
pub struct Peek {
    /// Its number.
    pub arrangement: ArrangementId,
    /// The time of the contents wanted.
    pub at: Time,
    /// Which of its rows are wanted.
    pub rows: WantedKeys,
}

/// Which rows of an arrangement are wanted.
#[derive(Clone, Debug)]
pub enum WantedKeys {
    /// All.
    All,
    /// Those with one of these keys: its columns, in the order of the export's key.
    Keys(Vec<ArrayRef>),
    /// Those whose key begins with one of these: its first columns, fewer than all, in the order of
    /// the export's key.
    Prefixes(Vec<ArrayRef>),
    /// At least those whose key has these hashes, the last included.
    Hashes(u64, u64),
}

/// The contents of an arrangement at a time.
#[derive(Clone, Debug, Default)]
pub struct PeekResult {
    /// Consolidated rows with their multiplicities; all columns of the collection.
    pub batches: Vec<Batch>,
    /// Row errors of the collection at that time, with multiplicities.
    pub errors: Vec<(String, i64)>,
}

impl PeekResult {
    /// The answers of all workers as one.
    pub(crate) fn of_parts(parts: impl IntoIterator<Item = PeekResult>) -> PeekResult {
        let mut result = PeekResult::default();
        let mut errors: BTreeMap<String, i64> = BTreeMap::new();
        for part in parts {
            result.batches.extend(part.batches);
            for (message, diff) in part.errors {
                *errors.entry(message).or_default() += diff;
            }
        }
        result.errors = errors.into_iter().filter(|(_, diff)| *diff != 0).collect();
        result
    }
}

/// Changes of a subscribed plan.
#[derive(Clone, Debug)]
pub struct ChangeSpec {
    /// Each worker's in order of time, all before `upper`; consolidated, unless they only come.
    pub batches: Vec<Batch>,
    /// Row errors: time, message, diff.
    pub errors: Vec<(Time, String, i64)>,
    /// Complete before this time.
    pub upper: Time,
    /// Changes at earlier times, which were not fetched, were moved to this one.
    pub coalesced: Time,
    /// Whether equal rows may be there several times at one time.
    pub only_comes: bool,
}

impl Default for ChangeSpec {
    /// None, on no worker.
    fn default() -> ChangeSpec {
        ChangeSpec { batches: vec![], errors: vec![], upper: Time::MIN, coalesced: Time::MIN, only_comes: false }
    }
}

/// What an arrangement holds, summed over workers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrangementStats {
    /// Its number.
    pub arrangement: ArrangementId,
    /// Updates held.
    pub rows: usize,
    /// Bytes that its runs own.
    pub bytes: usize,
    /// Immutable runs, the largest count of a worker.
    pub runs: usize,
    /// Readers on a worker, the session itself included.
    pub readers: usize,
    /// Readable from this time: what the session has asked for, and what can be read as of.
    pub readable: Time,
    /// Compacted up to this time, at most `readable`: history before it is gone.
    pub since: Time,
    /// The name of the reader that compaction waits for.
    pub slowest_reader: String,
    /// Complete before this time.
    pub upper: Time,
}

impl ArrangementStats {
    /// Adds another worker's share.
    pub(super) fn add(&mut self, other: &ArrangementStats) {
        self.rows += other.rows;
        self.bytes += other.bytes;
        self.runs = self.runs.max(other.runs);
        self.readers = self.readers.max(other.readers);
        if other.since < self.since {
            self.slowest_reader.clone_from(&other.slowest_reader);
        }
        self.readable = self.readable.max(other.readable);
        self.since = self.since.min(other.since);
        self.upper = self.upper.min(other.upper);
    }
}
