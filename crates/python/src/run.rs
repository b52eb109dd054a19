//! A query over events at work, on a thread of its own.
//!
//! Law: calls are done one after the other, in the order they were made. A caller waits without the
//! interpreter's lock and looks for signals; a signal ends the wait, and the call is done all the
//! same.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

use anabranch_engine::frame::{Event, FOREVER, Frame as EngineFrame, FrameRun as EngineRun, ResultLifetime};
use anabranch_engine::{Error, Options, ScalarValue, Session};
use arrow::array::{ArrayRef, Int64Array, RecordBatch, RecordBatchOptions, new_empty_array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use pyo3::prelude::*;

use crate::error::{raise, raised};
use crate::frame::Frame;
use crate::host::{Heard, hear};
use crate::rows::Rows;

type Job = Box<dyn for<'s> FnOnce(&mut EngineRun<'s>) + Send>;

/// A query over events at work.
#[pyclass(frozen, module = "anabranch._native")]
pub struct Run {
    frame: EngineFrame,
    jobs: Mutex<Option<Sender<Job>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// The process that started it: threads do not survive a fork.
    process: u32,
}

#[pymethods]
impl Run {
    /// Sets a query to work.
    #[new]
    fn new(py: Python<'_>, frame: &Frame) -> PyResult<Run> {
        let frame = frame.frame.clone();
        let (jobs, inbox) = channel::<Job>();
        let (started, starting) = channel();
        let body = {
            let frame = frame.clone();
            move || serve(&frame, &inbox, &started)
        };
        let spawned = Builder::new().name("anabranch run".into()).stack_size(16 << 20).spawn(body);
        let thread = spawned
            .map_err(|error| raised(py, &Error::unavailable(format!("cannot start a thread: {error}")), None))?;
        // (The closure may run where the interpreter's lock is not: it must be able to share what
        // it waits for.)
        let starting = Mutex::new(starting);
        let outcome = py.detach(|| starting.into_inner().unwrap_or_else(PoisonError::into_inner).recv());
        let outcome = outcome.unwrap_or_else(|_| Err(Error::internal("a run did not start")));
        outcome.map_err(|error| raised(py, &error, None))?;
        let process = std::process::id();
        Ok(Run { frame, jobs: Mutex::new(Some(jobs)), thread: Mutex::new(Some(thread)), process })
    }

    /// Gives rows to an input; the columns are those of the input, in its order.
    fn push(&self, py: Python<'_>, input: String, rows: &Rows) -> PyResult<()> {
        let batch = rows.single(py)?;
        self.ask(py, move |run| run.push(&input, batch))
    }

    /// Gives event objects to an input: for each row its kind (`point`, `start`, `end`,
    /// `interval`), its time, and the other one.
    fn push_events(
        &self,
        py: Python<'_>,
        input: String,
        rows: &Rows,
        kinds: Vec<String>,
        times: Vec<i64>,
        others: Vec<Option<i64>>,
    ) -> PyResult<()> {
        let batch = rows.single(py)?;
        self.ask(py, move |run| run.push(&input, events(&batch, &kinds, &times, &others)?))
    }

    /// Promises that no row before a time will come into an input.
    fn advance(&self, py: Python<'_>, input: String, time: i64) -> PyResult<()> {
        self.ask(py, move |run| run.advance(&input, time))
    }

    /// [`advance`](Self::advance) for all inputs.
    fn advance_all(&self, py: Python<'_>, time: i64) -> PyResult<()> {
        self.ask(py, move |run| run.advance_all(time))
    }

    /// Promises that no row of one partition before a time will come; `values` is one row of the
    /// partition's columns.
    fn advance_partition(&self, py: Python<'_>, input: String, values: &Rows, time: i64) -> PyResult<()> {
        let batch = values.single(py)?;
        self.ask(py, move |run| {
            let values = row_of(&batch, 0)?;
            run.advance_partition(&input, values, time)
        })
    }

    /// An input does not hold up the others until rows come into it again.
    fn idle(&self, py: Python<'_>, input: String) -> PyResult<()> {
        self.ask(py, move |run| run.idle(&input))
    }

    /// Hands on what waits, and waits for what follows.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        self.ask(py, |run| run.flush())
    }

    /// Hands on what has waited long enough; after how many seconds to call again.
    fn tick(&self, py: Python<'_>) -> PyResult<Option<f64>> {
        self.ask(py, |run| Ok(run.tick()?.map(|wait| wait.as_secs_f64())))
    }

    /// Ends all inputs.
    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        self.ask(py, |run| run.finish())
    }

    /// Lifetimes that are complete since the last call: `start`, `end` and the columns.
    fn lifetimes(&self, py: Python<'_>, instants: bool) -> PyResult<Rows> {
        let schema = self.frame.schema().map_err(|error| raised(py, &error, None))?;
        let lifetimes = self.ask(py, |run| run.lifetimes())?;
        let made = py.detach(|| table(&schema, &lifetimes, instants));
        made.map_err(|error| raised(py, &error, None))
    }

    /// Changes since the last call: `time`, `diff` and the columns.
    fn changes(&self, py: Python<'_>, instants: bool) -> PyResult<Rows> {
        let schema = self.frame.schema().map_err(|error| raised(py, &error, None))?;
        let batches = self.ask(py, |run| run.changes())?;
        let fields = [Field::new("time", time_type(instants), true), Field::new("diff", DataType::Int64, true)];
        let fields = fields.into_iter().chain(schema.fields().iter().map(|field| field.as_ref().clone()));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let mut made = Vec::new();
        for batch in &batches {
            let times = Int64Array::from_iter_values((0..batch.len()).map(|row| batch.times().get(row)));
            let diffs = Int64Array::from_iter_values((0..batch.len()).map(|row| batch.diffs().get(row)));
            let times = timed(Arc::new(times), instants);
            let columns = [times, Arc::new(diffs) as ArrayRef].into_iter().chain(batch.columns().iter().cloned());
            let batch = RecordBatch::try_new(schema.clone(), columns.collect());
            made.push(batch.map_err(|error| raised(py, &Error::internal(error.to_string()), None))?);
        }
        Ok(Rows::new(schema, made, vec![]))
    }

    /// No event before this time will come out.
    fn frontier(&self, py: Python<'_>) -> PyResult<i64> {
        self.ask(py, |run| Ok(run.frontier()))
    }

    /// How many rows were dropped and moved.
    fn late(&self, py: Python<'_>, input: String) -> PyResult<(u64, u64)> {
        let counts = self.ask(py, move |run| run.late(&input))?;
        Ok((counts.dropped, counts.adjusted))
    }

    /// Late rows since the last call, with by how many ticks they were moved; `None` if they are
    /// not reported.
    fn late_rows(&self, py: Python<'_>, input: String, names: Vec<String>, instants: bool) -> PyResult<Option<Rows>> {
        let Some(batch) = self.ask(py, move |run| run.late_rows(&input))? else { return Ok(None) };
        let times = Int64Array::from_iter_values((0..batch.len()).map(|row| batch.times().get(row)));
        let columns: Vec<ArrayRef> =
            std::iter::once(timed(Arc::new(times), instants)).chain(batch.columns().iter().cloned()).collect();
        let names = ["time".to_owned()].into_iter().chain(names).chain(["moved".to_owned()]);
        let fields = names.zip(&columns).map(|(name, column)| Field::new(name, column.data_type().clone(), true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let made = RecordBatch::try_new(schema.clone(), columns);
        let made = made.map_err(|error| raised(py, &Error::internal(error.to_string()), None))?;
        Ok(Some(Rows::new(schema, vec![made], vec![])))
    }

    /// Ends the run. Closing again does nothing.
    fn close(&self, py: Python<'_>) {
        if self.process != std::process::id() {
            return;
        }
        drop(self.jobs.lock().unwrap_or_else(PoisonError::into_inner).take());
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            py.detach(|| drop(thread.join()));
        }
    }

    /// Whether it was ended.
    #[getter]
    fn closed(&self) -> bool {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }
}

impl Run {
    fn ask<T: Send + 'static>(
        &self,
        py: Python<'_>,
        f: impl for<'s> FnOnce(&mut EngineRun<'s>) -> Result<T, Error> + Send + 'static,
    ) -> PyResult<T> {
        if self.process != std::process::id() {
            let message = format!("the run was started in process {}", self.process);
            return Err(raise(py, "closed", "08003", &message, Some("Start it anew, or start processes with spawn.")));
        }
        let (reply, answer) = channel();
        let job: Job = Box::new(move |run| drop(reply.send(f(run))));
        let sent = match self.jobs.lock().unwrap_or_else(PoisonError::into_inner).as_ref() {
            Some(jobs) => jobs.send(job),
            None => return Err(raise(py, "closed", "08003", "the run was closed", Some("Start it anew."))),
        };
        let answer = Mutex::new(answer);
        // (A job that was not sent has dropped its end of the answer's channel.)
        drop(sent);
        loop {
            match hear(py, &answer) {
                Heard::Answer(answer) => return answer.map_err(|error| raised(py, &error, None)),
                Heard::Nothing => py.check_signals()?,
                Heard::Gone => break,
            }
        }
        let hint = "This is a bug in Anabranch; please report it with the query.";
        Err(raise(py, "internal error", "XX000", "the run has stopped", Some(hint)))
    }
}

/// The life of a run: its session has no other thread.
fn serve(frame: &EngineFrame, inbox: &Receiver<Job>, started: &Sender<Result<(), Error>>) {
    let mut session = match Session::new(Options::default()) {
        Ok(session) => session,
        Err(error) => return drop(started.send(Err(error))),
    };
    let mut run = match session.start(frame) {
        Ok(run) => run,
        Err(error) => return drop(started.send(Err(error))),
    };
    if started.send(Ok(())).is_err() {
        return;
    }
    while let Ok(job) = inbox.recv() {
        job(&mut run);
    }
}

/// Event objects of rows.
pub fn events(
    batch: &RecordBatch,
    kinds: &[String],
    times: &[i64],
    others: &[Option<i64>],
) -> Result<Vec<Event>, Error> {
    let event = |(row, kind): (usize, &String)| {
        let values = row_of(batch, row)?;
        let (time, other) = (times[row], others[row].unwrap_or_default());
        Ok(match kind.as_str() {
            "start" => Event::start(time, values),
            "end" => Event::end(time, other, values),
            "interval" => Event::interval(time, other, values),
            _ => Event::point(time, values),
        })
    };
    kinds.iter().enumerate().map(event).collect()
}

fn row_of(batch: &RecordBatch, row: usize) -> Result<Vec<ScalarValue>, Error> {
    let value = |column: &ArrayRef| ScalarValue::try_from_array(column, row);
    batch.columns().iter().map(value).collect::<Result<Vec<_>, _>>().map_err(|error| Error::internal(error.to_string()))
}

/// Lifetimes as rows.
pub fn table(schema: &Schema, lifetimes: &[ResultLifetime], instants: bool) -> Result<Rows, Error> {
    let starts: Int64Array = lifetimes.iter().map(|lifetime| Some(lifetime.start)).collect();
    let end = |lifetime: &ResultLifetime| (lifetime.end != FOREVER).then_some(lifetime.end);
    let ends: Int64Array = lifetimes.iter().map(end).collect();
    let mut columns = vec![timed(Arc::new(starts), instants), timed(Arc::new(ends), instants)];
    for (at, field) in schema.fields().iter().enumerate() {
        let values = lifetimes.iter().map(|lifetime| lifetime.row[at].clone());
        columns.push(match lifetimes.is_empty() {
            true => new_empty_array(field.data_type()),
            false => ScalarValue::iter_to_array(values).map_err(|error| Error::internal(error.to_string()))?,
        });
    }
    let names = ["start", "end"].into_iter().chain(schema.fields().iter().map(|field| field.name().as_str()));
    let fields = names.zip(&columns).map(|(name, column)| Field::new(name, column.data_type().clone(), true));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let options = RecordBatchOptions::new().with_row_count(Some(lifetimes.len()));
    let batch = RecordBatch::try_new_with_options(schema.clone(), columns, &options);
    Ok(Rows::new(schema, vec![batch.map_err(|error| Error::internal(error.to_string()))?], vec![]))
}

pub fn time_type(instants: bool) -> DataType {
    if instants { DataType::Timestamp(TimeUnit::Microsecond, None) } else { DataType::Int64 }
}

/// Ticks as they are, or as timestamps of microseconds.
pub fn timed(ticks: ArrayRef, instants: bool) -> ArrayRef {
    cast(&ticks, &time_type(instants)).unwrap_or(ticks)
}
