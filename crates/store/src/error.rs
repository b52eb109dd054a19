//! What goes wrong with a store.

use std::io::{self, ErrorKind};

/// Why a store cannot be opened, written or read. Cheap to clone: all who wait for one sync get the
/// same.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// There is no room left. Nothing was written.
    #[error("no space is left for {object} in {place}")]
    Full {
        /// What was being written.
        object: String,
        /// The folder.
        place: String,
    },
    /// The operating system does not let this user. Nothing was written.
    #[error("permission denied to {action} {object} in {place}")]
    Denied {
        /// What was tried.
        action: &'static str,
        /// With which file.
        object: String,
        /// The folder.
        place: String,
    },
    /// Another process, or another handle, has the database open.
    #[error("the database in {place} is open elsewhere{}", of_holder(.holder))]
    Locked {
        /// The folder.
        place: String,
        /// Who has it, as far as it said so.
        holder: Option<String>,
    },
    /// There is no database.
    #[error("{place} is not a database: {detail}")]
    NotADatabase {
        /// The folder.
        place: String,
        /// What is missing.
        detail: String,
    },
    /// What was named as the place of snapshots is none.
    #[error("{place} is no place for snapshots: {detail}")]
    NotAPlace {
        /// What was named.
        place: String,
        /// What is wrong with it.
        detail: String,
    },
    /// Nothing was restored from a place of snapshots.
    #[error("nothing was restored from {place}: {detail}")]
    NotRestored {
        /// The place.
        place: String,
        /// What is in the way.
        detail: String,
        /// What to do instead, as a sentence.
        instead: String,
    },
    /// A snapshot that was to be restored is not what was written.
    #[error("snapshot {file} in {place} is damaged at byte {offset}: {detail}")]
    DamagedSnapshot {
        /// The place.
        place: String,
        /// The file.
        file: String,
        /// Where the first part begins that cannot be read.
        offset: u64,
        /// What is wrong with it.
        detail: String,
        /// The number of the snapshot before, if there is one.
        before: Option<u64>,
    },
    /// A file is not what was written.
    #[error("file {file} of the database in {place} is damaged at byte {offset}: {detail}")]
    Damaged {
        /// The folder.
        place: String,
        /// The file.
        file: String,
        /// Where the first part begins that cannot be read.
        offset: u64,
        /// What is wrong with it.
        detail: String,
    },
    /// A file was written by a version that this build does not know.
    #[error("file {file} of the database in {place} has format version {found}, this build reads {known}")]
    Version {
        /// The folder.
        place: String,
        /// The file.
        file: String,
        /// Its version.
        found: u32,
        /// The version that is known.
        known: u32,
    },
    /// The operating system says no, for another reason. Nothing was written.
    #[error("cannot {action} {object} in {place}: {detail}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// With which file.
        object: String,
        /// The folder.
        place: String,
        /// The operating system's words.
        detail: String,
    },
    /// What was written may be on disk or not: the log takes nothing more until the database is
    /// opened again.
    #[error("the log of the database in {place} has failed: {detail}")]
    Failed {
        /// The folder.
        place: String,
        /// What happened.
        detail: String,
    },
    /// The store was closed.
    #[error("the database in {place} is closed")]
    Closed {
        /// The folder.
        place: String,
    },
}

fn of_holder(holder: &Option<String>) -> String {
    holder.as_ref().map(|holder| format!(", by {holder}")).unwrap_or_default()
}

impl StoreError {
    /// The error for an answer of the operating system.
    pub(crate) fn of_io(place: &str, action: &'static str, object: &str, error: &io::Error) -> StoreError {
        let (place, object) = (place.to_string(), object.to_string());
        match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => StoreError::Full { object, place },
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => StoreError::Denied { action, object, place },
            _ => StoreError::Io { action, object, place, detail: error.to_string() },
        }
    }
}
