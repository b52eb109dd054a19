//! Transactions of several statements.
//!
//! Law: a transaction takes effect at one point of the timeline, all of it or nothing. Everything
//! that the transaction read is, at that point, as it was when it was read. Where that cannot be
//! had, a statement or COMMIT fails with SQLSTATE 40001 and nothing happens.
//!
//! Writes are staged and pushed by COMMIT. They are bound to the definition of their table: once
//! another transaction has altered it, they are read no more, and COMMIT fails. Reads are as of the
//! last commit. Before each read, and before COMMIT, the relations that were read before must be
//! unchanged: so all reads of a transaction are as of the latest of them. A transaction that has
//! not written goes on reading as of that commit where they have changed, and its COMMIT compares
//! nothing: that commit is its point of the timeline. A statement's plan reads a written table with
//! its staged changes, and a view over such a table is planned where it is named, from its text.
//!
//! Cost: a read of a table without staged changes costs what it costs outside. A read of a written
//! table, or of a view over it, computes its answer anew. A savepoint is the number of changes
//! before it. Definitions take effect beside the transaction (see [`defined`](super::defined)).
//! Left out: subscriptions are refused. The choice is recorded in decision 0035.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anabranch_batch::consolidate::consolidate;
use anabranch_batch::{Batch, Times};
use anabranch_plan::Plan;
use anabranch_sql::files::{moves_sequences, reads_files};
use anabranch_sql::statement::{
    Access, Afterwards, CopyEnd, CreateView, EmitClause, LockMode, ObjectKind, Statement, TransactionStatement,
};
use arrow::array::ArrayRef;

use super::defined::defines;
use super::outcome::Outcome;
use super::state::Session;
use super::tag::command_tag;
use super::together::changes_rows;
use crate::catalog::{Arrival, Object, ObjectId};
use crate::direct::Read;
use crate::error::Error;
use crate::staged::Staged;
use crate::transaction::{
    Transaction, TransactionState, conflict, failed, halves, over_net, substitute, waits_for_watermark,
};

impl Session {
    /// Where the session's transaction stands.
    pub fn transaction(&self) -> TransactionState {
        Transaction::state(self.client.transaction.as_ref())
    }

    /// BEGIN, COMMIT, ROLLBACK.
    pub(super) fn transact(&mut self, statement: TransactionStatement) -> Result<Outcome, Error> {
        let was_open = self.client.transaction.is_some();
        let chained = self.chained(&statement)?;
        let result = self.begin_or_end(statement);
        if was_open && self.client.transaction.is_none() {
            let is_committed = matches!(&result, Ok(Outcome::Done { tag, .. }) if tag == "COMMIT");
            Arc::make_mut(&mut self.client.variables).end(is_committed);
            if let Some(durability) = self.client.durability_after.take() {
                self.client.durability = durability;
            }
            self.end_cursors(is_committed);
            self.client.locks.end_transaction();
        }
        if let (Some(access), Ok(_)) = (chained, &result) {
            self.begin_or_end(TransactionStatement::Begin { access, tag: "BEGIN" })?;
        }
        result
    }

    /// What the transaction may do that `AND CHAIN` begins: what the open one may.
    fn chained(&self, statement: &TransactionStatement) -> Result<Option<Access>, Error> {
        let word = match statement {
            TransactionStatement::Commit { then: Afterwards::Another } => "COMMIT",
            TransactionStatement::Rollback { then: Afterwards::Another } => "ROLLBACK",
            _ => return Ok(None),
        };
        match &self.client.transaction {
            Some(transaction) => Ok(Some(transaction.access)),
            None => Err(Error::invalid(format!("{word} AND CHAIN can only be used in transaction blocks"))
                .with_sqlstate("25P01")
                .with_hint("BEGIN first.")),
        }
    }

    fn begin_or_end(&mut self, statement: TransactionStatement) -> Result<Outcome, Error> {
        match statement {
            TransactionStatement::Begin { tag, .. } if self.client.transaction.is_some() => {
                Ok(Outcome::done_with(tag, "there is already a transaction in progress"))
            }
            TransactionStatement::Begin { access, tag } => {
                let reads_only = self.client.variables.get("default_transaction_read_only") == Some("on");
                let access = if reads_only { Access::ReadOnly } else { access };
                self.client.transaction = Some(Transaction {
                    access,
                    has_failed: false,
                    seen: self.timeline.last(),
                    pin: None,
                    is_behind: false,
                    version: None,
                    read: BTreeMap::new(),
                    staged: BTreeMap::new(),
                    defined: Vec::new(),
                    savepoints: Vec::new(),
                });
                Arc::make_mut(&mut self.client.variables).begin();
                Ok(Outcome::done(tag))
            }
            TransactionStatement::Commit { .. } => match self.client.transaction.take() {
                None => Ok(Outcome::done_with("COMMIT", "there is no transaction in progress")),
                Some(transaction) if transaction.has_failed => {
                    let failed = Outcome::done_with("ROLLBACK", "a statement of the transaction had failed");
                    Ok(self.rolled_back(failed, &transaction.defined))
                }
                Some(transaction) => {
                    let defined = transaction.defined.clone();
                    self.commit_transaction(transaction).inspect_err(|_| {
                        self.undo_definitions(&defined);
                    })
                }
            },
            TransactionStatement::Rollback { .. } => match self.client.transaction.take() {
                None => Ok(Outcome::done_with("ROLLBACK", "there is no transaction in progress")),
                Some(transaction) => Ok(self.rolled_back(Outcome::done("ROLLBACK"), &transaction.defined)),
            },
            TransactionStatement::Savepoint { name } => self.in_transaction("SAVEPOINT", |transaction| {
                transaction.save(name);
                Ok(())
            }),
            TransactionStatement::Release { name } => {
                self.in_transaction("RELEASE", |transaction| transaction.release(&name))
            }
            TransactionStatement::RollbackTo { name } => {
                let mut undone = Vec::new();
                let outcome = self.in_transaction("ROLLBACK", |transaction| {
                    undone = transaction.roll_back_to(&name)?;
                    Ok(())
                })?;
                match undone.is_empty() {
                    true => Ok(outcome),
                    false => {
                        let undo = |session: &mut Session| Ok(session.rolled_back(outcome, &undone));
                        self.beside_transaction(None, undo).map(|(outcome, _)| outcome)
                    }
                }
            }
        }
    }

    /// The outcome of a rollback, once what was made is gone.
    fn rolled_back(&mut self, outcome: Outcome, defined: &[ObjectId]) -> Outcome {
        match self.undo_definitions(defined) {
            Some(stays) => outcome.with_notice(&stays),
            None => outcome,
        }
    }

    /// LOCK: in a mode that keeps off rows of others, all rows of the relations are noted as read.
    pub(super) fn lock_relations(&mut self, relations: &[String], mode: LockMode) -> Result<Outcome, Error> {
        let outcome = self.in_transaction("LOCK TABLE", |_| Ok(()))?;
        for name in relations {
            let object = self.catalog.get(name)?;
            if !matches!(object.kind, ObjectKind::Table | ObjectKind::View) {
                return Err(Error::invalid(format!("\"{name}\" is not a table or view"))
                    .with_sqlstate("42809")
                    .with_hint("LOCK the tables that it is made of."));
            }
        }
        if mode == LockMode::Rows {
            self.note_locked(relations)?;
        }
        Ok(outcome)
    }

    /// Does something with the open transaction, where there must be one.
    fn in_transaction(
        &mut self,
        tag: &str,
        work: impl FnOnce(&mut Transaction) -> Result<(), Error>,
    ) -> Result<Outcome, Error> {
        match &mut self.client.transaction {
            Some(transaction) => work(transaction).map(|()| Outcome::done(tag)),
            None => {
                let shown = if tag == "ROLLBACK" { "ROLLBACK TO SAVEPOINT" } else { tag };
                Err(Error::invalid(format!("{shown} can only be used in transaction blocks"))
                    .with_sqlstate("25P01")
                    .with_hint("BEGIN first."))
            }
        }
    }

    /// Refuses what cannot be done in the open transaction, if there is one; that fails it.
    pub(super) fn check_transaction(&mut self, statement: &Statement) -> Result<(), Error> {
        let Some(transaction) = &mut self.client.transaction else { return Ok(()) };
        if matches!(statement, Statement::Transaction(_)) && !transaction.has_failed {
            return Ok(());
        }
        if transaction.has_failed {
            return match statement {
                Statement::Transaction(
                    TransactionStatement::Commit { .. }
                    | TransactionStatement::Rollback { .. }
                    | TransactionStatement::RollbackTo { .. },
                ) => Ok(()),
                _ => Err(failed()),
            };
        }
        let (tag, writes, alone) = (command_tag(statement), writes(statement), stands_alone(statement));
        let refused = if writes && transaction.access == Access::ReadOnly {
            Error::invalid(format!("cannot execute {tag} in a read-only transaction"))
                .with_sqlstate("25006")
                .with_hint("ROLLBACK, and BEGIN one that may write.")
        } else if alone {
            Error::invalid(format!("{tag} cannot run inside a transaction"))
                .with_sqlstate("25001")
                .with_hint("COMMIT or ROLLBACK first; the statement commits by itself.")
        } else {
            return Ok(());
        };
        self.fail_transaction();
        Err(refused)
    }

    /// The open transaction can only be rolled back from here on.
    pub(super) fn fail_transaction(&mut self) {
        if let Some(transaction) = &mut self.client.transaction {
            transaction.has_failed = true;
            if transaction.savepoints.is_empty() {
                transaction.staged.clear();
                self.client.locks.end_transaction();
            }
        }
    }

    /// Takes note of a change of the open transaction.
    pub(super) fn stage(&mut self, table: &str, batch: Batch) -> Result<(), Error> {
        let object = self.catalog.table(table)?;
        object.check_added(&batch)?;
        let Some(transaction) = &mut self.client.transaction else {
            return Err(Error::internal("rows are staged without a transaction"));
        };
        if transaction.has_failed {
            return Err(failed());
        }
        if transaction.access == Access::ReadOnly {
            return Err(Error::invalid(format!("cannot write to table \"{table}\" in a read-only transaction")));
        }
        if transaction.is_behind {
            return Err(conflict("what was read was changed by another transaction, and nothing can be written then"));
        }
        let staged = transaction.staged.entry(table.to_owned()).or_insert_with(|| Staged::new(object));
        if !staged.fits(object) {
            return Err(altered_meanwhile(table));
        }
        staged.push(batch);
        Ok(())
    }

    pub(super) fn has_staged(&self) -> bool {
        self.client.transaction.as_ref().is_some_and(Transaction::has_staged)
    }

    /// Makes one commit of what the transaction has written. It is no longer the session's.
    pub(super) fn commit_transaction(&mut self, transaction: Transaction) -> Result<Outcome, Error> {
        if transaction.has_only_read() {
            // (All that it read is as of one commit, which came while it was open.)
            return Ok(Outcome::done("COMMIT"));
        }
        self.check_reads(&transaction)?;
        let mut changes: Vec<(String, Batch)> = Vec::new();
        for (table, staged) in &transaction.staged {
            // (Rows obey the rules that were there when they were made: no other rule came since.)
            let Some(object) = self.catalog.find(table).filter(|object| staged.fits(object)).cloned() else {
                return Err(altered_meanwhile(table));
            };
            let Some(net) = staged.net() else { continue };
            // Keys were compared with rows as they were then.
            self.check_keys(&object, std::slice::from_ref(&net)).map_err(|error| {
                conflict(&format!("another transaction has written the same keys of table \"{table}\""))
                    .with_detail(error.detail.unwrap_or(error.message))
            })?;
            changes.push((table.clone(), net));
        }
        let watermarks: Vec<_> = changes
            .iter()
            .filter_map(|(table, _)| Some((table.clone(), self.catalog.find(table)?.watermark.clone()?)))
            .collect();
        let result = self.commit_changes(changes);
        if result.is_err() {
            self.abandon_commit();
            for (table, watermark) in watermarks {
                if let Some(object) = self.catalog.find_mut(&table) {
                    object.watermark = Some(watermark);
                }
            }
        }
        result.map(|()| Outcome::done("COMMIT"))
    }

    fn commit_changes(&mut self, changes: Vec<(String, Batch)>) -> Result<(), Error> {
        if changes.is_empty() {
            return Ok(());
        }
        let time = self.begin_commit();
        for (table, net) in changes {
            let (put_in, taken) = halves(&net);
            let put_in = if put_in.is_empty() { put_in } else { self.admit(&table, put_in, Arrival::AtOnce)? };
            for batch in [taken, put_in].into_iter().filter(|batch| !batch.is_empty()) {
                self.push(&table, batch.with_times(Times::Constant(time)))?;
            }
        }
        self.commit_pending()
    }

    /// Rows of a table with these keys, some of which the open transaction may have changed. Of
    /// those it put in, perhaps more than were asked for.
    pub(super) fn with_staged(
        &mut self,
        object: &Object,
        key: &[usize],
        keys: &[ArrayRef],
        rows: Vec<Batch>,
    ) -> Result<Vec<Batch>, Error> {
        let staged = self.client.transaction.as_mut().and_then(|transaction| transaction.staged.get_mut(&object.name));
        let Some(staged) = staged else { return Ok(rows) };
        if !staged.fits(object) {
            return Err(altered_meanwhile(&object.name));
        }
        let Some(changes) = staged.net_of_keys(key, keys) else { return Ok(rows) };
        let rows = rows.into_iter().map(|batch| batch.with_times(Times::Constant(0)).flatten());
        let all: Vec<Batch> = rows.chain([changes]).collect();
        // (Rows taken whose keys were not asked for have no row to be taken from here.)
        Ok(Batch::concat(&all).map(consolidate).map(|sums| halves(&sums).0).into_iter().collect())
    }

    /// Refuses to go on where rows wait for COMMIT that were made for a table as it was before
    /// another transaction altered it.
    pub(super) fn check_staged(&self, transaction: &Transaction) -> Result<(), Error> {
        let fits = |(table, staged): &(&String, &Staged)| self.catalog.find(table).is_some_and(|now| staged.fits(now));
        match transaction.staged.iter().find(|staged| !fits(staged)) {
            Some((table, _)) => Err(altered_meanwhile(table)),
            None => Ok(()),
        }
    }

    /// The plan over what the open transaction has written. Of a table that is asked by a key,
    /// that is what it has written of the key.
    pub(super) fn over_staged(&mut self, plan: &Arc<Plan>) -> Result<Arc<Plan>, Error> {
        let Some(transaction) = self.client.transaction.as_ref().filter(|transaction| transaction.has_staged()) else {
            return Ok(Arc::clone(plan));
        };
        self.check_staged(transaction)?;
        self.check_no_watermark(plan, transaction)?;
        let asked = self.direct(plan, None).and_then(|direct| direct.read().and_then(Read::wanted_key));
        let staged = self.client.transaction.as_mut().map(|transaction| &mut transaction.staged);
        let (read, mut nets) = (plan.relations(), BTreeMap::new());
        for (name, staged) in staged.into_iter().flatten().filter(|(name, _)| read.contains(*name)) {
            let net = match &asked {
                Some((key, keys)) => staged.net_of_keys(key, keys),
                None => staged.net(),
            };
            nets.extend(net.map(|net| (name.clone(), net)));
        }
        let mut problem = None;
        let changed = substitute(plan, &|scan| over_net(scan, &nets), &mut problem);
        problem.map_or(Ok(changed), Err)
    }

    /// A watermark follows when the transaction commits, so a view that waits for it cannot be told
    /// before.
    fn check_no_watermark(&self, plan: &Plan, transaction: &Transaction) -> Result<(), Error> {
        let written = transaction.written();
        for name in plan.relations() {
            let Some(object) = self.catalog.find(&name).filter(|object| object.is_hidden) else { continue };
            if written.iter().any(|table| crate::catalog::Watermark::relation_of(table) == object.name) {
                return Err(waits_for_watermark());
            }
        }
        Ok(())
    }

    /// Refuses to plan, from its text, a view that waits for a watermark.
    pub(super) fn check_behind(&self, names: &BTreeSet<String>) -> Result<(), Error> {
        let Some(transaction) = self.client.transaction.as_ref().filter(|transaction| transaction.has_staged()) else {
            return Ok(());
        };
        let written = transaction.written();
        for object in names.iter().filter_map(|name| self.catalog.find(name)) {
            let is_behind = || !self.catalog.inputs_behind([&object.name]).is_disjoint(&written);
            if object.kind == ObjectKind::MaterializedView && object.query_text.is_none() && is_behind() {
                let message = format!("materialized view \"{}\" has not seen this transaction's rows", object.name);
                return Err(Error::invalid(message)
                    .with_detail("The view is made of a plan, not of a query's text.")
                    .with_hint("COMMIT first, then read the view."));
            }
            let waits = object.query_text.is_some()
                && !self.catalog.inputs_behind([&object.name]).is_disjoint(&written)
                && matches!(
                    anabranch_sql::parse(&object.definition)?.first().map(|parsed| &parsed.statement),
                    Some(Statement::CreateView(CreateView { emit: EmitClause::OnWindowClose, .. }))
                );
            if waits {
                return Err(waits_for_watermark());
            }
        }
        Ok(())
    }
}

/// The error where staged rows do not fit their table any more.
fn altered_meanwhile(table: &str) -> Error {
    conflict(&format!("table \"{table}\" was altered, renamed or dropped by another transaction"))
}

/// Refuses to change a setting of the database, for a connection that may only read.
fn check_sets_own(name: &str) -> Result<(), Error> {
    match Session::is_of_all(name) {
        false => Ok(()),
        true => Err(Error::invalid(format!("permission denied to set parameter \"{name}\""))
            .with_sqlstate("42501")
            .with_detail("The setting is of the database, and the connection may only read.")),
    }
}

/// Refuses a statement that writes, for a connection that may not.
pub(crate) fn check_reads_only(statement: &Statement) -> Result<(), Error> {
    let asked = match statement {
        // What is prepared runs under a name, which does not tell.
        Statement::Prepare(prepare) => &prepare.statement.statement,
        other => other,
    };
    if reads_files(asked) {
        return Err(Error::invalid("permission denied to read files of the server")
            .with_sqlstate("42501")
            .with_detail("The connection may only read, and what its user may read are relations.")
            .with_hint("A user who may write makes a source of the file: CREATE SOURCE .. WITH (path = ..)."));
    }
    if let Statement::Set { name, .. } | Statement::Reset { name: Some(name) } = asked {
        check_sets_own(name)?;
    }
    // A file is written where the engine runs.
    let writes_file = matches!(statement, Statement::CopyTo(copy) if copy.to != CopyEnd::Client);
    match writes(asked) || writes_file {
        false => Ok(()),
        true => {
            let tag = command_tag(statement);
            Err(Error::invalid(format!("cannot execute {tag} in a read-only transaction"))
                .with_sqlstate("25006")
                .with_detail("The connection may only read."))
        }
    }
}

/// Whether a statement changes rows, definitions or the counters of sequences.
fn writes(statement: &Statement) -> bool {
    changes_rows(statement)
        || matches!(statement, Statement::CopyFrom(_))
        || defines(statement)
        || moves_sequences(statement)
}

/// Whether a statement takes effect by itself, so that no transaction can hold it.
fn stands_alone(statement: &Statement) -> bool {
    matches!(statement, Statement::Subscribe(_) | Statement::Flush)
}
