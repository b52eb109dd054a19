//! What happens to the rows of a partition at one time, as rows in the place of others.

use std::cmp::Ordering;
use std::ops::Range;

use anabranch_batch::{Batch, Columns, gather};
use arrow::array::ArrayRef;

use super::leaves::Leaves;
use super::row_order::RowOrder;

/// Changes that are no further apart are looked at together: their frames are near each other.
const ROWS_BETWEEN: usize = if cfg!(test) { 3 } else { 256 };

/// Rows in the place of others.
pub(super) struct Splice {
    /// The rows that go, as the partition is when the splices before have happened.
    pub rows: Range<usize>,
    /// The rows that come.
    pub with: Columns,
}

/// A change at one place.
struct Edit {
    at: usize,
    n_gone: usize,
    /// Rows of the batch.
    new: Vec<u32>,
}

/// The rows of a batch as splices of a partition, in order; all in one if `is_one`. `None` if a row
/// is taken away that is not there.
pub(super) fn splices(
    leaves: &Leaves,
    order: &RowOrder,
    batch: &Batch,
    rows: &[u32],
    is_one: bool,
) -> Option<Vec<Splice>> {
    let edits = edits(leaves, order, batch, rows)?;
    let width: Vec<usize> = (0..batch.columns().len()).collect();
    let (mut splices, mut shift) = (Vec::new(), 0isize);
    let is_near = |left: &Edit, right: &Edit| is_one || right.at - (left.at + left.n_gone) <= ROWS_BETWEEN;
    for near in edits.chunk_by(is_near) {
        let first = near[0].at;
        let end = near.last().map_or(first, |edit| edit.at + edit.n_gone);
        let old = leaves.load(first..end, &width);
        let sources: [&[ArrayRef]; 2] = [&old, batch.columns()];
        let (mut picks, mut at) = (Vec::new(), first);
        for edit in near {
            picks.extend((at..edit.at).map(|row| (0, (row - first) as u32)));
            picks.extend(edit.new.iter().map(|row| (1, *row)));
            at = edit.at + edit.n_gone;
        }
        let from = first.checked_add_signed(shift)?;
        shift += picks.len() as isize - (end - first) as isize;
        splices.push(Splice { rows: from..from + (end - first), with: gather::interleave(&sources, &picks) });
    }
    Some(splices)
}

/// The changes of the rows, place by place.
fn edits(leaves: &Leaves, order: &RowOrder, batch: &Batch, rows: &[u32]) -> Option<Vec<Edit>> {
    let among = order.between(batch.columns(), batch.columns());
    let mut rows = rows.to_vec();
    rows.sort_by(|a, b| among.compare(*a as usize, *b as usize));
    let mut edits: Vec<Edit> = Vec::new();
    for same in rows.chunk_by(|a, b| among.compare(*a as usize, *b as usize) == Ordering::Equal) {
        let diff: i64 = same.iter().map(|row| batch.diffs().get(*row as usize)).sum();
        if diff == 0 {
            continue;
        }
        let places = leaves.places(order, batch.columns(), same[0] as usize);
        let n = diff.unsigned_abs() as usize;
        match diff > 0 {
            true => {
                let new = std::iter::repeat_n(same[0], n);
                match edits.last_mut().filter(|last| last.at == places.end && last.n_gone == 0) {
                    Some(last) => last.new.extend(new),
                    None => edits.push(Edit { at: places.end, n_gone: 0, new: new.collect() }),
                }
            }
            false if n > places.len() => return None,
            false => edits.push(Edit { at: places.start, n_gone: n, new: vec![] }),
        }
    }
    Some(edits)
}
