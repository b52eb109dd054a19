//! Batch to bytes. One traversal serves measuring and writing, so the two cannot differ.

use arrow::array::{Array, ArrayRef, AsArray, OffsetSizeTrait};
use arrow::buffer::{BooleanBuffer, Buffer};
use arrow::datatypes::{DataType, ToByteSlice};
use std::io;

use super::views::{is_long, rebase_views};
use super::{MAGIC, TAG_BATCH, VERSION, schema};
use crate::batch::Batch;
use crate::cells::{ByteCells, Cells, Views, cells};
use crate::control::{Diffs, Times, Until};

/// Tags of control columns: nothing, one constant, one value per row.
pub(super) const NONE: u64 = 0;
pub(super) const CONSTANT: u64 = 1;
pub(super) const COLUMN: u64 = 2;

/// Where the wire form goes.
pub(super) trait Sink {
    /// Takes some bytes.
    fn put(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Takes a number.
    fn word(&mut self, word: u64) -> io::Result<()> {
        self.put(&word.to_le_bytes())
    }

    /// Takes zeros up to a multiple of 8, after `len` bytes.
    fn pad(&mut self, len: usize) -> io::Result<()> {
        self.put(&[0; 8][..len.next_multiple_of(8) - len])
    }

    /// Takes a buffer and its padding.
    fn buffer(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.put(bytes)?;
        self.pad(bytes.len())
    }
}

/// Counts bytes.
#[derive(Default)]
pub(super) struct Meter {
    pub n_bytes: usize,
}

impl Sink for Meter {
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.n_bytes += bytes.len();
        Ok(())
    }
}

/// Passes bytes on.
pub(super) struct Writer<'a, W> {
    pub writer: &'a mut W,
}

impl<W: io::Write> Sink for Writer<'_, W> {
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.writer.write_all(bytes)
    }
}

/// Puts a batch whose wire form has `n_bytes` bytes.
pub(super) fn encode(batch: &Batch, n_bytes: usize, sink: &mut impl Sink) -> io::Result<()> {
    sink.word(MAGIC)?;
    sink.word(u64::from(VERSION) | u64::from(TAG_BATCH) << 32)?;
    sink.word(batch.len() as u64)?;
    sink.word(n_bytes as u64)?;
    put_schema(batch.columns(), sink)?;
    put_control(batch, sink)?;
    batch.columns().iter().try_for_each(|column| put_column(column, sink))
}

fn put_schema(columns: &[ArrayRef], sink: &mut impl Sink) -> io::Result<()> {
    let mut schema = (columns.len() as u32).to_le_bytes().to_vec();
    columns.iter().for_each(|column| schema::put_type(column.data_type(), &mut schema));
    sink.word(schema.len() as u64)?;
    sink.buffer(&schema)
}

fn put_control(batch: &Batch, sink: &mut impl Sink) -> io::Result<()> {
    match batch.times() {
        Times::Constant(time) => put_constant(*time, sink)?,
        Times::Column(times) => put_scalars(times, sink)?,
    }
    match batch.diffs() {
        Diffs::Constant(diff) => put_constant(*diff, sink)?,
        Diffs::Column(diffs) => put_scalars(diffs, sink)?,
    }
    match batch.until() {
        Until::Forever => sink.word(NONE)?,
        Until::Duration(ticks) => put_constant(*ticks, sink)?,
        Until::Column(untils) => put_scalars(untils, sink)?,
    }
    match batch.key() {
        None => sink.word(NONE)?,
        Some(key) => {
            sink.word(COLUMN)?;
            sink.word(key.columns.len() as u64)?;
            key.columns.iter().try_for_each(|&column| sink.word(column as u64))?;
            sink.buffer(key.hashes.to_byte_slice())?;
        }
    }
    match batch.present() {
        None => sink.word(NONE),
        Some(present) => {
            sink.word(COLUMN)?;
            put_bits(present, sink)
        }
    }
}

fn put_constant(value: i64, sink: &mut impl Sink) -> io::Result<()> {
    sink.word(CONSTANT)?;
    sink.word(value as u64)
}

fn put_scalars(values: &[i64], sink: &mut impl Sink) -> io::Result<()> {
    sink.word(COLUMN)?;
    sink.buffer(values.to_byte_slice())
}

fn put_bits(bits: &BooleanBuffer, sink: &mut impl Sink) -> io::Result<()> {
    sink.buffer(&bits.sliced()[..bits.len().div_ceil(8)])
}

fn put_column(array: &ArrayRef, sink: &mut impl Sink) -> io::Result<()> {
    match array.nulls().filter(|nulls| nulls.null_count() > 0) {
        None => sink.word(NONE)?,
        Some(nulls) => {
            sink.word(COLUMN)?;
            put_bits(nulls.inner(), sink)?;
        }
    }
    match array.data_type() {
        DataType::Null => Ok(()),
        DataType::Boolean => put_bits(array.as_boolean().values(), sink),
        DataType::Utf8 => put_bytes(array.as_string::<i32>().offsets(), array.as_string::<i32>().values(), sink),
        DataType::LargeUtf8 => put_bytes(array.as_string::<i64>().offsets(), array.as_string::<i64>().values(), sink),
        DataType::Binary => put_bytes(array.as_binary::<i32>().offsets(), array.as_binary::<i32>().values(), sink),
        DataType::LargeBinary => put_bytes(array.as_binary::<i64>().offsets(), array.as_binary::<i64>().values(), sink),
        DataType::List(_) => put_list(array.as_list::<i32>().offsets(), array.as_list::<i32>().values(), sink),
        DataType::LargeList(_) => put_list(array.as_list::<i64>().offsets(), array.as_list::<i64>().values(), sink),
        DataType::Struct(_) => array.as_struct().columns().iter().try_for_each(|field| put_column(field, sink)),
        DataType::FixedSizeBinary(width) => put_fixed(array, *width as usize, sink),
        other => match (cells(array), other.primitive_width()) {
            (Cells::Views(views), _) => put_views(views, sink),
            (_, width) => put_fixed(array, width.expect("all other types have fixed width"), sink),
        },
    }
}

/// Values of `width` bytes, as they lie.
fn put_fixed(array: &ArrayRef, width: usize, sink: &mut impl Sink) -> io::Result<()> {
    let data = array.to_data();
    sink.buffer(&data.buffers()[0][data.offset() * width..(data.offset() + data.len()) * width])
}

/// Length of the data, offsets from 0, data.
fn put_bytes<O: OffsetSizeTrait>(offsets: &[O], data: &Buffer, sink: &mut impl Sink) -> io::Result<()> {
    let (start, end) = put_offsets(offsets, sink)?;
    sink.buffer(&data[start..end])
}

/// Number of elements, offsets from 0, elements.
fn put_list<O: OffsetSizeTrait>(offsets: &[O], elements: &ArrayRef, sink: &mut impl Sink) -> io::Result<()> {
    let (start, end) = put_offsets(offsets, sink)?;
    put_column(&elements.slice(start, end - start), sink)
}

/// Puts offsets, from 0, behind their total; gives the range they cover.
fn put_offsets<O: OffsetSizeTrait>(offsets: &[O], sink: &mut impl Sink) -> io::Result<(usize, usize)> {
    let (start, end) = (offsets[0], offsets[offsets.len() - 1]);
    sink.word((end - start).as_usize() as u64)?;
    if start == O::zero() {
        sink.buffer(offsets.to_byte_slice())?;
    } else {
        let rebased: Vec<O> = offsets.iter().map(|&offset| offset - start).collect();
        sink.buffer(rebased.to_byte_slice())?;
    }
    Ok((start.as_usize(), end.as_usize()))
}

/// Number of buffers, their lengths, views, buffers.
fn put_views(values: Views<'_>, sink: &mut impl Sink) -> io::Result<()> {
    let used: usize = values.views.iter().filter(|view| is_long(**view)).map(|view| *view as u32 as usize).sum();
    let held: usize = values.buffers.iter().map(|buffer| buffer.len()).sum();
    if held <= used {
        sink.word(values.buffers.len() as u64)?;
        values.buffers.iter().try_for_each(|buffer| sink.word(buffer.len() as u64))?;
        sink.buffer(values.views.to_byte_slice())?;
        return values.buffers.iter().try_for_each(|buffer| sink.buffer(buffer));
    }
    let (views, lengths) = rebase_views(values.views);
    sink.word(lengths.len() as u64)?;
    lengths.iter().try_for_each(|&len| sink.word(len as u64))?;
    sink.buffer(views.to_byte_slice())?;
    let mut rows = (0..values.views.len()).filter(|&row| is_long(values.views[row]));
    for len in lengths {
        let mut rest = len;
        while rest > 0 {
            let bytes = values.bytes(rows.next().expect("lengths are sums of the lengths of long views"));
            sink.put(bytes)?;
            rest -= bytes.len();
        }
        sink.pad(len)?;
    }
    Ok(())
}
