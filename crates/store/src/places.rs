//! Where snapshots lie: in the folder beside the log, or in a place of their own.
//!
//! Law: the manifest names the place of the snapshot that counts, so a database finds it without
//! being told. A place that fails costs snapshots, never commits: those are in the log, which stays
//! in the folder until a snapshot holds them.
//!
//! A place is a [`Disk`] that a program opens by its URL. Below the place that users name lies a
//! folder for each database, named by its identity: several databases may be given one place.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::disk::Disk;
use crate::error::StoreError;
use crate::local::LocalDisk;
use crate::manifest::Manifest;

/// Bytes of a place's URL, at most: the manifest holds two.
const URL_BYTES_MAX: usize = 1000;
/// What users name the folder of the database.
const FOLDER: &str = "folder";

/// Opens places for snapshots by their URLs.
pub trait SnapshotPlaces: Send + Sync {
    /// The place of that URL. Nothing is asked of it yet.
    ///
    /// # Errors
    /// `InvalidInput` when the URL is none, or of a kind that is not known; the detail says which
    /// are.
    fn open(&self, url: &str) -> io::Result<Arc<dyn Disk>>;

    /// Names of the folders below the place of that URL, in order. Nothing is made.
    ///
    /// # Errors
    /// `InvalidInput` as [`open`](Self::open); `NotFound` where a missing place can be told from an
    /// empty one; those of the place.
    fn folders(&self, url: &str) -> io::Result<Vec<String>>;
}

/// Folders, as `file:///mnt/backup`.
#[derive(Clone, Copy, Debug, Default)]
pub struct LocalPlaces;

impl SnapshotPlaces for LocalPlaces {
    fn open(&self, url: &str) -> io::Result<Arc<dyn Disk>> {
        Ok(Arc::new(LocalDisk::create(local_path(url)?)?))
    }

    fn folders(&self, url: &str) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(local_path(url)?)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                names.extend(entry.file_name().into_string());
            }
        }
        names.sort_unstable();
        Ok(names)
    }
}

fn local_path(url: &str) -> io::Result<&Path> {
    let invalid = |detail: &str| Err(io::Error::new(io::ErrorKind::InvalidInput, detail));
    match url.strip_prefix("file://") {
        Some(path) if path.starts_with('/') => Ok(Path::new(path)),
        Some(_) => invalid("after file:// an absolute path is wanted, as in file:///mnt/backup"),
        None => invalid("places are file:///folder, or folder for the folder of the database"),
    }
}

/// Hears what has become of a snapshot: nothing went wrong, or why the log grows instead.
pub type SnapshotListener = Arc<dyn Fn(Option<&StoreError>) + Send + Sync>;

/// Where snapshots go.
#[derive(Clone)]
pub struct Snapshots {
    /// The place of those to come: a URL, or `folder` for the folder of the database. `None` goes
    /// on where the last one went. The one that is there is read where it lies, and stays there
    /// when the next one goes elsewhere.
    pub place: Option<String>,
    /// Opens places.
    pub places: Arc<dyn SnapshotPlaces>,
    /// Is told of every snapshot, on the thread that wrote it.
    pub told: Option<SnapshotListener>,
}

impl Default for Snapshots {
    fn default() -> Snapshots {
        Snapshots { place: None, places: Arc::new(LocalPlaces), told: None }
    }
}

impl std::fmt::Debug for Snapshots {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Snapshots").field("place", &self.place).finish_non_exhaustive()
    }
}

impl Snapshots {
    /// Enters into the manifest of a database where its snapshots go from now on.
    pub(crate) fn choose(&self, manifest: &mut Manifest) -> Result<(), StoreError> {
        let Some(place) = &self.place else { return Ok(()) };
        if place == FOLDER {
            manifest.next_place = String::new();
            return Ok(());
        }
        let place = place.trim_end_matches('/');
        if manifest.identity == 0 {
            manifest.identity = identity();
        }
        let url = format!("{place}/{:016x}", manifest.identity);
        if url.len() > URL_BYTES_MAX || url.contains(|c: char| c.is_whitespace() || c.is_control()) {
            let detail = format!("its name has blanks, or more than {URL_BYTES_MAX} bytes");
            return Err(StoreError::NotAPlace { place: place.to_string(), detail });
        }
        // (What is no place is refused before anything is written; one that fails is not.)
        match self.places.open(&url) {
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                Err(StoreError::NotAPlace { place: place.to_string(), detail: error.to_string() })
            }
            _ => {
                manifest.next_place = url;
                Ok(())
            }
        }
    }
}

/// The disk on which a place's snapshots lie; `None` for an empty URL, which is the folder itself.
pub(crate) fn elsewhere(places: &dyn SnapshotPlaces, url: &str) -> Result<Option<Arc<dyn Disk>>, StoreError> {
    match url {
        "" => Ok(None),
        url => match places.open(url) {
            Ok(disk) => Ok(Some(disk)),
            Err(error) => Err(StoreError::of_io(url, "open", "the place of snapshots", &error)),
        },
    }
}

/// A number that no other database has: 64 bits of the system's randomness.
fn identity() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::process::id()) | 1
}
