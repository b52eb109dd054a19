//! CREATE VIEW and CREATE MATERIALIZED VIEW.
//!
//! Law: as in [`create`](super::create).

use std::sync::Arc;

use anabranch_plan::{Node, Plan};
use anabranch_sql::catalog::Catalog as _;
use anabranch_sql::column_type_name;
use anabranch_sql::statement::{CreateView, LifetimeClause, ObjectKind};
use arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion_expr::Expr;

use super::context::Named;
use super::outcome::Outcome;
use super::state::Session;
use crate::catalog::{Created, Object, Planning, is_temporary, kind_name};
use crate::coerce::planned_schema;
use crate::error::Error;

impl Session {
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

    /// The plan of a plain view, from its text.
    pub(super) fn plan_stored_view(&self, object: &Object) -> Result<Arc<Plan>, Error> {
        debug_assert!(Planning::new(&self.catalog, self.settings.sharing).relation(&object.name).is_some());
        let text = object.query_text.as_deref().unwrap_or_default();
        let query = anabranch_sql::parse::parse_query(text)?;
        Ok(self.plan_view(&query)?.planned.plan)
    }
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
