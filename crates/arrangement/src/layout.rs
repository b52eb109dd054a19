//! How the rows of an arrangement are laid out: which columns are the key, and in what order a
//! key's values lie.
//!
//! Law: every layout gives a total order of updates, the same in every process: key hash, key
//! columns ascending, *value word*, value columns, time. The value word is one `u64` a row: a cheap
//! hash of the value columns, or an order-preserving prefix of them. It decides nearly every
//! comparison of values; the columns themselves decide the rest.

use std::sync::Arc;

use anabranch_batch::order::{Comparator, Direction, prefixes};
use anabranch_batch::{Columns, hash};
use arrow::array::ArrayRef;
use arrow::datatypes::DataType;

use crate::chunk::Exact;

/// The direction of every order that no query asked for: ascending, nulls last.
pub(crate) const ASCENDING: Direction = Direction { descending: false, nulls_first: false };

/// How rows of an arrangement are laid out. Rows keep all columns of the collection in their
/// original order; `key` names positions, the other columns are the value. No key columns (one
/// group) and no value columns (a set) are both legal.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Layout {
    /// Positions of the key columns, in key order.
    pub key: Vec<usize>,
    /// The order of values under one key.
    pub values: ValueOrder,
    /// The types of all columns of a row.
    pub types: Vec<DataType>,
}

/// The order of the values under one key.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum ValueOrder {
    /// By hash: the cheapest, for those who only need equal values side by side.
    Hash,
    /// By these columns in these directions, ties by the remaining value columns, ascending, nulls
    /// last.
    Sorted(Vec<(usize, Direction)>),
}

impl Layout {
    /// Positions of the value columns, in the order in which values compare: sort columns first.
    pub fn value_columns(&self) -> Vec<usize> {
        let mut columns: Vec<usize> = self.sort_columns().map(|(column, _)| column).collect();
        for column in 0..self.types.len() {
            if !self.key.contains(&column) && !columns.contains(&column) {
                columns.push(column);
            }
        }
        columns
    }

    /// The direction of each of [`Layout::value_columns`].
    pub(crate) fn value_directions(&self) -> Vec<Direction> {
        let mut directions: Vec<Direction> = self.sort_columns().map(|(_, direction)| direction).collect();
        directions.resize(self.value_columns().len(), ASCENDING);
        directions
    }

    /// The value word of every row, and whether equal words mean equal values.
    pub(crate) fn value_words(&self, columns: &[ArrayRef], rows: usize) -> (Vec<u64>, bool) {
        let values = pick_columns(columns, &self.value_columns());
        if values.is_empty() {
            return (vec![0; rows], true);
        }
        match &self.values {
            ValueOrder::Hash => (hash::word_columns(&values, rows), hash::is_exact(&values)),
            ValueOrder::Sorted(_) => {
                let (words, exact) = prefixes(&values, &self.value_directions(), rows);
                (words, exact && values.len() == 1)
            }
        }
    }

    /// Whether the value words of rows of which this is known are as cheap to compute again as to
    /// keep.
    pub(crate) fn are_words_cheap(&self, exact: Exact) -> bool {
        exact.value && self.values == ValueOrder::Hash
    }

    /// The key column, if keys that are equal where their hashes are ([`Exact::key`]) follow from
    /// their hashes.
    pub(crate) fn invertible_key(&self) -> Option<usize> {
        match self.key[..] {
            [key] if hash::is_word(&self.types[key]) => Some(key),
            _ => None,
        }
    }

    /// Whether keys may be packed: if they follow from their hashes, and rows are not walked one by
    /// one, in the order of their values.
    pub(crate) fn can_be_packed(&self) -> bool {
        self.values == ValueOrder::Hash && self.invertible_key().is_some()
    }

    /// Whether equal key hashes of these rows mean equal keys.
    pub(crate) fn is_key_exact(&self, columns: &[ArrayRef]) -> bool {
        is_exact_key(&pick_columns(columns, &self.key))
    }

    /// Compares the keys of rows of `left` with those of rows of `right`.
    pub(crate) fn key_comparator(&self, left: &[ArrayRef], right: &[ArrayRef]) -> Comparator {
        let directions = vec![ASCENDING; self.key.len()];
        Comparator::new(&pick_columns(left, &self.key), &pick_columns(right, &self.key), &directions)
    }

    /// Compares the values of rows of `left` with those of rows of `right`.
    pub(crate) fn value_comparator(&self, left: &[ArrayRef], right: &[ArrayRef]) -> Comparator {
        let values = self.value_columns();
        Comparator::new(&pick_columns(left, &values), &pick_columns(right, &values), &self.value_directions())
    }

    /// Sort columns that are not part of the key (within one key those are constant), each once.
    fn sort_columns(&self) -> impl Iterator<Item = (usize, Direction)> + '_ {
        let sort: &[(usize, Direction)] = match &self.values {
            ValueOrder::Hash => &[],
            ValueOrder::Sorted(sort) => sort,
        };
        let is_first = |at: usize, column: usize| !sort[..at].iter().any(|&(earlier, _)| earlier == column);
        let wanted = move |&(at, &(column, _)): &(usize, &(usize, Direction))| {
            !self.key.contains(&column) && is_first(at, column)
        };
        sort.iter().enumerate().filter(wanted).map(|(_, &sort)| sort)
    }
}

/// Whether equal hashes over these key columns mean equal keys. A key of no columns has one value.
pub(crate) fn is_exact_key(columns: &[ArrayRef]) -> bool {
    columns.is_empty() || hash::is_exact(columns)
}

/// The columns at `positions`.
pub(crate) fn pick_columns(columns: &[ArrayRef], positions: &[usize]) -> Columns {
    positions.iter().map(|&position| Arc::clone(&columns[position])).collect()
}
