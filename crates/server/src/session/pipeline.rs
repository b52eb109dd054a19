//! Statements that a client sends up to Sync: one transaction, as in PostgreSQL.
//!
//! Law: what changes something in a pipeline takes effect at Sync, all of it or nothing. A
//! statement with Sync behind it, and reads before the first change, are transactions of their own:
//! nothing is gained by one that holds them. What takes effect by itself ends the transaction
//! before it, and so do BEGIN and COMMIT.
//!
//! Another transaction may have come first. As long as nothing was sent, the client has seen no
//! answer that would be different now: all statements run again, and their answers take the places
//! of those before.

use std::sync::Arc;

use anabranch_engine::{Error, Together, TransactionState};
use datafusion_common::ScalarValue;

use super::client::{Portal, ServerClient, State, Statement};
use crate::wire::frames::Broken;

/// Statements of a pipeline that can run again; with more, a conflict is told.
const RUNS_MAX: usize = 10_000;
/// How often they run again before the conflict is told.
const TRIES_MAX: u32 = 10;
/// Bytes of answers that are held back in a pipeline.
const HELD_BYTES: usize = 256 << 10;

/// The transaction of a pipeline.
pub(super) struct Pipeline {
    /// What has run, unless it cannot run again.
    runs: Option<Vec<Run>>,
    /// What had been sent when it began.
    n_sent: u64,
    n_tries: u32,
    /// Where the answers end if a statement failed that ran again.
    failed_at: Option<usize>,
}

/// A statement that has run, and its answer's place among the bytes that are held back.
struct Run {
    portal: String,
    statement: Arc<Statement>,
    values: Vec<ScalarValue>,
    formats: Vec<i16>,
    rows_max: usize,
    start: usize,
    end: usize,
}

impl Run {
    /// The portal as it was bound.
    fn again(&self) -> Portal {
        let (statement, values, formats) = (Arc::clone(&self.statement), self.values.clone(), self.formats.clone());
        Portal { statement, values, formats, state: State::Bound }
    }
}

impl ServerClient<'_> {
    /// Opens a transaction where this statement needs one, or ends the one that cannot hold it.
    pub(super) fn enter_pipeline(&mut self, statement: &Statement) -> Result<Result<(), Error>, Broken> {
        let Some(prepared) = &statement.prepared else { return Ok(Ok(())) };
        match (prepared.together(), &self.pipeline) {
            (Together::Alone, Some(_)) => return self.commit_pipeline(),
            (Together::Begins, None)
                if self.connection.transaction() == TransactionState::Idle && !self.frames.is_next(b'S') =>
            {
                self.shared.turns.wait();
                // (It cannot fail: none is open.)
                let _ = self.connection.execute("BEGIN");
                self.pipeline =
                    Some(Pipeline { runs: Some(vec![]), n_sent: self.frames.n_sent(), n_tries: 0, failed_at: None });
            }
            _ => {}
        }
        Ok(Ok(()))
    }

    /// Runs a portal as a part of the pipeline, if there is one.
    pub(super) fn run_in_pipeline(
        &mut self,
        name: &str,
        portal: &mut Portal,
        rows_max: usize,
    ) -> Result<Result<(), Error>, Broken> {
        let is_new = matches!(portal.state, State::Bound);
        let start = self.frames.out.len();
        let result = self.advance(portal, rows_max)?;
        let can_run_again =
            is_new && !matches!(&portal.state, State::Rows(rows) if !rows.is_empty()) && !copies(portal);
        let end = self.frames.out.len();
        let Some(pipeline) = &mut self.pipeline else { return Ok(result) };
        match &mut pipeline.runs {
            Some(runs) if can_run_again && runs.len() < RUNS_MAX => runs.push(Run {
                portal: name.to_owned(),
                statement: Arc::clone(&portal.statement),
                values: portal.values.clone(),
                formats: portal.formats.clone(),
                rows_max,
                start,
                end,
            }),
            _ => pipeline.runs = None,
        }
        match result {
            Err(error) if self.may_run_again(&error) => {
                let shared = self.shared;
                let _turn = shared.turns.take();
                // (It is not among them while it runs.)
                let (statement, values, formats) = (Arc::clone(&portal.statement), vec![], vec![]);
                self.portals.insert(name.to_owned(), Portal { statement, values, formats, state: State::Bound });
                let result = self.run_again()?;
                if let Some(fresh) = self.portals.remove(name) {
                    *portal = fresh;
                }
                Ok(result)
            }
            result => Ok(result),
        }
    }

    /// The pipeline's statements do not run again: one takes rows that are given once.
    pub(super) fn keep_pipeline_as_it_is(&mut self) {
        if let Some(pipeline) = &mut self.pipeline {
            pipeline.runs = None;
        }
    }

    /// Ends the pipeline at Sync.
    pub(super) fn end_pipeline(&mut self, has_failed: bool) -> Result<(), Broken> {
        if has_failed {
            self.abandon_pipeline();
            return Ok(());
        }
        if let Err(error) = self.commit_pipeline()? {
            self.tell(&error, "");
        }
        Ok(())
    }

    /// Makes one commit of what the pipeline has done, if there is one.
    fn commit_pipeline(&mut self) -> Result<Result<(), Error>, Broken> {
        let (shared, mut turn) = (self.shared, None);
        while self.pipeline.is_some() {
            let result = match self.connection.execute("COMMIT") {
                Ok(_) => break,
                Err(error) if self.may_run_again(&error) => {
                    turn = turn.or_else(|| shared.turns.take());
                    self.run_again()?
                }
                Err(error) => Err(error),
            };
            if let Err(error) = result {
                self.abandon_pipeline();
                return Ok(Err(error));
            }
        }
        self.pipeline = None;
        Ok(Ok(()))
    }

    /// Takes back what the pipeline has done.
    fn abandon_pipeline(&mut self) {
        if self.pipeline.take().is_some() && self.connection.transaction() != TransactionState::Idle {
            // (It cannot fail: one is open.)
            let _ = self.connection.execute("ROLLBACK");
        }
    }

    /// Whether the pipeline's statements can run again.
    fn may_run_again(&mut self, error: &Error) -> bool {
        let n_sent = self.frames.n_sent();
        let Some(pipeline) = &mut self.pipeline else { return false };
        pipeline.n_tries += 1;
        error.sqlstate() == "40001"
            && pipeline.n_sent == n_sent
            && pipeline.runs.is_some()
            && pipeline.n_tries <= TRIES_MAX
    }

    /// Runs all statements of the pipeline again, until the first error that is no conflict.
    fn run_again(&mut self) -> Result<Result<(), Error>, Broken> {
        loop {
            let result = self.run_once_more()?;
            match result {
                Err(error) if self.may_run_again(&error) => {}
                result => {
                    let failed_at = self.pipeline.as_ref().and_then(|pipeline| pipeline.failed_at);
                    self.frames.out.truncate(failed_at.unwrap_or(usize::MAX));
                    return Ok(result);
                }
            }
        }
    }

    fn run_once_more(&mut self) -> Result<Result<(), Error>, Broken> {
        let Some(mut runs) = self.pipeline.as_mut().and_then(|pipeline| pipeline.runs.take()) else {
            return Ok(Err(Error::internal("a pipeline that cannot run again does")));
        };
        if self.connection.transaction() != TransactionState::Idle {
            let _ = self.connection.execute("ROLLBACK");
        }
        if let Err(error) = self.connection.execute("BEGIN") {
            return Ok(Err(error));
        }
        let before = std::mem::take(&mut self.frames.out);
        let (mut copied, mut failed) = (0, None);
        for run in &mut runs {
            self.frames.out.extend_from_slice(&before[copied..run.start]);
            copied = run.end;
            let mut portal = run.again();
            run.start = self.frames.out.len();
            let result = match failed {
                None => self.advance(&mut portal, run.rows_max)?,
                // (What comes behind a conflict keeps its place for the next time.)
                Some(_) => Ok(()),
            };
            run.end = self.frames.out.len();
            // (A portal that was closed since stays closed.)
            let there = self.portals.get_mut(&run.portal);
            match (result, there.filter(|there| Arc::ptr_eq(&there.statement, &run.statement))) {
                (Err(error), _) => failed = Some((error, run.end)),
                (Ok(()), Some(there)) => *there = portal,
                (Ok(()), None) => {}
            }
        }
        self.frames.out.extend_from_slice(&before[copied..]);
        if let Some(pipeline) = &mut self.pipeline {
            pipeline.runs = Some(runs);
            pipeline.failed_at = failed.as_ref().map(|(_, at)| *at);
        }
        Ok(failed.map_or(Ok(()), |(error, _)| Err(error)))
    }

    /// Sends what is held back before a wait, in a pipeline only if it is much or an error: so its
    /// statements can run again.
    pub(super) fn flush_before_wait(&mut self) -> Result<(), Broken> {
        match self.pipeline.is_some() && !self.is_skipping && self.frames.out.len() < HELD_BYTES {
            true => Ok(()),
            false => self.frames.flush(),
        }
    }
}

/// Whether a portal's rows come in messages of their own, which are gone.
fn copies(portal: &Portal) -> bool {
    portal.statement.prepared.as_ref().is_some_and(|prepared| prepared.tag == "COPY")
}
