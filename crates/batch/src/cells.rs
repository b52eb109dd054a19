//! A column seen as one of few physical shapes, whatever its logical type.
//!
//! Dates, times, timestamps and durations are integers here, text is bytes. Kernels match on a
//! [`Cells`] once per column and loop over the slices inside; which slots are null is
//! [`Array::logical_nulls`]' business.

use arrow::array::types::*;
use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, GenericByteArray, OffsetSizeTrait, downcast_primitive_array,
};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};
use arrow::datatypes::{
    ArrowNativeType, DataType, IntervalDayTime, IntervalMonthDayNano, IntervalUnit, TimeUnit, i256,
};
use std::cmp::Ordering;

/// Half-precision float.
pub(crate) type F16 = <Float16Type as ArrowPrimitiveType>::Native;

/// The slots of one column. Slots of nulls hold anything.
pub(crate) enum Cells<'a> {
    Null,
    Bool(&'a BooleanBuffer),
    I8(&'a [i8]),
    I16(&'a [i16]),
    I32(&'a [i32]),
    I64(&'a [i64]),
    U8(&'a [u8]),
    U16(&'a [u16]),
    U32(&'a [u32]),
    U64(&'a [u64]),
    F16(&'a [F16]),
    F32(&'a [f32]),
    F64(&'a [f64]),
    I128(&'a [i128]),
    I256(&'a [i256]),
    DayTime(&'a [IntervalDayTime]),
    MonthDayNano(&'a [IntervalMonthDayNano]),
    Bytes(Bytes<'a, i32>),
    LargeBytes(Bytes<'a, i64>),
    Views(Views<'a>),
    Fixed(Fixed<'a>),
    List(&'a [i32], &'a ArrayRef),
    LargeList(&'a [i64], &'a ArrayRef),
    Struct(&'a [ArrayRef]),
}

/// Variable-length bytes behind offsets.
#[derive(Clone, Copy)]
pub(crate) struct Bytes<'a, O> {
    offsets: &'a [O],
    data: &'a [u8],
}

/// Variable-length bytes behind 16-byte views: length, then either 12 bytes inline or prefix,
/// buffer and offset.
#[derive(Clone, Copy)]
pub(crate) struct Views<'a> {
    pub views: &'a [u128],
    pub buffers: &'a [Buffer],
}

impl Views<'_> {
    /// Whether these views hold all bytes themselves.
    #[inline]
    pub fn are_short(views: &[u128]) -> bool {
        views.iter().fold(true, |short, &view| short & (view as u32 as usize <= INLINE_BYTES_MAX))
    }
}

/// Byte strings of one width.
#[derive(Clone, Copy)]
pub(crate) struct Fixed<'a> {
    width: usize,
    data: &'a [u8],
}

/// Anything that yields the bytes of a row.
pub(crate) trait ByteCells: Copy {
    fn bytes(&self, row: usize) -> &[u8];
}

impl<O: OffsetSizeTrait> ByteCells for Bytes<'_, O> {
    #[inline]
    fn bytes(&self, row: usize) -> &[u8] {
        &self.data[self.offsets[row].as_usize()..self.offsets[row + 1].as_usize()]
    }
}

impl ByteCells for Fixed<'_> {
    #[inline]
    fn bytes(&self, row: usize) -> &[u8] {
        &self.data[row * self.width..(row + 1) * self.width]
    }
}

impl ByteCells for Views<'_> {
    #[inline]
    fn bytes(&self, row: usize) -> &[u8] {
        let view = &self.views[row];
        let len = *view as u32 as usize;
        if len <= INLINE_BYTES_MAX {
            return inline_bytes(view, len);
        }
        let (buffer, offset) = ((*view >> 64) as u32, (*view >> 96) as u32);
        &self.buffers[buffer as usize][offset as usize..offset as usize + len]
    }
}

impl<'a, O: OffsetSizeTrait> Bytes<'a, O> {
    /// Row `i` is `data[offsets[i] .. offsets[i + 1]]`.
    #[inline]
    pub fn new(offsets: &'a [O], data: &'a [u8]) -> Self {
        Bytes { offsets, data }
    }
}

impl Fixed<'_> {
    /// Bytes per row.
    pub fn width(&self) -> usize {
        self.width
    }
}

impl Views<'_> {
    /// Order of row `i` here against row `j` there, by bytes; the first four decide without leaving
    /// the view, and so does equality of short ones.
    #[inline]
    pub fn compare(&self, i: usize, other: Views<'_>, j: usize) -> Ordering {
        let (left, right) = (self.views[i], other.views[j]);
        if left == right && left as u32 as usize <= INLINE_BYTES_MAX {
            return Ordering::Equal;
        }
        let prefix = |view: u128| ((view >> 32) as u32).swap_bytes();
        let prefixes = prefix(left).cmp(&prefix(right));
        prefixes.then_with(|| self.bytes(i).cmp(other.bytes(j)))
    }
}

/// Longest string that lies inside its view.
pub(crate) const INLINE_BYTES_MAX: usize = 12;

/// The bytes inside a view, which in memory is little-endian: 4 bytes of length, then 12 of text.
#[inline]
fn inline_bytes(view: &u128, len: usize) -> &[u8] {
    const { assert!(cfg!(target_endian = "little"), "views are read as they lie in little-endian memory") };
    let view: &[u8] = arrow::datatypes::ToByteSlice::to_byte_slice(view);
    &view[4..4 + len]
}

/// The cells of `array`.
///
/// # Panics
/// If the type is not one that [`crate::types::check`] accepts.
pub(crate) fn cells(array: &dyn Array) -> Cells<'_> {
    use DataType as D;
    match array.data_type() {
        D::Null => Cells::Null,
        D::Boolean => Cells::Bool(array.as_boolean().values()),
        D::Int8 => Cells::I8(array.as_primitive::<Int8Type>().values()),
        D::Int16 => Cells::I16(array.as_primitive::<Int16Type>().values()),
        D::Int32 => Cells::I32(array.as_primitive::<Int32Type>().values()),
        D::Int64 => Cells::I64(array.as_primitive::<Int64Type>().values()),
        D::UInt8 => Cells::U8(array.as_primitive::<UInt8Type>().values()),
        D::UInt16 => Cells::U16(array.as_primitive::<UInt16Type>().values()),
        D::UInt32 => Cells::U32(array.as_primitive::<UInt32Type>().values()),
        D::UInt64 => Cells::U64(array.as_primitive::<UInt64Type>().values()),
        D::Float16 => Cells::F16(array.as_primitive::<Float16Type>().values()),
        D::Float32 => Cells::F32(array.as_primitive::<Float32Type>().values()),
        D::Float64 => Cells::F64(array.as_primitive::<Float64Type>().values()),
        D::Decimal64(..) => Cells::I64(array.as_primitive::<Decimal64Type>().values()),
        D::Decimal128(..) => Cells::I128(array.as_primitive::<Decimal128Type>().values()),
        D::Decimal256(..) => Cells::I256(array.as_primitive::<Decimal256Type>().values()),
        D::Date32 => Cells::I32(array.as_primitive::<Date32Type>().values()),
        D::Date64 => Cells::I64(array.as_primitive::<Date64Type>().values()),
        D::Time32(TimeUnit::Second) => Cells::I32(array.as_primitive::<Time32SecondType>().values()),
        D::Time32(_) => Cells::I32(array.as_primitive::<Time32MillisecondType>().values()),
        D::Time64(TimeUnit::Nanosecond) => Cells::I64(array.as_primitive::<Time64NanosecondType>().values()),
        D::Time64(_) => Cells::I64(array.as_primitive::<Time64MicrosecondType>().values()),
        D::Timestamp(TimeUnit::Second, _) => Cells::I64(array.as_primitive::<TimestampSecondType>().values()),
        D::Timestamp(TimeUnit::Millisecond, _) => Cells::I64(array.as_primitive::<TimestampMillisecondType>().values()),
        D::Timestamp(TimeUnit::Microsecond, _) => Cells::I64(array.as_primitive::<TimestampMicrosecondType>().values()),
        D::Timestamp(TimeUnit::Nanosecond, _) => Cells::I64(array.as_primitive::<TimestampNanosecondType>().values()),
        D::Duration(TimeUnit::Second) => Cells::I64(array.as_primitive::<DurationSecondType>().values()),
        D::Duration(TimeUnit::Millisecond) => Cells::I64(array.as_primitive::<DurationMillisecondType>().values()),
        D::Duration(TimeUnit::Microsecond) => Cells::I64(array.as_primitive::<DurationMicrosecondType>().values()),
        D::Duration(TimeUnit::Nanosecond) => Cells::I64(array.as_primitive::<DurationNanosecondType>().values()),
        D::Interval(IntervalUnit::YearMonth) => Cells::I32(array.as_primitive::<IntervalYearMonthType>().values()),
        D::Interval(IntervalUnit::DayTime) => Cells::DayTime(array.as_primitive::<IntervalDayTimeType>().values()),
        D::Interval(IntervalUnit::MonthDayNano) => {
            Cells::MonthDayNano(array.as_primitive::<IntervalMonthDayNanoType>().values())
        }
        D::Utf8 => Cells::Bytes(bytes(array.as_string::<i32>())),
        D::LargeUtf8 => Cells::LargeBytes(bytes(array.as_string::<i64>())),
        D::Binary => Cells::Bytes(bytes(array.as_binary::<i32>())),
        D::LargeBinary => Cells::LargeBytes(bytes(array.as_binary::<i64>())),
        D::Utf8View => {
            let array = array.as_string_view();
            Cells::Views(Views { views: array.views(), buffers: array.data_buffers() })
        }
        D::BinaryView => {
            let array = array.as_binary_view();
            Cells::Views(Views { views: array.views(), buffers: array.data_buffers() })
        }
        D::FixedSizeBinary(width) => {
            let array = array.as_fixed_size_binary();
            Cells::Fixed(Fixed { width: *width as usize, data: array.value_data() })
        }
        D::List(_) => Cells::List(array.as_list::<i32>().offsets(), array.as_list::<i32>().values()),
        D::LargeList(_) => Cells::LargeList(array.as_list::<i64>().offsets(), array.as_list::<i64>().values()),
        D::Struct(_) => Cells::Struct(array.as_struct().columns()),
        other => panic!("columns of type {other} are converted by types::to_planned before they reach a kernel"),
    }
}

/// The values of a primitive (or the views of a view) array.
pub(crate) fn scalars<T: ArrowNativeType>(array: &ArrayRef) -> ScalarBuffer<T> {
    downcast_primitive_array!(
        array => ScalarBuffer::new(array.values().inner().clone(), 0, array.len()),
        DataType::Utf8View => ScalarBuffer::new(array.as_string_view().views().inner().clone(), 0, array.len()),
        DataType::BinaryView => ScalarBuffer::new(array.as_binary_view().views().inner().clone(), 0, array.len()),
        other => unreachable!("columns of type {other} have no plain values")
    )
}

/// The same, borrowed, as integers of the same width.
pub(crate) fn plain<T: ArrowNativeType>(array: &ArrayRef) -> &[T] {
    downcast_primitive_array!(
        array => array.values().inner().typed_data(),
        other => unreachable!("columns of type {other} have no plain values")
    )
}

/// Nulls of `array`, `None` when there are none at all.
pub(crate) fn nulls(array: &dyn Array) -> Option<NullBuffer> {
    array.logical_nulls().filter(|nulls| nulls.null_count() > 0)
}

/// Whether a column's values are 64-bit integers in disguise. (Those of narrow decimals are, but
/// hash as wide ones do.)
pub(crate) fn is_integer_like(data_type: &DataType) -> bool {
    use DataType as D;
    data_type.is_integer()
        || matches!(data_type, D::Boolean | D::Date32 | D::Date64 | D::Time32(_) | D::Time64(_) | D::Timestamp(..))
        || matches!(data_type, D::Duration(_) | D::Interval(IntervalUnit::YearMonth))
}

/// One float for -0.0 and 0.0, and one for all NaN.
#[inline]
pub(crate) fn canonical(value: f64) -> f64 {
    if value.is_nan() { f64::NAN } else { value + 0.0 }
}

fn bytes<T: ByteArrayType>(array: &GenericByteArray<T>) -> Bytes<'_, T::Offset> {
    Bytes::new(array.value_offsets(), array.value_data())
}
