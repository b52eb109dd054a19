//! Bytes of rows that share their buffers with others.

use anabranch_batch::Batch;
use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::DataType;

/// Bytes of a row's time and diff.
const CONTROL_BYTES: usize = 16;

/// Bytes of the rows themselves: text that other batches share counts as far as these rows have it.
pub(crate) fn size_bytes(batches: &[Batch]) -> usize {
    let columns = |batch: &Batch| batch.columns().iter().map(column_bytes).sum::<usize>();
    batches.iter().map(|batch| columns(batch) + batch.len() * CONTROL_BYTES).sum()
}

fn column_bytes(column: &ArrayRef) -> usize {
    // (A view has the length of its text in its lowest 32 bits; short text is within the view.)
    let outside =
        |views: &[u128]| views.iter().map(|view| *view as u32 as usize).filter(|len| *len > 12).sum::<usize>();
    let text = match column.data_type() {
        DataType::Utf8View => outside(column.as_string_view().views()),
        DataType::BinaryView => outside(column.as_binary_view().views()),
        _ => 0,
    };
    text + column.to_data().get_slice_memory_size().unwrap_or_else(|_| column.get_buffer_memory_size())
}
