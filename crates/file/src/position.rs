//! Where a reader of files is, as a line of text that a later reader goes on from.
//!
//! Law: a reader that goes on gives the rows that were not given yet, each once. A file that is
//! gone, shorter than it was, or has other bytes in front of the place is an error; so are files
//! that came in front of it. Files behind it, and bytes that were added behind the place, are read.

use std::path::{Path, PathBuf};

use anabranch_engine::Error;
use arrow::array::RecordBatch;

/// Bytes in front of a place that must be the same when reading goes on.
pub(crate) const TAIL_BYTES: usize = 64;

/// See the [module](self).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Position {
    /// Place of the file among those that are read.
    pub file_idx: usize,
    /// The file.
    pub path: PathBuf,
    /// Bytes of a text, or rows of a Parquet file, that lie before.
    pub at: u64,
    /// Line of the place, from one.
    pub line: u64,
    /// Rows behind the place that were given already.
    pub skip: u64,
    /// Rows given in all.
    pub rows: u64,
    /// Rows left out in all.
    pub skipped: u64,
    /// Of a text: how many bytes in front of the place are compared, and their hash. Of a Parquet
    /// file: its bytes.
    pub tail: (u64, u64),
}

impl Position {
    /// One line, the path last.
    pub fn to_text(&self) -> String {
        let Position { file_idx, at, line, skip, rows, skipped, tail, path } = self;
        format!("{file_idx} {at} {line} {skip} {rows} {skipped} {} {} {}", tail.0, tail.1, path.display())
    }

    /// What [`to_text`](Self::to_text) wrote.
    ///
    /// # Errors
    /// `Data` for other texts.
    pub fn read(text: &str) -> Result<Position, Error> {
        let malformed = || Error::data(format!("'{text}' is no position in files"));
        let mut parts = text.splitn(9, ' ');
        let mut number = || parts.next().and_then(|part| part.parse::<u64>().ok()).ok_or_else(malformed);
        let (file_idx, at, line, skip) = (number()? as usize, number()?, number()?, number()?);
        let (rows, skipped, tail) = (number()?, number()?, (number()?, number()?));
        let path = PathBuf::from(parts.next().ok_or_else(malformed)?);
        Ok(Position { file_idx, path, at, line, skip, rows, skipped, tail })
    }

    /// Checks that the file is where it was among the files.
    ///
    /// # Errors
    /// `Unavailable` when it is not.
    pub fn check_place(&self, files: &[PathBuf]) -> Result<(), Error> {
        match files.iter().position(|file| *file == self.path) {
            Some(place) if place == self.file_idx => Ok(()),
            Some(_) => Err(changed(&self.path, "files in front of it have come or gone")),
            None => Err(changed(&self.path, "it is gone")),
        }
    }
}

/// The error for a file that is not what it was.
pub(crate) fn changed(path: &Path, how: &str) -> Error {
    Error::unavailable(format!("file {} has changed since it was read: {how}", path.display()))
        .with_hint("Bring the file back, or DROP the source and create it again.")
}

/// A hash of the bytes in front of a place (FNV-1a), and how many they are.
pub(crate) fn tail_of(before: &[u8]) -> (u64, u64) {
    let tail = &before[before.len().saturating_sub(TAIL_BYTES)..];
    let hash = tail
        .iter()
        .fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3));
    (tail.len() as u64, hash)
}

/// The batch without the rows that another reader gave before; `None` when none is left.
pub(crate) fn without_given(batch: Option<RecordBatch>, to_skip: &mut u64) -> Option<RecordBatch> {
    let batch = batch?;
    let n_given = (*to_skip).min(batch.num_rows() as u64) as usize;
    *to_skip -= n_given as u64;
    let n_left = batch.num_rows() - n_given;
    (n_left > 0).then(|| if n_given == 0 { batch } else { batch.slice(n_given, n_left) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_read_as_they_were_written() {
        let path = PathBuf::from("a folder/b c.csv");
        let position =
            Position { file_idx: 2, path, at: 17, line: 3, skip: 1, rows: 9, skipped: 4, tail: tail_of(b"ab") };
        assert_eq!(Position::read(&position.to_text()).unwrap(), position);
        assert!(Position::read("1 2 3").is_err());
    }
}
