//! Files in FROM: for the length of a statement they are tables of its client.
//!
//! Law: a file is read once a statement, to its end, before the statement is planned. A statement
//! that waits and is attempted again finds the tables that it has made.
//!
//! Memory: all rows of the file. A source keeps them for several statements, and its views follow.

use std::collections::BTreeMap;

use anabranch_batch::Times;
use anabranch_sql::files::{ReadFile, with_tables};
use anabranch_sql::statement::{CreateTable, LifetimeClause, Rules, Statement};
use arrow::datatypes::Field;

use super::outcome::Outcome;
use super::state::Session;
use super::told_columns::{FileReader, told_columns};
use crate::connector::{Poll, SourceSpec};
use crate::error::Error;

/// What of a file is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// Its columns, for a statement that is only looked at.
    Columns,
    Rows,
}

impl Session {
    /// The statement with tables in place of files; `None` if it reads none.
    pub(super) fn with_files(&mut self, statement: &Statement, wanted: Wanted) -> Result<Option<Statement>, Error> {
        with_tables(statement, &mut |file| {
            if let Some(known) = self.client.files.get(file) {
                return Ok(known.clone());
            }
            let name = self.table_of_file(file, wanted)?;
            self.client.files.insert(file.clone(), name.clone());
            Ok(name)
        })
    }

    /// The outcome of a statement, with what to know of the files that were read for it.
    pub(super) fn with_file_notices(&self, outcome: Outcome) -> Outcome {
        self.client.file_notices.iter().fold(outcome, |outcome, notice| outcome.with_notice(notice))
    }

    /// Forgets the tables of files.
    pub(super) fn drop_files(&mut self) {
        self.client.file_notices.clear();
        for name in std::mem::take(&mut self.client.files).into_values() {
            self.drop_relation(&name);
            self.allow_compaction();
        }
    }

    fn table_of_file(&mut self, file: &ReadFile, wanted: Wanted) -> Result<String, Error> {
        if self.client.transaction.is_some() {
            return Err(Error::invalid("a file in FROM is not supported in a transaction")
                .with_sqlstate("0A000")
                .with_hint("COMMIT first; or CREATE SOURCE before the transaction, and read the source."));
        }
        let mut options: BTreeMap<String, String> = file.options.iter().cloned().collect();
        options.insert("path".to_string(), file.path.clone());
        super::copy::refuse_follow(&options, "FROM")?;
        let spec = SourceSpec { name: file.path.clone(), columns: vec![], options };
        let mut reader = self.connector("file")?.open(&spec)?;
        let fields: Vec<Field> = reader.schema().fields().iter().map(|field| field.as_ref().clone()).collect();
        if wanted == Wanted::Rows {
            self.client.file_notices.extend(told_columns(&spec.options, &fields, &FileReader::Entry(&file.path)));
        }
        let number = self.catalog.next_object().0;
        let name = self.temporary_name(&format!("__file_{number}"));
        let table = CreateTable {
            name: name.clone(),
            if_not_exists: false,
            defaults: vec![None; fields.len()],
            columns: fields.clone(),
            primary_key: vec![],
            like: None,
            uniques: vec![],
            watermark: None,
            is_append_only: false,
            options: vec![],
            rules: Rules::default(),
            lifetime: LifetimeClause::OfClient,
        };
        self.create_table_named(&table, "")?;
        let object = self.catalog.table(&name)?.clone();
        let mut has_more = wanted == Wanted::Rows;
        while has_more {
            let read = self.interrupt.check().and_then(|()| reader.poll(self.settings.batch_rows_max));
            let read = read.and_then(|poll| match poll {
                Poll::Rows(batch) => {
                    let rows = self.fit_copied(&object, &fields, batch)?;
                    let time = self.begin_commit();
                    self.push(&name, rows.with_times(Times::Constant(time)))?;
                    self.commit_pending().map(|()| true)
                }
                Poll::Pending { retry_after } => {
                    std::thread::sleep(retry_after);
                    Ok(true)
                }
                Poll::Done => Ok(false),
            });
            match read {
                Ok(more) => has_more = more,
                Err(error) => {
                    self.abandon_commit();
                    self.drop_relation(&name);
                    return Err(error);
                }
            }
        }
        Ok(name)
    }
}
