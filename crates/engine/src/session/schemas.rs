//! Schemas, and the tables of one client.
//!
//! Law: an object of a schema has the catalog name `schema.name`; those of `public` have plain
//! names. A temporary table is in a schema of its client's own, which is looked into first; it goes
//! with its client and is recorded nowhere.

use anabranch_sql::statement::{
    Alter, Copied, CopyFrom, CopyTo, CreateIndex, Delete, Drop, Insert, Merge, MergePart, ObjectKind, Show, Statement,
    Truncate, Update,
};
use anabranch_sql::table::own_name;

use super::outcome::Outcome;
use super::sealed::Sealed;
use super::state::Session;
use super::state::client::Client;
use crate::catalog::{Catalog, ObjectId, is_temporary, schema_of};
use crate::error::Error;

/// Schemas that are there always.
const BUILT_IN: [&str; 3] = ["public", "pg_catalog", "information_schema"];

impl Session {
    /// Refuses schemas that are not there.
    pub(super) fn check_schemas(&self, schemas: &[String]) -> Result<(), Error> {
        match schemas.iter().find(|schema| !self.catalog.schemas().contains_key(*schema)) {
            None => Ok(()),
            Some(schema) => Err(unknown_schema(schema)),
        }
    }

    pub(super) fn create_schema(&mut self, name: &str, if_not_exists: bool, text: &str) -> Result<Outcome, Error> {
        let is_there = BUILT_IN.contains(&name) || self.catalog.schemas().contains_key(name);
        if is_there && if_not_exists {
            return Ok(Outcome::done_with(
                "CREATE SCHEMA",
                format!("schema \"{name}\" already exists; nothing was done."),
            ));
        }
        if is_there {
            return Err(Error::invalid(format!("schema \"{name}\" already exists")).with_sqlstate("42P06"));
        }
        if name.starts_with("pg_") {
            return Err(Error::invalid(format!("unacceptable schema name \"{name}\""))
                .with_sqlstate("42939")
                .with_detail("The prefix \"pg_\" is reserved for system schemas."));
        }
        if name.contains('.') {
            return Err(Error::invalid(format!("schema \"{name}\" has a dot in its name"))
                .with_hint("Give the schema a name without a dot."));
        }
        self.catalog.add_schema(name, text);
        Ok(Outcome::done("CREATE SCHEMA"))
    }

    pub(super) fn drop_schemas(&mut self, names: &[String], if_exists: bool, cascade: bool) -> Result<Outcome, Error> {
        let mut missing = Vec::new();
        let mut there = Vec::new();
        for name in names {
            match self.catalog.schemas().contains_key(name) {
                true => there.push(name.clone()),
                false if BUILT_IN.contains(&name.as_str()) => {
                    return Err(Error::invalid(format!("schema \"{name}\" cannot be dropped")).with_sqlstate("2BP01"));
                }
                false if if_exists => missing.push(format!("\"{name}\"")),
                false => return Err(unknown_schema(name)),
            }
        }
        let within = |name: &str| schema_of(name).is_some_and(|schema| there.iter().any(|own| own == schema));
        let inside: Vec<String> =
            self.catalog.objects().map(|object| object.name.clone()).filter(|name| within(name)).collect();
        let sequences: Vec<String> = self.catalog.sequences().keys().filter(|name| within(name)).cloned().collect();
        if !(cascade || inside.is_empty() && sequences.is_empty()) {
            let list: Vec<String> = inside.iter().chain(&sequences).map(|name| format!("\"{name}\"")).collect();
            return Err(Error::invalid(format!(
                "schema \"{}\" cannot be dropped because others depend on it",
                there.join("\", \"")
            ))
            .with_sqlstate("2BP01")
            .with_detail(format!("Dependent: {}.", list.join(", ")))
            .with_hint("Use DROP .. CASCADE to drop them too."));
        }
        let schemas: Vec<ObjectId> =
            there.iter().filter_map(|name| Some(self.catalog.schemas().get(name)?.id)).collect();
        self.drop_with(inside, schemas)?;
        self.drop_sequences(&sequences, true)?;
        there.iter().for_each(|name| self.catalog.remove_schema(name));
        self.allow_compaction();
        Ok(match missing.is_empty() {
            true => Outcome::done("DROP SCHEMA"),
            false => Outcome::done_with("DROP SCHEMA", format!("{} did not exist.", missing.join(", "))),
        })
    }

    /// Drops relations with all that depends on them, and records that these ids go, too.
    fn drop_with(&mut self, names: Vec<String>, others: Vec<ObjectId>) -> Result<(), Error> {
        let drop = Drop { kind: ObjectKind::Table, if_exists: false, names: names.clone(), cascade: true };
        let order = self.drop_order(&drop, &names)?;
        self.drop_references_left(&drop, &order)?;
        let relations = self.catalog.objects().filter(|object| order.contains(&object.name)).map(|object| object.id);
        let indexes = order.iter().flat_map(|name| self.catalog.indexes_on(name)).map(|index| index.id);
        let ids = relations.chain(indexes).chain(others).collect();
        self.record_removal(ids)?;
        order.iter().for_each(|name| self.drop_relation(name));
        Ok(())
    }

    /// The catalog name of a temporary object of the client.
    pub(super) fn temporary_name(&mut self, name: &str) -> String {
        let next = self.catalog.next_object().0;
        let number = *self.client.temporary.get_or_insert(next);
        format!("{}.{}", temporary_schema(number), schema_of(name).map_or(name, |_| own_name(name)))
    }

    /// Drops the temporary objects of a client.
    pub(super) fn drop_temporary(&mut self, number: Option<u64>) {
        let Some(schema) = number.map(temporary_schema) else { return };
        let own = |name: &str| schema_of(name) == Some(&schema);
        let names: Vec<String> =
            self.catalog.objects().map(|object| object.name.clone()).filter(|name| own(name)).collect();
        // (Nothing of them is recorded, so nothing can fail.)
        if self.drop_with(names, vec![]).is_ok() {
            self.allow_compaction();
        }
    }

    /// The statement with the catalog's names of what it means, where they are others: those of the
    /// client's own tables.
    pub(super) fn in_own_names(&self, statement: &Statement) -> Option<Statement> {
        if let Statement::ExplainChange(change) = statement {
            return Some(Statement::ExplainChange(Box::new(self.in_own_names(change)?)));
        }
        // (A client that has read a file has such a schema, too; it is empty between statements.)
        let schema = self.client.temporary.map(temporary_schema).filter(|own| self.catalog.is_schema_in_use(own))?;
        let own = |name: &mut String| {
            if let Some(known) = self.catalog.own_name_in(&schema, name) {
                *name = known;
            }
        };
        let aliased = |name: &mut String, alias: &mut Option<String>| {
            let plain = name.clone();
            own(name);
            if *name != plain {
                alias.get_or_insert(plain);
            }
        };
        let mut statement = statement.copied();
        match &mut statement {
            Statement::Insert(Insert { table, .. }) => own(table),
            Statement::Update(Update { table, alias, .. }) | Statement::Delete(Delete { table, alias, .. }) => {
                aliased(table, alias);
            }
            Statement::ChangesInWith(with) => {
                for statement in with.parts.iter_mut().map(|(_, part)| part).chain([&mut with.main]) {
                    match statement {
                        Statement::Insert(Insert { table, .. }) => own(table),
                        Statement::Update(Update { table, alias, .. })
                        | Statement::Delete(Delete { table, alias, .. }) => aliased(table, alias),
                        _ => {}
                    }
                }
            }
            Statement::CopyFrom(CopyFrom { table, .. }) => own(table),
            Statement::Merge(Merge { table, parts }) => {
                own(table);
                for part in parts {
                    match part {
                        MergePart::Insert(Insert { table, .. }) => own(table),
                        MergePart::Update(Update { table, alias, .. })
                        | MergePart::Delete(Delete { table, alias, .. }) => aliased(table, alias),
                    }
                }
            }
            Statement::Truncate(Truncate { tables, .. }) => tables.iter_mut().for_each(own),
            Statement::CreateTable(create) => {
                create.like.iter_mut().for_each(|like| own(&mut like.table));
                create.rules.references.iter_mut().for_each(|key| own(&mut key.table));
            }
            Statement::CopyTo(CopyTo { copied: Copied::Table { name, .. }, .. }) => own(name),
            Statement::Drop(Drop { names, .. }) => names.iter_mut().for_each(own),
            Statement::Alter(Alter { name, .. }) => own(name),
            Statement::CreateIndex(CreateIndex { relation, name, .. }) => {
                own(relation);
                if is_temporary(relation) {
                    *name = name.as_ref().map(|name| format!("{schema}.{name}"));
                }
            }
            Statement::Needless { relations, .. } | Statement::Lock { relations, .. } => {
                relations.iter_mut().for_each(own)
            }
            Statement::Describe { name } => own(name),
            Statement::Show(Show::Columns { relation } | Show::Create { relation }) => own(relation),
            _ => return None,
        }
        Some(statement)
    }

    /// What of a sealed commit is recorded: nothing of temporary objects.
    pub(super) fn lasting(&self, sealed: &Sealed) -> Option<Sealed> {
        let temporary = temporary_ids(&self.catalog);
        if temporary.is_empty() && !sealed.created.iter().any(|created| is_temporary(&created.name)) {
            return None;
        }
        let mut lasting = sealed.clone();
        lasting.created.retain(|created| !is_temporary(&created.name));
        lasting.removed.retain(|id| !temporary.contains(id));
        lasting.rows.retain(|rows| !temporary.contains(&rows.object));
        lasting.facts.retain(|fact| !temporary.contains(&fact.object));
        Some(lasting)
    }
}

impl Client {
    /// The schema of the client's temporary tables, if there are any.
    pub(super) fn temporary_schema(&self) -> Option<String> {
        self.temporary.map(temporary_schema)
    }
}

fn temporary_schema(number: u64) -> String {
    format!("pg_temp_{number}")
}

fn temporary_ids(catalog: &Catalog) -> Vec<ObjectId> {
    let relations = catalog.all_objects().filter(|object| is_temporary(&object.name)).map(|object| object.id);
    let indexes = catalog.indexes().filter(|index| is_temporary(&index.relation)).map(|index| index.id);
    relations.chain(indexes).collect()
}

fn unknown_schema(name: &str) -> Error {
    Error::invalid(format!("schema \"{name}\" does not exist"))
        .with_sqlstate("3F000")
        .with_hint(format!("CREATE SCHEMA {name} makes it."))
}
