//! Folders of the operating system: locks, strangers, threads, files of earlier builds.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anabranch_store::{Commit, Created, Fact, LocalDisk, Store, StoreError, StoreOptions, check};

use crate::model::{Model, Rng};

/// A folder that goes away with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("anabranch-store-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Folder(path)
    }

    fn disk(&self) -> Arc<LocalDisk> {
        Arc::new(LocalDisk::create(&self.0).unwrap())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn one_handle_has_it_open() {
    let folder = Folder::new("lock");
    let (store, _) = Store::open(folder.disk(), StoreOptions::default()).unwrap();
    let error = Store::open(folder.disk(), StoreOptions::default()).unwrap_err();
    let (place, holder) = (folder.0.display().to_string(), Some(format!("process {}", std::process::id())));
    assert_eq!(error, StoreError::Locked { place, holder });
    assert!(matches!(check(folder.disk().as_ref()), Err(StoreError::Locked { .. })));
    store.close().unwrap();
    Store::open(folder.disk(), StoreOptions::default()).unwrap();
}

#[test]
fn a_folder_of_other_files_is_left_alone() {
    let folder = Folder::new("strangers");
    std::fs::create_dir_all(&folder.0).unwrap();
    std::fs::write(folder.0.join("letters.txt"), "dear").unwrap();
    let error = Store::open(folder.disk(), StoreOptions::default()).unwrap_err();
    assert!(error.to_string().ends_with("is not a database: it holds letters.txt, and no MANIFEST"), "{error}");
}

#[test]
fn many_writers_share_syncs_and_snapshots_are_made_beside() {
    let folder = Folder::new("writers");
    let options = StoreOptions { snapshot_bytes: 20_000, segment_bytes: 8_000, ..StoreOptions::default() };
    let (store, _) = Store::open(folder.disk(), options.clone()).unwrap();
    let state = std::sync::Mutex::new(Model::default());
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let (store, state) = (&store, &state);
            scope.spawn(move || {
                let mut rng = Rng::of(thread);
                for _ in 0..60 {
                    let ticket = {
                        let mut state = state.lock().unwrap();
                        let commit = state.random_commit(&mut rng);
                        state.apply(&commit);
                        store.append(&commit).unwrap()
                    };
                    ticket.wait().unwrap();
                    assert!(ticket.is_durable());
                }
            });
        }
    });
    let statistics = store.statistics();
    assert_eq!(statistics.commits, 480);
    assert!(statistics.syncs <= 480, "{statistics:?}");
    assert_eq!(statistics.sync_times.iter().sum::<u64>(), statistics.syncs);
    assert_eq!(store.snapshot_problem(), None);
    store.close().unwrap();
    let (store, contents) = Store::open(folder.disk(), options).unwrap();
    assert!(store.statistics().log_bytes > 0 || statistics.snapshots > 0);
    assert_eq!(Model::of(&contents), *state.lock().unwrap());
}

#[test]
fn a_long_log_is_folded_when_it_is_opened() {
    let folder = Folder::new("folded");
    let mut state = Model::default();
    let (store, _) = Store::open(folder.disk(), StoreOptions::default()).unwrap();
    let mut rng = Rng::of(5);
    while store.statistics().log_bytes < 40_000 {
        let commit = state.random_commit(&mut rng);
        state.apply(&commit);
        store.append(&commit).unwrap().wait().unwrap();
    }
    drop(store);
    let options = StoreOptions { snapshot_bytes: 20_000, ..StoreOptions::default() };
    let (store, contents) = Store::open(folder.disk(), options.clone()).unwrap();
    assert_eq!(Model::of(&contents), state);
    let started = std::time::Instant::now();
    while store.statistics().snapshots == 0 {
        assert!(started.elapsed().as_secs() < 20, "the log is never folded");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    store.close().unwrap();
    let (store, contents) = Store::open(folder.disk(), options).unwrap();
    assert!(store.statistics().log_bytes < 20_000);
    assert_eq!(Model::of(&contents), state);
}

#[test]
fn what_nobody_waits_for_is_synced_a_little_later() {
    let folder = Folder::new("relaxed");
    let (store, _) = Store::open(folder.disk(), StoreOptions::default()).unwrap();
    let ticket = store.append(&Commit { time: 1, ..Commit::default() }).unwrap();
    let started = std::time::Instant::now();
    while !ticket.is_durable() {
        assert!(started.elapsed().as_secs() < 20, "it is never synced");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

#[test]
fn a_commit_of_many_frames_counts_as_a_whole() {
    let folder = Folder::new("frames");
    let (store, _) = Store::open(folder.disk(), StoreOptions::default()).unwrap();
    let mut commit = Commit { time: 3, created: vec![Created { id: 1, text: "t".into() }], ..Commit::default() };
    let value = vec![7; 5 << 20];
    for name in ["a", "b", "c", "d"] {
        commit.facts.push(Fact { object: 1, name: name.into(), value: Some(value.clone()) });
    }
    store.append(&commit).unwrap().wait().unwrap();
    drop(store);
    let path = folder.0.join("000001.log");
    let (store, contents) = Store::open(folder.disk(), StoreOptions::default()).unwrap();
    assert_eq!(contents.facts().count(), 4);
    drop(store);
    // Without its end, and as if it had not been closed, nothing of it is there.
    let length = std::fs::metadata(&path).unwrap().len();
    std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(length - 8).unwrap();
    assert!(matches!(check(folder.disk().as_ref()), Err(StoreError::Damaged { .. })), "it was closed whole");
    let manifest = std::fs::read_to_string(folder.0.join("MANIFEST")).unwrap();
    std::fs::write(folder.0.join("MANIFEST"), open_again(&manifest)).unwrap();
    let (_, contents) = Store::open(folder.disk(), StoreOptions::default()).unwrap();
    assert_eq!((contents.facts().count(), contents.objects().len()), (0, 0));
}

/// The manifest of a database that was not closed.
fn open_again(manifest: &str) -> String {
    let kept: Vec<&str> = manifest.lines().filter(|line| !line.starts_with("checksum")).collect();
    let kept: Vec<&str> = kept
        .into_iter()
        .filter(|line| !line.starts_with("closed"))
        .map(|line| if line.starts_with("last") { "last 0" } else { line })
        .collect();
    let lines = format!("{}\n", kept.join("\n"));
    format!("{lines}checksum {}\n", crc32fast::hash(lines.as_bytes()))
}

/// A database as version 1 of the format wrote it, with a snapshot and a log behind it.
#[test]
fn files_of_version_1_are_read() {
    let fixture = Path::new("tests/fixtures/v1");
    let mut rng = Rng::of(20_261_124);
    let mut state = Model::default();
    let commits: Vec<Commit> = (0..20)
        .map(|_| {
            let commit = state.random_commit(&mut rng);
            state.apply(&commit);
            commit
        })
        .collect();
    if std::env::var("UPDATE").is_ok() && !fixture.exists() {
        let disk = Arc::new(LocalDisk::create(fixture).unwrap());
        let (store, _) = Store::open(disk, StoreOptions::default()).unwrap();
        for (place, commit) in commits.iter().enumerate() {
            store.append(commit).unwrap();
            if place == 12 {
                store.snapshot().unwrap();
            }
        }
        store.close().unwrap();
        std::fs::remove_file(fixture.join("LOCK")).unwrap();
    }
    let folder = Folder::new("fixture");
    std::fs::create_dir_all(&folder.0).unwrap();
    for entry in std::fs::read_dir(fixture).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, folder.0.join(path.file_name().unwrap())).unwrap();
    }
    let report = check(folder.disk().as_ref()).unwrap();
    assert_eq!((report.n_commits, report.incarnation), (8, 1));
    let (_, contents) = Store::open(folder.disk(), StoreOptions::default()).unwrap();
    assert_eq!(Model::of(&contents), state);
}
