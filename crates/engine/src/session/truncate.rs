//! TRUNCATE: all rows of tables go, as one commit.
//!
//! Law: no row that is left refers to a row that is gone: tables that refer to those named are
//! named too, or go along with CASCADE. Nothing follows from rows that go so.

use anabranch_sql::statement::{Made, Truncate};

use super::outcome::Outcome;
use super::referred_rows::Changes;
use super::state::Session;
use crate::error::Error;

impl Session {
    pub(super) fn truncate(&mut self, truncate: &Truncate) -> Result<Outcome, Error> {
        let mut tables = truncate.tables.clone();
        for table in &tables {
            self.catalog.table(table)?;
        }
        while let Some((child, name)) = self.references_left(&tables).into_iter().next() {
            if !truncate.cascade {
                return Err(Error::invalid("cannot truncate a table referenced in a foreign key constraint")
                    .with_sqlstate("0A000")
                    .with_detail(format!("Table \"{child}\" references it: constraint \"{name}\"."))
                    .with_hint(format!("Truncate table \"{child}\" at the same time, or use TRUNCATE .. CASCADE.")));
            }
            tables.push(child);
        }
        if truncate.restarts && self.client.transaction.is_some() {
            // (A counter does not go back with what a transaction has written.)
            return Err(Error::invalid("TRUNCATE .. RESTART IDENTITY is not supported in a transaction")
                .with_sqlstate("0A000")
                .with_hint("COMMIT first; or leave RESTART IDENTITY out."));
        }
        let mut changes = Changes::new();
        for table in &tables {
            let object = self.catalog.table(table)?.clone();
            let rows = self.all_rows(&object)?;
            changes.insert(table.clone(), rows.into_iter().map(|batch| batch.flatten().negate()).collect());
        }
        let mut before = Vec::new();
        for table in tables.iter().filter(|_| truncate.restarts) {
            let rules = &self.catalog.table(table)?.rules;
            for counted in &rules.counters {
                before.push((counted.counter.clone(), counted.counter.peek()));
                if let Made::Numbered(numbering) = rules.declared.made(counted.column) {
                    counted.counter.set(numbering.start);
                }
            }
        }
        self.commit_tables(changes).inspect_err(|_| {
            before.iter().for_each(|(counter, next)| counter.set(*next));
        })?;
        Ok(Outcome::done("TRUNCATE TABLE"))
    }
}
