//! The order of a partition's rows: the window's own keys, then all other columns.

use anabranch_arrangement::Layout;
use anabranch_batch::order::{Comparator, Direction};
use anabranch_spec::order::SortKey;
use arrow::array::ArrayRef;

use super::spec::WindowSpec;

/// A total order: rows that are equal in it are equal.
#[derive(Clone)]
pub(super) struct RowOrder {
    columns: Vec<usize>,
    directions: Vec<Direction>,
    /// How many of these are the window's own: the others break ties.
    n_asked: usize,
}

impl RowOrder {
    pub(super) fn new(spec: &WindowSpec, layout: &Layout) -> RowOrder {
        let columns = layout.value_columns();
        let asked: Vec<&SortKey> = spec.window.order.iter().collect();
        let direction = |column: &usize| asked.iter().find(|key| key.column == *column).map(|key| key.direction());
        let directions: Vec<Option<Direction>> = columns.iter().map(direction).collect();
        RowOrder {
            n_asked: directions.iter().flatten().count(),
            directions: directions.into_iter().map(|of| of.unwrap_or(Direction::ASCENDING)).collect(),
            columns,
        }
    }

    /// Compares rows of one set of columns with rows of another.
    pub(super) fn between(&self, left: &[ArrayRef], right: &[ArrayRef]) -> Comparator {
        self.by_first(self.columns.len(), left, right)
    }

    /// The same by the window's own keys only: peers are equal.
    pub(super) fn between_peers(&self, left: &[ArrayRef], right: &[ArrayRef]) -> Comparator {
        self.by_first(self.n_asked, left, right)
    }

    fn by_first(&self, n: usize, left: &[ArrayRef], right: &[ArrayRef]) -> Comparator {
        let of = |columns: &[ArrayRef]| -> Vec<ArrayRef> {
            self.columns[..n].iter().map(|&at| columns[at].clone()).collect()
        };
        Comparator::new(&of(left), &of(right), &self.directions[..n])
    }
}
