//! A database made of a snapshot in a place, where its folder is lost.
//!
//! Law: what is restored is the database as of a snapshot, whole: objects, rows, and facts. What
//! the log held since is lost with the folder. The database is another one than the lost: it has a
//! copy of the snapshot, names no place, and changes nothing in the place.
//!
//! The folder is a database once its manifest is there, which is written after the copy was read
//! from its first byte to its last. Until then the file `RESTORING` says that the others are left
//! over from a stop: the folder is no database, and one can be restored into it again. A folder
//! that holds anything else is refused.
//!
//! Cost: the snapshot is read once from the place, and once from the folder.

use std::io;
use std::sync::Arc;

use crate::contents::{Contents, LogEnd};
use crate::disk::{Disk, DiskFile};
use crate::error::StoreError;
use crate::log::make_segment;
use crate::manifest::{LOCK, MANIFEST, MANIFEST_NEW, Manifest, RESTORING, number_of, segment_name, snapshot_name};
use crate::places::SnapshotPlaces;
use crate::store::{check_empty, take_lock};

/// Bytes that are copied at once.
const BLOCK_BYTES: u64 = 1 << 20;
/// Hexadecimal digits of the name of a database in a place.
const NAME_DIGITS: usize = 16;

/// Which snapshot is restored.
#[derive(Clone, Debug, Default)]
pub struct Restoring {
    /// The name of the database in the place, where there are several.
    pub database: Option<String>,
    /// The number of the snapshot; the newest one without.
    pub snapshot: Option<u64>,
}

/// What was restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// Where the snapshot lies.
    pub place: String,
    /// The number of the snapshot.
    pub snapshot: u64,
    /// Bytes of the snapshot.
    pub size_bytes: u64,
    /// Time of the last commit that the snapshot holds.
    pub time: i64,
    /// Objects that are there.
    pub n_objects: usize,
}

/// A place that holds snapshots of one database.
struct Source {
    place: String,
    disk: Arc<dyn Disk>,
    /// Numbers of the snapshots, in order.
    snapshots: Vec<u64>,
}

/// Makes the database of a snapshot that lies in `place` on an empty disk.
///
/// # Errors
/// `NotRestored` when the disk holds something, or when it is not clear which snapshot is meant;
/// `DamagedSnapshot` when the snapshot is not what was written; those of the disk and the place.
/// Nothing is left on the disk that hinders another try.
pub fn restore(
    disk: &dyn Disk,
    places: &dyn SnapshotPlaces,
    place: &str,
    restoring: &Restoring,
) -> Result<Restored, StoreError> {
    if Manifest::read(disk)?.is_some() {
        let detail = format!("{} holds a database, and nothing is put in its place", disk.place());
        return Err(refused(place, detail, "Name a folder that is empty, or not there."));
    }
    let is_unfinished = check_room(disk)?;
    let source = find(places, place, restoring)?;
    let number = source.chosen(restoring)?;
    let _lock = take_lock(disk)?;
    if is_unfinished {
        clear(disk)?;
    }
    let mark = || {
        disk.create(RESTORING)?.sync()?;
        disk.sync_names()
    };
    mark().map_err(|error: io::Error| StoreError::of_io(&disk.place(), "make", RESTORING, &error))?;
    let (manifest, restored) = match copied(disk, &source, number) {
        Ok(copied) => copied,
        Err(error) => {
            // (What cannot be removed is left over, and marked so.)
            let _ = clear(disk).and_then(|()| remove(disk, RESTORING));
            return Err(error);
        }
    };
    // From here on the folder may be a database, whatever fails.
    manifest.write(disk)?;
    // (Opening removes the file if this does not.)
    let _ = disk.remove(RESTORING).and_then(|()| disk.sync_names());
    Ok(restored)
}

/// Copies a snapshot, makes the first segment of a log behind it, and reads the copy.
fn copied(disk: &dyn Disk, source: &Source, number: u64) -> Result<(Manifest, Restored), StoreError> {
    let size_bytes = copy(disk, source, number)?;
    let read = Contents::of_snapshot(disk, &snapshot_name(number), number);
    let (contents, (sequence, chain)) = read.map_err(|error| source.damaged(number, error))?;
    let manifest = Manifest { snapshot: number, segment: 1, sequence, chain, ..Manifest::default() };
    make_segment(disk, LogEnd::before(&manifest).header())?;
    let (place, n_objects) = (source.place.clone(), contents.objects().len());
    Ok((manifest, Restored { place, snapshot: number, size_bytes, time: contents.time(), n_objects }))
}

/// An error unless a disk is empty, or holds only what a stop while restoring has left over:
/// whether there is something left over.
fn check_room(disk: &dyn Disk) -> Result<bool, StoreError> {
    let names = names(disk)?;
    if !names.iter().any(|name| name == RESTORING) {
        return check_empty(disk).map(|()| false);
    }
    match names.iter().find(|name| ![LOCK, RESTORING].contains(&name.as_str()) && !is_left_over(name)) {
        None => Ok(true),
        Some(name) => {
            let detail = format!("it holds {name}, beside what was being restored");
            Err(StoreError::NotADatabase { place: disk.place(), detail })
        }
    }
}

fn is_left_over(name: &str) -> bool {
    name == MANIFEST_NEW || name == segment_name(1) || number_of(name, ".snapshot").is_some()
}

/// Removes what a stop while restoring has left over.
fn clear(disk: &dyn Disk) -> Result<(), StoreError> {
    names(disk)?.iter().filter(|name| is_left_over(name)).try_for_each(|name| remove(disk, name))
}

fn remove(disk: &dyn Disk, name: &str) -> Result<(), StoreError> {
    let removed = disk.remove(name).and_then(|()| disk.sync_names());
    removed.map_err(|error: io::Error| StoreError::of_io(&disk.place(), "remove", name, &error))
}

fn names(disk: &dyn Disk) -> Result<Vec<String>, StoreError> {
    disk.names().map_err(|error: io::Error| StoreError::of_io(&disk.place(), "list", "the files", &error))
}

/// Copies a snapshot to the disk; returns its bytes.
fn copy(disk: &dyn Disk, source: &Source, number: u64) -> Result<u64, StoreError> {
    let name = snapshot_name(number);
    let there = |error: io::Error| StoreError::of_io(&source.place, "read", &name, &error);
    let here = |error: io::Error| StoreError::of_io(&disk.place(), "write", &name, &error);
    let from: Box<dyn DiskFile> = source.disk.open(&name).map_err(there)?;
    let size = from.size().map_err(there)?;
    let to = disk.create(&name).map_err(here)?;
    let mut block = Vec::new();
    let mut at = 0;
    while at < size {
        block.resize(BLOCK_BYTES.min(size - at) as usize, 0);
        from.read_at(at, &mut block).map_err(there)?;
        to.write_at(at, &block).map_err(here)?;
        at += block.len() as u64;
    }
    to.sync().and_then(|()| disk.sync_names()).map_err(here)?;
    Ok(size)
}

/// The snapshots of the one database that is meant.
fn find(places: &dyn SnapshotPlaces, place: &str, restoring: &Restoring) -> Result<Source, StoreError> {
    let place = place.trim_end_matches('/');
    let names = match places.folders(place) {
        Ok(names) => names,
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
            return Err(StoreError::NotAPlace { place: place.to_string(), detail: error.to_string() });
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(refused(place, "there is nothing".to_string(), NAME_A_PLACE));
        }
        Err(error) => return Err(StoreError::of_io(place, "list", "the databases", &error)),
    };
    let is_database = |name: &&String| {
        name.len() == NAME_DIGITS && name.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
    };
    let databases: Vec<&String> = names.iter().filter(is_database).collect();
    let listed = || databases.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", ");
    match (&restoring.database, databases.as_slice()) {
        (Some(wanted), _) if databases.contains(&wanted) => Source::open(places, &format!("{place}/{wanted}")),
        (Some(wanted), _) => {
            let instead = if databases.is_empty() { NAME_A_PLACE.into() } else { format!("It has {}.", listed()) };
            Err(refused(place, format!("it has no database {wanted}"), instead))
        }
        // (Perhaps the place of one database was named.)
        (None, []) => Source::open(places, place),
        (None, [name]) => Source::open(places, &format!("{place}/{name}")),
        (None, several) => {
            let detail = format!("it has snapshots of {} databases: {}", several.len(), listed());
            Err(refused(place, detail, "Say which one is meant: --database and its name."))
        }
    }
}

const NAME_A_PLACE: &str = "Name the place that --snapshots named, such as s3://backups/shop or file:///mnt/backup.";

impl Source {
    fn open(places: &dyn SnapshotPlaces, place: &str) -> Result<Source, StoreError> {
        let failed = |error: io::Error| StoreError::of_io(place, "list", "the snapshots", &error);
        let disk = places.open(place).map_err(failed)?;
        let names = disk.names().map_err(failed)?;
        if names.iter().any(|name| name == MANIFEST) {
            let detail = "it is the folder of a database, with a log of its own".to_string();
            return Err(refused(
                place,
                detail,
                "Open it, or a copy of it: that has what came after the snapshot, too.",
            ));
        }
        let mut snapshots: Vec<u64> = names.iter().filter_map(|name| number_of(name, ".snapshot")).collect();
        snapshots.sort_unstable();
        Ok(Source { place: place.to_string(), disk, snapshots })
    }

    /// The number of the snapshot that is meant.
    fn chosen(&self, restoring: &Restoring) -> Result<u64, StoreError> {
        let listed = || self.snapshots.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
        match (restoring.snapshot, self.snapshots.last()) {
            (_, None) => Err(refused(&self.place, "it has no snapshot".to_string(), NAME_A_PLACE)),
            (None, Some(newest)) => Ok(*newest),
            (Some(number), _) if self.snapshots.contains(&number) => Ok(number),
            (Some(number), _) => {
                Err(refused(&self.place, format!("it has no snapshot {number}"), format!("It has {}.", listed())))
            }
        }
    }

    /// What is wrong with a copy is wrong with the snapshot.
    fn damaged(&self, number: u64, error: StoreError) -> StoreError {
        let StoreError::Damaged { offset, detail, .. } = error else { return error };
        let before = self.snapshots.iter().rev().find(|other| **other < number).copied();
        let (place, file) = (self.place.clone(), snapshot_name(number));
        StoreError::DamagedSnapshot { place, file, offset, detail, before }
    }
}

fn refused(place: &str, detail: String, instead: impl Into<String>) -> StoreError {
    StoreError::NotRestored { place: place.to_string(), detail, instead: instead.into() }
}
