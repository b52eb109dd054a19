//! A shard's rows as a stream of bytes: written as they come out, read into another run.
//!
//! ```text
//!   ABSHARD1 | frame ..        frame: tag u32 | CRC-32 of the payload u32 | length u64 | payload
//!   columns (an Arrow schema) | rows (wire form of a batch) | frontier (i64) ..
//! ```
//!
//! Words are little-endian. The frontier [`END`] is the last frame. Law: what is read is what was
//! written, rows and promises in their order; any other bytes are an error that names the frame.
//! Memory grows with a frame, not with the length that it announces. Source: Quill, 3.4
//! (`ToBinaryStream`, `FromBinaryStream`).

use std::io::{BufRead, Read, Write};

use anabranch_batch::{Batch, END, Time, wire};
use anabranch_engine::Error;
use arrow::datatypes::SchemaRef;
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;

use crate::run::ShardRun;

const MAGIC: [u8; 8] = *b"ABSHARD1";

/// Tags of frames.
const COLUMNS: u32 = 1;
const ROWS: u32 = 2;
const FRONTIER: u32 = 3;

/// Bytes before a payload.
const HEAD: usize = 16;

/// A stream that is written.
pub struct BinaryWriter<W> {
    writer: W,
    frontier: Time,
}

/// A stream that is read.
pub struct BinaryReader<R> {
    reader: R,
    /// Frames that were read.
    frames: usize,
    schema: SchemaRef,
}

/// What a stream holds.
pub enum Streamed {
    /// Rows.
    Rows(Batch),
    /// Nothing before this time follows.
    Frontier(Time),
}

impl<W: Write> BinaryWriter<W> {
    /// Begins a stream of rows of these columns.
    ///
    /// # Errors
    /// `Unavailable`: that of the writer.
    pub fn new(writer: W, schema: &SchemaRef) -> Result<BinaryWriter<W>, Error> {
        let mut stream = BinaryWriter { writer, frontier: Time::MIN };
        stream.writer.write_all(&MAGIC).map_err(not_written)?;
        let mut bytes = Vec::new();
        let schema = StreamWriter::try_new(&mut bytes, schema).and_then(|mut schema| schema.finish());
        schema.map_err(|error| Error::internal(error.to_string()))?;
        stream.frame(COLUMNS, &bytes)?;
        Ok(stream)
    }

    /// Writes rows; hashes of keys are left out.
    ///
    /// # Errors
    /// `Unavailable`: that of the writer.
    pub fn rows(&mut self, batch: &Batch) -> Result<(), Error> {
        let batch = batch.clone().without_key();
        let mut bytes = Vec::with_capacity(wire::length_in_bytes(&batch));
        wire::write(&batch, &mut bytes).map_err(not_written)?;
        self.frame(ROWS, &bytes)
    }

    /// Promises that nothing before this time follows; [`END`] ends the stream.
    ///
    /// # Errors
    /// `Unavailable`: that of the writer.
    pub fn frontier(&mut self, time: Time) -> Result<(), Error> {
        if time > self.frontier {
            self.frontier = time;
            self.frame(FRONTIER, &time.to_le_bytes())?;
            self.writer.flush().map_err(not_written)?;
        }
        Ok(())
    }

    /// What was written to.
    pub fn into_inner(self) -> W {
        self.writer
    }

    fn frame(&mut self, tag: u32, payload: &[u8]) -> Result<(), Error> {
        let mut head = [0; HEAD];
        head[..4].copy_from_slice(&tag.to_le_bytes());
        head[4..8].copy_from_slice(&crc32fast::hash(payload).to_le_bytes());
        head[8..].copy_from_slice(&(payload.len() as u64).to_le_bytes());
        self.writer.write_all(&head).and_then(|()| self.writer.write_all(payload)).map_err(not_written)
    }
}

impl<R: BufRead> BinaryReader<R> {
    /// Reads the beginning of a stream.
    ///
    /// # Errors
    /// `Data` when these are no bytes of a stream; `Unavailable`: that of the reader.
    pub fn new(mut reader: R) -> Result<BinaryReader<R>, Error> {
        let mut magic = [0; MAGIC.len()];
        reader.read_exact(&mut magic).map_err(|error| not_read(0, &error))?;
        if magic != MAGIC {
            return Err(Error::data("the bytes are no stream of a shard")
                .with_hint("Streams are written by ShardRun::to_binary and to_store."));
        }
        let mut stream = BinaryReader { reader, frames: 0, schema: SchemaRef::new(arrow::datatypes::Schema::empty()) };
        let (tag, bytes) = stream.frame()?;
        let schema = StreamReader::try_new(&*bytes, None).map_err(|error| stream.damaged(&error.to_string()))?;
        if tag != COLUMNS {
            return Err(stream.damaged("a stream begins with its columns"));
        }
        stream.schema = schema.schema();
        Ok(stream)
    }

    /// The columns of its rows.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The next rows or promise.
    ///
    /// # Errors
    /// `Data` when bytes are damaged or the stream is cut; `Unavailable`: that of the reader.
    pub fn read(&mut self) -> Result<Streamed, Error> {
        let (tag, bytes) = self.frame()?;
        match tag {
            ROWS => {
                let batch = wire::read(&bytes).map_err(|error| self.damaged(&error.to_string()))?;
                let fits = batch.columns().len() == self.schema.fields().len()
                    && batch.columns().iter().zip(self.schema.fields()).all(|(column, field)| {
                        // (Batches hold the narrow forms of some types.)
                        *column.data_type() == anabranch_batch::types::narrowed_type(field.data_type())
                    });
                if fits { Ok(Streamed::Rows(batch)) } else { Err(self.damaged("rows have other columns")) }
            }
            FRONTIER => match bytes.try_into() {
                Ok(time) => Ok(Streamed::Frontier(Time::from_le_bytes(time))),
                Err(_) => Err(self.damaged("a frontier is a time")),
            },
            other => Err(self.damaged(&format!("there is no frame of kind {other}"))),
        }
    }

    fn frame(&mut self) -> Result<(u32, Vec<u8>), Error> {
        self.frames += 1;
        let mut head = [0; HEAD];
        self.reader.read_exact(&mut head).map_err(|error| not_read(self.frames, &error))?;
        let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let length = u64::from(word(8)) | u64::from(word(12)) << 32;
        let mut payload = Vec::new();
        let read = (&mut self.reader).take(length).read_to_end(&mut payload);
        read.map_err(|error| not_read(self.frames, &error))?;
        if payload.len() as u64 != length {
            return Err(not_read(self.frames, &std::io::ErrorKind::UnexpectedEof.into()));
        }
        if crc32fast::hash(&payload) != word(4) {
            return Err(self.damaged("its checksum differs"));
        }
        Ok((word(0), payload))
    }

    fn damaged(&self, detail: &str) -> Error {
        Error::data(format!("frame {} of a shard's stream is damaged: {detail}", self.frames))
            .with_hint("Write the stream again from its program.")
    }
}

impl ShardRun {
    /// Ends all sources, and writes the result: shard i to writer i.
    ///
    /// # Errors
    /// As for [`finish`](ShardRun::finish); `Invalid` when there are not as many writers as shards;
    /// `Unavailable`: that of a writer.
    pub fn to_binary<W: Write>(mut self, writers: Vec<W>) -> Result<(), Error> {
        let mut streams = self.binary_writers(writers)?;
        self.finish_binary(&mut streams)
    }

    /// Ends all sources, and writes what has come out since the last call.
    ///
    /// # Errors
    /// As for [`finish`](ShardRun::finish); `Unavailable`: that of a writer.
    pub fn finish_binary<W: Write>(&mut self, streams: &mut [BinaryWriter<W>]) -> Result<(), Error> {
        self.advance_all(END)?;
        self.write_binary(streams)
    }

    /// Streams for the result of this run: shard i to writer i.
    ///
    /// # Errors
    /// `Invalid` when there are not as many writers as shards; `Unavailable`: that of a writer.
    pub fn binary_writers<W: Write>(&self, writers: Vec<W>) -> Result<Vec<BinaryWriter<W>>, Error> {
        let (given, shards) = (writers.len(), self.shards());
        if given != shards {
            return Err(Error::invalid(format!("{given} writers for {shards} shards"))
                .with_hint("Each shard has a writer of its own."));
        }
        writers.into_iter().map(|writer| BinaryWriter::new(writer, self.schema())).collect()
    }

    /// Waits as [`drain`](ShardRun::drain) does, and writes what has come out since the last call.
    ///
    /// # Errors
    /// As for `drain`; `Unavailable`: that of a writer.
    pub fn write_binary<W: Write>(&mut self, streams: &mut [BinaryWriter<W>]) -> Result<(), Error> {
        let result = self.drain()?;
        for ((stream, batches), frontier) in streams.iter_mut().zip(&result.shards).zip(&result.frontiers) {
            batches.iter().try_for_each(|batch| stream.rows(batch))?;
            stream.frontier(*frontier)?;
        }
        Ok(())
    }

    /// Reads a stream into a shard of a source, to its end: rows, and how far they are complete.
    ///
    /// # Errors
    /// As for [`push`](ShardRun::push); those of the [reader](BinaryReader); `Invalid` when the
    /// stream has other columns than the source.
    pub fn play_binary(&mut self, source: &str, shard: usize, reader: impl BufRead) -> Result<(), Error> {
        let mut stream = BinaryReader::new(reader)?;
        self.check_columns(source, shard, stream.schema())?;
        loop {
            match stream.read()? {
                Streamed::Rows(batch) => self.push(source, shard, batch)?,
                Streamed::Frontier(time) => {
                    self.advance(source, shard, time)?;
                    if time == END {
                        return Ok(());
                    }
                }
            }
        }
    }
}

fn not_written(error: std::io::Error) -> Error {
    Error::unavailable(format!("a shard's rows could not be written: {error}"))
}

fn not_read(frame: usize, error: &std::io::Error) -> Error {
    match error.kind() {
        std::io::ErrorKind::UnexpectedEof => {
            Error::data(format!("a shard's stream ends within frame {frame}, before its rows were complete"))
                .with_hint("The run that wrote it did not come to its end: write the stream again.")
        }
        _ => Error::unavailable(format!("a shard's stream could not be read: {error}")),
    }
}
