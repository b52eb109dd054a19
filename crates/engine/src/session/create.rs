//! CREATE TABLE, SOURCE, VIEW and MATERIALIZED VIEW.
//!
//! Law: the name appears in the catalog last, after all that can fail; what was installed before a
//! failure is taken down again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anabranch_batch::numeric::NumericPlaces;
use anabranch_plan::bounds::Promises;
use anabranch_plan::{Node, Plan};
use anabranch_sql::catalog::Catalog as _;
use anabranch_sql::statement::{
    CreateSource, CreateTable, CreateTableAs, CreateView, LifetimeClause, ObjectKind, Rules,
};
use anabranch_sql::table::quoted_path;
use anabranch_sql::{column_type_name, planned_columns};
use arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion_common::{DFSchema, TableReference};
use datafusion_expr::Expr;

use super::context::Named;
use super::dataflows::Sink;
use super::index::quoted;
use super::keys::UniqueKey;
use super::outcome::Outcome;
use super::state::Session;
use super::write::n_rows;
use crate::catalog::undoing_moves;
use crate::catalog::{
    Arranged, Created, Maintained, Object, Planning, Retain, SourceOptions, TableRules, Watermark, is_temporary,
    kind_name,
};
use crate::cluster::CollectionId;
use crate::coerce::planned_schema;
use crate::connector::SourceSpec;
use crate::error::Error;
use crate::nearest::nearest;
use crate::pump::{Again, Pumped, Stand, WaitingRows, parse_rate};

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

    pub(super) fn create_source(&mut self, create: &CreateSource, text: &str) -> Result<Outcome, Error> {
        if let Some(outcome) = self.existing("CREATE SOURCE", &create.name, create.if_not_exists)? {
            return Ok(outcome);
        }
        if !create.primary_key.is_empty() {
            return Err(Error::invalid(format!("source \"{}\" cannot have a primary key", create.name))
                .with_detail("What comes from outside is not checked for duplicates.")
                .with_hint("Leave PRIMARY KEY out; create an index on the columns for lookups."));
        }
        let mut asked = asked_source(create)?;
        let connector = self.connector(&asked.connector)?;
        // (A database in a folder has all rows in its log: opening it reads no source again.)
        let edition = match asked.retain {
            None if self.recorder.is_none() => connector.edition(&asked.spec)?,
            _ => None,
        };
        let reader = connector.open(&asked.spec)?;
        let given = reader.schema();
        let fields: Vec<Field> = match create.columns.is_empty() {
            true => given.fields().iter().map(|field| field.as_ref().clone()).collect(),
            false => create.columns.clone(),
        };
        let schema = planned_schema("source", &create.name, &fields)?;
        asked.retain = asked.retain.or_else(|| edition.is_some().then_some(Retain::OnDemand));
        self.add_source(create, &asked, schema, text)?;
        let now = self.options.clock.now_micros();
        let floats = if create.columns.is_empty() { told_floats(&asked.spec, &fields) } else { None };
        let pumped = Pumped::new(&create.name, reader, asked.rate, now);
        self.pump.add(match edition {
            Some(edition) => pumped.on_demand(Again { connector, spec: asked.spec.clone(), edition }),
            None if asked.retain == Some(Retain::Nothing { passed: false }) => pumped.unread(),
            None => pumped,
        });
        self.publish_progress();
        Ok(match floats {
            Some(detail) => Outcome::done_with("CREATE SOURCE", detail),
            None => Outcome::done("CREATE SOURCE"),
        })
    }

    /// A source of a database that was opened: its connector may not be known yet, and what it
    /// reads may be gone.
    pub(super) fn restore_source(
        &mut self,
        create: &CreateSource,
        text: &str,
        schema: SchemaRef,
        stand: Option<Stand>,
    ) -> Result<(), Error> {
        let mut asked = asked_source(create)?;
        self.add_source(create, &asked, schema.clone(), text)?;
        asked.spec.columns = schema.fields().iter().map(|field| field.as_ref().clone()).collect();
        let waiting = WaitingRows { connector: asked.connector, spec: asked.spec, stand: stand.unwrap_or_default() };
        self.pump.add(Pumped::waiting(waiting, asked.rate));
        Ok(())
    }

    /// Lets sources that wait for that connector go on where they were.
    pub(super) fn resume_sources(&mut self, connector: &str) {
        let Ok(by) = self.connector(connector) else { return };
        let now = self.options.clock.now_micros();
        self.pump.resume(connector, by.as_ref(), now);
        self.publish_progress();
    }

    /// The relation of a source.
    fn add_source(
        &mut self,
        create: &CreateSource,
        asked: &AskedSource,
        schema: SchemaRef,
        text: &str,
    ) -> Result<(), Error> {
        let watermark = watermark(create.watermark.as_ref(), &schema)?;
        let object = Object {
            retain: asked.retain.unwrap_or(Retain::All),
            watermark,
            source: Some(SourceOptions { connector: asked.connector.clone() }),
            is_append_only: true,
            ..Object::new(&create.name, ObjectKind::Source, schema, text.to_string())
        };
        self.add_timed_input(object)
    }

    pub(super) fn define_view(&mut self, create: &CreateView, text: &str) -> Result<Outcome, Error> {
        let kind = if create.materialized { ObjectKind::MaterializedView } else { ObjectKind::View };
        let tag = if create.materialized { "CREATE MATERIALIZED VIEW" } else { "CREATE VIEW" };
        let named;
        let create = match create.lifetime {
            LifetimeClause::Lasting => create,
            LifetimeClause::OfClient => {
                named = CreateView { name: self.temporary_name(&create.name), ..create.clone() };
                &named
            }
        };
        let known = self.catalog.kind_of(&create.name).filter(|_| create.or_replace);
        let replaces = known == Some(kind);
        if known.is_some() && !replaces {
            let message = format!("\"{}\" is not a {}", create.name, kind_name(kind));
            return Err(Error::invalid(message).with_sqlstate("42809").with_hint("Choose another name."));
        }
        if replaces {
            self.check_replaceable(&create.name, kind)?;
        } else if let Some(outcome) = self.existing(tag, &create.name, create.if_not_exists)? {
            return Ok(outcome);
        }
        let object = self.view_object(create, text)?;
        if let Some(old) = self.catalog.find(&create.name).filter(|_| replaces && kind == ObjectKind::View) {
            check_same_columns(&old.schema, &object.schema)?;
        }
        let old = self.catalog.find(&create.name).filter(|_| replaces).map(|old| old.id);
        let new = Created { id: self.catalog.next_object(), name: object.name.clone(), text: text.to_string() };
        if let Err(error) = self.record_definition(old.into_iter().collect(), vec![new], vec![]) {
            let made = object.maintained.iter().flat_map(|maintained| &maintained.arrangements);
            made.for_each(|arranged| self.release_dataflow(arranged.dataflow));
            return Err(error);
        }
        if replaces {
            self.drop_relation(&create.name);
        }
        self.catalog.add(object);
        Ok(Outcome::done(tag))
    }

    /// A view, installed but not in the catalog yet.
    pub(super) fn view_object(&mut self, create: &CreateView, text: &str) -> Result<Object, Error> {
        let kind = if create.materialized { ObjectKind::MaterializedView } else { ObjectKind::View };
        let Named { planned, names, functions, .. } = self.plan_created(create)?;
        self.check_lasting(kind, &create.name, &functions)?;
        if names.contains(&create.name) {
            return Err(Error::invalid(format!("{} \"{}\" reads itself", kind_name(kind), create.name))
                .with_hint("Give the new view another name."));
        }
        let name = match names.iter().any(|name| is_temporary(name)) && !is_temporary(&create.name) {
            false => create.name.clone(),
            true if create.materialized => {
                return Err(Error::invalid("materialized views must not use temporary tables or views")
                    .with_sqlstate("0A000")
                    .with_hint("Make the tables lasting ones, or write CREATE VIEW."));
            }
            // The view is temporary as well.
            true => self.temporary_name(&create.name),
        };
        let schema = view_schema(kind, create, &planned.columns())?;
        let mut object = Object {
            query_text: Some(create.query_text.clone()),
            reads: Arc::unwrap_or_clone(names),
            ..Object::new(&name, kind, schema, text.to_string())
        };
        if create.materialized {
            let all_columns = (0..object.schema.fields().len()).collect();
            let key = group_columns(&planned.plan).unwrap_or(all_columns);
            object.maintained = Some(self.maintain(&object, &planned.plan, key)?);
        }
        Ok(object)
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

    fn check_replaceable(&self, name: &str, kind: ObjectKind) -> Result<(), Error> {
        let dependents = self.catalog.dependents(name);
        if dependents.is_empty() && self.catalog.indexes_on(name).next().is_none() {
            return Ok(());
        }
        let indexes = self.catalog.indexes_on(name).map(|index| index.name.clone());
        let list: Vec<String> = dependents.into_iter().chain(indexes).map(|n| format!("\"{n}\"")).collect();
        Err(Error::invalid(format!("{} \"{name}\" cannot be replaced because others depend on it", kind_name(kind)))
            .with_detail(format!("They are {}.", list.join(", ")))
            .with_hint(format!("DROP {} {name} CASCADE first.", kind_name(kind).to_uppercase())))
    }

    /// The connector of that name.
    pub(crate) fn connector(&self, name: &str) -> Result<Arc<dyn crate::connector::Connector>, Error> {
        self.connectors.get(name).cloned().ok_or_else(|| {
            let known: Vec<&str> = self.connectors.keys().map(String::as_str).collect();
            let list = match known.is_empty() {
                true => "No connector is registered.".to_string(),
                false => format!("Known connectors: {}.", known.join(", ")),
            };
            let hint = match nearest(name, known.iter().copied()) {
                Some(near) => format!("Did you mean '{near}'? {list}"),
                None => list,
            };
            Error::invalid(format!("connector \"{name}\" does not exist")).with_hint(hint)
        })
    }

    /// Adds a table or source, and the relation that holds its watermark if it has one.
    fn add_timed_input(&mut self, object: Object) -> Result<(), Error> {
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

    /// The plan of a plain view, from its text.
    fn plan_stored_view(&self, object: &Object) -> Result<Arc<Plan>, Error> {
        debug_assert!(Planning::new(&self.catalog, self.settings.sharing).relation(&object.name).is_some());
        let text = object.query_text.as_deref().unwrap_or_default();
        let query = anabranch_sql::parse::parse_query(text)?;
        Ok(self.plan_view(&query)?.planned.plan)
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

/// The columns of a view: the query's, under the names that the statement gives.
/// Refuses a view in the place of another whose columns it lacks.
fn check_same_columns(old: &Schema, new: &Schema) -> Result<(), Error> {
    let refused = |message: String| Err(Error::invalid(message).with_sqlstate("42P16"));
    for (at, old) in old.fields().iter().enumerate() {
        let Some(new) = new.fields().get(at) else { return refused("cannot drop columns from view".to_owned()) };
        let name = old.name();
        if name != new.name() {
            let message = format!("cannot change name of view column \"{name}\" to \"{}\"", new.name());
            return refused(message).map_err(|error| error.with_hint("DROP the view, and CREATE it anew."));
        }
        let (is, shall) = (column_type_name(old), column_type_name(new));
        // (Whole numbers that are written are wider here than in PostgreSQL.)
        let are_whole = old.data_type().is_integer() && new.data_type().is_integer();
        if is != shall && !are_whole {
            return refused(format!("cannot change data type of view column \"{name}\" from {is} to {shall}"));
        }
    }
    Ok(())
}

fn view_schema(kind: ObjectKind, create: &CreateView, given: &SchemaRef) -> Result<SchemaRef, Error> {
    let n_columns = given.fields().len();
    if create.column_names.len() > n_columns {
        return Err(Error::invalid(format!(
            "{} \"{}\" names {} columns, but its query has {n_columns}",
            kind_name(kind),
            create.name,
            create.column_names.len()
        )));
    }
    let field = |(idx, field): (usize, &Arc<Field>)| match create.column_names.get(idx) {
        Some(name) => field.as_ref().clone().with_name(name),
        None => field.as_ref().clone(),
    };
    let fields: Vec<Field> = given.fields().iter().enumerate().map(field).collect();
    // Checked for names and types; the types stay as the plan computes them.
    planned_schema(kind_name(kind), &create.name, &fields)?;
    Ok(Arc::new(Schema::new(fields)))
}

/// Output columns that make up the group of the topmost aggregation, when all of them are visible.
fn group_columns(plan: &Plan) -> Option<Vec<usize>> {
    match &plan.node {
        Node::Aggregate { keys, .. } => (!keys.is_empty()).then(|| (0..keys.len()).collect()),
        Node::Stage { input, project, .. } => {
            let below = group_columns(input)?;
            let place = |column: &usize| {
                project.iter().position(|expr| match expr {
                    Expr::Column(name) => input.schema.index_of_column(name).ok() == Some(*column),
                    _ => false,
                })
            };
            below.iter().map(place).collect()
        }
        _ => None,
    }
}

/// What the options of a source ask for.
struct AskedSource {
    connector: String,
    /// `None` when not said.
    retain: Option<Retain>,
    /// Rows a second; `None` is as fast as possible.
    rate: Option<f64>,
    spec: SourceSpec,
}

fn asked_source(create: &CreateSource) -> Result<AskedSource, Error> {
    let mut options: BTreeMap<String, String> = create.options.iter().cloned().collect();
    let retain = take_retain(&mut options)?;
    let rate = options.remove("rate").map(|rate| parse_rate(&rate)).transpose()?.flatten();
    let connector = options.remove("connector").ok_or_else(|| {
        Error::invalid(format!("source \"{}\" names no connector", create.name))
            .with_hint("Add connector = 'file' to WITH (..).")
    })?;
    let spec = SourceSpec { name: create.name.clone(), columns: create.columns.clone(), options };
    Ok(AskedSource { connector, retain, rate, spec })
}

/// Takes `retain` out of the options.
fn take_retain(options: &mut BTreeMap<String, String>) -> Result<Option<Retain>, Error> {
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

/// What to know of the columns of a text that were found to be numbers with a point.
fn told_floats(spec: &SourceSpec, fields: &[Field]) -> Option<String> {
    let option = |name: &str| spec.options.get(name).map(|value| value.to_lowercase()).unwrap_or_default();
    let (format, path) = (option("format"), option("path"));
    let is_text = match format.is_empty() {
        true => [".csv", ".tsv", ".tbl"].iter().any(|ending| path.contains(ending)),
        false => format == "csv" || format == "tbl",
    };
    let floats = fields.iter().filter(|field| field.data_type().is_floating());
    let names: Vec<String> = floats.map(|field| format!("\"{}\"", field.name())).collect();
    let (is, one) = if names.len() == 1 { ("is", "the column") } else { ("are", "the columns") };
    (is_text && !names.is_empty()).then(|| {
        format!(
            "{} {is} read as double precision; for exact sums declare {one}: CREATE SOURCE {} ({} numeric, ..) WITH (..).",
            names.join(", "),
            spec.name,
            names[0],
        )
    })
}

fn watermark(
    declared: Option<&anabranch_sql::statement::Watermark>,
    schema: &SchemaRef,
) -> Result<Option<Watermark>, Error> {
    declared.map(|declared| Watermark::new(declared, schema)).transpose()
}
