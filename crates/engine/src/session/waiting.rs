//! How statements of connections wait: beside the session, each for what it reads and nothing else.
//!
//! Law: a statement of a connection is *attempted*. Where an attempt would have to wait for workers
//! longer than [`WAIT_INLINE`], or for sources, the statement ends as if it had failed, so that it
//! leaves no trace, and its connection waits instead. Then it is attempted again with the answers
//! that have come. The n-th question of an attempt is answered by the n-th answer of those before
//! it. That is sound while the catalog is the same and, for statements that write, while the
//! relations that were read have not changed since: a statement that only reads is as of the time
//! at which it was asked. Otherwise all answers are forgotten, the statement was *overtaken*, and
//! it asks anew.
//!
//! A statement that was overtaken [`OVERTAKEN_MAX`] times has the others that write wait until it
//! is done, sources included; those that read do not. So the session's thread is held up by no
//! question longer than [`WAIT_INLINE`], and every statement comes to its end.
//!
//! A `Session` that is used by itself waits where it is. So do COPY and COMMIT, which ask tables
//! for keys only.

use std::time::{Duration, Instant};

use anabranch_batch::Time;

use super::state::Session;
use super::state::waits::{Attempt, Attempted, Manner, PendingAnswer, Wait, Waiting};
use crate::cluster::{DataflowId, Peek, PeekResult, Waited};
use crate::error::{Error, ErrorKind};
use crate::interrupt::Interrupt;

/// How long the session waits for workers on behalf of one question.
const WAIT_INLINE: Duration = Duration::from_millis(2);

/// How long a look at dataflows waits for them: where other connections wait meanwhile, and in a
/// session of its own.
const LOOK_AMONG_MANY: Duration = Duration::from_millis(50);
const LOOK_ALONE: Duration = Duration::from_secs(1);
/// How often a statement is overtaken before others have to wait for it.
const OVERTAKEN_MAX: usize = 2;
/// Percent of the memory limit above which rows wait before they are taken, sources' too; and how
/// long those of a statement wait.
const FILLED_PERCENT: usize = 95;
const ROOM_WAIT_MAX: Duration = Duration::from_secs(5);
/// Bytes of rows that workers have not taken in, above which those that write wait.
const BACKLOG_BYTES_MAX: usize = 256 << 20;

impl Session {
    /// Attempts a statement of a connection.
    pub(crate) fn attempt<T>(
        &mut self,
        mut attempt: Attempt,
        work: impl FnOnce(&mut Session) -> Result<T, Error>,
    ) -> Attempted<T> {
        let connection = attempt.connection;
        let is_held = self.waits.alone.is_some_and(|alone| alone != connection);
        if attempt.manner.writes() && (is_held || self.has_backlog()) {
            return Attempted::Waits(Box::new(Waiting { attempt, wait: Wait::Again }));
        }
        if attempt.manner == Manner::Adds && self.cluster.is_filled_to(FILLED_PERCENT) {
            if attempt.without_room.get_or_insert_with(Instant::now).elapsed() > ROOM_WAIT_MAX {
                return Attempted::Done(Err(self.cluster.no_room()));
            }
            return Attempted::Waits(Box::new(Waiting { attempt, wait: Wait::Again }));
        }
        if !self.is_sound(&attempt) {
            attempt.answers.clear();
            attempt.overtaken += 1;
            if attempt.overtaken >= OVERTAKEN_MAX {
                self.waits.alone.get_or_insert(connection);
            }
        }
        self.waits.answers = std::mem::take(&mut attempt.answers);
        self.waits.asked = 0;
        self.waits.hands_over = !attempt.manner.is_inline();
        let result = work(self);
        self.waits.hands_over = false;
        attempt.answers = std::mem::take(&mut self.waits.answers);
        match self.waits.wait.take() {
            Some(wait) if result.is_err() => Attempted::Waits(Box::new(Waiting { attempt, wait })),
            _ => {
                self.stop_alone(connection);
                self.interrupt.unlimit();
                Attempted::Done(result)
            }
        }
    }

    /// Others need not wait for this connection any more.
    pub(crate) fn stop_alone(&mut self, connection: u64) {
        self.waits.alone.take_if(|alone| *alone == connection);
    }

    /// Whether the statement that runs has ended because its connection is to wait.
    pub(super) fn is_handed_over(&self) -> bool {
        self.waits.wait.is_some()
    }

    /// Whether the statement that runs must not hold up the session.
    pub(super) fn hands_over(&self) -> bool {
        self.waits.hands_over
    }

    /// Whether sources have to wait: for a statement that is alone, or for workers.
    pub(super) fn holds_sources(&self) -> bool {
        self.serves_many
            && (self.waits.alone.is_some() || self.has_backlog() || self.cluster.is_filled_to(FILLED_PERCENT))
    }

    fn has_backlog(&self) -> bool {
        self.cluster.backlog_bytes() > BACKLOG_BYTES_MAX
    }

    /// Whether the answers of earlier attempts still hold.
    fn is_sound(&self, attempt: &Attempt) -> bool {
        let is_current = |answer: &PendingAnswer| {
            let inputs = || self.catalog.inputs_behind(&answer.relations);
            let has_changed = |name: &String| {
                self.catalog.find(name).is_none_or(|object| self.timeline.has_changed(object.id, answer.at))
            };
            answer.version == self.catalog.version()
                && (attempt.manner == Manner::Reads || !inputs().iter().any(has_changed))
        };
        attempt.answers.iter().filter(|answer| answer.result.is_some()).all(is_current)
    }

    /// Ends the statement that runs: its connection waits a while, and it is attempted again.
    pub(super) fn try_again(&mut self) -> Error {
        self.hand_over(Wait::Again)
    }

    /// Ends the statement that runs: its connection waits for a lock, and it is attempted from its
    /// beginning.
    ///
    /// # Errors
    /// Always: that of a statement that waits, or, of a session by itself, that there is none to
    /// wait for.
    pub(super) fn wait_for_lock(&mut self) -> Error {
        if !self.hands_over() {
            return Error::new(ErrorKind::Unavailable, "could not obtain the advisory lock")
                .with_sqlstate("55P03")
                .with_hint("Another client holds it. pg_try_advisory_lock tells so without an error.");
        }
        self.waits.asked = 0;
        self.hand_over(Wait::Lock)
    }

    fn note_answer(&mut self, answer: PendingAnswer) {
        self.waits.answers.truncate(self.waits.asked);
        self.waits.answers.push(answer);
        self.waits.asked += 1;
    }

    fn hand_over(&mut self, wait: Wait) -> Error {
        if !matches!(wait, Wait::Again) {
            self.waits.answers.truncate(self.waits.asked);
        }
        self.waits.wait = Some(wait);
        Error::new(ErrorKind::Unavailable, "the statement waits")
    }

    /// The answer of an earlier attempt to the question that is about to be asked.
    pub(super) fn answered(&mut self) -> Option<PeekResult> {
        let answer = self.waits.answers.get(self.waits.asked).filter(|_| self.waits.hands_over)?;
        let result = answer.result.clone()?;
        self.waits.asked += 1;
        Some(result)
    }

    /// The contents of an arrangement of these relations, which were not
    /// [answered](Session::answered) before. `dataflow` is one that is not needed afterwards.
    pub(super) fn ask(
        &mut self,
        peek: Peek,
        relations: Vec<String>,
        dataflow: Option<DataflowId>,
    ) -> Result<PeekResult, Error> {
        let at = peek.at;
        if !self.waits.hands_over {
            let result = self.cluster.peek(peek, &self.interrupt);
            dataflow.into_iter().for_each(|dataflow| self.release_dataflow(dataflow));
            return result;
        }
        let version = self.catalog.version();
        let result = match self.cluster.ask(&peek).map(|asked| asked.wait(WAIT_INLINE)) {
            Ok(Waited::Waiting(asked)) => {
                return Err(self.hand_over(Wait::Read { asked, relations, version, at, dataflow }));
            }
            Ok(Waited::Answered(parts)) => Ok(PeekResult::of_parts(parts)),
            Ok(Waited::Lost) => Err(self.cluster.lost_peek(peek.arrangement)),
            Err(error) => Err(error),
        };
        dataflow.into_iter().for_each(|dataflow| self.release_dataflow(dataflow));
        let result = result?;
        self.note_answer(PendingAnswer { result: Some(result.clone()), relations, version, at });
        Ok(result)
    }

    /// Waits until every sound dataflow is complete as of now, or for a little: what is told then
    /// is told as far as it has come. A dataflow that has long to work hinders no look at it.
    pub(super) fn await_dataflows_shortly(&mut self) -> Result<(), Error> {
        let past = self.timeline.last();
        if self.hands_over() {
            // (The answers of those that were not ready are not waited for.)
            let _ = self.cluster.ask_frontiers(&self.dataflows.owned(), past).wait(LOOK_AMONG_MANY);
            return Ok(());
        }
        let limited = Interrupt::new();
        limited.limit(Some(if self.serves_many { LOOK_AMONG_MANY } else { LOOK_ALONE }));
        for dataflow in self.dataflows.owned() {
            match self.cluster.await_sound(dataflow, past, &limited) {
                Err(error) if error.kind == ErrorKind::Cancelled => break,
                waited => waited?,
            }
        }
        self.interrupt.check()
    }

    /// Hands over until every sound dataflow is complete for all times up to `past`.
    pub(super) fn hand_over_until(&mut self, past: Time) -> Result<(), Error> {
        if self.waits.answers.get(self.waits.asked).is_some_and(|answer| answer.result.is_none()) {
            self.waits.asked += 1;
            return Ok(());
        }
        let asked = self.cluster.ask_frontiers(&self.dataflows.owned(), past);
        match asked.wait(WAIT_INLINE) {
            Waited::Waiting(asked) => Err(self.hand_over(Wait::Reach(asked))),
            Waited::Answered(_) => {
                self.note_answer(PendingAnswer { result: None, relations: vec![], version: 0, at: past });
                Ok(())
            }
            // (Something has failed or was dropped meanwhile.)
            Waited::Lost => Err(self.try_again()),
        }
    }
}
