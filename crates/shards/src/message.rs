//! What crosses between shards, and from shards to the client: rows, promises, and nothing else.

use std::ops::Range;

use anabranch_batch::{Batch, Time, wire};
use anabranch_engine::frame::Item;

/// How rows cross from shard to shard of one process. Rows between processes are always bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carry {
    /// As batches, whose memory is never written again.
    Batches,
    /// As bytes, as they cross between processes.
    Wire,
}

/// What comes to a shard.
pub struct Message {
    /// The source or movement that it is for.
    pub task: usize,
    /// The shard that sends it.
    pub from: usize,
    /// Rows or a promise.
    pub load: Load,
    /// Bytes of the rows in the wire form, measured once: where the rows were made. A window has
    /// its part of its batch's bytes.
    pub bytes: usize,
    /// The process that waits for an acknowledgement; none for messages of the same process, and
    /// for the message that engaged this process.
    pub owed: Option<usize>,
}

/// What a message holds.
pub enum Load {
    /// Rows.
    Rows(Batch),
    /// The rows of a range of a batch, not cut out yet.
    Window(Batch, Range<usize>),
    /// Rows, in either form, that are in each of these branches.
    Branches(Box<Load>, Vec<i64>),
    /// Rows in the wire form.
    Wire(Vec<u8>),
    /// Nothing before this time follows from this sender.
    Frontier(Time),
    /// The run is over.
    Stop,
}

impl Message {
    /// A message of this process; its rows are measured.
    pub fn new(task: usize, from: usize, load: Load) -> Message {
        let bytes = load.size_bytes();
        Message { task, from, load, bytes, owed: None }
    }
}

impl Load {
    /// Bytes of its rows in the wire form, which they need not be in: so both ends of a connection
    /// count the same. Texts are measured row by row.
    fn size_bytes(&self) -> usize {
        match self {
            Load::Rows(batch) => wire::length_in_bytes(batch),
            Load::Window(batch, rows) => share(wire::length_in_bytes(batch), rows.len(), batch.len()),
            Load::Wire(bytes) => bytes.len(),
            Load::Branches(rows, branches) => rows.size_bytes() + size_of_val(branches.as_slice()),
            Load::Frontier(_) | Load::Stop => 0,
        }
    }
}

/// The part of a batch's bytes that is that of some of its rows.
pub fn share(bytes: usize, rows: usize, of: usize) -> usize {
    match rows == of {
        true => bytes,
        false => (bytes as u128 * rows as u128).div_ceil(of.max(1) as u128) as usize,
    }
}

/// What a shard says to the client.
pub struct Said {
    /// Which shard.
    pub shard: usize,
    /// Of its result, or errors of its rows.
    pub item: Item,
}
