//! What statements give back.

use std::sync::Arc;
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use anabranch_batch::Time;
use anabranch_sql::output::{shown_column, shown_schema};
use anabranch_sql::statement::ObjectKind;

use crate::connector::ReadProgress;

/// The outcome of one statement.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// A query's answer.
    Rows(Rows),
    /// Done, without rows.
    Done {
        /// PostgreSQL's command tag: `INSERT 0 3`, `CREATE VIEW`.
        tag: String,
        /// Something worth knowing, as a sentence: rows skipped, an object that was there before.
        detail: Option<String>,
    },
    /// A query that stays; read it with [`Session::next_changes`](crate::Session::next_changes).
    Subscription(Subscription),
}

impl Outcome {
    pub(crate) fn done(tag: impl Into<String>) -> Outcome {
        Outcome::Done { tag: tag.into(), detail: None }
    }

    pub(crate) fn done_with(tag: impl Into<String>, detail: impl Into<String>) -> Outcome {
        Outcome::Done { tag: tag.into(), detail: Some(detail.into()) }
    }
}

/// An answer: rows in their final order, in batches of the same schema.
#[derive(Clone, Debug)]
pub struct Rows {
    /// Names and types of the columns. Text is `Utf8View`, bytes are `BinaryView`, `numeric` without a scale is text whose field says so
    /// (`anabranch_sql::output::is_plain_numeric`).
    pub schema: SchemaRef,
    /// The rows; no batch is empty.
    pub batches: Vec<RecordBatch>,
    /// What a reader of the answer should know: a source that failed and so is incomplete.
    pub notices: Vec<String>,
}

impl Rows {
    pub(crate) fn new(schema: SchemaRef, batches: Vec<RecordBatch>) -> Rows {
        let shown = shown_schema(&schema);
        let is_shown = Arc::ptr_eq(&shown, &schema);
        let show = |batch: RecordBatch| match is_shown {
            true => batch,
            false => {
                let columns = batch.columns().iter().map(shown_column).collect();
                RecordBatch::try_new(shown.clone(), columns).expect("columns are of the types that are shown")
            }
        };
        let batches = batches.into_iter().filter(|batch| batch.num_rows() > 0).map(show).collect();
        Rows { schema: shown, batches, notices: Vec::new() }
    }

    /// Rows in all batches.
    pub fn num_rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }
}

/// A standing query whose changes are read as they happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscription {
    pub(crate) id: u64,
    pub(crate) schema: SchemaRef,
}

impl Subscription {
    /// Columns of [`Changes::Rows`]: `time` and `diff`, then the query's.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }
}

/// One reading of a [`Subscription`].
#[derive(Clone, Debug)]
pub enum Changes {
    /// Changes in the order of their times; at most one a (time, row). Columns: `time` and `diff` (`Int64`), then the query's.
    Rows(RecordBatch),
    /// All changes with a time before this one were given.
    Progress(Time),
    /// Nothing new within the timeout.
    Nothing,
    /// Nothing will ever come: the sources are read to their end, or `UP TO` is reached.
    End,
}

/// What a turn of the session did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// There is nothing to do; look again after that time, or after the next statement.
    Idle {
        /// When a source may have rows again; `None` when none will.
        retry_after: Option<Duration>,
    },
    /// Something was done and more may be waiting.
    Working,
}

/// Where a source stands.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceStatus {
    /// Catalog name.
    pub name: String,
    /// Rows taken in.
    pub rows: u64,
    /// How far the reader has come.
    pub progress: ReadProgress,
    /// Whether it still reads.
    pub state: SourceState,
    /// Whether the source has an end.
    pub bounded: bool,
    /// Rows per second asked for; `None` is as fast as possible.
    pub rate: Option<f64>,
}

/// Whether a source still reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceState {
    /// Reading, or waiting for rows.
    Running,
    /// Read to its end.
    Done,
    /// Stopped by this error; what was read before stays.
    Failed(String),
}

/// A relation as completion and `\d` see it.
#[derive(Clone, Debug)]
pub struct RelationInfo {
    /// Catalog name.
    pub name: String,
    /// Table, source, view or materialized view.
    pub kind: ObjectKind,
    /// Its columns.
    pub schema: SchemaRef,
    /// Positions of the primary key's columns; empty without one.
    pub primary_key: Vec<usize>,
}
