//! Reading everything once, without changing anything.

use crate::contents::{Contents, LogEnd};
use crate::disk::Disk;
use crate::error::StoreError;
use crate::manifest::{LOCK, MANIFEST, MANIFEST_NEW, Manifest};
use crate::store::{check_empty, take_lock};

/// What a database on disk holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Files and their bytes, in the order of their names.
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
pub fn read(disk: &dyn Disk) -> Result<(Box<dyn Send + Sync>, Contents), StoreError> {
    let lock = take_lock(disk)?;
    let Some(manifest) = Manifest::read(disk)? else {
        check_empty(disk)?;
        return Err(StoreError::NotADatabase { place: disk.place(), detail: format!("it has no {MANIFEST}") });
    };
    Ok((lock, Contents::load(disk, &manifest)?.0))
}

/// Reads and checks every byte of a database.
///
/// # Errors
/// `Damaged` names the first file that is; otherwise as [`Store::open`](crate::Store::open).
pub fn check(disk: &dyn Disk) -> Result<Report, StoreError> {
    let _lock = take_lock(disk)?;
    let place = disk.place();
    let Some(manifest) = Manifest::read(disk)? else {
        check_empty(disk)?;
        return Err(StoreError::NotADatabase { place, detail: format!("it has no {MANIFEST}") });
    };
    let (contents, end): (Contents, LogEnd) = Contents::load(disk, &manifest)?;
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
    Ok(Report {
        files,
        objects,
        n_commits: contents.n_commits(),
        time: contents.time(),
        incarnation: manifest.incarnation,
        torn_bytes: end.torn_bytes,
    })
}
