//! The bytes of a file, unpacked where gzip has packed them.
//!
//! What is packed is told by its first bytes, not by its name. Positions count unpacked bytes. A
//! packed file is read from its start again to go on in the middle of it.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use flate2::read::MultiGzDecoder;

/// The first bytes of what gzip writes.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// A file that is open.
#[derive(Debug)]
pub(crate) enum Content {
    /// As it lies on disk.
    Plain(File),
    /// Packed by gzip, perhaps in several members.
    Packed(Box<MultiGzDecoder<BufReader<File>>>),
}

impl Content {
    pub(crate) fn open(path: &Path) -> io::Result<Content> {
        let mut file = File::open(path)?;
        let mut first = Vec::new();
        file.by_ref().take(GZIP.len() as u64).read_to_end(&mut first)?;
        file.seek(SeekFrom::Start(0))?;
        Ok(match first == GZIP {
            true => Content::Packed(Box::new(MultiGzDecoder::new(BufReader::new(file)))),
            false => Content::Plain(file),
        })
    }

    /// Whether it may be so long; a packed file is asked by reading.
    pub(crate) fn reaches(&self, at: u64) -> io::Result<bool> {
        match self {
            Content::Plain(file) => Ok(file.metadata()?.len() >= at),
            Content::Packed(_) => Ok(true),
        }
    }

    /// Whether gzip has packed it.
    pub(crate) fn is_packed(&self) -> bool {
        matches!(self, Content::Packed(_))
    }

    /// Goes to a place of the file that is open at its start.
    pub(crate) fn go_to(&mut self, path: &Path, at: u64) -> io::Result<()> {
        if let Content::Plain(file) = self {
            file.seek(SeekFrom::Start(at))?;
            return Ok(());
        }
        *self = Content::open(path)?;
        io::copy(&mut self.by_ref().take(at), &mut io::sink())?;
        Ok(())
    }
}

impl Read for Content {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Content::Plain(file) => file.read(buffer),
            Content::Packed(decoder) => decoder.read(buffer),
        }
    }
}
