//! CREATE TABLE, and what all relations have when they are made.
//!
//! Sources are in [`create_source`](super::create_source), views in
//! [`create_view`](super::create_view).
//!
//! Law: the name appears in the catalog last, after all that can fail; what was installed before a
//! failure is taken down again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anabranch_batch::numeric::NumericPlaces;
use anabranch_plan::bounds::Promises;
use anabranch_plan::{Node, Plan};
use anabranch_sql::statement::{CreateTable, CreateTableAs, LifetimeClause, ObjectKind, Rules};
use anabranch_sql::table::quoted_path;
use anabranch_sql::{column_type_name, planned_columns};
use arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion_common::{DFSchema, TableReference};

use super::context::Named;
use super::dataflows::Sink;
use super::index::quoted;
use super::keys::UniqueKey;
use super::outcome::Outcome;
use super::state::Session;
use super::write::n_rows;
use crate::catalog::undoing_moves;
use crate::catalog::{Arranged, Maintained, Object, Retain, TableRules, Watermark, kind_name};
use crate::cluster::CollectionId;
use crate::coerce::planned_schema;
use crate::error::Error;

impl Session {
    pub(super) fn create_table(&mut self, create: &CreateTable, text: &str) -> Result<Outcome, Error> {
        let (expanded, defined);
        let (create, text) = match &create.like {
            None => (create, text),
            Some(like) => {
                expanded = self.with_columns_of(create, like)?;
                defined = expanded.definition();
                (&expanded, defined.as_str())
            }
        };
        let named;
        let create = match create.lifetime {
            LifetimeClause::Lasting => create,
            LifetimeClause::OfClient => {
                named = CreateTable { name: self.temporary_name(&create.name), ..create.clone() };
                &named
            }
        };
        if let Some(outcome) = self.existing("CREATE TABLE", &create.name, create.if_not_exists)? {
            return Ok(outcome);
        }
        if create.uniques.is_empty() {
            self.create_table_named(create, text)?;
            self.check_declared(create).inspect_err(|_| self.drop_created(&create.name))?;
            return Ok(Outcome::done("CREATE TABLE"));
        }
        // (UNIQUE makes indexes, which are recorded by themselves.)
        self.create_table_named(create, &create.definition())?;
        for unique in &create.uniques {
            self.create_unique(&create.name, unique).inspect_err(|_| self.drop_created(&create.name))?;
        }
        self.check_declared(create).inspect_err(|_| self.drop_created(&create.name))?;
        Ok(Outcome::done("CREATE TABLE"))
    }

    /// Makes a table whose name is free and the catalog's.
    pub(super) fn create_table_named(&mut self, create: &CreateTable, text: &str) -> Result<(), Error> {
        let typed = self.with_types(create)?;
        let create = typed.as_ref().unwrap_or(create);
        let schema = planned_schema("table", &create.name, &create.columns)?;
        UniqueKey::check_types(&create.primary_key, &schema)?;
        let schema = not_null(&schema, &create.primary_key);
        let watermark = watermark(create.watermark.as_ref(), &schema)?;
        let mut options: BTreeMap<String, String> = create.options.iter().cloned().collect();
        let retain = take_retain(&mut options)?.unwrap_or(Retain::All);
        refuse_options("table", &create.name, &options, &["retain"])?;
        if retain != Retain::All && !create.primary_key.is_empty() {
            return Err(Error::invalid(format!("table \"{}\" has a primary key and retain = 'none'", create.name))
                .with_detail("A primary key is checked against the rows that are there.")
                .with_hint("Leave one of them out."));
        }
        let object = Object {
            primary_key: create.primary_key.clone(),
            defaults: create.defaults.clone(),
            retain,
            watermark,
            is_append_only: create.is_append_only,
            rules: TableRules::new(create.rules.clone()),
            ..Object::new(&create.name, ObjectKind::Table, schema, text.to_string())
        };
        self.check_defaults(&object)?;
        self.add_timed_input(object)?;
        self.plan_rules(&create.name).inspect_err(|_| self.drop_relation(&create.name))
    }

    /// A table with the columns and the rows that a query has now.
    pub(super) fn create_table_as(&mut self, create: &CreateTableAs) -> Result<Outcome, Error> {
        let named;
        let create = match create.lifetime {
            LifetimeClause::Lasting => create,
            LifetimeClause::OfClient => {
                named = CreateTableAs { name: self.temporary_name(&create.name), ..create.clone() };
                &named
            }
        };
        if let Some(outcome) = self.existing("CREATE TABLE AS", &create.name, create.if_not_exists)? {
            return Ok(outcome);
        }
        let Named { mut planned, names, .. } = self.plan_query(&create.query)?;
        planned.plan = self.with_operator_rows(&planned.plan)?;
        self.settle_sources(&names)?;
        let given = planned.columns();
        if create.column_names.len() > given.fields().len() {
            return Err(Error::invalid(format!(
                "table \"{}\" names {} columns, but its query has {}",
                create.name,
                create.column_names.len(),
                given.fields().len()
            )));
        }
        let field = |(idx, field): (usize, &Arc<Field>)| {
            let name = create.column_names.get(idx).unwrap_or_else(|| field.name());
            NumericPlaces::taken_off(field.as_ref().clone().with_name(name).with_nullable(true))
        };
        let columns: Vec<Field> = given.fields().iter().enumerate().map(field).collect();
        let rows = self.collect_finished(&planned)?;
        let definition = table_definition(&create.name, &columns);
        let table = CreateTable {
            name: create.name.clone(),
            if_not_exists: false,
            defaults: vec![None; columns.len()],
            columns,
            primary_key: vec![],
            like: None,
            uniques: vec![],
            watermark: None,
            is_append_only: false,
            options: vec![],
            rules: Rules::default(),
            lifetime: LifetimeClause::Lasting,
        };
        let n_rows = n_rows(&rows);
        if self.client.transaction.is_some() {
            self.beside_transaction(None, |session| {
                session.define(|session| {
                    session.create_table_named(&table, &definition)?;
                    Ok(Outcome::done("CREATE TABLE"))
                })
            })?;
            self.write_checked(&create.name, rows)?;
            return Ok(Outcome::done(format!("SELECT {n_rows}")));
        }
        let before = self.catalog.next_object();
        self.create_table_named(&table, &definition)?;
        let created = self.created_since(before).pop();
        self.stage_created(created);
        if let Err(error) = self.write_checked(&create.name, rows) {
            self.abandon_commit();
            self.drop_created(&create.name);
            return Err(error);
        }
        Ok(Outcome::done(format!("SELECT {n_rows}")))
    }

    /// Evaluates each default once, so that what cannot be evaluated or does not fit its column is
    /// refused now.
    pub(super) fn check_defaults(&self, object: &Object) -> Result<(), Error> {
        for (idx, default) in object.defaults.iter().enumerate() {
            let Some(default) = default else { continue };
            let field = object.schema.field(idx);
            let value = undoing_moves(|| self.evaluate_constant(&format!("SELECT {default}")))?;
            if value.data_type().is_string() {
                anabranch_sql::input::convert(&value, field.data_type()).map_err(|problem| {
                    Error::invalid(format!("default {default} does not fit column \"{}\"", field.name()))
                        .with_detail(problem)
                })?;
                continue;
            }
            let options = arrow::compute::CastOptions { safe: false, ..Default::default() };
            arrow::compute::cast_with_options(&value, field.data_type(), &options).map_err(|error| {
                Error::invalid(format!("default {default} does not fit column \"{}\"", field.name()))
                    .with_detail(Error::from(error).message)
            })?;
        }
        Ok(())
    }

    /// `Some` when the name exists and that is fine, an error when it exists and is not.
    pub(super) fn existing(&self, tag: &str, name: &str, if_not_exists: bool) -> Result<Option<Outcome>, Error> {
        let Some(kind) = self.catalog.kind_of(name) else { return Ok(None) };
        let message = format!("{} \"{name}\" already exists", kind_name(kind));
        if if_not_exists {
            return Ok(Some(Outcome::done_with(tag, format!("{message}; nothing was done."))));
        }
        Err(Error::invalid(message).with_hint("Choose another name, or DROP it first."))
    }

    /// Adds a table or source, and the relation that holds its watermark if it has one.
    pub(super) fn add_timed_input(&mut self, object: Object) -> Result<(), Error> {
        let name = object.name.clone();
        let holder = object.watermark.as_ref().map(|watermark| Object {
            name: Watermark::relation_of(&name),
            schema: watermark.relation_schema(&object.schema),
            kind: ObjectKind::Table,
            primary_key: vec![],
            defaults: vec![],
            retain: Retain::All,
            watermark: None,
            source: None,
            is_append_only: false,
            is_hidden: true,
            rules: TableRules::default(),
            ..object.clone()
        });
        if let Some(holder) = &holder
            && self.catalog.contains(&holder.name)
        {
            let message = format!("the watermark of \"{name}\" has no name: there is a relation \"{}\"", holder.name);
            return Err(Error::invalid(message).with_hint("Choose another name for one of them."));
        }
        self.add_input(object)?;
        let Some(holder) = holder else { return Ok(()) };
        self.add_input(holder).inspect_err(|_| self.drop_relation(&name))
    }

    /// Adds a table or source with its input and, unless it keeps nothing, its base arrangement.
    pub(super) fn add_input(&mut self, mut object: Object) -> Result<(), Error> {
        let collection = self.dataflows.next_collection();
        self.cluster.create_input(collection, self.timeline.upper());
        object.maintained =
            Some(Maintained { collection, is_input: true, arrangements: Vec::new(), promises: Promises::default() });
        let name = object.name.clone();
        let base = match object.primary_key.is_empty() {
            true => (0..object.schema.fields().len()).collect(),
            false => object.primary_key.clone(),
        };
        let keeps = object.retain == Retain::All;
        self.catalog.add(object.clone());
        if keeps && let Err(error) = self.arrange(&object, &base, &name) {
            self.catalog.remove(&name);
            self.cluster.drop_input(collection);
            return Err(error);
        }
        Ok(())
    }

    /// Installs a view's plan with an arrangement by `key`, owned by the view.
    pub(super) fn maintain(&mut self, object: &Object, plan: &Arc<Plan>, key: Vec<usize>) -> Result<Maintained, Error> {
        let collection: CollectionId = self.dataflows.next_collection();
        let (dataflow, arrangements) =
            self.install(&object.name, plan, std::slice::from_ref(&key), Sink::Arrangements)?;
        let owners = BTreeSet::from([object.name.clone()]);
        let arranged = Arranged { arrangement: arrangements[0], key, dataflow, owners };
        let promises = self.promises_of_view(plan)?;
        Ok(Maintained { collection, is_input: false, arrangements: vec![arranged], promises })
    }

    /// Gives `owner` an arrangement of the relation by `key`: one that is there already, or a new
    /// one. Tells when it is shared.
    pub(super) fn arrange(&mut self, object: &Object, key: &[usize], owner: &str) -> Result<Option<String>, Error> {
        let shared = object.maintained.iter().flat_map(|maintained| &maintained.arrangements).find(|a| a.key == key);
        if let Some(shared) = shared {
            self.retain_dataflow(shared.dataflow);
            let shared_id = shared.arrangement;
            let names: Vec<String> = shared.owners.iter().map(|owner| format!("\"{owner}\"")).collect();
            self.update_maintained(&object.name, |maintained| {
                for arranged in maintained.arrangements.iter_mut().filter(|a| a.arrangement == shared_id) {
                    arranged.owners.insert(owner.to_string());
                }
            });
            return Ok(Some(format!("It shares the arrangement of {}.", names.join(", "))));
        }
        if object.maintained.is_none() {
            let plan = self.plan_stored_view(object)?;
            let mut maintained = self.maintain(object, &plan, key.to_vec())?;
            maintained.arrangements[0].owners = BTreeSet::from([owner.to_string()]);
            if let Some(object) = self.catalog.find_mut(&object.name) {
                object.maintained = Some(maintained);
            }
            return Ok(None);
        }
        let plan = scan_plan(object)?;
        let (dataflow, arrangements) = self.install(owner, &plan, &[key.to_vec()], Sink::Arrangements)?;
        let owners = BTreeSet::from([owner.to_string()]);
        let arranged = Arranged { arrangement: arrangements[0], key: key.to_vec(), dataflow, owners };
        self.update_maintained(&object.name, |maintained| maintained.arrangements.push(arranged));
        Ok(None)
    }

    fn update_maintained(&mut self, name: &str, update: impl FnOnce(&mut Maintained)) {
        if let Some(maintained) = self.catalog.find_mut(name).and_then(|object| object.maintained.as_mut()) {
            update(maintained);
        }
    }
}

/// The statement that makes a table of these columns.
fn table_definition(name: &str, columns: &[Field]) -> String {
    let column = |field: &Field| format!("{} {}", quoted(field.name()), column_type_name(field));
    let columns: Vec<String> = columns.iter().map(column).collect();
    format!("CREATE TABLE {} ({})", quoted_path(name), columns.join(", "))
}

/// A plan of all columns of a relation.
pub(super) fn scan_plan(object: &Object) -> Result<Arc<Plan>, Error> {
    let schema = DFSchema::try_from_qualified_schema(
        TableReference::bare(object.name.as_str()),
        &planned_columns(&object.schema),
    )
    .map_err(|e| Error::internal(format!("schema of \"{}\": {e}", object.name)))?;
    let columns = (0..object.schema.fields().len()).collect();
    let node = Node::Scan { relation: object.name.clone(), columns };
    Ok(Arc::new(Plan { node, schema: Arc::new(schema) }))
}

/// The schema with these columns NOT NULL.
pub(super) fn not_null(schema: &SchemaRef, columns: &[usize]) -> SchemaRef {
    let field = |(idx, field): (usize, &Arc<Field>)| match columns.contains(&idx) {
        true => field.as_ref().clone().with_nullable(false),
        false => field.as_ref().clone(),
    };
    Arc::new(Schema::new(schema.fields().iter().enumerate().map(field).collect::<Vec<_>>()))
}

/// Takes `retain` out of the options.
pub(super) fn take_retain(options: &mut BTreeMap<String, String>) -> Result<Option<Retain>, Error> {
    match options.remove("retain").as_deref() {
        None => Ok(None),
        Some("all") => Ok(Some(Retain::All)),
        Some("none") => Ok(Some(Retain::Nothing { passed: false })),
        Some(other) => {
            Err(Error::invalid(format!("option \"retain\" has the value '{other}'"))
                .with_hint("It takes 'all' or 'none'."))
        }
    }
}

fn refuse_options(kind: &str, name: &str, options: &BTreeMap<String, String>, known: &[&str]) -> Result<(), Error> {
    let Some(option) = options.keys().next() else { return Ok(()) };
    Err(Error::invalid(format!("{kind} \"{name}\" has no option \"{option}\""))
        .with_hint(format!("Known options: {}.", known.join(", "))))
}

pub(super) fn watermark(
    declared: Option<&anabranch_sql::statement::Watermark>,
    schema: &SchemaRef,
) -> Result<Option<Watermark>, Error> {
    declared.map(|declared| Watermark::new(declared, schema)).transpose()
}
