//! INSERT, UPDATE and DELETE, and the constraints they keep.
//!
//! Law: a statement's rows are computed as of the last commit, checked in full, and applied as one
//! commit or not at all. A primary key is checked on what the commit would leave: rows there now
//! with one of its keys, and its changes, may add up to one row a key.

use anabranch_batch::{Batch, Columns, Diffs, Time, Times, types};
use anabranch_plan::Node;
use anabranch_sql::statement::{Delete, Insert, Update};
use anabranch_sql::{Planned, RETURNED, Returning};
use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::SchemaRef;

use super::commit::target;
use super::context::Named;
use super::outcome::{Outcome, Rows};
use super::referred_rows::Change;
use super::rules::check_rows;
use super::state::Session;
use crate::catalog::{Arrival, Object};
use crate::cluster::{Peek, WantedKeys};
use crate::coerce::{check_not_null, fit_lengths};
use crate::direct::{evaluate_over, rows_or_error};
use crate::error::Error;
use crate::finish::{WantedRows, finish};

/// What an UPDATE makes of rows: one entry in each list for each batch of rows.
pub(super) struct UpdatedRows {
    pub old: Vec<Batch>,
    pub new: Vec<Batch>,
    /// The new rows with the columns of FROM behind; empty where RETURNING does not ask.
    pub joined: Vec<Batch>,
}

/// What a statement changes, not written yet.
pub(super) struct TableChange {
    pub table: String,
    /// Rows that go, and rows that come.
    pub old: Vec<Batch>,
    pub new: Vec<Batch>,
    /// Whether rows that come are rows that go, one by one.
    pub are_pairs: bool,
    /// What RETURNING makes of them, with its columns.
    pub answer: Option<(SchemaRef, Rows)>,
    pub tag: String,
}

impl TableChange {
    /// What the client is told.
    pub fn outcome(&self) -> Outcome {
        match &self.answer {
            Some((_, rows)) => Outcome::Rows(rows.clone()),
            None => Outcome::done(self.tag.clone()),
        }
    }
}

impl Session {
    pub(super) fn insert_rows(&mut self, insert: &Insert) -> Result<Outcome, Error> {
        self.catalog.table(&insert.table)?;
        self.keeping_numbers(&insert.table, |session| {
            session.keeping_watermark(&insert.table, |session| session.insert_admitted(insert))
        })
    }

    fn insert_admitted(&mut self, insert: &Insert) -> Result<Outcome, Error> {
        let changed = self.changed_by_insert(insert)?;
        self.write_changed(changed)
    }

    /// What an INSERT changes.
    pub(super) fn changed_by_insert(&mut self, insert: &Insert) -> Result<TableChange, Error> {
        let named = self.with_named_key(insert)?;
        let insert = named.as_ref().unwrap_or(insert);
        let returning = self.plan_returning(insert.returned())?;
        let rows = self.proposed_rows(insert)?;
        let (new, old) = match &insert.conflict {
            None => (self.admit_rows(&insert.table, rows)?, vec![]),
            Some(_) => {
                let upsert = self.upsert(insert, rows)?;
                (upsert.fresh.into_iter().chain(upsert.added).collect(), upsert.removed)
            }
        };
        let n_rows = n_rows(&new);
        let answer = self.returned_rows(&insert.table, returning, new.clone())?;
        let tag = format!("INSERT 0 {n_rows}");
        Ok(TableChange { table: insert.table.clone(), old, new, are_pairs: false, answer, tag })
    }

    /// The rows that an INSERT proposes, with the numbers that they want.
    pub(super) fn proposed_rows(&mut self, insert: &Insert) -> Result<Vec<Batch>, Error> {
        let Named { mut planned, names, rows, .. } = self.plan_insert(insert)?;
        let rows = match rows {
            Some(rows) => {
                let visible: Vec<usize> = (0..planned.columns().fields().len()).collect();
                rows.into_iter().map(|batch| batch.project(&visible)).collect()
            }
            None => {
                planned.plan = self.with_operator_rows(&planned.plan)?;
                self.settle_sources(&names)?;
                self.collect_finished(&planned)?
            }
        };
        self.number_rows(&self.catalog.table(&insert.table)?.clone(), rows)
    }

    pub(super) fn delete_rows(&mut self, delete: &Delete) -> Result<Outcome, Error> {
        let changed = self.changed_by_delete(delete)?;
        self.write_changed(changed)
    }

    /// What a DELETE changes.
    pub(super) fn changed_by_delete(&mut self, delete: &Delete) -> Result<TableChange, Error> {
        self.catalog.table(&delete.table)?;
        let returning = self.plan_returning(delete.returned())?;
        let rows = self.rows_to_delete(delete)?;
        let n_rows = n_rows(&rows);
        let shown = match returning.as_ref().is_some_and(is_over_joined) {
            true => self.joined_rows_to_delete(delete, n_rows)?,
            false => rows.clone(),
        };
        let answer = self.returned_rows(&delete.table, returning, shown)?;
        let tag = format!("DELETE {n_rows}");
        Ok(TableChange { table: delete.table.clone(), old: rows, new: vec![], are_pairs: false, answer, tag })
    }

    /// The rows that a DELETE takes, each with the row that USING joins it with.
    fn joined_rows_to_delete(&mut self, delete: &Delete, n_taken: i64) -> Result<Vec<Batch>, Error> {
        let Named { mut planned, names, .. } = self.plan_delete_joined(delete)?;
        planned.plan = self.with_operator_rows(&planned.plan)?;
        self.settle_sources(&names)?;
        self.check_kept(&planned.plan)?;
        let rows: Vec<Batch> = self.collect_to_change(&planned.plan)?.into_iter().map(Batch::flatten).collect();
        if n_rows(&rows) != n_taken {
            return Err(Error::data(format!(
                "DELETE .. USING joins a row of table \"{}\" with several others",
                delete.table
            ))
            .with_detail("RETURNING names columns of them: which row counts would be chance.")
            .with_hint("Join with a query that has one row for each key, for example with GROUP BY."));
        }
        Ok(rows)
    }

    /// The rows that a DELETE takes.
    pub(super) fn rows_to_delete(&mut self, delete: &Delete) -> Result<Vec<Batch>, Error> {
        let Named { mut planned, names, .. } = self.plan_delete(delete)?;
        planned.plan = self.with_operator_rows(&planned.plan)?;
        self.settle_sources(&names)?;
        self.check_kept(&planned.plan)?;
        Ok(self.collect_to_change(&planned.plan)?.into_iter().map(Batch::flatten).collect())
    }

    pub(super) fn update_rows(&mut self, update: &Update) -> Result<Outcome, Error> {
        let changed = self.changed_by_update(update)?;
        self.write_changed(changed)
    }

    /// What an UPDATE changes.
    pub(super) fn changed_by_update(&mut self, update: &Update) -> Result<TableChange, Error> {
        self.catalog.table(&update.table)?;
        let returning = self.plan_returning(update.returned())?;
        let UpdatedRows { old, new, joined } = self.updated_rows(update)?;
        if !update.from.is_empty() {
            self.check_joined_once(&update.table, &old)?;
        }
        let n_rows = n_rows(&new);
        let shown = if returning.as_ref().is_some_and(is_over_joined) { joined } else { new.clone() };
        let answer = self.returned_rows(&update.table, returning, shown)?;
        let (are_pairs, tag) = (are_aligned(&old, &new), format!("UPDATE {n_rows}"));
        Ok(TableChange { table: update.table.clone(), old, new, are_pairs, answer, tag })
    }

    /// The rows that an UPDATE changes, as they are and as they shall be. One that FROM joins with
    /// several rows comes as often.
    pub(super) fn updated_rows(&mut self, update: &Update) -> Result<UpdatedRows, Error> {
        let n_columns = self.catalog.table(&update.table)?.schema.fields().len();
        let Named { mut planned, names, .. } = self.plan_update(update)?;
        planned.plan = self.with_operator_rows(&planned.plan)?;
        self.settle_sources(&names)?;
        self.check_kept(&planned.plan)?;
        let rows = self.collect_to_change(&planned.plan)?;
        let part = |columns: std::ops::Range<usize>| -> Vec<Batch> {
            let columns: Vec<usize> = columns.collect();
            rows.iter().map(|batch| batch.project(&columns).flatten()).collect()
        };
        let (old, new) = (part(0..n_columns), part(n_columns..2 * n_columns));
        let n_all = planned.plan.schema.fields().len();
        let joined = if n_all > 2 * n_columns { part(n_columns..n_all) } else { vec![] };
        Ok(UpdatedRows { old, new, joined })
    }

    /// Refuses an UPDATE .. FROM that joins a row of the table with several others: which of them
    /// counts would be chance.
    fn check_joined_once(&mut self, table: &str, old: &[Batch]) -> Result<(), Error> {
        let object = self.catalog.table(table)?.clone();
        let Some(twice) = self.changed_twice(&object, old)? else { return Ok(()) };
        Err(Error::data(format!("UPDATE .. FROM joins a row of table \"{}\" with several others", object.name))
            .with_detail(twice.detail())
            .with_hint("Join with a query that has one row for each key, for example with GROUP BY."))
    }

    /// The plan of RETURNING, if there is one.
    pub(super) fn plan_returning(&self, returning: Option<Returning<'_>>) -> Result<Option<Planned>, Error> {
        returning.map(|returning| Ok(self.plan_returned(&returning)?.planned)).transpose()
    }

    /// What RETURNING makes of rows, with its columns.
    pub(super) fn returned_rows(
        &self,
        table: &str,
        returning: Option<Planned>,
        shown: Vec<Batch>,
    ) -> Result<Option<(SchemaRef, Rows)>, Error> {
        let Some(planned) = returning else { return Ok(None) };
        let object = self.catalog.table(table)?.clone();
        let mut rows = Vec::with_capacity(shown.len());
        for batch in shown {
            let batch = batch.with_times(Times::Constant(0)).flatten();
            // (Behind the table's columns may be those that the change joined.)
            let (own, joined) = batch.columns().split_at(object.schema.fields().len());
            let mut columns = fit_lengths(target(&object), own.to_vec())?;
            columns.extend_from_slice(joined);
            rows.push(batch.with_columns(columns.into()));
        }
        let schema = planned.columns();
        let rows = evaluate_over(&planned.plan, rows)?;
        let wanted = WantedRows { order: &[], offset: 0, limit: None };
        let rows = Rows::new(schema.clone(), finish(&schema, &rows, &wanted)?);
        Ok(Some((schema, rows)))
    }

    /// Takes rows out of a table and puts others in, as one commit.
    pub(super) fn write_changed(&mut self, changed: TableChange) -> Result<Outcome, Error> {
        let TableChange { table, old, new, are_pairs, answer, tag } = changed;
        let is_update = are_pairs && !old.is_empty();
        let removed = old.into_iter().map(|batch| batch.flatten().negate());
        match (new.is_empty(), is_update) {
            // (Rows that go break nothing but what refers to them.)
            (true, _) => self.commit_referring(&table, removed.collect(), Change::Delete)?,
            (false, true) => self.write_as(&table, removed.chain(new).collect(), Change::Update)?,
            (false, false) => self.write_checked(&table, removed.chain(new).collect())?,
        };
        Ok(answer.map_or_else(|| Outcome::done(tag), |(_, rows)| Outcome::Rows(rows)))
    }

    /// The rows of a planned query, cut to its LIMIT.
    pub(super) fn collect_finished(&mut self, planned: &Planned) -> Result<Vec<Batch>, Error> {
        self.check_kept(&planned.plan)?;
        let rows = self.collect(&planned.plan)?;
        let schema = planned.columns();
        let wanted =
            WantedRows { order: &planned.finish.order, offset: planned.finish.offset, limit: planned.finish.limit };
        if wanted.limit.is_none() && wanted.offset == 0 {
            let visible: Vec<usize> = (0..schema.fields().len()).collect();
            return Ok(rows.into_iter().map(|batch| batch.project(&visible)).collect());
        }
        let batch = |rows: RecordBatch| {
            let columns = rows.columns().iter().map(types::narrowed).collect::<Result<Columns, _>>();
            let columns = columns.map_err(|error| Error::data(error.detail()))?;
            Ok(Batch::with_len(columns, rows.num_rows(), Times::Constant(0), Diffs::Constant(1)))
        };
        finish(&schema, &rows, &wanted)?.into_iter().map(batch).collect()
    }

    /// The rows that are not late, of rows that come at once.
    pub(super) fn admit_rows(&mut self, table: &str, rows: Vec<Batch>) -> Result<Vec<Batch>, Error> {
        if self.catalog.table(table)?.watermark.is_none() {
            return Ok(rows);
        }
        let rows: Vec<Batch> = rows.into_iter().map(|batch| batch.flatten().with_times(Times::Constant(0))).collect();
        match Batch::concat(&rows).filter(|rows| !rows.is_empty()) {
            Some(rows) => Ok(vec![self.admit(table, rows, Arrival::AtOnce)?]),
            None => Ok(rows),
        }
    }

    /// Writes to a table; when that fails, its watermark is what it was.
    pub(super) fn keeping_watermark<T>(
        &mut self,
        table: &str,
        write: impl FnOnce(&mut Session) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let before = self.catalog.find(table).and_then(|object| object.watermark.clone());
        let result = write(self);
        if let (Err(_), Some(before), Some(object)) = (&result, before, self.catalog.find_mut(table)) {
            object.watermark = Some(before);
        }
        result
    }

    /// Applies changes to a table as one commit, unless they break NOT NULL, a CHECK, a key or a
    /// foreign key.
    pub(super) fn write_checked(&mut self, table: &str, changes: Vec<Batch>) -> Result<Time, Error> {
        self.write_as(table, changes, Change::Write)
    }

    fn write_as(&mut self, table: &str, changes: Vec<Batch>, change: Change) -> Result<Time, Error> {
        let object = self.catalog.table(table)?.clone();
        let changes = self.fit_rows(&object, changes)?;
        self.check_keys(&object, &changes)?;
        self.commit_referring(table, changes, change)
    }

    /// Changes as a table stores them, unless they break NOT NULL or a CHECK.
    pub(super) fn fit_rows(&self, object: &Object, changes: Vec<Batch>) -> Result<Vec<Batch>, Error> {
        let mut fitted = Vec::with_capacity(changes.len());
        for batch in changes {
            let batch = batch.with_times(Times::Constant(0)).flatten();
            if batch.is_empty() {
                continue;
            }
            check_not_null(target(object), batch.columns())?;
            let columns = fit_lengths(target(object), batch.columns().to_vec())?;
            let batch = batch.with_columns(columns.into());
            check_rows(object, &batch)?;
            self.check_spellings(object, &batch)?;
            fitted.push(batch);
        }
        Ok(fitted)
    }

    /// Rows of the table that have one of the keys now, which the open transaction has then read.
    pub(super) fn rows_read_by_keys(
        &mut self,
        object: &Object,
        key: &[usize],
        keys: Vec<ArrayRef>,
    ) -> Result<Vec<Batch>, Error> {
        self.note_keys(object, key, &keys)?;
        self.rows_with_keys(object, key, keys)
    }

    /// Rows of the table that have one of the keys now. In a transaction that wrote to it: and
    /// those that it wrote.
    pub(super) fn rows_with_keys(
        &mut self,
        object: &Object,
        key: &[usize],
        keys: Vec<ArrayRef>,
    ) -> Result<Vec<Batch>, Error> {
        let arrangements = object.maintained.iter().flat_map(|maintained| &maintained.arrangements);
        let arranged = arrangements
            .clone()
            .filter(|arranged| arranged.key.starts_with(key))
            .min_by_key(|arranged| arranged.key.len())
            .ok_or_else(|| Error::internal(format!("table \"{}\" has no index on its key", object.name)))?;
        let of = keys.clone();
        let rows = if arranged.key == key { WantedKeys::Keys(keys) } else { WantedKeys::Prefixes(keys) };
        let peek = Peek { arrangement: arranged.arrangement, at: self.timeline.last(), rows };
        let result = match self.answered() {
            Some(result) => result,
            None => self.ask(peek, vec![object.name.clone()], None)?,
        };
        let rows = rows_or_error(result)?;
        self.with_staged(object, key, &of, rows)
    }

    /// A column of a table's default, evaluated once, for `n_rows` rows.
    pub(super) fn default_column(&self, object: &Object, idx: usize, n_rows: usize) -> Result<Option<ArrayRef>, Error> {
        if let Some(numbers) = self.numbered_column(object, idx, n_rows)? {
            return Ok(Some(numbers));
        }
        let Some(Some(default)) = object.defaults.get(idx) else { return Ok(None) };
        let column = self.evaluate_constant(&format!("SELECT {default}"))?;
        let rows = vec![0u32; n_rows];
        Ok(Some(anabranch_batch::gather::take(&[column], &rows)[0].clone()))
    }
}

/// Whether each batch of old rows has one of as many new ones.
fn are_aligned(old: &[Batch], new: &[Batch]) -> bool {
    old.len() == new.len() && old.iter().zip(new).all(|(old, new)| old.len() == new.len())
}

/// Whether RETURNING names columns that the change joined.
fn is_over_joined(returning: &Planned) -> bool {
    let mut below = &returning.plan;
    while let Node::Stage { input, .. } = &below.node {
        below = input;
    }
    matches!(&below.node, Node::Scan { relation, .. } if relation == RETURNED)
}

/// Number of rows, copies counted.
pub(super) fn n_rows(batches: &[Batch]) -> i64 {
    let rows = |batch: &Batch| {
        let batch = batch.clone().flatten();
        match batch.diffs() {
            Diffs::Constant(diff) => diff * batch.len() as i64,
            Diffs::Column(diffs) => diffs.iter().sum(),
        }
    };
    batches.iter().map(rows).sum()
}
