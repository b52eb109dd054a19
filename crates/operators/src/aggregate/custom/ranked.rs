//! The greatest values of lists of greatest values.
//!
//! Law: the `k` greatest values of all rows, with their ranks and ties, are those of the lists of
//! the `k` greatest of disjoint parts of the rows. A value's rank in its part is at most that among
//! all, so no list lacks a value of the result.

use std::cmp::Ordering;
use std::sync::Arc;

use anabranch_batch::order::ValueOrder;
use arrow::array::{
    Array, ArrayRef, AsArray, Int64Array, ListArray, NullArray, NullBufferBuilder, StructArray, UInt32Array,
    new_empty_array,
};
use arrow::buffer::OffsetBuffer;
use arrow::compute::{concat, take};
use arrow::datatypes::DataType;
use arrow::error::ArrowError;

use super::user::{GroupRows, UserAggregate};

/// See the [module page](self). Lists and results are as of `top_k`: (rank, value), greatest first.
pub(super) struct RankedLists {
    /// How many.
    pub k: usize,
}

/// The values of the lists so far, a column for each.
type Values = Vec<ArrayRef>;

/// Columns of a state that are put together to one of the greatest values.
const COLUMNS_MAX: usize = 16;

impl UserAggregate for RankedLists {
    type State = Values;

    fn name(&self) -> &str {
        "top_k"
    }

    fn output_type(&self, arguments: &[DataType]) -> Result<DataType, String> {
        match arguments {
            [list @ DataType::List(field)] if matches!(field.data_type(), DataType::Struct(_)) => Ok(list.clone()),
            _ => Err("it takes lists of ranked values".to_owned()),
        }
    }

    fn initial(&self) -> Values {
        vec![]
    }

    fn accumulate(&self, states: &mut [Values], rows: &GroupRows<'_>) -> Result<(), String> {
        let lists = rows.column(0).as_list::<i32>();
        for (state, row) in rows.iter().filter(|(_, row)| lists.is_valid(*row)) {
            let values = &mut states[state];
            values.push(Arc::clone(lists.value(row).as_struct().column(1)));
            if values.len() == COLUMNS_MAX {
                let value = values[0].data_type().clone();
                let (_, greatest) = self.ranked(values, &value).map_err(|error| error.to_string())?;
                *values = vec![greatest];
            }
        }
        Ok(())
    }

    fn compute(&self, states: &[&Values]) -> Result<ArrayRef, String> {
        // (NULLs are of any type.)
        let Some(first) = states.iter().find_map(|values| values.first()) else {
            return Ok(Arc::new(NullArray::new(states.len())));
        };
        let (mut ranks, mut lengths, mut chosen) = (vec![], vec![], vec![]);
        let mut nulls = NullBufferBuilder::new(states.len());
        for values in states {
            let (ranked, values) = self.ranked(values, first.data_type()).map_err(|error| error.to_string())?;
            nulls.append(!ranked.is_empty());
            lengths.push(ranked.len());
            ranks.extend(ranked);
            chosen.push(values);
        }
        let chosen: Vec<&dyn Array> = chosen.iter().map(AsRef::as_ref).collect();
        let values = concat(&chosen).map_err(|error| error.to_string())?;
        let DataType::List(field) = crate::aggregate::percentiles::ranked_type(values.data_type()) else {
            unreachable!("ranked values are lists")
        };
        let DataType::Struct(fields) = field.data_type() else { unreachable!("ranked values are pairs") };
        let pairs = StructArray::new(fields.clone(), vec![Arc::new(Int64Array::from(ranks)), values], None);
        Ok(Arc::new(ListArray::new(field, OffsetBuffer::from_lengths(lengths), Arc::new(pairs), nulls.finish())))
    }

    fn heap_bytes(&self, state: &Values) -> usize {
        state.iter().map(|values| values.to_data().get_slice_memory_size().unwrap_or_default()).sum()
    }
}

impl RankedLists {
    /// Ranks and values of the greatest, with ties.
    fn ranked(&self, lists: &Values, value: &DataType) -> Result<(Vec<i64>, ArrayRef), ArrowError> {
        if lists.is_empty() {
            return Ok((vec![], new_empty_array(value)));
        }
        let lists: Vec<&dyn Array> = lists.iter().map(AsRef::as_ref).collect();
        let all = concat(&lists)?;
        let columns = [Arc::clone(&all)];
        let ascending = ValueOrder::new(&columns, all.len());
        let mut order: Vec<u32> = (0..all.len() as u32).collect();
        order.sort_by(|&a, &b| ascending.compare(b, a));
        let mut ranks: Vec<i64> = vec![];
        for (at, &place) in order.iter().enumerate() {
            let is_tied = at > 0 && ascending.compare(order[at - 1], place) == Ordering::Equal;
            match ranks.last() {
                Some(&rank) if is_tied => ranks.push(rank),
                _ if at >= self.k => break,
                _ => ranks.push(at as i64 + 1),
            }
        }
        order.truncate(ranks.len());
        let places = UInt32Array::from(order);
        Ok((ranks, take(&all, &places, None)?))
    }
}
