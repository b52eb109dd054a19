//! Reading everything once, without changing anything.

use crate::contents::{Contents, LogEnd};
use crate::disk::Disk;
use crate::error::StoreError;
use crate::manifest::{LOCK, MANIFEST, MANIFEST_NEW, Manifest, snapshot_name};
use crate::places::{LocalPlaces, SnapshotPlaces, elsewhere};
use crate::store::{check_empty, take_lock};

/// What a database on disk holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Files and their bytes, in the order of their names; a snapshot that lies elsewhere comes
    /// last, with its place.
    pub files: Vec<(String, u64)>,
    /// Objects in the order in which they were made: id, statement, rows.
    pub objects: Vec<CheckedObject>,
    /// Commits in the log, and one for the snapshot.
    pub n_commits: u64,
    /// Time of the last commit.
    pub time: i64,
    /// How often the database was opened.
    pub incarnation: u64,
    /// Bytes at the end of the log that were lost in part with the power. They were never
    /// acknowledged.
    pub torn_bytes: u64,
}

/// An object of a [`Report`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedObject {
    /// Its id.
    pub id: u64,
    /// The statement that makes it.
    pub text: String,
    /// Its rows, copies counted.
    pub n_rows: i64,
}

/// What a database holds, without changing anything. The guard keeps others from opening it
/// meanwhile.
///
/// # Errors
/// As [`Store::open`](crate::Store::open); `NotADatabase` when there is none.
pub fn read(disk: &dyn Disk, places: &dyn SnapshotPlaces) -> Result<(Box<dyn Send + Sync>, Contents), StoreError> {
    let lock = take_lock(disk)?;
    let manifest = manifest_of(disk)?;
    let there = elsewhere(places, &manifest.place)?;
    Ok((lock, Contents::load(disk, there.as_deref().unwrap_or(disk), &manifest)?.0))
}

fn manifest_of(disk: &dyn Disk) -> Result<Manifest, StoreError> {
    if let Some(manifest) = Manifest::read(disk)? {
        return Ok(manifest);
    }
    check_empty(disk)?;
    Err(StoreError::NotADatabase { place: disk.place(), detail: format!("it has no {MANIFEST}") })
}

/// Reads and checks every byte of a database.
///
/// # Errors
/// `Damaged` names the first file that is; otherwise as [`Store::open`](crate::Store::open).
pub fn check(disk: &dyn Disk) -> Result<Report, StoreError> {
    check_with(disk, &LocalPlaces)
}

/// As [`check`], where snapshots may lie in any of these places.
///
/// # Errors
/// As [`check`]; `Io` when the place cannot be reached.
pub fn check_with(disk: &dyn Disk, places: &dyn SnapshotPlaces) -> Result<Report, StoreError> {
    let _lock = take_lock(disk)?;
    let place = disk.place();
    let manifest = manifest_of(disk)?;
    let there = elsewhere(places, &manifest.place)?;
    let snapshots = there.as_deref().unwrap_or(disk);
    let (contents, end): (Contents, LogEnd) = Contents::load(disk, snapshots, &manifest)?;
    let mut objects = Vec::new();
    for object in contents.objects() {
        let mut n_rows = 0;
        contents.rows(object.id, |batch| {
            n_rows += (0..batch.len()).map(|row| batch.diffs().get(row)).sum::<i64>();
            Ok::<(), StoreError>(())
        })?;
        objects.push(CheckedObject { id: object.id, text: object.text, n_rows });
    }
    let failed = |error| StoreError::of_io(&place, "list", "the files", &error);
    let mut files = Vec::new();
    for name in disk.names().map_err(failed)? {
        if ![LOCK, MANIFEST_NEW].contains(&name.as_str()) {
            let size = disk.open(&name).and_then(|file| file.size()).map_err(failed)?;
            files.push((name, size));
        }
    }
    if manifest.snapshot != 0 && !manifest.place.is_empty() {
        let name = snapshot_name(manifest.snapshot);
        let size = snapshots.open(&name).and_then(|file| file.size());
        let size = size.map_err(|error| StoreError::of_io(&snapshots.place(), "read", &name, &error))?;
        files.push((format!("{}/{name}", manifest.place), size));
    }
    Ok(Report {
        files,
        objects,
        n_commits: contents.n_commits(),
        time: contents.time(),
        incarnation: manifest.incarnation,
        torn_bytes: end.torn_bytes,
    })
}
