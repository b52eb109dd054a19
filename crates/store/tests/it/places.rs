//! Snapshots that lie in a place of their own, which fails at every step.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use anabranch_store::{
    Disk, DiskFile, SimulatedDisk, SnapshotPlaces, Snapshots, Store, StoreError, StoreOptions, check, check_with, read,
};

use crate::model::{Model, Rng, run, small};

/// Places by their URLs, made when they are first named. Operations from number `fails_at` on fail,
/// `fails_for` of them.
#[derive(Clone, Default)]
struct Places {
    disks: Arc<Mutex<BTreeMap<String, SimulatedDisk>>>,
    fault: Arc<Fault>,
}

#[derive(Default)]
struct Fault {
    n_operations: AtomicU64,
    fails_at: AtomicU64,
    fails_for: AtomicU64,
}

impl Fault {
    fn operate(&self) -> io::Result<()> {
        let operation = self.n_operations.fetch_add(1, Ordering::SeqCst);
        let (from, n) = (self.fails_at.load(Ordering::SeqCst), self.fails_for.load(Ordering::SeqCst));
        match operation >= from && operation < from.saturating_add(n) {
            true => Err(io::Error::other("the place does not answer")),
            false => Ok(()),
        }
    }
}

impl Places {
    fn fail(&self, after: u64, n: u64) {
        self.fault.n_operations.store(0, Ordering::SeqCst);
        self.fault.fails_at.store(after, Ordering::SeqCst);
        self.fault.fails_for.store(n, Ordering::SeqCst);
    }

    /// Names of the snapshots below a place, with the folder of the database left out.
    fn snapshots(&self, place: &str) -> Vec<String> {
        let disks = self.disks.lock().unwrap();
        let found = disks.iter().filter(|(url, _)| url.starts_with(&format!("{place}/")));
        found.flat_map(|(_, disk)| disk.names().unwrap()).collect()
    }

    fn options(&self, place: Option<&str>) -> StoreOptions {
        let (place, places) = (place.map(str::to_string), Arc::new(self.clone()));
        StoreOptions { snapshots: Snapshots { place, places, told: None }, ..small() }
    }
}

impl SnapshotPlaces for Places {
    fn open(&self, url: &str) -> io::Result<Arc<dyn Disk>> {
        if !url.starts_with("test://") {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "places are test://name"));
        }
        let disk = self.disks.lock().unwrap().entry(url.to_string()).or_default().clone();
        Ok(Arc::new(FailingDisk { disk, fault: self.fault.clone() }))
    }
}

struct FailingDisk {
    disk: SimulatedDisk,
    fault: Arc<Fault>,
}

impl FailingDisk {
    fn file(&self, file: Box<dyn DiskFile>) -> Box<dyn DiskFile> {
        Box::new(FailingFile { file, fault: self.fault.clone() })
    }
}

impl Disk for FailingDisk {
    fn place(&self) -> String {
        "the test place".to_string()
    }

    fn names(&self) -> io::Result<Vec<String>> {
        self.fault.operate()?;
        self.disk.names()
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        self.fault.operate()?;
        Ok(self.file(self.disk.create(name)?))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        self.fault.operate()?;
        Ok(self.file(self.disk.open(name)?))
    }

    fn rename(&self, _: &str, _: &str) -> io::Result<()> {
        panic!("nothing is renamed in a place of snapshots")
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.fault.operate()?;
        self.disk.remove(name)
    }

    fn sync_names(&self) -> io::Result<()> {
        self.fault.operate()?;
        self.disk.sync_names()
    }

    fn lock(&self, _: &str, _: &str) -> io::Result<Box<dyn Send + Sync>> {
        panic!("the folder of the database is what is locked")
    }
}

struct FailingFile {
    file: Box<dyn DiskFile>,
    fault: Arc<Fault>,
}

impl DiskFile for FailingFile {
    fn size(&self) -> io::Result<u64> {
        self.file.size()
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.fault.operate()?;
        self.file.read_at(offset, bytes)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.fault.operate()?;
        self.file.write_at(offset, bytes)
    }

    fn truncate(&self, _: u64) -> io::Result<()> {
        panic!("a snapshot is written from its beginning to its end")
    }

    fn sync(&self) -> io::Result<()> {
        self.fault.operate()?;
        self.file.sync()
    }
}

/// Appends random commits and waits for them.
fn fill(store: &Store, state: &mut Model, rng: &mut Rng, n_commits: usize) {
    for _ in 0..n_commits {
        let commit = state.random_commit(rng);
        store.append(&commit).unwrap().wait().unwrap();
        state.apply(&commit);
    }
}

fn snapshots_in(disk: &SimulatedDisk) -> usize {
    disk.names().unwrap().iter().filter(|name| name.ends_with(".snapshot")).count()
}

#[test]
fn snapshots_lie_in_their_place_and_the_database_finds_them() {
    run(5, |rng| {
        let (disk, places, mut state) = (SimulatedDisk::new(), Places::default(), Model::default());
        let (store, _) = Store::open(Arc::new(disk.clone()), places.options(Some("test://a/"))).unwrap();
        for _ in 0..3 {
            fill(&store, &mut state, rng, 15);
            store.snapshot().unwrap();
        }
        fill(&store, &mut state, rng, 5);
        store.close().unwrap();
        assert_eq!((snapshots_in(&disk), places.snapshots("test://a")), (0, vec!["000003.snapshot".to_string()]));
        // It is found without being named, and the next one goes there too.
        let (store, contents) = Store::open(Arc::new(disk.clone()), places.options(None)).unwrap();
        assert_eq!(Model::of(&contents), state);
        drop(contents);
        store.snapshot().unwrap();
        store.close().unwrap();
        assert_eq!(places.snapshots("test://a"), ["000004.snapshot"]);
        let report = check_with(&disk, &places).unwrap();
        let (name, n_bytes) = report.files.last().unwrap();
        assert!(name.starts_with("test://a/") && name.ends_with("/000004.snapshot") && *n_bytes > 40, "{name}");
        assert_eq!(Model::of(&read(&disk, &places).unwrap().1), state);
        // A program that knows no such places says so, and changes nothing.
        let error = check(&disk).unwrap_err();
        assert!(error.to_string().contains("places are file:///folder"), "{error}");
        let error = Store::open(Arc::new(disk.clone()), small()).map(drop).unwrap_err();
        assert!(matches!(error, StoreError::Io { .. }), "{error}");
        assert_eq!(Model::of(&read(&disk, &places).unwrap().1), state);
    });
}

#[test]
fn a_place_that_fails_at_any_step_loses_nothing() {
    run(200, |rng| {
        let (disk, places, mut state) = (SimulatedDisk::new(), Places::default(), Model::default());
        let (store, _) = Store::open(Arc::new(disk.clone()), places.options(Some("test://a"))).unwrap();
        fill(&store, &mut state, rng, 10);
        if rng.chance(50) {
            store.snapshot().unwrap();
        }
        fill(&store, &mut state, rng, 5);
        places.fail(rng.below(25) as u64, if rng.chance(50) { 1 } else { u64::MAX });
        let result = store.snapshot();
        assert_eq!(store.snapshot_problem(), result.err());
        // The log takes what comes, and what was acknowledged is there after a stop.
        fill(&store, &mut state, rng, 5);
        places.fail(0, 0);
        let crashed = disk.crash(|bound| rng.below(bound));
        let (other, contents) = Store::open(Arc::new(crashed), places.options(None)).unwrap();
        assert_eq!(Model::of(&contents), state, "after a crash");
        drop((other, contents));
        if rng.chance(50) {
            store.snapshot().unwrap();
            assert_eq!(places.snapshots("test://a").len(), 1, "what was left over is removed");
        }
        fill(&store, &mut state, rng, 3);
        store.close().unwrap();
        let (_, contents) = Store::open(Arc::new(disk), places.options(None)).unwrap();
        assert_eq!(Model::of(&contents), state, "after the end");
    });
}

#[test]
fn an_unreachable_place_is_told_at_once_and_does_not_hinder() {
    let (disk, places, mut state) = (SimulatedDisk::new(), Places::default(), Model::default());
    let mut rng = Rng::of(3);
    places.fail(0, u64::MAX);
    let heard = Arc::new(Mutex::new(Vec::new()));
    let hears = heard.clone();
    let mut options = places.options(Some("test://a"));
    options.snapshots.told =
        Some(Arc::new(move |problem| hears.lock().unwrap().push(problem.map(|problem| problem.to_string()))));
    let (store, _) = Store::open(Arc::new(disk.clone()), options).unwrap();
    let problem = "cannot reach the place of snapshots in the test place: the place does not answer".to_string();
    assert_eq!(*heard.lock().unwrap(), [Some(problem)]);
    fill(&store, &mut state, &mut rng, 20);
    store.snapshot().unwrap_err();
    assert_eq!(heard.lock().unwrap().len(), 2);
    places.fail(0, 0);
    store.snapshot().unwrap();
    assert_eq!(heard.lock().unwrap().last(), Some(&None));
    store.close().unwrap();
    // What is needed and cannot be reached is an error that changes nothing.
    places.fail(0, u64::MAX);
    let error = Store::open(Arc::new(disk.clone()), places.options(None)).map(drop).unwrap_err();
    assert_eq!(error.to_string(), "cannot open 000002.snapshot in the test place: the place does not answer");
    places.fail(0, 0);
    let (_, contents) = Store::open(Arc::new(disk), places.options(None)).unwrap();
    assert_eq!(Model::of(&contents), state);
}

#[test]
fn snapshots_move_to_another_place_and_back() {
    run(5, |rng| {
        let (disk, places, mut state) = (SimulatedDisk::new(), Places::default(), Model::default());
        let moves = [Some("test://a"), None, Some("test://b"), Some("folder"), None, Some("test://a")];
        for (step, place) in moves.into_iter().enumerate() {
            let (store, contents) = Store::open(Arc::new(disk.clone()), places.options(place)).unwrap();
            assert_eq!(Model::of(&contents), state, "before step {step}");
            fill(&store, &mut state, rng, 10);
            store.snapshot().unwrap();
            fill(&store, &mut state, rng, 2);
            let there = (places.snapshots("test://a").len(), places.snapshots("test://b").len(), snapshots_in(&disk));
            // One that lies elsewhere stays: another database may have been made of it.
            let wanted = [(1, 0, 0), (1, 0, 0), (1, 1, 0), (1, 1, 1), (1, 1, 1), (1, 1, 0)][step];
            assert_eq!(there, wanted, "step {step}");
        }
        let (_, contents) = Store::open(Arc::new(disk), places.options(None)).unwrap();
        assert_eq!(Model::of(&contents), state);
    });
}

#[test]
fn what_is_no_place_is_refused_before_anything_is_written() {
    let places = Places::default();
    for place in ["nowhere", "s4://bucket", "test://with blank", &format!("test://{}", "x".repeat(2000))] {
        let disk = SimulatedDisk::new();
        let error = Store::open(Arc::new(disk.clone()), places.options(Some(place))).map(drop).unwrap_err();
        assert!(matches!(error, StoreError::NotAPlace { .. }), "{error}");
        Store::open(Arc::new(disk), places.options(None)).unwrap();
    }
}

#[test]
fn two_databases_share_a_place() {
    let (places, mut rng) = (Places::default(), Rng::of(11));
    let disks = [SimulatedDisk::new(), SimulatedDisk::new()];
    let mut states = [Model::default(), Model::default()];
    for _ in 0..3 {
        for (disk, state) in disks.iter().zip(&mut states) {
            let (store, contents) = Store::open(Arc::new(disk.clone()), places.options(Some("test://a"))).unwrap();
            assert_eq!(Model::of(&contents), *state);
            fill(&store, state, &mut rng, 10);
            store.snapshot().unwrap();
        }
    }
    assert_eq!(places.snapshots("test://a").len(), 2);
}
