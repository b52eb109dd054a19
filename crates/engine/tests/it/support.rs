//! Sessions, answers as text, and a connector that yields given rows.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use anabranch_engine::{
    Connector, Error, Options, Outcome, Poll, ReadProgress, Rows, Session, SourceReader, SourceSpec,
};
use arrow::array::{Array, ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow::compute::concat_batches;
use arrow::datatypes::SchemaRef;
use arrow::util::display::array_value_to_string;

/// A session with that many worker threads.
pub fn session(workers: usize) -> Session {
    Session::new(Options { workers, ..Options::default() }).unwrap()
}

/// Runs `test` in a session with 0, 1 and 2 worker threads.
pub fn with_workers(test: impl Fn(&mut Session)) {
    for workers in 0..3 {
        test(&mut session(workers));
    }
}

/// Runs a script that must succeed.
pub fn run(session: &mut Session, script: &str) -> Vec<Outcome> {
    session.execute(script).unwrap_or_else(|error| panic!("{script}: {}", error.render(script)))
}

/// The tag of the last statement.
pub fn tag(session: &mut Session, script: &str) -> String {
    match run(session, script).pop() {
        Some(Outcome::Done { tag, .. }) => tag,
        other => panic!("{script}: {other:?}"),
    }
}

/// The error of a script that must fail.
pub fn fail(session: &mut Session, script: &str) -> Error {
    match session.execute(script) {
        Err(error) => error,
        Ok(outcomes) => panic!("{script}: {outcomes:?}"),
    }
}

/// An answer, one line a row, values separated by spaces.
pub fn ask(session: &mut Session, sql: &str) -> Vec<String> {
    lines(&session.query(sql).unwrap_or_else(|error| panic!("{sql}: {}", error.render(sql))))
}

pub fn lines(rows: &Rows) -> Vec<String> {
    rows.batches.iter().flat_map(batch_lines).collect()
}

/// Changes that were told together, as one batch.
pub fn whole(changes: &[RecordBatch]) -> RecordBatch {
    concat_batches(changes[0].schema_ref(), changes).unwrap()
}

pub fn batch_lines(batch: &RecordBatch) -> Vec<String> {
    let value = |column: &ArrayRef, row: usize| match column.is_null(row) {
        true => "null".to_string(),
        false => array_value_to_string(column, row).unwrap(),
    };
    (0..batch.num_rows())
        .map(|row| batch.columns().iter().map(|column| value(column, row)).collect::<Vec<_>>().join(" "))
        .collect()
}

/// Rows (k bigint, v text).
pub fn pairs(rows: &[(i64, &str)]) -> RecordBatch {
    let keys: ArrayRef = Arc::new(Int64Array::from(rows.iter().map(|row| row.0).collect::<Vec<_>>()));
    let values: ArrayRef = Arc::new(StringArray::from(rows.iter().map(|row| row.1).collect::<Vec<_>>()));
    RecordBatch::try_from_iter([("k", keys), ("v", values)]).unwrap()
}

/// A connector whose every source polls the same script of answers.
#[derive(Clone)]
pub struct Scripted {
    pub schema: SchemaRef,
    pub polls: Arc<Mutex<Vec<Result<Poll, Error>>>>,
}

impl Scripted {
    /// Answers in order, then `Done`.
    pub fn new(polls: Vec<Result<Poll, Error>>) -> Scripted {
        Scripted { schema: pairs(&[]).schema(), polls: Arc::new(Mutex::new(polls)) }
    }
}

impl Connector for Scripted {
    fn open(&self, _spec: &SourceSpec) -> Result<Box<dyn SourceReader>, Error> {
        Ok(Box::new(self.clone()))
    }
}

impl SourceReader for Scripted {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn poll(&mut self, _rows_max: usize) -> Result<Poll, Error> {
        let mut polls = self.polls.lock().unwrap();
        if polls.is_empty() { Ok(Poll::Done) } else { polls.remove(0) }
    }

    fn progress(&self) -> ReadProgress {
        ReadProgress::default()
    }
}

/// A connector whose sources never end and never have rows.
pub struct Silent;

impl Connector for Silent {
    fn open(&self, _spec: &SourceSpec) -> Result<Box<dyn SourceReader>, Error> {
        Ok(Box::new(SilentReader))
    }
}

struct SilentReader;

impl SourceReader for SilentReader {
    fn schema(&self) -> SchemaRef {
        pairs(&[]).schema()
    }

    fn poll(&mut self, _rows_max: usize) -> Result<Poll, Error> {
        Ok(Poll::Pending { retry_after: Duration::from_millis(1) })
    }

    fn progress(&self) -> ReadProgress {
        ReadProgress::default()
    }
}

/// Numbers that look random, from a seed.
pub struct Numbers(pub u64);

impl Numbers {
    pub fn below(&mut self, n: u64) -> i64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % n) as i64
    }
}
