//! Moving rows: take, interleave, filter, concatenate.
//!
//! Law: the cells that come out are those that went in; physical forms may change. Views (Utf8View, BinaryView) move as 16-byte views and share their
//! data buffers, so a few rows can keep large buffers alive: [`compact_views`] is for columns that live long.
//!
//! Cost per row: 1 ns an integer column, 2 ns a view column; other text and nested columns copy their contents.

use arrow::array::{
    Array, ArrayData, ArrayRef, BooleanArray, PrimitiveArray, UInt32Array, downcast_primitive_array, make_array,
};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow::compute::{self, FilterBuilder};
use arrow::datatypes::{ArrowNativeType, ArrowPrimitiveType, DataType, i256};
use std::sync::Arc;

use crate::Columns;
use crate::cells::{nulls, plain};

mod views;

pub use views::compact_views;

/// For so few rows what Arrow's kernels do before the first costs more than the rows.
const FEW_ROWS: usize = 8;

/// The rows `rows` of every column, in that order; repeats are fine.
///
/// # Panics
/// If a row is out of bounds.
pub fn take(columns: &[ArrayRef], rows: &[u32]) -> Columns {
    if columns.is_empty() {
        return Arc::from([]);
    }
    if rows.len() <= FEW_ROWS {
        return columns.iter().map(|column| take_few(column, rows)).collect();
    }
    let rows = UInt32Array::from(rows.to_vec());
    columns.iter().map(|column| compute::take(column, &rows, None).expect("rows are in bounds")).collect()
}

/// For each pick `(source, row)`, that row of that source. All sources have the same column types.
///
/// # Panics
/// If there is no source for a pick, the sources differ in types, or a row is out of bounds.
pub fn interleave(sources: &[&[ArrayRef]], picks: &[(u32, u32)]) -> Columns {
    let width = sources.first().map_or(0, |source| source.len());
    assert!(sources.iter().all(|source| source.len() == width), "sources have the same columns");
    let column = |column: usize| {
        let arrays: Vec<&ArrayRef> = sources.iter().map(|source| &source[column]).collect();
        interleave_column(&arrays, picks)
    };
    (0..width).map(column).collect()
}

/// The rows of every column whose bit of `keep` is set; nulls of `keep` count as false.
///
/// # Panics
/// If lengths differ.
pub fn filter(columns: &[ArrayRef], keep: &BooleanArray) -> Columns {
    let filter = FilterBuilder::new(keep);
    let filter = if columns.len() > 1 { filter.optimize() } else { filter }.build();
    columns.iter().map(|column| filter.filter(column).expect("a filter has one entry per row")).collect()
}

/// The rows whose bit is set, unless they mostly stand in runs, which are better copied as such.
pub(crate) fn scattered_rows(keep: &BooleanBuffer) -> Option<Vec<u32>> {
    const RUN_ROWS: usize = 8;
    let chunks = keep.bit_chunks();
    let (mut n_rows, mut n_edges) = (0, 0);
    for word in chunks.iter_padded() {
        n_rows += word.count_ones() as usize;
        n_edges += (word ^ (word << 1)).count_ones() as usize;
    }
    // (A run has two edges.)
    if n_edges * RUN_ROWS < 2 * n_rows {
        return None;
    }
    let mut rows = Vec::with_capacity(n_rows);
    for (at, mut word) in chunks.iter_padded().enumerate() {
        let base = at as u32 * u64::BITS;
        rows.extend((0..word.count_ones()).map(|_| {
            let bit = word.trailing_zeros();
            word &= word - 1;
            base + bit
        }));
    }
    Some(rows)
}

/// All rows of all sources in turn. All sources have the same column types.
///
/// # Panics
/// If the sources differ in types.
pub fn concat(sources: &[&[ArrayRef]]) -> Columns {
    let width = sources.first().map_or(0, |source| source.len());
    let column = |column: usize| {
        let arrays: Vec<&ArrayRef> = sources.iter().map(|source| &source[column]).collect();
        if matches!(arrays[0].data_type(), DataType::Utf8View | DataType::BinaryView) {
            assert!(
                arrays.iter().all(|array| array.data_type() == arrays[0].data_type()),
                "sources have the same types"
            );
            return views::concat(&arrays);
        }
        let arrays: Vec<&dyn Array> = arrays.iter().map(|array| array.as_ref()).collect();
        compute::concat(&arrays).expect("sources have the same types")
    };
    (0..width).map(column).collect()
}

/// The rows `rows` of a column.
fn take_few(column: &ArrayRef, rows: &[u32]) -> ArrayRef {
    let nulls = || {
        let nulls = column.nulls().filter(|nulls| nulls.null_count() > 0)?;
        Some(rows.iter().map(|&row| nulls.is_valid(row as usize)).collect())
    };
    downcast_primitive_array!(
        column => {
            let values: Vec<_> = rows.iter().map(|&row| column.values()[row as usize]).collect();
            Arc::new(like(column, PrimitiveArray::new(values.into(), nulls())))
        },
        DataType::Utf8View => views::take(column, rows, nulls()),
        _ => compute::take(column, &UInt32Array::from(rows.to_vec()), None).expect("rows are in bounds")
    )
}

/// `array` in the type of `model`: its scale, its time zone.
fn like<T: ArrowPrimitiveType>(model: &PrimitiveArray<T>, array: PrimitiveArray<T>) -> PrimitiveArray<T> {
    if *model.data_type() == T::DATA_TYPE { array } else { array.with_data_type(model.data_type().clone()) }
}

fn interleave_column(arrays: &[&ArrayRef], picks: &[(u32, u32)]) -> ArrayRef {
    let data_type = arrays[0].data_type();
    assert!(arrays.iter().all(|array| array.data_type() == data_type), "sources have the same column types");
    let values = match (data_type, data_type.primitive_width()) {
        (_, Some(1)) => pick_scalars::<u8>(arrays, picks),
        (_, Some(2)) => pick_scalars::<u16>(arrays, picks),
        (_, Some(4)) => pick_scalars::<u32>(arrays, picks),
        (_, Some(8)) => pick_scalars::<u64>(arrays, picks),
        (_, Some(16)) => pick_scalars::<u128>(arrays, picks),
        (_, Some(32)) => pick_scalars::<i256>(arrays, picks),
        (DataType::Utf8View | DataType::BinaryView, _) => {
            return views::interleave(arrays, picks, pick_nulls(arrays, picks));
        }
        _ => return interleave_any(arrays, picks),
    };
    assemble(data_type, picks.len(), values, pick_nulls(arrays, picks))
}

/// Any type, by Arrow's kernel.
fn interleave_any(arrays: &[&ArrayRef], picks: &[(u32, u32)]) -> ArrayRef {
    let arrays: Vec<&dyn Array> = arrays.iter().map(|array| array.as_ref()).collect();
    let picks: Vec<(usize, usize)> = picks.iter().map(|&(source, row)| (source as usize, row as usize)).collect();
    compute::interleave(&arrays, &picks).expect("sources have the same types")
}

/// The picked cells of fixed-width arrays, seen as plain integers of their width.
fn pick_scalars<T: ArrowNativeType>(arrays: &[&ArrayRef], picks: &[(u32, u32)]) -> Buffer {
    let sources: Vec<&[T]> = arrays.iter().map(|array| plain(array)).collect();
    let values: Vec<T> = picks.iter().map(|&(source, row)| sources[source as usize][row as usize]).collect();
    Buffer::from_vec(values)
}

/// The null bits of the picked cells; `None` when no source has nulls.
fn pick_nulls(arrays: &[&ArrayRef], picks: &[(u32, u32)]) -> Option<NullBuffer> {
    let sources: Vec<Option<NullBuffer>> = arrays.iter().map(|array| nulls(array)).collect();
    sources.iter().find(|nulls| nulls.is_some())?;
    let is_valid = |pick: usize| {
        let (source, row) = picks[pick];
        sources[source as usize].as_ref().is_none_or(|nulls| nulls.is_valid(row as usize))
    };
    Some(NullBuffer::new(BooleanBuffer::collect_bool(picks.len(), is_valid)))
}

fn assemble(data_type: &DataType, len: usize, values: Buffer, nulls: Option<NullBuffer>) -> ArrayRef {
    let data = ArrayData::builder(data_type.clone()).len(len).add_buffer(values).nulls(nulls);
    make_array(data.build().expect("the buffer has one value per row"))
}
