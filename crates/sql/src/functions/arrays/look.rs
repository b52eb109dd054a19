//! Functions that look into arrays: lengths, places of elements, containment, order.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int32Array, ListArray, StringViewArray, UInt32Array, new_empty_array};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::take;
use arrow::datatypes::{DataType, Field};
use datafusion_common::{Result as DfResult, exec_err};

use super::{Arguments, comparator, places};

pub(super) fn position(args: &Arguments) -> DfResult<ArrayRef> {
    let list = args.list(0);
    let compare = comparator(list.values(), &args.elements[0])?;
    for row in 0..args.n_rows {
        if args.int(0, row, 1).is_none() && list.is_valid(row) {
            return exec_err!("initial position must not be null");
        }
    }
    Ok(args.numbers(|row| {
        let from = args.int(0, row, 1)?;
        let found =
            places(list, row)?.enumerate().find(|(n, place)| *n as i64 + 1 >= from && compare(*place, row).is_eq());
        found.map(|(n, _)| n as i64 + 1)
    }))
}

pub(super) fn positions(args: &Arguments) -> DfResult<ArrayRef> {
    let list = args.list(0);
    let compare = comparator(list.values(), &args.elements[0])?;
    let mut found: Vec<i32> = vec![];
    let mut lengths = vec![];
    let mut is_valid = vec![];
    for row in 0..args.n_rows {
        let before = found.len();
        let all = places(list, row).into_iter().flatten().enumerate();
        found.extend(all.filter(|(_, place)| compare(*place, row).is_eq()).map(|(n, _)| n as i32 + 1));
        lengths.push(found.len() - before);
        is_valid.push(list.is_valid(row));
    }
    let field = Arc::new(Field::new_list_field(DataType::Int32, true));
    let found = Arc::new(Int32Array::from(found));
    Ok(Arc::new(ListArray::try_new(
        field,
        OffsetBuffer::from_lengths(lengths),
        found,
        Some(NullBuffer::from(is_valid)),
    )?))
}

/// `width_bucket(x, bounds)`: how many of the bounds, which ascend, the value has reached.
pub(super) fn bucket(args: &Arguments) -> DfResult<ArrayRef> {
    let list = args.list(0);
    let compare = comparator(list.values(), &args.elements[0])?;
    let is_asked = |row: usize| args.elements[0].is_valid(row) && list.is_valid(row);
    for row in (0..args.n_rows).filter(|row| is_asked(*row)) {
        if places(list, row).into_iter().flatten().any(|place| list.values().is_null(place)) {
            return exec_err!("thresholds array must not contain NULLs");
        }
    }
    Ok(args.numbers(|row| {
        let places = places(list, row).filter(|_| is_asked(row))?;
        Some(places.take_while(|place| compare(*place, row).is_le()).count() as i64)
    }))
}

/// The lengths of an array's dimensions; none if it is empty, `None` if it is NULL.
fn extents(list: &ListArray, row: usize) -> Option<Vec<i64>> {
    let places = places(list, row)?;
    let mut extents = vec![places.len() as i64];
    if places.is_empty() {
        return Some(vec![]);
    }
    if let DataType::List(_) = list.values().data_type() {
        let inner = extents_of(list.values(), places.start);
        if inner.is_empty() {
            return Some(vec![]);
        }
        extents.extend(inner);
    }
    Some(extents)
}

fn extents_of(lists: &ArrayRef, row: usize) -> Vec<i64> {
    extents(lists.as_list(), row).unwrap_or_default()
}

pub(super) fn length(args: &Arguments) -> DfResult<ArrayRef> {
    let list = args.list(0);
    Ok(args.numbers(|row| {
        let dimension = args.int(0, row, 1)?.checked_sub(1)?;
        extents(list, row)?.get(usize::try_from(dimension).ok()?).copied()
    }))
}

pub(super) fn lower(args: &Arguments) -> DfResult<ArrayRef> {
    let list = args.list(0);
    Ok(args.numbers(|row| {
        let dimension = usize::try_from(args.int(0, row, 1)?.checked_sub(1)?).ok()?;
        extents(list, row)?.get(dimension).map(|_| 1)
    }))
}

pub(super) fn cardinality(args: &Arguments) -> DfResult<ArrayRef> {
    let list = args.list(0);
    Ok(args.numbers(|row| {
        let extents = extents(list, row)?;
        Some(if extents.is_empty() { 0 } else { extents.iter().product() })
    }))
}

pub(super) fn n_dimensions(args: &Arguments) -> DfResult<ArrayRef> {
    let list = args.list(0);
    Ok(args.numbers(|row| Some(extents(list, row)?.len() as i64).filter(|n| *n > 0)))
}

pub(super) fn dimensions(args: &Arguments) -> DfResult<ArrayRef> {
    let list = args.list(0);
    let texts = (0..args.n_rows).map(|row| {
        let extents = extents(list, row).filter(|extents| !extents.is_empty())?;
        Some(extents.iter().map(|n| format!("[1:{n}]")).collect::<String>())
    });
    Ok(Arc::new(texts.collect::<StringViewArray>()))
}

pub(super) fn contains(args: &Arguments) -> DfResult<ArrayRef> {
    let (left, right) = (args.list(0), args.list(1));
    let compare = comparator(left.values(), right.values())?;
    Ok(args.tests(|row| {
        let (has, wanted) = (places(left, row)?, places(right, row)?);
        let is_there =
            |wanted: usize| right.values().is_valid(wanted) && has.clone().any(|has| compare(has, wanted).is_eq());
        Some((wanted.is_empty() || !right.values().data_type().is_null()) && wanted.clone().all(is_there))
    }))
}

pub(super) fn overlaps(args: &Arguments) -> DfResult<ArrayRef> {
    let (left, right) = (args.list(0), args.list(1));
    let compare = comparator(left.values(), right.values())?;
    let is_value =
        |list: &ListArray, place: usize| list.values().is_valid(place) && !list.values().data_type().is_null();
    Ok(args.tests(|row| {
        let (left_places, mut right_places) = (places(left, row)?, places(right, row)?);
        Some(right_places.any(|wanted| {
            is_value(right, wanted)
                && left_places.clone().any(|has| is_value(left, has) && compare(has, wanted).is_eq())
        }))
    }))
}

/// Below, at or above zero as the first array is less than, equal to or greater than the second.
pub(super) fn compare(args: &Arguments) -> DfResult<ArrayRef> {
    let (left, right) = (args.list(0), args.list(1));
    let compare = comparator(left.values(), right.values())?;
    Ok(args.numbers(|row| {
        let (left, right) = (places(left, row)?, places(right, row)?);
        let lengths = left.len().cmp(&right.len());
        let first = left.zip(right).map(|(l, r)| compare(l, r)).find(|order| order.is_ne());
        Some(first.unwrap_or(lengths) as i64)
    }))
}

pub(super) fn element(args: &Arguments) -> DfResult<ArrayRef> {
    let list = args.list(0);
    if list.values().is_empty() {
        let none = UInt32Array::new_null(args.n_rows);
        return Ok(take(&new_or_null(list.values())?, &none, None)?);
    }
    let wanted: UInt32Array = (0..args.n_rows)
        .map(|row| {
            let places = places(list, row)?;
            let at = usize::try_from(args.int(0, row, 1)?.checked_sub(1)?).ok()?;
            (at < places.len()).then(|| (places.start + at) as u32)
        })
        .collect();
    Ok(take(list.values(), &wanted, None)?)
}

/// An empty column of the same type.
fn new_or_null(values: &ArrayRef) -> DfResult<ArrayRef> {
    Ok(new_empty_array(values.data_type()))
}

/// `element = ANY(array)`: NULL if the element is not there, but a NULL is.
pub(super) fn has(args: &Arguments) -> DfResult<ArrayRef> {
    let list = args.list(0);
    let values = list.values();
    let element = &args.elements[0];
    let compare = comparator(values, element)?;
    let is_null = |column: &ArrayRef, at: usize| column.data_type().is_null() || column.is_null(at);
    Ok(args.tests(|row| {
        let mut places = places(list, row)?;
        if places.is_empty() {
            return Some(false);
        }
        if is_null(element, row) {
            return None;
        }
        let is_there = places.clone().any(|place| !is_null(values, place) && compare(place, row).is_eq());
        let is_unknown = places.any(|place| is_null(values, place));
        if is_there || !is_unknown { Some(is_there) } else { None }
    }))
}
