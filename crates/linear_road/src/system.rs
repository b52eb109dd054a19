//! The program at work: seconds in, answers out.
//!
//! Law: all answers to the rows of a second are given by the call that hands the second over. Rows
//! go to the shards in equal pieces, wherever they come from: what belongs together is moved by the
//! program.

use anabranch_batch::{Batch, Time};
use anabranch_engine::Error;
use anabranch_shards::{Carry, Layout, Moved, Processes, ShardRun};

use crate::answer::TollAnswer;
use crate::history::History;
use crate::program::{HISTORY, KeptRows, ROWS, columns, program};
use crate::row::{Row, RowKind, Second};

/// How the program runs.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// Expressways: rows of others are errors.
    pub expressways: u32,
    /// Where balances are kept.
    pub keep: KeptRows,
    /// Shards, a thread each.
    pub layout: Layout,
    /// How rows cross between them.
    pub carry: Carry,
}

impl Setup {
    /// So many expressways in so many shards of one process.
    pub fn new(expressways: u32, shards: usize) -> Setup {
        Setup { expressways, keep: KeptRows::default(), layout: Layout::flat(shards), carry: Carry::Batches }
    }
}

/// See the [module's page](self).
pub struct System {
    run: ShardRun,
    shards: usize,
    counts: Counts,
}

/// What a system has taken and given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Position reports.
    pub reports: u64,
    /// Queries of types 2, 3, 4; those of type 4 are dropped.
    pub queries: [u64; 3],
    /// Reports refused, since their vehicle had reported in that second.
    pub refused: u64,
    /// Answers of each type.
    pub answers: [u64; 4],
}

impl System {
    /// Sets the program to work.
    ///
    /// # Errors
    /// `Unavailable` when threads cannot be had.
    pub fn start(setup: Setup, history: &History) -> Result<System, Error> {
        System::begin(program(setup.expressways, setup.keep, setup.layout).run_with(setup.carry)?, history)
    }

    /// Sets the program to work in several processes, of which this one is number 0. The others
    /// [serve](System::serve_in). Rows cross as bytes, whatever the setup says.
    ///
    /// # Errors
    /// As for [`start`](System::start); `Invalid` when the layout has another number of processes;
    /// `Unavailable` when one goes away.
    pub fn start_in(setup: Setup, history: &History, processes: Processes) -> Result<System, Error> {
        System::begin(program(setup.expressways, setup.keep, setup.layout).run_in(processes)?, history)
    }

    /// Works at the shards of this process until the system of process 0 is dropped.
    ///
    /// # Errors
    /// As for [`start_in`](System::start_in).
    pub fn serve_in(setup: Setup, processes: Processes) -> Result<(), Error> {
        program(setup.expressways, setup.keep, setup.layout).serve_in(processes)
    }

    fn begin(mut run: ShardRun, history: &History) -> Result<System, Error> {
        let shards = run.shards();
        run.push(HISTORY, 0, columns::history_batch(history))?;
        (0..shards).try_for_each(|shard| run.advance(HISTORY, shard, Time::MAX))?;
        Ok(System { run, shards, counts: Counts::default() })
    }

    /// Takes the rows of a second, which is the one after the last, and returns all answers to
    /// them, as batches.
    ///
    /// # Errors
    /// `Data` when a row names an expressway or a segment that is not there.
    pub fn take(&mut self, second: &Second) -> Result<Vec<Batch>, Error> {
        self.hand_over(second)?;
        self.complete(second.time)
    }

    /// As [`take`](System::take); the answers are read.
    ///
    /// # Errors
    /// As for `take`.
    pub fn answer(&mut self, second: &Second) -> Result<Vec<TollAnswer>, Error> {
        read(&self.take(second)?)
    }

    /// Takes the rows of several seconds at once, and returns all answers to them.
    ///
    /// # Errors
    /// As for `take`.
    pub fn answer_all(&mut self, seconds: &[Second]) -> Result<Vec<TollAnswer>, Error> {
        read(&self.take_all(seconds)?)
    }

    /// As [`answer_all`](System::answer_all); the answers stay batches.
    ///
    /// # Errors
    /// As for `take`.
    pub fn take_all(&mut self, seconds: &[Second]) -> Result<Vec<Batch>, Error> {
        seconds.iter().try_for_each(|second| self.hand_over(second))?;
        match seconds.last() {
            Some(last) => self.complete(last.time),
            None => Ok(Vec::new()),
        }
    }

    /// What was taken and given.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// What each step of the program moved.
    pub fn moved(&self) -> Vec<(&'static str, Moved)> {
        self.run.moved()
    }

    fn hand_over(&mut self, second: &Second) -> Result<(), Error> {
        self.counts.refused += second.n_refused as u64;
        for row in &second.rows {
            match row.kind {
                RowKind::Report => self.counts.reports += 1,
                other => self.counts.queries[usize::from(other.number()) - 2] += 1,
            }
        }
        let piece = second.rows.len().div_ceil(self.shards).max(1);
        let pieces: Vec<&[Row]> = second.rows.chunks(piece).collect();
        for (shard, rows) in pieces.into_iter().enumerate() {
            self.run.push(ROWS, shard, columns::batch(second.time, rows))?;
        }
        Ok(())
    }

    /// Second `time` is over.
    fn complete(&mut self, time: u32) -> Result<Vec<Batch>, Error> {
        (0..self.shards).try_for_each(|shard| self.run.advance(ROWS, shard, i64::from(time) + 1))?;
        let batches: Vec<Batch> = self.run.drain()?.shards.into_iter().flatten().collect();
        for batch in &batches {
            for (count, n) in self.counts.answers.iter_mut().zip(columns::kinds(batch)) {
                *count += n;
            }
        }
        Ok(batches)
    }
}

/// The answers in batches.
///
/// # Errors
/// `Internal` when a row is no answer.
pub fn read(batches: &[Batch]) -> Result<Vec<TollAnswer>, Error> {
    let mut answers = Vec::new();
    batches.iter().try_for_each(|batch| columns::answers(batch).map(|more| answers.extend(more)))?;
    Ok(answers)
}
