//! What is read off values in order: percentiles and the greatest few.
//!
//! Lists hold places of values, in order, with multiplicities; all are positive. Sources are
//! columns of values, the last of which is a single NULL. Source: Trill 1.6 of its aggregates
//! (PercentileContinuous, PercentileDiscrete, TopK), whose percentile at 0 is 0; here it is the
//! least value.

use std::sync::Arc;

use anabranch_batch::equal::rows_equal;
use anabranch_batch::{Diff, types};
use arrow::array::{Array, ArrayRef, AsArray, Float64Array, Int64Array, ListArray, NullBufferBuilder, StructArray};
use arrow::buffer::OffsetBuffer;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Fields, Float64Type};

use super::ordered::picked;
use crate::ordered::trace::Place;

/// The values at `part` of the way, interpolated.
pub(super) fn continuous(lists: &[Vec<(Place, Diff)>], sources: &[ArrayRef], part: f64) -> ArrayRef {
    let at = |list: &[(Place, Diff)]| part * (total(list).max(1) - 1) as f64;
    let lower: Vec<Option<Place>> = lists.iter().map(|list| nth(list, at(list).floor() as Diff)).collect();
    let upper: Vec<Option<Place>> = lists.iter().map(|list| nth(list, at(list).ceil() as Diff)).collect();
    let as_double =
        |places: &[Option<Place>]| cast(&picked(places, sources), &DataType::Float64).expect("numbers become doubles");
    let (lower, upper) = (as_double(&lower), as_double(&upper));
    let (lower, upper) = (lower.as_primitive::<Float64Type>(), upper.as_primitive::<Float64Type>());
    let between = |list: &[(Place, Diff)], lower: Option<f64>, upper: Option<f64>| {
        let (lower, upper) = (lower?, upper?);
        let rest = at(list).fract();
        Some(if rest == 0.0 { lower } else { lower + (upper - lower) * rest })
    };
    let bounds = lower.iter().zip(upper);
    let values = lists.iter().zip(bounds).map(|(list, (lower, upper))| between(list, lower, upper));
    Arc::new(values.collect::<Float64Array>())
}

/// The places of the values of rank `ceil(part * n)`.
pub(super) fn discrete(lists: &[Vec<(Place, Diff)>], part: f64) -> Vec<Option<Place>> {
    let rank = |list: &[(Place, Diff)]| ((part * total(list) as f64).ceil() as Diff).max(1);
    lists.iter().map(|list| nth(list, rank(list) - 1)).collect()
}

/// The places of the most frequent values, the first in the order of those that are as frequent.
pub(super) fn most_frequent(lists: &[Vec<(Place, Diff)>], sources: &[ArrayRef]) -> Vec<Option<Place>> {
    let all: Vec<Option<Place>> = lists.iter().flatten().map(|&(place, _)| Some(place)).collect();
    let values = [picked(&all, sources)];
    let mut start = 0u32;
    let mut of_list = |list: &Vec<(Place, Diff)>| {
        let (mut best, mut best_count, mut count) = (None, 0, 0);
        let mut first = None;
        for (at, &(place, more)) in (start..).zip(list) {
            // (Equal values of different runs have different places.)
            let is_same = at > start && rows_equal(&values, &[at - 1], &values, &[at])[0];
            (first, count) = if is_same { (first, count + more) } else { (Some(place), more) };
            if count > best_count {
                (best, best_count) = (first, count);
            }
        }
        start += list.len() as u32;
        best
    };
    lists.iter().map(&mut of_list).collect()
}

/// The type of a list of ranked values of a planned or stored type.
pub fn ranked_type(value: &DataType) -> DataType {
    let fields = ranked_fields(&types::widened_type(value));
    DataType::List(Arc::new(Field::new_list_field(DataType::Struct(fields), true)))
}

fn ranked_fields(value: &DataType) -> Fields {
    Fields::from(vec![Field::new("rank", DataType::Int64, true), Field::new("value", value.clone(), true)])
}

/// The first `k` values of each list with their ranks, ties included.
pub(super) fn ranked(lists: &[Vec<(Place, Diff)>], sources: &[ArrayRef], k: usize, output_type: &DataType) -> ArrayRef {
    let all: Vec<Option<Place>> = lists.iter().flatten().map(|&(place, _)| Some(place)).collect();
    let values = [picked(&all, sources)];
    let (mut places, mut ranks, mut lengths) = (Vec::new(), Vec::new(), Vec::new());
    let mut nulls = NullBufferBuilder::new(lists.len());
    let mut start = 0u32;
    for list in lists {
        let (mut seen, mut rank) = (0usize, 1);
        let before = places.len();
        for (at, &(place, count)) in (start..).zip(list) {
            let ties = at > start && rows_equal(&values, &[at - 1], &values, &[at])[0];
            if !ties {
                if seen >= k {
                    break;
                }
                rank = seen as i64 + 1;
            }
            places.extend(std::iter::repeat_n(Some(place), count as usize));
            ranks.extend(std::iter::repeat_n(rank, count as usize));
            seen += count as usize;
        }
        start += list.len() as u32;
        lengths.push(places.len() - before);
        nulls.append(!list.is_empty());
    }
    let values = types::widened(&picked(&places, sources));
    let fields = ranked_fields(values.data_type());
    let ranked = StructArray::new(fields, vec![Arc::new(Int64Array::from(ranks)), values], None);
    let DataType::List(field) = output_type else { unreachable!("types were checked when the call was made") };
    Arc::new(ListArray::new(field.clone(), OffsetBuffer::from_lengths(lengths), Arc::new(ranked), nulls.finish()))
}

fn total(list: &[(Place, Diff)]) -> Diff {
    list.iter().map(|&(_, count)| count).sum()
}

/// The value that `n` others come before.
fn nth(list: &[(Place, Diff)], n: Diff) -> Option<Place> {
    let mut skip = n;
    let holds = |&&(_, count): &&(Place, Diff)| {
        skip -= count;
        skip < 0
    };
    list.iter().find(holds).map(|&(place, _)| place)
}
