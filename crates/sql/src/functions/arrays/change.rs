//! Functions that make arrays of arrays: elements added, removed, replaced, cut off.

use std::cmp::Ordering;

use arrow::array::{Array, ArrayRef, ListArray};
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
    lists.finish()
}

pub(super) fn prepend(args: &Arguments) -> DfResult<ArrayRef> {
    let list = args.list(0);
    let mut lists = Gathering::of(&[list.values(), &args.elements[0]])?;
    for row in 0..args.n_rows {
        lists.push(1, row);
        places(list, row).into_iter().flatten().for_each(|place| lists.push(0, place));
        lists.end(true);
    }
    lists.finish()
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
    lists.finish()
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
