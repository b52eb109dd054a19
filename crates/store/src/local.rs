//! A folder of the operating system.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use crate::disk::{Disk, DiskFile};

/// A folder of the operating system. It is made when the store is opened for writing.
#[derive(Clone, Debug)]
pub struct LocalDisk {
    folder: PathBuf,
}

impl LocalDisk {
    /// The folder at that path, made if there is none.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn create(folder: &Path) -> io::Result<LocalDisk> {
        if !folder.is_dir() {
            fs::create_dir_all(folder)?;
            if let Some(parent) = folder.parent().filter(|parent| !parent.as_os_str().is_empty()) {
                sync_folder(parent)?;
            }
        }
        Ok(LocalDisk { folder: folder.to_path_buf() })
    }

    /// The folder at that path.
    ///
    /// # Errors
    /// `NotFound` when there is none.
    pub fn existing(folder: &Path) -> io::Result<LocalDisk> {
        match folder.is_dir() {
            true => Ok(LocalDisk { folder: folder.to_path_buf() }),
            false => Err(io::Error::new(io::ErrorKind::NotFound, "there is no such folder")),
        }
    }
}

impl Disk for LocalDisk {
    fn place(&self) -> String {
        self.folder.display().to_string()
    }

    fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            names.extend(entry?.file_name().into_string());
        }
        names.sort_unstable();
        Ok(names)
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let path = self.folder.join(name);
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path)?;
        Ok(Box::new(LocalFile(file)))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let path = self.folder.join(name);
        let file = match OpenOptions::new().read(true).write(true).open(&path) {
            // What may only be read is read; who writes hears of it then.
            Err(error) if is_denied(&error) => File::open(path)?,
            opened => opened?,
        };
        Ok(Box::new(LocalFile(file)))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.folder.join(from), self.folder.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.folder.join(name))
    }

    fn sync_names(&self) -> io::Result<()> {
        sync_folder(&self.folder)
    }

    fn lock(&self, name: &str, holder: &str) -> io::Result<Box<dyn Send + Sync>> {
        let path = self.folder.join(name);
        let file = match OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path) {
            // Where nothing may be written, the folder has no owner, unless who may write has left
            // a lock.
            Err(error) if is_denied(&error) && !path.exists() => return Ok(Box::new(())),
            Err(error) if is_denied(&error) => File::open(path)?,
            opened => opened?,
        };
        match file.try_lock() {
            Ok(()) => {
                // (The lock holds without these words: on a full disk they are missing.)
                let _ = file.set_len(0).and_then(|()| io::Write::write_all(&mut &file, holder.as_bytes()));
                Ok(Box::new(file))
            }
            Err(TryLockError::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

fn is_denied(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
}

/// Makes the names in a folder last.
#[cfg(unix)]
fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Elsewhere names last with the files that bear them.
#[cfg(not(unix))]
fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}

struct LocalFile(File);

impl DiskFile for LocalFile {
    fn size(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    #[cfg(unix)]
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(&self.0, bytes, offset)
    }

    #[cfg(unix)]
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        std::os::unix::fs::FileExt::write_all_at(&self.0, bytes, offset)
    }

    #[cfg(windows)]
    fn read_at(&self, mut offset: u64, mut bytes: &mut [u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let n_read = std::os::windows::fs::FileExt::seek_read(&self.0, bytes, offset)?;
            if n_read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            bytes = &mut bytes[n_read..];
            offset += n_read as u64;
        }
        Ok(())
    }

    #[cfg(windows)]
    fn write_at(&self, mut offset: u64, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let n_written = std::os::windows::fs::FileExt::seek_write(&self.0, bytes, offset)?;
            bytes = &bytes[n_written..];
            offset += n_written as u64;
        }
        Ok(())
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.0.set_len(length)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }
}
