//! Unnest: one row for each element of a list.
//!
//! Law: stateless; each output row has the time and diff of the row it came from. An empty or NULL list yields nothing, or with
//! `outer` one row with a NULL element. Cost: one gather.

use std::sync::Arc;

use anabranch_batch::{Batch, Columns, gather};
use arrow::array::{Array, ArrayRef, AsArray, UInt32Array};
use arrow::compute;
use arrow::datatypes::DataType;

use crate::tactic::Output;

/// Replaces a list column by its elements.
#[derive(Clone, Copy, Debug)]
pub struct Unnest {
    /// Position of the list column.
    pub column: usize,
    /// Whether a row without elements yields one row with a NULL.
    pub outer: bool,
}

impl Unnest {
    /// Applies the verb to a batch.
    pub fn apply(&self, batch: Batch, out: &mut Output) {
        let (rows, elements) = self.elements(batch.column(self.column));
        let repeated = batch.take(&rows);
        let mut columns: Vec<ArrayRef> = repeated.columns().to_vec();
        columns[self.column] = elements;
        out.give_rows(repeated.with_columns(Columns::from(columns)));
    }

    /// For each output row the input row it comes from, and its element.
    fn elements(&self, lists: &ArrayRef) -> (Vec<u32>, ArrayRef) {
        let mut rows = Vec::new();
        let mut picks: Vec<Option<u32>> = Vec::new();
        let values = match lists.data_type() {
            DataType::LargeList(_) => {
                let list = lists.as_list::<i64>();
                let offsets = list.offsets().iter().map(|offset| *offset as usize).collect::<Vec<_>>();
                self.pick(lists, &offsets, &mut rows, &mut picks);
                Arc::clone(list.values())
            }
            DataType::FixedSizeList(_, size) => {
                let list = lists.as_fixed_size_list();
                let offsets = (0..=list.len()).map(|i| i * *size as usize).collect::<Vec<_>>();
                self.pick(lists, &offsets, &mut rows, &mut picks);
                Arc::clone(list.values())
            }
            _ => {
                let list = lists.as_list::<i32>();
                let offsets = list.offsets().iter().map(|offset| *offset as usize).collect::<Vec<_>>();
                self.pick(lists, &offsets, &mut rows, &mut picks);
                Arc::clone(list.values())
            }
        };
        let elements = if picks.iter().all(Option::is_some) {
            let picks: Vec<u32> = picks.into_iter().flatten().collect();
            Arc::clone(&gather::take(&[values], &picks)[0])
        } else {
            compute::take(&values, &UInt32Array::from(picks), None).expect("picks lie inside the values")
        };
        (rows, elements)
    }

    fn pick(&self, lists: &ArrayRef, offsets: &[usize], rows: &mut Vec<u32>, picks: &mut Vec<Option<u32>>) {
        for row in 0..lists.len() {
            let elements = offsets[row]..offsets[row + 1];
            if lists.is_null(row) || elements.is_empty() {
                if self.outer {
                    rows.push(row as u32);
                    picks.push(None);
                }
                continue;
            }
            for element in elements {
                rows.push(row as u32);
                picks.push(Some(element as u32));
            }
        }
    }
}
