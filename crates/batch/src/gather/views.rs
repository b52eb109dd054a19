//! Columns of views: their rows move as they are, but for the number of the buffer that holds their
//! text.
//!
//! Law: the texts are those of the sources, and each buffer is held once, however often it comes.
//! So columns that are made of many small ones, which mostly share their buffers, do not hold more
//! and more of them.
//!
//! Cost: O(rows + buffers of the sources), or where there are more buffers than rows O(rows).

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryViewArray, NullBufferBuilder, StringViewArray};
use arrow::buffer::{Buffer, NullBuffer, ScalarBuffer};
use arrow::datatypes::DataType;

use crate::batch::Columns;
use crate::cells::{Cells, INLINE_BYTES_MAX, Views, cells};

/// Views are rewritten when their buffers hold more than this many times the bytes in use, and
const COMPACT_RATIO_MIN: usize = 2;
/// when at least this many bytes are gained.
const COMPACT_BYTES_MIN: usize = 4096;

/// The rows `rows` of a column of views, with the buffers that they need.
pub(super) fn take(column: &ArrayRef, rows: &[u32], nulls: Option<NullBuffer>) -> ArrayRef {
    let Views { views, buffers } = views_of(column);
    let mut merged = MergedBuffers::default();
    let (taken, buffers) = match buffers.len() <= rows.len() {
        true => (rows.iter().map(|&row| views[row as usize]).collect(), buffers.to_vec()),
        false => {
            let moved = |&row: &u32| merged.moved(views[row as usize], buffers);
            (rows.iter().map(moved).collect::<Vec<u128>>(), merged.buffers)
        }
    };
    let buffers = if taken.iter().all(is_inline) { vec![] } else { buffers };
    assemble(column.data_type(), taken.into(), buffers, nulls)
}

/// All rows of all columns of views in turn, with the distinct buffers of all.
pub(super) fn concat(arrays: &[&ArrayRef]) -> ArrayRef {
    let rows = arrays.iter().map(|array| array.len()).sum();
    let mut merged = MergedBuffers::default();
    let mut all: Vec<u128> = Vec::with_capacity(rows);
    let mut nulls = NullBufferBuilder::new(rows);
    for array in arrays {
        let Views { views, buffers } = views_of(array);
        let numbers: Vec<u32> = buffers.iter().map(|buffer| merged.number(buffer)).collect();
        match (0..).eq(numbers.iter().copied()) {
            true => all.extend_from_slice(views),
            false => all.extend(views.iter().map(|&view| renumbered(view, &numbers))),
        }
        match array.nulls() {
            Some(of_array) => nulls.append_buffer(of_array),
            None => nulls.append_n_non_nulls(array.len()),
        }
    }
    assemble(arrays[0].data_type(), all.into(), merged.buffers, nulls.finish())
}

/// Picked rows of several columns of views. The result has the distinct buffers of all, or, where
/// these are more than the picks, those that are needed.
pub(super) fn interleave(arrays: &[&ArrayRef], picks: &[(u32, u32)], nulls: Option<NullBuffer>) -> ArrayRef {
    let sources: Vec<Views> = arrays.iter().map(|array| views_of(array)).collect();
    let mut merged = MergedBuffers::default();
    let n_buffers: usize = sources.iter().map(|views| views.buffers.len()).sum();
    let views: ScalarBuffer<u128> = match n_buffers > picks.len() {
        true => {
            let pick = |&(source, row): &(u32, u32)| {
                let Views { views, buffers } = sources[source as usize];
                merged.moved(views[row as usize], buffers)
            };
            picks.iter().map(pick).collect()
        }
        false => {
            let numbered: Vec<(&[u128], Vec<u32>)> = sources
                .iter()
                .map(|source| (source.views, source.buffers.iter().map(|buffer| merged.number(buffer)).collect()))
                .collect();
            let pick = |&(source, row): &(u32, u32)| {
                let (views, numbers) = &numbered[source as usize];
                renumbered(views[row as usize], numbers)
            };
            picks.iter().map(pick).collect()
        }
    };
    assemble(arrays[0].data_type(), views, merged.buffers, nulls)
}

fn views_of(array: &ArrayRef) -> Views<'_> {
    match cells(array) {
        Cells::Views(views) => views,
        _ => unreachable!("the caller matched on view types"),
    }
}

/// Whether a view holds its text itself, in no buffer.
#[inline]
fn is_inline(view: &u128) -> bool {
    *view as u32 as usize <= INLINE_BYTES_MAX
}

/// The view, whose buffer has another number now.
#[inline]
fn renumbered(view: u128, numbers: &[u32]) -> u128 {
    if is_inline(&view) { view } else { ViewBuffer::replace(view, |buffer| numbers[buffer as usize]) }
}

/// The distinct buffers of several view arrays.
#[derive(Default)]
struct MergedBuffers {
    buffers: Vec<Buffer>,
    /// The numbers of all, when they are too many to look through.
    numbers: HashMap<(*const u8, usize), u32>,
}

/// So many buffers are looked through one by one.
const LISTED_BUFFERS_MAX: usize = 16;

impl MergedBuffers {
    /// A view into one of `buffers`, as one into these.
    #[inline]
    fn moved(&mut self, view: u128, buffers: &[Buffer]) -> u128 {
        if is_inline(&view) { view } else { ViewBuffer::replace(view, |buffer| self.number(&buffers[buffer as usize])) }
    }

    /// The number of `buffer` in the merged list.
    fn number(&mut self, buffer: &Buffer) -> u32 {
        let name = |buffer: &Buffer| (buffer.as_ptr(), buffer.len());
        let known = match self.numbers.is_empty() {
            true => self.buffers.iter().position(|known| name(known) == name(buffer)).map(|at| at as u32),
            false => self.numbers.get(&name(buffer)).copied(),
        };
        if let Some(number) = known {
            return number;
        }
        self.buffers.push(buffer.clone());
        match self.buffers.len() {
            0..=LISTED_BUFFERS_MAX => {}
            _ if self.numbers.is_empty() => {
                self.numbers = (0..).zip(&self.buffers).map(|(number, buffer)| (name(buffer), number)).collect();
            }
            n => _ = self.numbers.insert(name(buffer), n as u32 - 1),
        }
        self.buffers.len() as u32 - 1
    }
}

/// The buffer number inside a view of more than 12 bytes: bits 64 .. 96.
struct ViewBuffer;

impl ViewBuffer {
    #[inline]
    fn replace(view: u128, number: impl FnOnce(u32) -> u32) -> u128 {
        let old = (view >> 64) as u32;
        view ^ u128::from(old ^ number(old)) << 64
    }
}

/// A view array from parts of view arrays.
#[allow(unsafe_code)]
fn assemble(
    data_type: &DataType,
    views: ScalarBuffer<u128>,
    buffers: Vec<Buffer>,
    nulls: Option<NullBuffer>,
) -> ArrayRef {
    // SAFETY: every view was valid in its source array (Arrow checks that when an array is made),
    // and `ViewBuffer::replace` points it to the same bytes in the merged list; the caller gives
    // one bit of validity a view. Arrow's check would read all text again, 6 to 11 ns a row, where
    // the gather itself takes 2 (examples/kernels.rs).
    match data_type {
        DataType::Utf8View => Arc::new(unsafe { StringViewArray::new_unchecked(views, buffers, nulls) }),
        _ => Arc::new(unsafe { BinaryViewArray::new_unchecked(views, buffers, nulls) }),
    }
}

/// Rewrites view columns whose buffers are mostly unused, so that long-lived columns keep little
/// but their own bytes alive. Columns of other types, and views inside nested columns, stay as they
/// are.
pub fn compact_views(columns: Columns) -> Columns {
    compact_shared_views(columns, 1)
}

/// The same of columns whose buffers so many have in common, each of whom uses a part.
pub fn compact_shared_views(columns: Columns, sharers: usize) -> Columns {
    if columns.iter().all(|column| !is_sparse(column, sharers)) {
        return columns;
    }
    let compact = |column: &ArrayRef| if is_sparse(column, sharers) { rewrite_views(column) } else { column.clone() };
    columns.iter().map(compact).collect()
}

/// Whether a view column keeps much more alive than its part of what it uses.
fn is_sparse(array: &ArrayRef, sharers: usize) -> bool {
    if !matches!(array.data_type(), DataType::Utf8View | DataType::BinaryView) {
        return false;
    }
    let Cells::Views(Views { views, buffers }) = cells(array) else { return false };
    if buffers.is_empty() {
        return false;
    }
    let mut held: Vec<(usize, usize)> =
        buffers.iter().map(|buffer| (buffer.data_ptr().as_ptr() as usize, buffer.capacity())).collect();
    held.sort_unstable();
    held.dedup_by_key(|(address, _)| *address);
    let held: usize = held.iter().map(|(_, capacity)| capacity).sum();
    if held < COMPACT_BYTES_MIN {
        return false;
    }
    let used: usize = views.iter().map(|&view| view as u32 as usize).filter(|&len| len > INLINE_BYTES_MAX).sum();
    held / COMPACT_RATIO_MIN / sharers > used && held - used >= COMPACT_BYTES_MIN
}

fn rewrite_views(array: &ArrayRef) -> ArrayRef {
    match array.data_type() {
        DataType::Utf8View => Arc::new(array.as_string_view().gc()),
        _ => Arc::new(array.as_binary_view().gc()),
    }
}
