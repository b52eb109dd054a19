//! What system relations and functions tell of: the catalog at one time, under PostgreSQL's
//! numbers.

use std::collections::BTreeMap;

use anabranch_batch::TimePrecision;
use anabranch_sql::index_parts::IndexPart;
use anabranch_sql::pg_types::PgType;
use anabranch_sql::references::{ForeignKey, OnDelete};
use anabranch_sql::statement::{CreateType, Made, Numbering, NumberingForm, ObjectKind};
use arrow::datatypes::{Field, SchemaRef};

use super::lists::format_type;
use crate::catalog::created::ObjectId;
use crate::catalog::object::{Index, IndexForm, Object};
use crate::catalog::rules::number_max;
use crate::catalog::schemas::{Schema, UserType, schema_of};
use crate::catalog::sequence::{CounterPlace, Sequence, sequence_of_column};

/// The first number of objects that users make.
const FIRST: u32 = 16_384;
/// Numbers of one object: itself, the index of its key, that key's constraint.
const NUMBERS_EACH: u32 = 4;
/// Defaults of columns are counted from here.
const FIRST_DEFAULT: u32 = 1 << 30;
/// Counters of columns are counted from here and their defaults' numbers.
const FIRST_SEQUENCE: u32 = 1 << 30;
/// Columns of one relation, at most, as far as numbers of defaults go.
pub(super) const COLUMNS_MAX: u32 = 2_048;

/// The namespace of users' objects.
pub(super) const PUBLIC: u32 = 2_200;
/// The namespace of system relations.
pub(super) const PG_CATALOG: u32 = 11;
/// The namespace of the standard's system relations.
pub(super) const INFORMATION_SCHEMA: u32 = 13_000;
/// The one who owns all.
pub(super) const OWNER: u32 = 10;

/// The catalog at one time.
#[derive(Debug, Default)]
pub(crate) struct Snapshot {
    pub(super) relations: Vec<DescribedRelation>,
    pub(super) indexes: Vec<DescribedIndex>,
    /// Schemas of users: numbers and names.
    pub(super) schemas: Vec<(u32, String)>,
    pub(super) sequences: Vec<DescribedSequence>,
    /// Types of users: numbers and what they are.
    pub(super) types: Vec<(u32, CreateType)>,
    /// Users that have logged in.
    pub(super) users: Vec<String>,
}

/// A sequence, or the counter of a column.
#[derive(Debug)]
pub(super) struct DescribedSequence {
    pub oid: u32,
    /// Its name within its schema.
    pub name: String,
    /// The number and the name of its schema.
    pub space: (u32, String),
    pub place: CounterPlace,
}

impl DescribedSequence {
    /// What the catalog calls it.
    pub fn full_name(&self) -> String {
        full_name(&self.space, &self.name)
    }
}

fn full_name(space: &(u32, String), name: &str) -> String {
    if space.0 == PUBLIC { name.to_owned() } else { format!("{}.{name}", space.1) }
}

/// A relation.
#[derive(Debug)]
pub(super) struct DescribedRelation {
    pub oid: u32,
    /// Its name within its schema.
    pub name: String,
    /// The number and the name of its schema.
    pub space: (u32, String),
    /// `relkind`: `r`, `v` or `m`.
    pub kind: char,
    pub schema: SchemaRef,
    pub primary_key: Vec<usize>,
    /// Texts of defaults.
    pub defaults: Vec<Option<String>>,
    /// The query of a view.
    pub query: Option<String>,
    /// Where the values of columns come from.
    pub made: Vec<Made>,
    /// CHECKs: names, conditions, and the columns that these name.
    pub checks: Vec<(String, String, Vec<usize>)>,
    pub references: Vec<DescribedReference>,
}

/// A foreign key.
#[derive(Debug)]
pub(super) struct DescribedReference {
    pub oid: u32,
    pub name: String,
    /// Places of the columns that refer.
    pub key: Vec<usize>,
    /// The relation referred to: its place in the snapshot.
    pub parent: usize,
    /// Places of its columns.
    pub to: Vec<usize>,
    pub on_delete: OnDelete,
    pub on_update: OnDelete,
    /// As PostgreSQL shows it.
    pub definition: String,
}

impl DescribedRelation {
    /// What the catalog calls it.
    pub fn full_name(&self) -> String {
        full_name(&self.space, &self.name)
    }

    /// How a column numbers rows, if it does.
    pub fn numbering(&self, column: usize) -> Option<Numbering> {
        match self.made.get(column) {
            Some(Made::Numbered(numbering)) => Some(*numbering),
            _ => None,
        }
    }

    /// How a column is an identity: `a`, `d`, or nothing.
    pub fn identity(&self, column: usize) -> &'static str {
        match self.numbering(column).map(|numbering| numbering.form) {
            Some(NumberingForm::Always) => "a",
            Some(NumberingForm::ByDefault) => "d",
            _ => "",
        }
    }

    /// Whether a column of a table is declared NOT NULL. Columns of views are not.
    pub fn forbids_null(&self, column: usize) -> bool {
        self.kind == 'r' && (!self.schema.field(column).is_nullable() || self.primary_key.contains(&column))
    }

    /// Whether a column is computed of others.
    pub fn is_computed(&self, column: usize) -> bool {
        matches!(self.made.get(column), Some(Made::Computed(_)))
    }

    /// The text of what fills a column that is not given: PostgreSQL keeps it with the defaults.
    pub fn filling(&self, column: usize) -> Option<String> {
        match self.made.get(column) {
            Some(Made::Computed(expr)) => Some(format!("({expr})")),
            Some(Made::Numbered(Numbering { form: NumberingForm::Serial, .. })) => {
                let sequence = sequence_of_column(&self.full_name(), self.schema.field(column).name());
                Some(format!("nextval('{sequence}'::regclass)"))
            }
            Some(Made::Numbered(_)) => None,
            _ => self.defaults.get(column).cloned().flatten(),
        }
    }
}

/// An index, or the key of a table.
#[derive(Debug)]
pub(super) struct DescribedIndex {
    pub oid: u32,
    pub name: String,
    /// The relation's place in the snapshot.
    pub relation: usize,
    pub key: Vec<usize>,
    /// Columns and expressions, where one is an expression.
    pub parts: Vec<IndexPart>,
    /// The constraint of a key.
    pub constraint: Option<u32>,
    pub is_primary: bool,
    pub is_unique: bool,
}

fn number(id: ObjectId) -> u32 {
    FIRST.wrapping_add((id.0 as u32).wrapping_mul(NUMBERS_EACH))
}

impl Snapshot {
    pub(crate) fn of<'a>(
        objects: impl Iterator<Item = &'a Object>,
        named: impl Iterator<Item = &'a Index>,
        schemas: &BTreeMap<String, Schema>,
        sequences: &BTreeMap<String, Sequence>,
    ) -> Snapshot {
        let schemas: Vec<(u32, String)> =
            schemas.iter().map(|(name, schema)| (number(schema.id), name.clone())).collect();
        let objects: Vec<&Object> = objects.collect();
        let mut relations: Vec<DescribedRelation> = objects.iter().map(|object| described(object, &schemas)).collect();
        for (place, object) in objects.iter().enumerate() {
            let references = described_references(object, place, &relations);
            relations[place].references = references;
        }
        let place = |name: &str| relations.iter().position(|relation| relation.full_name() == name);
        let keys = relations.iter().enumerate().filter(|(_, relation)| !relation.primary_key.is_empty());
        let key = |(place, relation): (usize, &DescribedRelation)| DescribedIndex {
            oid: relation.oid + 1,
            name: format!("{}_pkey", relation.name),
            relation: place,
            key: relation.primary_key.clone(),
            parts: vec![],
            constraint: Some(relation.oid + 2),
            is_primary: true,
            is_unique: true,
        };
        let of_index = |index: &Index| {
            let relation = place(&index.relation)?;
            let name = own_name(&index.name, relations.get(relation)?.space.0).to_owned();
            let (oid, key) = (number(index.id), index.key.clone());
            let constraint = (index.form() == IndexForm::Constraint).then_some(oid + 1);
            let (parts, is_unique) = (index.parts.clone(), index.is_unique);
            Some(DescribedIndex { oid, name, relation, key, parts, constraint, is_primary: false, is_unique })
        };
        let indexes: Vec<DescribedIndex> = keys.map(key).chain(named.filter_map(of_index)).collect();
        let sequences = described_sequences(sequences, &objects, &relations, &schemas);
        Snapshot { relations, indexes, schemas, sequences, types: vec![], users: vec![] }
    }

    /// The same with types of users.
    pub(crate) fn with_types(self, types: &BTreeMap<String, UserType>) -> Snapshot {
        let types = types.values().map(|known| (number(known.id), known.made.clone())).collect();
        Snapshot { types, ..self }
    }

    /// The same with users.
    pub(crate) fn with_users(self, users: &[String]) -> Snapshot {
        Snapshot { users: users.to_vec(), ..self }
    }

    /// Numbers and names of sequences, those of columns too.
    pub(crate) fn sequence_names(&self) -> impl Iterator<Item = (u32, String)> {
        self.sequences.iter().map(|sequence| (sequence.oid, sequence.full_name()))
    }

    pub(super) fn relation(&self, oid: u32) -> Option<&DescribedRelation> {
        self.relations.iter().find(|relation| relation.oid == oid)
    }

    pub(super) fn index(&self, oid: u32) -> Option<&DescribedIndex> {
        self.indexes.iter().find(|index| index.oid == oid)
    }

    /// The number of a relation or an index.
    pub(super) fn oid_of(&self, name: &str) -> Option<u32> {
        let name = name.strip_prefix("public.").unwrap_or(name);
        let relation = self.relations.iter().find(|relation| relation.full_name() == name);
        let index = || self.indexes.iter().find(|index| index.name == name).map(|index| index.oid);
        let sequence = || self.sequences.iter().find(|sequence| sequence.full_name() == name);
        relation.map(|relation| relation.oid).or_else(index).or_else(|| Some(sequence()?.oid))
    }

    /// The key that a foreign key refers to.
    pub(super) fn key_of(&self, reference: &DescribedReference) -> Option<&DescribedIndex> {
        let is_of = |index: &&DescribedIndex| {
            let is_whole = index.key.len() == reference.to.len();
            let is_unique = index.relation == reference.parent && index.is_unique;
            is_unique && is_whole && index.key.iter().all(|at| reference.to.contains(at))
        };
        self.indexes.iter().find(is_of)
    }

    /// What a type is called in SQL: types of users with their schema, unless that is `public`.
    pub(super) fn type_name(&self, of: u32, modifier: Option<i32>) -> String {
        match self.types.iter().find(|(oid, _)| *oid == of) {
            Some((_, made)) => made.name.split('.').map(quoted).collect::<Vec<_>>().join("."),
            None => format_type(of, modifier),
        }
    }

    /// The name of a relation or an index.
    pub(super) fn name_of(&self, oid: u32) -> Option<&str> {
        let relation = self.relation(oid).map(|relation| relation.name.as_str());
        let sequence = || self.sequences.iter().find(|sequence| sequence.oid == oid);
        let index = || self.index(oid).map(|index| index.name.as_str());
        relation.or_else(index).or_else(|| Some(sequence()?.name.as_str()))
    }

    pub(super) fn columns_of(&self, index: &DescribedIndex) -> impl Iterator<Item = &Field> {
        let schema = &self.relations[index.relation].schema;
        index.key.iter().map(|column| schema.field(*column))
    }

    /// What an index is on, as PostgreSQL shows it.
    pub(super) fn listed(&self, index: &DescribedIndex) -> Vec<String> {
        match index.parts.as_slice() {
            [] => self.columns_of(index).map(|field| quoted(field.name())).collect(),
            parts => parts.iter().map(ToString::to_string).collect(),
        }
    }

    /// Places of the columns that an index is on, from one; zero for an expression.
    pub(super) fn places(&self, index: &DescribedIndex) -> Vec<i64> {
        let schema = &self.relations[index.relation].schema;
        let place = |part: &IndexPart| part.column().and_then(|column| schema.index_of(&column).ok());
        match index.parts.as_slice() {
            [] => index.key.iter().map(|at| *at as i64 + 1).collect(),
            parts => parts.iter().map(|part| place(part).map_or(0, |at| at as i64 + 1)).collect(),
        }
    }

    /// The statement that PostgreSQL would show for an index.
    pub(super) fn index_definition(&self, index: &DescribedIndex) -> String {
        let columns = self.listed(index);
        let unique = if index.is_unique { "UNIQUE " } else { "" };
        let (name, relation) = (quoted(&index.name), quoted(&self.relations[index.relation].name));
        let space = quoted(&self.relations[index.relation].space.1);
        format!("CREATE {unique}INDEX {name} ON {space}.{relation} USING btree ({})", columns.join(", "))
    }

    pub(super) fn constraint_definition(&self, index: &DescribedIndex) -> String {
        let columns: Vec<String> = self.columns_of(index).map(|field| quoted(field.name())).collect();
        let what = if index.is_primary { "PRIMARY KEY" } else { "UNIQUE" };
        format!("{what} ({})", columns.join(", "))
    }
}

/// A name without the schema of its relation.
fn own_name(name: &str, space: u32) -> &str {
    match name.split_once('.') {
        Some((_, own)) if space != PUBLIC => own,
        _ => name,
    }
}

/// The schema of an object.
fn space_of(name: &str, id: ObjectId, schemas: &[(u32, String)]) -> (u32, String) {
    let space = schema_of(name).and_then(|schema| {
        let known = schemas.iter().find(|(_, name)| name == schema).cloned();
        // (A client's own tables are in a schema that has no row.)
        known.or_else(|| schema.starts_with("pg_temp_").then(|| (number(id) + 3, schema.to_owned())))
    });
    space.unwrap_or((PUBLIC, "public".to_owned()))
}

fn described_sequences(
    made: &BTreeMap<String, Sequence>,
    objects: &[&Object],
    relations: &[DescribedRelation],
    schemas: &[(u32, String)],
) -> Vec<DescribedSequence> {
    let of_columns = objects.iter().zip(relations).flat_map(|(object, relation)| {
        object.rules.counters.iter().map(|counted| {
            let field = relation.schema.field(counted.column);
            let mut place = counted.counter.place();
            place.shape.data_type = field.data_type().clone();
            place.shape.max = place.shape.max.min(number_max(field.data_type()));
            DescribedSequence {
                oid: FIRST_SEQUENCE.wrapping_add(default_oid(relation, counted.column)),
                name: sequence_of_column(&relation.name, field.name()),
                space: relation.space.clone(),
                place,
            }
        })
    });
    let made = made.iter().map(|(name, sequence)| {
        let space = space_of(name, sequence.id, schemas);
        let (oid, name) = (number(sequence.id), own_name(name, space.0).to_owned());
        DescribedSequence { oid, name, space, place: sequence.counter.place() }
    });
    of_columns.chain(made).collect()
}

fn described(object: &Object, schemas: &[(u32, String)]) -> DescribedRelation {
    let space = space_of(&object.name, object.id, schemas);
    let columns: Vec<&str> = object.schema.fields().iter().map(|field| field.name().as_str()).collect();
    let checks = object.rules.declared.checks.iter().map(|check| {
        let named = columns.iter().enumerate().filter(|(_, column)| check.names(column));
        (check.name.clone(), check.expr.to_string(), named.map(|(place, _)| place).collect())
    });
    let kind = match object.kind {
        ObjectKind::View => 'v',
        ObjectKind::MaterializedView => 'm',
        _ => 'r',
    };
    let defaults = object.defaults.iter().map(|default| default.as_ref().map(ToString::to_string)).collect();
    DescribedRelation {
        oid: number(object.id),
        name: own_name(&object.name, space.0).to_owned(),
        space,
        made: object.rules.declared.made.clone(),
        checks: checks.collect(),
        references: vec![],
        kind,
        schema: object.schema.clone(),
        primary_key: object.primary_key.clone(),
        defaults,
        query: object.query_text.clone(),
    }
}

/// The foreign keys of the relation at this place. (One whose table is hidden from the client is
/// not shown.)
fn described_references(object: &Object, place: usize, relations: &[DescribedRelation]) -> Vec<DescribedReference> {
    let own = &relations[place];
    let places = |relation: &DescribedRelation, names: &[String]| {
        names.iter().map(|name| relation.schema.index_of(name).ok()).collect::<Option<Vec<usize>>>()
    };
    let of = |(n, declared): (usize, &ForeignKey)| -> Option<DescribedReference> {
        let parent = relations.iter().position(|relation| relation.full_name() == declared.table)?;
        let to = match declared.to.as_slice() {
            [] => relations[parent].primary_key.clone(),
            names => places(&relations[parent], names)?,
        };
        let list = |relation: &DescribedRelation, places: &[usize]| {
            places.iter().map(|at| quoted(relation.schema.field(*at).name())).collect::<Vec<_>>().join(", ")
        };
        let key = places(own, &declared.columns)?;
        let named = &relations[parent];
        let space = if named.space.0 == PUBLIC { String::new() } else { format!("{}.", quoted(&named.space.1)) };
        let action = declared.actions_text();
        let definition = format!(
            "FOREIGN KEY ({}) REFERENCES {space}{}({}){action}",
            list(own, &key),
            quoted(&named.name),
            list(named, &to)
        );
        Some(DescribedReference {
            oid: default_oid(own, COLUMNS_MAX as usize / 4 * 3 + n),
            name: declared.name.clone(),
            key,
            parent,
            to,
            on_delete: declared.on_delete,
            on_update: declared.on_update,
            definition,
        })
    };
    object.rules.declared.references.iter().enumerate().filter_map(of).collect()
}

/// The number of a column's default.
pub(super) fn default_oid(relation: &DescribedRelation, column: usize) -> u32 {
    let place = (relation.oid.wrapping_sub(FIRST) / NUMBERS_EACH).wrapping_mul(COLUMNS_MAX);
    FIRST_DEFAULT.wrapping_add(place).wrapping_add(column as u32)
}

/// A column's type, with the digits of times.
pub(super) fn type_of(field: &Field) -> PgType {
    let of = PgType::of(field);
    match TimePrecision::of(field) {
        Some(TimePrecision(digits)) => PgType { modifier: digits.into(), ..of },
        None => of,
    }
}

/// A name as it is written in SQL.
pub(crate) fn quoted(name: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    let starts_well = name.bytes().next().is_some_and(|byte| is_plain(byte) && !byte.is_ascii_digit());
    match starts_well && name.bytes().all(is_plain) {
        true => name.to_owned(),
        false => format!("\"{}\"", name.replace('"', "\"\"")),
    }
}
