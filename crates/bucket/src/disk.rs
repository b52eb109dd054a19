//! One place: a prefix of a bucket, as a disk of files that are written once.

use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anabranch_store::{Disk, DiskFile};
use futures::TryStreamExt;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, WriteMultipart};
use tokio::runtime::Runtime;

use crate::errors;

/// Bytes of the parts in which a file is sent. A store takes 10,000 of them: 160 GB.
pub const PART_BYTES: usize = 16 << 20;
/// Bytes of the blocks in which a file is read.
pub const BLOCK_BYTES: u64 = 4 << 20;
/// Parts on their way at the same time.
const PARTS_IN_FLIGHT: usize = 2;

/// See the [module](self).
#[derive(Clone)]
pub struct BucketDisk {
    store: Arc<dyn ObjectStore>,
    runtime: &'static Runtime,
    url: String,
    bucket: String,
    prefix: Path,
}

impl BucketDisk {
    pub(crate) fn new(store: Arc<dyn ObjectStore>, url: &str, bucket: &str, prefix: Path) -> io::Result<BucketDisk> {
        let (url, bucket) = (url.to_owned(), bucket.to_owned());
        Ok(BucketDisk { store, runtime: crate::runtime()?, url, bucket, prefix })
    }

    fn wait<T>(&self, asked: impl Future<Output = object_store::Result<T>>) -> io::Result<T> {
        self.runtime.block_on(asked).map_err(|error| errors::of_store(&self.bucket, error))
    }

    /// Names of the folders below the place, in order.
    ///
    /// # Errors
    /// Those of the store.
    pub fn folders(&self) -> io::Result<Vec<String>> {
        let listed = self.wait(self.store.list_with_delimiter(Some(&self.prefix)))?;
        let last = |folder: &Path| folder.parts().next_back().map(|name| name.as_ref().to_string());
        let mut names: Vec<String> = listed.common_prefixes.iter().filter_map(last).collect();
        names.sort_unstable();
        Ok(names)
    }

    fn path(&self, name: &str) -> Path {
        self.prefix.clone().join(name)
    }
}

impl Disk for BucketDisk {
    fn place(&self) -> String {
        self.url.clone()
    }

    fn names(&self) -> io::Result<Vec<String>> {
        let listed = self.wait(self.store.list(Some(&self.prefix)).try_collect::<Vec<_>>())?;
        let mut names: Vec<String> = listed
            .iter()
            .filter_map(|object| {
                let mut parts = object.location.prefix_match(&self.prefix)?;
                let name = parts.next()?.as_ref().to_string();
                parts.next().is_none().then_some(name)
            })
            .collect();
        names.sort_unstable();
        Ok(names)
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let path = self.path(name);
        let upload = self.wait(self.store.put_multipart(&path))?;
        let upload = Some(WriteMultipart::new_with_chunk_size(upload, PART_BYTES));
        let sending = Mutex::new(Sending { upload, n_bytes: 0 });
        Ok(Box::new(WrittenFile { disk: self.clone(), path, sending }))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let path = self.path(name);
        let size = match self.wait(self.store.head(&path)) {
            Ok(found) => found.size,
            Err(error) => {
                // (Of a bucket that is missing, only a list tells.)
                if error.kind() == ErrorKind::NotFound {
                    self.names()?;
                }
                return Err(error);
            }
        };
        Ok(Box::new(ReadFile { disk: self.clone(), path, size, block: Mutex::default() }))
    }

    fn rename(&self, _: &str, _: &str) -> io::Result<()> {
        Err(ErrorKind::Unsupported.into())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.wait(self.store.delete(&self.path(name)))
    }

    /// Objects have their names from the beginning.
    fn sync_names(&self) -> io::Result<()> {
        Ok(())
    }

    /// The folder of the database is what is locked.
    fn lock(&self, _: &str, _: &str) -> io::Result<Box<dyn Send + Sync>> {
        Err(ErrorKind::Unsupported.into())
    }
}

/// A file that is being written: nothing is there before it is synced.
struct WrittenFile {
    disk: BucketDisk,
    path: Path,
    sending: Mutex<Sending>,
}

struct Sending {
    /// `None` once the file was synced, or has failed.
    upload: Option<WriteMultipart>,
    n_bytes: u64,
}

impl WrittenFile {
    fn sending(&self) -> MutexGuard<'_, Sending> {
        self.sending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DiskFile for WrittenFile {
    fn size(&self) -> io::Result<u64> {
        Ok(self.sending().n_bytes)
    }

    fn read_at(&self, _: u64, _: &mut [u8]) -> io::Result<()> {
        Err(ErrorKind::Unsupported.into())
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut sending = self.sending();
        if offset != sending.n_bytes {
            return Err(ErrorKind::Unsupported.into());
        }
        let upload = sending.upload.as_mut().ok_or(ErrorKind::BrokenPipe)?;
        // Parts that are full leave on the runtime's thread, a few at a time.
        self.disk.wait(async {
            upload.wait_for_capacity(PARTS_IN_FLIGHT).await?;
            upload.write(bytes);
            Ok(())
        })?;
        sending.n_bytes += bytes.len() as u64;
        Ok(())
    }

    fn truncate(&self, _: u64) -> io::Result<()> {
        Err(ErrorKind::Unsupported.into())
    }

    /// Makes the object, and looks whether the store has all of it.
    fn sync(&self) -> io::Result<()> {
        let mut sending = self.sending();
        let upload = sending.upload.take().ok_or(ErrorKind::BrokenPipe)?;
        self.disk.wait(upload.finish())?;
        let size = self.disk.wait(self.disk.store.head(&self.path))?.size;
        match size == sending.n_bytes {
            true => Ok(()),
            false => {
                let detail = format!("the store has {size} bytes of the {} that were sent", sending.n_bytes);
                Err(io::Error::other(detail))
            }
        }
    }
}

impl Drop for WrittenFile {
    /// Parts that were sent are given back: a store keeps them otherwise, and is paid for them.
    fn drop(&mut self) {
        let upload = self.sending().upload.take();
        if let Some(upload) = upload {
            let _ = self.disk.wait(upload.abort());
        }
    }
}

/// An object.
struct ReadFile {
    disk: BucketDisk,
    path: Path,
    size: u64,
    /// Where the block begins that was read last, and its bytes.
    block: Mutex<(u64, Vec<u8>)>,
}

impl ReadFile {
    fn fetch(&self, from: u64, to: u64) -> io::Result<Vec<u8>> {
        let bytes = self.disk.wait(self.disk.store.get_range(&self.path, from..to))?;
        match bytes.len() as u64 == to - from {
            true => Ok(bytes.into()),
            false => Err(ErrorKind::UnexpectedEof.into()),
        }
    }
}

impl DiskFile for ReadFile {
    fn size(&self) -> io::Result<u64> {
        Ok(self.size)
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        let end = offset + bytes.len() as u64;
        if end > self.size {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let mut block = self.block.lock().unwrap_or_else(PoisonError::into_inner);
        if offset < block.0 || end > block.0 + block.1.len() as u64 {
            *block = (offset, self.fetch(offset, end.max(self.size.min(offset + BLOCK_BYTES)))?);
        }
        let start = (offset - block.0) as usize;
        bytes.copy_from_slice(&block.1[start..start + bytes.len()]);
        Ok(())
    }

    fn write_at(&self, _: u64, _: &[u8]) -> io::Result<()> {
        Err(ErrorKind::Unsupported.into())
    }

    fn truncate(&self, _: u64) -> io::Result<()> {
        Err(ErrorKind::Unsupported.into())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}
