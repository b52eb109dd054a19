//! INSERT, UPDATE and DELETE, and the constraints they keep.
//!
//! Law: a statement's rows are computed as of the last commit, checked in full, and applied as one commit or not at all.
//! A primary key is checked on what the commit would leave: rows there now with one of its keys, and its changes, may
//! add up to one row a key.

use anabranch_batch::consolidate::consolidate;
use anabranch_batch::{Batch, Diffs, Time, Times};
use anabranch_sql::Planned;
use anabranch_sql::statement::{Delete, Insert, Update};
use arrow::array::{ArrayRef, RecordBatch};

use super::commit::target;
use super::planning::{Named, visible_schema};
use super::{Outcome, Session};
use crate::catalog::Object;
use crate::cluster::Peek;
use crate::coerce::{check_not_null, row_text};
use crate::error::Error;
use crate::finish::{Wanted, finish};
use crate::session::query::rows_or_error;

impl Session {
    pub(super) fn insert_rows(&mut self, insert: &Insert) -> Result<Outcome, Error> {
        self.catalog.table(&insert.table)?;
        let Named { planned, names } = self.plan_insert(insert)?;
        self.settle_sources(&names)?;
        let rows = self.collect_finished(&planned)?;
        let n_rows = n_rows(&rows);
        self.write_checked(&insert.table, rows)?;
        Ok(Outcome::done(format!("INSERT 0 {n_rows}")))
    }

    pub(super) fn delete_rows(&mut self, delete: &Delete) -> Result<Outcome, Error> {
        self.catalog.table(&delete.table)?;
        let Named { planned, names } = self.plan_delete(delete)?;
        self.settle_sources(&names)?;
        self.check_kept(&planned.plan)?;
        let rows = self.collect(&planned.plan)?;
        let n_rows = n_rows(&rows);
        let changes = rows.into_iter().map(|batch| batch.flatten().negate()).collect();
        self.commit_batches(&delete.table, changes)?;
        Ok(Outcome::done(format!("DELETE {n_rows}")))
    }

    pub(super) fn update_rows(&mut self, update: &Update) -> Result<Outcome, Error> {
        let n_columns = self.catalog.table(&update.table)?.schema.fields().len();
        let Named { planned, names } = self.plan_update(update)?;
        self.settle_sources(&names)?;
        self.check_kept(&planned.plan)?;
        let rows = self.collect(&planned.plan)?;
        let n_rows = n_rows(&rows);
        let old: Vec<usize> = (0..n_columns).collect();
        let new: Vec<usize> = (n_columns..2 * n_columns).collect();
        let removed = rows.iter().map(|batch| batch.project(&old).flatten().negate());
        let added = rows.iter().map(|batch| batch.project(&new).flatten());
        self.write_checked(&update.table, removed.chain(added).collect())?;
        Ok(Outcome::done(format!("UPDATE {n_rows}")))
    }

    /// The rows of a planned query, cut to its LIMIT.
    fn collect_finished(&mut self, planned: &Planned) -> Result<Vec<Batch>, Error> {
        self.check_kept(&planned.plan)?;
        let rows = self.collect(&planned.plan)?;
        let schema = visible_schema(planned);
        let wanted =
            Wanted { order: &planned.finish.order, offset: planned.finish.offset, limit: planned.finish.limit };
        if wanted.limit.is_none() && wanted.offset == 0 {
            let visible: Vec<usize> = (0..schema.fields().len()).collect();
            return Ok(rows.into_iter().map(|batch| batch.project(&visible)).collect());
        }
        let batch = |rows: RecordBatch| {
            Batch::with_len(rows.columns().into(), rows.num_rows(), Times::Constant(0), Diffs::Constant(1))
        };
        Ok(finish(&schema, &rows, &wanted)?.into_iter().map(batch).collect())
    }

    /// Applies changes to a table as one commit, unless they break NOT NULL or the primary key.
    pub(super) fn write_checked(&mut self, table: &str, changes: Vec<Batch>) -> Result<Time, Error> {
        let object = self.catalog.table(table)?.clone();
        let changes: Vec<Batch> = changes
            .into_iter()
            .map(|batch| batch.with_times(Times::Constant(0)).flatten())
            .filter(|batch| !batch.is_empty())
            .collect();
        for batch in &changes {
            check_not_null(target(&object), batch.columns())?;
        }
        self.check_primary_key(&object, &changes)?;
        self.commit_batches(table, changes)
    }

    fn check_primary_key(&mut self, object: &Object, changes: &[Batch]) -> Result<(), Error> {
        if object.primary_key.is_empty() {
            return Ok(());
        }
        let keys: Vec<Batch> = changes.iter().map(|batch| batch.project(&object.primary_key)).collect();
        let Some(keys) = Batch::concat(&keys) else { return Ok(()) };
        let there = self.rows_with_keys(object, keys.columns().to_vec())?;
        let there =
            there.iter().map(|batch| batch.project(&object.primary_key).with_times(Times::Constant(0)).flatten());
        let all: Vec<Batch> = there.chain([keys]).collect();
        let Some(sums) = Batch::concat(&all).map(consolidate) else { return Ok(()) };
        let Some(row) = (0..sums.len()).find(|row| sums.diffs().get(*row) > 1) else { return Ok(()) };
        Err(Error::data(format!("duplicate key in table \"{}\"", object.name)).with_detail(format!(
            "The primary key ({}) = ({}) would appear {} times.",
            object.column_list(&object.primary_key),
            row_text(sums.columns(), row),
            sums.diffs().get(row)
        )))
    }

    /// Rows of the table that have one of the keys now.
    fn rows_with_keys(&mut self, object: &Object, keys: Vec<ArrayRef>) -> Result<Vec<Batch>, Error> {
        let arrangements = object.maintained.iter().flat_map(|maintained| &maintained.arrangements);
        let arranged = arrangements
            .clone()
            .find(|arranged| arranged.key == object.primary_key)
            .ok_or_else(|| Error::internal(format!("table \"{}\" has no index on its primary key", object.name)))?;
        let peek = Peek { arrangement: arranged.arrangement, at: self.timeline.last(), keys: Some(keys) };
        rows_or_error(self.cluster.peek(peek, &self.interrupt)?)
    }

    /// A column of a table's default, evaluated once, for `n_rows` rows.
    pub(super) fn default_column(&self, object: &Object, idx: usize, n_rows: usize) -> Result<Option<ArrayRef>, Error> {
        let Some(Some(default)) = object.defaults.get(idx) else { return Ok(None) };
        let column = self.evaluate_constant(&format!("SELECT {default}"))?;
        let rows = vec![0u32; n_rows];
        Ok(Some(anabranch_batch::gather::take(&[column], &rows)[0].clone()))
    }
}

/// Number of rows, copies counted.
fn n_rows(batches: &[Batch]) -> i64 {
    let rows = |batch: &Batch| {
        let batch = batch.clone().flatten();
        match batch.diffs() {
            Diffs::Constant(diff) => diff * batch.len() as i64,
            Diffs::Column(diffs) => diffs.iter().sum(),
        }
    };
    batches.iter().map(rows).sum()
}
