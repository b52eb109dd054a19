//! ALTER TABLE. (Other names for objects are in [`rename`](super::rename), rows that are written
//! anew in [`rewritten`](super::rewritten).)
//!
//! Law: a statement makes all of its changes or none. Rows that stay are checked for what is new;
//! rows that are written anew obey all rules of the altered table, and are one commit. Views over a
//! table whose rows are written anew are made anew over it; where a view's columns would not be
//! what they are, the statement is refused and names the view. So it is where a name changes that a
//! view uses: the texts of views are kept as they were written.
//!
//! Cost: of new defaults, names, NOT NULL and CHECK, at most a scan of the table; of all else,
//! writing all rows and making its views.

use anabranch_sql::statement::{Alter, AlterAction, CreateTable, ObjectKind, Statement};
use anabranch_sql::table::{Altered, RowsBecome, ToCheck};
use anabranch_sql::type_marks::type_of;

use super::durable::{COUNTERS, DEFINITION, SOURCE};
use super::index::{index_definition, listed_anew, quoted};
use super::outcome::Outcome;
use super::sealed::SealedFact;
use super::state::Session;
use crate::catalog::{Index, Object, ObjectId, TableRules, kind_name};
use crate::error::Error;

impl Session {
    pub(super) fn alter(&mut self, alter: &Alter) -> Result<Outcome, Error> {
        let tag = format!("ALTER {}", kind_name(alter.kind).to_uppercase());
        let Some(kind) = self.catalog.kind_of(&alter.name) else {
            if alter.if_exists {
                return Ok(Outcome::done_with(tag, format!("\"{}\" did not exist.", alter.name)));
            }
            return Err(self.catalog.unknown_kind(alter.kind, &alter.name));
        };
        if let [AlterAction::Rename { to }] = alter.actions.as_slice() {
            self.rename(&alter.name, to, kind)?;
            return Ok(Outcome::done(tag));
        }
        if let [AlterAction::Stop] = alter.actions.as_slice() {
            self.stop_source(&alter.name)?;
            return Ok(Outcome::done(tag));
        }
        if matches!(alter.actions.as_slice(), [AlterAction::Nothing]) {
            return Ok(Outcome::done(tag));
        }
        if kind != ObjectKind::Table {
            return Err(Error::invalid(format!("\"{}\" is a {}, not a table", alter.name, kind_name(kind)))
                .with_sqlstate("42809")
                .with_hint("Other objects can be renamed; DROP and CREATE change the rest."));
        }
        match alter.actions.as_slice() {
            [AlterAction::AddUnique(unique)] => {
                return self.define(|session| {
                    session.create_unique(&alter.name, unique)?;
                    Ok(Outcome::done(tag))
                });
            }
            [AlterAction::DropConstraint { name, .. }] if let Some(index) = self.unique_index(&alter.name, name) => {
                self.check_not_referred(&alter.name, Some(&index.key), &format!("constraint \"{name}\""))?;
                self.record_removal(vec![index.id])?;
                self.drop_index(&index.name);
                self.allow_compaction();
                return Ok(Outcome::done(tag));
            }
            _ => {}
        }
        if alter.actions.iter().any(|action| matches!(action, AlterAction::AddUnique(_))) {
            return self.alter_and_add_unique(alter).map(|()| Outcome::done(tag));
        }
        if alter.actions.iter().any(|action| matches!(action, AlterAction::Rename { .. })) {
            return Err(Error::invalid("RENAME TO stands alone in an ALTER TABLE").with_sqlstate("42601"));
        }
        let object = self.catalog.table(&alter.name)?.clone();
        let mut altered = Altered::new(declared(&object)?);
        for action in &alter.actions {
            if let AlterAction::RenameColumn { from, .. } = action {
                self.refuse_used(&alter.name, &format!("column \"{from}\" of table \"{}\"", alter.name))?;
            }
            altered.apply(action)?;
        }
        if let Some(typed) = self.with_types(&altered.table)? {
            altered.table = typed;
        }
        self.check_still_referred(&object, alter, &altered)?;
        match altered.rows {
            RowsBecome::Same => self.redefine(&object, altered)?,
            RowsBecome::New => self.rewrite(&object, altered)?,
        }
        Ok(Outcome::done(tag))
    }

    /// The index of a UNIQUE of that name.
    fn unique_index(&self, table: &str, name: &str) -> Option<Index> {
        let own = |index: &Index| index.name.rsplit_once('.').map_or(index.name == name, |(_, own)| own == name);
        self.catalog.indexes_on(table).find(|index| index.is_unique && own(index)).cloned()
    }

    /// Lets a source read no more. Its rows stay, also when the database is opened again.
    fn stop_source(&mut self, name: &str) -> Result<(), Error> {
        let object = self.catalog.get(name)?.id;
        let Some(stand) = self.pump.get_mut(name).and_then(|source| source.stopped_stand()) else { return Ok(()) };
        // (Recorded first: a database that cannot write leaves the source as it is.)
        let fact = SealedFact { object, name: SOURCE, value: stand.to_bytes() };
        self.record_definition(vec![], vec![], vec![fact])?;
        if let Some(source) = self.pump.get_mut(name) {
            source.stop();
        }
        self.publish_progress();
        Ok(())
    }

    /// Refuses another name for what views name.
    pub(super) fn refuse_used(&self, name: &str, what: &str) -> Result<(), Error> {
        let dependents = self.catalog.dependents(name);
        if dependents.is_empty() {
            return Ok(());
        }
        let list: Vec<String> = dependents.iter().map(|name| format!("\"{name}\"")).collect();
        Err(Error::invalid(format!("{what} cannot be renamed because others depend on it"))
            .with_sqlstate("2BP01")
            .with_detail(format!("Views keep the text of their queries: {}.", list.join(", ")))
            .with_hint("DROP the views, rename, and CREATE them anew; or CREATE VIEW with the new name over the old."))
    }

    /// Gives the table another definition; its rows stay.
    fn redefine(&mut self, object: &Object, altered: Altered) -> Result<(), Error> {
        let name = &object.name;
        let before = object.clone();
        let mut after = object.clone();
        after.definition = altered.table.definition();
        after.defaults = altered.table.defaults.clone();
        after.schema = super::create::not_null(
            &crate::coerce::planned_schema("table", name, &altered.table.columns)?,
            &altered.table.primary_key,
        );
        let counters = object.rules.counters.clone();
        after.rules = TableRules::new(altered.table.rules.clone());
        for (counted, old) in after.rules.counters.iter_mut().filter_map(|counted| {
            let old = counters.iter().find(|old| old.column == counted.column)?;
            Some((counted, old))
        }) {
            counted.counter = old.counter.clone();
        }
        after.fitting = None;
        self.check_defaults(&after)?;
        // (Rows are read under their old names.)
        for check in &altered.to_check {
            if let ToCheck::NotNull(column) = check {
                self.check_no_null(&before, &after, column)?;
            }
        }
        self.replace_object(after.clone());
        let checked = self.plan_rules(name).and_then(|()| self.check_present(name, &altered));
        let checked = checked.and_then(|()| self.check_added_references(&after, &altered));
        if let Err(error) = checked {
            self.replace_object(before);
            return Err(error);
        }
        let restarts = altered.restarts.iter();
        let restarted: Vec<(usize, i64)> = restarts
            .filter_map(|(column, next)| {
                let counted = after.rules.counters.iter().find(|counted| counted.column == *column)?;
                let old = counted.counter.peek();
                counted.counter.set(*next);
                Some((*column, old))
            })
            .collect();
        let fact = |object: ObjectId, name, value| SealedFact { object, name, value };
        let mut facts = vec![fact(after.id, DEFINITION, after.definition.clone().into_bytes())];
        if !after.rules.counters.is_empty() {
            facts.push(fact(after.id, COUNTERS, after.rules.counters_value()));
        }
        // Indexes name columns.
        let indexes: Vec<Index> = self.catalog.indexes_on(name).cloned().collect();
        let mut redefined = Vec::new();
        for mut index in indexes {
            index.parts = index.parts_over(&before.schema, &after.schema);
            let listed = listed_anew(&index, &after.schema);
            index.definition = index_definition(&index.name, name, &listed, index.form());
            facts.push(fact(index.id, DEFINITION, index.definition.clone().into_bytes()));
            redefined.push(index);
        }
        if let Err(error) = self.record_definition(vec![], vec![], facts) {
            for (column, old) in restarted {
                after.rules.counters.iter().filter(|c| c.column == column).for_each(|c| c.counter.set(old));
            }
            self.replace_object(before);
            return Err(error);
        }
        redefined.into_iter().for_each(|index| self.catalog.put_back_index(index));
        Ok(())
    }

    fn replace_object(&mut self, after: Object) {
        self.catalog.touch();
        if let Some(object) = self.catalog.find_mut(&after.name) {
            *object = Object { n_altered: object.n_altered + 1, ..after.clone() };
        }
        self.catalog.note_referred(&after);
    }

    fn check_no_null(&mut self, before: &Object, after: &Object, column: &str) -> Result<(), Error> {
        let at = after.schema.index_of(column).map_err(|_| Error::internal("a column that is checked is there"))?;
        let old = before.schema.field(at).name();
        let text = format!("SELECT 1 FROM {} WHERE {} IS NULL LIMIT 1", table_text(&before.name), quoted(old));
        if self.has_rows(&text)? {
            return Err(Error::data(format!(
                "column \"{column}\" of relation \"{}\" contains null values",
                before.name
            ))
            .with_sqlstate("23502")
            .with_hint(format!(
                "UPDATE {} SET {} = .. WHERE {0} IS NULL first.",
                before.name,
                quoted(old)
            )));
        }
        Ok(())
    }

    /// Refuses new CHECKs that a row which is there breaks.
    fn check_present(&mut self, name: &str, altered: &Altered) -> Result<(), Error> {
        for check in &altered.to_check {
            let ToCheck::Check(check) = check else { continue };
            let own = name.rsplit_once('.').map_or(name, |(_, own)| own);
            let text =
                format!("SELECT 1 FROM {} AS {} WHERE NOT ({}) LIMIT 1", table_text(name), quoted(own), check.expr);
            if self.has_rows(&text)? {
                return Err(Error::data(format!(
                    "check constraint \"{}\" of relation \"{name}\" is violated by some row",
                    check.name
                ))
                .with_sqlstate("23514")
                .with_hint(format!("SELECT * FROM {name} WHERE NOT ({}) shows them.", check.expr)));
            }
        }
        Ok(())
    }

    fn has_rows(&mut self, text: &str) -> Result<bool, Error> {
        let query = anabranch_sql::parse::parse_query(text)?;
        let planned = self.plan_constant(&query)?.planned;
        Ok(self.collect(&planned.plan)?.iter().any(|batch| !batch.is_empty()))
    }

    /// The changes but `ADD UNIQUE`, then these; columns that were added go again where they fail.
    fn alter_and_add_unique(&mut self, alter: &Alter) -> Result<(), Error> {
        let (uniques, others): (Vec<_>, Vec<_>) =
            alter.actions.iter().cloned().partition(|action| matches!(action, AlterAction::AddUnique(_)));
        let added: Vec<AlterAction> = others
            .iter()
            .filter_map(|action| match action {
                AlterAction::AddColumn { column, .. } => {
                    Some(AlterAction::DropColumn { name: column.field.name().clone(), if_exists: true })
                }
                _ => None,
            })
            .collect();
        if !others.is_empty() && added.len() < others.len() {
            return Err(Error::invalid("ADD UNIQUE stands alone in an ALTER TABLE, or beside ADD COLUMN")
                .with_sqlstate("42601")
                .with_hint("Write the other changes in a statement of their own."));
        }
        if !others.is_empty() {
            self.alter(&Alter { actions: others, ..alter.clone() })?;
        }
        for unique in uniques {
            if let Err(error) = self.alter(&Alter { actions: vec![unique], ..alter.clone() }) {
                if !added.is_empty() {
                    self.alter(&Alter { actions: added, ..alter.clone() })?;
                }
                return Err(error);
            }
        }
        Ok(())
    }
}

/// A table as it was declared.
fn declared(object: &Object) -> Result<CreateTable, Error> {
    let statement = anabranch_sql::parse(&object.definition)?.into_iter().next().map(|parsed| parsed.statement);
    match statement {
        Some(Statement::CreateTable(create)) => {
            // (Columns in primary keys are NOT NULL; a temporary table's own name is the
            // catalog's.)
            let mut table = CreateTable { name: object.name.clone(), columns: fields(object), ..create };
            // (What columns have of their types is not in the text.)
            let of_types = object.rules.declared.checks.iter().filter(|check| check.of_type.is_some());
            table.rules.checks.extend(of_types.cloned());
            for (at, default) in object.defaults.iter().enumerate().filter(|(_, default)| default.is_some()) {
                if table.columns.get(at).is_some_and(|field| type_of(field).is_some()) {
                    table.defaults.resize(table.columns.len(), None);
                    table.defaults[at].clone_from(default);
                }
            }
            Ok(table)
        }
        _ => Err(Error::internal(format!("the definition of \"{}\" makes no table", object.name))),
    }
}

pub(super) fn fields(object: &Object) -> Vec<arrow::datatypes::Field> {
    object.schema.fields().iter().map(|field| field.as_ref().clone()).collect()
}

fn table_text(name: &str) -> String {
    quoted(name)
}
