//! A client as its messages see it: statements, portals, and what is being sent.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use anabranch_engine::{Connection, Error, Prepared, Subscription};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion_common::ScalarValue;

use super::pipeline::Pipeline;
use crate::peers::Peer;
use crate::shared::ServerShared;
use crate::wire::frames::Frames;
use crate::wire::reply;

/// One client.
pub(super) struct ServerClient<'a> {
    pub shared: &'a ServerShared,
    pub frames: Frames,
    pub peer: Arc<Peer>,
    pub connection: Connection,
    pub statements: HashMap<String, Arc<Statement>>,
    pub portals: HashMap<String, Portal>,
    /// Whether an error makes messages up to Sync mean nothing.
    pub is_skipping: bool,
    /// The transaction of what came since Sync, if it was opened for that.
    pub pipeline: Option<Pipeline>,
}

/// A statement under a name.
pub(super) struct Statement {
    pub text: String,
    /// `None` for a text without a statement.
    pub prepared: Option<Prepared>,
    /// Types of parameters as the client named them; 0 where it did not.
    pub declared: Vec<u32>,
}

/// A statement with values, which runs once.
pub(super) struct Portal {
    pub statement: Arc<Statement>,
    pub values: Vec<ScalarValue>,
    pub formats: Vec<i16>,
    pub state: State,
}

/// How far a portal has come.
pub(super) enum State {
    /// It did not run.
    Bound,
    /// It ran, and rows are left.
    Rows(Sending),
    /// Changes come.
    Changes(Subscription, Sending),
    /// All was given; nothing is left but the tag.
    Done(String),
}

/// Rows that are being sent, perhaps in parts.
#[derive(Debug)]
pub(super) struct Sending {
    pub schema: SchemaRef,
    pub batches: VecDeque<RecordBatch>,
    /// Rows of the first batch that were sent.
    pub n_taken: usize,
    /// Rows that were sent.
    pub n_sent: usize,
}

impl Sending {
    pub(super) fn new(schema: SchemaRef, batches: Vec<RecordBatch>) -> Sending {
        Sending { schema, batches: batches.into(), n_taken: 0, n_sent: 0 }
    }

    /// More rows, behind the others.
    pub(super) fn push(&mut self, batch: RecordBatch) {
        self.batches.push_back(batch);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    /// The rows that were not sent.
    pub(super) fn left(&self) -> Vec<RecordBatch> {
        let left = |(at, batch): (usize, &RecordBatch)| match at {
            0 => batch.slice(self.n_taken, batch.num_rows() - self.n_taken),
            _ => batch.clone(),
        };
        self.batches.iter().enumerate().map(left).collect()
    }
}

impl ServerClient<'_> {
    /// Tells an error and skips what follows up to Sync.
    pub(super) fn fail(&mut self, error: &Error, script: &str) {
        self.tell(error, script);
        self.is_skipping = true;
    }

    /// Tells an error. It fails the open transaction, wherever it came from.
    pub(super) fn tell(&mut self, error: &Error, script: &str) {
        self.connection.fail_transaction();
        self.shared.metrics.errors.inc();
        if error.kind == anabranch_engine::ErrorKind::Internal {
            tracing::error!(message = error.message, "internal error");
        }
        reply::error(&mut self.frames.out, error, script);
    }

    /// Says that the next message may come.
    pub(super) fn ready(&mut self) {
        let transaction = self.connection.transaction();
        reply::ready(&mut self.frames.out, transaction);
    }
}
