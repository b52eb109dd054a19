//! What the open transaction reads is noted, and compared with what others have changed since.
//!
//! Law ([`crate::reads`]): nothing that was read has changed between the first read and the commit,
//! so that all reads are as of the commit; or nothing is written, and all reads are as of one
//! commit before it. Tables that are asked by keys are noted by these keys,
//! so that transactions of different rows do not meet.

use std::sync::Arc;

use anabranch_plan::{Node, Plan};
use anabranch_sql::statement::ObjectKind;
use arrow::array::ArrayRef;

use super::state::Session;
use crate::catalog::{Object, ObjectId, kind_name};
use crate::direct::FixedKeys;
use crate::error::Error;
use crate::reads::ReadRows;
use crate::transaction::{Transaction, conflict, failed};

/// What happens to a read when something that was read before has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WhenChanged {
    /// It is as of the commit that was seen, if nothing was written.
    ReadsPast,
    /// It is as of the last commit, so it cannot be.
    Conflicts,
}

impl Session {
    /// Takes note of relations that the open transaction is about to read. What it read before must
    /// be unchanged, unless the read [may be of the past](WhenChanged).
    fn note_reads(&mut self, relations: &[String], when_changed: WhenChanged) -> Result<(), Error> {
        let inputs = self.catalog.inputs_behind(relations);
        let inputs: Vec<ObjectId> =
            inputs.iter().filter_map(|name| self.catalog.find(name)).map(|object| object.id).collect();
        self.note(when_changed, |transaction| {
            transaction.read.extend(inputs.iter().map(|input| (*input, ReadRows::All)));
            !inputs.is_empty()
        })
    }

    /// Takes note of relations that the open transaction locks, as if it read all of their rows.
    pub(super) fn note_locked(&mut self, relations: &[String]) -> Result<(), Error> {
        self.note_reads(relations, WhenChanged::ReadsPast)
    }

    /// Takes note that rows of a table with these keys are about to be read as of the last commit.
    pub(super) fn note_keys(&mut self, object: &Object, key: &[usize], keys: &[ArrayRef]) -> Result<(), Error> {
        self.note_keys_of(object, key, keys, WhenChanged::Conflicts)
    }

    fn note_keys_of(
        &mut self,
        object: &Object,
        key: &[usize],
        keys: &[ArrayRef],
        when_changed: WhenChanged,
    ) -> Result<(), Error> {
        if object.kind != ObjectKind::Table {
            return self.note_reads(std::slice::from_ref(&object.name), when_changed);
        }
        let id = object.id;
        self.note(when_changed, |transaction| {
            transaction.read.entry(id).or_insert_with(ReadRows::none).add(key, keys);
            true
        })?;
        if self.client.transaction.is_some() {
            let last = self.timeline.last();
            self.timeline.changed.follow(id, last);
        }
        Ok(())
    }

    /// Takes note of what a plan is about to read, directly or by a dataflow: as of the last
    /// commit, or as of the one that the transaction has seen.
    pub(super) fn note_plan(&mut self, plan: &Arc<Plan>) -> Result<(), Error> {
        if self.client.transaction.is_none() {
            return Ok(());
        }
        let mut reads = Vec::new();
        self.reads_of(plan, &mut reads);
        for (relation, by) in reads {
            match (by, self.catalog.find(&relation).cloned()) {
                (Some((key, keys)), Some(object)) => {
                    self.note_keys_of(&object, &key, &keys, WhenChanged::ReadsPast)?;
                }
                _ => self.note_reads(&[relation], WhenChanged::ReadsPast)?,
            }
        }
        Ok(())
    }

    /// The relations that a plan reads, each as often as it does, with the columns that are fixed
    /// and their values where an arrangement is asked by them.
    fn reads_of(&self, plan: &Arc<Plan>, reads: &mut Vec<(String, Option<FixedKeys>)>) {
        match (self.direct(plan, None), &plan.node) {
            (Some(direct), _) => {
                reads.extend(direct.read().map(|read| (read.relation.clone(), read.wanted_key())));
            }
            (None, Node::Scan { relation, .. }) => reads.push((relation.clone(), None)),
            (None, _) => plan.inputs().into_iter().for_each(|input| self.reads_of(input, reads)),
        }
    }

    /// Takes note of something; `add` tells whether that is any relation.
    fn note(&mut self, when_changed: WhenChanged, add: impl FnOnce(&mut Transaction) -> bool) -> Result<(), Error> {
        let Some(transaction) = &self.client.transaction else { return Ok(()) };
        if transaction.has_failed {
            return Err(failed());
        }
        let may_lag = when_changed == WhenChanged::ReadsPast && transaction.has_only_read();
        self.check_definitions(transaction)?;
        self.check_staged(transaction)?;
        let is_behind = match self.check_rows(transaction) {
            Err(_) if may_lag && transaction.pin.is_some() => true,
            unchanged => unchanged.map(|()| false)?,
        };
        let (last, version) = (self.timeline.last(), self.catalog.n_replaced());
        let pin = (may_lag && !is_behind).then(|| self.timeline.pin());
        if let Some(transaction) = &mut self.client.transaction {
            transaction.is_behind |= is_behind;
            if !transaction.is_behind {
                // Nothing that was read has changed since, so it is also as of the last commit.
                transaction.seen = last;
                transaction.pin = pin;
            }
            if add(transaction) {
                transaction.version.get_or_insert(version);
            }
        }
        Ok(())
    }

    /// Refuses to go on when something that was read has changed.
    pub(super) fn check_reads(&self, transaction: &Transaction) -> Result<(), Error> {
        self.check_definitions(transaction)?;
        self.check_staged(transaction)?;
        self.check_rows(transaction)
    }

    fn check_definitions(&self, transaction: &Transaction) -> Result<(), Error> {
        match transaction.version.is_some_and(|version| version != self.catalog.n_replaced()) {
            true => Err(conflict("definitions were changed by another transaction")),
            false => Ok(()),
        }
    }

    fn check_rows(&self, transaction: &Transaction) -> Result<(), Error> {
        let has_met =
            |(id, read): &(&ObjectId, &ReadRows)| self.timeline.changed.have_met(**id, transaction.seen, read);
        let Some((changed, read)) = transaction.read.iter().find(has_met) else { return Ok(()) };
        let object = self.catalog.objects().find(|object| object.id == *changed);
        let (rows, were) = match read {
            ReadRows::All => ("", "was"),
            ReadRows::Keys(_) => ("rows of ", "were"),
        };
        Err(match object {
            Some(object) => {
                let (kind, name) = (kind_name(object.kind), &object.name);
                conflict(&format!("{rows}{kind} \"{name}\", which {were} read, {were} changed by another transaction"))
            }
            None => conflict("what was read was changed by another transaction"),
        })
    }
}
