//! The file system as the store needs it: one folder of files, written and synced.
//!
//! Law: what [`DiskFile::sync`] returned for is there after a crash; a name is there after a crash
//! once [`Disk::sync_names`] returned. Nothing else is promised, so nothing else is relied on.
//!
//! Two disks: [`LocalDisk`](crate::LocalDisk), and [`SimulatedDisk`](crate::SimulatedDisk) for
//! tests, which loses unsynced sectors, returns errors and fills up.

use std::io;

/// A folder.
pub trait Disk: Send + Sync {
    /// The folder as messages name it.
    fn place(&self) -> String;

    /// Names of the files, in order.
    ///
    /// # Errors
    /// Those of the file system.
    fn names(&self) -> io::Result<Vec<String>>;

    /// An empty file of that name, in place of the one that is there.
    ///
    /// # Errors
    /// Those of the file system.
    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>>;

    /// The file of that name, for reading and writing.
    ///
    /// # Errors
    /// `NotFound` when there is none; those of the file system.
    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>>;

    /// Gives a file another name, in place of the file that has that name.
    ///
    /// # Errors
    /// Those of the file system.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Takes a file away.
    ///
    /// # Errors
    /// Those of the file system.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Makes new, changed and removed names last.
    ///
    /// # Errors
    /// Those of the file system.
    fn sync_names(&self) -> io::Result<()>;

    /// Takes the folder for this process; the guard gives it back. `holder` says who has it, for
    /// those who come later: it is what the file of that name then holds.
    ///
    /// # Errors
    /// `WouldBlock` when another has it; those of the file system.
    fn lock(&self, name: &str, holder: &str) -> io::Result<Box<dyn Send + Sync>>;
}

/// A file of a [`Disk`].
pub trait DiskFile: Send + Sync {
    /// Length in bytes.
    ///
    /// # Errors
    /// Those of the file system.
    fn size(&self) -> io::Result<u64>;

    /// Fills `bytes` from `offset` on.
    ///
    /// # Errors
    /// `UnexpectedEof` when the file is shorter; those of the file system.
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()>;

    /// Writes all of `bytes` at `offset`. After an error any part of them may be there.
    ///
    /// # Errors
    /// Those of the file system.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Cuts the file to `length` bytes.
    ///
    /// # Errors
    /// Those of the file system.
    fn truncate(&self, length: u64) -> io::Result<()>;

    /// Makes contents and length last.
    ///
    /// # Errors
    /// Those of the file system. What was written since the last call is lost or not, which is
    /// unknown.
    fn sync(&self) -> io::Result<()>;
}
