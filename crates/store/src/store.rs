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
use std::time::{Duration, Instant};

use crate::commit::Commit;
use crate::contents::{Contents, LogEnd};
use crate::disk::Disk;
use crate::error::StoreError;
use crate::log::{LogWriter, make_segment};
use crate::manifest::{LOCK, MANIFEST, MANIFEST_NEW, Manifest, number_of, segment_name, snapshot_name};
use crate::places::{Snapshots, elsewhere};
use crate::snapshot::write_snapshot;

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
    snapshots: AtomicU64,
}

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
    /// Snapshots written.
    pub snapshots: u64,
    /// Bytes of log that no snapshot holds.
    pub log_bytes: u64,
}

/// A commit that was appended.
#[derive(Clone)]
pub struct Ticket {
    inner: Arc<Inner>,
    sequence: u64,
}

impl Ticket {
    /// Returns when the commit, and all before it, are on disk.
    ///
    /// # Errors
    /// `Failed` when that is unknown.
    pub fn wait(&self) -> Result<(), StoreError> {
        self.inner.sync_to(self.sequence)
    }

    /// Whether there is a thread beside, so that [`then`](Self::then) returns at once.
    pub fn calls_back(&self) -> bool {
        self.inner.options.threads == Threads::Beside
    }

    /// Has `call` called when the commit, and all before it, are on disk: at once if they are, else
    /// on the thread beside, which syncs once for all that came meanwhile. `call` must not wait.
    /// Without a thread beside it is called after a wait.
    ///
    /// An error in place of that is as for [`wait`](Self::wait).
    pub fn then(&self, call: impl FnOnce(Result<(), StoreError>) + Send + 'static) {
        let inner = &self.inner;
        let mut synced = lock(&inner.synced);
        let is_kept = self.calls_back() && !inner.is_closing.load(Ordering::Acquire);
        if is_kept && synced.sequence < self.sequence && synced.failed.is_none() {
            synced.calls.push((self.sequence, Box::new(call)));
            drop(synced);
            inner.due.notify_one();
            return;
        }
        drop(synced);
        call(self.wait());
    }

    /// Whether the commit is on disk.
    pub fn is_durable(&self) -> bool {
        self.inner.synced_sequence.load(Ordering::Acquire) >= self.sequence
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
        self.snapshot_if_due();
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
        Statistics {
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

    /// Starts a snapshot beside when the log is as large as the snapshot before.
    fn snapshot_if_due(&self) {
        let inner = &self.inner;
        let log_bytes = inner.log_bytes.load(Ordering::Relaxed);
        if log_bytes < inner.options.snapshot_bytes || inner.options.threads == Threads::None {
            return;
        }
        let mut snapshots = lock(&inner.snapshots);
        if snapshots.is_running || log_bytes < snapshots.bytes.max(snapshots.not_before) {
            return;
        }
        let thread = std::thread::Builder::new().name("anabranch snapshot".to_string());
        let of_thread = inner.clone();
        snapshots.is_running = true;
        let started = thread.spawn(move || {
            let result = of_thread.snapshot();
            let mut snapshots = lock(&of_thread.snapshots);
            snapshots.is_running = false;
            // After a failure the log first grows by another half.
            let log_bytes = of_thread.log_bytes.load(Ordering::Relaxed);
            snapshots.not_before = if result.is_ok() { 0 } else { log_bytes + log_bytes / 2 };
        });
        match started {
            Ok(thread) => snapshots.running = Some(thread),
            Err(_) => snapshots.is_running = false,
        }
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // Who wants to know what went wrong calls `close`.
        let _ = self.shut();
    }
}

impl Inner {
    /// Tries a place of snapshots that is not the folder, on a thread of its own if there are any:
    /// a place that does not answer does not delay the opening.
    fn try_place_beside(self: &Arc<Inner>) {
        if lock(&self.manifest).next_place.is_empty() {
            return;
        }
        if self.options.threads == Threads::None {
            return self.try_place();
        }
        let inner = self.clone();
        let thread = std::thread::Builder::new().name("anabranch snapshot".to_string());
        let mut snapshots = lock(&self.snapshots);
        snapshots.is_running = true;
        let started = thread.spawn(move || {
            inner.try_place();
            lock(&inner.snapshots).is_running = false;
        });
        match started {
            Ok(thread) => snapshots.running = Some(thread),
            Err(_) => snapshots.is_running = false,
        }
    }

    fn sync_to(&self, sequence: u64) -> Result<(), StoreError> {
        let mut synced = lock(&self.synced);
        loop {
            if synced.sequence >= sequence {
                return Ok(());
            }
            if let Some(failed) = &synced.failed {
                return Err(failed.clone());
            }
            if synced.is_busy {
                synced = self.changed.wait(synced).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            synced.is_busy = true;
            drop(synced);
            let started = Instant::now();
            let (file, written) = {
                let writer = lock(&self.writer);
                (writer.file(), writer.sequence())
            };
            let result = file.sync();
            self.counts.syncs.fetch_add(1, Ordering::Relaxed);
            self.counts.sync_micros.fetch_add(started.elapsed().as_micros() as u64, Ordering::Relaxed);
            synced = lock(&self.synced);
            synced.is_busy = false;
            match result {
                Ok(()) => self.note_synced(&mut synced, written),
                Err(error) => {
                    let detail = format!("a sync failed: {error}");
                    synced.failed.get_or_insert(StoreError::Failed { place: self.disk.place(), detail });
                }
            }
            self.changed.notify_all();
        }
    }

    fn note_synced(&self, synced: &mut Synced, sequence: u64) {
        synced.sequence = synced.sequence.max(sequence);
        self.synced_sequence.store(synced.sequence, Ordering::Release);
    }

    /// Syncs the segment and goes on in another.
    fn rotate(&self, writer: &mut LogWriter) -> Result<(), StoreError> {
        let written = writer.sequence();
        writer.rotate()?;
        self.note_synced(&mut lock(&self.synced), written);
        self.changed.notify_all();
        Ok(())
    }

    /// Syncs for those that are to be called, and, a little later, what no caller waits for.
    fn keep_synced(&self) {
        let mut synced = lock(&self.synced);
        loop {
            let is_closing = || self.is_closing.load(Ordering::Acquire);
            while synced.calls.is_empty() && !synced.is_unawaited && !is_closing() {
                synced = self.due.wait(synced).unwrap_or_else(PoisonError::into_inner);
            }
            let until = Instant::now() + self.options.relaxed_after;
            while synced.calls.is_empty() && !is_closing() {
                let Some(left) = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) else {
                    break;
                };
                synced = self.due.wait_timeout(synced, left).unwrap_or_else(PoisonError::into_inner).0;
            }
            if synced.calls.is_empty() && is_closing() {
                return;
            }
            synced.is_unawaited = false;
            drop(synced);
            let written = lock(&self.writer).sequence();
            // Those who write next, and those who are called, hear of an error.
            let _ = self.sync_to(written);
            self.call_synced();
            synced = lock(&self.synced);
        }
    }

    /// Calls those whose commits are on disk, or all after a failure.
    fn call_synced(&self) {
        let mut synced = lock(&self.synced);
        let (sequence, failed) = (synced.sequence, synced.failed.clone());
        let calls: Vec<(u64, Call)> =
            synced.calls.extract_if(.., |(of, _)| *of <= sequence || failed.is_some()).collect();
        drop(synced);
        for (of, call) in calls {
            match &failed {
                Some(failed) if of > sequence => call(Err(failed.clone())),
                _ => call(Ok(())),
            }
        }
    }

    /// Writes a snapshot, and notes and tells what has become of it.
    fn snapshot(&self) -> Result<(), StoreError> {
        let result = self.write_snapshot();
        self.note_snapshot(result.as_ref().err());
        result
    }

    fn note_snapshot(&self, problem: Option<&StoreError>) {
        lock(&self.snapshots).problem = problem.cloned();
        if let Some(told) = &self.options.snapshots.told {
            told(problem);
        }
    }

    /// Asks the place of the snapshots to come whether it is there, so that users hear at once what
    /// is wrong with it. What was left over there is removed.
    fn try_place(&self) {
        let manifest = lock(&self.manifest).clone();
        let place = elsewhere(self.options.snapshots.places.as_ref(), &manifest.next_place);
        let tried = place.and_then(|place| {
            let Some(place) = place else { return Ok(()) };
            let names = place.names();
            names.map_err(|error| StoreError::of_io(&place.place(), "reach", "the place of snapshots", &error))?;
            // (Elsewhere lie snapshots that another database may have been made of.)
            if manifest.place == manifest.next_place && manifest.snapshot != 0 {
                remove_snapshots(place.as_ref(), &manifest);
            }
            Ok(())
        });
        if let Err(problem) = tried {
            self.note_snapshot(Some(&problem));
        }
    }

    /// Folds the snapshot and the log so far into another snapshot.
    fn write_snapshot(&self) -> Result<(), StoreError> {
        let before = lock(&self.manifest).clone();
        let (segment, sequence, chain) = {
            let mut writer = lock(&self.writer);
            if let Some(failed) = writer.failed() {
                return Err(failed.clone());
            }
            self.rotate(&mut writer)?;
            (writer.segment(), writer.sequence(), writer.chain())
        };
        let places = self.options.snapshots.places.as_ref();
        let there = elsewhere(places, &before.place)?.unwrap_or_else(|| self.disk.clone());
        let (contents, end) = Contents::load_sealed(self.disk.as_ref(), there.as_ref(), &before, segment)?;
        let number = {
            let mut snapshots = lock(&self.snapshots);
            snapshots.last_number = snapshots.last_number.max(before.snapshot) + 1;
            snapshots.last_number
        };
        let target = elsewhere(places, &before.next_place)?.unwrap_or_else(|| self.disk.clone());
        let written = write_snapshot(target.as_ref(), &contents, number, (sequence, chain));
        let bytes = match written {
            Ok(bytes) => bytes,
            Err(error) => {
                let _ = target.remove(&snapshot_name(number));
                return Err(error);
            }
        };
        {
            let mut manifest = lock(&self.manifest);
            let place = before.next_place;
            let after = Manifest { snapshot: number, segment, sequence, chain, place, ..manifest.clone() };
            after.write(self.disk.as_ref())?;
            *manifest = after;
        }
        self.log_bytes.fetch_sub(end.bytes.min(self.log_bytes.load(Ordering::Relaxed)), Ordering::Relaxed);
        lock(&self.snapshots).bytes = bytes;
        self.counts.snapshots.fetch_add(1, Ordering::Relaxed);
        let manifest = lock(&self.manifest).clone();
        remove_leftovers(self.disk.as_ref(), &manifest);
        if !manifest.place.is_empty() {
            remove_snapshots(target.as_ref(), &manifest);
        }
        Ok(())
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("place", &self.inner.disk.place()).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Ticket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ticket").field("sequence", &self.sequence).finish_non_exhaustive()
    }
}

fn contents_place(contents: &Contents) -> String {
    contents.place().to_string()
}

/// Takes the disk for this handle.
pub(crate) fn take_lock(disk: &dyn Disk) -> Result<Box<dyn Send + Sync>, StoreError> {
    let holder = format!("process {}", std::process::id());
    disk.lock(LOCK, &holder).map_err(|error| match error.kind() {
        std::io::ErrorKind::WouldBlock => StoreError::Locked { place: disk.place(), holder: read_holder(disk) },
        _ => StoreError::of_io(&disk.place(), "lock", LOCK, &error),
    })
}

/// Who holds the lock, as far as it said so.
fn read_holder(disk: &dyn Disk) -> Option<String> {
    let file = disk.open(LOCK).ok()?;
    let mut bytes = vec![0; file.size().ok()?.min(256) as usize];
    file.read_at(0, &mut bytes).ok()?;
    let holder = String::from_utf8(bytes).ok()?;
    Some(holder.trim().to_string()).filter(|holder| !holder.is_empty())
}

/// Makes an empty database on an empty disk: the first segment, then the manifest that names it.
fn initialise(disk: &dyn Disk) -> Result<Manifest, StoreError> {
    check_empty(disk)?;
    let end = LogEnd::of_empty();
    make_segment(disk, end.header())?;
    let manifest = Manifest { segment: end.segment, ..Manifest::default() };
    manifest.write(disk)?;
    Ok(manifest)
}

/// An error unless a disk without a manifest is empty, but for what a stop while making it left.
pub(crate) fn check_empty(disk: &dyn Disk) -> Result<(), StoreError> {
    let place = disk.place();
    let names = disk.names().map_err(|error| StoreError::of_io(&place, "list", "the files", &error))?;
    for name in names.iter().filter(|name| ![LOCK, MANIFEST_NEW].contains(&name.as_str())) {
        let is_first = *name == segment_name(1);
        let size = disk.open(name).and_then(|file| file.size()).unwrap_or(u64::MAX);
        if is_first && size <= crate::frame::HEADER_BYTES as u64 {
            continue;
        }
        let is_ours = number_of(name, ".log").is_some() || number_of(name, ".snapshot").is_some();
        return Err(match is_ours {
            true => StoreError::Damaged {
                place,
                file: MANIFEST.to_string(),
                offset: 0,
                detail: format!("it is missing, but {name} is there"),
            },
            false => StoreError::NotADatabase { place, detail: format!("it holds {name}, and no {MANIFEST}") },
        });
    }
    Ok(())
}

/// Prepares the disk for writing: from here on what is there is as it was read.
fn start_writing(disk: &Arc<dyn Disk>, manifest: &Manifest, end: &LogEnd) -> Result<LogWriter, StoreError> {
    let writer = LogWriter::open(disk.clone(), end)?;
    manifest.write(disk.as_ref())?;
    remove_leftovers(disk.as_ref(), manifest);
    Ok(writer)
}

/// Removes files that the manifest does not name. What cannot be removed is tried again next time.
fn remove_leftovers(disk: &dyn Disk, manifest: &Manifest) {
    let is_elsewhere = !manifest.place.is_empty();
    for name in disk.names().unwrap_or_default() {
        let is_old = number_of(&name, ".log").is_some_and(|number| number < manifest.segment)
            || number_of(&name, ".snapshot").is_some_and(|number| number != manifest.snapshot || is_elsewhere)
            || name == MANIFEST_NEW;
        if is_old {
            let _ = disk.remove(&name);
        }
    }
}

/// Removes the snapshots of this database that the place holds beside the one that counts.
fn remove_snapshots(there: &dyn Disk, manifest: &Manifest) {
    for name in there.names().unwrap_or_default() {
        if number_of(&name, ".snapshot").is_some_and(|number| number != manifest.snapshot) {
            let _ = there.remove(&name);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
