//! ALTER TABLE. (Other names for objects are in [`rename`](super::rename).)
//!
//! Law: a statement makes all of its changes or none. Rows that stay are checked for what is new;
//! rows that are written anew obey all rules of the altered table, and are one commit. Views over a
//! table whose rows are written anew are made anew over it; where a view's columns would not be
//! what they are, the statement is refused and names the view. So it is where a name changes that a
//! view uses: the texts of views are kept as they were written.
//!
//! Cost: of new defaults, names, NOT NULL and CHECK, at most a scan of the table; of all else,
//! writing all rows and making its views.

use anabranch_batch::order::Comparator;
use anabranch_batch::{Batch, Times};
use anabranch_sql::statement::{
    Alter, AlterAction, CreateTable, CreateView, Insert, ObjectKind, Overriding, Statement,
};
use anabranch_sql::table::{Altered, RowsBecome, ToCheck, rewritten};
use anabranch_sql::type_marks::type_of;

use super::durable::{COUNTERS, DEFINITION, SOURCE};
use super::index::{index_definition, listed_anew, quoted};
use super::keys::{UniqueKey, check_distinct};
use super::outcome::Outcome;
use super::sealed::{Sealed, SealedFact, SealedRows};
use super::state::Session;
use crate::catalog::{Created, Index, IndexForm, Object, ObjectId, Retain, TableRules, is_temporary, kind_name};
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

    /// Writes all rows anew, as the altered table's, and makes what depends on it anew.
    fn rewrite(&mut self, object: &Object, altered: Altered) -> Result<(), Error> {
        let name = object.name.clone();
        if object.watermark.is_some() || object.retain != Retain::All || object.is_append_only {
            return Err(Error::invalid(format!(
                "table \"{name}\" cannot be altered so: its rows cannot be written anew"
            ))
            .with_sqlstate("0A000")
            .with_detail("It has a watermark, is APPEND ONLY, or keeps no rows.")
            .with_hint("Create another table, and INSERT what SELECT gives of this one."));
        }
        let draft = format!("{name}.__altered");
        let created = self.make_draft(&draft, &altered);
        let rows = created.and_then(|()| self.draft_rows(object, &draft, &altered));
        let rows = match rows {
            Ok(rows) => rows,
            Err(error) => {
                self.drop_relation(&draft);
                return Err(about(error, &name, &draft));
            }
        };
        self.exchange(object, &draft, altered.table, rows)
    }

    fn make_draft(&mut self, draft: &str, altered: &Altered) -> Result<(), Error> {
        let table = CreateTable { name: draft.to_string(), if_not_exists: false, ..altered.table.clone() };
        self.create_table_named(&table, &altered.table.definition())
    }

    /// The rows of a table as those of its altered form.
    fn draft_rows(&mut self, object: &Object, draft: &str, altered: &Altered) -> Result<Vec<Batch>, Error> {
        let after = self.catalog.table(draft)?.clone();
        for counted in &after.rules.counters {
            let field = after.schema.field(counted.column);
            let old = object.schema.index_of(field.name()).ok();
            let old = old.and_then(|at| object.rules.counters.iter().find(|old| old.column == at));
            if let Some(old) = old {
                counted.counter.set(old.counter.peek());
            }
        }
        let (columns, query) = rewritten(altered, &object.name)?;
        let overriding = Overriding::System;
        let table = draft.to_string();
        let insert = Insert { table, alias: None, columns, query, conflict: None, returning: None, overriding };
        let planned = self.plan_insert(&insert).map_err(|error| about(error, &object.name, draft))?;
        let rows = self.collect_finished(&planned.planned)?;
        // (Numbers go by the rows, wherever they come from.)
        let rows = if after.rules.counters.is_empty() { rows } else { in_order(rows, after.schema.fields().len()) };
        let rows = self.number_rows(&after, rows)?;
        let rows = self.fit_rows(&after, rows).map_err(|error| about(error, &object.name, draft))?;
        let named = object_named(&after, &object.name);
        for key in self.unique_keys(object).into_iter().filter(|key| !key.is_primary()) {
            let at = |column: &usize| after.schema.index_of(object.schema.field(*column).name()).ok();
            // (A key of a column that goes, goes with it.)
            let Some(columns) = key.columns.iter().map(at).collect::<Option<Vec<usize>>>() else { continue };
            check_distinct(named.as_ref(), &UniqueKey { columns, ..key }, &rows)?;
        }
        if !after.primary_key.is_empty() {
            check_distinct(named.as_ref(), &UniqueKey::primary(&after), &rows)?;
        }
        self.check_rows_refer(&after, &rows)?;
        Ok(rows)
    }

    /// Puts the altered table in the place of the old one.
    fn exchange(&mut self, old: &Object, draft: &str, table: CreateTable, rows: Vec<Batch>) -> Result<(), Error> {
        let name = old.name.clone();
        let mut readers = self.catalog.dependents(&name);
        readers.reverse();
        let views: Vec<Object> = readers.iter().filter_map(|view| self.catalog.find(view).cloned()).collect();
        let names: Vec<String> = std::iter::once(name.clone()).chain(readers.iter().cloned()).collect();
        let indexes: Vec<Index> = names.iter().flat_map(|name| self.catalog.indexes_on(name)).cloned().collect();
        // What is there steps aside, and comes back if something is refused.
        indexes.iter().for_each(|index| drop(self.catalog.remove_index(&index.name)));
        views.iter().for_each(|view| drop(self.catalog.remove(&view.name)));
        self.catalog.remove(&name);
        names.iter().for_each(|name| self.dataflows.registry_mut().forget_relation(name));
        self.dataflows.registry_mut().forget_relation(draft);
        self.catalog.rename(draft, &name);
        let first = self.catalog.find(&name).map(|object| object.id).unwrap_or_default();
        let made = self.remake(&name, &table, &views, &indexes, &old.schema);
        let recorded = made.and_then(|()| self.record_exchange(first, old, &views, &indexes, rows));
        let sealed = match recorded {
            Ok(sealed) => sealed,
            Err(error) => {
                names.iter().rev().for_each(|name| self.take_down(name));
                self.catalog.put_back(old.clone());
                views.into_iter().for_each(|view| self.catalog.put_back(view));
                indexes.into_iter().for_each(|index| self.catalog.put_back_index(index));
                return Err(error);
            }
        };
        // (The commit that brings the rows anew is none of the old table's.)
        let last = self.timeline.last();
        names.iter().for_each(|name| self.subscriptions.end_readers(name, last));
        self.publish(sealed);
        // Readers go before what they read.
        for gone in views.iter().rev().chain([old]) {
            let Some(maintained) = &gone.maintained else { continue };
            for arranged in &maintained.arrangements {
                arranged.owners.iter().for_each(|_| self.release_dataflow(arranged.dataflow));
            }
            if maintained.is_input {
                self.cluster.drop_input(maintained.collection);
            }
        }
        self.allow_compaction();
        Ok(())
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

    /// Makes views and indexes anew, over the altered table.
    fn remake(
        &mut self,
        name: &str,
        table: &CreateTable,
        views: &[Object],
        indexes: &[Index],
        before: &arrow::datatypes::Schema,
    ) -> Result<(), Error> {
        self.plan_rules(name)?;
        let of_table = indexes.iter().filter(|index| index.relation == name);
        for index in of_table {
            let mut columns = index.key.iter().map(|column| before.field(*column).name());
            // (An index on a column that goes, goes with it.)
            if columns.all(|column| table.columns.iter().any(|field| field.name() == column)) {
                self.remake_index(&index.name, name, &listed_anew(index, before), index.form())?;
            }
        }
        for view in views {
            self.remake_view(name, view)?;
            for index in indexes.iter().filter(|index| index.relation == view.name) {
                let listed = listed_anew(index, &view.schema);
                self.remake_index(&index.name, &view.name, &listed, IndexForm::Plain)?;
            }
        }
        Ok(())
    }

    fn remake_index(&mut self, name: &str, relation: &str, listed: &[String], form: IndexForm) -> Result<(), Error> {
        let definition = index_definition(name, relation, listed, form);
        match anabranch_sql::parse(&definition)?.first().map(|parsed| &parsed.statement) {
            Some(Statement::CreateIndex(create)) => self.create_index(create, &definition).map(drop),
            Some(Statement::Alter(Alter { name, actions, .. }))
                if let [AlterAction::AddUnique(unique)] = actions.as_slice() =>
            {
                self.restore_unique(name, unique, &definition).map(drop)
            }
            _ => Err(Error::internal("the definition of an index makes one")),
        }
    }

    fn remake_view(&mut self, table: &str, view: &Object) -> Result<(), Error> {
        let statement = anabranch_sql::parse(&view.definition)?.into_iter().next().map(|parsed| parsed.statement);
        let Some(Statement::CreateView(create)) = statement else {
            return Err(Error::invalid(format!("{} \"{}\" is made of a plan", kind_name(view.kind), view.name))
                .with_hint("Drop it before the table is altered, and make it anew."));
        };
        let create = CreateView { name: view.name.clone(), ..create };
        let used = |detail: String| {
            Error::invalid(format!("table \"{table}\" cannot be altered so because others depend on it"))
                .with_sqlstate("2BP01")
                .with_detail(format!("{} \"{}\": {detail}", kind_name(view.kind), view.name))
                .with_hint("DROP the view, alter the table, and CREATE the view anew.")
        };
        let object = self.view_object(&create, &view.definition).map_err(|error| used(error.message))?;
        let shape = |object: &Object| -> Vec<_> {
            let fields = object.schema.fields().iter();
            fields.map(|field| (field.name().clone(), field.data_type().clone())).collect()
        };
        if shape(&object) != shape(view) {
            let made = object.maintained.iter().flat_map(|maintained| &maintained.arrangements);
            made.for_each(|arranged| self.release_dataflow(arranged.dataflow));
            return Err(used("it would have other columns.".to_string()));
        }
        self.catalog.add(object);
        Ok(())
    }

    /// Records the exchange as one commit, which is then to be published.
    fn record_exchange(
        &mut self,
        first: ObjectId,
        old: &Object,
        views: &[Object],
        indexes: &[Index],
        rows: Vec<Batch>,
    ) -> Result<Sealed, Error> {
        let new = self.catalog.get(&old.name)?.clone();
        let collection = new.maintained.as_ref().map(|maintained| maintained.collection);
        let collection = collection.ok_or_else(|| Error::internal("a table has an input"))?;
        let time = self.begin_commit();
        self.abandon_commit();
        let sealed_rows = |batch: Batch| SealedRows { object: new.id, collection, batch };
        let rows = rows.into_iter().filter(|batch| !batch.is_empty());
        let rows = rows.map(|batch| sealed_rows(batch.with_times(Times::Constant(time)))).collect();
        let mut facts = Vec::new();
        if !new.rules.counters.is_empty() {
            facts.push(SealedFact { object: new.id, name: COUNTERS, value: new.rules.counters_value() });
        }
        let ids = views.iter().map(|view| view.id).chain([old.id]).chain(indexes.iter().map(|index| index.id));
        let mut removed: Vec<ObjectId> = ids.collect();
        removed.sort_unstable();
        let created: Vec<Created> = self.created_since(first);
        let sealed = Sealed::at(time, self.client.durability);
        let sealed = Sealed { removed, created, rows, facts, ..sealed };
        match is_temporary(&old.name) {
            // (Nothing of temporary tables is recorded.)
            true => {}
            false => self.record(&sealed)?,
        }
        Ok(sealed)
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

fn object_named(object: &Object, name: &str) -> Box<Object> {
    Box::new(Object { name: name.to_string(), ..object.clone() })
}

/// The error of a draft as that of its table.
fn about(mut error: Error, name: &str, draft: &str) -> Error {
    // (Errors of rows name the draft without its schema.)
    let own = |whole: &str| whole.rsplit_once('.').map_or(whole, |(_, own)| own).to_owned();
    let (own_draft, own_name) = (format!("\"{}\"", own(draft)), format!("\"{}\"", own(name)));
    let told = |text: &String| text.replace(draft, name).replace(&own_draft, &own_name);
    error.detail = error.detail.as_ref().map(told);
    error.message = told(&error.message);
    error.without_place()
}

fn table_text(name: &str) -> String {
    quoted(name)
}

/// Rows in the order of their first columns.
fn in_order(rows: Vec<Batch>, width: usize) -> Vec<Batch> {
    let rows: Vec<Batch> = rows.into_iter().map(Batch::compact).collect();
    let Some(rows) = Batch::concat(&rows) else { return vec![] };
    let comparator = Comparator::ascending(&rows.columns()[..width]);
    let mut order: Vec<u32> = (0..rows.len() as u32).collect();
    order.sort_by(|a, b| comparator.compare(*a as usize, *b as usize));
    vec![rows.take(&order)]
}
