//! Batches set aside until all of them are known to be good: in memory up to a limit, then in a
//! temporary file.
//!
//! Law: what [`Spool::each`] gives back is what was pushed, in order, every time it is asked. The
//! file has no name as soon as it is open (where the system allows it), so it goes away with the
//! spool, or the process. Cost: one sequential write and read of the wire form
//! (`anabranch_batch::wire`); at most the limit and one batch are in memory.

use std::fs::{File, OpenOptions, remove_file};
use std::io::{BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use anabranch_batch::{Batch, wire};

use crate::error::Error;

/// See the module.
pub(crate) struct Spool {
    folder: PathBuf,
    limit_bytes: usize,
    /// The first batches, and their size.
    held: Vec<Batch>,
    held_bytes: usize,
    /// The others.
    overflow: Option<Overflow>,
    n_rows: usize,
}

struct Overflow {
    file: BufWriter<File>,
    n_batches: usize,
    /// Where the file is, if its name could not be taken away at once.
    named: Option<PathBuf>,
}

impl Spool {
    /// An empty spool that holds up to `limit_bytes` in memory and puts the rest into `folder`.
    pub fn new(folder: &Path, limit_bytes: usize) -> Spool {
        Spool { folder: folder.to_owned(), limit_bytes, held: vec![], held_bytes: 0, overflow: None, n_rows: 0 }
    }

    /// Bytes held in memory.
    pub fn size_bytes(&self) -> usize {
        self.held_bytes
    }

    /// Rows pushed so far.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// Adds a batch.
    ///
    /// # Errors
    /// `Unavailable` when the temporary file cannot be written.
    pub fn push(&mut self, batch: Batch) -> Result<(), Error> {
        self.n_rows += batch.len();
        let size = batch.size_bytes();
        if self.overflow.is_none() && self.held_bytes + size <= self.limit_bytes {
            self.held_bytes += size;
            self.held.push(batch);
            return Ok(());
        }
        let overflow = match &mut self.overflow {
            Some(overflow) => overflow,
            none => none.insert(Overflow::open(&self.folder)?),
        };
        overflow.write(&batch).map_err(|e| unusable(&self.folder, &e))
    }

    /// Calls `visit` with every batch, in order, until it fails.
    ///
    /// # Errors
    /// Those of `visit`, and `Unavailable` when the temporary file cannot be read.
    pub fn each(&mut self, mut visit: impl FnMut(Batch) -> Result<(), Error>) -> Result<(), Error> {
        self.held.iter().try_for_each(|batch| visit(batch.clone()))?;
        let Some(overflow) = &mut self.overflow else { return Ok(()) };
        let mut reader = overflow.reader().map_err(|e| unusable(&self.folder, &e))?;
        let mut bytes = Vec::new();
        for _ in 0..overflow.n_batches {
            read_record(&mut reader, &mut bytes).map_err(|e| unusable(&self.folder, &e))?;
            let batch = wire::read(&bytes).map_err(|e| Error::internal(format!("a spooled batch: {e}")))?;
            visit(batch)?;
        }
        Ok(())
    }
}

impl Overflow {
    fn open(folder: &Path) -> Result<Overflow, Error> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = format!("anabranch-spool-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = folder.join(name);
        // A file of that name can only be left over from a process that is gone.
        let _ = remove_file(&path);
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path);
        let file = BufWriter::new(file.map_err(|e| unusable(folder, &e))?);
        let named = remove_file(&path).is_err().then_some(path);
        Ok(Overflow { file, n_batches: 0, named })
    }

    fn write(&mut self, batch: &Batch) -> std::io::Result<()> {
        self.file.write_all(&(wire::length_in_bytes(batch) as u64).to_le_bytes())?;
        wire::write(batch, &mut self.file)?;
        self.n_batches += 1;
        Ok(())
    }

    /// From the first batch on. Writing goes on behind the last one.
    fn reader(&mut self) -> std::io::Result<BufReader<File>> {
        self.file.flush()?;
        let mut file = self.file.get_ref().try_clone()?;
        file.seek(SeekFrom::Start(0))?;
        Ok(BufReader::new(file))
    }
}

impl Drop for Overflow {
    fn drop(&mut self) {
        if let Some(path) = &self.named {
            let _ = remove_file(path);
        }
    }
}

fn read_record(reader: &mut impl Read, bytes: &mut Vec<u8>) -> std::io::Result<()> {
    let mut length = [0; 8];
    reader.read_exact(&mut length)?;
    bytes.resize(u64::from_le_bytes(length) as usize, 0);
    reader.read_exact(bytes)
}

fn unusable(folder: &Path, problem: &std::io::Error) -> Error {
    Error::unavailable(format!("cannot set rows aside in {}: {problem}", folder.display()))
        .with_hint("Make room there, or start with another folder for temporary files.")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use anabranch_batch::{Diffs, Times};
    use arrow::array::{ArrayRef, AsArray, Int64Array, StringViewArray};
    use arrow::datatypes::Int64Type;

    use super::*;

    fn batch(from: i64) -> Batch {
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(from..from + 100));
        let texts: ArrayRef =
            Arc::new((from..from + 100).map(|n| Some(format!("the number {n}"))).collect::<StringViewArray>());
        Batch::new(vec![numbers, texts], Times::Constant(0), Diffs::Constant(1))
    }

    #[test]
    fn batches_come_back_in_order_every_time() {
        for limit in [0, 10_000, usize::MAX] {
            let mut spool = Spool::new(&std::env::temp_dir(), limit);
            (0..10).for_each(|n| spool.push(batch(n * 100)).unwrap());
            assert_eq!(spool.n_rows(), 1000);
            assert_eq!(spool.overflow.is_some(), limit < usize::MAX);
            for _ in 0..2 {
                let mut numbers: Vec<i64> = vec![];
                spool
                    .each(|batch| {
                        assert_eq!(
                            batch.column(1).as_string_view().value(7),
                            format!("the number {}", numbers.len() + 7)
                        );
                        numbers.extend(batch.column(0).as_primitive::<Int64Type>().values());
                        Ok(())
                    })
                    .unwrap();
                assert_eq!(numbers, (0..1000).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn a_folder_that_is_not_there_is_an_error() {
        let mut spool = Spool::new(Path::new("/there/is/no/such/folder"), 0);
        assert!(spool.push(batch(0)).unwrap_err().message.contains("cannot set rows aside"));
    }
}
