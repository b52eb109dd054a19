//! Bytes to batch. Trusts nothing: every length is checked against the bytes left before anything
//! is allocated, and Arrow checks offsets, views and text before an array is made.

use arrow::array::{ArrayData, ArrayDataBuilder, ArrayRef, make_array};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};
use arrow::datatypes::{ArrowNativeType, DataType, FieldRef};

use super::encode::{COLUMN, CONSTANT, NONE};
use super::schema::TypeReader;
use super::views::{Contents, build_views};
use super::{HEADER_BYTES, MAGIC, TAG_BATCH, VERSION, WireError};
use crate::batch::Batch;
use crate::control::{Diffs, Key, Times, Until};

/// Rows of one batch, and elements of one list column, at most: rows are numbered in 32 bits.
const ROWS_MAX: u64 = u32::MAX as u64;

pub(super) fn decode(bytes: &[u8]) -> Result<Batch, WireError> {
    let mut reader = WireReader { bytes, part: WirePart::Header };
    let rows = reader.header()?;
    let types = reader.schema()?;
    let times = reader.times(rows)?;
    let diffs = reader.diffs(rows)?;
    let until = reader.until(rows)?;
    let key = reader.key(rows, types.len())?;
    let present = reader.present(rows)?;
    let mut columns = Vec::with_capacity(types.len());
    for (position, data_type) in types.iter().enumerate() {
        reader.part = WirePart::Column(position);
        columns.push(make_array(reader.array(data_type, rows)?));
    }
    if !reader.bytes.is_empty() {
        return Err(reader.malformed(format!("{} bytes are left over", reader.bytes.len())));
    }
    let columns: Vec<ArrayRef> = columns;
    let mut batch = Batch::with_len(columns.into(), rows, times, diffs).with_until(until);
    if let Some(key) = key {
        batch = batch.with_hashes(key);
    }
    Ok(match present {
        Some(present) => batch.with_present(present),
        None => batch,
    })
}

/// What is being read, for messages.
#[derive(Clone, Copy)]
enum WirePart {
    Header,
    Schema,
    Times,
    Diffs,
    Until,
    Key,
    Present,
    Column(usize),
}

/// The bytes not read yet.
struct WireReader<'a> {
    bytes: &'a [u8],
    part: WirePart,
}

impl<'a> WireReader<'a> {
    /// The number of rows.
    fn header(&mut self) -> Result<usize, WireError> {
        let actual = self.bytes.len() as u64;
        if self.bytes.len() < HEADER_BYTES {
            return Err(WireError::Length { expected: HEADER_BYTES as u64, actual });
        }
        if self.word()? != MAGIC {
            return Err(WireError::Magic);
        }
        let version_and_tag = self.word()?;
        if version_and_tag as u32 != VERSION {
            return Err(WireError::Version(version_and_tag as u32));
        }
        if (version_and_tag >> 32) as u32 != TAG_BATCH {
            return Err(self.malformed(format!("tag {} is not that of a batch", version_and_tag >> 32)));
        }
        let rows = self.count()?;
        let expected = self.word()?;
        if expected == actual { Ok(rows) } else { Err(WireError::Length { expected, actual }) }
    }

    fn schema(&mut self) -> Result<Vec<DataType>, WireError> {
        self.part = WirePart::Schema;
        let len = self.word()?;
        let bytes = self.buffer(usize::try_from(len).unwrap_or(usize::MAX))?;
        let (count, rest) = bytes.split_first_chunk::<4>().ok_or_else(|| self.malformed("it ends early"))?;
        let mut types = TypeReader { bytes: rest };
        let list = (0..u32::from_le_bytes(*count)).map(|_| types.data_type()).collect::<Result<_, _>>();
        list.map_err(|detail| self.malformed(detail))
    }

    fn times(&mut self, rows: usize) -> Result<Times, WireError> {
        self.part = WirePart::Times;
        match self.word()? {
            CONSTANT => Ok(Times::Constant(self.word()? as i64)),
            COLUMN => Ok(Times::Column(self.scalars(rows)?)),
            kind => Err(self.unknown(kind)),
        }
    }

    fn diffs(&mut self, rows: usize) -> Result<Diffs, WireError> {
        self.part = WirePart::Diffs;
        match self.word()? {
            CONSTANT => Ok(Diffs::Constant(self.word()? as i64)),
            COLUMN => Ok(Diffs::Column(self.scalars(rows)?)),
            kind => Err(self.unknown(kind)),
        }
    }

    fn until(&mut self, rows: usize) -> Result<Until, WireError> {
        self.part = WirePart::Until;
        match self.word()? {
            NONE => Ok(Until::Forever),
            CONSTANT => Ok(Until::Duration(self.word()? as i64)),
            COLUMN => Ok(Until::Column(self.scalars(rows)?)),
            kind => Err(self.unknown(kind)),
        }
    }

    fn key(&mut self, rows: usize, n_columns: usize) -> Result<Option<Key>, WireError> {
        self.part = WirePart::Key;
        match self.word()? {
            NONE => return Ok(None),
            COLUMN => {}
            kind => return Err(self.unknown(kind)),
        }
        let mut columns = Vec::new();
        for _ in 0..self.word()? {
            match self.word()? {
                column if column < n_columns as u64 => columns.push(column as usize),
                column => return Err(self.malformed(format!("there is no column {column}"))),
            }
        }
        Ok(Some(Key::new(columns, self.scalars::<u64>(rows)?)))
    }

    fn present(&mut self, rows: usize) -> Result<Option<BooleanBuffer>, WireError> {
        self.part = WirePart::Present;
        match self.word()? {
            NONE => Ok(None),
            COLUMN => Ok(Some(self.bits(rows)?)),
            kind => Err(self.unknown(kind)),
        }
    }

    fn array(&mut self, data_type: &DataType, rows: usize) -> Result<ArrayData, WireError> {
        let nulls = match self.word()? {
            NONE => None,
            COLUMN if *data_type == DataType::Null => return Err(self.malformed("a column of nulls has a null bitmap")),
            COLUMN => Some(NullBuffer::new(self.bits(rows)?)),
            kind => return Err(self.unknown(kind)),
        };
        let array = ArrayData::builder(data_type.clone()).len(rows).nulls(nulls);
        let array = match data_type {
            DataType::Null => array,
            DataType::Boolean => array.add_buffer(self.bits(rows)?.into_inner()),
            DataType::Utf8 | DataType::Binary => array.buffers(self.bytes_behind_offsets(rows, 4)?),
            DataType::LargeUtf8 | DataType::LargeBinary => array.buffers(self.bytes_behind_offsets(rows, 8)?),
            DataType::Utf8View => return self.views(array, rows, Contents::Text),
            DataType::BinaryView => return self.views(array, rows, Contents::Bytes),
            DataType::List(element) => self.list(array, element, rows, 4)?,
            DataType::LargeList(element) => self.list(array, element, rows, 8)?,
            DataType::Struct(fields) => {
                let columns =
                    fields.iter().map(|field| self.array(field.data_type(), rows)).collect::<Result<_, _>>()?;
                array.child_data(columns)
            }
            DataType::FixedSizeBinary(width) => array.add_buffer(self.copied(rows, *width as usize)?),
            other => {
                let width =
                    other.primitive_width().ok_or_else(|| self.malformed(format!("type {other} has no width")))?;
                array.add_buffer(self.copied(rows, width)?)
            }
        };
        array.build().map_err(|error| self.malformed(error.to_string()))
    }

    /// Offsets of `width` bytes, and what they point to.
    fn bytes_behind_offsets(&mut self, rows: usize, width: usize) -> Result<Vec<Buffer>, WireError> {
        let total = usize::try_from(self.word()?).unwrap_or(usize::MAX);
        Ok(vec![self.copied(rows + 1, width)?, self.copied(total, 1)?])
    }

    fn views(&mut self, array: ArrayDataBuilder, rows: usize, contents: Contents) -> Result<ArrayData, WireError> {
        let mut lengths = Vec::new();
        for _ in 0..self.word()? {
            lengths.push(usize::try_from(self.word()?).unwrap_or(usize::MAX));
        }
        let views = self.copied(rows, 16)?;
        let buffers = lengths.into_iter().map(|len| self.copied(len, 1)).collect::<Result<_, _>>()?;
        build_views(array, views, buffers, contents).map_err(|error| self.malformed(error.to_string()))
    }

    fn list(
        &mut self,
        array: ArrayDataBuilder,
        element: &FieldRef,
        rows: usize,
        width: usize,
    ) -> Result<ArrayDataBuilder, WireError> {
        let n_elements = self.count()?;
        let offsets = self.copied(rows + 1, width)?;
        Ok(array.add_buffer(offsets).add_child_data(self.array(element.data_type(), n_elements)?))
    }

    fn bits(&mut self, rows: usize) -> Result<BooleanBuffer, WireError> {
        Ok(BooleanBuffer::new(self.copied(rows.div_ceil(8), 1)?, 0, rows))
    }

    fn scalars<T: ArrowNativeType>(&mut self, rows: usize) -> Result<ScalarBuffer<T>, WireError> {
        Ok(ScalarBuffer::new(self.copied(rows, size_of::<T>())?, 0, rows))
    }

    /// A copy, aligned as Arrow wants it, of `count` values of `width` bytes.
    fn copied(&mut self, count: usize, width: usize) -> Result<Buffer, WireError> {
        Ok(Buffer::from(self.buffer(count.saturating_mul(width))?))
    }

    /// `len` bytes and their padding.
    fn buffer(&mut self, len: usize) -> Result<&'a [u8], WireError> {
        let padded = len.checked_next_multiple_of(8).unwrap_or(usize::MAX);
        match self.bytes.split_at_checked(padded) {
            Some((buffer, rest)) => {
                self.bytes = rest;
                Ok(&buffer[..len])
            }
            None => Err(self.malformed(format!("it needs {len} bytes, {} are left", self.bytes.len()))),
        }
    }

    fn word(&mut self) -> Result<u64, WireError> {
        let bytes = self.buffer(8)?;
        Ok(u64::from_le_bytes(bytes.try_into().expect("the buffer has eight bytes")))
    }

    /// A number of rows or elements.
    fn count(&mut self) -> Result<usize, WireError> {
        match self.word()? {
            count if count <= ROWS_MAX => Ok(count as usize),
            count => Err(self.malformed(format!("{count} rows are more than {ROWS_MAX}"))),
        }
    }

    fn unknown(&self, kind: u64) -> WireError {
        self.malformed(format!("no kind has tag {kind}"))
    }

    fn malformed(&self, detail: impl Into<String>) -> WireError {
        let part = match self.part {
            WirePart::Header => "header".into(),
            WirePart::Schema => "schema".into(),
            WirePart::Times => "times".into(),
            WirePart::Diffs => "diffs".into(),
            WirePart::Until => "until".into(),
            WirePart::Key => "key".into(),
            WirePart::Present => "present".into(),
            WirePart::Column(position) => format!("column {position}"),
        };
        WireError::Malformed { part, detail: detail.into() }
    }
}
