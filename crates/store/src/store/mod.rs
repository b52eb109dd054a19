//! The store of an open database: commits go in, and are on disk when their tickets say so.
//!
//! Law: a commit whose ticket was waited for is there after any crash, once and whole; a commit
//! that was refused is not. Commits are there in the order in which they were appended: none
//! without those before it.
//!
//! [`Store::append`] writes to the operating system and returns; [`Ticket::wait`] syncs. Who waits
//! first syncs for all who have written by then, the others wait for him: under load one sync
//! carries many commits, alone a commit waits for no other (group commit, DeWitt et al., SIGMOD
//! 1984, with the first waiter as the leader). A thread beside syncs what no caller waits for
//! ([`Durability::Relaxed`], rows of sources), another writes snapshots when the log has grown.
//!
//! A write that fails is refused and taken back: when there is room again, commits go on. After a
//! sync that failed what is on disk is unknown: the log then takes nothing more (Rebello et al.,
//! "Can applications recover from fsync failures?", ATC 2020).

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::commit::Commit;
use crate::contents::Contents;
use crate::disk::Disk;
use crate::error::StoreError;
use crate::log::LogWriter;
use crate::manifest::{Manifest, snapshot_name};
use crate::places::{Snapshots, elsewhere};

mod folder;
mod snapshots;
mod syncing;

pub(crate) use folder::{check_empty, take_lock};
use folder::{initialise, start_writing};
pub use syncing::Ticket;

/// How a store is set up.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// Bytes after which the log goes on in another file.
    pub segment_bytes: u64,
    /// Bytes of log from which a snapshot may be due; it is when the log is also as large as the
    /// snapshot before.
    pub snapshot_bytes: u64,
    /// How long a commit that no caller waits for stays unsynced at most, about.
    pub relaxed_after: Duration,
    /// Whether threads sync and write snapshots beside; without, only what is called is done.
    pub threads: Threads,
    /// Where snapshots go.
    pub snapshots: Snapshots,
}

/// Whether a store has threads of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threads {
    /// Snapshots and late syncs are made beside.
    Beside,
    /// None: for simulations, in which everything happens in one order.
    None,
}

impl Default for StoreOptions {
    fn default() -> StoreOptions {
        StoreOptions {
            segment_bytes: 64 << 20,
            snapshot_bytes: 64 << 20,
            relaxed_after: Duration::from_millis(100),
            threads: Threads::Beside,
            snapshots: Snapshots::default(),
        }
    }
}

/// When a commit counts as done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// When it is on disk.
    #[default]
    Full,
    /// At once; it is on disk a little later, and lost if the machine stops before.
    Relaxed,
}

/// See the [module](self). The last handle dropped closes the store.
pub struct Store {
    inner: Arc<Inner>,
    keeper: Option<JoinHandle<()>>,
}

struct Inner {
    disk: Arc<dyn Disk>,
    options: StoreOptions,
    writer: Mutex<LogWriter>,
    synced: Mutex<Synced>,
    changed: Condvar,
    /// Wakes the thread beside.
    due: Condvar,
    manifest: Mutex<Manifest>,
    snapshots: Mutex<SnapshotState>,
    is_closing: AtomicBool,
    /// Sequence of the last frame on disk, as in `synced`, to be read without a lock.
    synced_sequence: AtomicU64,
    /// Bytes of log that no snapshot holds.
    log_bytes: AtomicU64,
    counts: Counts,
    /// Given back when it is closed, though tickets are left.
    lock: Mutex<Option<Box<dyn Send + Sync>>>,
}

/// What is on disk.
struct Synced {
    sequence: u64,
    /// Whether a thread is syncing.
    is_busy: bool,
    /// Whether something was written since the thread beside looked.
    is_unawaited: bool,
    /// What is to be called once a sequence is on disk; the thread beside syncs for these.
    calls: Vec<(u64, Call)>,
    failed: Option<StoreError>,
}

/// Called with what has become of a commit.
type Call = Box<dyn FnOnce(Result<(), StoreError>) + Send>;

#[derive(Default)]
struct SnapshotState {
    bytes: u64,
    running: Option<JoinHandle<()>>,
    is_running: bool,
    /// Not before the log has so many bytes.
    not_before: u64,
    problem: Option<StoreError>,
    /// Number of the last one that was begun. Numbers are not used twice: a manifest that could not
    /// be written may be on disk all the same, and names one.
    last_number: u64,
}

#[derive(Default)]
struct Counts {
    commits: AtomicU64,
    bytes: AtomicU64,
    syncs: AtomicU64,
    sync_micros: AtomicU64,
    /// Syncs by the time that they took: see [`SYNC_MICROS_MAX`].
    sync_times: [AtomicU64; SYNC_MICROS_MAX.len() + 1],
    snapshots: AtomicU64,
}

/// Bounds by which syncs are counted, in microseconds; a last count is of those beyond.
pub const SYNC_MICROS_MAX: [u64; 9] = [100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000];

/// What a store has done since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Commits appended.
    pub commits: u64,
    /// Bytes appended.
    pub bytes: u64,
    /// Syncs of the log.
    pub syncs: u64,
    /// Time they took in all, in microseconds.
    pub sync_micros: u64,
    /// Syncs that took at most so long, and longer than the bound before: see [`SYNC_MICROS_MAX`].
    pub sync_times: [u64; SYNC_MICROS_MAX.len() + 1],
    /// Commits appended that are not on disk yet.
    pub unsynced: u64,
    /// Snapshots written.
    pub snapshots: u64,
    /// Bytes of log that no snapshot holds.
    pub log_bytes: u64,
}

impl Counts {
    /// Notes a sync that took so long.
    fn add_sync(&self, micros: u64) {
        self.syncs.fetch_add(1, Ordering::Relaxed);
        self.sync_micros.fetch_add(micros, Ordering::Relaxed);
        let place = SYNC_MICROS_MAX.partition_point(|max| *max < micros);
        self.sync_times[place].fetch_add(1, Ordering::Relaxed);
    }
}

impl Store {
    /// Opens the database on a disk, an empty one if the disk is empty. What was lost in part with
    /// the power, and was therefore never acknowledged, is cut off. A disk that cannot be written
    /// is opened all the same: see [`failed`](Self::failed).
    ///
    /// # Errors
    /// `Locked` when it is open elsewhere, `Damaged` when a file is not what was written, `Version`
    /// when another version wrote it, `NotADatabase` when the folder holds other files.
    pub fn open(disk: Arc<dyn Disk>, options: StoreOptions) -> Result<(Store, Contents), StoreError> {
        // What is no database gets no lock.
        if Manifest::read(disk.as_ref())?.is_none() {
            check_empty(disk.as_ref())?;
        }
        let taken = take_lock(disk.as_ref())?;
        let found = match Manifest::read(disk.as_ref())? {
            Some(found) => found,
            None => initialise(disk.as_ref())?,
        };
        let places = options.snapshots.places.as_ref();
        let snapshots = elsewhere(places, &found.place)?.unwrap_or_else(|| disk.clone());
        let (contents, end) = Contents::load(disk.as_ref(), snapshots.as_ref(), &found)?;
        let mut manifest = Manifest { incarnation: found.incarnation + 1, closed: 0, last: 0, ..found.clone() };
        options.snapshots.choose(&mut manifest)?;
        let (writer, manifest) = match start_writing(&disk, &manifest, &end) {
            Ok(writer) => (writer, manifest),
            Err(error @ (StoreError::Full { .. } | StoreError::Denied { .. })) => {
                (LogWriter::failed_before(disk.clone(), &end, error)?, found)
            }
            Err(error) => return Err(error),
        };
        let snapshot_bytes = match manifest.snapshot {
            0 => 0,
            number => snapshots.open(&snapshot_name(number)).and_then(|file| file.size()).unwrap_or(0),
        };
        drop(snapshots);
        let inner = Arc::new(Inner {
            synced: Mutex::new(Synced {
                sequence: end.sequence,
                is_busy: false,
                is_unawaited: false,
                calls: vec![],
                failed: None,
            }),
            synced_sequence: AtomicU64::new(end.sequence),
            changed: Condvar::new(),
            due: Condvar::new(),
            writer: Mutex::new(writer),
            manifest: Mutex::new(manifest),
            snapshots: Mutex::new(SnapshotState { bytes: snapshot_bytes, ..SnapshotState::default() }),
            is_closing: AtomicBool::new(false),
            log_bytes: AtomicU64::new(end.bytes),
            counts: Counts::default(),
            disk,
            options,
            lock: Mutex::new(Some(taken)),
        });
        let keeper = match inner.options.threads {
            Threads::None => None,
            Threads::Beside => {
                let inner = inner.clone();
                let thread = std::thread::Builder::new().name("anabranch log".to_string());
                let started = thread.spawn(move || inner.keep_synced());
                let place = || contents_place(&contents);
                Some(started.map_err(|error| StoreError::of_io(&place(), "start", "the thread of the log", &error))?)
            }
        };
        inner.try_place_beside();
        // (A process that never lives long would leave the log to grow.)
        inner.snapshot_if_due();
        Ok((Store { inner, keeper }, contents))
    }

    /// Writes a commit behind all others. It is on disk when the ticket was waited for; without, a
    /// little later.
    ///
    /// # Errors
    /// `Full`, `Denied` or `Io` when it was not written: it never happened, and a later one may
    /// succeed. `Failed` when the log takes nothing more.
    pub fn append(&self, commit: &Commit) -> Result<Ticket, StoreError> {
        let inner = &self.inner;
        let mut writer = lock(&inner.writer);
        if let Some(failed) = &lock(&inner.synced).failed {
            return Err(failed.clone());
        }
        let n_bytes = writer.append(commit, inner.synced_sequence.load(Ordering::Acquire))?;
        let sequence = writer.sequence();
        inner.counts.commits.fetch_add(1, Ordering::Relaxed);
        inner.counts.bytes.fetch_add(n_bytes, Ordering::Relaxed);
        inner.log_bytes.fetch_add(n_bytes, Ordering::Relaxed);
        if writer.segment_bytes() >= inner.options.segment_bytes {
            // The segment can grow further; what is wrong with the disk comes up again with the
            // next commit.
            let _ = inner.rotate(&mut writer);
        }
        drop(writer);
        // Also with full durability: perhaps no caller waits, as for rows of a source.
        let was_noted = std::mem::replace(&mut lock(&inner.synced).is_unawaited, true);
        if !was_noted {
            inner.due.notify_one();
        }
        self.inner.snapshot_if_due();
        Ok(Ticket { inner: inner.clone(), sequence })
    }

    /// A ticket of all that was appended so far.
    pub fn ticket(&self) -> Ticket {
        Ticket { inner: self.inner.clone(), sequence: lock(&self.inner.writer).sequence() }
    }

    /// Why nothing can be written until the database is opened again, if so.
    pub fn failed(&self) -> Option<StoreError> {
        lock(&self.inner.synced).failed.clone().or_else(|| lock(&self.inner.writer).failed().cloned())
    }

    /// Writes a snapshot now, and removes what it replaces.
    ///
    /// # Errors
    /// Those of the disk. The database goes on without it.
    pub fn snapshot(&self) -> Result<(), StoreError> {
        {
            let mut snapshots = lock(&self.inner.snapshots);
            if snapshots.is_running {
                let running = snapshots.running.take();
                drop(snapshots);
                running.map(JoinHandle::join);
                snapshots = lock(&self.inner.snapshots);
            }
            snapshots.is_running = true;
        }
        let result = self.inner.snapshot();
        lock(&self.inner.snapshots).is_running = false;
        result
    }

    /// What went wrong with the last snapshot, if it did.
    pub fn snapshot_problem(&self) -> Option<StoreError> {
        lock(&self.inner.snapshots).problem.clone()
    }

    /// What was done so far.
    pub fn statistics(&self) -> Statistics {
        let counts = &self.inner.counts;
        let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let synced = self.inner.synced_sequence.load(Ordering::Acquire);
        Statistics {
            sync_times: std::array::from_fn(|at| get(&counts.sync_times[at])),
            unsynced: lock(&self.inner.writer).sequence().saturating_sub(synced),
            commits: get(&counts.commits),
            bytes: get(&counts.bytes),
            syncs: get(&counts.syncs),
            sync_micros: get(&counts.sync_micros),
            snapshots: get(&counts.snapshots),
            log_bytes: get(&self.inner.log_bytes),
        }
    }

    /// Syncs everything and says so in the manifest, so that a later opening knows how much there
    /// must be.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn close(mut self) -> Result<(), StoreError> {
        self.shut()
    }

    fn shut(&mut self) -> Result<(), StoreError> {
        let inner = &self.inner;
        if inner.is_closing.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        {
            // Under the lock: the keeper is waiting by then, or sees the flag before it waits.
            let _synced = lock(&inner.synced);
            inner.due.notify_one();
        }
        self.keeper.take().map(JoinHandle::join);
        let running = lock(&inner.snapshots).running.take();
        running.map(JoinHandle::join);
        let (sequence, failed) = {
            let writer = lock(&inner.writer);
            (writer.sequence(), writer.failed().cloned())
        };
        let closed = inner.sync_to(sequence).and_then(|()| {
            let mut manifest = lock(&inner.manifest);
            (manifest.closed, manifest.last) = (sequence, lock(&inner.writer).segment());
            if failed.is_none() { manifest.write(inner.disk.as_ref()) } else { Ok(()) }
        });
        let place = inner.disk.place();
        lock(&inner.writer).fail(StoreError::Closed { place });
        lock(&inner.lock).take();
        closed
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // Who wants to know what went wrong calls `close`.
        let _ = self.shut();
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("place", &self.inner.disk.place()).finish_non_exhaustive()
    }
}

fn contents_place(contents: &Contents) -> String {
    contents.place().to_string()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
