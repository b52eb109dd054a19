//! The end of the log that is written on.
//!
//! Law: frames are written whole and in order. A commit that cannot be written is taken back: the
//! file is cut where it was, and synced, so that no part of it comes up again. When even that fails
//! nothing more is written.

use std::sync::Arc;

use crate::commit::{Commit, Framing};
use crate::contents::LogEnd;
use crate::disk::{Disk, DiskFile};
use crate::error::StoreError;
use crate::frame::{FileHeader, FrameHeader, HEADER_BYTES, LOG_MAGIC, seal};
use crate::manifest::segment_name;

/// See the [module](self).
pub(crate) struct LogWriter {
    disk: Arc<dyn Disk>,
    file: Arc<dyn DiskFile>,
    segment: u64,
    /// Where the next frame goes.
    offset: u64,
    /// Sequence of the last frame.
    sequence: u64,
    /// Its checksum.
    chain: u32,
    /// Why nothing more is written.
    failed: Option<StoreError>,
}

impl LogWriter {
    /// Goes on where the log ends: cuts off what was lost in part, makes the segment if it is not
    /// there.
    pub fn open(disk: Arc<dyn Disk>, end: &LogEnd) -> Result<LogWriter, StoreError> {
        let name = segment_name(end.segment);
        let failed = |action| {
            let (place, name) = (disk.place(), name.clone());
            move |error| StoreError::of_io(&place, action, &name, &error)
        };
        let (file, offset): (Arc<dyn DiskFile>, u64) = match end.is_made {
            true => {
                let file: Arc<dyn DiskFile> = disk.open(&name).map_err(failed("open"))?.into();
                if end.torn_bytes > 0 {
                    file.truncate(end.offset).map_err(failed("cut"))?;
                }
                // What was read may have been in memory only, if the process before was killed and
                // the machine was not.
                file.sync().map_err(failed("sync"))?;
                (file, end.offset)
            }
            false => (make_segment(disk.as_ref(), end.header())?, HEADER_BYTES as u64),
        };
        let (segment, sequence, chain) = (end.segment, end.sequence, end.chain);
        Ok(LogWriter { disk, file, segment, offset, sequence, chain, failed: None })
    }

    /// A writer that writes nothing, because the disk cannot be written.
    pub fn failed_before(disk: Arc<dyn Disk>, end: &LogEnd, error: StoreError) -> Result<LogWriter, StoreError> {
        let name = segment_name(end.segment);
        let file = disk.open(&name).map_err(|error| StoreError::of_io(&disk.place(), "open", &name, &error))?.into();
        let (segment, offset, sequence, chain) = (end.segment, end.offset, end.sequence, end.chain);
        Ok(LogWriter { disk, file, segment, offset, sequence, chain, failed: Some(error) })
    }

    /// Sequence of the last frame.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Checksum of the last frame.
    pub fn chain(&self) -> u32 {
        self.chain
    }

    /// Number of the segment.
    pub fn segment(&self) -> u64 {
        self.segment
    }

    /// Bytes of the segment.
    pub fn segment_bytes(&self) -> u64 {
        self.offset
    }

    /// The file to sync, for those who sync it elsewhere.
    pub fn file(&self) -> Arc<dyn DiskFile> {
        self.file.clone()
    }

    /// Why nothing is written any more, if so.
    pub fn failed(&self) -> Option<&StoreError> {
        self.failed.as_ref()
    }

    /// Writes a commit; `synced` is the last frame that is known to be on disk. Returns the bytes
    /// written.
    pub fn append(&mut self, commit: &Commit, synced: u64) -> Result<u64, StoreError> {
        if let Some(failed) = &self.failed {
            return Err(failed.clone());
        }
        let (mut offset, mut sequence, mut chain) = (self.offset, self.sequence, self.chain);
        let mut emit = |frame: &mut Vec<u8>, is_last: bool| {
            sequence += 1;
            chain = seal(frame, FrameHeader { sequence, synced, time: commit.time, is_last, chain });
            self.file.write_at(offset, frame)?;
            offset += frame.len() as u64;
            Ok(())
        };
        let mut framing = Framing::new(&mut emit);
        let written = framing.commit(commit).and_then(|()| framing.finish());
        if let Err(error) = written {
            let error = StoreError::of_io(&self.disk.place(), "write", &segment_name(self.segment), &error);
            self.take_back();
            return Err(error);
        }
        let n_bytes = offset - self.offset;
        (self.offset, self.sequence, self.chain) = (offset, sequence, chain);
        Ok(n_bytes)
    }

    /// Cuts off what was written of a commit that failed.
    fn take_back(&mut self) {
        if let Err(error) = self.file.truncate(self.offset).and_then(|()| self.file.sync()) {
            self.failed = Some(StoreError::Failed {
                place: self.disk.place(),
                detail: format!("a commit that could not be written could not be taken back either: {error}"),
            });
        }
    }

    /// Syncs the segment and goes on in another.
    pub fn rotate(&mut self) -> Result<(), StoreError> {
        let name = segment_name(self.segment);
        if let Err(error) = self.file.sync() {
            let detail = format!("a sync of {name} failed: {error}");
            let failed = StoreError::Failed { place: self.disk.place(), detail };
            self.failed = Some(failed.clone());
            return Err(failed);
        }
        let number = self.segment + 1;
        let header = FileHeader { number, first_sequence: self.sequence + 1, chain: self.chain };
        self.file = make_segment(self.disk.as_ref(), header)?;
        (self.segment, self.offset) = (number, HEADER_BYTES as u64);
        Ok(())
    }

    /// Writes nothing more.
    pub fn fail(&mut self, error: StoreError) {
        self.failed.get_or_insert(error);
    }
}

/// Makes a segment that is there after a crash.
pub(crate) fn make_segment(disk: &dyn Disk, header: FileHeader) -> Result<Arc<dyn DiskFile>, StoreError> {
    let name = segment_name(header.number);
    let make = || {
        let file = disk.create(&name)?;
        file.write_at(0, &header.to_bytes(LOG_MAGIC))?;
        file.sync()?;
        disk.sync_names()?;
        Ok(file)
    };
    let made: Result<Box<dyn DiskFile>, std::io::Error> = make();
    Ok(made.map_err(|error| StoreError::of_io(&disk.place(), "make", &name, &error))?.into())
}
