//! The engine's thread: it owns the session and does what connections ask for, one request at a
//! time.
//!
//! A request is a function of the session. A statement that has to wait for workers does so on its
//! connection's thread (`session/waiting.rs`), so no request holds up the others for long. Between
//! requests the engine takes turns: sources are read and arrangements forget. With nothing to do it
//! sleeps until the next request, or until a source may have rows.
//!
//! A request that panics has broken an invariant of the engine: the engine stops, and every later
//! call says why.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::error::Error;
use crate::session::{Latest, Receipt, Session, StepStatus};

/// Stack of the engine's thread. Pages that are not touched take no memory. A build without
/// optimisation overflowed 2 MB with `NOT IN (correlated subquery) OR ..`.
const STACK_BYTES: usize = 16 << 20;

/// Requests between two turns of the session, at most.
const REQUESTS_PER_TURN: usize = 64;
/// Longest sleep of an engine whose sources may have rows later.
const NAP_MAX: Duration = Duration::from_millis(100);

/// Pause after which the engine looks whether workers have taken in what they were given.
const LOOK_AFTER: Duration = Duration::from_micros(200);

/// What the engine is asked to do.
enum Request {
    Work(Box<dyn FnOnce(&mut Session) + Send>),
    Stop,
}

/// A running engine. Dropping it stops the engine and waits for its end.
pub(super) struct Engine {
    requests: Sender<Request>,
    /// Requests that wait.
    n_waiting: Arc<AtomicUsize>,
    /// What is known of the session without asking.
    latest: Arc<Latest>,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// Why the engine has stopped by itself.
    failure: Arc<Mutex<Option<String>>>,
}

impl Engine {
    /// Starts the engine with the session that `make` makes, on the engine's thread.
    ///
    /// # Errors
    /// Those of `make`; `Unavailable` when threads cannot be started.
    pub fn start(make: impl FnOnce() -> Result<Session, Error> + Send + 'static) -> Result<Engine, Error> {
        let (requests, queue) = channel();
        let (started, starting) = channel();
        let failure = Arc::new(Mutex::new(None));
        let its_failure = Arc::clone(&failure);
        let run = move || {
            let session = match make() {
                Ok(session) => session,
                Err(error) => {
                    // (No thread can have stopped listening yet.)
                    let _ = started.send(Err(error));
                    return;
                }
            };
            let _ = started.send(Ok(session.latest()));
            serve(session, &queue, &its_failure);
        };
        let thread = std::thread::Builder::new().name("anabranch-engine".to_owned()).stack_size(STACK_BYTES).spawn(run);
        let thread =
            thread.map_err(|error| Error::unavailable(format!("cannot start the engine's thread: {error}")))?;
        let latest = starting.recv().map_err(|_| Error::internal("the engine ended while it started"))??;
        let n_waiting = Arc::default();
        Ok(Engine { requests, n_waiting, latest, thread: Mutex::new(Some(thread)), failure })
    }

    /// What is known of the session without asking.
    pub fn latest(&self) -> &Latest {
        &self.latest
    }

    /// Has `work` done and waits for what it returns.
    ///
    /// # Errors
    /// `Closed` when the engine was stopped, `Internal` when it has failed.
    pub fn call<T: Send + 'static>(&self, work: impl FnOnce(&mut Session) -> T + Send + 'static) -> Result<T, Error> {
        let (reply, answer) = channel();
        self.tell(move |session| {
            // (The caller has gone, so no answer is missed.)
            let _ = reply.send(work(session));
        })?;
        answer.recv().map_err(|_| self.gone())
    }

    /// Has `work` done and waits for what it returns, and for all that it may show to last. Those
    /// that wait are woken once: by the thread that has synced the log for all of them.
    ///
    /// # Errors
    /// As [`call`](Self::call); `Unavailable` when it is unknown whether it lasts.
    pub fn call_lasting<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Session) -> T + Send + 'static,
    ) -> Result<T, Error> {
        let (reply, answer) = channel();
        self.tell(move |session| {
            let (told, receipt) = (work(session), session.receipt());
            // (The caller has gone, so no answer is missed.)
            if !receipt.calls_back() {
                let _ = reply.send(Ok((told, receipt)));
                return;
            }
            receipt.then(Box::new(move |lasts| {
                let _ = reply.send(lasts.map(|()| (told, Receipt::default())));
            }));
        })?;
        let (told, receipt) = answer.recv().map_err(|_| self.gone())??;
        receipt.wait()?;
        Ok(told)
    }

    /// Has `work` done, some time.
    ///
    /// # Errors
    /// As [`call`](Self::call).
    pub fn tell(&self, work: impl FnOnce(&mut Session) + Send + 'static) -> Result<(), Error> {
        let n_waiting = Arc::clone(&self.n_waiting);
        n_waiting.fetch_add(1, Ordering::Relaxed);
        let work = move |session: &mut Session| {
            n_waiting.fetch_sub(1, Ordering::Relaxed);
            work(session);
        };
        self.requests.send(Request::Work(Box::new(work))).map_err(|_| self.gone())
    }

    /// Requests that were made and not begun.
    pub fn n_waiting(&self) -> usize {
        self.n_waiting.load(Ordering::Relaxed)
    }

    /// Stops the engine and waits for its end.
    ///
    /// # Errors
    /// `Internal` when it had failed.
    pub fn stop(&self) -> Result<(), Error> {
        let _ = self.requests.send(Request::Stop);
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // A panic was caught, and is told below.
            let _ = thread.join();
        }
        match self.failure() {
            Some(_) => Err(self.gone()),
            None => Ok(()),
        }
    }

    /// Why the engine has stopped by itself, if it has.
    pub fn failure(&self) -> Option<String> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn gone(&self) -> Error {
        match self.failure() {
            Some(message) => Error::internal(format!("the engine has failed: {message}")),
            None => Error::closed("the database was closed").with_sqlstate("57P01").with_hint("Open it anew."),
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let _ = self.stop();
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("failure", &self.failure()).finish_non_exhaustive()
    }
}

/// The engine's life.
fn serve(mut session: Session, queue: &Receiver<Request>, failure: &Mutex<Option<String>>) {
    session.serve_many();
    let mut next = Next::Now;
    loop {
        let stops = catch_unwind(AssertUnwindSafe(|| match obey(&mut session, queue, next) {
            Obeyed::Stop => None,
            Obeyed::Go => {
                let next = take_turn(&mut session);
                Some(session.flush_or_wait().map_or(next, |patience| next.not_after(patience.min(LOOK_AFTER))))
            }
        }));
        match stops {
            Ok(Some(then)) => next = then,
            Ok(None) => return,
            Err(panic) => {
                let text = panic.downcast_ref::<String>().cloned();
                let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
                let text = text.unwrap_or_else(|| "no message".to_owned());
                *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
                // Dropping broken state could panic again.
                std::mem::forget(session);
                return;
            }
        }
    }
}

/// When the engine has something to do without being asked.
#[derive(Clone, Copy)]
enum Next {
    Now,
    After(Duration),
    Never,
}

impl Next {
    fn not_after(self, time: Duration) -> Next {
        match self {
            Next::Now => Next::Now,
            Next::After(sooner) => Next::After(sooner.min(time)),
            Next::Never => Next::After(time),
        }
    }
}

enum Obeyed {
    Go,
    Stop,
}

/// Does what waits in the queue; waits for a request if there is nothing else to do.
fn obey(session: &mut Session, queue: &Receiver<Request>, next: Next) -> Obeyed {
    let first = match next {
        Next::Now => queue.try_recv().map_err(|error| error == TryRecvError::Disconnected),
        Next::After(time) => queue.recv_timeout(time).map_err(|error| error == RecvTimeoutError::Disconnected),
        Next::Never => queue.recv().map_err(|_| true),
    };
    let mut request = match first {
        Ok(request) => Some(request),
        Err(true) => return Obeyed::Stop,
        Err(false) => None,
    };
    for _ in 0..REQUESTS_PER_TURN {
        match request {
            Some(Request::Work(work)) => work(session),
            Some(Request::Stop) => return Obeyed::Stop,
            None => break,
        }
        request = queue.try_recv().ok();
    }
    if let Some(request) = request {
        match request {
            Request::Work(work) => work(session),
            Request::Stop => return Obeyed::Stop,
        }
    }
    Obeyed::Go
}

fn take_turn(session: &mut Session) -> Next {
    match session.step() {
        Ok(StepStatus::Working) => Next::Now,
        Ok(StepStatus::Idle { retry_after: Some(time) }) => Next::After(time.min(NAP_MAX)),
        Ok(StepStatus::Idle { retry_after: None }) => Next::Never,
        // A worker has failed: requests hear of it.
        Err(_) => Next::Never,
    }
}
