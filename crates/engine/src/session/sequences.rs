//! CREATE, ALTER and DROP SEQUENCE, and the record of where counters stand.
//!
//! Law: a number that a client has seen is never given again, not by a database that was opened
//! anew either: where a counter stands is recorded before the statement that moved it is answered.

use std::ops::ControlFlow;
use std::sync::Arc;

use anabranch_sql::ast;
use anabranch_sql::sequence::SequenceStatement;
use anabranch_sql::statement::{Alter, AlterAction, ObjectKind, Statement};

use super::durable::{COUNTERS, DEFINITION};
use super::outcome::Outcome;
use super::sealed::SealedFact;
use super::state::Session;
use crate::catalog::{Counter, CounterPlace, ObjectId, name_in};
use crate::error::Error;

impl Session {
    pub(super) fn create_sequence(&mut self, create: &SequenceStatement) -> Result<Outcome, Error> {
        if let Some(outcome) = self.existing("CREATE SEQUENCE", &create.name, create.is_lenient)? {
            return Ok(outcome);
        }
        let shape = create.options.shape()?;
        let owner = create.options.owner.clone().flatten();
        self.check_owner(owner.as_ref())?;
        let definition = shape.owned_definition(&create.name, owner.as_ref());
        self.catalog.add_sequence(&create.name, definition, Arc::new(Counter::new(shape)));
        Ok(Outcome::done("CREATE SEQUENCE"))
    }

    pub(super) fn alter_sequence(&mut self, alter: &SequenceStatement) -> Result<Outcome, Error> {
        let Some(sequence) = self.catalog.sequences().get(&alter.name).cloned() else {
            return match (alter.is_lenient, self.catalog.kind_of(&alter.name)) {
                (true, None) => Ok(Outcome::done_with("ALTER SEQUENCE", format!("\"{}\" did not exist.", alter.name))),
                _ => Err(self.catalog.unknown_kind(ObjectKind::Sequence, &alter.name).with_sqlstate("42P01")),
            };
        };
        let CounterPlace { shape, last, is_called } = sequence.counter.place();
        let shape = alter.options.of_altered(&shape)?;
        let (last, is_called) = match alter.options.restart {
            Some(with) => (with.unwrap_or(shape.start), false),
            None => (last, is_called),
        };
        if !(shape.min..=shape.max).contains(&last) {
            let (word, limit, side) = match last > shape.max {
                true => ("MAXVALUE", shape.max, "greater than"),
                false => ("MINVALUE", shape.min, "less than"),
            };
            return Err(Error::invalid(format!("RESTART value ({last}) cannot be {side} {word} ({limit})"))
                .with_sqlstate("22023"));
        }
        let owner = match &alter.options.owner {
            Some(owner) => owner.clone(),
            None => owner_of(&sequence.definition),
        };
        self.check_owner(owner.as_ref())?;
        let definition = shape.owned_definition(&alter.name, owner.as_ref());
        let counter = Counter::new(shape.clone());
        counter.put(CounterPlace { shape, last, is_called });
        let fact = |name, value| SealedFact { object: sequence.id, name, value };
        let facts = vec![fact(DEFINITION, definition.clone().into_bytes()), fact(COUNTERS, counter.value())];
        self.record_definition(vec![], vec![], facts)?;
        self.catalog.add_sequence(&alter.name, definition, Arc::new(counter));
        Ok(Outcome::done("ALTER SEQUENCE"))
    }

    /// Refuses an owner that is not there.
    fn check_owner(&self, owner: Option<&(String, String)>) -> Result<(), Error> {
        let Some((table, column)) = owner else { return Ok(()) };
        let object = self.catalog.table(table)?;
        object.schema.index_of(column).map(|_| ()).map_err(|_| {
            Error::invalid(format!("column \"{column}\" of relation \"{table}\" does not exist")).with_sqlstate("42703")
        })
    }

    /// Sequences that go with these tables.
    pub(super) fn owned_sequences(&self, tables: &[String]) -> Vec<String> {
        let is_owned = |definition: &str| owner_of(definition).is_some_and(|(table, _)| tables.contains(&table));
        let owned = self.catalog.sequences().iter().filter(|(_, sequence)| is_owned(&sequence.definition));
        owned.map(|(name, _)| name.clone()).collect()
    }

    /// Gives a sequence another name.
    pub(super) fn rename_sequence(&mut self, name: &str, to: &str) -> Result<(), Error> {
        let used = self.defaults_of(&[name.to_owned()]);
        if let Some((table, column)) = used.first() {
            return Err(Error::invalid(format!("sequence \"{name}\" cannot be renamed because others depend on it"))
                .with_sqlstate("2BP01")
                .with_detail(format!("The default of column \"{column}\" of table \"{table}\" names it."))
                .with_hint("Drop the default, rename, and set the default anew."));
        }
        let Some(sequence) = self.catalog.sequences().get(name).cloned() else {
            return Err(self.catalog.unknown_kind(ObjectKind::Sequence, name));
        };
        let owner = owner_of(&sequence.definition);
        let definition = sequence.counter.place().shape.owned_definition(to, owner.as_ref());
        let fact = SealedFact { object: sequence.id, name: DEFINITION, value: definition.clone().into_bytes() };
        self.record_definition(vec![], vec![], vec![fact])?;
        self.catalog.rename_sequence(name, to, definition);
        Ok(())
    }

    pub(super) fn drop_sequences(&mut self, names: &[String], cascade: bool) -> Result<(), Error> {
        let used = self.defaults_of(names);
        if !used.is_empty() && !cascade {
            let list: Vec<String> = used
                .iter()
                .map(|(table, column)| format!("default value for column \"{column}\" of table \"{table}\""))
                .collect();
            return Err(Error::invalid(format!(
                "sequence \"{}\" cannot be dropped because others depend on it",
                names.join("\", \"")
            ))
            .with_sqlstate("2BP01")
            .with_detail(format!("Dependent: {}.", list.join(", ")))
            .with_hint("Use DROP .. CASCADE to drop them too."));
        }
        for (name, column) in used {
            let actions = vec![AlterAction::SetDefault { column, default: None }];
            self.alter(&Alter { kind: ObjectKind::Table, name, if_exists: false, actions })?;
        }
        let ids: Vec<ObjectId> = names.iter().filter_map(|name| Some(self.catalog.sequences().get(name)?.id)).collect();
        self.record_removal(ids)?;
        names.iter().for_each(|name| self.catalog.remove_sequence(name));
        Ok(())
    }

    /// Columns whose defaults name these sequences: tables and columns.
    fn defaults_of(&self, names: &[String]) -> Vec<(String, String)> {
        let names_one = |default: &ast::Expr| {
            let is_name = |text: &str| names.contains(&name_in(text));
            let found = ast::visit_expressions(default, |expr| match expr {
                ast::Expr::Value(value) if matches!(&value.value, ast::Value::SingleQuotedString(text) if is_name(text)) => {
                    ControlFlow::Break(())
                }
                _ => ControlFlow::Continue(()),
            });
            found.is_break() && default.to_string().to_lowercase().contains("nextval")
        };
        let mut used = Vec::new();
        for object in self.catalog.objects() {
            for (at, default) in object.defaults.iter().enumerate() {
                if default.as_ref().is_some_and(names_one) {
                    used.push((object.name.clone(), object.schema.field(at).name().clone()));
                }
            }
        }
        used
    }

    /// Records where counters stand that calls have moved.
    pub(super) fn record_moves(&mut self) -> Result<(), Error> {
        // (What only waits has moved nothing, and is attempted again.)
        if self.is_handed_over() {
            return Ok(());
        }
        let facts = self.moved_facts();
        if facts.is_empty() { Ok(()) } else { self.record_definition(vec![], vec![], facts) }
    }

    /// Where counters stand that calls have moved since this was last asked: what a commit records
    /// with the rows that have their numbers.
    pub(super) fn moved_facts(&self) -> Vec<SealedFact> {
        let mut facts = Vec::new();
        if !self.catalog.has_moved_counters() {
            return facts;
        }
        for sequence in self.catalog.sequences().values().filter(|sequence| sequence.counter.was_moved()) {
            facts.push(SealedFact { object: sequence.id, name: COUNTERS, value: sequence.counter.value() });
        }
        for object in self.catalog.objects() {
            let moved = object.rules.counters.iter().filter(|counted| counted.counter.was_moved()).count();
            if moved > 0 {
                facts.push(SealedFact { object: object.id, name: COUNTERS, value: object.rules.counters_value() });
            }
        }
        facts
    }
}

/// The column that a sequence goes with.
fn owner_of(definition: &str) -> Option<(String, String)> {
    if !definition.contains(" OWNED BY ") {
        return None;
    }
    match anabranch_sql::parse(definition).ok()?.into_iter().next()?.statement {
        Statement::CreateSequence(create) => create.options.owner.flatten(),
        _ => None,
    }
}
