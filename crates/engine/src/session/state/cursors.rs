//! The cursors of a client: what was asked, and how far it was taken.

use std::collections::{BTreeMap, VecDeque};

use anabranch_sql::statement::{Direction, Scroll};
use arrow::array::{RecordBatch, UInt64Array};
use arrow::compute::{concat_batches, take_record_batch};
use arrow::datatypes::SchemaRef;

use crate::error::Error;
use crate::session::outcome::Subscription;

/// The cursors of a client.
#[derive(Debug, Default)]
pub(crate) struct Cursors {
    pub(crate) by_name: BTreeMap<String, Cursor>,
    /// What the last FETCH had nothing to give of yet, and would have waited for.
    pub awaited: Option<Subscription>,
}

#[derive(Debug)]
pub(crate) struct Cursor {
    /// Whether it outlives the transaction it was declared in.
    pub(crate) stays: bool,
    /// Whether it was declared in the transaction that is open.
    pub(crate) is_of_transaction: bool,
    pub(crate) scroll: Scroll,
    pub(crate) source: Source,
}

#[derive(Debug)]
pub(crate) enum Source {
    Rows {
        rows: RecordBatch,
        /// Before the first row is 0, after the last is one more than there are.
        position: usize,
    },
    Changes {
        subscription: Subscription,
        /// What was taken from the subscription and not given yet.
        ready: VecDeque<RecordBatch>,
        ended: bool,
    },
}

impl Cursors {
    /// All that cursors subscribe to; they are closed.
    pub fn take_subscriptions(&mut self) -> Vec<Subscription> {
        let cursors = std::mem::take(&mut self.by_name);
        cursors.into_values().filter_map(Cursor::into_subscription).collect()
    }

    /// Bytes of the rows that they hold.
    pub fn size_bytes(&self) -> usize {
        let of = |cursor: &Cursor| match &cursor.source {
            Source::Rows { rows, .. } => rows.get_array_memory_size(),
            Source::Changes { ready, .. } => ready.iter().map(RecordBatch::get_array_memory_size).sum(),
        };
        self.by_name.values().map(of).sum()
    }

    /// Closes those that hold the rows of a query.
    pub fn let_go(&mut self) {
        self.by_name.retain(|_, cursor| matches!(cursor.source, Source::Changes { .. }));
    }

    /// Whether there is one of that name.
    pub fn has(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// Opens one over rows that are the caller's, forward only.
    pub fn lend(&mut self, name: &str, rows: RecordBatch) {
        let source = Source::Rows { rows, position: 0 };
        let cursor = Cursor { stays: false, is_of_transaction: true, scroll: Scroll::No, source };
        self.by_name.insert(name.to_owned(), cursor);
    }

    /// Closes one over rows, and gives those that were not taken.
    pub fn take_lent(&mut self, name: &str) -> Option<RecordBatch> {
        match self.by_name.remove(name)?.source {
            Source::Rows { rows, position } => {
                let taken = position.min(rows.num_rows());
                Some(rows.slice(taken, rows.num_rows() - taken))
            }
            Source::Changes { .. } => None,
        }
    }

    pub(crate) fn get(&mut self, name: &str) -> Result<&mut Cursor, Error> {
        self.by_name.get_mut(name).ok_or_else(|| no_cursor(name))
    }
}

impl Cursor {
    pub(crate) fn into_subscription(self) -> Option<Subscription> {
        match self.source {
            Source::Rows { .. } => None,
            Source::Changes { subscription, .. } => Some(subscription),
        }
    }

    pub(crate) fn schema(&self) -> SchemaRef {
        match &self.source {
            Source::Rows { rows, .. } => rows.schema(),
            Source::Changes { subscription, .. } => subscription.row_schema(),
        }
    }
}

pub(crate) fn no_cursor(name: &str) -> Error {
    Error::invalid(format!("cursor \"{name}\" does not exist")).with_sqlstate("34000")
}

pub(crate) fn non_empty(rows: RecordBatch) -> Vec<RecordBatch> {
    if rows.num_rows() == 0 { vec![] } else { vec![rows] }
}

/// The rows that a movement passes over, in its order.
pub(crate) fn chosen(rows: &RecordBatch, position: &mut usize, direction: Direction) -> Result<RecordBatch, Error> {
    let (n, at) = (rows.num_rows(), *position);
    let one = |row: i128, position: &mut usize| -> RecordBatch {
        *position = row.clamp(0, n as i128 + 1) as usize;
        match *position {
            row if (1..=n).contains(&row) => rows.slice(row - 1, 1),
            _ => rows.slice(0, 0),
        }
    };
    match direction {
        Direction::Forward(0) | Direction::Relative(0) => Ok(one(at as i128, position)),
        Direction::Relative(by) => Ok(one(at as i128 + i128::from(by), position)),
        Direction::Absolute(row) if row >= 0 => Ok(one(i128::from(row), position)),
        Direction::Absolute(row) => Ok(one(n as i128 + 1 + i128::from(row), position)),
        Direction::All | Direction::Forward(1..) => {
            let count = if let Direction::Forward(count) = direction { count as usize } else { usize::MAX };
            let first = at.min(n);
            *position = at.saturating_add(count).min(n + 1);
            let last = (*position).min(n);
            Ok(rows.slice(first, last - first))
        }
        Direction::BackwardAll | Direction::Forward(_) => {
            let count =
                if let Direction::Forward(count) = direction { count.unsigned_abs() as usize } else { usize::MAX };
            *position = at.saturating_sub(count);
            let last = (*position).max(1);
            let picked: Vec<u64> = (last..at.min(n + 1)).rev().map(|row| row as u64 - 1).collect();
            Ok(take_record_batch(rows, &UInt64Array::from(picked))?)
        }
    }
}

/// The first rows of those that are ready.
pub(crate) fn first_rows(
    schema: &SchemaRef,
    ready: &mut VecDeque<RecordBatch>,
    wanted: usize,
) -> Result<RecordBatch, Error> {
    let (mut taken, mut left) = (Vec::new(), wanted);
    while left > 0
        && let Some(batch) = ready.pop_front()
    {
        let n = batch.num_rows().min(left);
        taken.push(batch.slice(0, n));
        if n < batch.num_rows() {
            ready.push_front(batch.slice(n, batch.num_rows() - n));
        }
        left -= n;
    }
    Ok(concat_batches(schema, &taken)?)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, AsArray, Int64Array};
    use arrow::datatypes::Int64Type;

    use super::*;

    /// PostgreSQL 15 gives these rows for a cursor over 1 to 5, one movement after the other.
    #[test]
    fn movements_give_the_rows_of_postgresql() {
        use Direction::{Absolute, All, BackwardAll, Forward, Relative};
        let column: ArrayRef = Arc::new(Int64Array::from_iter_values(1..=5));
        let rows = RecordBatch::try_from_iter([("n", column)]).unwrap();
        let mut position = 0;
        for (direction, expected) in [
            (Forward(2), vec![1, 2]),
            (Forward(0), vec![2]),
            (Relative(2), vec![4]),
            (Forward(-1), vec![3]),
            (All, vec![4, 5]),
            (Forward(0), vec![]),
            (Forward(-2), vec![5, 4]),
            (BackwardAll, vec![3, 2, 1]),
            (Forward(-1), vec![]),
            (Absolute(-1), vec![5]),
            (Absolute(9), vec![]),
            (Forward(-9), vec![5, 4, 3, 2, 1]),
            (Absolute(0), vec![]),
            (Forward(9), vec![1, 2, 3, 4, 5]),
            (Forward(1), vec![]),
        ] {
            let given = chosen(&rows, &mut position, direction).unwrap();
            assert_eq!(given.column(0).as_primitive::<Int64Type>().values().to_vec(), expected, "{direction:?}");
        }
    }
}
