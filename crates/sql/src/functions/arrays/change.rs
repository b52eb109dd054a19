//! Functions that make arrays of arrays: elements added, removed, replaced, cut off.

use std::cmp::Ordering;

use anabranch_batch::dimensions::next_ragged;
use arrow::array::{Array, ArrayRef, AsArray, ListArray};
use datafusion_common::{Result as DfResult, exec_err};

use super::{Arguments, Gathering, comparator, places};

pub(super) fn append(args: &Arguments) -> DfResult<ArrayRef> {
    let list = args.list(0);
    let mut lists = Gathering::of(&[list.values(), &args.elements[0]])?;
    for row in 0..args.n_rows {
        places(list, row).into_iter().flatten().for_each(|place| lists.push(0, place));
        lists.push(1, row);
        lists.end(true);
    }
    joined(lists.finish()?)
}

pub(super) fn prepend(args: &Arguments) -> DfResult<ArrayRef> {
    let list = args.list(0);
    let mut lists = Gathering::of(&[list.values(), &args.elements[0]])?;
    for row in 0..args.n_rows {
        lists.push(1, row);
        places(list, row).into_iter().flatten().for_each(|place| lists.push(0, place));
        lists.end(true);
    }
    joined(lists.finish()?)
}

pub(super) fn join(args: &Arguments) -> DfResult<ArrayRef> {
    let (left, right) = (args.list(0), args.list(1));
    let mut lists = Gathering::of(&[left.values(), right.values()])?;
    for row in 0..args.n_rows {
        for (column, list) in [left, right].into_iter().enumerate() {
            places(list, row).into_iter().flatten().for_each(|place| lists.push(column, place));
        }
        lists.end(!(left.is_null(row) && right.is_null(row)));
    }
    joined(lists.finish()?)
}

/// Lists that were joined, whose parts have the same lengths.
fn joined(lists: ArrayRef) -> DfResult<ArrayRef> {
    match next_ragged(lists.as_list(), 0) {
        Some(_) => exec_err!("cannot concatenate incompatible arrays"),
        None => Ok(lists),
    }
}

pub(super) fn remove(args: &Arguments) -> DfResult<ArrayRef> {
    let list = args.list(0);
    let compare = comparator(list.values(), &args.elements[0])?;
    let mut lists = Gathering::of(&[list.values()])?;
    for row in 0..args.n_rows {
        let kept = places(list, row).into_iter().flatten().filter(|place| compare(*place, row).is_ne());
        kept.for_each(|place| lists.push(0, place));
        lists.end(list.is_valid(row));
    }
    lists.finish()
}

pub(super) fn replace(args: &Arguments) -> DfResult<ArrayRef> {
    let list = args.list(0);
    let compare = comparator(list.values(), &args.elements[0])?;
    let mut lists = Gathering::of(&[list.values(), &args.elements[1]])?;
    for row in 0..args.n_rows {
        for place in places(list, row).into_iter().flatten() {
            match compare(place, row) {
                Ordering::Equal => lists.push(1, row),
                _ => lists.push(0, place),
            }
        }
        lists.end(list.is_valid(row));
    }
    lists.finish()
}

pub(super) fn slice(args: &Arguments) -> DfResult<ArrayRef> {
    let list = args.list(0);
    let mut lists = Gathering::of(&[list.values()])?;
    for row in 0..args.n_rows {
        let bounds = args.int(0, row, 1).zip(args.int(1, row, i64::MAX));
        let part = bounds.and_then(|(from, to)| part(list, row, from, to));
        part.clone().into_iter().flatten().for_each(|place| lists.push(0, place));
        lists.end(part.is_some());
    }
    lists.finish()
}

pub(super) fn trim(args: &Arguments) -> DfResult<ArrayRef> {
    let list = args.list(0);
    let mut lists = Gathering::of(&[list.values()])?;
    for row in 0..args.n_rows {
        let (Some(places), Some(n)) = (places(list, row), args.int(0, row, 0)) else {
            lists.end(false);
            continue;
        };
        let Some(left) = usize::try_from(n).ok().and_then(|n| places.len().checked_sub(n)) else {
            return exec_err!("number of elements to trim must be between 0 and {}", places.len());
        };
        places.take(left).for_each(|place| lists.push(0, place));
        lists.end(true);
    }
    lists.finish()
}

pub(super) fn reverse(args: &Arguments) -> DfResult<ArrayRef> {
    let list = args.list(0);
    let mut lists = Gathering::of(&[list.values()])?;
    for row in 0..args.n_rows {
        places(list, row).into_iter().flatten().rev().for_each(|place| lists.push(0, place));
        lists.end(list.is_valid(row));
    }
    lists.finish()
}

/// The most elements that an assignment makes.
const ASSIGNED_MAX: i64 = 1 << 27;

/// `xs[n] = element`: what lies between the end of the list and its new element is NULL.
pub(super) fn assign(args: &Arguments) -> DfResult<ArrayRef> {
    let list = args.list(0);
    let null = arrow::array::new_null_array(list.values().data_type(), 1);
    let mut lists = Gathering::of(&[list.values(), &args.elements[0], &null])?;
    for row in 0..args.n_rows {
        let Some(at) = args.int(0, row, 0) else {
            return exec_err!("array subscript in assignment must not be null");
        };
        let places = places(list, row).unwrap_or(0..0);
        let at = place_of(at)?;
        for n in 0..places.len().max(at + 1) {
            match places.clone().nth(n) {
                _ if n == at => lists.push(1, row),
                Some(place) => lists.push(0, place),
                None => lists.push(2, 0),
            }
        }
        lists.end(true);
    }
    lists.finish()
}

/// `xs[from:to] = elements`; a bound that is NULL is that of the list.
pub(super) fn assign_part(args: &Arguments) -> DfResult<ArrayRef> {
    let (list, source) = (args.list(0), args.list(1));
    let null = arrow::array::new_null_array(list.values().data_type(), 1);
    let mut lists = Gathering::of(&[list.values(), source.values(), &null])?;
    for row in 0..args.n_rows {
        let places_before = places(list, row).unwrap_or(0..0);
        let length = places_before.len();
        let Some(given) = places(source, row) else {
            // (NULL assigned to a part changes nothing.)
            places_before.for_each(|place| lists.push(0, place));
            lists.end(list.is_valid(row));
            continue;
        };
        let from = args.int(0, row, 1).unwrap_or(1);
        let to = args.int(1, row, 1).unwrap_or(length as i64);
        if from > to + 1 {
            return exec_err!("upper bound cannot be less than lower bound");
        }
        let (from, n_wanted) = (place_of(from)?, usize::try_from(to - from + 1).unwrap_or(0));
        place_of(to.max(1))?;
        if given.len() < n_wanted {
            return exec_err!("source array too small");
        }
        for n in 0..length.max(from + n_wanted) {
            match places_before.clone().nth(n) {
                _ if (from..from + n_wanted).contains(&n) => lists.push(1, given.start + n - from),
                Some(place) => lists.push(0, place),
                None => lists.push(2, 0),
            }
        }
        lists.end(true);
    }
    lists.finish()
}

/// A subscript as a place from 0.
fn place_of(at: i64) -> DfResult<usize> {
    match at {
        1..=ASSIGNED_MAX => Ok(at as usize - 1),
        _ => exec_err!("array subscript {at} is not supported: arrays begin at 1"),
    }
}

/// Those of a list from one place to another, counted from 1.
fn part(list: &ListArray, row: usize, from: i64, to: i64) -> Option<std::ops::Range<usize>> {
    let places = places(list, row)?;
    let length = places.len() as i64;
    let (from, to) = (from.max(1), to.min(length));
    Some(if from > to {
        places.start..places.start
    } else {
        places.start + from as usize - 1..places.start + to as usize
    })
}
