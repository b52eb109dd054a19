//! A database as Python holds it: every method is one request to the engine's thread.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anabranch_engine::{
    Changes as EngineChanges, Error, ManualClock, Outcome, Rows as EngineRows, SessionClient, Subscription,
    TransactionState,
};
use anabranch_sql::column_type_name;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::error::{raise, raised, warn_of_snapshot};
use crate::frame::{Frame, described};
use crate::functions::{Function, is_running};
use crate::host::Host;
use crate::rows::Rows;

/// How long one request waits for changes; between two of them other threads have their turn.
const CHANGES_WAIT: Duration = Duration::from_millis(2);

/// An engine on a thread of its own.
#[pyclass(frozen, module = "anabranch._native")]
pub struct Engine {
    host: Arc<Host>,
    clock: Option<Arc<ManualClock>>,
    /// What a connection has of its own; the database's handle goes by the session's.
    client: Option<Arc<Mutex<SessionClient>>>,
    /// Whether this connection was closed.
    is_closed: AtomicBool,
    /// The process that opened it: threads do not survive a fork.
    process: u32,
}

/// A query whose changes are read as they happen.
#[pyclass(frozen, module = "anabranch._native")]
pub struct Changes {
    host: Arc<Host>,
    schema: SchemaRef,
    subscription: Mutex<Option<Subscription>>,
}

#[pymethods]
impl Engine {
    /// Starts an engine, over the database in a folder if one is named, whose snapshots go to a
    /// place if one is named. With `manual` its clock
    /// stands still unless it is set, and nothing happens between calls.
    #[new]
    #[pyo3(signature = (workers, manual=false, folder=None, snapshots=None))]
    fn new(
        py: Python<'_>,
        workers: usize,
        manual: bool,
        folder: Option<PathBuf>,
        snapshots: Option<String>,
    ) -> PyResult<Engine> {
        let clock = manual.then(|| Arc::new(ManualClock::default()));
        let given = clock.clone().map(|clock| clock as Arc<dyn anabranch_engine::Clock>);
        let host = Host::start(workers, given, folder, snapshots).map_err(|error| raised(py, &error, None))?;
        let is_closed = AtomicBool::new(false);
        Ok(Engine { host: Arc::new(host), clock, client: None, is_closed, process: std::process::id() })
    }

    /// A connection: the same engine, with settings and a transaction of its own.
    fn connect(&self, py: Python<'_>) -> PyResult<Engine> {
        let client = self.ask(py, None, |session| Ok(session.client()))?;
        Ok(Engine {
            host: Arc::clone(&self.host),
            clock: self.clock.clone(),
            client: Some(Arc::new(Mutex::new(client))),
            is_closed: AtomicBool::new(false),
            process: self.process,
        })
    }

    /// Where the transaction stands: `none`, `open` or `failed`.
    fn transaction(&self, py: Python<'_>) -> PyResult<&'static str> {
        let state = self.ask(py, None, |session| Ok(session.transaction_state()))?;
        Ok(match state {
            TransactionState::Idle => "none",
            TransactionState::Open => "open",
            TransactionState::Failed => "failed",
        })
    }

    /// Why the last snapshot could not be written, if it could not be.
    #[getter]
    fn snapshot_failure(&self) -> Option<String> {
        self.host.snapshots.failure()
    }

    /// Makes a function known to SQL.
    fn register_function(&self, py: Python<'_>, name: String, function: &Function) -> PyResult<()> {
        let function = function.function.clone();
        self.ask(py, None, move |session| {
            session.register_function(&name, function);
            Ok(())
        })
    }

    /// Forgets a function; whether there was one of that name.
    fn unregister_function(&self, py: Python<'_>, name: String) -> PyResult<bool> {
        self.ask(py, None, move |session| Ok(session.unregister_function(&name)))
    }

    /// Runs a script: a list of `(tag, detail, Rows | None, Changes | None)`, one a statement.
    fn execute<'py>(&self, py: Python<'py>, script: String) -> PyResult<Bound<'py, PyList>> {
        let text = script.clone();
        let outcomes = self.ask(py, Some(&script), move |session| session.execute(&text))?;
        let list = PyList::empty(py);
        for outcome in outcomes {
            list.append(self.told(py, outcome)?)?;
        }
        Ok(list)
    }

    /// The columns of a query, without running it: `[(name, type, is nullable)]` as SQL names them,
    /// and the schema.
    fn describe<'py>(&self, py: Python<'py>, sql: String) -> PyResult<Bound<'py, PyTuple>> {
        let text = sql.clone();
        let (planned, schema) = self.ask(py, Some(&sql), move |session| session.columns_of_query(&text))?;
        let fields: Vec<(String, String, bool)> = planned
            .fields()
            .iter()
            .map(|field| (field.name().clone(), column_type_name(field), field.is_nullable()))
            .collect();
        let rows = Rows::new(schema, vec![], vec![]).into_pyobject(py)?;
        PyTuple::new(py, [fields.into_pyobject(py)?.into_any(), rows.into_any()])
    }

    /// Rows of a relation with a watermark as events, at the times of its column.
    fn events(&self, py: Python<'_>, relation: String, options: &Bound<'_, PyDict>) -> PyResult<Frame> {
        let events = self.ask(py, None, move |session| session.events(&relation))?;
        Frame::checked(py, described(events, options)?.frame())
    }

    /// Contents of a relation as events: a row is in force from the commit that brings it to the
    /// one that takes it.
    fn contents(&self, py: Python<'_>, relation: String) -> PyResult<Frame> {
        let events = self.ask(py, None, move |session| session.contents(&relation))?;
        Frame::checked(py, events.frame())
    }

    /// Keeps the events that a query has in force as a relation, or all events with their start
    /// and end.
    fn create_view(&self, py: Python<'_>, name: String, frame: &Frame, in_force: bool) -> PyResult<()> {
        let frame = frame.frame.clone();
        self.ask(py, None, move |session| match in_force {
            true => session.create_view(&name, &frame),
            false => session.create_events_view(&name, &frame),
        })
    }

    /// Relations by name: `[(name, kind, names of the primary key)]`.
    fn relations(&self, py: Python<'_>) -> PyResult<Vec<(String, String, Vec<String>)>> {
        let relations = self.ask(py, None, |session| Ok(session.relations()))?;
        let told = |relation: anabranch_engine::RelationInfo| {
            let key = relation.primary_key.iter().map(|idx| relation.schema.field(*idx).name().clone()).collect();
            (relation.name, format!("{:?}", relation.kind), key)
        };
        Ok(relations.into_iter().map(told).collect())
    }

    /// Appends rows to a table as one commit: its time.
    fn insert(&self, py: Python<'_>, table: String, rows: &Rows) -> PyResult<i64> {
        let batch = rows.single(py)?;
        self.ask(py, None, move |session| session.insert(&table, &batch))
    }

    /// Applies signed changes to a table as one commit: its time. `time` sets a manual clock
    /// before.
    #[pyo3(signature = (table, rows, diffs, time=None))]
    fn apply(&self, py: Python<'_>, table: String, rows: &Rows, diffs: Vec<i64>, time: Option<i64>) -> PyResult<i64> {
        let batch = rows.single(py)?;
        if let (Some(clock), Some(time)) = (&self.clock, time) {
            clock.set(time);
        }
        self.ask(py, None, move |session| session.apply(&table, &batch, &diffs))
    }

    /// Sets a manual clock, in microseconds.
    fn set_time(&self, time: i64) {
        if let Some(clock) = &self.clock {
            clock.set(time);
        }
    }

    /// Time of the last commit.
    fn time(&self, py: Python<'_>) -> PyResult<i64> {
        self.ask(py, None, |session| Ok(session.time()))
    }

    /// Lets workers and sources run until nothing is left to do at present.
    fn settle(&self, py: Python<'_>) -> PyResult<()> {
        self.ask(py, None, |session| {
            while session.step()? == anabranch_engine::StepStatus::Working {}
            Ok(())
        })
    }

    /// Sources: a list of dictionaries.
    fn sources<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let sources = self.ask(py, None, |session| Ok(session.sources()))?;
        let list = PyList::empty(py);
        for source in sources {
            let (state, error) = match source.state {
                anabranch_engine::SourceState::Unread => ("unread", None),
                anabranch_engine::SourceState::Running => ("running", None),
                anabranch_engine::SourceState::Done => ("done", None),
                anabranch_engine::SourceState::Failed(text) => ("failed", Some(text)),
            };
            let told = PyDict::new(py);
            told.set_item("name", source.name)?;
            told.set_item("state", state)?;
            told.set_item("error", error)?;
            told.set_item("rows", source.rows)?;
            told.set_item("skipped", source.progress.skipped)?;
            told.set_item("bytes_read", source.progress.bytes_read)?;
            told.set_item("bytes_total", source.progress.bytes_total)?;
            told.set_item("bounded", source.bounded)?;
            list.append(told)?;
        }
        Ok(list)
    }

    /// Runs a script when its turn comes; no caller waits and errors are dropped. For finalizers.
    fn post(&self, script: String) {
        if self.process == std::process::id() {
            self.host.post(move |session| drop(session.execute(&script)));
        }
    }

    /// Stops the request that runs, from another thread.
    fn interrupt(&self) {
        self.host.interrupt();
    }

    /// Ends the engine, or the connection, whose open transaction is rolled back. Closing again
    /// does nothing.
    fn close(&self, py: Python<'_>) {
        if self.process != std::process::id() {
            return;
        }
        match &self.client {
            None => self.host.close(py),
            Some(_) => self.end_client(),
        }
    }

    /// Whether the engine or the connection was closed.
    #[getter]
    fn closed(&self) -> bool {
        self.is_closed.load(Ordering::SeqCst) || self.host.is_closed()
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        if self.process == std::process::id() {
            self.end_client();
        }
    }
}

impl Engine {
    /// Runs a function on the session's thread.
    fn ask<T: Send + 'static>(
        &self,
        py: Python<'_>,
        statement: Option<&str>,
        f: impl FnOnce(&mut anabranch_engine::Session) -> Result<T, Error> + Send + 'static,
    ) -> PyResult<T> {
        if self.process != std::process::id() {
            let message = format!("the database was opened in process {}", self.process);
            return Err(raise(py, "closed", "08003", &message, Some("Connect anew, or start processes with spawn.")));
        }
        if is_running() {
            let message = "a function asks the database that runs it";
            return Err(raise(py, "closed", "55000", message, Some("Pass what it needs as arguments, or join.")));
        }
        if self.is_closed.load(Ordering::SeqCst) {
            return Err(raise(py, "closed", "08003", "the connection is closed", Some("Make another one.")));
        }
        let client = self.client.clone();
        let asked = move |session: &mut anabranch_engine::Session| match client {
            None => f(session),
            Some(client) => {
                let mut client = client.lock().unwrap_or_else(PoisonError::into_inner);
                session.as_client(&mut client, f)
            }
        };
        let answer = self.host.call(py, asked)?.map_err(|error| raised(py, &error, statement));
        if let Some(failure) = self.host.snapshots.take() {
            warn_of_snapshot(py, &failure);
        }
        answer
    }

    /// Ends a connection.
    fn end_client(&self) {
        let Some(client) = &self.client else { return };
        if self.is_closed.swap(true, Ordering::SeqCst) {
            return;
        }
        let client = Arc::clone(client);
        self.host.post(move |session| session.end_client(&mut client.lock().unwrap_or_else(PoisonError::into_inner)));
    }

    fn told<'py>(&self, py: Python<'py>, outcome: Outcome) -> PyResult<Bound<'py, PyTuple>> {
        let none = || py.None().into_bound(py);
        let text = |text: &str| text.into_pyobject(py).map(Bound::into_any);
        let parts = match outcome {
            Outcome::Rows(EngineRows { schema, batches, notices, .. }) => {
                let rows = Rows::new(schema, batches, notices).into_pyobject(py)?.into_any();
                [text("SELECT")?, none(), rows, none()]
            }
            Outcome::Done { tag, detail, .. } => {
                let detail = detail.map(|detail| text(&detail)).transpose()?.unwrap_or_else(none);
                [text(&tag)?, detail, none(), none()]
            }
            Outcome::Copy(_) => {
                let error = Error::invalid("COPY with the client is not supported here")
                    .with_hint("Insert a DataFrame, or name a file.");
                return Err(raised(py, &error, None));
            }
            Outcome::Subscription(subscription) => {
                let changes = Changes {
                    host: Arc::clone(&self.host),
                    schema: subscription.schema().clone(),
                    subscription: Mutex::new(Some(subscription)),
                };
                [text("SUBSCRIBE")?, none(), none(), changes.into_pyobject(py)?.into_any()]
            }
        };
        PyTuple::new(py, parts)
    }
}

#[pymethods]
impl Changes {
    /// The next changes within `timeout` seconds: `("rows", Rows)`, `("progress", time)`,
    /// `("nothing", None)` or `("end", None)`.
    fn next<'py>(&self, py: Python<'py>, timeout: f64) -> PyResult<(&'static str, Bound<'py, PyAny>)> {
        let deadline = Instant::now() + Duration::from_secs_f64(timeout.clamp(0.0, 1e8));
        loop {
            let subscription = self.subscription.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let Some(subscription) = subscription else {
                return Ok(("end", py.None().into_bound(py)));
            };
            let wait = CHANGES_WAIT.min(deadline.saturating_duration_since(Instant::now()));
            let asked = self.host.call(py, move |session| session.next_changes(&subscription, wait))?;
            match asked.map_err(|error| raised(py, &error, None))? {
                EngineChanges::Rows(batches) => {
                    let rows = Rows::new(self.schema.clone(), batches, vec![]);
                    return Ok(("rows", rows.into_pyobject(py)?.into_any()));
                }
                EngineChanges::Progress(time) => return Ok(("progress", time.into_pyobject(py)?.into_any())),
                EngineChanges::End => return Ok(("end", py.None().into_bound(py))),
                EngineChanges::Nothing if Instant::now() >= deadline => {
                    return Ok(("nothing", py.None().into_bound(py)));
                }
                // The engine's thread serves others before it looks again. (Its answers come too
                // fast for a request to have looked for signals.)
                EngineChanges::Nothing => {
                    py.check_signals()?;
                    py.detach(|| std::thread::sleep(Duration::from_micros(500)));
                }
            }
        }
    }

    /// The columns of the changes, as an answer without rows.
    fn schema(&self) -> Rows {
        Rows::new(self.schema.clone(), Vec::<RecordBatch>::new(), vec![])
    }

    /// Takes the query back; reading then ends.
    fn close(&self) {
        let subscription = self.subscription.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(subscription) = subscription {
            self.host.post(move |session| session.unsubscribe(subscription));
        }
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        self.close();
    }
}
