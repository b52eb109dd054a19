//! Snapshots: what the log has made so far, in one file.
//!
//! Law: a snapshot has the contents of the snapshot and the segments that it replaces. It is
//! written beside the log, from files without a writer, and counts from the moment at
//! which the manifest names it.
//!
//! Cost: everything is read and written once. A snapshot is due when the log has grown as large as
//! the snapshot, so each byte is written a bounded number of times. Memory: one relation if rows of
//! it have been taken away, else a few batches.

use std::io;

use anabranch_batch::Batch;

use crate::commit::{Fact, Framing, TAG_COVERED, TAG_CREATED};
use crate::contents::Contents;
use crate::disk::Disk;
use crate::error::StoreError;
use crate::frame::{FileHeader, FrameHeader, HEADER_BYTES, SNAPSHOT_MAGIC, seal};
use crate::manifest::snapshot_name;

/// Writes snapshot `number` of contents that hold the log up to `sequence`. Returns its bytes.
pub(crate) fn write_snapshot(
    disk: &dyn Disk,
    contents: &Contents,
    number: u64,
    (log_sequence, log_chain): (u64, u32),
) -> Result<u64, StoreError> {
    let name = snapshot_name(number);
    let place = disk.place();
    let failed = |error: io::Error| StoreError::of_io(&place, "write", &name, &error);
    let file = disk.create(&name).map_err(failed)?;
    let header = FileHeader { number, first_sequence: 1, chain: 0 };
    file.write_at(0, &header.to_bytes(SNAPSHOT_MAGIC)).map_err(failed)?;
    let (mut offset, mut sequence, mut chain) = (HEADER_BYTES as u64, 0, 0);
    let mut emit = |frame: &mut Vec<u8>, is_last: bool| {
        sequence += 1;
        chain = seal(frame, FrameHeader { sequence, synced: 0, time: contents.time(), is_last, chain });
        file.write_at(offset, frame).map_err(failed)?;
        offset += frame.len() as u64;
        Ok::<(), StoreError>(())
    };
    let mut framing = Framing::new(&mut emit);
    for object in contents.objects() {
        framing.section(TAG_CREATED, 0, object.id, object.text.as_bytes())?;
    }
    for object in contents.objects() {
        contents.rows(object.id, |batch: Batch| framing.rows(object.id, &batch))?;
    }
    for (object, name, value) in contents.facts() {
        framing.fact(&Fact { object, name: name.to_string(), value: Some(value.to_vec()) })?;
    }
    let mut covered = Vec::new();
    covered.extend(log_sequence.to_le_bytes());
    covered.extend(u64::from(log_chain).to_le_bytes());
    covered.extend(contents.id_max().to_le_bytes());
    framing.section(TAG_COVERED, 0, 0, &covered)?;
    framing.finish()?;
    file.sync().and_then(|()| disk.sync_names()).map_err(failed)?;
    Ok(offset)
}
