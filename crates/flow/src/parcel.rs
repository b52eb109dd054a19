//! What travels on the edges of a dataflow: a batch of rows, or a batch of row errors.
//!
//! Errors are data: they flow beside the rows of the collection they belong to, with times and
//! diffs of their own, and vanish when the row that caused them is retracted. Carrying them in the
//! same stream lets every operator pass them on without a second edge.
//!
//! Law: [`record_count`](Accountable::record_count) is the number of physical rows, and nothing
//! between the maker of a parcel and its consumer changes the sum of counts; timely's progress
//! tracking rests on it. Parcels therefore hold compact batches (no absent rows), and empty ones
//! are not sent.

use anabranch_batch::{Batch, wire};
use timely::Accountable;
use timely::bytes::arc::Bytes;
use timely::dataflow::channels::ContainerBytes;

/// A batch on its way.
#[derive(Clone, Debug, Default)]
pub enum Parcel {
    /// Nothing; timely wants a default.
    #[default]
    Empty,
    /// Updates of rows.
    Rows(Batch),
    /// Updates of row errors: one text column, the message.
    Errors(Batch),
}

impl Accountable for Parcel {
    fn record_count(&self) -> i64 {
        match self {
            Parcel::Empty => 0,
            Parcel::Rows(batch) | Parcel::Errors(batch) => batch.len() as i64,
        }
    }
}

const TAG_EMPTY: u64 = 0x414e_4142_0000_0000;
const TAG_ROWS: u64 = 0x414e_4142_0000_0001;
const TAG_ERRORS: u64 = 0x414e_4142_0000_0002;

impl ContainerBytes for Parcel {
    /// # Panics
    /// When the bytes are not a parcel: another channel's bytes, or a peer of another version.
    fn from_bytes(bytes: Bytes) -> Self {
        let (tag, body) = bytes.split_at(8);
        let tag = u64::from_le_bytes(tag.try_into().expect("split at eight bytes"));
        let batch = || wire::read(body).expect("peers of one version write what we read");
        match tag {
            TAG_EMPTY => Parcel::Empty,
            TAG_ROWS => Parcel::Rows(batch()),
            TAG_ERRORS => Parcel::Errors(batch()),
            other => panic!("not a parcel: tag {other:#x}"),
        }
    }

    fn length_in_bytes(&self) -> usize {
        match self {
            Parcel::Empty => 8,
            Parcel::Rows(batch) | Parcel::Errors(batch) => 8 + wire::length_in_bytes(batch),
        }
    }

    fn into_bytes<W: std::io::Write>(&self, writer: &mut W) {
        let (tag, batch) = match self {
            Parcel::Empty => (TAG_EMPTY, None),
            Parcel::Rows(batch) => (TAG_ROWS, Some(batch)),
            Parcel::Errors(batch) => (TAG_ERRORS, Some(batch)),
        };
        writer.write_all(&tag.to_le_bytes()).expect("writing to memory");
        if let Some(batch) = batch {
            wire::write(batch, writer).expect("writing to memory");
        }
    }
}
