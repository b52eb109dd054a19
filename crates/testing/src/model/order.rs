//! Orders and the first rows of them.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use anabranch_plan::{SortKey, TopK};
use datafusion_common::ScalarValue;

use super::Answer;
use crate::row::{Contents, Row, compare};

/// The order of two rows under `keys` alone.
pub fn compare_by(keys: &[SortKey], a: &Row, b: &Row) -> Ordering {
    for key in keys {
        let (a, b) = (a.value(key.column), b.value(key.column));
        let ordering = match (a.is_null(), b.is_null()) {
            (true, false) => if_first(key.nulls_first),
            (false, true) => if_first(key.nulls_first).reverse(),
            _ if key.descending => compare(b, a),
            _ => compare(a, b),
        };
        if ordering != Ordering::Equal {
            return ordering;
        }
    }
    Ordering::Equal
}

fn if_first(first: bool) -> Ordering {
    if first { Ordering::Less } else { Ordering::Greater }
}

/// The rows of each group from `offset`, at most `limit`; ties are broken by all columns, ascending.
pub fn top(input: Answer, top: &TopK) -> Answer {
    let mut groups: BTreeMap<Row, Vec<&Row>> = BTreeMap::new();
    for (row, count) in input.rows.iter() {
        let group = groups.entry(row.project(&top.group)).or_default();
        group.extend(std::iter::repeat_n(row, count as usize));
    }
    let mut rows = Contents::new();
    for (_, mut group) in groups {
        group.sort_by(|a, b| compare_by(&top.order, a, b).then_with(|| a.cmp(b)));
        let kept = group.into_iter().enumerate().skip(top.offset).take(top.limit.unwrap_or(usize::MAX));
        for (index, row) in kept {
            let number = ScalarValue::UInt64(Some(index as u64 + 1));
            rows.add(if top.row_number { row.with(number) } else { row.clone() }, 1);
        }
    }
    Answer { rows, errors: input.errors }
}
