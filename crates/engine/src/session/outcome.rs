//! What statements give back.

use std::sync::Arc;
use std::time::Duration;

use anabranch_batch::Time;
use anabranch_flow::account::memory::Hold;
use anabranch_sql::output::{is_shown_as_kept, shown_schema, shown_values};
use anabranch_sql::statement::ObjectKind;
use arrow::array::{ArrayRef, BooleanArray, Int64Array, RecordBatch, new_null_array};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use super::state::copying::CopyStart;
use crate::connector::ReadProgress;
use crate::error::Error;

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
    /// A COPY whose other end is the client: rows go by `copy_data` and `copy_done`, or by
    /// `copy_rows`.
    Copy(CopyStart),
}

impl Outcome {
    pub(crate) fn done(tag: impl Into<String>) -> Outcome {
        Outcome::Done { tag: tag.into(), detail: None }
    }

    pub(crate) fn done_with(tag: impl Into<String>, detail: impl Into<String>) -> Outcome {
        Outcome::Done { tag: tag.into(), detail: Some(detail.into()) }
    }

    /// The outcome of what was done, with something else worth knowing.
    pub(crate) fn with_notice(self, notice: &str) -> Outcome {
        match self {
            Outcome::Done { tag, detail: None } => Outcome::done_with(tag, notice),
            Outcome::Done { tag, detail: Some(detail) } => Outcome::done_with(tag, format!("{detail}; {notice}")),
            Outcome::Rows(mut rows) => {
                rows.notices.push(notice.to_owned());
                Outcome::Rows(rows)
            }
            other => other,
        }
    }
}

/// An answer: rows in their final order, in batches of the same schema.
#[derive(Clone, Debug)]
pub struct Rows {
    /// Names and types of the columns. Text is `Utf8View`, bytes are `BinaryView`, `numeric`
    /// without a scale is text whose field says so (`anabranch_sql::output::is_plain_numeric`).
    pub schema: SchemaRef,
    /// The rows; no batch is empty.
    pub batches: Vec<RecordBatch>,
    /// What a reader of the answer should know: a source that failed and so is incomplete; how
    /// columns of files were read.
    pub notices: Vec<String>,
    /// That they are counted as memory of their client.
    #[expect(dead_code, reason = "dropping it counts them off")]
    pub(super) held: Option<Arc<Hold>>,
}

impl Rows {
    /// The same rows, counted until they are dropped.
    pub(super) fn held_by(self, hold: Hold) -> Rows {
        Rows { held: Some(Arc::new(hold)), ..self }
    }

    /// Rows of the engine's own types.
    pub fn new(schema: SchemaRef, batches: Vec<RecordBatch>) -> Rows {
        let shown = shown_schema(&schema);
        let is_shown = is_shown_as_kept(&schema);
        let show = |batch: RecordBatch| match is_shown {
            true => batch,
            false => {
                let columns = shown
                    .fields()
                    .iter()
                    .zip(batch.columns())
                    .map(|(field, column)| shown_values(field, column))
                    .collect();
                RecordBatch::try_new(shown.clone(), columns).expect("columns are of the types that are shown")
            }
        };
        let batches = batches.into_iter().filter(|batch| batch.num_rows() > 0).map(show).collect();
        Rows { schema: shown, batches, notices: Vec::new(), held: None }
    }

    /// Rows that some other engine has answered with.
    pub fn received(schema: SchemaRef, batches: Vec<RecordBatch>, notices: Vec<String>) -> Rows {
        Rows { schema, batches, notices, held: None }
    }

    /// Rows in all batches.
    pub fn num_rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }
}

impl From<RecordBatch> for Rows {
    /// The rows of one batch.
    fn from(batch: RecordBatch) -> Rows {
        Rows { schema: batch.schema(), batches: vec![batch], notices: vec![], held: None }
    }
}

/// A standing query whose changes are read as they happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscription {
    pub(crate) id: u64,
    pub(crate) schema: SchemaRef,
    /// Whether times that are complete are told.
    pub(crate) progress: bool,
}

impl Subscription {
    /// Columns of [`Changes::Rows`]: `time` and `diff`, then the query's.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Columns of [`rows`](Self::rows): as [`schema`](Self::schema), with `progressed` after the
    /// time if progress is told.
    pub fn row_schema(&self) -> SchemaRef {
        match self.progress {
            true => with_progress(&self.schema),
            false => self.schema.clone(),
        }
    }

    /// A reading as rows, where nothing but rows can be given: to cursors and to COPY.
    ///
    /// # Errors
    /// `Internal` for changes of another subscription.
    pub fn rows(&self, changes: &Changes) -> Result<Vec<RecordBatch>, Error> {
        let schema = self.row_schema();
        match changes {
            Changes::Rows(batches) if !self.progress => Ok(batches.clone()),
            Changes::Rows(batches) => {
                let without_progress = |batch: &RecordBatch| {
                    let mut columns = batch.columns().to_vec();
                    columns.insert(1, Arc::new(BooleanArray::from(vec![false; batch.num_rows()])) as ArrayRef);
                    Ok(RecordBatch::try_new(schema.clone(), columns)?)
                };
                batches.iter().map(without_progress).collect()
            }
            Changes::Progress(time) => {
                let mut columns: Vec<ArrayRef> =
                    schema.fields().iter().map(|field| new_null_array(field.data_type(), 1)).collect();
                columns[0] = Arc::new(Int64Array::from(vec![*time]));
                columns[1] = Arc::new(BooleanArray::from(vec![true]));
                Ok(vec![RecordBatch::try_new(schema, columns)?])
            }
            Changes::Nothing | Changes::End => Ok(vec![]),
        }
    }
}

/// The columns of changes among which progress is told.
pub(super) fn with_progress(schema: &Schema) -> SchemaRef {
    let mut fields: Vec<Field> = schema.fields().iter().map(|field| field.as_ref().clone()).collect();
    // A row that tells progress has a time and nothing else.
    fields.iter_mut().skip(1).for_each(|field| *field = field.clone().with_nullable(true));
    fields.insert(1, Field::new("progressed", DataType::Boolean, false));
    Arc::new(Schema::new(fields))
}

/// One reading of a [`Subscription`].
#[derive(Clone, Debug)]
pub enum Changes {
    /// Changes in the order of their times, all of each time; at most one a (time, row), but where
    /// rows only come. Those of one time may be in several batches, none of them empty: workers
    /// give theirs apart. Columns: `time` and `diff` (`Int64`), then the query's.
    Rows(Vec<RecordBatch>),
    /// All changes with a time before this one were given.
    Progress(Time),
    /// Nothing new within the timeout.
    Nothing,
    /// Nothing will ever come: the sources are read to their end, or `UP TO` is reached.
    End,
}

/// What a turn of the session did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepStatus {
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
    /// Reading begins with the first query that reads the source.
    Unread,
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
