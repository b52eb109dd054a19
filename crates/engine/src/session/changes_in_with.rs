//! `WITH d AS (DELETE .. RETURNING ..) INSERT INTO .. SELECT .. FROM d`.
//!
//! Law: all parts see the tables as they were before the statement; their changes are one commit,
//! or a part of the open transaction. What a part returns is literal rows to what comes behind it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anabranch_sql::statement::{Access, ChangesInWith, Statement};
use anabranch_sql::{Planned, column_type_name, output};
use arrow::datatypes::SchemaRef;

use super::outcome::{Outcome, Rows};
use super::state::Session;
use super::write::TableChange;
use crate::error::Error;
use crate::transaction::Transaction;

/// Rows that a part returns, at most: they are a part of the plans of those behind it.
const RETURNED_ROWS_MAX: usize = 20_000;

impl Session {
    pub(super) fn change_in_with(&mut self, with: &ChangesInWith) -> Result<Outcome, Error> {
        // (Plans hold rows that were returned, so none is kept.)
        let plans = self.bound.plans.take();
        let result = self.change_together(with);
        self.bound.plans = plans;
        result
    }

    fn change_together(&mut self, with: &ChangesInWith) -> Result<Outcome, Error> {
        let mut changes: Vec<TableChange> = Vec::new();
        let mut returned: Vec<(String, Option<String>)> = Vec::new();
        for (name, part) in &with.parts {
            let changed = self.changed_by(&ChangesInWith::filled(part, &returned)?)?;
            let text = changed.answer.as_ref().map(|(schema, rows)| rows_text(schema, Some(rows))).transpose()?;
            returned.push((name.clone(), text));
            changes.push(changed);
        }
        let main = ChangesInWith::filled(&with.main, &returned)?;
        let outcome = match &main {
            Statement::Select { query, .. } => Outcome::Rows(self.select(query, None)?),
            other => {
                let changed = self.changed_by(other)?;
                let outcome = changed.outcome();
                changes.push(changed);
                outcome
            }
        };
        self.write_together(changes)?;
        Ok(outcome)
    }

    /// What a statement changes, and what it answers.
    fn changed_by(&mut self, statement: &Statement) -> Result<TableChange, Error> {
        let table = match statement {
            Statement::Insert(insert) => &insert.table,
            Statement::Update(update) => &update.table,
            Statement::Delete(delete) => &delete.table,
            _ => return Err(Error::internal("a part of WITH changes a table")),
        };
        if self.catalog.table(table)?.watermark.is_some() {
            return Err(Error::invalid(format!("changing table \"{table}\", which has a watermark, in WITH"))
                .with_sqlstate("0A000")
                .with_hint("Run the statements one by one."));
        }
        match statement {
            Statement::Insert(insert) => self.changed_by_insert(insert),
            Statement::Update(update) => self.changed_by_update(update),
            Statement::Delete(delete) => self.changed_by_delete(delete),
            _ => Err(Error::internal("a part of WITH changes a table")),
        }
    }

    /// Writes changes of several tables as one commit.
    fn write_together(&mut self, changes: Vec<TableChange>) -> Result<(), Error> {
        let mut merged: Vec<TableChange> = Vec::new();
        for change in changes {
            match merged.iter_mut().find(|known| known.table == change.table) {
                Some(known) => {
                    known.old.extend(change.old);
                    known.new.extend(change.new);
                    // (Some may have gone, or come, alone.)
                    known.are_pairs &= change.are_pairs;
                }
                None => merged.push(change),
            }
        }
        if self.client.transaction.is_some() {
            return merged.into_iter().try_for_each(|change| self.write_changed(change).map(|_| ()));
        }
        self.client.transaction = Some(Transaction {
            access: Access::ReadWrite,
            has_failed: false,
            seen: self.timeline.last(),
            pin: None,
            is_behind: false,
            version: None,
            read: BTreeMap::new(),
            staged: Default::default(),
            defined: Vec::new(),
            savepoints: Vec::new(),
        });
        let written = merged.into_iter().try_for_each(|change| self.write_changed(change).map(|_| ()));
        let transaction = self.client.transaction.take();
        written?;
        transaction.map_or(Ok(()), |transaction| self.commit_transaction(transaction).map(|_| ()))
    }

    /// The columns that a statement answers with, if it has rows to show.
    pub(super) fn columns_of_changes(&self, with: &ChangesInWith) -> Result<Statement, Error> {
        let mut returned: Vec<(String, Option<String>)> = Vec::new();
        for (name, part) in &with.parts {
            let planned: Option<Planned> = match ChangesInWith::filled(part, &returned)? {
                Statement::Insert(insert) => self.plan_returning(insert.returned())?,
                Statement::Update(update) => self.plan_returning(update.returned())?,
                Statement::Delete(delete) => self.plan_returning(delete.returned())?,
                _ => None,
            };
            let text = planned.map(|planned| rows_text(&planned.columns(), None)).transpose()?;
            returned.push((name.clone(), text));
        }
        Ok(ChangesInWith::filled(&with.main, &returned)?)
    }
}

/// A query of literal rows.
fn rows_text(schema: &SchemaRef, rows: Option<&Rows>) -> Result<String, Error> {
    let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
    let n_rows: usize = rows.iter().flat_map(|rows| &rows.batches).map(|batch| batch.num_rows()).sum();
    if n_rows > RETURNED_ROWS_MAX {
        return Err(Error::invalid(format!("a statement in WITH has returned {n_rows} rows"))
            .with_sqlstate("54000")
            .with_detail(format!("{RETURNED_ROWS_MAX} are the most that others may read."))
            .with_hint("Keep the rows in a temporary table, and go on with that."));
    }
    let value = |at: usize| if n_rows == 0 { "NULL".to_owned() } else { format!("__returned.c{at}") };
    let item = |(at, field): (usize, &arrow::datatypes::FieldRef)| {
        format!("CAST({} AS {}) AS {}", value(at), column_type_name(field), quoted(field.name()))
    };
    let items: Vec<String> = schema.fields().iter().enumerate().map(item).collect();
    let mut text = format!("SELECT {}", items.join(", "));
    let Some(rows) = rows.filter(|_| n_rows > 0) else { return Ok(format!("{text} WHERE false")) };
    text.push_str(" FROM (VALUES ");
    let (mut is_first, mut cell) = (true, String::new());
    for batch in &rows.batches {
        let printers = output::printers(batch.columns());
        for row in 0..batch.num_rows() {
            text.push_str(if is_first { "(" } else { ", (" });
            is_first = false;
            for (at, (column, print)) in printers.iter().enumerate() {
                text.push_str(if at == 0 { "" } else { ", " });
                if output::is_null(column, row) {
                    text.push_str("NULL");
                    continue;
                }
                cell.clear();
                print(row, &mut cell);
                let _ = write!(text, "'{}'", cell.replace('\'', "''"));
            }
            text.push(')');
        }
    }
    let names: Vec<String> = (0..schema.fields().len()).map(|at| format!("c{at}")).collect();
    let _ = write!(text, ") AS __returned({})", names.join(", "));
    Ok(text)
}
