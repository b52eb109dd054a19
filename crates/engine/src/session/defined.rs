//! CREATE, ALTER and DROP inside a transaction.
//!
//! Law: what a transaction has made is gone when it is rolled back, fails to commit, or when its
//! connection ends; rows that it wrote are part of its one commit, as ever. A definition itself
//! takes effect at once and by itself: other connections see a new table, without the
//! transaction's rows, before COMMIT. What was altered or dropped, and was there before, is not
//! taken back; a notice says so.
//!
//! A definition is made as if no transaction were open. The transaction is set aside meanwhile;
//! afterwards it goes on from the new state of the catalog. The choice is recorded in decision
//! 0112.

use std::collections::BTreeSet;

use anabranch_batch::Time;
use anabranch_sql::statement::{Alter, AlterAction, Drop, ObjectKind, Statement};

use super::outcome::Outcome;
use super::state::Session;
use super::tag::command_tag;
use crate::catalog::ObjectId;
use crate::error::Error;

impl Session {
    /// Runs a statement of the open transaction that changes definitions.
    pub(super) fn define_in_transaction(&mut self, statement: &Statement, text: &str) -> Result<Outcome, Error> {
        if let Statement::Alter(alter) = statement {
            self.check_alters_no_staged(alter)?;
        }
        if let Statement::AlterType(alter) = statement
            && self.has_staged()
        {
            let message = format!("type \"{}\" cannot be altered while rows wait for COMMIT", alter.name);
            return Err(Error::invalid(message).with_sqlstate("55006").with_hint("COMMIT first, then alter the type."));
        }
        if let Statement::CreateIndex(create) = statement
            && create.is_unique
            && self.has_staged()
        {
            // (With the transaction's rows, which the index itself does not see yet.)
            self.check_unique_rows(create)?;
        }
        let target = self.target_of(statement);
        let (outcome, is_undone) = self.beside_transaction(target, |session| session.run_one(statement, text))?;
        if is_undone {
            return Ok(outcome);
        }
        let tag = command_tag(statement);
        Ok(outcome.with_notice(&format!("{tag} took effect by itself; ROLLBACK does not take it back")))
    }

    /// Does something outside of the open transaction, which knows afterwards what was made.
    /// Whether a rollback will take it back: whether all that has changed or gone was the
    /// transaction's own. `target` is what is changed in place.
    ///
    /// # Errors
    /// A conflict, if what the transaction has read has changed; what `work` returns.
    pub(super) fn beside_transaction<T>(
        &mut self,
        target: Option<ObjectId>,
        work: impl FnOnce(&mut Session) -> Result<T, Error>,
    ) -> Result<(T, bool), Error> {
        let Some(transaction) = self.client.transaction.take() else { return Ok((work(self)?, true)) };
        let before = self.ids_of_objects();
        let result = self.check_reads(&transaction).and_then(|()| work(self));
        let after = self.ids_of_objects();
        let transaction = self.client.transaction.insert(transaction);
        let done = result?;
        let is_own = before.difference(&after).chain(&target).all(|id| transaction.defined.contains(id));
        // (What is altered or replaced is made anew: it must not go with what was made.)
        if is_own {
            transaction.defined.extend(after.difference(&before));
        }
        // What was read before was unchanged when the definition was made.
        transaction.seen = self.timeline.last();
        transaction.version = transaction.version.map(|_| self.catalog.n_replaced());
        let catalog = &self.catalog;
        transaction.staged.retain(|table, staged| {
            let now = catalog.find(table).filter(|object| object.id == staged.object);
            now.inspect(|now| staged.follow(now)).is_some()
        });
        Ok((done, is_own))
    }

    /// Takes back what a transaction has made, the latest first. Names what stays: what others have
    /// built upon, or have written to.
    pub(super) fn undo_definitions(&mut self, defined: &[ObjectId]) -> Option<String> {
        let mut stays = Vec::new();
        for id in defined.iter().rev() {
            let Some(made) = self.catalog.created().into_iter().find(|made| made.id == *id) else { continue };
            // (The transaction's own rows were only staged.)
            let is_written = self.timeline.has_changed(*id, Time::MIN);
            if is_written || self.drop_made(made.name.clone(), *id).is_err() {
                stays.push((*id, made.name));
            }
        }
        // (An index of a constraint goes with its table.)
        let left = self.ids_of_objects();
        let stays = stays.into_iter().filter(|(id, _)| left.contains(id));
        let stays: Vec<String> = stays.map(|(_, name)| format!("\"{name}\"")).collect();
        match stays.is_empty() {
            true => None,
            false => Some(format!("{} stays, since others have used it", stays.join(", "))),
        }
    }

    fn drop_made(&mut self, name: String, id: ObjectId) -> Result<(), Error> {
        if self.catalog.schemas().get(&name).is_some_and(|schema| schema.id == id) {
            return self.drop_schemas(&[name], true, false).map(|_| ());
        }
        if self.catalog.types().get(&name).is_some_and(|known| known.id == id) {
            return self.drop_types(&[name], false, true, false).map(|_| ());
        }
        let Some(kind) = self.catalog.kind_of(&name) else { return Ok(()) };
        self.drop_objects(&Drop { kind, names: vec![name], if_exists: true, cascade: false }).map(|_| ())
    }

    fn ids_of_objects(&self) -> BTreeSet<ObjectId> {
        self.catalog.created().into_iter().map(|created| created.id).collect()
    }

    /// What a statement changes in place.
    fn target_of(&self, statement: &Statement) -> Option<ObjectId> {
        let is_type = matches!(statement, Statement::AlterType(_));
        let name = match statement {
            Statement::Alter(alter) => &alter.name,
            Statement::AlterSequence(alter) => &alter.name,
            Statement::AlterType(alter) => &alter.name,
            _ => return None,
        };
        match is_type {
            true => self.catalog.types().get(name).map(|known| known.id),
            false => self.catalog.created().into_iter().find(|made| made.name == *name).map(|made| made.id),
        }
    }

    /// Rows that wait for COMMIT have the columns that their table had, and keep the references
    /// that there were.
    fn check_alters_no_staged(&self, alter: &Alter) -> Result<(), Error> {
        let Some(transaction) = &self.client.transaction else { return Ok(()) };
        let refers = |action: &AlterAction| matches!(action, AlterAction::AddReference(_));
        let concerned = match alter.actions.iter().any(refers) {
            true => transaction.staged.keys().next(),
            false => transaction.staged.keys().find(|table| **table == alter.name),
        };
        let Some(table) = concerned.filter(|_| alter.kind == ObjectKind::Table) else { return Ok(()) };
        let message = format!("table \"{}\" cannot be altered while rows of \"{table}\" wait for COMMIT", alter.name);
        Err(Error::invalid(message).with_sqlstate("55006").with_hint("COMMIT first, then alter the table."))
    }
}

/// Whether a statement changes definitions.
pub(super) fn defines(statement: &Statement) -> bool {
    matches!(
        statement,
        Statement::CreateTable(_)
            | Statement::CreateTableAs(_)
            | Statement::CreateSource(_)
            | Statement::CreateView(_)
            | Statement::CreateIndex(_)
            | Statement::Drop(_)
            | Statement::Alter(_)
            | Statement::CreateSequence(_)
            | Statement::AlterSequence(_)
            | Statement::CreateType(_)
            | Statement::AlterType(_)
            | Statement::DropType { .. }
            | Statement::CreateSchema { .. }
            | Statement::DropSchema { .. }
    )
}
