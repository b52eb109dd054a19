//! Turns: sources are read, and the workers run.
//!
//! Law: what one turn reads from all sources is one commit. A source whose rows do not fit its
//! columns, or whose reader fails, stops with that error; the others and the session go on.

use std::collections::BTreeSet;
use std::time::Duration;

use anabranch_batch::{Batch, Diffs, Times};
use arrow::array::RecordBatch;

use super::commit::target;
use super::durable::SOURCE;
use super::outcome::{SourceState, SourceStatus, StepStatus};
use super::sealed::SealedFact;
use super::state::Session;
use super::state::progress::Progress;
use crate::catalog::Arrival;
use crate::coerce::coerce;
use crate::error::Error;
use crate::pump::Pumping;

/// Runs of the workers in one turn, when they have no thread of their own.
const WORKER_RUNS_MAX: usize = 64;
/// A database is quiet when its last commit was so long ago.
const QUIET_MICROS: i64 = 20_000;
/// How long sources wait before they look again whether they may go on.
const HOLD_PAUSE: Duration = Duration::from_millis(2);
/// Longest sleep while waiting, so that interrupts are seen.
const NAP_MAX: Duration = Duration::from_millis(20);

impl Session {
    /// One turn: lets the workers run, then reads from each source that is due, at most
    /// [`batch_rows_max`](super::Options::batch_rows_max) rows each, as one commit.
    ///
    /// # Errors
    /// `Cancelled` when interrupted while waiting for workers. A failing source is not an error
    /// here: see [`sources`](Self::sources).
    pub fn step(&mut self) -> Result<StepStatus, Error> {
        self.forget_interrupt();
        self.turn()
    }

    /// One turn of a statement that takes several; an interrupt of the statement stays.
    pub(super) fn turn(&mut self) -> Result<StepStatus, Error> {
        self.cluster.take_down_failed();
        self.commit_pending()?;
        if self.run_workers() {
            return Ok(StepStatus::Working);
        }
        self.keep_workers_near()?;
        let now = self.options.clock.now_micros();
        // (Also when memory is short: that is what subscribers look at then.)
        let reading = self.read_system_when_due(now)?;
        if self.holds_sources() {
            return Ok(StepStatus::Idle { retry_after: Some(HOLD_PAUSE) });
        }
        let mut retry_at: Option<i64> = [self.tick_when_due(now)?, reading].into_iter().flatten().min();
        let mut worked = false;
        for name in self.pump.running() {
            match self.read_source(&name, now) {
                SessionTurn::Read => worked = true,
                SessionTurn::Ended => worked = true,
                SessionTurn::Later(at) => retry_at = Some(retry_at.map_or(at, |other| other.min(at))),
            }
        }
        if worked {
            let committed = self.commit_pending();
            if let Err(error) = &committed {
                // The rows that were read are lost: reading on would leave a gap.
                self.pump.fail_running(error);
            }
            self.publish_progress();
            committed?;
            self.flush();
            return Ok(StepStatus::Working);
        }
        retry_at = [retry_at, self.compact_when_quiet(now)].into_iter().flatten().min();
        let retry_after = retry_at.map(|at| Duration::from_micros(u64::try_from(at - now).unwrap_or(0)));
        Ok(StepStatus::Idle { retry_after })
    }

    /// Lets arrangements forget, unless connections commit all the time: then that is done every
    /// few commits. Tells when to look again.
    fn compact_when_quiet(&mut self, now: i64) -> Option<i64> {
        let quiet_from = self.timeline.last().saturating_add(QUIET_MICROS);
        if self.serves_many && self.timeline.has_unforgotten() && now < quiet_from {
            return Some(quiet_from);
        }
        self.allow_compaction();
        None
    }

    /// Reads all bounded sources to their end, and waits until every view is current.
    ///
    /// # Errors
    /// `Data` when a source failed, after the others were read; `Cancelled` when interrupted.
    pub fn wait(&mut self) -> Result<(), Error> {
        self.begin_statement()?;
        self.keep_unread_sources()?;
        self.pump_while(|status| status.bounded)?;
        self.await_dataflows(self.timeline.last())?;
        let failed = self.pump.statuses().into_iter().find_map(|status| match status.state {
            SourceState::Failed(message) => Some(format!("source \"{}\" failed: {message}", status.name)),
            _ => None,
        });
        failed.map_or(Ok(()), |message| Err(Error::data(message)))
    }

    /// Where each source stands.
    pub fn sources(&self) -> Vec<SourceStatus> {
        self.pump.statuses()
    }

    /// A view of [`sources`](Self::sources) for other threads.
    pub fn progress(&self) -> Progress {
        self.progress.clone()
    }

    /// Reads these sources to their end, unless they have none or a rate.
    pub(super) fn read_to_end(&mut self, names: &BTreeSet<String>) -> Result<(), Error> {
        self.pump_while(|status| names.contains(&status.name) && status.bounded && status.rate.is_none())
    }

    /// Takes turns while a source like that still reads.
    fn pump_while(&mut self, which: impl Fn(&SourceStatus) -> bool) -> Result<(), Error> {
        self.pump.hurry(&which, self.options.clock.now_micros());
        while self.pump.any_running(&which) {
            self.interrupt.check()?;
            if self.hands_over() {
                return Err(self.try_again());
            }
            if let StepStatus::Idle { retry_after } = self.turn()? {
                std::thread::sleep(retry_after.unwrap_or(NAP_MAX).min(NAP_MAX));
            }
        }
        Ok(())
    }

    /// Lets workers without a thread run a while; true when they have more to do.
    fn run_workers(&mut self) -> bool {
        (0..WORKER_RUNS_MAX).all(|_| self.cluster.step())
    }

    fn read_source(&mut self, name: &str, now: i64) -> SessionTurn {
        let rows_max = self.settings.batch_rows_max;
        let Some(source) = self.pump.get_mut(name) else { return SessionTurn::Ended };
        let pumped = match source.poll(rows_max, now) {
            Ok(Pumping::Rows(batch)) => self.push_source_rows(name, &batch),
            Ok(Pumping::Later(at)) => return SessionTurn::Later(at),
            Ok(Pumping::Ended) => {
                self.note_stand(name);
                return SessionTurn::Ended;
            }
            Err(error) => Err(error),
        };
        match (pumped, self.pump.get_mut(name)) {
            (Err(error), Some(source)) => {
                source.fail(&error);
                SessionTurn::Ended
            }
            _ => {
                self.note_stand(name);
                SessionTurn::Read
            }
        }
    }

    fn push_source_rows(&mut self, name: &str, batch: &RecordBatch) -> Result<(), Error> {
        let object = self.catalog.get(name)?;
        let columns = coerce(target(object), batch, |_, _| Ok(None))?;
        let time = self.begin_commit();
        let rows = Batch::with_len(columns.into(), batch.num_rows(), Times::Constant(time), Diffs::Constant(1));
        let rows = self.admit(name, rows, Arrival::InOrder)?;
        self.push(name, rows)
    }

    /// Records, with the rows that a source gave, where it goes on.
    fn note_stand(&mut self, name: &str) {
        let (Some(object), Some(source)) = (self.catalog.find(name), self.pump.get_mut(name)) else { return };
        if let Some(stand) = source.stand() {
            self.stage_fact(SealedFact { object: object.id, name: SOURCE, value: stand.to_bytes() });
        }
    }

    /// Shows other threads where the sources stand.
    pub(super) fn publish_progress(&self) {
        self.progress.publish(self.pump.statuses());
    }
}

enum SessionTurn {
    Read,
    Ended,
    Later(i64),
}
