//! Early answers over rows at hand, on a thread of their own.
//!
//! Law: an answer is computed when it is asked for, and the last one is exact. A caller waits
//! without the interpreter's lock and looks for signals.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

use anabranch_engine::frame::{Early, Frame as EngineFrame};
use anabranch_engine::{Error, Options, Poll, ReadProgress, Session, SourceReader};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use pyo3::prelude::*;

use crate::error::{raise, raised};
use crate::frame::Frame;
use crate::host::{Heard, hear};
use crate::rows::Rows;

type Reply = Sender<Result<Option<Early>, Error>>;

/// Answers that become exact.
#[pyclass(frozen, module = "anabranch._native")]
pub struct Progressive {
    asked: Mutex<Option<Sender<Reply>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    process: u32,
}

#[pymethods]
impl Progressive {
    /// Rows for the inputs of a query, and how many answers there are to be.
    #[new]
    fn new(py: Python<'_>, frame: &Frame, sources: Vec<(String, Py<Rows>)>, steps: u32) -> PyResult<Progressive> {
        let frame = frame.frame.clone();
        let mut readers: Vec<(String, RowsReader)> = Vec::with_capacity(sources.len());
        for (name, rows) in sources {
            readers.push((name, RowsReader { rows: rows.get().single(py)?, n_read: 0 }));
        }
        let (asked, inbox) = channel();
        let (started, starting) = channel();
        let body = move || serve(&frame, readers, steps, &inbox, &started);
        let spawned = Builder::new().name("anabranch answers".into()).stack_size(16 << 20).spawn(body);
        let thread = spawned
            .map_err(|error| raised(py, &Error::unavailable(format!("cannot start a thread: {error}")), None))?;
        let made = Progressive {
            asked: Mutex::new(Some(asked)),
            thread: Mutex::new(Some(thread)),
            process: std::process::id(),
        };
        wait(py, starting)?;
        Ok(made)
    }

    /// The share that was read and the answer over it; `None` after the exact one.
    fn step(&self, py: Python<'_>) -> PyResult<Option<(f64, Rows)>> {
        if self.process != std::process::id() {
            let hint = Some("Start them anew, or start processes with spawn.");
            return Err(raise(py, "closed", "08003", "the answers were begun in another process", hint));
        }
        let (reply, answer) = channel();
        let sent = match self.asked.lock().unwrap_or_else(PoisonError::into_inner).as_ref() {
            Some(asked) => asked.send(reply),
            None => return Ok(None),
        };
        drop(sent);
        let early = wait(py, answer)?;
        Ok(early.map(|Early { share, rows }| (share, Rows::new(rows.schema(), vec![rows], vec![]))))
    }

    /// Ends the thread. Closing again does nothing.
    fn close(&self, py: Python<'_>) {
        if self.process != std::process::id() {
            return;
        }
        drop(self.asked.lock().unwrap_or_else(PoisonError::into_inner).take());
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            py.detach(|| drop(thread.join()));
        }
    }
}

/// Waits for an answer, looking for signals.
fn wait<T: Send>(py: Python<'_>, answer: Receiver<Result<T, Error>>) -> PyResult<T> {
    let answer = Mutex::new(answer);
    loop {
        match hear(py, &answer) {
            Heard::Answer(answer) => return answer.map_err(|error| raised(py, &error, None)),
            Heard::Nothing => py.check_signals()?,
            Heard::Gone => break,
        }
    }
    let hint = "This is a bug in Anabranch; please report it with the query.";
    Err(raise(py, "internal error", "XX000", "the answers have stopped", Some(hint)))
}

/// The life of the answers: their session has no other thread.
fn serve(
    frame: &EngineFrame,
    readers: Vec<(String, RowsReader)>,
    steps: u32,
    inbox: &Receiver<Reply>,
    started: &Sender<Result<(), Error>>,
) {
    let mut session = match Session::new(Options::default()) {
        Ok(session) => session,
        Err(error) => return drop(started.send(Err(error))),
    };
    let sources = readers.iter().map(|(name, reader)| {
        let reader: Box<dyn SourceReader> = Box::new(reader.clone());
        (name.as_str(), reader)
    });
    let mut answers = match session.progressive(frame, sources, steps) {
        Ok(answers) => answers,
        Err(error) => return drop(started.send(Err(error))),
    };
    if started.send(Ok(())).is_err() {
        return;
    }
    while let Ok(reply) = inbox.recv() {
        drop(reply.send(answers.step()));
    }
}

/// Rows at hand, as a source; a row counts as a byte.
#[derive(Clone)]
struct RowsReader {
    rows: RecordBatch,
    n_read: usize,
}

impl SourceReader for RowsReader {
    fn schema(&self) -> SchemaRef {
        self.rows.schema()
    }

    fn poll(&mut self, rows_max: usize) -> Result<Poll, Error> {
        let n_rows = rows_max.min(self.rows.num_rows() - self.n_read);
        if n_rows == 0 {
            return Ok(Poll::Done);
        }
        let rows = self.rows.slice(self.n_read, n_rows);
        self.n_read += n_rows;
        Ok(Poll::Rows(rows))
    }

    fn progress(&self) -> ReadProgress {
        let rows = self.n_read as u64;
        let all = self.rows.num_rows() as u64;
        ReadProgress { bytes_read: rows, bytes_total: Some(all), rows, ..ReadProgress::default() }
    }
}
