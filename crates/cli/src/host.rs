//! The thread that owns the session.
//!
//! Law: requests run one after the other in the order they were made; between them the session
//! takes turns, so sources stream on. A request's replies arrive in order and the last one is
//! [`Reply::Finished`].

use std::{
    io::Write,
    path::PathBuf,
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel, sync_channel},
    },
    thread::{Builder, JoinHandle},
    time::Duration,
};

use anabranch_bucket::Buckets;
use anabranch_engine::store::{Snapshots, StoreError};
use anabranch_engine::{
    Changes, CopyRows, CopyStart, CopyWay, Error, Interrupt, Options, Outcome, Progress, Session, SourceStatus,
    StepStatus, Subscription, memory_for_state,
};
use anabranch_file::FileConnector;
use anabranch_sql::Parsed;

use crate::data::{PIECES_MAX, Piece, Wanted};
use crate::reply::{Done, Reply};

/// Tells what went wrong with a snapshot.
fn tell_of_snapshot(problem: Option<&StoreError>) {
    if let Some(problem) = problem {
        eprintln!("notice: a snapshot cannot be written, so the log grows; nothing is lost: {problem}");
    }
}

/// A session on a thread of its own. Dropping it ends the thread after the request that runs, and
/// waits for that if the database is on disk: it is then closed, and the next to open it knows how
/// much there must be.
pub(crate) struct Host {
    requests: Option<Sender<Request>>,
    thread: Option<JoinHandle<()>>,
    interrupt: Interrupt,
    progress: Progress,
}

type Request = Box<dyn FnOnce(&mut Session) + Send>;

/// How long a subscription waits before it looks whether its client still listens.
const CHANGES_WAIT: Duration = Duration::from_millis(100);

/// How long to wait after a turn that failed.
const RETRY_AFTER: Duration = Duration::from_millis(20);

impl Host {
    /// Starts the thread, the session and its workers, over the database in a folder if one is
    /// named, whose snapshots go to a place if one is named.
    pub(crate) fn start(workers: usize, folder: Option<PathBuf>, snapshots: Option<String>) -> Result<Host, Error> {
        let is_on_disk = folder.is_some();
        let (requests, inbox) = channel::<Request>();
        let (started, starting) = channel();
        let body = move || {
            let told = Some(Arc::new(tell_of_snapshot) as _);
            let snapshots = Snapshots { place: snapshots, places: Arc::new(Buckets), told };
            let options = Options { workers, snapshots, memory_limit: memory_for_state(), ..Options::default() };
            let opened = match folder {
                Some(folder) => Session::open_folder(&folder, options),
                None => Session::new(options),
            };
            let mut session = match opened {
                Ok(session) => session,
                Err(error) => return drop(started.send(Err(error))),
            };
            session.register_connector("file", Arc::new(FileConnector));
            if started.send(Ok((session.interrupt(), session.progress()))).is_ok() {
                serve(&mut session, &inbox);
            }
        };
        let thread = Builder::new()
            .name("session".into())
            .spawn(body)
            .map_err(|e| Error::unavailable(format!("cannot start a thread: {e}")))?;
        let (interrupt, progress) = starting.recv().map_err(|_| gone())??;
        Ok(Host { requests: Some(requests), thread: Some(thread).filter(|_| is_on_disk), interrupt, progress })
    }

    /// A handle that stops the running statement.
    pub(crate) fn interrupt(&self) -> Interrupt {
        self.interrupt.clone()
    }

    /// Rows that the operators of all dataflows have put out, also while a statement runs.
    pub(crate) fn rows_put_out(&self) -> u64 {
        self.progress.rows_put_out()
    }

    /// Where the sources stand, also while a statement runs.
    pub(crate) fn sources(&self) -> Vec<SourceStatus> {
        self.progress.sources()
    }

    /// Runs a function on the session and waits for its result.
    pub(crate) fn call<T: Send + 'static>(
        &self,
        f: impl FnOnce(&mut Session) -> T + Send + 'static,
    ) -> Result<T, Error> {
        let (reply, result) = channel();
        self.send(Box::new(move |session| drop(reply.send(f(session)))))?;
        result.recv().map_err(|_| gone())
    }

    /// Starts a statement of `script`. Dropping the receiver ends a subscription; other statements
    /// run to their end.
    pub(crate) fn begin(&self, script: Arc<str>, statement: Parsed) -> Result<Receiver<Reply>, Error> {
        let (replies, receiver) = channel();
        self.send(Box::new(move |session| {
            let result = execute(session, &script, &statement, &replies);
            drop(replies.send(Reply::Finished(result)));
        }))?;
        Ok(receiver)
    }

    fn send(&self, request: Request) -> Result<(), Error> {
        self.requests.as_ref().ok_or_else(gone)?.send(request).map_err(|_| gone())
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.requests.take();
        if let Some(thread) = self.thread.take() {
            self.interrupt.trigger();
            // A panic was told on standard error.
            let _ = thread.join();
        }
    }
}

/// The session's thread is no more: it panicked, and said why on standard error.
pub(crate) fn gone() -> Error {
    Error::internal("the session has stopped")
}

/// Requests first, turns of the session otherwise, until the host is dropped.
fn serve(session: &mut Session, inbox: &Receiver<Request>) {
    loop {
        let next = match session.step() {
            Ok(StepStatus::Working) => match inbox.try_recv() {
                Ok(request) => Ok(request),
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
            Ok(request) => request(session),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

fn execute(
    session: &mut Session,
    script: &str,
    statement: &Parsed,
    replies: &Sender<Reply>,
) -> Result<Option<Done>, Error> {
    match session.execute_one(script, statement)? {
        Outcome::Rows(rows) => {
            let _ = replies.send(Reply::Rows(rows));
            Ok(None)
        }
        Outcome::Done { tag, detail } => Ok(Some(Done { tag, detail })),
        Outcome::Copy(start) => copy(session, start, replies).map(|tag| Some(Done { tag, detail: None })),
        Outcome::Subscription(subscription) => {
            let result = follow(session, &subscription, replies);
            session.unsubscribe(subscription);
            result.map(|()| None)
        }
    }
}

/// Goes through a COPY with what the client sends, or with standard output; gives its command tag.
fn copy(session: &mut Session, start: CopyStart, replies: &Sender<Reply>) -> Result<String, Error> {
    let result = match start.way {
        CopyWay::In => copy_in(session, start.is_binary, replies),
        CopyWay::Out => copy_out(session),
    };
    session.copy_stop();
    result
}

/// Takes the rows that the client sends.
fn copy_in(session: &mut Session, is_binary: bool, replies: &Sender<Reply>) -> Result<String, Error> {
    let (pieces, sent) = sync_channel(PIECES_MAX);
    // (A client that does not listen sends nothing.)
    let _ = replies.send(Reply::Wants(Wanted { pieces, is_binary }));
    loop {
        match sent.recv() {
            Ok(Piece::Rows(rows)) => session.copy_data(&rows)?,
            Ok(Piece::Done) => break,
            Err(_) => return Err(Error::cancelled()),
        }
    }
    match session.copy_done()? {
        Outcome::Done { tag, .. } => Ok(tag),
        _ => Err(Error::internal("COPY gives no rows")),
    }
}

fn copy_out(session: &mut Session) -> Result<String, Error> {
    let unwritten = |error: std::io::Error| Error::unavailable(format!("standard output cannot be written: {error}"));
    loop {
        let mut output = std::io::stdout().lock();
        match session.copy_rows(CHANGES_WAIT)? {
            CopyRows::Data(data) => output.write_all(&data.bytes).map_err(unwritten)?,
            CopyRows::Nothing => output.flush().map_err(unwritten)?,
            CopyRows::Done { tag } => {
                output.flush().map_err(unwritten)?;
                return Ok(tag);
            }
        }
    }
}

/// Passes changes on until they end, an interrupt comes, or no receiver listens.
fn follow(session: &mut Session, subscription: &Subscription, replies: &Sender<Reply>) -> Result<(), Error> {
    let mut listening = replies.send(Reply::Subscribed(subscription.schema().clone())).is_ok();
    while listening {
        let told = match session.next_changes(subscription, CHANGES_WAIT)? {
            Changes::Rows(batches) => batches.into_iter().map(Reply::Changes).collect(),
            Changes::Progress(time) => vec![Reply::Complete(time)],
            Changes::Nothing => continue,
            Changes::End => return Ok(()),
        };
        listening = told.into_iter().all(|reply| replies.send(reply).is_ok());
    }
    Ok(())
}
