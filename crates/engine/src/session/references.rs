//! Foreign keys as they are declared: the table and the key that each refers to, and what must not
//! go because of them.
//!
//! Law: the key that is referred to is the primary key of a table that keeps its rows, or one of
//! its UNIQUE, as long as the foreign key is there. Rows are looked after in `referred_rows`.

use anabranch_sql::references::{ForeignKey, OnDelete};
use anabranch_sql::statement::{Alter, AlterAction, CreateTable, ObjectKind};
use anabranch_sql::table::{Altered, ToCheck, quoted_path};
use arrow::datatypes::DataType;

use super::index::quoted;
use super::state::Session;
use crate::catalog::{Object, Retain, is_temporary};
use crate::error::Error;

/// A foreign key, as places of columns.
#[derive(Clone, Debug)]
pub(super) struct KeyReference {
    pub(super) name: String,
    /// The table that refers.
    pub(super) child: String,
    /// Its columns, in the order of the key that they refer to.
    pub(super) columns: Vec<usize>,
    /// The table that is referred to.
    pub(super) parent: String,
    /// The columns of one of its keys, in that key's order.
    pub(super) to: Vec<usize>,
    pub(super) on_delete: OnDelete,
    pub(super) on_update: OnDelete,
}

impl Session {
    /// The foreign keys of a table.
    pub(super) fn references_of(&self, object: &Object) -> Result<Vec<KeyReference>, Error> {
        object.rules.declared.references.iter().map(|declared| self.reference(object, declared)).collect()
    }

    /// Foreign keys that refer to a table.
    pub(super) fn references_to(&self, table: &str) -> Result<Vec<KeyReference>, Error> {
        self.referrers(table).map(|(child, declared)| self.reference(child, declared)).collect()
    }

    fn referrers<'a>(&'a self, table: &'a str) -> impl Iterator<Item = (&'a Object, &'a ForeignKey)> {
        let declared = self
            .catalog
            .objects()
            .flat_map(|object| object.rules.declared.references.iter().map(move |declared| (object, declared)));
        declared.filter(move |(_, declared)| declared.table == table)
    }

    /// What a foreign key of a table refers to.
    fn reference(&self, child: &Object, declared: &ForeignKey) -> Result<KeyReference, Error> {
        let parent = match declared.table == child.name {
            true => child,
            false => self.catalog.table(&declared.table)?,
        };
        let cannot = |detail: String| {
            Error::invalid(format!("foreign key constraint \"{}\" cannot be implemented", declared.name))
                .with_detail(detail)
        };
        if parent.kind != ObjectKind::Table || parent.retain != Retain::All {
            let detail = format!("\"{}\" is no table that keeps its rows.", parent.name);
            return Err(cannot(detail).with_sqlstate("42809"));
        }
        if is_temporary(&child.name) != is_temporary(&parent.name) {
            let kind = if is_temporary(&child.name) { "temporary" } else { "permanent" };
            let message = format!("constraints on {kind} tables may reference only {kind} tables");
            return Err(Error::invalid(message).with_sqlstate("42P16"));
        }
        let place = |object: &Object, name: &String| {
            let missing = format!("column \"{name}\" referenced in foreign key constraint does not exist");
            let at = object.schema.index_of(name).map_err(|_| Error::invalid(missing).with_sqlstate("42703"))?;
            Ok::<usize, Error>(at)
        };
        let places = |object: &Object, names: &[String]| {
            names.iter().map(|name| place(object, name)).collect::<Result<Vec<usize>, Error>>()
        };
        let columns = places(child, &declared.columns)?;
        let to = match declared.to.as_slice() {
            [] if parent.primary_key.is_empty() => {
                return Err(Error::invalid(format!(
                    "there is no primary key for referenced table \"{}\"",
                    parent.name
                ))
                .with_sqlstate("42704")
                .with_hint("Name the columns of a UNIQUE: REFERENCES t (a)."));
            }
            [] if parent.primary_key.len() != columns.len() => {
                return Err(Error::invalid("number of referencing and referenced columns for foreign key disagree"));
            }
            [] => parent.primary_key.clone(),
            names => places(parent, names)?,
        };
        let is_of = |key: &Vec<usize>| key.len() == to.len() && key.iter().all(|column| to.contains(column));
        let keys = self.unique_keys(parent);
        let Some(key) = keys.into_iter().map(|key| key.columns).find(is_of) else {
            return Err(Error::invalid(format!(
                "there is no unique constraint matching given keys for referenced table \"{}\"",
                parent.name
            ))
            .with_sqlstate("42830")
            .with_hint(format!(
                "Add one: ALTER TABLE {} ADD UNIQUE ({}).",
                parent.name,
                parent.column_list(&to)
            )));
        };
        for (column, to) in columns.iter().zip(&to) {
            let (column, to) = (child.schema.field(*column), parent.schema.field(*to));
            if !are_alike(column.data_type(), to.data_type()) {
                let name = anabranch_sql::column_type_name;
                let detail = format!(
                    "Key columns \"{}\" and \"{}\" are of incompatible types: {} and {}.",
                    column.name(),
                    to.name(),
                    name(column),
                    name(to)
                );
                return Err(cannot(detail).with_sqlstate("42804"));
            }
        }
        let of_key = |at: &usize| to.iter().position(|to| to == at).map(|place| columns[place]);
        let columns = key.iter().filter_map(of_key).collect();
        let (name, child, parent) = (declared.name.clone(), child.name.clone(), parent.name.clone());
        let (on_delete, on_update) = (declared.on_delete, declared.on_update);
        Ok(KeyReference { name, child, columns, parent, to: key, on_delete, on_update })
    }

    /// Refuses foreign keys of a new table that refer to nothing.
    pub(super) fn check_declared(&self, create: &CreateTable) -> Result<(), Error> {
        if create.rules.references.is_empty() {
            return Ok(());
        }
        self.references_of(self.catalog.table(&create.name)?).map(drop)
    }

    /// Refuses foreign keys that are added to a table, where they refer to nothing, or a row that
    /// is there does.
    pub(super) fn check_added_references(&mut self, object: &Object, altered: &Altered) -> Result<(), Error> {
        for check in &altered.to_check {
            let ToCheck::Reference(declared) = check else { continue };
            let reference = self.reference(object, declared)?;
            let parent = self.catalog.table(&reference.parent)?.clone();
            let own = |at: &usize| quoted(object.schema.field(*at).name());
            let other = |at: &usize| quoted(parent.schema.field(*at).name());
            let pairs = reference.columns.iter().zip(&reference.to);
            let equal: Vec<String> = pairs.map(|(at, to)| format!("c.{} = p.{}", own(at), other(to))).collect();
            let known: Vec<String> = reference.columns.iter().map(|at| format!("c.{} IS NOT NULL", own(at))).collect();
            let columns: Vec<String> = reference.columns.iter().map(|at| format!("c.{}", own(at))).collect();
            let text = format!(
                "SELECT {} FROM {} AS c WHERE {} AND NOT EXISTS (SELECT 1 FROM {} AS p WHERE {}) LIMIT 1",
                columns.join(", "),
                quoted_path(&object.name),
                known.join(" AND "),
                quoted_path(&parent.name),
                equal.join(" AND ")
            );
            let query = anabranch_sql::parse::parse_query(&text)?;
            let planned = self.plan_constant(&query)?.planned;
            if let Some(batch) = self.collect(&planned.plan)?.iter().find(|batch| !batch.is_empty()) {
                return Err(reference.refers_to_nothing(object, batch.columns(), 0));
            }
        }
        Ok(())
    }

    /// Refuses changes of a table that take away what foreign keys of others refer to.
    pub(super) fn check_still_referred(&self, object: &Object, alter: &Alter, altered: &Altered) -> Result<(), Error> {
        let (before, after) = (&object.schema, &altered.table);
        for reference in self.references_to(&object.name)? {
            let mut gone = alter.actions.iter().filter_map(|action| match action {
                AlterAction::RenameColumn { from, .. } => Some(from),
                AlterAction::DropColumn { name, .. } | AlterAction::SetType { column: name, .. } => Some(name),
                _ => None,
            });
            let is_referred = |name: &&String| reference.to.iter().any(|at| before.field(*at).name() == *name);
            let loses_key = reference.to == object.primary_key && after.primary_key.is_empty();
            // (A table that refers to itself drops the constraint in the same statement, or
            // before.)
            let stays = reference.child != object.name
                || after.rules.references.iter().any(|declared| declared.name == reference.name);
            let what = match gone.find(is_referred) {
                Some(name) => format!("column \"{name}\" of table \"{}\"", object.name),
                None if loses_key => format!("the primary key of table \"{}\"", object.name),
                None => continue,
            };
            if stays {
                return Err(reference.stands_on(&what));
            }
        }
        Ok(())
    }

    /// Refuses that a table gets another name, or an index goes, on which a foreign key stands.
    pub(super) fn check_not_referred(&self, table: &str, key: Option<&[usize]>, what: &str) -> Result<(), Error> {
        let is_of = |reference: &&KeyReference| key.is_none_or(|key| reference.to == key);
        match self.references_to(table)?.iter().find(is_of) {
            Some(reference) => Err(reference.stands_on(what)),
            None => Ok(()),
        }
    }

    /// Foreign keys of tables that stay, to tables that go.
    pub(super) fn references_left(&self, going: &[String]) -> Vec<(String, String)> {
        let of_table = |table: &String| {
            let referrers = self.referrers(table).filter(|(child, _)| !going.contains(&child.name));
            referrers.map(|(child, declared)| (child.name.clone(), declared.name.clone())).collect::<Vec<_>>()
        };
        going.iter().flat_map(of_table).collect()
    }
}

impl KeyReference {
    fn stands_on(&self, what: &str) -> Error {
        let KeyReference { name, child, .. } = self;
        Error::invalid(format!("{what} cannot be changed because a foreign key depends on it"))
            .with_sqlstate("2BP01")
            .with_detail(format!("It is constraint \"{name}\" of table \"{child}\"."))
            .with_hint(format!(
                "ALTER TABLE {} DROP CONSTRAINT {} first, and add it anew.",
                quoted_path(child),
                quoted(name)
            ))
    }
}

/// Whether values of the two types can be equal as they are.
fn are_alike(left: &DataType, right: &DataType) -> bool {
    let is_text = |data_type: &DataType| matches!(data_type, DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8);
    left == right || left.is_integer() && right.is_integer() || is_text(left) && is_text(right)
}
