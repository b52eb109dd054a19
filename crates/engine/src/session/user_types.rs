//! CREATE DOMAIN, CREATE TYPE .. AS ENUM, ALTER TYPE .. ADD VALUE, DROP.
//!
//! Law: a type that a column, a view or another type names stays. What a type checks is a part of
//! the rules of each table with a column of it; a label that is added is added there, too.

use std::collections::BTreeSet;

use anabranch_sql::statement::{AddLabel, CreateTable, CreateType, Statement, TypeDefinition};
use anabranch_sql::type_marks::{EnumMark, type_within};
use anabranch_sql::user_types::{field_of, resolve};
use arrow::datatypes::{Field, Schema, SchemaRef};

use super::durable::DEFINITION;
use super::outcome::Outcome;
use super::sealed::SealedFact;
use super::state::Session;
use crate::catalog::{Object, TableRules};
use crate::error::Error;

impl Session {
    /// `CREATE DOMAIN` and `CREATE TYPE`.
    pub(super) fn create_type(&mut self, create: &CreateType) -> Result<Outcome, Error> {
        let tag = match &create.definition {
            TypeDefinition::Enum(_) => "CREATE TYPE",
            TypeDefinition::Domain(_) => "CREATE DOMAIN",
        };
        if self.catalog.types().contains_key(&create.name) {
            return Err(Error::invalid(format!("type \"{}\" already exists", create.name)).with_sqlstate("42710"));
        }
        self.check_type(create)?;
        self.catalog.add_type(create.clone(), create.definition());
        Ok(Outcome::done(tag))
    }

    /// Refuses a domain whose default or conditions cannot be.
    fn check_type(&mut self, create: &CreateType) -> Result<(), Error> {
        let find = |name: &str| self.catalog.types().get(name).map(|known| known.made.clone());
        let field = field_of("value", create, &find)?;
        let TypeDefinition::Domain(domain) = &create.definition else { return Ok(()) };
        let base = anabranch_sql::column_type_name(&field.clone().with_metadata(Default::default()));
        for (_, expr) in domain.named_checks(&create.name) {
            if anabranch_sql::table::has_query(&expr) {
                return Err(Error::invalid("cannot use subquery in check constraint").with_sqlstate("0A000"));
            }
            let text = format!("SELECT ({expr}) FROM (SELECT CAST(NULL AS {base})) AS __domain(value)");
            let query = anabranch_sql::parse::parse_query(&text)?;
            self.plan_constant(&query).map_err(|mut error| {
                error = error.without_place();
                error.detail.get_or_insert(format!("This is in a check of domain \"{}\".", create.name));
                error
            })?;
        }
        Ok(())
    }

    /// The table with the types that are meant by names of users' types.
    pub(super) fn with_types(&self, create: &CreateTable) -> Result<Option<CreateTable>, Error> {
        Ok(resolve(create, &|name| self.catalog.types().get(name).map(|known| known.made.clone()))?)
    }

    /// `ALTER TYPE .. ADD VALUE`.
    pub(super) fn add_label(&mut self, add: &AddLabel) -> Result<Outcome, Error> {
        let Some(known) = self.catalog.types().get(&add.name).cloned() else { return Err(unknown_type(&add.name)) };
        let mut made = known.made;
        if let (true, TypeDefinition::Enum(labels)) = (add.is_lenient, &made.definition)
            && labels.contains(&add.label)
        {
            let notice = format!("enum label \"{}\" already exists; nothing was done.", add.label);
            return Ok(Outcome::done_with("ALTER TYPE", notice));
        }
        made.add_label(&add.label, add.beside.as_ref().map(|(is_before, other)| (*is_before, other.as_str())))?;
        let TypeDefinition::Enum(labels) = &made.definition else { return Err(unknown_type(&add.name)) };
        let mark = EnumMark::new(&made.name, labels);
        self.check_no_order(&made.name)?;
        let (definition, id) = (made.definition(), known.id);
        let fact = SealedFact { object: id, name: DEFINITION, value: definition.clone().into_bytes() };
        self.record_definition(vec![], vec![], vec![fact])?;
        self.catalog.add_type(made.clone(), definition);
        // Columns have the labels, and tables check them.
        let names: Vec<String> = self.catalog.objects().map(|object| object.name.clone()).collect();
        for name in names {
            let Some(object) = self.catalog.find_mut(&name) else { continue };
            let Some(schema) = with_labels(&object.schema, &mark) else { continue };
            object.schema = schema;
            let mut declared = object.rules.declared.clone();
            let own = declared
                .checks
                .iter_mut()
                .filter(|check| check.of_type.as_ref().is_some_and(|(of, _)| of.name == made.name));
            own.for_each(|check| check.add_label(&made, &add.label));
            let counters = object.rules.counters.clone();
            object.rules = TableRules { counters, ..TableRules::new(declared) };
            object.fitting = None;
            if self.catalog.table(&name).is_ok() {
                self.plan_rules(&name)?;
            }
        }
        Ok(Outcome::done("ALTER TYPE"))
    }

    /// Refuses where a materialized view goes by the order of the labels, which its plan has as it
    /// was.
    fn check_no_order(&self, name: &str) -> Result<(), Error> {
        let of_type = |object: &&Object| object.schema.fields().iter().any(|field| type_within(field) == Some(name));
        let tables = self.catalog.objects().filter(of_type).map(|object| object.name.clone());
        let readers: BTreeSet<String> = tables.flat_map(|table| self.catalog.dependents(&table)).collect();
        let Some(known) = self.catalog.types().get(name) else { return Ok(()) };
        let TypeDefinition::Enum(labels) = &known.made.definition else { return Ok(()) };
        let labels = EnumMark::new(name, labels).labels;
        for view in readers.iter().filter_map(|reader| self.catalog.find(reader)) {
            let statement = anabranch_sql::parse(&view.definition)?.into_iter().next().map(|parsed| parsed.statement);
            let Some(Statement::CreateView(create)) = statement.filter(|_| view.maintained.is_some()) else { continue };
            // (A plan that is written out shows all of its expressions. A text that is the labels
            // by chance is refused as well, and no order is overlooked.)
            let plan = format!("{:?}", self.plan_created(&create)?.planned.plan);
            if plan.contains(&labels) || plan.contains(&labels.escape_debug().to_string()) {
                return Err(Error::invalid(format!("type \"{name}\" cannot get labels because others depend on it"))
                    .with_sqlstate("2BP01")
                    .with_detail(format!("Materialized view \"{}\" goes by the order of its labels.", view.name))
                    .with_hint("DROP the view, add the label, and CREATE the view anew."));
            }
        }
        Ok(())
    }

    /// `DROP TYPE` and `DROP DOMAIN`.
    pub(super) fn drop_types(
        &mut self,
        names: &[String],
        is_domain: bool,
        if_exists: bool,
        cascade: bool,
    ) -> Result<Outcome, Error> {
        let tag = if is_domain { "DROP DOMAIN" } else { "DROP TYPE" };
        let (mut missing, mut ids) = (Vec::new(), Vec::new());
        for name in names {
            let Some(known) = self.catalog.types().get(name) else {
                match if_exists {
                    true => missing.push(format!("\"{name}\"")),
                    false => return Err(unknown_type(name)),
                }
                continue;
            };
            if is_domain && matches!(known.made.definition, TypeDefinition::Enum(_)) {
                return Err(Error::invalid(format!("\"{name}\" is not a domain")).with_sqlstate("42809"));
            }
            let used = self.users_of(name, names);
            if let Some(first) = used.first() {
                let hint = match cascade {
                    true => "CASCADE of types is not supported: ALTER TABLE .. DROP COLUMN, or DROP VIEW, first.",
                    false => "Drop those first.",
                };
                return Err(Error::invalid(format!("cannot drop type {name} because other objects depend on it"))
                    .with_sqlstate("2BP01")
                    .with_detail(format!("{first} depends on type {name}."))
                    .with_hint(hint));
            }
            ids.push(known.id);
        }
        self.record_removal(ids)?;
        names.iter().for_each(|name| self.catalog.remove_type(name));
        Ok(match missing.is_empty() {
            true => Outcome::done(tag),
            false => Outcome::done_with(tag, format!("{} did not exist.", missing.join(", "))),
        })
    }

    /// What names a type, apart from what goes with it.
    fn users_of(&self, name: &str, going: &[String]) -> Vec<String> {
        let mut used = Vec::new();
        for object in self.catalog.objects() {
            let checks = object.rules.declared.checks.iter().filter_map(|check| check.of_type.as_ref());
            let of_checks = checks.filter(|(of, _)| of.name == name).map(|(_, column)| column.clone());
            let of_fields = object.schema.fields().iter().filter(|field| type_within(field) == Some(name));
            let mut columns: Vec<String> = of_fields.map(|field| field.name().clone()).chain(of_checks).collect();
            columns.sort();
            columns.dedup();
            let kind = crate::catalog::kind_name(object.kind);
            used.extend(columns.iter().map(|column| format!("Column {column} of {kind} {}", object.name)));
            if object.query_text.as_ref().is_some_and(|text| names_word(text, name)) {
                used.push(format!("{kind} {}", object.name));
            }
        }
        for (other, known) in self.catalog.types().iter().filter(|(other, _)| !going.contains(other)) {
            if let TypeDefinition::Domain(domain) = &known.made.definition
                && domain.base.to_string().trim_matches('"') == name
            {
                used.push(format!("Type {other}"));
            }
        }
        used
    }
}

/// The columns with the labels of a type, if a column is of it.
fn with_labels(schema: &SchemaRef, mark: &EnumMark) -> Option<SchemaRef> {
    let is_of = |field: &Field| EnumMark::of_elements(field).is_some_and(|known| known.name == mark.name);
    if !schema.fields().iter().any(|field| is_of(field)) {
        return None;
    }
    let fields = schema.fields().iter().map(|field| match is_of(field) {
        true => mark.declare(field.as_ref().clone()),
        false => field.as_ref().clone(),
    });
    Some(std::sync::Arc::new(Schema::new(fields.collect::<Vec<_>>())))
}

/// Whether a word stands in a text.
fn names_word(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    text.split(|c| !is_part(c)).any(|found| found.eq_ignore_ascii_case(word))
}

fn unknown_type(name: &str) -> Error {
    Error::invalid(format!("type \"{name}\" does not exist")).with_sqlstate("42704")
}
