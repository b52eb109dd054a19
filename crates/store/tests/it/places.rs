//! Snapshots that lie in a place of their own, which fails at every step.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use anabranch_store::{
    Disk, DiskFile, Faults, Restoring, SimulatedDisk, SnapshotPlaces, Snapshots, Store, StoreError, StoreOptions,
    check, check_with, read, restore,
};

use crate::model::{Model, Rng, run, small};

/// Places by their URLs, made when they are first named. Operations from number `fails_at` on fail,
/// `fails_for` of them.
#[derive(Clone, Default)]
struct Places {
    disks: Arc<Mutex<BTreeMap<String, SimulatedDisk>>>,
    /// The URL of the first database below a place.
    first: Arc<Mutex<BTreeMap<String, String>>>,
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

    /// The folder of the database below a place; of the first that was made, if there are several.
    fn database_in(&self, place: &str) -> SimulatedDisk {
        let mut first = self.first.lock().unwrap();
        let url = first.entry(place.to_string()).or_insert_with(|| {
            format!("{place}/{}", self.folders(place).unwrap().first().expect("a database has a snapshot there"))
        });
        self.disks.lock().unwrap()[url].clone()
    }

    /// Forgets the databases below a place, but for that one.
    fn forget_all_but_the_first(&self, place: &str) {
        let kept = self.first.lock().unwrap()[place].clone();
        self.disks.lock().unwrap().retain(|url, _| below(url, place).is_none() || *url == kept);
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

    fn folders(&self, url: &str) -> io::Result<Vec<String>> {
        if !url.starts_with("test://") {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "places are test://name"));
        }
        self.fault.operate()?;
        Ok(self.disks.lock().unwrap().keys().filter_map(|other| below(other, url)).collect())
    }
}

fn below(url: &str, place: &str) -> Option<String> {
    Some(url.strip_prefix(place)?.strip_prefix('/')?.to_string())
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

/// A database with snapshots in a place; returns what its newest snapshot holds. (Those before are
/// put back, as a store keeps them that does not remove.)
fn snapshots_of(place: &str, places: &Places, n_snapshots: usize, rng: &mut Rng) -> Vec<Model> {
    let (disk, mut state, mut held) = (SimulatedDisk::new(), Model::default(), Vec::new());
    let (store, _) = Store::open(Arc::new(disk), places.options(Some(place))).unwrap();
    let mut kept: Vec<(String, Vec<u8>)> = Vec::new();
    for _ in 0..n_snapshots {
        fill(&store, &mut state, rng, 12);
        store.snapshot().unwrap();
        held.push(state.clone());
        let there = places.database_in(place);
        kept.extend(there.names().unwrap().into_iter().map(|name| (name.clone(), there.contents(&name).unwrap())));
    }
    // What comes behind is in the log alone.
    fill(&store, &mut state, rng, 3);
    for (name, bytes) in kept {
        let file = places.database_in(place).create(&name).unwrap();
        file.write_at(0, &bytes).unwrap();
    }
    held
}

fn named(snapshot: u64) -> Restoring {
    Restoring { snapshot: Some(snapshot), ..Restoring::default() }
}

#[test]
fn a_database_is_restored_from_its_place_alone() {
    run(5, |rng| {
        let places = Places::default();
        let held = snapshots_of("test://a", &places, 3, rng);
        let before = places.database_in("test://a").names().unwrap();
        for (restoring, number) in [(Restoring::default(), 3), (named(2), 2), (named(1), 1)] {
            let disk = SimulatedDisk::new();
            let restored = restore(&disk, &places, "test://a/", &restoring).unwrap();
            let mut state = held[number as usize - 1].clone();
            assert_eq!((restored.snapshot, restored.n_objects), (number, state.objects.len()));
            // It needs no place, and goes on.
            let (store, contents) = Store::open(Arc::new(disk.clone()), small()).unwrap();
            assert_eq!((Model::of(&contents), contents.time()), (state.clone(), restored.time));
            fill(&store, &mut state, rng, 10);
            store.snapshot().unwrap();
            fill(&store, &mut state, rng, 3);
            store.close().unwrap();
            // In the same place it is another database.
            let (store, _) = Store::open(Arc::new(disk.clone()), places.options(Some("test://a"))).unwrap();
            store.snapshot().unwrap();
            store.close().unwrap();
            assert_eq!(Model::of(&read(&disk, &places).unwrap().1), state);
            places.forget_all_but_the_first("test://a");
        }
        assert_eq!(places.database_in("test://a").names().unwrap(), before);
        // The place of the database itself may be named.
        let own = format!("test://a/{}", places.folders("test://a").unwrap()[0]);
        restore(&SimulatedDisk::new(), &places, &own, &Restoring::default()).unwrap();
    });
}

#[test]
fn restoring_stops_at_any_step_and_begins_again() {
    let (places, mut rng) = (Places::default(), Rng::of(5));
    let held = snapshots_of("test://a", &places, 1, &mut rng);
    let again = |disk: &SimulatedDisk, what: &str| {
        match restore(disk, &places, "test://a", &Restoring::default()) {
            Ok(_) => {}
            // All of it was there by then.
            Err(StoreError::NotRestored { .. }) => {}
            Err(error) => panic!("{what}: {error}"),
        }
        let (_, contents) = Store::open(Arc::new(disk.clone()), small()).unwrap();
        assert_eq!(Model::of(&contents), held[0], "{what}");
    };
    let mut n_unfinished = 0;
    for stops_at in 0..40 {
        let disk = SimulatedDisk::new();
        disk.set_faults(Faults { stops_at: Some(stops_at), ..Faults::default() });
        let _ = restore(&disk, &places, "test://a", &Restoring::default());
        let after = disk.crash(|bound| rng.below(bound));
        // What is not finished is no empty database.
        match Store::open(Arc::new(after.crash(|_| 0)), small()) {
            Ok((_, contents)) => assert!(contents.objects().is_empty() || Model::of(&contents) == held[0]),
            Err(error) => {
                assert!(error.to_string().contains("was being restored"), "{error}");
                n_unfinished += 1;
            }
        }
        again(&after, &format!("stop at {stops_at}"));
    }
    assert!(n_unfinished > 3, "{n_unfinished}");
    for fails_at in 0..10 {
        let disk = SimulatedDisk::new();
        places.fail(fails_at, 1);
        let failed = restore(&disk, &places, "test://a", &Restoring::default()).is_err();
        places.fail(0, 0);
        if failed {
            assert!(disk.names().unwrap().iter().all(|name| name == "LOCK"), "{:?}", disk.names());
        }
        again(&disk, &format!("failure at {fails_at}"));
    }
    let disk = SimulatedDisk::new();
    disk.set_faults(Faults { capacity_bytes: Some(500), ..Faults::default() });
    let error = restore(&disk, &places, "test://a", &Restoring::default()).unwrap_err();
    assert!(matches!(error, StoreError::Full { .. }), "{error}");
    disk.set_faults(Faults::default());
    again(&disk, "no room");
}

#[test]
fn what_cannot_be_restored_is_refused() {
    let (places, mut rng) = (Places::default(), Rng::of(6));
    let held = snapshots_of("test://a", &places, 2, &mut rng);
    let refused = |place: &str, restoring: &Restoring| {
        let disk = SimulatedDisk::new();
        let error = restore(&disk, &places, place, restoring).unwrap_err();
        assert!(disk.names().unwrap().iter().all(|name| name == "LOCK"), "{:?}", disk.names());
        error.to_string()
    };
    assert!(refused("test://b", &Restoring::default()).contains("it has no snapshot"));
    assert!(refused("s4://a", &Restoring::default()).contains("no place for snapshots"));
    assert!(refused("test://a", &named(7)).contains("it has no snapshot 7"));
    let other = Restoring { database: Some("0123456789abcdef".into()), snapshot: None };
    assert!(refused("test://a", &other).contains("it has no database 0123456789abcdef"));
    // Bytes that are not what was written, and too few.
    let there = places.database_in("test://a");
    let n_bytes = there.contents("000002.snapshot").unwrap().len();
    for at in [0, 20, 100, n_bytes / 2, n_bytes - 1] {
        there.damage("000002.snapshot", at, 1);
        let error = restore(&SimulatedDisk::new(), &places, "test://a", &Restoring::default()).unwrap_err();
        assert!(error.to_string().starts_with("snapshot 000002.snapshot in test://a/"), "{error}");
        assert!(matches!(error, StoreError::DamagedSnapshot { before: Some(1), .. }), "{error:?}");
        there.damage("000002.snapshot", at, 1);
    }
    there.open("000002.snapshot").unwrap().truncate(n_bytes as u64 - 50).unwrap();
    assert!(refused("test://a", &Restoring::default()).contains("is damaged at byte"));
    let disk = SimulatedDisk::new();
    restore(&disk, &places, "test://a", &named(1)).unwrap();
    // What is there is not overwritten.
    let error = restore(&disk, &places, "test://a", &named(1)).unwrap_err();
    assert!(error.to_string().contains("holds a database"), "{error}");
    assert_eq!(Model::of(&read(&disk, &places).unwrap().1), held[0]);
    let letters = SimulatedDisk::new();
    letters.create("letter.txt").unwrap();
    let error = restore(&letters, &places, "test://a", &named(1)).unwrap_err();
    assert!(error.to_string().contains("it holds letter.txt"), "{error}");
    // Of several databases one is to be named.
    snapshots_of("test://a", &places, 1, &mut rng);
    let names = places.folders("test://a").unwrap();
    let error = refused("test://a", &Restoring::default());
    assert!(error.contains("snapshots of 2 databases") && names.iter().all(|name| error.contains(name)), "{error}");
    for name in names {
        let restoring = Restoring { database: Some(name), snapshot: Some(1) };
        restore(&SimulatedDisk::new(), &places, "test://a", &restoring).unwrap();
    }
}
