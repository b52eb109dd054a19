//! The rows of a large partition in order, in leaves that can be replaced one by one.
//!
//! Law: the rows of all leaves, one after another, are the partition's rows now; a row with
//! multiplicity n comes n times. No leaf is empty.
//!
//! Cost: a row is found by comparing it with the ends of some leaves; a change costs the leaves
//! that it touches, and a word for each leaf.

use std::cmp::Ordering;
use std::ops::Range;

use anabranch_batch::Columns;
use anabranch_batch::gather::{self, compact_views};
use anabranch_batch::order::Comparator;
use arrow::array::{Array, ArrayRef};

use super::row_order::RowOrder;

/// Rows of a leaf that is made; changes leave some with up to twice as many.
const LEAF_ROWS: usize = if cfg!(test) { 5 } else { 512 };

/// See the module.
pub(super) struct Leaves {
    leaves: Vec<Columns>,
    n_rows: usize,
    bytes: usize,
}

impl Leaves {
    /// Of these rows, in order; at least one.
    pub(super) fn new(columns: &[ArrayRef]) -> Leaves {
        let leaves = cut(columns);
        Leaves { n_rows: columns[0].len(), bytes: bytes_of(&leaves), leaves }
    }

    pub(super) fn n_rows(&self) -> usize {
        self.n_rows
    }

    pub(super) fn size_bytes(&self) -> usize {
        self.bytes
    }

    /// The first leaf.
    pub(super) fn first(&self) -> &Columns {
        &self.leaves[0]
    }

    /// Where the rows lie that are equal to this one; without any, where it would lie.
    pub(super) fn places(&self, order: &RowOrder, columns: &[ArrayRef], row: usize) -> Range<usize> {
        let first = self.count(order, columns, row, |of_leaf| of_leaf == Ordering::Less);
        first..self.count(order, columns, row, |of_leaf| of_leaf != Ordering::Greater)
    }

    /// The number of rows that lie before, as their order against the row tells.
    fn count(&self, order: &RowOrder, columns: &[ArrayRef], row: usize, is_before: impl Fn(Ordering) -> bool) -> usize {
        let n_rows = |leaf: &Columns| leaf[0].len();
        let whole = self.leaves.partition_point(|leaf| {
            let order: Comparator = order.between(leaf, columns);
            is_before(order.compare(n_rows(leaf) - 1, row))
        });
        let before: usize = self.leaves[..whole].iter().map(n_rows).sum();
        let Some(leaf) = self.leaves.get(whole) else { return before };
        let order = order.between(leaf, columns);
        let (mut low, mut high) = (0, n_rows(leaf));
        while low < high {
            let middle = low + (high - low) / 2;
            if is_before(order.compare(middle, row)) { low = middle + 1 } else { high = middle }
        }
        before + low
    }

    /// The columns `read` of some rows.
    pub(super) fn load(&self, rows: Range<usize>, read: &[usize]) -> Columns {
        let (mut at, mut parts) = (0, Vec::<Vec<ArrayRef>>::new());
        for leaf in &self.leaves {
            let len = leaf[0].len();
            let (from, to) = (rows.start.clamp(at, at + len) - at, rows.end.clamp(at, at + len) - at);
            if from < to {
                parts.push(read.iter().map(|&column| leaf[column].slice(from, to - from)).collect());
            }
            at += len;
            if at >= rows.end {
                break;
            }
        }
        if parts.is_empty() {
            return read.iter().map(|&column| self.leaves[0][column].slice(0, 0)).collect();
        }
        gather::concat(&parts.iter().map(|part| &**part).collect::<Vec<_>>())
    }

    /// Puts other rows in the place of some. There have to be rows afterwards.
    pub(super) fn replace(&mut self, rows: Range<usize>, with: &[ArrayRef]) {
        // The leaves that are concerned, and the place of the first row of them.
        let (mut first, mut at) = (0, 0);
        while first + 1 < self.leaves.len() && at + self.leaves[first][0].len() <= rows.start {
            at += self.leaves[first][0].len();
            first += 1;
        }
        let n_new = rows.start - at + with[0].len();
        let (mut behind, mut to) = (first, at);
        let is_short = |to: usize| to < rows.end || n_new + (to - rows.end) < LEAF_ROWS / 4;
        // (A small rest goes with the next leaf.)
        while behind < self.leaves.len() && (behind == first || is_short(to)) {
            to += self.leaves[behind][0].len();
            behind += 1;
        }
        let all: Vec<usize> = (0..with.len()).collect();
        let (head, tail) = (self.load(at..rows.start, &all), self.load(rows.end..to, &all));
        let new = gather::concat(&[&head, with, &tail]);
        self.n_rows = self.n_rows - rows.len() + with[0].len();
        self.bytes -= bytes_of(&self.leaves[first..behind]);
        let new = match new[0].len() {
            0 => vec![],
            len if len <= 2 * LEAF_ROWS => vec![compact_views(new)],
            _ => cut(&new),
        };
        self.bytes += bytes_of(&new);
        self.leaves.splice(first..behind, new);
    }
}

/// Copies of rows, leaf by leaf, that keep no others alive.
fn cut(columns: &[ArrayRef]) -> Vec<Columns> {
    let n_rows = columns[0].len() as u32;
    let leaf = |from: u32| {
        let rows: Vec<u32> = (from..(from + LEAF_ROWS as u32).min(n_rows)).collect();
        compact_views(gather::take(columns, &rows))
    };
    (0..n_rows).step_by(LEAF_ROWS).map(leaf).collect()
}

fn bytes_of(leaves: &[Columns]) -> usize {
    leaves.iter().flat_map(|leaf| leaf.iter()).map(|column| column.get_array_memory_size()).sum()
}
