//! The least and the greatest value of each frame.
//!
//! Law: the value is the first, or the last, in the order of the argument's type among the rows of
//! the frame that pass the filter and are not NULL; NULL without any. Frames leave nothing out.
//!
//! Method: of the rows that have entered, those stay that no later one surpasses, so the first of
//! them is the answer. Cost: each row enters and leaves once, for neither end of a frame moves
//! back. Source: Lemire, "Streaming maximum-minimum filter using no more than three comparisons per
//! element" (2006).

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::ops::Range;

use anabranch_batch::order::{Comparator, Direction};
use arrow::array::{Array, ArrayRef, AsArray, BooleanArray};

/// For each frame, the row of its extreme value. `spans` are frames that follow each other.
pub(super) fn picks(
    values: &ArrayRef,
    filter: Option<&ArrayRef>,
    is_greatest: bool,
    spans: &[Range<usize>],
) -> Vec<Option<u32>> {
    let filter: Option<&BooleanArray> = filter.map(|filter| filter.as_boolean());
    let counts =
        |row: usize| values.is_valid(row) && filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row));
    let values = [values.clone()];
    let order = Comparator::new(&values, &values, &[Direction { descending: is_greatest, nulls_first: false }]);
    let mut leading: VecDeque<usize> = VecDeque::new();
    let mut entered = spans.first().map_or(0, |span| span.start);
    let pick = |span: &Range<usize>| {
        for row in entered.max(span.start)..span.end {
            if counts(row) {
                while leading.back().is_some_and(|last| order.compare(*last, row) == Ordering::Greater) {
                    leading.pop_back();
                }
                leading.push_back(row);
            }
        }
        entered = entered.max(span.end);
        while leading.front().is_some_and(|first| *first < span.start) {
            leading.pop_front();
        }
        leading.front().map(|row| *row as u32)
    };
    spans.iter().map(pick).collect()
}
