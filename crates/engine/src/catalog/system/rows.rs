//! Rows of `pg_catalog`.

use super::lists::{DATABASE, SETTINGS, type_lines};
use super::roles::{roles, users};
use super::schema::{Row, SystemCell};
use super::snapshot::{
    COLUMNS_MAX, DescribedIndex, DescribedReference, DescribedRelation, DescribedSequence, INFORMATION_SCHEMA, OWNER,
    PG_CATALOG, PUBLIC, Snapshot, default_oid, type_of,
};
use anabranch_sql::references::OnDelete;
use anabranch_sql::sql_name;
use anabranch_sql::statement::{CreateType, TypeDefinition};
use arrow::datatypes::Field;

/// The operator class of all keys: they are ordered.
const ORDERED: i64 = 1_978;
const HEAP: u32 = 2;
const BTREE: u32 = 403;

type Rows = fn(&Snapshot) -> Vec<Row>;

/// Relations that have rows.
const FILLED: &[(&str, Rows)] = &[
    ("pg_am", |_| ams()),
    ("pg_attrdef", attrdefs),
    ("pg_attribute", attributes),
    ("pg_authid", roles),
    ("pg_class", classes),
    ("pg_collation", |_| collations()),
    ("pg_constraint", constraints),
    ("pg_database", |_| databases()),
    ("pg_enum", labels),
    ("pg_index", indexes),
    ("pg_indexes", shown_indexes),
    ("pg_matviews", |snapshot| shown_views(snapshot, 'm')),
    ("pg_namespace", namespaces),
    ("pg_roles", roles),
    ("pg_sequence", sequences),
    ("pg_sequences", shown_sequences),
    ("pg_settings", |_| settings()),
    ("pg_tables", tables),
    ("pg_tablespace", |_| tablespaces()),
    ("pg_type", |snapshot| types().into_iter().chain(user_types(snapshot)).collect()),
    ("pg_user", users),
    ("pg_views", |snapshot| shown_views(snapshot, 'v')),
];

/// Whether the relation has rows.
pub(super) fn has_rows(name: &str) -> bool {
    FILLED.iter().any(|(filled, _)| *filled == name)
}

/// The rows of a relation; `None` for one that has none.
pub(super) fn rows(name: &str, snapshot: &Snapshot) -> Option<Vec<Row>> {
    FILLED.iter().find(|(filled, _)| *filled == name).map(|(_, rows)| rows(snapshot))
}

fn number(text: &str) -> SystemCell {
    text.parse().map_or(SystemCell::Null, SystemCell::Number)
}

fn namespaces(snapshot: &Snapshot) -> Vec<Row> {
    let namespace = |(oid, name): (u32, &str)| -> Row {
        vec![("oid", oid.into()), ("nspname", name.into()), ("nspowner", OWNER.into())]
    };
    let built_in = [(PG_CATALOG, "pg_catalog"), (PUBLIC, "public"), (INFORMATION_SCHEMA, "information_schema")];
    let made = snapshot.schemas.iter().map(|(oid, name)| (*oid, name.as_str()));
    built_in.into_iter().chain(made).map(namespace).collect()
}

fn classes(snapshot: &Snapshot) -> Vec<Row> {
    let is_referred = |place: usize| {
        snapshot.relations.iter().flat_map(|relation| &relation.references).any(|reference| reference.parent == place)
    };
    let relations = snapshot.relations.iter().enumerate().map(|(place, relation)| {
        let has_index = snapshot.indexes.iter().any(|index| snapshot.relations[index.relation].oid == relation.oid);
        let access = if relation.kind == 'v' { 0 } else { HEAP };
        let n_columns = relation.schema.fields().len();
        let mut row = class(relation.oid, &relation.name, relation.kind, access, n_columns, has_index);
        row.push(("relnamespace", relation.space.0.into()));
        row.push(("relchecks", (relation.checks.len() as i32).into()));
        // (PostgreSQL keeps foreign keys by triggers; psql asks for them where there are some.)
        row.push(("relhastriggers", (!relation.references.is_empty() || is_referred(place)).into()));
        row
    });
    let indexes = snapshot.indexes.iter().map(|index| {
        let mut row = class(index.oid, &index.name, 'i', BTREE, snapshot.places(index).len(), false);
        row.push(("relnamespace", snapshot.relations[index.relation].space.0.into()));
        row
    });
    let sequences = snapshot.sequences.iter().map(|sequence| {
        let mut row = class(sequence.oid, &sequence.name, 'S', 0, 3, false);
        row.push(("relnamespace", sequence.space.0.into()));
        row
    });
    relations.chain(indexes).chain(sequences).collect()
}

fn sequences(snapshot: &Snapshot) -> Vec<Row> {
    let row = |sequence: &DescribedSequence| -> Row {
        let shape = &sequence.place.shape;
        vec![
            ("seqrelid", sequence.oid.into()),
            ("seqtypid", type_of(&Field::new("", shape.data_type.clone(), false)).oid.into()),
            ("seqstart", SystemCell::Number(shape.start)),
            ("seqincrement", SystemCell::Number(shape.step)),
            ("seqmax", SystemCell::Number(shape.max)),
            ("seqmin", SystemCell::Number(shape.min)),
            ("seqcache", SystemCell::Number(1)),
            ("seqcycle", shape.cycles.into()),
        ]
    };
    snapshot.sequences.iter().map(row).collect()
}

fn shown_sequences(snapshot: &Snapshot) -> Vec<Row> {
    let row = |sequence: &DescribedSequence| -> Row {
        let shape = &sequence.place.shape;
        vec![
            ("schemaname", sequence.space.1.as_str().into()),
            ("sequencename", sequence.name.as_str().into()),
            ("sequenceowner", DATABASE.into()),
            ("data_type", sql_name(&shape.data_type).into()),
            ("start_value", SystemCell::Number(shape.start)),
            ("min_value", SystemCell::Number(shape.min)),
            ("max_value", SystemCell::Number(shape.max)),
            ("increment_by", SystemCell::Number(shape.step)),
            ("cycle", shape.cycles.into()),
            ("cache_size", SystemCell::Number(1)),
            (
                "last_value",
                if sequence.place.is_called { SystemCell::Number(sequence.place.last) } else { SystemCell::Null },
            ),
        ]
    };
    snapshot.sequences.iter().map(row).collect()
}

fn class(oid: u32, name: &str, kind: char, access: u32, n_columns: usize, has_index: bool) -> Row {
    vec![
        ("oid", oid.into()),
        ("relname", name.into()),
        ("relowner", OWNER.into()),
        ("relam", access.into()),
        ("relfilenode", oid.into()),
        ("reltuples", (-1).into()),
        ("relhasindex", has_index.into()),
        ("relpersistence", "p".into()),
        ("relkind", kind.to_string().into()),
        ("relnatts", (n_columns as i32).into()),
        ("relhasrules", (kind == 'v' || kind == 'm').into()),
        ("relispopulated", true.into()),
        ("relreplident", if kind == 'i' { "n" } else { "d" }.into()),
    ]
}

fn attributes(snapshot: &Snapshot) -> Vec<Row> {
    let mut rows = Vec::new();
    for relation in &snapshot.relations {
        for (n, field) in relation.schema.fields().iter().enumerate() {
            let mut row = attribute(relation.oid, n, field);
            row.push(("attnotnull", relation.forbids_null(n).into()));
            row.push(("atthasdef", relation.filling(n).is_some().into()));
            row.push(("attidentity", relation.identity(n).into()));
            row.push(("attgenerated", if relation.is_computed(n) { "s" } else { "" }.into()));
            rows.push(row);
        }
    }
    for index in &snapshot.indexes {
        rows.extend(snapshot.columns_of(index).enumerate().map(|(n, field)| attribute(index.oid, n, field)));
    }
    rows
}

fn attribute(relation: u32, n: usize, field: &Field) -> Row {
    let of = type_of(field);
    let line = type_lines().find(|line| line[0] == of.oid.to_string());
    vec![
        ("attrelid", relation.into()),
        ("attname", field.name().as_str().into()),
        ("atttypid", of.oid.into()),
        ("attlen", SystemCell::Number(of.size.into())),
        ("attnum", (n as i32 + 1).into()),
        ("attcacheoff", (-1).into()),
        ("atttypmod", of.modifier.into()),
        ("attbyval", line.as_ref().is_some_and(|line| line[3] == "t").into()),
        ("attalign", "i".into()),
        ("attstorage", "p".into()),
        ("attcollation", line.map_or(SystemCell::Number(0), |line| number(line[10]))),
        ("attstattarget", (-1).into()),
        ("attislocal", true.into()),
    ]
}

fn attrdefs(snapshot: &Snapshot) -> Vec<Row> {
    let of = |relation: &DescribedRelation| -> Vec<Row> {
        let row = |n: usize| -> Option<Row> {
            Some(vec![
                ("oid", default_oid(relation, n).into()),
                ("adrelid", relation.oid.into()),
                ("adnum", (n as i32 + 1).into()),
                ("adbin", relation.filling(n)?.into()),
            ])
        };
        (0..relation.schema.fields().len()).filter_map(row).collect()
    };
    snapshot.relations.iter().flat_map(of).collect()
}

fn indexes(snapshot: &Snapshot) -> Vec<Row> {
    let row = |index: &DescribedIndex| -> Row {
        let places = snapshot.places(index);
        let n_columns = places.len();
        let each = |value: i64| SystemCell::Numbers(vec![value; n_columns]);
        vec![
            ("indexrelid", index.oid.into()),
            ("indrelid", snapshot.relations[index.relation].oid.into()),
            ("indnatts", (n_columns as i32).into()),
            ("indnkeyatts", (n_columns as i32).into()),
            ("indisunique", index.is_unique.into()),
            ("indisprimary", index.is_primary.into()),
            ("indimmediate", true.into()),
            ("indisvalid", true.into()),
            ("indisready", true.into()),
            ("indislive", true.into()),
            ("indkey", SystemCell::Numbers(places)),
            ("indcollation", each(0)),
            ("indclass", each(ORDERED)),
            ("indoption", each(0)),
        ]
    };
    snapshot.indexes.iter().map(row).collect()
}

fn constraints(snapshot: &Snapshot) -> Vec<Row> {
    let row = |index: &DescribedIndex| -> Option<Row> {
        Some(vec![
            ("oid", index.constraint?.into()),
            ("conname", index.name.as_str().into()),
            ("connamespace", snapshot.relations[index.relation].space.0.into()),
            ("contype", if index.is_primary { "p" } else { "u" }.into()),
            ("convalidated", true.into()),
            ("conrelid", snapshot.relations[index.relation].oid.into()),
            ("conindid", index.oid.into()),
            ("confupdtype", " ".into()),
            ("confdeltype", " ".into()),
            ("confmatchtype", " ".into()),
            ("conislocal", true.into()),
            ("connoinherit", true.into()),
            ("conkey", SystemCell::Numbers(snapshot.places(index))),
        ])
    };
    let keys = snapshot.indexes.iter().filter_map(row);
    let checks = snapshot.relations.iter().flat_map(checks);
    let references = snapshot.relations.iter().flat_map(|relation| references(snapshot, relation));
    keys.chain(checks).chain(references).collect()
}

/// The number of a CHECK.
pub(super) fn check_oid(relation: &DescribedRelation, n: usize) -> u32 {
    default_oid(relation, COLUMNS_MAX as usize / 2 + n)
}

fn checks(relation: &DescribedRelation) -> Vec<Row> {
    let row = |(n, (name, _, columns)): (usize, &(String, String, Vec<usize>))| -> Row {
        vec![
            ("oid", check_oid(relation, n).into()),
            ("conname", name.as_str().into()),
            ("connamespace", relation.space.0.into()),
            ("contype", "c".into()),
            ("convalidated", true.into()),
            ("conrelid", relation.oid.into()),
            ("confupdtype", " ".into()),
            ("confdeltype", " ".into()),
            ("confmatchtype", " ".into()),
            ("conislocal", true.into()),
            ("conkey", SystemCell::Numbers(columns.iter().map(|column| *column as i64 + 1).collect())),
        ]
    };
    relation.checks.iter().enumerate().map(row).collect()
}

fn references(snapshot: &Snapshot, relation: &DescribedRelation) -> Vec<Row> {
    let numbers = |places: &[usize]| SystemCell::Numbers(places.iter().map(|column| *column as i64 + 1).collect());
    let row = |reference: &DescribedReference| -> Row {
        let parent = &snapshot.relations[reference.parent];
        vec![
            ("oid", reference.oid.into()),
            ("conname", reference.name.as_str().into()),
            ("connamespace", relation.space.0.into()),
            ("contype", "f".into()),
            ("convalidated", true.into()),
            ("conrelid", relation.oid.into()),
            ("confrelid", parent.oid.into()),
            ("conindid", snapshot.key_of(reference).map_or(0, |index| index.oid).into()),
            ("confupdtype", action(reference.on_update).into()),
            ("confdeltype", action(reference.on_delete).into()),
            ("confmatchtype", "s".into()),
            ("conislocal", true.into()),
            ("connoinherit", true.into()),
            ("conkey", numbers(&reference.key)),
            ("confkey", numbers(&reference.to)),
        ]
    };
    relation.references.iter().map(row).collect()
}

/// `confdeltype`.
fn action(on_delete: OnDelete) -> &'static str {
    match on_delete {
        OnDelete::Refuse => "a",
        OnDelete::Cascade => "c",
        OnDelete::SetNull => "n",
    }
}

/// Types that users have made.
fn user_types(snapshot: &Snapshot) -> Vec<Row> {
    let row = |(oid, made): &(u32, CreateType)| -> Row {
        let base = match &made.definition {
            TypeDefinition::Enum(_) => None,
            TypeDefinition::Domain(domain) => anabranch_sql::arrow_type(&domain.base).ok(),
        };
        let base = base.map(|base| type_of(&Field::new("", base, true)).oid);
        let is_enum = matches!(made.definition, TypeDefinition::Enum(_));
        let is_not_null = matches!(&made.definition, TypeDefinition::Domain(domain) if domain.is_not_null);
        vec![
            ("oid", (*oid).into()),
            ("typname", made.name.as_str().into()),
            ("typnamespace", PUBLIC.into()),
            ("typowner", OWNER.into()),
            ("typlen", if is_enum { 4 } else { -1 }.into()),
            ("typbyval", is_enum.into()),
            ("typtype", if is_enum { "e" } else { "d" }.into()),
            ("typcategory", if is_enum { "E" } else { "S" }.into()),
            ("typispreferred", false.into()),
            ("typisdefined", true.into()),
            ("typdelim", ",".into()),
            ("typelem", 0.into()),
            ("typarray", 0.into()),
            ("typinput", if is_enum { "enum_in" } else { "domain_in" }.into()),
            ("typoutput", if is_enum { "enum_out" } else { "domain_out" }.into()),
            ("typnotnull", is_not_null.into()),
            ("typbasetype", base.unwrap_or(0).into()),
            ("typtypmod", (-1).into()),
            ("typcollation", 0.into()),
        ]
    };
    snapshot.types.iter().map(row).collect()
}

/// The labels of enumerations.
fn labels(snapshot: &Snapshot) -> Vec<Row> {
    let mut rows = Vec::new();
    for (oid, made) in &snapshot.types {
        let TypeDefinition::Enum(labels) = &made.definition else { continue };
        for (place, label) in labels.iter().enumerate() {
            rows.push(vec![
                ("oid", oid.wrapping_mul(1 << 10).wrapping_add(place as u32).into()),
                ("enumtypid", (*oid).into()),
                ("enumsortorder", ((place + 1) as i32).into()),
                ("enumlabel", label.as_str().into()),
            ]);
        }
    }
    rows
}

fn types() -> Vec<Row> {
    let row = |line: Vec<&str>| -> Row {
        let is_array = line[5] == "A" && line[2] == "-1" && line[1].starts_with('_');
        let procedure = |what: &str| match is_array {
            true => format!("array_{what}"),
            false => format!("{}{what}", line[1]),
        };
        vec![
            ("oid", number(line[0])),
            ("typname", line[1].into()),
            ("typnamespace", PG_CATALOG.into()),
            ("typowner", OWNER.into()),
            ("typlen", number(line[2])),
            ("typbyval", (line[3] == "t").into()),
            ("typtype", line[4].into()),
            ("typcategory", line[5].into()),
            ("typispreferred", (line[6] == "t").into()),
            ("typisdefined", true.into()),
            ("typdelim", line[7].into()),
            ("typelem", number(line[8])),
            ("typarray", number(line[9])),
            ("typsubscript", if is_array { "array_subscript_handler" } else { "-" }.into()),
            ("typinput", procedure("in").into()),
            ("typoutput", procedure("out").into()),
            ("typreceive", procedure("recv").into()),
            ("typsend", procedure("send").into()),
            ("typmodin", "-".into()),
            ("typmodout", "-".into()),
            ("typanalyze", "-".into()),
            ("typalign", "i".into()),
            ("typstorage", "p".into()),
            ("typtypmod", (-1).into()),
            ("typcollation", number(line[10])),
        ]
    };
    type_lines().map(row).collect()
}

fn databases() -> Vec<Row> {
    vec![vec![
        ("oid", 5u32.into()),
        ("datname", DATABASE.into()),
        ("datdba", OWNER.into()),
        ("encoding", 6.into()),
        ("datlocprovider", "c".into()),
        ("datallowconn", true.into()),
        ("datconnlimit", (-1).into()),
        ("dattablespace", 1_663u32.into()),
        ("datcollate", "C".into()),
        ("datctype", "C".into()),
    ]]
}

fn ams() -> Vec<Row> {
    let am = |(oid, name, handler, kind): (u32, &str, &str, &str)| -> Row {
        vec![("oid", oid.into()), ("amname", name.into()), ("amhandler", handler.into()), ("amtype", kind.into())]
    };
    [(HEAP, "heap", "heap_tableam_handler", "t"), (BTREE, "btree", "bthandler", "i")].map(am).to_vec()
}

fn collations() -> Vec<Row> {
    let collation = |(oid, name, provider): (u32, &str, &str)| -> Row {
        vec![
            ("oid", oid.into()),
            ("collname", name.into()),
            ("collnamespace", PG_CATALOG.into()),
            ("collowner", OWNER.into()),
            ("collprovider", provider.into()),
            ("collisdeterministic", true.into()),
            ("collencoding", (-1).into()),
        ]
    };
    [(100, "default", "d"), (950, "C", "c"), (951, "POSIX", "c")].map(collation).to_vec()
}

fn tablespaces() -> Vec<Row> {
    let space = |(oid, name): (u32, &str)| -> Row {
        vec![("oid", oid.into()), ("spcname", name.into()), ("spcowner", OWNER.into())]
    };
    [(1_663, "pg_default"), (1_664, "pg_global")].map(space).to_vec()
}

fn settings() -> Vec<Row> {
    let row = |(name, value): &(&'static str, &'static str)| -> Row {
        vec![
            ("name", (*name).into()),
            ("setting", (*value).into()),
            ("category", "Preset Options".into()),
            ("short_desc", "".into()),
            ("context", "internal".into()),
            ("vartype", "string".into()),
            ("source", "default".into()),
            ("boot_val", (*value).into()),
            ("reset_val", (*value).into()),
            ("pending_restart", false.into()),
        ]
    };
    SETTINGS.iter().map(row).collect()
}

fn tables(snapshot: &Snapshot) -> Vec<Row> {
    let row = |relation: &DescribedRelation| -> Row {
        vec![
            ("schemaname", relation.space.1.as_str().into()),
            ("tablename", relation.name.as_str().into()),
            ("tableowner", DATABASE.into()),
            ("hasindexes", (!relation.primary_key.is_empty()).into()),
            ("hasrules", false.into()),
            ("hastriggers", false.into()),
            ("rowsecurity", false.into()),
        ]
    };
    snapshot.relations.iter().filter(|relation| relation.kind == 'r').map(row).collect()
}

fn shown_views(snapshot: &Snapshot, kind: char) -> Vec<Row> {
    let row = |relation: &DescribedRelation| -> Row {
        vec![
            ("schemaname", relation.space.1.as_str().into()),
            ("viewname", relation.name.as_str().into()),
            ("matviewname", relation.name.as_str().into()),
            ("viewowner", DATABASE.into()),
            ("matviewowner", DATABASE.into()),
            ("ispopulated", true.into()),
            ("definition", relation.query.clone().into()),
        ]
    };
    snapshot.relations.iter().filter(|relation| relation.kind == kind).map(row).collect()
}

fn shown_indexes(snapshot: &Snapshot) -> Vec<Row> {
    let row = |index: &DescribedIndex| -> Row {
        vec![
            ("schemaname", snapshot.relations[index.relation].space.1.as_str().into()),
            ("tablename", snapshot.relations[index.relation].name.as_str().into()),
            ("indexname", index.name.as_str().into()),
            ("indexdef", snapshot.index_definition(index).into()),
        ]
    };
    snapshot.indexes.iter().map(row).collect()
}
