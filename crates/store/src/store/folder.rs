//! The files of a database as a whole: the lock, the first ones, and what is left over.

use std::sync::Arc;

use crate::contents::LogEnd;
use crate::disk::Disk;
use crate::error::StoreError;
use crate::log::{LogWriter, make_segment};
use crate::manifest::{LOCK, MANIFEST, MANIFEST_NEW, Manifest, RESTORING, number_of, segment_name};

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
pub(super) fn initialise(disk: &dyn Disk) -> Result<Manifest, StoreError> {
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
    if names.iter().any(|name| name == RESTORING) {
        let detail = "a database was being restored into it; restore it again".to_string();
        return Err(StoreError::NotADatabase { place, detail });
    }
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
pub(super) fn start_writing(disk: &Arc<dyn Disk>, manifest: &Manifest, end: &LogEnd) -> Result<LogWriter, StoreError> {
    let writer = LogWriter::open(disk.clone(), end)?;
    manifest.write(disk.as_ref())?;
    remove_leftovers(disk.as_ref(), manifest);
    Ok(writer)
}

/// Removes files that the manifest does not name. What cannot be removed is tried again next time.
pub(super) fn remove_leftovers(disk: &dyn Disk, manifest: &Manifest) {
    let is_elsewhere = !manifest.place.is_empty();
    for name in disk.names().unwrap_or_default() {
        let is_old = number_of(&name, ".log").is_some_and(|number| number < manifest.segment)
            || number_of(&name, ".snapshot").is_some_and(|number| number != manifest.snapshot || is_elsewhere)
            || [MANIFEST_NEW, RESTORING].contains(&name.as_str());
        if is_old {
            let _ = disk.remove(&name);
        }
    }
}

/// Removes the snapshots of this database that the place holds beside the one that counts.
pub(super) fn remove_snapshots(there: &dyn Disk, manifest: &Manifest) {
    for name in there.names().unwrap_or_default() {
        if number_of(&name, ".snapshot").is_some_and(|number| number != manifest.snapshot) {
            let _ = there.remove(&name);
        }
    }
}
