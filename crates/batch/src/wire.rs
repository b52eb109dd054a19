//! The versioned wire form of a batch.

use std::io;

use crate::Batch;

/// Why bytes are not a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireError {
    /// What was wrong.
    pub detail: String,
}

impl std::fmt::Display for WireError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "malformed batch: {}", self.detail)
    }
}

impl std::error::Error for WireError {}

/// Exact size of the wire form; a multiple of 8.
pub fn length_in_bytes(batch: &Batch) -> usize {
    todo!("{}", batch.len())
}

/// Writes the wire form.
///
/// # Errors
/// Those of the writer.
pub fn write(batch: &Batch, _writer: &mut impl io::Write) -> io::Result<()> {
    todo!("{}", batch.len())
}

/// Reads a wire form.
///
/// # Errors
/// If the bytes are not a whole batch of a known version.
pub fn read(_bytes: &[u8]) -> Result<Batch, WireError> {
    todo!()
}
