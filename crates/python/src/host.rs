//! The thread that owns the session.
//!
//! Law: requests run one after the other in the order they were made; between them the session
//! takes turns, so sources stream on. A caller waits without the interpreter's lock and looks for
//! signals every [`LOOK`]; a signal stops the caller's own request and no other.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use anabranch_bucket::Buckets;
use anabranch_engine::store::{Snapshots, StoreError};
use anabranch_engine::{Clock, Error, ErrorKind, Interrupt, Options, Session, StepStatus};
use anabranch_file::FileConnector;
use pyo3::prelude::*;

/// Longest wait between two looks for signals.
const LOOK: Duration = Duration::from_millis(50);
/// How long to wait after a turn that failed.
const RETRY_AFTER: Duration = Duration::from_millis(20);

/// Snapshots that could not be written, as the thread that writes them tells.
#[derive(Default)]
pub struct SnapshotNews {
    /// Why the last one could not be.
    failure: Mutex<Option<String>>,
    /// Whether that was told to no caller yet.
    is_new: AtomicBool,
}

impl SnapshotNews {
    /// Why the last snapshot could not be written, if it could not be.
    pub fn failure(&self) -> Option<String> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The same, once for each failure.
    pub fn take(&self) -> Option<String> {
        if self.is_new.swap(false, Ordering::AcqRel) { self.failure() } else { None }
    }

    fn note(&self, problem: Option<&StoreError>) {
        let failure = problem
            .map(|problem| format!("a snapshot cannot be written, so the log grows; nothing is lost: {problem}"));
        let is_failure = failure.is_some();
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = failure;
        self.is_new.store(is_failure, Ordering::Release);
    }
}

type Job = Box<dyn FnOnce(&mut Session) + Send>;

/// A session on a thread of its own. Closing it joins the thread.
pub struct Host {
    jobs: Mutex<Option<Sender<Job>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    interrupt: Interrupt,
    /// Number of the request that runs; 0 while none does.
    running: Arc<AtomicU64>,
    next: AtomicU64,
    /// What has become of snapshots.
    pub snapshots: Arc<SnapshotNews>,
}

/// What a caller hears of its request.
pub enum Heard<T> {
    /// What it gave.
    Answer(T),
    /// Nothing yet: it is time to look for signals.
    Nothing,
    /// It will not be answered.
    Gone,
}

impl Host {
    /// Starts the thread, the session and its workers, over the database in a folder if one is
    /// named, whose snapshots go to a place if one is named.
    pub fn start(
        workers: usize,
        clock: Option<Arc<dyn Clock>>,
        folder: Option<PathBuf>,
        snapshots: Option<String>,
    ) -> Result<Host, Error> {
        let (jobs, inbox) = channel::<Job>();
        let (started, starting) = channel();
        let news = Arc::new(SnapshotNews::default());
        let noted = Arc::clone(&news);
        let body = move || {
            let told = Some(Arc::new(move |problem: Option<&StoreError>| noted.note(problem)) as _);
            let snapshots = Snapshots { place: snapshots, places: Arc::new(Buckets), told };
            let mut options = Options { workers, snapshots, ..Options::default() };
            let is_stepped = clock.is_none();
            if let Some(clock) = clock {
                options.clock = clock;
            }
            let opened = match folder {
                Some(folder) => Session::open_folder(&folder, options),
                None => Session::new(options),
            };
            let mut session = match opened {
                Ok(session) => session,
                Err(error) => return drop(started.send(Err(error))),
            };
            session.register_connector("file", Arc::new(FileConnector));
            if started.send(Ok(session.interrupt())).is_ok() {
                serve(&mut session, &inbox, is_stepped);
            }
        };
        let thread = Builder::new()
            .name("anabranch".into())
            .stack_size(16 << 20)
            .spawn(body)
            .map_err(|e| Error::unavailable(format!("cannot start a thread: {e}")))?;
        let interrupt = starting.recv().map_err(|_| gone())??;
        Ok(Host {
            jobs: Mutex::new(Some(jobs)),
            thread: Mutex::new(Some(thread)),
            interrupt,
            running: Arc::default(),
            next: AtomicU64::new(1),
            snapshots: news,
        })
    }

    /// Runs a function on the session and waits for its result, without the interpreter's lock.
    ///
    /// # Errors
    /// `Closed` after [`close`](Self::close); the signal's exception when one arrives (data are
    /// unharmed).
    pub fn call<T: Send + 'static>(
        &self,
        py: Python<'_>,
        f: impl FnOnce(&mut Session) -> Result<T, Error> + Send + 'static,
    ) -> PyResult<Result<T, Error>> {
        let (reply, result) = channel();
        // Shared with the part that waits without the interpreter's lock.
        let result = Mutex::new(result);
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let running = Arc::clone(&self.running);
        let is_cancelled = Arc::new(AtomicU64::new(0));
        let cancelled = Arc::clone(&is_cancelled);
        let job = Box::new(move |session: &mut Session| {
            running.store(id, Ordering::SeqCst);
            let outcome = match cancelled.load(Ordering::SeqCst) {
                0 => f(session),
                _ => Err(Error::cancelled()),
            };
            running.store(0, Ordering::SeqCst);
            drop(reply.send(outcome));
        });
        if let Err(error) = self.send(job) {
            return Ok(Err(error));
        }
        loop {
            match hear(py, &result) {
                Heard::Answer(outcome) => return Ok(outcome),
                Heard::Gone => return Ok(Err(gone())),
                Heard::Nothing => {
                    if let Err(signal) = py.check_signals() {
                        is_cancelled.store(1, Ordering::SeqCst);
                        self.stop(py, id, &result);
                        return Err(signal);
                    }
                }
            }
        }
    }

    /// Interrupts request `id` until it has answered.
    fn stop<T: Send>(&self, py: Python<'_>, id: u64, result: &Mutex<Receiver<Result<T, Error>>>) {
        py.detach(|| {
            loop {
                if self.running.load(Ordering::SeqCst) == id {
                    self.interrupt.trigger();
                }
                match receive(result, Duration::from_millis(5)) {
                    Err(RecvTimeoutError::Timeout) => {}
                    _ => return,
                }
            }
        });
    }

    /// Runs a function on the session when its turn comes; no caller waits.
    pub fn post(&self, f: impl FnOnce(&mut Session) + Send + 'static) {
        drop(self.send(Box::new(f)));
    }

    /// Stops the request that runs, if one does.
    pub fn interrupt(&self) {
        if self.running.load(Ordering::SeqCst) != 0 {
            self.interrupt.trigger();
        }
    }

    /// Ends the thread after what was asked for before. Closing again does nothing.
    pub fn close(&self, py: Python<'_>) {
        let jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(jobs);
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            py.detach(|| drop(thread.join()));
        }
    }

    /// Whether [`close`](Self::close) was called.
    pub fn is_closed(&self) -> bool {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    fn send(&self, job: Job) -> Result<(), Error> {
        let jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(jobs) = jobs.as_ref() else {
            return Err(Error::closed("the database is closed").with_hint("Open it anew with anabranch.connect(..)."));
        };
        jobs.send(job).map_err(|_| gone())
    }
}

fn receive<T>(result: &Mutex<Receiver<T>>, timeout: Duration) -> Result<T, RecvTimeoutError> {
    result.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(timeout)
}

/// Waits a while for an answer, without the interpreter's lock.
pub fn hear<T: Send>(py: Python<'_>, result: &Mutex<Receiver<T>>) -> Heard<T> {
    py.detach(|| match receive(result, LOOK) {
        Ok(outcome) => Heard::Answer(outcome),
        Err(RecvTimeoutError::Timeout) => Heard::Nothing,
        Err(RecvTimeoutError::Disconnected) => Heard::Gone,
    })
}

/// The session's thread is no more: it panicked, and said why on standard error.
fn gone() -> Error {
    Error::new(ErrorKind::Internal, "the engine has stopped")
        .with_hint("This is a bug in Anabranch; please report it with the statement.")
}

/// Requests first, turns of the session otherwise, until the host is closed.
///
/// With a clock of the caller's nothing happens between requests.
fn serve(session: &mut Session, inbox: &Receiver<Job>, is_stepped: bool) {
    loop {
        let step = if is_stepped { session.step() } else { Ok(StepStatus::Idle { retry_after: None }) };
        let next = match step {
            Ok(StepStatus::Working) => match inbox.try_recv() {
                Ok(job) => Ok(job),
                Err(TryRecvError::Empty) => Err(RecvTimeoutError::Timeout),
                Err(TryRecvError::Disconnected) => Err(RecvTimeoutError::Disconnected),
            },
            Ok(StepStatus::Idle { retry_after: Some(pause) }) => inbox.recv_timeout(pause),
            Ok(StepStatus::Idle { retry_after: None }) => inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Err(_) => {
                // An interrupt that came too late for its statement is not meant for the sources.
                session.interrupt().clear();
                inbox.recv_timeout(RETRY_AFTER)
            }
        };
        match next {
            Ok(job) => job(session),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}
