//! From a collection to an answer: multiplicities become repeated rows, in order, cut to what was
//! asked for.
//!
//! Law: the answer is a function of the contents. Rows that tie in the wanted order, or all rows
//! when none is wanted, are ordered by their columns from left to right, so the same contents
//! always print the same.
//!
//! Cost: O(rows log rows) comparisons, most of them of one 64-bit prefix; with a limit O(rows + k
//! log k) for k rows kept.

use std::cmp::Ordering;

use anabranch_batch::order::{Comparator, Direction, prefixes};
use anabranch_batch::{Batch, Diff, gather};
use anabranch_plan::SortKey;
use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::compute::cast;
use arrow::datatypes::SchemaRef;

use crate::contained::contained;
use crate::error::Error;

/// Rows of one answer batch.
const ANSWER_ROWS_MAX: usize = 65_536;

/// What is to be done to a collection's rows before they are shown.
#[derive(Clone, Debug, Default)]
pub(crate) struct WantedRows<'a> {
    pub order: &'a [SortKey],
    pub offset: usize,
    pub limit: Option<usize>,
}

/// The answer's batches. `batches` hold consolidated rows whose columns start with the schema's;
/// further columns only order.
///
/// # Errors
/// `Internal` when a row has a negative multiplicity.
pub(crate) fn finish(
    schema: &SchemaRef,
    batches: &[Batch],
    wanted: &WantedRows<'_>,
) -> Result<Vec<RecordBatch>, Error> {
    contained("ordering the answer", || finish_in_order(schema, batches, wanted))
}

fn finish_in_order(schema: &SchemaRef, batches: &[Batch], wanted: &WantedRows<'_>) -> Result<Vec<RecordBatch>, Error> {
    let batches: Vec<Batch> = batches.iter().map(|batch| batch.clone().flatten()).collect();
    let batches: Vec<Batch> = batches.into_iter().filter(|batch| !batch.is_empty()).collect();
    let Some(all) = Batch::concat(&batches) else { return Ok(Vec::new()) };
    // Rows may still cancel when a projection dropped what told them apart.
    let cancels = (0..all.len()).any(|row| all.diffs().get(row) <= 0);
    let all = if cancels { anabranch_batch::consolidate::consolidate(all) } else { all };
    let n_rows = u32::try_from(all.len()).map_err(|_| {
        Error::invalid("the answer has more than 4 billion different rows").with_hint("Add LIMIT, or aggregate.")
    })?;
    let mut rows: Vec<u32> = (0..n_rows).collect();
    sort(all.columns(), &mut rows, wanted, all.diffs());
    let picks = expand(&rows, &all, wanted.offset, wanted.limit)?;
    let n_columns = schema.fields().len();
    let columns = &all.columns()[..n_columns];
    picks
        .chunks(ANSWER_ROWS_MAX)
        .map(|rows| record_batch(schema, gather::take(columns, rows).to_vec(), rows.len()))
        .collect()
}

/// A record batch of the schema's types, also of rows without columns.
pub(crate) fn record_batch(schema: &SchemaRef, columns: Vec<ArrayRef>, n_rows: usize) -> Result<RecordBatch, Error> {
    let columns =
        columns.into_iter().zip(schema.fields()).map(|(column, field)| match column.data_type() == field.data_type() {
            true => Ok(column),
            false => cast(&column, field.data_type()),
        });
    let columns = columns.collect::<Result<Vec<ArrayRef>, _>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(n_rows));
    RecordBatch::try_new_with_options(schema.clone(), columns, &options)
        .map_err(|e| Error::internal(format!("the answer does not fit its schema: {e}")))
}

/// Sorts `rows`; with a limit, only as many as may be shown.
fn sort(columns: &[ArrayRef], rows: &mut Vec<u32>, wanted: &WantedRows<'_>, diffs: &anabranch_batch::Diffs) {
    if columns.is_empty() || rows.len() < 2 {
        return;
    }
    let (sort_columns, directions) = sort_order(columns, wanted.order);
    let (prefix, exact) = prefixes(&sort_columns[..1], &directions[..1], rows.len());
    let rest = usize::from(exact);
    let rest = (rest < sort_columns.len())
        .then(|| Comparator::new(&sort_columns[rest..], &sort_columns[rest..], &directions[rest..]));
    let compare = |a: &u32, b: &u32| -> Ordering {
        prefix[*a as usize]
            .cmp(&prefix[*b as usize])
            .then_with(|| rest.as_ref().map_or(Ordering::Equal, |rest| rest.compare(*a as usize, *b as usize)))
    };
    // Each row counts at least once, so the first `offset + limit` rows are enough, unless a
    // multiplicity is wrong: then all are kept, and `expand` finds it.
    let all_positive = (0..rows.len()).all(|i| diffs.get(i) > 0);
    let rows_needed = wanted.limit.map_or(usize::MAX, |limit| limit.saturating_add(wanted.offset));
    if all_positive && rows_needed < rows.len() {
        if rows_needed > 0 {
            rows.select_nth_unstable_by(rows_needed - 1, compare);
        }
        rows.truncate(rows_needed);
    }
    rows.sort_unstable_by(compare);
}

/// The wanted order, then all other columns ascending with NULLs last.
fn sort_order(columns: &[ArrayRef], order: &[SortKey]) -> (Vec<ArrayRef>, Vec<Direction>) {
    let first =
        order.iter().map(|key| (key.column, Direction { descending: key.descending, nulls_first: key.nulls_first }));
    let others = (0..columns.len())
        .filter(|column| !order.iter().any(|key| key.column == *column))
        .map(|column| (column, Direction { descending: false, nulls_first: false }));
    first.chain(others).map(|(column, direction)| (columns[column].clone(), direction)).unzip()
}

/// Each row as often as its multiplicity says, without the first `offset` and at most `limit`.
fn expand(rows: &[u32], all: &Batch, offset: usize, limit: Option<usize>) -> Result<Vec<u32>, Error> {
    let mut picks = Vec::with_capacity(rows.len().min(limit.unwrap_or(usize::MAX)));
    let mut skip = offset;
    let mut left = limit.unwrap_or(usize::MAX);
    for row in rows {
        let copies = multiplicity(all.diffs().get(*row as usize))?;
        let skipped = copies.min(skip);
        skip -= skipped;
        let kept = (copies - skipped).min(left);
        left -= kept;
        picks.extend(std::iter::repeat_n(*row, kept));
    }
    Ok(picks)
}

fn multiplicity(diff: Diff) -> Result<usize, Error> {
    usize::try_from(diff).map_err(|_| {
        Error::internal(format!("a row of the answer has multiplicity {diff}"))
            .with_detail("More copies of it were removed than were there; unchecked retractions may do this.")
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use anabranch_batch::{Diffs, Times};
    use arrow::array::{Array, AsArray, Int64Array};
    use arrow::datatypes::{DataType, Field, Int64Type, Schema};

    use super::*;

    fn answer(values: Vec<Option<i64>>, diffs: Vec<i64>, wanted: WantedRows<'_>) -> Result<Vec<Option<i64>>, Error> {
        let schema = Arc::new(Schema::new(vec![Field::new("a", DataType::Int64, true)]));
        let batch =
            Batch::new(vec![Arc::new(Int64Array::from(values))], Times::Constant(1), Diffs::Column(diffs.into()));
        let batches = finish(&schema, &[batch], &wanted)?;
        Ok(batches.iter().flat_map(|b| b.column(0).as_primitive::<Int64Type>().iter().collect::<Vec<_>>()).collect())
    }

    #[test]
    fn rows_repeat_by_their_multiplicity_and_are_ordered() {
        let rows = answer(vec![Some(3), None, Some(1)], vec![1, 1, 2], WantedRows::default()).unwrap();
        assert_eq!(rows, vec![Some(1), Some(1), Some(3), None]);
    }

    #[test]
    fn offset_and_limit_count_copies() {
        let order = [SortKey { column: 0, descending: true, nulls_first: true }];
        let wanted = WantedRows { order: &order, offset: 1, limit: Some(2) };
        let rows = answer(vec![Some(3), Some(2), Some(1)], vec![2, 1, 1], wanted).unwrap();
        assert_eq!(rows, vec![Some(3), Some(2)]);
    }

    #[test]
    fn a_negative_multiplicity_is_our_bug() {
        assert!(answer(vec![Some(1)], vec![-1], WantedRows::default()).is_err());
        assert!(answer(vec![Some(1)], vec![-1], WantedRows { limit: Some(0), ..WantedRows::default() }).is_err());
    }

    #[test]
    fn limit_zero_gives_nothing() {
        assert!(
            answer(vec![Some(1), Some(2)], vec![1, 1], WantedRows { limit: Some(0), ..WantedRows::default() })
                .unwrap()
                .is_empty()
        );
    }

    #[test]
    fn rows_without_columns_are_counted() {
        let schema = Arc::new(Schema::empty());
        let batch = Batch::with_len(Vec::<ArrayRef>::new().into(), 1, Times::Constant(1), Diffs::Constant(3));
        let batches = finish(&schema, &[batch], &WantedRows::default()).unwrap();
        assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 3);
        assert!(batches[0].columns().iter().all(|c| c.is_empty()));
    }
}
