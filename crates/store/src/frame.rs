//! Frames: the blocks of which log segments and snapshots consist.
//!
//! ```text
//!   file    header: magic 8 | version u32 | checksum u32 | number u64 | first sequence u64 | chain u32, 0 u32
//!   frame   header: checksum u32 | length u32 | sequence u64 | synced u64 | time i64 | flags u32 | chain u32
//!           body: sections, `length` bytes, a multiple of 8
//! ```
//!
//! The checksum is over all of the frame behind it. `chain` is the checksum of the frame before, so
//! a frame that was taken back and written anew cannot be followed by what had followed it.
//! `synced` is the last frame that was known to be on disk when this one was written: a frame that
//! is missing although a later one knew it on disk is damage, any other is a tail that was lost
//! with the power.

use std::sync::Arc;

use crate::disk::DiskFile;
use crate::error::StoreError;

/// Version of all files. Readers refuse others.
pub(crate) const VERSION: u32 = 1;
/// Bytes of a file's header, and of a frame's.
pub(crate) const HEADER_BYTES: usize = 40;
/// First bytes of a segment of the log, and of a snapshot.
pub(crate) const LOG_MAGIC: [u8; 8] = *b"anablog\0";
pub(crate) const SNAPSHOT_MAGIC: [u8; 8] = *b"anasnap\0";
/// Bytes read from a file at once.
const WINDOW_BYTES: usize = 1 << 20;
/// The frame is the last of its commit.
const FLAG_LAST: u32 = 1;

/// The header of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileHeader {
    pub number: u64,
    /// Sequence of the first frame.
    pub first_sequence: u64,
    /// Checksum of the frame before the first one.
    pub chain: u32,
}

impl FileHeader {
    pub fn to_bytes(self, magic: [u8; 8]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER_BYTES);
        bytes.extend(magic);
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend([0; 4]);
        bytes.extend(self.number.to_le_bytes());
        bytes.extend(self.first_sequence.to_le_bytes());
        bytes.extend(self.chain.to_le_bytes());
        bytes.extend([0; 4]);
        let checksum = crc32fast::hash(&bytes[16..]);
        bytes[12..16].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// The header, or what is wrong: a version, or words.
    fn from_bytes(bytes: &[u8], magic: [u8; 8]) -> Result<FileHeader, Result<u32, &'static str>> {
        if bytes.len() < HEADER_BYTES {
            return Err(Err("it ends inside its header"));
        }
        if bytes[..8] != magic {
            return Err(Err("it does not start as such a file does"));
        }
        if u32_at(bytes, 8) != VERSION {
            return Err(Ok(u32_at(bytes, 8)));
        }
        if crc32fast::hash(&bytes[16..HEADER_BYTES]) != u32_at(bytes, 12) {
            return Err(Err("the checksum of its header is wrong"));
        }
        Ok(FileHeader { number: u64_at(bytes, 16), first_sequence: u64_at(bytes, 24), chain: u32_at(bytes, 32) })
    }
}

/// The header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameHeader {
    pub sequence: u64,
    pub synced: u64,
    pub time: i64,
    pub is_last: bool,
    pub chain: u32,
}

/// Completes a frame whose body follows [`HEADER_BYTES`] free bytes; returns its checksum.
pub(crate) fn seal(frame: &mut [u8], header: FrameHeader) -> u32 {
    let length = (frame.len() - HEADER_BYTES) as u32;
    frame[4..8].copy_from_slice(&length.to_le_bytes());
    frame[8..16].copy_from_slice(&header.sequence.to_le_bytes());
    frame[16..24].copy_from_slice(&header.synced.to_le_bytes());
    frame[24..32].copy_from_slice(&header.time.to_le_bytes());
    frame[32..36].copy_from_slice(&u32::from(header.is_last).to_le_bytes());
    frame[36..40].copy_from_slice(&header.chain.to_le_bytes());
    let checksum = crc32fast::hash(&frame[4..]);
    frame[..4].copy_from_slice(&checksum.to_le_bytes());
    checksum
}

/// Reads the frames of one file in order.
pub(crate) struct FrameReader {
    place: String,
    name: String,
    file: Arc<dyn DiskFile>,
    size: u64,
    /// Where the next frame starts.
    offset: u64,
    /// Sequence that the next frame has.
    sequence: u64,
    /// Checksum of the frame before.
    chain: u32,
    window: Vec<u8>,
    window_at: u64,
}

/// A frame that was read.
pub(crate) struct LogFrame<'a> {
    pub header: FrameHeader,
    /// Where its body starts in the file.
    pub body_at: u64,
    pub body: &'a [u8],
}

/// Where the frames of a file stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FrameEnd {
    /// At the end of the file.
    Clean,
    /// Before bytes that are no frame; says why.
    Broken(String),
}

impl FrameReader {
    /// A reader of the file's first `size` bytes, and its header.
    pub fn open(
        place: &str,
        name: &str,
        file: Arc<dyn DiskFile>,
        magic: [u8; 8],
    ) -> Result<(FrameReader, FileHeader), StoreError> {
        let size = file.size().map_err(|error| StoreError::of_io(place, "read", name, &error))?;
        let mut reader = FrameReader {
            place: place.to_string(),
            name: name.to_string(),
            file,
            size,
            offset: 0,
            sequence: 0,
            chain: 0,
            window: Vec::new(),
            window_at: 0,
        };
        let header = reader.bytes(0, HEADER_BYTES.min(size as usize))?.to_vec();
        let header = FileHeader::from_bytes(&header, magic).map_err(|wrong| match wrong {
            Ok(found) => {
                StoreError::Version { place: place.to_string(), file: name.to_string(), found, known: VERSION }
            }
            Err(detail) => reader.damaged(0, detail),
        })?;
        reader.offset = HEADER_BYTES as u64;
        (reader.sequence, reader.chain) = (header.first_sequence, header.chain);
        Ok((reader, header))
    }

    /// Where the next frame starts.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Bytes of the file.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Sequence that the next frame has, and the checksum of the one before.
    pub fn next_sequence(&self) -> (u64, u32) {
        (self.sequence, self.chain)
    }

    /// The next frame, or why there is none.
    pub fn next(&mut self) -> Result<Result<LogFrame<'_>, FrameEnd>, StoreError> {
        if self.offset == self.size {
            return Ok(Err(FrameEnd::Clean));
        }
        let (at, sequence, chain) = (self.offset, self.sequence, self.chain);
        let header = match self.frame_at(at)? {
            Ok(header) => header,
            Err(detail) => return Ok(Err(FrameEnd::Broken(detail.to_string()))),
        };
        if header.sequence != sequence {
            let detail = format!("it has sequence {}, where {sequence} is due", header.sequence);
            return Ok(Err(FrameEnd::Broken(detail)));
        }
        if header.chain != chain {
            return Ok(Err(FrameEnd::Broken("it does not follow the frame before it".to_string())));
        }
        let length = u32_at(self.bytes(at, HEADER_BYTES)?, 4) as usize;
        self.offset += (HEADER_BYTES + length) as u64;
        self.sequence += 1;
        let frame = self.bytes(at, HEADER_BYTES + length)?;
        let checksum = u32_at(frame, 0);
        let (start, end) = ((at - self.window_at) as usize, HEADER_BYTES + length);
        self.chain = checksum;
        let body = &self.window[start + HEADER_BYTES..start + end];
        Ok(Ok(LogFrame { header, body_at: at + HEADER_BYTES as u64, body }))
    }

    /// Whether a frame behind the broken one at the present place knew it on disk.
    pub fn was_synced(&mut self) -> Result<bool, StoreError> {
        let broken = self.sequence;
        let mut at = self.offset + 8;
        while at + HEADER_BYTES as u64 <= self.size {
            let header = self.bytes(at, HEADER_BYTES)?;
            // Most places are no frame: their lengths and sequences say so before a checksum is
            // computed.
            let is_plausible =
                u64_at(header, 8) > broken && u64_at(header, 16) >= broken && u64_at(header, 16) < u64_at(header, 8);
            if is_plausible && self.frame_at(at)?.is_ok() {
                return Ok(true);
            }
            at += 8;
        }
        Ok(false)
    }

    /// The frame's header if the frame at `at` is whole, whatever its sequence, or what is wrong
    /// with it.
    fn frame_at(&mut self, at: u64) -> Result<Result<FrameHeader, &'static str>, StoreError> {
        let left = self.size - at;
        if left < HEADER_BYTES as u64 {
            return Ok(Err("the file ends inside a frame's header"));
        }
        let length = u64::from(u32_at(self.bytes(at, HEADER_BYTES)?, 4));
        if !length.is_multiple_of(8) || length > left - HEADER_BYTES as u64 {
            return Ok(Err("the frame is longer than the file"));
        }
        let frame = self.bytes(at, HEADER_BYTES + length as usize)?;
        if crc32fast::hash(&frame[4..]) != u32_at(frame, 0) {
            return Ok(Err("the checksum of the frame is wrong"));
        }
        Ok(Ok(FrameHeader {
            sequence: u64_at(frame, 8),
            synced: u64_at(frame, 16),
            time: u64_at(frame, 24) as i64,
            is_last: u32_at(frame, 32) & FLAG_LAST != 0,
            chain: u32_at(frame, 36),
        }))
    }

    /// Bytes of the file, which has them.
    fn bytes(&mut self, at: u64, length: usize) -> Result<&[u8], StoreError> {
        let window_end = self.window_at + self.window.len() as u64;
        if at < self.window_at || at + length as u64 > window_end {
            let wanted = length.max(WINDOW_BYTES).min((self.size - at) as usize);
            self.window.resize(wanted, 0);
            self.window_at = at;
            let read = self.file.read_at(at, &mut self.window);
            read.map_err(|error| StoreError::of_io(&self.place, "read", &self.name, &error))?;
        }
        let start = (at - self.window_at) as usize;
        Ok(&self.window[start..start + length])
    }

    /// The error that names this file and a place in it.
    pub fn damaged(&self, offset: u64, detail: impl Into<String>) -> StoreError {
        StoreError::Damaged { place: self.place.clone(), file: self.name.clone(), offset, detail: detail.into() }
    }
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}
