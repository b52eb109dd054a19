//! What a client hears of a run while it works: its results as they come, and its progress.
//!
//! Law: a subscriber gets what [`ShardRun::drain`] would return, in the order in which it comes out
//! of each shard, and each change once. Progress is of now for what is done in this process, and of
//! when they were last at rest for other processes; nothing waits for a shard to be told. Source:
//! Quill 3.4 (`Subscribe`) and 5.3 (errors and progress come back to the client).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anabranch_batch::{Batch, Time};
use anabranch_engine::Error;
use anabranch_engine::connector::ReadProgress;
use anabranch_engine::frame::Item;

use crate::counts::ShardCounts;
use crate::message::Said;
use crate::run::{RunOutcome, ShardRun};
use crate::tasks::Tasks;
use crate::traffic::Traffic;

/// Takes the changes of a shard.
pub(crate) type Subscriber = Box<dyn FnMut(usize, &Batch) + Send>;

/// How far a source of a run has come.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SourceProgress {
    /// Its name.
    pub name: String,
    /// Rows that were pushed.
    pub rows: u64,
    /// For each shard, before which time no row will come.
    pub frontiers: Vec<Time>,
    /// Bytes that were read, and in all, of what is [played](ShardRun::play); 0 if it is not told.
    pub bytes: (u64, u64),
}

impl SourceProgress {
    /// Which part of a bounded input was read, from 0 to 1, if it is known how much there is.
    pub fn share(&self) -> Option<f64> {
        let (read, total) = self.bytes;
        (total > 0).then(|| (read as f64 / total as f64).min(1.0))
    }
}

/// How far a run has come.
#[derive(Clone, Debug, Default)]
pub struct RunProgress {
    /// No further event of the result lies before this time; the least time before there is one.
    pub frontier: Time,
    /// How far the sources have come.
    pub sources: Vec<SourceProgress>,
    /// Messages that wait at the shards of this process.
    pub queued: usize,
    /// Rows that are in error, as of the last call of the run that looked.
    pub row_errors: u64,
    /// What has ended the run, with the shard.
    pub failed: Option<Error>,
}

/// What the client has said to a run.
#[derive(Debug, Default)]
pub(crate) struct Told {
    pub sources: Vec<SourceProgress>,
    pub row_errors: u64,
}

/// Tells the progress of a run, on any thread, while the run works.
#[derive(Clone)]
pub struct RunWatch {
    traffic: Arc<Traffic>,
    told: Arc<Mutex<Told>>,
    /// The step whose rows are the result.
    result: usize,
}

impl RunWatch {
    pub(crate) fn new(traffic: Arc<Traffic>, tasks: &Tasks, shards: usize) -> RunWatch {
        let of_source =
            |name: String| SourceProgress { name, frontiers: vec![Time::MIN; shards], ..Default::default() };
        let sources = tasks.list.iter().map(|task| of_source(task.source_name().unwrap_or_default().to_owned()));
        let told = Told { sources: sources.collect(), row_errors: 0 };
        let result = tasks.list.iter().position(|task| task.readers.is_empty()).unwrap_or_default();
        RunWatch { traffic, told: Arc::new(Mutex::new(told)), result }
    }

    /// How far the run has come.
    pub fn progress(&self) -> RunProgress {
        let counts = &self.traffic.counts;
        let frontier = |counts: &ShardCounts| counts.steps().get(self.result).map_or(Time::MIN, |step| step.frontier);
        let told = self.told();
        RunProgress {
            frontier: counts.iter().map(frontier).min().unwrap_or(Time::MIN),
            sources: told.sources.iter().filter(|source| !source.name.is_empty()).cloned().collect(),
            queued: counts.iter().map(ShardCounts::queued).sum(),
            row_errors: told.row_errors,
            failed: self.traffic.error(),
        }
    }

    /// Rows were pushed into a source, which is a step.
    pub(crate) fn pushed(&self, task: usize, rows: usize) {
        self.told().sources[task].rows += rows as u64;
    }

    /// A source has promised a time in a shard.
    pub(crate) fn promised(&self, task: usize, shard: usize, time: Time) {
        self.told().sources[task].frontiers[shard] = time;
    }

    /// A reader has come so far: `read` is what it had read when it was noted last.
    pub(crate) fn played(&self, task: usize, read: &mut ReadProgress, now: ReadProgress) {
        let bytes = &mut self.told().sources[task].bytes;
        bytes.0 += now.bytes_read.saturating_sub(read.bytes_read);
        bytes.1 += now.bytes_total.unwrap_or_default().saturating_sub(read.bytes_total.unwrap_or_default());
        *read = now;
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        // (Numbers are whole whatever a thread that panicked was about to do.)
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ShardRun {
    /// Has a function take the changes of the result: the shard that they come from, and a batch of
    /// updates. It is called on the thread that pushes, advances or waits, with all that has come
    /// out by then; what it takes is not returned by [`drain`](ShardRun::drain) and
    /// [`finish`](ShardRun::finish) any more. Row errors still are.
    ///
    /// ```
    /// use std::sync::{Arc, Mutex};
    ///
    /// use anabranch_engine::frame::{Event, count_rows};
    /// use anabranch_shards::{Layout, Move, Shards};
    /// use arrow::datatypes::{DataType, Field, Schema};
    ///
    /// let schema = Schema::new(vec![Field::new("ad", DataType::Int64, true)]);
    /// let views = Shards::source("views", schema, Layout::flat(2)).rekey(["ad"]);
    /// let mut run = views.redistribute(Move::FLAT).query(|shard| shard.agg([count_rows().alias("n")])).run()?;
    /// let heard = Arc::new(Mutex::new(0));
    /// let sum = Arc::clone(&heard);
    /// run.subscribe(move |_shard, changes| *sum.lock().expect("no call panics") += changes.len());
    /// run.push("views", 0, vec![Event::point(1, [7i64.into()])])?;
    /// run.finish()?;
    /// assert_eq!(*heard.lock().expect("no call panics"), 2, "the count comes, and goes");
    /// assert_eq!(run.progress().sources[0].rows, 1);
    /// # Ok::<(), anabranch_engine::Error>(())
    /// ```
    pub fn subscribe(&mut self, take: impl FnMut(usize, &Batch) + Send + 'static) {
        self.subscriber = Some(Box::new(take));
        self.take_said();
    }

    /// What has come out since the last call, as [`drain`](ShardRun::drain), without waiting for
    /// the shards.
    ///
    /// # Errors
    /// As for [`drain`](ShardRun::drain).
    pub fn ready(&mut self) -> Result<RunOutcome, Error> {
        self.group.traffic.check()?;
        self.take_ready()
    }

    /// How far the run has come: its result, its sources, what waits, row errors, and what has
    /// ended it.
    pub fn progress(&self) -> RunProgress {
        self.watch.progress()
    }

    /// A handle that tells the [progress](ShardRun::progress) on other threads, while the run
    /// works.
    pub fn watch(&self) -> RunWatch {
        self.watch.clone()
    }

    /// Hands on what has come, if it is subscribed.
    pub(crate) fn tell_subscriber(&mut self) {
        if self.subscriber.is_some() {
            self.take_said();
        }
    }

    /// Takes what the shards have said so far.
    pub(crate) fn take_said(&mut self) {
        while let Ok(Said { shard, item }) = self.group.results.try_recv() {
            match (item, &mut self.subscriber) {
                (Item::Rows(batch), Some(take)) => {
                    self.has_given = true;
                    take(shard, &batch.compact().without_key().flatten());
                }
                (Item::Rows(batch), None) => self.outcome.shards[shard].push(batch),
                (Item::Frontier(time), _) => self.outcome.frontiers[shard] = time,
                (Item::Errors(batch), _) => {
                    self.errors.note(&batch);
                    self.watch.told().row_errors = self.errors.in_force();
                }
            }
        }
    }
}
