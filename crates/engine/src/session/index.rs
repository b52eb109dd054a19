//! Indexes: arrangements under a name, and UNIQUE, which is an index that is checked.

use anabranch_sql::index_parts::IndexPart;
use anabranch_sql::statement::{CreateIndex, UniqueClause};
use anabranch_sql::table::{own_name, quoted_path};
use arrow::datatypes::Schema;

use super::keys::UniqueKey;
use super::outcome::Outcome;
use super::state::Session;
use crate::catalog::{CONSTRAINT, Index, IndexForm, Object, ObjectId};
use crate::cluster::ArrangementId;
use crate::error::Error;
use crate::nearest::nearest;

impl Session {
    /// An index that is asked for: if it is unique, rows that are there are compared.
    pub(super) fn add_index(&mut self, create: &CreateIndex, text: &str) -> Result<Outcome, Error> {
        if create.is_unique {
            let object = self.catalog.get(&create.relation)?.clone();
            UniqueKey::check_types(&index_columns(&object, &create.columns)?, &object.schema)?;
            let taken = create.name.as_ref().and_then(|name| self.catalog.kind_of(name));
            if taken.is_none() {
                self.check_unique_rows(create)?;
            }
        }
        self.create_index(create, text)
    }

    /// Refuses a unique index that rows which are there break.
    pub(super) fn check_unique_rows(&mut self, create: &CreateIndex) -> Result<(), Error> {
        let object = self.catalog.get(&create.relation)?.clone();
        let name = match &create.name {
            Some(name) => own_name(name).to_owned(),
            None => self.free_name(&object.name, &create.columns, "idx"),
        };
        self.check_unique(&object, &name, &index_columns(&object, &create.columns)?)
    }

    /// The index that keeps the rows of a table distinct.
    pub(super) fn create_unique(&mut self, table: &str, unique: &UniqueClause) -> Result<(), Error> {
        let object = self.catalog.get(table)?.clone();
        let name = match &unique.name {
            None => self.free_name(&object.name, &unique.columns, "key"),
            Some(name) => beside(table, name),
        };
        let listed: Vec<String> = unique.columns.iter().map(|column| quoted(column)).collect();
        let definition = index_definition(&name, table, &listed, IndexForm::Constraint);
        self.add_index(&of_constraint(name, table, unique), &definition).map(drop)
    }

    /// A constraint that was recorded, under its name.
    pub(super) fn restore_unique(&mut self, table: &str, unique: &UniqueClause, text: &str) -> Result<Outcome, Error> {
        let name = unique.name.clone().ok_or_else(|| Error::internal("a recorded constraint has a name"))?;
        self.create_index(&of_constraint(beside(table, &name), table, unique), text)
    }

    /// The index, over rows that obey it.
    pub(super) fn create_index(&mut self, create: &CreateIndex, text: &str) -> Result<Outcome, Error> {
        let object = self.catalog.get(&create.relation)?.clone();
        let key = match create.parts.as_slice() {
            [] => index_columns(&object, &create.columns)?,
            parts => self.columns_of_parts(&object, parts)?,
        };
        let name = match &create.name {
            Some(name) => name.clone(),
            None => self.free_name(&object.name, &names_of(create), "idx"),
        };
        if let Some(outcome) = self.existing("CREATE INDEX", &name, create.if_not_exists)? {
            return Ok(outcome);
        }
        let (arrangement, detail) = match create.parts.is_empty() {
            true => self.arranged_for(&object, &key, &name)?,
            false => (None, Some("It serves no look-ups yet: a generated column with an index does.".to_owned())),
        };
        let relation = create.relation.clone();
        // A name that was chosen is part of the definition: made again, the index shall have it
        // too.
        let definition = match &create.name {
            Some(_) => text.to_string(),
            None => {
                let form = if create.is_unique { IndexForm::Unique } else { IndexForm::Plain };
                index_definition(&name, &relation, &listed(create), form)
            }
        };
        let (is_unique, parts) = (create.is_unique, create.parts.clone());
        let id = ObjectId::default();
        self.catalog.add_index(Index { id, name, relation, key, parts, arrangement, is_unique, definition });
        Ok(match detail {
            Some(detail) => Outcome::done_with("CREATE INDEX", detail),
            None => Outcome::done("CREATE INDEX"),
        })
    }

    /// The arrangement that an index owns, and what is to be said of it.
    fn arranged_for(
        &mut self,
        object: &Object,
        key: &[usize],
        name: &str,
    ) -> Result<(Option<ArrangementId>, Option<String>), Error> {
        let detail = self.arrange(object, key, name)?;
        let object = self.catalog.get(&object.name)?;
        let mut arranged = object.maintained.iter().flat_map(|maintained| &maintained.arrangements);
        let owned = arranged.find(|arranged| arranged.owners.contains(name)).map(|arranged| arranged.arrangement);
        match owned {
            Some(_) => Ok((owned, detail)),
            None => Err(Error::internal(format!("index \"{name}\" has no arrangement"))),
        }
    }

    /// Positions of the columns that the parts of an index name.
    ///
    /// # Errors
    /// For expressions that cannot be computed of a row.
    fn columns_of_parts(&self, object: &Object, parts: &[IndexPart]) -> Result<Vec<usize>, Error> {
        let texts: Vec<String> = parts.iter().map(ToString::to_string).collect();
        self.plan_row("key of an index", &object.name, &texts)?;
        let mut key: Vec<usize> = Vec::new();
        for at in parts.iter().flat_map(IndexPart::columns).filter_map(|name| object.schema.index_of(&name).ok()) {
            if !key.contains(&at) {
                key.push(at);
            }
        }
        Ok(key)
    }

    fn free_name(&self, relation: &str, columns: &[String], what: &str) -> String {
        let base = format!("{relation}_{}_{what}", columns.join("_"));
        let mut names = std::iter::once(base.clone()).chain((1..).map(|i| format!("{base}{i}")));
        names.find(|name| !self.catalog.contains(name)).expect("the names to try are endless")
    }
}

/// The name in the schema of a table.
fn beside(table: &str, name: &str) -> String {
    match table.rsplit_once('.') {
        Some((schema, _)) => format!("{schema}.{name}"),
        None => name.to_owned(),
    }
}

fn of_constraint(name: String, table: &str, unique: &UniqueClause) -> CreateIndex {
    let (relation, columns) = (table.to_owned(), unique.columns.clone());
    CreateIndex { name: Some(name), if_not_exists: false, relation, columns, parts: vec![], is_unique: true }
}

/// What an index is named after.
fn names_of(create: &CreateIndex) -> Vec<String> {
    match create.parts.as_slice() {
        [] => create.columns.clone(),
        parts => parts.iter().map(IndexPart::name).collect(),
    }
}

/// What an index is on, as its definition lists it.
fn listed(create: &CreateIndex) -> Vec<String> {
    match create.parts.as_slice() {
        [] => create.columns.iter().map(|column| quoted(column)).collect(),
        parts => parts.iter().map(ToString::to_string).collect(),
    }
}

/// What an index of a relation with these columns is on.
pub(super) fn listed_anew(index: &Index, schema: &Schema) -> Vec<String> {
    match index.parts.as_slice() {
        [] => index.key.iter().map(|at| quoted(schema.field(*at).name())).collect(),
        parts => parts.iter().map(ToString::to_string).collect(),
    }
}

/// The statement that makes an index.
pub(super) fn index_definition(name: &str, relation: &str, listed: &[String], form: IndexForm) -> String {
    let columns = listed.join(", ");
    let (path, of) = (quoted_path(name), quoted_path(relation));
    match form {
        IndexForm::Plain => format!("CREATE INDEX {path} ON {of} ({columns})"),
        IndexForm::Unique => format!("CREATE UNIQUE INDEX {path} ON {of} ({columns})"),
        // (A constraint is in the schema of its table, which its name does not say.)
        IndexForm::Constraint => {
            let schema = relation.rsplit_once('.').map(|(schema, _)| format!("{schema}."));
            let own = schema.and_then(|schema| name.strip_prefix(&schema)).unwrap_or(name);
            format!("{CONSTRAINT}{of} ADD CONSTRAINT {} UNIQUE ({columns})", quoted(own))
        }
    }
}

/// Positions of the columns, which must differ.
fn index_columns(object: &Object, names: &[String]) -> Result<Vec<usize>, Error> {
    let mut key = Vec::with_capacity(names.len());
    for name in names {
        let position = object.schema.index_of(name).map_err(|_| {
            let error = Error::invalid(format!("column \"{name}\" of relation \"{}\" does not exist", object.name));
            match nearest(name, object.schema.fields().iter().map(|field| field.name().as_str())) {
                Some(near) => error.with_hint(format!("Did you mean \"{near}\"?")),
                None => error,
            }
        })?;
        if key.contains(&position) {
            return Err(Error::invalid(format!("column \"{name}\" appears twice in the index")));
        }
        key.push(position);
    }
    Ok(key)
}

/// A name as SQL reads it, whatever it is.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
