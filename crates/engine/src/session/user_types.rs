//! CREATE DOMAIN, CREATE TYPE .. AS ENUM, DROP. (ALTER TYPE is in [`labels`](super::labels).)
//!
//! Law: a type that a column, a view or another type names stays. What a type checks is a part of
//! the rules of each table with a column of it.

use anabranch_sql::statement::{CreateTable, CreateType, TypeDefinition};
use anabranch_sql::type_marks::type_within;
use anabranch_sql::user_types::{field_of, resolve};

use super::outcome::Outcome;
use super::state::Session;
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

/// Whether a word stands in a text.
pub(super) fn names_word(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    text.split(|c| !is_part(c)).any(|found| found.eq_ignore_ascii_case(word))
}

pub(super) fn unknown_type(name: &str) -> Error {
    Error::invalid(format!("type \"{name}\" does not exist")).with_sqlstate("42704")
}
