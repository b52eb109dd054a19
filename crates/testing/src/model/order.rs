//! Orders, the first rows of them, and what window functions say about rows by their neighbours.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use anabranch_plan::{AggregateCall, Place, Plan, RankedBy, SortKey, TopK, Window, WindowCall, WindowFunction};
use anabranch_spec::frame::{Exclude, FrameBound};
use datafusion_common::ScalarValue;

use super::aggregate;
use super::answer::Answer;
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

/// The rows of each group from `offset`, at most `limit`; ties are broken by all columns,
/// ascending.
pub fn top(input: Answer, top: &TopK) -> Answer {
    let mut groups: BTreeMap<Row, Vec<&Row>> = BTreeMap::new();
    for (row, count) in input.rows.iter() {
        let group = groups.entry(row.project(&top.group)).or_default();
        group.extend(std::iter::repeat_n(row, count as usize));
    }
    let mut rows = Contents::new();
    for (_, mut group) in groups {
        group.sort_by(|a, b| compare_by(&top.order, a, b).then_with(|| a.cmp(b)));
        let kept = top.offset..top.limit.map_or(usize::MAX, |limit| top.offset.saturating_add(limit));
        let (mut rank, mut dense_rank) = (0, 0);
        for (index, row) in group.iter().enumerate() {
            if index > 0 && compare_by(&top.order, group[index - 1], row).is_ne() {
                (rank, dense_rank) = (index, dense_rank + 1);
            }
            let place = match top.ranked {
                RankedBy::Row => index,
                RankedBy::Rank => rank,
                RankedBy::DenseRank => dense_rank,
            };
            if kept.contains(&place) {
                let number = ScalarValue::UInt64(Some(place as u64 + 1));
                rows.add(if top.numbered { row.with(number) } else { (*row).clone() }, 1);
            }
        }
    }
    Answer { rows, errors: input.errors }
}

/// The answer of window functions over their input's answer.
pub fn window(window: &Window, input_plan: &Plan, input: Answer) -> Answer {
    let mut partitions: BTreeMap<Row, Vec<&Row>> = BTreeMap::new();
    for (row, count) in input.rows.iter() {
        let partition = partitions.entry(row.project(&window.partition)).or_default();
        partition.extend(std::iter::repeat_n(row, count as usize));
    }
    let mut answer = Answer { rows: Contents::new(), errors: input.errors };
    for (_, mut rows) in partitions {
        rows.sort_by(|a, b| compare_by(&window.order, a, b).then_with(|| a.cmp(b)));
        let partition = Partition { window, input_plan, rows };
        for row in 0..partition.rows.len() {
            let results = window.calls.iter().map(|call| partition.result(call, row)).collect::<Result<Vec<_>, _>>();
            match results {
                Ok(results) => answer.rows.add(partition.rows[row].concat(&Row::new(results)), 1),
                Err(message) => answer.fail(message, 1),
            }
        }
    }
    answer
}

struct Partition<'a> {
    window: &'a Window,
    input_plan: &'a Plan,
    /// In order.
    rows: Vec<&'a Row>,
}

impl Partition<'_> {
    fn result(&self, call: &WindowCall, row: usize) -> Result<ScalarValue, String> {
        let share = |part: usize, all: usize| ScalarValue::Float64(Some(part as f64 / all as f64));
        let n_rows = self.rows.len();
        let is_before = |other: &usize| self.compare(*other, row) == Ordering::Less;
        let is_up_to = |other: &usize| self.compare(*other, row) != Ordering::Greater;
        Ok(match &call.function {
            WindowFunction::Aggregate(aggregate) => return self.aggregate(aggregate, &self.frame(call, row)),
            WindowFunction::Value { column, place } => {
                let frame = self.frame(call, row);
                let found = match place {
                    Place::First => frame.first(),
                    Place::Last => frame.last(),
                    Place::Nth(n) => frame.get(n - 1),
                };
                let null = || ScalarValue::try_from(self.input_plan.schema.field(*column).data_type());
                match found {
                    Some(at) => self.rows[*at].value(*column).clone(),
                    None => null().expect("every type has a null"),
                }
            }
            WindowFunction::PercentRank => share((0..n_rows).filter(is_before).count(), (n_rows - 1).max(1)),
            WindowFunction::CumeDist => share((0..n_rows).filter(is_up_to).count(), n_rows),
        })
    }

    /// The aggregate of these rows, in the order of the partition.
    fn aggregate(&self, call: &AggregateCall, frame: &[usize]) -> Result<ScalarValue, String> {
        let numbered: Vec<Row> =
            frame.iter().map(|&at| self.rows[at].with(ScalarValue::Int64(Some(at as i64)))).collect();
        let column = self.rows[0].width();
        let place = SortKey { column, descending: false, nulls_first: false };
        let order = if call.distinct { vec![] } else { vec![place] };
        aggregate::result(&AggregateCall { order, ..call.clone() }, &numbered.iter().collect::<Vec<_>>())
    }

    fn compare(&self, a: usize, b: usize) -> Ordering {
        compare_by(&self.window.order, self.rows[a], self.rows[b])
    }

    /// The rows of a frame.
    fn frame(&self, call: &WindowCall, row: usize) -> Vec<usize> {
        let is_in = |other: &usize| {
            self.against(*other, call.frame.start, row) != Ordering::Less
                && self.against(*other, call.frame.end, row) != Ordering::Greater
                && match call.frame.exclude {
                    Exclude::Nothing => true,
                    Exclude::Row => *other != row,
                    Exclude::Peers => self.compare(*other, row) != Ordering::Equal,
                    Exclude::Ties => *other == row || self.compare(*other, row) != Ordering::Equal,
                }
        };
        (0..self.rows.len()).filter(is_in).collect()
    }

    /// Where a row lies, seen from a bound of another row.
    fn against(&self, other: usize, bound: FrameBound, row: usize) -> Ordering {
        match bound {
            FrameBound::First => Ordering::Greater,
            FrameBound::Last => Ordering::Less,
            FrameBound::Rows(rows) => (other as i64).cmp(&(row as i64 + rows)),
            FrameBound::Peers(groups) => self.group(other).cmp(&(self.group(row) + groups)),
            FrameBound::Key(column) => {
                let key = SortKey { column: 0, ..self.window.order[0] };
                let value = self.rows[other].project(&[self.window.order[0].column]);
                compare_by(&[key], &value, &self.rows[row].project(&[column]))
            }
        }
    }

    /// The number of a row's group of peers.
    fn group(&self, row: usize) -> i64 {
        (1..=row).filter(|&at| self.compare(at - 1, at) != Ordering::Equal).count() as i64
    }
}
