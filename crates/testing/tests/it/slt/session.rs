//! A session behind sqllogictest's `DB`: it lives on a thread of its own, because a session belongs
//! to one thread and a runner wants to move its connection.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use anabranch_engine::{Options, Outcome, Session, Sharing};
use sqllogictest::{DB, DBOutput, DefaultColumnType};

use super::format::{rows_of, types_of};

/// What a statement gave, in a form that may change threads.
type Answer = Result<DBOutput<DefaultColumnType>, Failure>;

/// An error of the session: message, detail and hint, for the patterns in the files.
#[derive(Debug)]
pub struct Failure(String);

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Failure {}

impl From<anabranch_engine::Error> for Failure {
    fn from(error: anabranch_engine::Error) -> Failure {
        let parts = [Some(error.message), error.detail, error.hint];
        Failure(parts.into_iter().flatten().collect::<Vec<_>>().join("; "))
    }
}

/// What statements were refused with, in their order.
#[derive(Clone, Debug, Default)]
pub struct Refusals(Arc<Mutex<Vec<String>>>);

impl Refusals {
    fn add(&self, told: &Failure) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(told.0.clone());
    }

    /// Those since the last call.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Statements go out, answers come back, one at a time.
pub struct SessionThread {
    statements: Option<Sender<String>>,
    answers: Receiver<Answer>,
    thread: Option<JoinHandle<()>>,
}

impl SessionThread {
    /// A fresh session with that many worker threads (0: the session's thread does the work).
    pub fn start(workers: usize, sharing: Sharing, refusals: Refusals) -> Result<SessionThread, Failure> {
        let (statements, inbox) = channel::<String>();
        let (outbox, answers) = channel();
        let thread = std::thread::spawn(move || {
            let mut session = match Session::new(Options { workers, sharing, ..Options::default() }) {
                Ok(session) => session,
                Err(error) => {
                    let _ = outbox.send(Err(Failure::from(error)));
                    return;
                }
            };
            for statement in inbox {
                let answer = run(&mut session, &statement).inspect_err(|told| refusals.add(told));
                if outbox.send(answer).is_err() {
                    return;
                }
            }
        });
        Ok(SessionThread { statements: Some(statements), answers, thread: Some(thread) })
    }
}

/// Files hold plans of one worker: with several, the last remark of a line may tell what moves.
fn without_movement(line: &mut String) {
    const MOVES: [&str; 3] = ["moves ", "is combined and moves ", "is dealt out by "];
    let begins = MOVES.iter().flat_map(|moves| [format!("  -- {moves}"), format!("; {moves}")]);
    if let Some(at) = begins.filter_map(|begin| line.find(&begin)).min() {
        line.truncate(at);
    }
}

/// Runs one record's text.
fn run(session: &mut Session, sql: &str) -> Answer {
    Ok(match session.execute(sql)?.pop() {
        Some(Outcome::Rows(rows)) => {
            let is_plan = rows.schema.fields().iter().map(|field| field.name()).eq(["plan"]);
            let mut cells = rows_of(&rows.batches);
            cells.iter_mut().flatten().filter(|_| is_plan).for_each(without_movement);
            DBOutput::Rows { types: types_of(&rows.schema), rows: cells }
        }
        Some(Outcome::Done { tag, .. }) => {
            DBOutput::StatementComplete(tag.rsplit(' ').next().and_then(|count| count.parse().ok()).unwrap_or(0))
        }
        Some(Outcome::Subscription(_) | Outcome::Copy(_)) | None => DBOutput::StatementComplete(0),
    })
}

impl DB for SessionThread {
    type Error = Failure;
    type ColumnType = DefaultColumnType;

    fn run(&mut self, sql: &str) -> Answer {
        let gone = || Failure("the session's thread ended: it panicked".to_string());
        let statements = self.statements.as_ref().ok_or_else(gone)?;
        statements.send(sql.to_string()).map_err(|_| gone())?;
        self.answers.recv().map_err(|_| gone())?
    }

    fn engine_name(&self) -> &str {
        "anabranch"
    }
}

impl Drop for SessionThread {
    fn drop(&mut self) {
        self.statements = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
