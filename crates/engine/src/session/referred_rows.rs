//! Rows that refer to rows of other tables, in the commits that change either.
//!
//! Law: what a statement leaves obeys each foreign key: a row that refers has NULL in one of its
//! columns, or a row of the other table has its key. Rows that ON DELETE and ON UPDATE take along
//! change in the same commit. Within a transaction a statement sees what those before have written,
//! and what it looked up is read: it is as it was when the transaction commits.
//!
//! Cost: a look-up of the keys of new rows, in the other table's key. Where keys go: a look-up in
//! an index that begins with the columns that refer, in the order of the key; without such an index
//! the table that refers is read.

use std::collections::BTreeMap;

use anabranch_batch::consolidate::consolidate;
use anabranch_batch::{Batch, Diffs, Time, Times, types};
use anabranch_sql::references::OnDelete;
use anabranch_sql::table::quoted_path;
use arrow::array::{Array, ArrayRef, new_null_array};
use arrow::compute::cast;

use super::references::KeyReference;
use super::state::Session;
use crate::catalog::Object;
use crate::coerce::row_text;
use crate::error::Error;
use crate::key_set::KeySet;
use crate::spool::Spool;

/// What a statement does to the table that it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// Rows come, or change.
    Write,
    /// Rows change: the first half of the batches are those that go, the second half, row by row,
    /// what they become.
    Update,
    /// Rows go.
    Delete,
}

/// Changes of several tables that are one commit.
pub(super) type Changes = BTreeMap<String, Vec<Batch>>;

impl Session {
    /// Makes one commit of changes to a table, and of what follows from them for tables that refer
    /// to it.
    pub(super) fn commit_referring(&mut self, table: &str, batches: Vec<Batch>, change: Change) -> Result<Time, Error> {
        let object = self.catalog.table(table)?;
        let refers = !object.rules.declared.references.is_empty();
        let takes = batches.iter().any(|batch| match batch.diffs() {
            Diffs::Constant(diff) => *diff < 0,
            Diffs::Column(diffs) => diffs.iter().any(|diff| *diff < 0),
        });
        if !refers && (!takes || self.references_to(table)?.is_empty()) {
            return self.commit_batches(table, batches);
        }
        let changes = self.with_actions(table, batches, change)?;
        for table in changes.keys() {
            let object = self.catalog.table(table)?.clone();
            for reference in self.references_of(&object)? {
                let Some(net) = net(&changes[table]) else { continue };
                let Some(keys) = keys_of(&net, &reference.columns, |diff| diff > 0) else { continue };
                self.check_refer(&reference, &object, keys, &changes)?;
            }
        }
        self.commit_tables(changes)
    }

    /// The changes, and those that ON DELETE and ON UPDATE make of them.
    fn with_actions(&mut self, table: &str, batches: Vec<Batch>, change: Change) -> Result<Changes, Error> {
        let batches: Vec<Batch> = batches.into_iter().map(timeless).collect();
        let mut open: Vec<(String, Vec<Batch>, Change)> = vec![(table.to_owned(), batches.clone(), change)];
        let mut changes = Changes::from([(table.to_owned(), batches)]);
        while let Some((parent, batches, change)) = open.pop() {
            let Some(net) = net(&batches) else { continue };
            for reference in self.references_to(&parent)? {
                let Some(gone) = keys_of(&net, &reference.to, |diff| diff < 0) else { continue };
                let Some(rows) = self.rows_that_refer(&reference, &gone, &changes)? else { continue };
                let child = self.catalog.table(&reference.child)?.clone();
                let removed = rows.clone().negate();
                let (made, change) = match (change, reference.on_delete, reference.on_update) {
                    (Change::Delete, OnDelete::Cascade, _) => (vec![removed], Change::Delete),
                    (Change::Delete, OnDelete::SetNull, _) | (Change::Update, _, OnDelete::SetNull) => {
                        let mut columns = rows.columns().to_vec();
                        for at in &reference.columns {
                            columns[*at] = new_null_array(columns[*at].data_type(), rows.len());
                        }
                        (self.changed_child(&child, rows, columns)?, Change::Update)
                    }
                    (Change::Update, _, OnDelete::Cascade) => {
                        let columns = new_keys(&reference, &child, &rows, &batches)?;
                        (self.changed_child(&child, rows, columns)?, Change::Update)
                    }
                    _ => {
                        let parent = self.catalog.table(&parent)?;
                        return Err(reference.is_still_referred_to(parent, &rows));
                    }
                };
                changes.entry(reference.child.clone()).or_default().extend(made.iter().cloned());
                open.push((reference.child, made, change));
            }
        }
        Ok(changes)
    }

    /// Rows of a table, and what they become with other values for some columns.
    fn changed_child(&mut self, child: &Object, rows: Batch, columns: Vec<ArrayRef>) -> Result<Vec<Batch>, Error> {
        // (A column may be computed of those.)
        let columns = self.complete_columns(child, columns, rows.len())?;
        let removed = rows.clone().negate();
        let fitted = self.fit_rows(child, vec![rows.with_columns(columns.into())])?;
        let made: Vec<Batch> = std::iter::once(removed).chain(fitted.into_iter().map(timeless)).collect();
        self.check_keys(child, &made)?;
        Ok(made)
    }

    /// Rows that refer to these keys, once the changes are made.
    fn rows_that_refer(
        &mut self,
        reference: &KeyReference,
        keys: &Batch,
        changes: &Changes,
    ) -> Result<Option<Batch>, Error> {
        let child = self.catalog.table(&reference.child)?.clone();
        let keys = like(&child, &reference.columns, keys)?;
        if keys.is_empty() {
            return Ok(None);
        }
        let arranged = child.maintained.iter().flat_map(|maintained| &maintained.arrangements);
        let is_indexed = arranged.clone().any(|arranged| arranged.key.starts_with(&reference.columns));
        let there = match is_indexed {
            true => self.rows_read_by_keys(&child, &reference.columns, keys.columns().to_vec())?,
            // (The question takes note of what it reads.)
            false => self.all_rows(&child)?,
        };
        let made = changes.get(&child.name).into_iter().flatten().cloned();
        let all = there.into_iter().map(timeless).chain(made).map(|batch| with_keys(&batch, &reference.columns, &keys));
        let Some(sums) = Batch::concat(&all.collect::<Vec<_>>()).map(consolidate) else { return Ok(None) };
        let rows: Vec<u32> = (0..sums.len() as u32).filter(|row| sums.diffs().get(*row as usize) > 0).collect();
        Ok(Some(sums.take(&rows)).filter(|rows| !rows.is_empty()))
    }

    /// All rows of a table; in a transaction, with what it has written.
    pub(super) fn all_rows(&mut self, object: &Object) -> Result<Vec<Batch>, Error> {
        let query = anabranch_sql::parse::parse_query(&format!("SELECT * FROM {}", quoted_path(&object.name)))?;
        let plan = self.plan_constant(&query)?.planned.plan;
        self.check_kept(&plan)?;
        let plan = self.over_staged(&plan)?;
        let columns: Vec<usize> = (0..object.schema.fields().len()).collect();
        Ok(self.collect(&plan)?.iter().map(|batch| batch.project(&columns)).collect())
    }

    /// Refuses keys that no row of the other table has, once the changes are made. The keys differ.
    fn check_refer(
        &mut self,
        reference: &KeyReference,
        child: &Object,
        keys: Batch,
        changes: &Changes,
    ) -> Result<(), Error> {
        let parent = self.catalog.table(&reference.parent)?.clone();
        let wanted = like(&parent, &reference.to, &keys)?;
        if wanted.len() < keys.len() {
            // (A number that is none of the other column's type.)
            let cast = cast_to(&parent, &reference.to, &keys)?;
            let row = (0..keys.len()).find(|row| cast.iter().any(|column| column.is_null(*row))).unwrap_or(0);
            return Err(reference.refers_to_nothing(child, keys.columns(), row));
        }
        let there = self.rows_read_by_keys(&parent, &reference.to, wanted.columns().to_vec())?;
        let made = changes.get(&parent.name).into_iter().flatten().cloned();
        let all = there.into_iter().map(timeless).chain(made);
        let all: Vec<Batch> = all.map(|batch| batch.project(&reference.to)).collect();
        let there = net(&all).and_then(|sums| keys_of(&sums, &(0..reference.to.len()).collect::<Vec<_>>(), |n| n > 0));
        let found =
            there.map(|there| KeySet::new(there.columns().to_vec()).rows_among(wanted.columns())).unwrap_or_default();
        match (0..wanted.len() as u32).find(|row| found.binary_search(row).is_err()) {
            Some(row) => Err(reference.refers_to_nothing(child, keys.columns(), row as usize)),
            None => Ok(()),
        }
    }

    /// Refuses rows that COPY has read, where they refer to nothing.
    pub(super) fn check_copied_refer(&mut self, object: &Object, spool: &mut Spool) -> Result<(), Error> {
        for reference in self.references_of(object)? {
            let (mut keys, mut own) = (Vec::new(), Vec::new());
            spool.each(|batch| {
                let batch = timeless(batch);
                keys.extend(keys_of(&batch, &reference.columns, |diff| diff > 0));
                // (Of its own rows COPY keeps no more than their keys.)
                let absent = |at: usize| new_null_array(batch.column(at).data_type(), batch.len());
                let column = |at: usize| if reference.to.contains(&at) { batch.column(at).clone() } else { absent(at) };
                let columns: Vec<ArrayRef> = (0..batch.columns().len()).map(column).collect();
                own.extend((reference.parent == object.name).then(|| batch.with_columns(columns.into())));
                Ok(())
            })?;
            let all: Vec<usize> = (0..reference.columns.len()).collect();
            let Some(keys) = net(&keys).and_then(|keys| keys_of(&keys, &all, |diff| diff > 0)) else { continue };
            self.check_refer(&reference, object, keys, &Changes::from([(object.name.clone(), own)]))?;
        }
        Ok(())
    }

    /// Refuses rows of a table that is to be, where they refer to nothing.
    pub(super) fn check_rows_refer(&mut self, object: &Object, rows: &[Batch]) -> Result<(), Error> {
        for reference in self.references_of(object)? {
            let rows: Vec<Batch> = rows.iter().cloned().map(timeless).collect();
            let Some(keys) = net(&rows).and_then(|net| keys_of(&net, &reference.columns, |diff| diff > 0)) else {
                continue;
            };
            self.check_refer(&reference, object, keys, &Changes::new())?;
        }
        Ok(())
    }

    /// Makes one commit of changes to several tables; in a transaction they are staged.
    pub(super) fn commit_tables(&mut self, changes: Changes) -> Result<Time, Error> {
        let is_open = self.client.transaction.is_some();
        let time = if is_open { self.timeline.last() } else { self.begin_commit() };
        for (table, batches) in changes {
            for batch in batches.into_iter().filter(|batch| !batch.is_empty()) {
                let pushed = match is_open {
                    true => self.stage(&table, batch),
                    false => self.push(&table, batch.with_times(Times::Constant(time))),
                };
                if let Err(error) = pushed {
                    if !is_open {
                        self.abandon_commit();
                    }
                    return Err(error);
                }
            }
        }
        if !is_open {
            self.commit_pending()?;
        }
        Ok(self.timeline.last())
    }
}

impl KeyReference {
    /// The error of a key of the table that refers.
    pub(super) fn refers_to_nothing(&self, child: &Object, keys: &[ArrayRef], row: usize) -> Error {
        let (columns, value) = (child.column_list(&self.columns), row_text(keys, row));
        Error::data(format!(
            "insert or update on table \"{}\" violates foreign key constraint \"{}\"",
            child.name, self.name
        ))
        .with_sqlstate("23503")
        .with_detail(format!("Key ({columns})=({value}) is not present in table \"{}\".", self.parent))
        .about_constraint(&child.name, &self.name)
    }

    fn is_still_referred_to(&self, parent: &Object, rows: &Batch) -> Error {
        let KeyReference { name, child, .. } = self;
        let value = row_text(rows.project(&self.columns).columns(), 0);
        Error::data(format!(
            "update or delete on table \"{}\" violates foreign key constraint \"{name}\" on table \"{child}\"",
            parent.name
        ))
        .with_sqlstate("23503")
        .with_detail(format!(
            "Key ({})=({value}) is still referenced from table \"{child}\".",
            parent.column_list(&self.to)
        ))
        .about_constraint(child, name)
    }
}

/// The columns of rows that refer, with the new keys of what they refer to.
fn new_keys(reference: &KeyReference, child: &Object, rows: &Batch, changed: &[Batch]) -> Result<Vec<ArrayRef>, Error> {
    let (old, new) = changed.split_at(changed.len() / 2);
    let all = |batches: &[Batch]| {
        let keys: Vec<Batch> = batches.iter().map(|batch| timeless(batch.clone()).project(&reference.to)).collect();
        Batch::concat(&keys)
    };
    let (Some(old), Some(new)) = (all(old), all(new)) else { return Ok(rows.columns().to_vec()) };
    let (old, new) = (cast_to(child, &reference.columns, &old)?, cast_to(child, &reference.columns, &new)?);
    let own = rows.project(&reference.columns);
    let mut places: Vec<u32> = vec![0; rows.len()];
    for (row, key) in KeySet::new(old).pairs_of(own.columns()) {
        places[row as usize] = key;
    }
    let mut columns = rows.columns().to_vec();
    for (at, taken) in reference.columns.iter().zip(anabranch_batch::gather::take(&new, &places).iter()) {
        columns[*at] = taken.clone();
    }
    Ok(columns)
}

fn timeless(batch: Batch) -> Batch {
    batch.with_times(Times::Constant(0)).flatten()
}

/// The sums of changes; `None` where nothing is left.
fn net(batches: &[Batch]) -> Option<Batch> {
    Batch::concat(batches).map(consolidate).filter(|net| !net.is_empty())
}

/// The keys without NULL whose sums are wanted, each once; `None` where there are none.
fn keys_of(rows: &Batch, columns: &[usize], is_wanted: impl Fn(i64) -> bool) -> Option<Batch> {
    let sums = consolidate(rows.project(columns));
    let known = |row: usize| sums.columns().iter().all(|column| column.is_valid(row));
    let rows = (0..sums.len()).filter(|row| is_wanted(sums.diffs().get(*row)) && known(*row));
    let rows: Vec<u32> = rows.map(|row| row as u32).collect();
    let keys = sums.take(&rows);
    let n_keys = keys.len();
    Some(Batch::with_len(keys.columns().to_vec().into(), n_keys, Times::Constant(0), Diffs::Constant(1)))
        .filter(|keys| !keys.is_empty())
}

/// Keys as values of a table's columns; NULL where a value is none of its column.
fn cast_to(object: &Object, columns: &[usize], keys: &Batch) -> Result<Vec<ArrayRef>, Error> {
    let of_column = |(column, at): (&ArrayRef, &usize)| {
        Ok(cast(column, &types::narrowed_type(object.schema.field(*at).data_type()))?)
    };
    keys.columns().iter().zip(columns).map(of_column).collect()
}

/// Keys as values of a table's columns, without those that are none.
fn like(object: &Object, columns: &[usize], keys: &Batch) -> Result<Batch, Error> {
    let cast = cast_to(object, columns, keys)?;
    let is_whole = |row: &u32| cast.iter().all(|column| column.is_valid(*row as usize));
    let rows: Vec<u32> = (0..keys.len() as u32).filter(is_whole).collect();
    let keys = keys.clone().with_columns(cast.clone().into());
    Ok(if rows.len() == keys.len() { keys } else { keys.take(&rows) })
}

/// The rows that have one of the keys in these columns.
fn with_keys(batch: &Batch, columns: &[usize], keys: &Batch) -> Batch {
    batch.take(&KeySet::new(keys.columns().to_vec()).rows_among(batch.project(columns).columns()))
}
