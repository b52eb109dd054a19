//! Frames: what crosses a connection between two processes of a run.
//!
//! ```text
//!   length of the whole in bytes | tag | four words | payload
//! ```
//!
//! Words are `u64`, little-endian. Rows are payloads in the wire form of batches. Law: any bytes at
//! all read as a frame or as an error; memory grows with the bytes that came, not with the length
//! that they announce.

use std::io::{self, ErrorKind as IoErrorKind, Read, Write};

use anabranch_batch::{Batch, wire};
use anabranch_engine::frame::Item;
use anabranch_engine::{Error, ErrorKind};

use crate::counts::StepCounts;
use crate::message::{Load, Message, Said};
use crate::moved::Moved;

/// Words before the payload.
const HEADER_WORDS: usize = 6;

/// Bytes of a word.
const WORD: usize = size_of::<u64>();

/// Words of the counts of a step.
const WORDS_OF_COUNTS: usize = 13;

/// Kinds of errors, by their number in a frame.
const KINDS: [ErrorKind; 6] = [
    ErrorKind::Invalid,
    ErrorKind::Data,
    ErrorKind::Unavailable,
    ErrorKind::Closed,
    ErrorKind::Cancelled,
    ErrorKind::Internal,
];

/// What crosses a connection.
pub enum WireFrame {
    /// The steps of the sender's program, as text.
    Program(String),
    /// A message to a shard of the receiver.
    Message {
        /// The shard.
        target: usize,
        /// What it is sent.
        message: Message,
    },
    /// A result, to the client's process.
    Said(Said),
    /// One earlier frame of the receiver, whose rows were so many bytes, and all that followed from
    /// it, was dealt with.
    Acknowledged(usize),
    /// What each step has done so far in a shard of the sender.
    Counted {
        /// The shard.
        shard: usize,
        /// In order of the program.
        steps: Vec<StepCounts>,
    },
    /// A shard of the sender failed.
    Failed(Error),
    /// The run is over; no frame follows.
    Stop,
}

/// Tags of frames.
mod tag {
    pub const PROGRAM: u64 = 1;
    pub const ROWS: u64 = 2;
    pub const FRONTIER: u64 = 3;
    pub const SAID_ROWS: u64 = 4;
    pub const SAID_FRONTIER: u64 = 5;
    pub const SAID_ERRORS: u64 = 6;
    pub const ACKNOWLEDGED: u64 = 7;
    pub const COUNTED: u64 = 8;
    pub const FAILED: u64 = 9;
    pub const STOP: u64 = 10;
    pub const BRANCHES: u64 = 11;
}

impl WireFrame {
    /// Writes the frame.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write(&self, writer: &mut impl Write) -> io::Result<()> {
        let (tag, words, payload) = self.parts()?;
        let length = HEADER_WORDS * WORD + payload.len();
        for word in [length as u64, tag].into_iter().chain(words) {
            writer.write_all(&word.to_le_bytes())?;
        }
        writer.write_all(&payload)
    }

    fn parts(&self) -> io::Result<(u64, [u64; 4], Vec<u8>)> {
        Ok(match self {
            WireFrame::Program(text) => (tag::PROGRAM, [0; 4], text.clone().into_bytes()),
            WireFrame::Message { target, message } => message_parts(*target, message)?,
            WireFrame::Said(Said { shard, item }) => said_parts(*shard as u64, item)?,
            WireFrame::Acknowledged(bytes) => (tag::ACKNOWLEDGED, [*bytes as u64, 0, 0, 0], vec![]),
            WireFrame::Counted { shard, steps } => {
                let payload = steps.iter().flat_map(words_of_counts).flat_map(u64::to_le_bytes).collect();
                (tag::COUNTED, [*shard as u64, 0, 0, 0], payload)
            }
            WireFrame::Failed(error) => failed_parts(error),
            WireFrame::Stop => (tag::STOP, [0; 4], vec![]),
        })
    }

    /// Reads a frame; none at the end of the connection.
    ///
    /// # Errors
    /// Those of the reader; `InvalidData` when the bytes are no frame.
    pub fn read(reader: &mut impl Read) -> io::Result<Option<WireFrame>> {
        let mut header = [0; HEADER_WORDS * WORD];
        if reader.read(&mut header[..1])? == 0 {
            return Ok(None);
        }
        reader.read_exact(&mut header[1..])?;
        let words: Vec<u64> = words_of(&header).collect();
        let length = words[0].checked_sub(header.len() as u64).ok_or_else(|| malformed("a frame is too short"))?;
        let mut payload = Vec::new();
        reader.take(length).read_to_end(&mut payload)?;
        match payload.len() as u64 == length {
            true => WireFrame::of_parts(words[1], &words[2..], payload).map(Some),
            false => Err(IoErrorKind::UnexpectedEof.into()),
        }
    }

    fn of_parts(tag: u64, words: &[u64], payload: Vec<u8>) -> io::Result<WireFrame> {
        let (first, time) = (words[0] as usize, words[3].cast_signed());
        let message = |load| {
            let (task, from) = (words[1] as usize, words[2] as usize);
            WireFrame::Message { target: first, message: Message::new(task, from, load) }
        };
        // (Both ends count the bytes that the sender measured: a window's are those of its part.)
        let measured = |load, bytes| {
            let (task, from) = (words[1] as usize, words[2] as usize);
            WireFrame::Message { target: first, message: Message { task, from, load, bytes, owed: None } }
        };
        let said = |item| WireFrame::Said(Said { shard: first, item });
        Ok(match tag {
            tag::PROGRAM => WireFrame::Program(text(&payload)?),
            tag::ROWS => measured(Load::Wire(payload), words[3] as usize),
            tag::BRANCHES => {
                let length = usize::try_from(words[3]).ok().and_then(|count| count.checked_mul(8));
                let cut = length.and_then(|length| payload.split_at_checked(length));
                let (listed, rows) = cut.ok_or_else(|| malformed("a list of branches is cut short"))?;
                let branches =
                    listed.chunks_exact(8).map(|bytes| i64::from_le_bytes(bytes.try_into().unwrap_or([0; 8])));
                message(Load::Branches(Box::new(Load::Wire(rows.to_vec())), branches.collect()))
            }
            tag::FRONTIER => message(Load::Frontier(time)),
            tag::SAID_ROWS => said(Item::Rows(batch(&payload)?)),
            tag::SAID_FRONTIER => said(Item::Frontier(time)),
            tag::SAID_ERRORS => said(Item::Errors(batch(&payload)?)),
            tag::ACKNOWLEDGED => WireFrame::Acknowledged(first),
            tag::COUNTED => WireFrame::Counted { shard: first, steps: counts(&payload) },
            tag::FAILED => WireFrame::Failed(failed(words, &payload)?),
            tag::STOP => WireFrame::Stop,
            _ => return Err(malformed(format!("there are no frames of tag {tag}"))),
        })
    }
}

fn message_parts(target: usize, message: &Message) -> io::Result<(u64, [u64; 4], Vec<u8>)> {
    let words = [target as u64, message.task as u64, message.from as u64, 0];
    let measured = [target as u64, message.task as u64, message.from as u64, message.bytes as u64];
    Ok(match &message.load {
        Load::Rows(batch) => (tag::ROWS, measured, bytes(batch)?),
        Load::Window(batch, rows) => (tag::ROWS, measured, bytes(&batch.slice(rows.start, rows.len()))?),
        Load::Wire(bytes) => (tag::ROWS, measured, bytes.clone()),
        Load::Branches(rows, branches) => {
            let mut payload: Vec<u8> = branches.iter().flat_map(|branch| branch.to_le_bytes()).collect();
            payload.extend_from_slice(&match &**rows {
                Load::Rows(batch) => bytes(batch)?,
                Load::Wire(bytes) => bytes.clone(),
                _ => return Err(malformed("branches of a message that holds no rows")),
            });
            let [target, task, from, _] = words;
            (tag::BRANCHES, [target, task, from, branches.len() as u64], payload)
        }
        Load::Frontier(time) => {
            let [target, task, from, _] = words;
            (tag::FRONTIER, [target, task, from, time.cast_unsigned()], vec![])
        }
        Load::Stop => (tag::STOP, [0; 4], vec![]),
    })
}

fn said_parts(shard: u64, item: &Item) -> io::Result<(u64, [u64; 4], Vec<u8>)> {
    Ok(match item {
        Item::Rows(batch) => (tag::SAID_ROWS, [shard, 0, 0, 0], bytes(batch)?),
        Item::Frontier(time) => (tag::SAID_FRONTIER, [shard, 0, 0, time.cast_unsigned()], vec![]),
        Item::Errors(batch) => (tag::SAID_ERRORS, [shard, 0, 0, 0], bytes(batch)?),
    })
}

/// An error: its kind, the length of its message, those of detail and hint plus one, or zero.
fn failed_parts(error: &Error) -> (u64, [u64; 4], Vec<u8>) {
    let kind = KINDS.iter().position(|kind| *kind == error.kind).unwrap_or(KINDS.len() - 1);
    let length = |text: &Option<String>| text.as_ref().map_or(0, |text| text.len() as u64 + 1);
    let words = [kind as u64, error.message.len() as u64, length(&error.detail), length(&error.hint)];
    let optional = |text: &Option<String>| text.clone().unwrap_or_default();
    let payload = format!("{}{}{}", error.message, optional(&error.detail), optional(&error.hint));
    (tag::FAILED, words, payload.into_bytes())
}

fn failed(words: &[u64], payload: &[u8]) -> io::Result<Error> {
    let kind = KINDS.get(words[0] as usize).ok_or_else(|| malformed("there is no such kind of errors"))?;
    let mut rest = payload;
    let mut part = |length: u64| {
        let cut = rest.split_at_checked(usize::try_from(length).unwrap_or(usize::MAX));
        let (part, after) = cut.ok_or_else(|| malformed("an error is cut short"))?;
        rest = after;
        text(part)
    };
    let mut error = Error::new(*kind, part(words[1])?);
    error.detail = (words[2] > 0).then(|| part(words[2] - 1)).transpose()?;
    error.hint = (words[3] > 0).then(|| part(words[3] - 1)).transpose()?;
    Ok(error)
}

fn words_of_counts(counts: &StepCounts) -> [u64; WORDS_OF_COUNTS] {
    let StepCounts { rows_in, batches_in, rows_out, batches_out, cpu_nanos, moved, frontier } = *counts;
    let Moved { rows_hashed, rows_kept, rows_near, rows_far, bytes, bytes_kept, bytes_far } = moved;
    let frontier = frontier.cast_unsigned();
    [
        rows_in,
        batches_in,
        rows_out,
        batches_out,
        cpu_nanos,
        rows_hashed,
        rows_kept,
        rows_near,
        rows_far,
        bytes,
        bytes_kept,
        bytes_far,
        frontier,
    ]
}

fn counts(payload: &[u8]) -> Vec<StepCounts> {
    let words: Vec<u64> = words_of(payload).collect();
    let (steps, _) = words.as_chunks::<WORDS_OF_COUNTS>();
    let of = |words: &[u64; WORDS_OF_COUNTS]| {
        let [rows_in, batches_in, rows_out, batches_out, cpu_nanos, rest @ ..] = *words;
        let [rows_hashed, rows_kept, rows_near, rows_far, bytes, bytes_kept, bytes_far, frontier] = rest;
        let moved = Moved { rows_hashed, rows_kept, rows_near, rows_far, bytes, bytes_kept, bytes_far };
        StepCounts { rows_in, batches_in, rows_out, batches_out, cpu_nanos, moved, frontier: frontier.cast_signed() }
    };
    steps.iter().map(of).collect()
}

fn words_of(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.as_chunks::<WORD>().0.iter().map(|word| u64::from_le_bytes(*word))
}

fn bytes(batch: &Batch) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(wire::length_in_bytes(batch));
    wire::write(batch, &mut bytes)?;
    Ok(bytes)
}

fn batch(bytes: &[u8]) -> io::Result<Batch> {
    wire::read(bytes).map_err(malformed)
}

fn text(bytes: &[u8]) -> io::Result<String> {
    String::from_utf8(bytes.to_vec()).map_err(malformed)
}

fn malformed(reason: impl ToString) -> io::Error {
    io::Error::new(IoErrorKind::InvalidData, reason.to_string())
}

#[cfg(test)]
mod tests {
    use anabranch_batch::{Diffs, Times};

    use super::*;

    fn round_trip(frame: &WireFrame) -> WireFrame {
        let mut bytes = Vec::new();
        frame.write(&mut bytes).unwrap();
        for cut in 1..bytes.len() {
            assert!(WireFrame::read(&mut &bytes[..cut]).is_err(), "cut at {cut}");
        }
        WireFrame::read(&mut bytes.as_slice()).unwrap().unwrap()
    }

    #[test]
    fn errors_and_promises_are_read_as_they_were_written() {
        let error = Error::data("a row").with_hint("Mend it.");
        assert!(matches!(round_trip(&WireFrame::Failed(error.clone())), WireFrame::Failed(found) if found == error));
        assert!(matches!(round_trip(&WireFrame::Acknowledged(77)), WireFrame::Acknowledged(77)));
        let message = Message::new(3, 1, Load::Frontier(-7));
        let WireFrame::Message { target: 2, message } = round_trip(&WireFrame::Message { target: 2, message }) else {
            panic!("another frame");
        };
        assert!(matches!(message, Message { task: 3, from: 1, load: Load::Frontier(-7), bytes: 0, owed: None }));
        let load = Load::Branches(Box::new(Load::Wire(vec![1, 2, 3])), vec![5, -1]);
        let message = Message::new(3, 1, load);
        let WireFrame::Message { message, .. } = round_trip(&WireFrame::Message { target: 2, message }) else {
            panic!("another frame");
        };
        let Load::Branches(rows, branches) = message.load else { panic!("another message") };
        assert!(matches!(*rows, Load::Wire(bytes) if bytes == [1, 2, 3]) && branches == [5, -1]);
        let rows = Batch::with_len([].into(), 9, Times::Constant(4), Diffs::Constant(1));
        let message = Message { task: 3, from: 1, load: Load::Window(rows, 2..5), bytes: 77, owed: None };
        let WireFrame::Message { message, .. } = round_trip(&WireFrame::Message { target: 2, message }) else {
            panic!("another frame");
        };
        let Message { load: Load::Wire(window), bytes: 77, .. } = message else { panic!("another message") };
        assert_eq!(wire::read(&window).unwrap().len(), 3);
        let (bytes_kept, bytes_far) = (12, 13);
        let moved = Moved { rows_hashed: 1, rows_kept: 2, rows_near: 3, rows_far: 4, bytes: 5, bytes_kept, bytes_far };
        let (rows_in, batches_in, rows_out, batches_out) = (6, 7, 8, 9);
        let counts = StepCounts { rows_in, batches_in, rows_out, batches_out, cpu_nanos: 10, moved, frontier: -11 };
        let frame = WireFrame::Counted { shard: 12, steps: vec![counts, StepCounts::NONE] };
        let WireFrame::Counted { shard: 12, steps } = round_trip(&frame) else { panic!("another frame") };
        assert_eq!(steps, [counts, StepCounts::NONE]);
    }

    #[test]
    fn bytes_that_are_no_frame_are_an_error() {
        assert!(WireFrame::read(&mut [].as_slice()).unwrap().is_none());
        for words in [
            [7u64, 1, 0, 0, 0, 0],
            [48, 99, 0, 0, 0, 0],
            [48, 9, 77, 0, 0, 0],
            [48, 9, 0, 5, 0, 0],
            [u64::MAX, 2, 0, 0, 0, 0],
        ] {
            let bytes: Vec<u8> = words.into_iter().flat_map(u64::to_le_bytes).collect();
            assert!(WireFrame::read(&mut bytes.as_slice()).is_err(), "{words:?}");
        }
    }
}
