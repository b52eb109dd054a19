//! What values take that have no fixed width: a few rows of texts or lists may be very large.

use anabranch_flow::account::midway;
use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::DataType;

/// Bytes of an element of a list, about.
const ELEMENT_BYTES: usize = 16;

/// Says that a column was made, to `memory_limit` and to the one who waits. The turn ends here if
/// its dataflow has ended. Cost: of texts a look at their lengths, of others none.
pub(crate) fn note_made(column: &ArrayRef) {
    midway::makes(made_bytes(column));
}

fn made_bytes(column: &ArrayRef) -> usize {
    match column.data_type() {
        DataType::Utf8View => column.as_string_view().total_buffer_bytes_used(),
        DataType::BinaryView => column.as_binary_view().total_buffer_bytes_used(),
        DataType::List(_) => {
            let offsets = column.as_list::<i32>().value_offsets();
            let n_elements = offsets.last().zip(offsets.first()).map_or(0, |(last, first)| last - first);
            n_elements as usize * ELEMENT_BYTES
        }
        _ => 0,
    }
}
