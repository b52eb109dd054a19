//! Moving rows: take, interleave, filter, concatenate.
//!
//! Law: the cells that come out are those that went in; physical forms may change. Views (Utf8View,
//! BinaryView) move as 16-byte views and share their data buffers, so a few rows can keep large
//! buffers alive: [`compact_views`] is for columns that live long.
//!
//! Cost per row: 1 ns an integer column, 2 ns a view column; other text and nested columns copy
//! their contents.

use arrow::array::{
    Array, ArrayData, ArrayRef, AsArray, BooleanArray, BooleanBufferBuilder, PrimitiveArray, UInt32Array,
    downcast_primitive_array, make_array,
};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow::compute::{self, FilterBuilder};
use arrow::datatypes::{ArrowNativeType, ArrowPrimitiveType, DataType, i256};
use std::sync::Arc;

use crate::batch::Columns;
use crate::cells::{nulls, plain};

mod views;

pub use views::{compact_shared_views, compact_views};

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
        if let Some(column) = concat_plain(&arrays) {
            return column;
        }
        let arrays: Vec<&dyn Array> = arrays.iter().map(|array| array.as_ref()).collect();
        compute::concat(&arrays).expect("sources have the same types")
    };
    (0..width).map(column).collect()
}

/// All values of all arrays in turn, if they are of fixed width or bits: Arrow's kernel takes a
/// thousand instructions before the first.
fn concat_plain(arrays: &[&ArrayRef]) -> Option<ArrayRef> {
    let first = arrays[0];
    if arrays.iter().any(|array| array.data_type() != first.data_type()) {
        return None;
    }
    downcast_primitive_array!(
        first => Some(Arc::new(like(first, concat_values(first, arrays)))),
        DataType::Boolean => {
            let bits = concat_bits(arrays, |array| Some(array.as_boolean().values()));
            Some(Arc::new(BooleanArray::new(bits, concat_nulls(arrays))))
        },
        _ => None
    )
}

/// `first` is the first of the arrays.
fn concat_values<T: ArrowPrimitiveType>(_first: &PrimitiveArray<T>, arrays: &[&ArrayRef]) -> PrimitiveArray<T> {
    let mut values: Vec<T::Native> = Vec::with_capacity(arrays.iter().map(|array| array.len()).sum());
    arrays.iter().for_each(|array| values.extend_from_slice(array.as_primitive::<T>().values()));
    PrimitiveArray::new(values.into(), concat_nulls(arrays))
}

fn concat_nulls(arrays: &[&ArrayRef]) -> Option<NullBuffer> {
    arrays.iter().find(|array| array.null_count() > 0)?;
    Some(concat_bits(arrays, |array| Some(array.nulls()?.inner())).into())
}

/// The bits of all arrays in turn, which are set where there are none.
fn concat_bits<'a>(arrays: &[&'a ArrayRef], bits: impl Fn(&'a ArrayRef) -> Option<&'a BooleanBuffer>) -> BooleanBuffer {
    let mut all = BooleanBufferBuilder::new(arrays.iter().map(|array| array.len()).sum());
    for array in arrays {
        match bits(array) {
            Some(bits) => all.append_buffer(bits),
            None => all.append_n(array.len(), true),
        }
    }
    all.finish()
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
        DataType::Boolean => {
            let bits = column.as_boolean().values();
            let picked = rows.iter().map(|&row| bits.value(row as usize)).collect();
            Arc::new(BooleanArray::new(picked, nulls()))
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

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Decimal64Array, Int32Array, NullArray, TimestampMicrosecondArray};

    /// The same rows by Arrow's kernel.
    fn by_arrow(arrays: &[ArrayRef]) -> ArrayRef {
        compute::concat(&arrays.iter().map(|array| array.as_ref()).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn rows_of_sources_follow_each_other_with_their_nulls_and_types() {
        let numbers: ArrayRef = Arc::new((0..70).map(|at| (at % 3 > 0).then_some(at)).collect::<Int32Array>());
        let decimals = Decimal64Array::from(vec![Some(5), None, Some(-7)]).with_precision_and_scale(9, 2).unwrap();
        let times = TimestampMicrosecondArray::from(vec![1, 2, 3]).with_timezone("Europe/Paris");
        let bits: ArrayRef = Arc::new((0..70).map(|at| (at % 5 > 0).then_some(at % 2 == 0)).collect::<BooleanArray>());
        let all: [ArrayRef; 5] = [numbers, Arc::new(decimals), Arc::new(times), bits, Arc::new(NullArray::new(3))];
        for array in all {
            let full: ArrayRef = array.slice(1, 1);
            let parts = [array.slice(1, 2), full.clone(), array.slice(0, 0), array.slice(2, array.len() - 2), full];
            let sources: Vec<&[ArrayRef]> = parts.iter().map(std::slice::from_ref).collect();
            assert_eq!(&concat(&sources)[0], &by_arrow(&parts));
            let full = &parts[1..3];
            let sources: Vec<&[ArrayRef]> = full.iter().map(std::slice::from_ref).collect();
            assert_eq!(&concat(&sources)[0], &by_arrow(full));
        }
    }

    #[test]
    fn few_rows_are_those_of_the_kernel() {
        let bits: ArrayRef = Arc::new((0..70).map(|at| (at % 5 > 0).then_some(at % 2 == 0)).collect::<BooleanArray>());
        let (rows, bits) = ([60, 3, 4, 3], bits.slice(3, 61));
        let taken = compute::take(&bits, &UInt32Array::from(rows.to_vec()), None).unwrap();
        assert_eq!(take(&[bits], &rows)[0].as_ref(), taken.as_ref());
    }

    #[test]
    #[should_panic(expected = "sources have the same types")]
    fn sources_of_other_types_are_not_taken() {
        let decimals =
            |scale| -> ArrayRef { Arc::new(Decimal64Array::from(vec![1]).with_precision_and_scale(9, scale).unwrap()) };
        concat(&[&[decimals(2)], &[decimals(3)]]);
    }
}
