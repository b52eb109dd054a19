//! Lengths of arrays within arrays.
//!
//! Law: the arrays within one have the same lengths, at each depth. NULL and an empty array have
//! none. Cost: a look at each array within another.

use arrow::array::{Array, AsArray, ListArray};

/// The first list at or after a row whose parts are arrays of several lengths.
///
/// ```
/// use anabranch_batch::dimensions::next_ragged;
/// use arrow::array::{Array, ListArray};
/// use arrow::buffer::OffsetBuffer;
/// use arrow::datatypes::{Field, Int32Type};
/// use std::sync::Arc;
///
/// let parts = [Some(vec![Some(1), Some(2)]), Some(vec![Some(3)])];
/// let parts = ListArray::from_iter_primitive::<Int32Type, _, _>(parts);
/// let field = Arc::new(Field::new_list_field(parts.data_type().clone(), true));
/// let lists = ListArray::new(field, OffsetBuffer::from_lengths([2]), Arc::new(parts.clone()), None);
/// assert_eq!(next_ragged(&parts, 0), None);
/// assert_eq!(next_ragged(&lists, 0), Some(0));
/// ```
pub fn next_ragged(lists: &ListArray, from: usize) -> Option<usize> {
    let parts = lists.values().as_list_opt::<i32>()?;
    let offsets = lists.value_offsets();
    (from..lists.len()).filter(|row| lists.is_valid(*row)).find(|row| {
        let mut lengths = (offsets[*row]..offsets[row + 1]).map(|place| lengths_of(parts, place as usize));
        lengths.next().is_some_and(|first| lengths.any(|other| other != first))
    })
}

/// The lengths of a list, by depth; none of NULL and of an empty one.
fn lengths_of(list: &ListArray, row: usize) -> Vec<i32> {
    let (from, to) = (list.value_offsets()[row], list.value_offsets()[row + 1]);
    if list.is_null(row) || from == to {
        return vec![];
    }
    let mut lengths = vec![to - from];
    if let Some(parts) = list.values().as_list_opt::<i32>() {
        lengths.extend(lengths_of(parts, from as usize));
    }
    lengths
}
