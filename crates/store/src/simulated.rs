//! A disk in memory that fails as disks do, from a seed.
//!
//! Law: after [`crash`](SimulatedDisk::crash) a file holds what was synced; each sector written
//! since is there, or as it was synced, or torn inside; the length is one of those since the last
//! sync. Changes of names since the last [`sync_names`](Disk::sync_names) happened up to some
//! point.
//!
//! Faults: the disk is full from a number of bytes on; operation number n and those after it fail;
//! syncs fail once.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::disk::{Disk, DiskFile};

/// Bytes that a disk writes as one, if the power holds.
const SECTOR_BYTES: usize = 512;

/// See the [module](self). Clones are the same disk.
#[derive(Clone, Default)]
pub struct SimulatedDisk {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    files: Vec<Contents>,
    /// Names as they are seen.
    names: BTreeMap<String, usize>,
    /// Names as they last.
    names_synced: BTreeMap<String, usize>,
    /// What was done to names since.
    name_changes: Vec<NameChange>,
    is_locked: bool,
    n_operations: u64,
    faults: Faults,
}

/// What is to go wrong.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// Bytes that fit, in all files together.
    pub capacity_bytes: Option<u64>,
    /// Changing operations from this number on fail, as if the machine had stopped.
    pub stops_at: Option<u64>,
    /// Nothing may be written.
    pub is_denied: bool,
    /// The next sync of a file fails, once.
    pub sync_fails: bool,
}

#[derive(Clone, Default)]
struct Contents {
    seen: Vec<u8>,
    synced: Vec<u8>,
    /// Sectors written since the last sync.
    dirty: BTreeSet<usize>,
}

enum NameChange {
    Set(String, usize),
    Removed(String),
}

impl SimulatedDisk {
    /// An empty disk without faults.
    pub fn new() -> SimulatedDisk {
        SimulatedDisk::default()
    }

    /// Sets what is to go wrong from now on.
    pub fn set_faults(&self, faults: Faults) {
        self.state().faults = faults;
    }

    /// Changing operations so far.
    pub fn n_operations(&self) -> u64 {
        self.state().n_operations
    }

    /// The disk after the machine stopped and started again. `random` gives numbers below its
    /// argument.
    pub fn crash(&self, mut random: impl FnMut(usize) -> usize) -> SimulatedDisk {
        let random: &mut dyn FnMut(usize) -> usize = &mut random;
        let state = self.state();
        let files: Vec<Contents> = state.files.iter().map(|file| file.after_crash(random)).collect();
        let mut names = state.names_synced.clone();
        for change in &state.name_changes[..random(state.name_changes.len() + 1)] {
            match change {
                NameChange::Set(name, file) => {
                    names.retain(|_, other| other != file);
                    names.insert(name.clone(), *file);
                }
                NameChange::Removed(name) => {
                    names.remove(name);
                }
            }
        }
        let after = State { files, names_synced: names.clone(), names, ..State::default() };
        SimulatedDisk { state: Arc::new(Mutex::new(after)) }
    }

    /// Changes a byte of a file unseen by the store.
    ///
    /// # Panics
    /// If there is no such byte.
    pub fn damage(&self, name: &str, offset: usize, flip: u8) {
        let mut state = self.state();
        let file = state.names[name];
        state.files[file].seen[offset] ^= flip;
        let seen = state.files[file].seen.clone();
        state.files[file].synced = seen;
    }

    /// The bytes of a file.
    pub fn contents(&self, name: &str) -> Option<Vec<u8>> {
        let state = self.state();
        state.names.get(name).map(|file| state.files[*file].seen.clone())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Counts an operation that changes something; fails when the machine has stopped.
    fn operate(&mut self) -> io::Result<()> {
        if self.faults.is_denied {
            return Err(ErrorKind::PermissionDenied.into());
        }
        self.n_operations += 1;
        match self.faults.stops_at {
            Some(at) if self.n_operations > at => Err(io::Error::other("the machine has stopped")),
            _ => Ok(()),
        }
    }

    fn find(&self, name: &str) -> io::Result<usize> {
        self.names.get(name).copied().ok_or_else(|| ErrorKind::NotFound.into())
    }

    /// Bytes that still fit.
    fn room(&self) -> u64 {
        let used: u64 = self.names.values().map(|file| self.files[*file].seen.len() as u64).sum();
        self.faults.capacity_bytes.map_or(u64::MAX, |capacity| capacity.saturating_sub(used))
    }
}

impl Contents {
    fn write(&mut self, offset: usize, bytes: &[u8]) {
        let end = offset + bytes.len();
        if self.seen.len() < end {
            self.seen.resize(end, 0);
        }
        self.seen[offset..end].copy_from_slice(bytes);
        self.dirty.extend(offset / SECTOR_BYTES..end.div_ceil(SECTOR_BYTES));
    }

    fn after_crash(&self, random: &mut dyn FnMut(usize) -> usize) -> Contents {
        let (short, long) = (self.seen.len().min(self.synced.len()), self.seen.len().max(self.synced.len()));
        let length = short + random(long - short + 1);
        let mut bytes = self.synced.clone();
        bytes.resize(length, 0);
        for sector in &self.dirty {
            let start = sector * SECTOR_BYTES;
            let end = (start + SECTOR_BYTES).min(length).min(self.seen.len());
            if start >= end {
                continue;
            }
            let n_written = match random(3) {
                0 => 0,
                1 => end - start,
                _ => random(end - start + 1),
            };
            bytes[start..start + n_written].copy_from_slice(&self.seen[start..start + n_written]);
        }
        Contents { seen: bytes.clone(), synced: bytes, dirty: BTreeSet::new() }
    }
}

impl Disk for SimulatedDisk {
    fn place(&self) -> String {
        "the simulated disk".to_string()
    }

    fn names(&self) -> io::Result<Vec<String>> {
        Ok(self.state().names.keys().cloned().collect())
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let mut state = self.state();
        state.operate()?;
        state.files.push(Contents::default());
        let file = state.files.len() - 1;
        state.names.insert(name.to_string(), file);
        state.name_changes.push(NameChange::Set(name.to_string(), file));
        Ok(Box::new(SimulatedFile { disk: self.clone(), file }))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let file = self.state().find(name)?;
        Ok(Box::new(SimulatedFile { disk: self.clone(), file }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.state();
        state.operate()?;
        let file = state.find(from)?;
        state.names.remove(from);
        state.names.insert(to.to_string(), file);
        state.name_changes.push(NameChange::Set(to.to_string(), file));
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut state = self.state();
        state.operate()?;
        state.find(name)?;
        state.names.remove(name);
        state.name_changes.push(NameChange::Removed(name.to_string()));
        Ok(())
    }

    fn sync_names(&self) -> io::Result<()> {
        let mut state = self.state();
        state.operate()?;
        state.names_synced = state.names.clone();
        state.name_changes.clear();
        Ok(())
    }

    fn lock(&self, _: &str, _: &str) -> io::Result<Box<dyn Send + Sync>> {
        let mut state = self.state();
        if std::mem::replace(&mut state.is_locked, true) {
            return Err(ErrorKind::WouldBlock.into());
        }
        Ok(Box::new(SimulatedLock(self.clone())))
    }
}

struct SimulatedLock(SimulatedDisk);

impl Drop for SimulatedLock {
    fn drop(&mut self) {
        self.0.state().is_locked = false;
    }
}

struct SimulatedFile {
    disk: SimulatedDisk,
    file: usize,
}

impl DiskFile for SimulatedFile {
    fn size(&self) -> io::Result<u64> {
        Ok(self.disk.state().files[self.file].seen.len() as u64)
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        let state = self.disk.state();
        let seen = &state.files[self.file].seen;
        let range = offset as usize..(offset as usize).saturating_add(bytes.len());
        bytes.copy_from_slice(seen.get(range).ok_or(ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.disk.state();
        state.operate()?;
        let (offset, room) = (offset as usize, state.room());
        let file = &mut state.files[self.file];
        let longer = (offset + bytes.len()).saturating_sub(file.seen.len()) as u64;
        if longer > room {
            file.write(offset, &bytes[..bytes.len().min(room as usize)]);
            return Err(ErrorKind::StorageFull.into());
        }
        file.write(offset, bytes);
        Ok(())
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        let mut state = self.disk.state();
        state.operate()?;
        let file = &mut state.files[self.file];
        file.seen.truncate(length as usize);
        file.dirty.insert(length as usize / SECTOR_BYTES);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.disk.state();
        state.operate()?;
        if std::mem::take(&mut state.faults.sync_fails) {
            return Err(io::Error::other("the disk does not answer"));
        }
        let file = &mut state.files[self.file];
        file.synced = file.seen.clone();
        file.dirty.clear();
        Ok(())
    }
}
