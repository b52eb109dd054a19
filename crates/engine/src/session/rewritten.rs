//! ALTER TABLE where rows are written anew: the altered table takes the place of the old one.
//!
//! Law: the new table, its rows, its indexes and the views over it come in one commit, or nothing
//! does: what was there steps aside, and comes back where something is refused. Subscriptions to
//! the old table end with an error behind its last changes.
//!
//! Cost: reading and writing all rows, and making the table's indexes and views.

use anabranch_batch::order::Comparator;
use anabranch_batch::{Batch, Times};
use anabranch_sql::statement::{Alter, AlterAction, CreateTable, CreateView, Insert, Overriding, Statement};
use anabranch_sql::table::{Altered, rewritten};

use super::durable::COUNTERS;
use super::index::{index_definition, listed_anew};
use super::keys::{UniqueKey, check_distinct};
use super::sealed::{Sealed, SealedFact, SealedRows};
use super::state::Session;
use crate::catalog::{Created, Index, IndexForm, Object, ObjectId, Retain, is_temporary, kind_name};
use crate::error::Error;

impl Session {
    /// Writes all rows anew, as the altered table's, and makes what depends on it anew.
    pub(super) fn rewrite(&mut self, object: &Object, altered: Altered) -> Result<(), Error> {
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

/// Rows in the order of their first columns.
fn in_order(rows: Vec<Batch>, width: usize) -> Vec<Batch> {
    let rows: Vec<Batch> = rows.into_iter().map(Batch::compact).collect();
    let Some(rows) = Batch::concat(&rows) else { return vec![] };
    let comparator = Comparator::ascending(&rows.columns()[..width]);
    let mut order: Vec<u32> = (0..rows.len() as u32).collect();
    order.sort_by(|a, b| comparator.compare(*a as usize, *b as usize));
    vec![rows.take(&order)]
}
