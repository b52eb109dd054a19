//! How far a statement has come that is attempted, and what it waits for.

use std::time::{Duration, Instant};

use anabranch_batch::Time;
use anabranch_sql::statement::{Shows, Statement, TransactionStatement};

use crate::cluster::{Asked, DataflowId, PeekResult, Waited};
use crate::error::Error;

/// How a statement waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// Where it is: it asks nothing.
    Inline,
    /// Where it is: it asks tables for keys only, and may write.
    InlineWrites,
    /// Beside the session, and its answers are as of the time at which it asked.
    Reads,
    /// Beside the session; at its end, what it read is as it was.
    Writes,
    /// As `Writes`; it adds rows.
    Adds,
}

impl Manner {
    pub(crate) fn writes(self) -> bool {
        matches!(self, Manner::Writes | Manner::Adds | Manner::InlineWrites)
    }

    pub(crate) fn is_inline(self) -> bool {
        matches!(self, Manner::Inline | Manner::InlineWrites)
    }

    /// How a statement waits.
    pub fn of(statement: &Statement) -> Manner {
        match statement {
            // (The counts of a run are gone with its dataflow, so it is waited for where it is.)
            Statement::Explain(explain) if explain.shows == Shows::Analyze => Manner::Inline,
            Statement::Select { .. }
            | Statement::Declare(_)
            | Statement::Explain(_)
            | Statement::ExplainChange(_)
            | Statement::Show(_)
            | Statement::Describe { .. } => Manner::Reads,
            Statement::Insert(_) => Manner::Adds,
            Statement::Update(_)
            | Statement::Delete(_)
            | Statement::Merge(_)
            | Statement::Truncate(_)
            | Statement::CreateTableAs(_)
            | Statement::Execute(_) => Manner::Writes,
            Statement::Flush => Manner::Reads,
            Statement::Subscribe(_)
            | Statement::Fetch(_)
            | Statement::Close { .. }
            | Statement::Prepare(_)
            | Statement::Deallocate { .. }
            | Statement::Set { .. }
            | Statement::Transaction(TransactionStatement::Begin { .. } | TransactionStatement::Rollback { .. }) => {
                Manner::Inline
            }
            _ => Manner::InlineWrites,
        }
    }
}

/// How far a statement has come in the attempts before.
#[derive(Debug)]
pub(crate) struct Attempt {
    /// Whose it is.
    pub connection: u64,
    pub manner: Manner,
    pub(crate) answers: Vec<PendingAnswer>,
    /// How often it was overtaken.
    pub(crate) overtaken: usize,
    /// Since when it waits for memory.
    pub(crate) without_room: Option<Instant>,
}

/// What has come of an attempt.
pub(crate) enum Attempted<T> {
    Done(Result<T, Error>),
    /// To be attempted again once the wait is over.
    Waits(Box<Waiting>),
}

/// A statement that waits.
pub(crate) struct Waiting {
    pub(crate) attempt: Attempt,
    pub(crate) wait: Wait,
}

pub(crate) enum Wait {
    /// For a while.
    Again,
    /// For a lock that another client holds.
    Lock,
    /// For an answer about these relations; the dataflow was installed for it.
    Read { asked: Asked<PeekResult>, relations: Vec<String>, version: u64, at: Time, dataflow: Option<DataflowId> },
    /// For dataflows to be complete.
    Reach(Asked<()>),
}

/// What an earlier attempt has heard.
#[derive(Debug)]
pub(crate) struct PendingAnswer {
    pub(crate) result: Option<PeekResult>,
    /// What it was asked of, at which version of the catalog, and as of which time.
    pub(crate) relations: Vec<String>,
    pub(crate) version: u64,
    pub(crate) at: Time,
}

/// Where the statement that runs stands.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    /// It waits beside the session.
    pub(crate) hands_over: bool,
    pub(crate) answers: Vec<PendingAnswer>,
    /// Questions asked so far.
    pub(crate) asked: usize,
    pub(crate) wait: Option<Wait>,
    /// The connection that others which write wait for.
    pub alone: Option<u64>,
}

impl std::fmt::Debug for Wait {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Wait::Again => "Again",
            Wait::Lock => "Lock",
            Wait::Read { .. } => "Read",
            Wait::Reach(_) => "Reach",
        })
    }
}

impl Attempt {
    /// The first.
    pub fn first(connection: u64, manner: Manner) -> Attempt {
        Attempt { connection, manner, answers: vec![], overtaken: 0, without_room: None }
    }
}

/// A wait that is over.
pub(crate) struct Over {
    /// The next attempt.
    pub attempt: Attempt,
    /// The dataflow that was installed for the answer, and is not needed any more.
    pub dataflow: Option<DataflowId>,
    /// Whether workers let the question fall.
    pub is_lost: bool,
}

impl Over {
    pub(crate) fn answered(attempt: Attempt, dataflow: Option<DataflowId>) -> Over {
        Over { attempt, dataflow, is_lost: false }
    }

    pub(crate) fn lost(attempt: Attempt, dataflow: Option<DataflowId>) -> Over {
        Over { attempt, dataflow, is_lost: true }
    }
}

impl Waiting {
    /// Waits a while. Returns itself if the wait is not over.
    pub fn wait(self, timeout: Duration) -> Result<Over, Box<Waiting>> {
        let Waiting { mut attempt, wait } = self;
        match wait {
            Wait::Again | Wait::Lock => {
                std::thread::sleep(timeout);
                Ok(Over::answered(attempt, None))
            }
            Wait::Reach(asked) => match asked.wait(timeout) {
                Waited::Waiting(asked) => Err(Box::new(Waiting { attempt, wait: Wait::Reach(asked) })),
                Waited::Lost => Ok(Over::lost(attempt, None)),
                Waited::Answered(_) => {
                    attempt.answers.push(PendingAnswer { result: None, relations: vec![], version: 0, at: 0 });
                    Ok(Over::answered(attempt, None))
                }
            },
            Wait::Read { asked, relations, version, at, dataflow } => match asked.wait(timeout) {
                Waited::Waiting(asked) => {
                    Err(Box::new(Waiting { attempt, wait: Wait::Read { asked, relations, version, at, dataflow } }))
                }
                Waited::Lost => Ok(Over::lost(attempt, dataflow)),
                Waited::Answered(parts) => {
                    let result = Some(PeekResult::of_parts(parts));
                    attempt.answers.push(PendingAnswer { result, relations, version, at });
                    Ok(Over::answered(attempt, dataflow))
                }
            },
        }
    }

    /// The dataflow that is not needed once no statement waits.
    pub fn dataflow(&self) -> Option<DataflowId> {
        match &self.wait {
            Wait::Read { dataflow, .. } => *dataflow,
            Wait::Again | Wait::Lock | Wait::Reach(_) => None,
        }
    }

    /// Whose statement it is.
    pub fn connection(&self) -> u64 {
        self.attempt.connection
    }

    /// How long to wait between two looks at interrupts and failures.
    pub fn pace(&self) -> Duration {
        match &self.wait {
            Wait::Again => Duration::from_millis(2),
            Wait::Lock => Duration::from_millis(10),
            Wait::Read { .. } | Wait::Reach(_) => Duration::from_millis(20),
        }
    }
}
