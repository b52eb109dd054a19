//! The versioned wire form of a batch: bytes that another process, or a later run of the same major
//! release, reads back.
//!
//! Law: `read(write(batch))` means what `batch` means, row by row and column type by column type;
//! and `read` answers any bytes at all with a batch that every kernel accepts, or with an error. It
//! never panics and never allocates more than a small multiple of what it was given.
//!
//! Everything is little-endian and every part is padded to 8 bytes, so buffers could be used where
//! they lie.
//!
//! ```text
//!   header    magic "anabatch" | version u32, tag u32 | rows u64 | length of the whole in bytes u64
//!   schema    length u64 | one type a column, see `schema.rs`
//!   control   times | diffs | until | key | present     each: kind u64, then a constant or a buffer
//!   columns   each: null bitmap if any, then its buffers as they lie in memory, rebased to their first row
//! ```
//!
//! Views travel with the buffers they point to when most of those bytes are in use; else only the
//! bytes in use are sent, end to end.
//!
//! Cost: one pass over the buffers to write (or measure), one to read, plus a check of text and
//! offsets on reading.

mod decode;
mod encode;
mod schema;
mod views;

use std::io;

use crate::batch::Batch;
use encode::{Meter, Writer};

/// First eight bytes of every batch.
const MAGIC: u64 = u64::from_le_bytes(*b"anabatch");
/// Version of the wire form. Readers refuse others.
const VERSION: u32 = 1;
/// What the bytes hold; other tags are left for other things than batches.
const TAG_BATCH: u32 = 1;
/// Bytes of the header.
const HEADER_BYTES: usize = 32;

/// Why bytes are not a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WireError {
    /// The bytes end early, or go on after the end.
    Length {
        /// Bytes that the header or a part inside announces.
        expected: u64,
        /// Bytes there are.
        actual: u64,
    },
    /// The bytes do not start as a batch does.
    Magic,
    /// The bytes are of another version of the wire form.
    Version(u32),
    /// A part holds something it cannot.
    Malformed {
        /// Which part: "times", "schema", "column 3".
        part: String,
        /// What is wrong with it.
        detail: String,
    },
}

impl std::fmt::Display for WireError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            WireError::Length { expected, actual } => write!(f, "batch of {expected} bytes has {actual} bytes"),
            WireError::Magic => write!(f, "bytes are not a batch"),
            WireError::Version(version) => write!(f, "batch has wire version {version}, this build reads {VERSION}"),
            WireError::Malformed { part, detail } => write!(f, "{part} of a batch is malformed: {detail}"),
        }
    }
}

impl std::error::Error for WireError {}

/// Exact size of the wire form in bytes; a multiple of 8.
pub fn length_in_bytes(batch: &Batch) -> usize {
    let mut meter = Meter::default();
    encode::encode(batch, 0, &mut meter).expect("a meter takes everything");
    meter.n_bytes
}

/// Writes the wire form, in pieces of buffer size: give it a buffered writer if small writes are
/// dear.
///
/// # Errors
/// Those of the writer.
pub fn write(batch: &Batch, writer: &mut impl io::Write) -> io::Result<()> {
    encode::encode(batch, length_in_bytes(batch), &mut Writer { writer })
}

/// Reads what [`write()`] wrote; `bytes` is that and nothing more. Buffers are copied out of
/// `bytes`.
///
/// # Errors
/// If the bytes are not one whole batch of this version.
pub fn read(bytes: &[u8]) -> Result<Batch, WireError> {
    decode::decode(bytes)
}

#[cfg(test)]
mod tests;
