//! Rows of `information_schema`. Materialized views are listed as views: tools that look here could
//! not find them otherwise.

use arrow::datatypes::{DataType, Field};

use super::lists::{DATABASE, format_type, type_lines};
use super::schema::{Row, SystemCell};
use super::snapshot::{DescribedIndex, DescribedReference, DescribedRelation, DescribedSequence, Snapshot, type_of};
use anabranch_sql::pg_types::oid;
use anabranch_sql::references::OnDelete;
use anabranch_sql::sql_name;

type Rows = fn(&Snapshot) -> Vec<Row>;

const FILLED: &[(&str, Rows)] = &[
    ("information_schema.check_constraints", check_constraints),
    ("information_schema.columns", columns),
    ("information_schema.constraint_column_usage", constraint_columns),
    ("information_schema.information_schema_catalog_name", |_| vec![vec![("catalog_name", DATABASE.into())]]),
    ("information_schema.key_column_usage", key_columns),
    ("information_schema.schemata", schemata),
    ("information_schema.sequences", sequences),
    ("information_schema.referential_constraints", referential_constraints),
    ("information_schema.table_constraints", table_constraints),
    ("information_schema.tables", tables),
    ("information_schema.views", views),
];

/// Whether the relation has rows.
pub(super) fn has_rows(name: &str) -> bool {
    FILLED.iter().any(|(filled, _)| *filled == name)
}

/// The rows of a relation; `None` for one that has none.
pub(super) fn rows(name: &str, snapshot: &Snapshot) -> Option<Vec<Row>> {
    FILLED.iter().find(|(filled, _)| *filled == name).map(|(_, rows)| rows(snapshot))
}

fn schemata(snapshot: &Snapshot) -> Vec<Row> {
    let row = |name: &str| -> Row {
        vec![("catalog_name", DATABASE.into()), ("schema_name", name.into()), ("schema_owner", DATABASE.into())]
    };
    let made = snapshot.schemas.iter().map(|(_, name)| name.as_str());
    ["public", "information_schema", "pg_catalog"].into_iter().chain(made).map(row).collect()
}

fn sequences(snapshot: &Snapshot) -> Vec<Row> {
    let row = |sequence: &DescribedSequence| -> Row {
        let shape = &sequence.place.shape;
        let bits = match shape.data_type {
            DataType::Int16 => 16,
            DataType::Int32 => 32,
            _ => 64,
        };
        vec![
            ("sequence_catalog", DATABASE.into()),
            ("sequence_schema", sequence.space.1.as_str().into()),
            ("sequence_name", sequence.name.as_str().into()),
            ("data_type", sql_name(&shape.data_type).into()),
            ("numeric_precision", bits.into()),
            ("numeric_precision_radix", 2.into()),
            ("numeric_scale", 0.into()),
            ("start_value", shape.start.to_string().into()),
            ("minimum_value", shape.min.to_string().into()),
            ("maximum_value", shape.max.to_string().into()),
            ("increment", shape.step.to_string().into()),
            ("cycle_option", shape.cycles.into()),
        ]
    };
    snapshot.sequences.iter().map(row).collect()
}

fn named(relation: &DescribedRelation) -> Row {
    vec![
        ("table_catalog", DATABASE.into()),
        ("table_schema", relation.space.1.as_str().into()),
        ("table_name", relation.name.as_str().into()),
    ]
}

fn tables(snapshot: &Snapshot) -> Vec<Row> {
    let row = |relation: &DescribedRelation| {
        let mut row = named(relation);
        row.push(("table_type", if relation.kind == 'r' { "BASE TABLE" } else { "VIEW" }.into()));
        row.push(("is_insertable_into", (relation.kind == 'r').into()));
        row.push(("is_typed", false.into()));
        row
    };
    snapshot.relations.iter().map(row).collect()
}

fn views(snapshot: &Snapshot) -> Vec<Row> {
    let row = |relation: &DescribedRelation| {
        let mut row = named(relation);
        row.push(("view_definition", relation.query.clone().into()));
        row.push(("check_option", "NONE".into()));
        for column in ["is_updatable", "is_insertable_into", "is_trigger_updatable", "is_trigger_deletable"] {
            row.push((column, false.into()));
        }
        row
    };
    snapshot.relations.iter().filter(|relation| relation.kind != 'r').map(row).collect()
}

fn columns(snapshot: &Snapshot) -> Vec<Row> {
    let of = |relation: &DescribedRelation| -> Vec<Row> {
        let fields = relation.schema.fields().iter().enumerate();
        fields.map(|(n, field)| column(relation, n, field)).collect()
    };
    snapshot.relations.iter().flat_map(of).collect()
}

fn column(relation: &DescribedRelation, n: usize, field: &Field) -> Row {
    let of = type_of(field);
    let line = type_lines().find(|line| line[0] == of.oid.to_string());
    let is_list = matches!(field.data_type(), DataType::List(_));
    let shown = if is_list { "ARRAY".into() } else { format_type(of.oid, None) };
    let (precision, radix, scale) = digits(of.oid, of.modifier);
    let length = matches!(of.oid, oid::VARCHAR | oid::BPCHAR).then_some(of.modifier - 4).filter(|length| *length > 0);
    let is_time = matches!(of.oid, oid::TIME | oid::TIMESTAMP | oid::TIMESTAMPTZ | oid::INTERVAL);
    let of_time = is_time.then_some(if of.modifier < 0 { 6 } else { of.modifier });
    let of_time = of_time.or((of.oid == oid::DATE).then_some(0));
    let mut row = named(relation);
    row.extend([
        ("column_name", SystemCell::from(field.name().as_str())),
        ("ordinal_position", (n as i32 + 1).into()),
        ("column_default", relation.filling(n).filter(|_| !relation.is_computed(n)).into()),
        ("is_nullable", (!relation.forbids_null(n)).into()),
        ("data_type", shown.into()),
        ("character_maximum_length", length.into()),
        ("numeric_precision", precision.into()),
        ("numeric_precision_radix", radix.into()),
        ("numeric_scale", scale.into()),
        ("datetime_precision", of_time.into()),
        ("udt_catalog", DATABASE.into()),
        ("udt_schema", "pg_catalog".into()),
        ("udt_name", line.map(|line| line[1]).into()),
        ("dtd_identifier", (n + 1).to_string().into()),
        ("is_self_referencing", false.into()),
        ("is_identity", (!relation.identity(n).is_empty()).into()),
        (
            "identity_generation",
            match relation.identity(n) {
                "a" => SystemCell::from("ALWAYS"),
                "d" => SystemCell::from("BY DEFAULT"),
                _ => SystemCell::Null,
            },
        ),
        ("identity_cycle", false.into()),
        ("is_generated", if relation.is_computed(n) { "ALWAYS" } else { "NEVER" }.into()),
        ("generation_expression", relation.filling(n).filter(|_| relation.is_computed(n)).into()),
        ("is_updatable", (relation.kind == 'r').into()),
    ]);
    row
}

/// Precision, its radix, and scale of numbers.
fn digits(of: u32, modifier: i32) -> (Option<i32>, Option<i32>, Option<i32>) {
    match of {
        oid::INT2 => (Some(16), Some(2), Some(0)),
        oid::INT4 => (Some(32), Some(2), Some(0)),
        oid::INT8 => (Some(64), Some(2), Some(0)),
        oid::FLOAT4 => (Some(24), Some(2), None),
        oid::FLOAT8 => (Some(53), Some(2), None),
        oid::NUMERIC if modifier >= 4 => (Some((modifier - 4) >> 16), Some(10), Some((modifier - 4) & 0xffff)),
        oid::NUMERIC => (None, Some(10), None),
        _ => (None, None, None),
    }
}

fn constraint(snapshot: &Snapshot, index: &DescribedIndex) -> Row {
    constraint_of(&snapshot.relations[index.relation], &index.name, named)
}

/// A constraint of a relation, beside what `named` tells of the relation.
fn constraint_of(relation: &DescribedRelation, name: &str, named: impl Fn(&DescribedRelation) -> Row) -> Row {
    let mut row = named(relation);
    row.push(("constraint_catalog", DATABASE.into()));
    row.push(("constraint_schema", relation.space.1.as_str().into()));
    row.push(("constraint_name", name.into()));
    row
}

/// All foreign keys, each with the relation that declares it.
fn references(snapshot: &Snapshot) -> impl Iterator<Item = (&DescribedRelation, &DescribedReference)> {
    snapshot
        .relations
        .iter()
        .flat_map(|relation| relation.references.iter().map(move |reference| (relation, reference)))
}

fn keys(snapshot: &Snapshot) -> impl Iterator<Item = &DescribedIndex> {
    snapshot.indexes.iter().filter(|index| index.constraint.is_some())
}

fn table_constraints(snapshot: &Snapshot) -> Vec<Row> {
    let row = |index: &DescribedIndex| {
        let mut row = constraint(snapshot, index);
        row.push(("constraint_type", if index.is_primary { "PRIMARY KEY" } else { "UNIQUE" }.into()));
        row.push(("is_deferrable", false.into()));
        row.push(("initially_deferred", false.into()));
        row.push(("enforced", true.into()));
        row
    };
    let other = |relation: &DescribedRelation, name: &str, kind: &str| {
        let mut row = constraint_of(relation, name, named);
        row.push(("constraint_type", kind.into()));
        row.push(("is_deferrable", false.into()));
        row.push(("initially_deferred", false.into()));
        row.push(("enforced", true.into()));
        row
    };
    let foreign = references(snapshot).map(|(relation, of)| other(relation, &of.name, "FOREIGN KEY"));
    let checks = checks(snapshot).into_iter().map(|(relation, name, _)| other(relation, &name, "CHECK"));
    keys(snapshot).map(row).chain(foreign).chain(checks).collect()
}

/// CHECKs and NOT NULLs: the relation, the name and the condition of each.
fn checks(snapshot: &Snapshot) -> Vec<(&DescribedRelation, String, String)> {
    let mut all = Vec::new();
    for relation in &snapshot.relations {
        for (name, condition, _) in &relation.checks {
            all.push((relation, name.clone(), format!("(({condition}))")));
        }
        let fields = relation.schema.fields().iter().enumerate();
        for (n, field) in fields.filter(|(n, _)| relation.forbids_null(*n)) {
            let name = format!("{}_{}_{}_not_null", relation.space.0, relation.oid, n + 1);
            all.push((relation, name, format!("{} IS NOT NULL", field.name())));
        }
    }
    all
}

fn check_constraints(snapshot: &Snapshot) -> Vec<Row> {
    let row = |(relation, name, condition): (&DescribedRelation, String, String)| {
        let mut row = constraint_of(relation, &name, |_| vec![]);
        row.push(("check_clause", condition.into()));
        row
    };
    checks(snapshot).into_iter().map(row).collect()
}

fn referential_constraints(snapshot: &Snapshot) -> Vec<Row> {
    let row = |(relation, reference): (&DescribedRelation, &DescribedReference)| {
        let parent = &snapshot.relations[reference.parent];
        let key = snapshot.key_of(reference);
        let mut row = constraint_of(relation, &reference.name, |_| vec![]);
        row.push(("unique_constraint_catalog", DATABASE.into()));
        row.push(("unique_constraint_schema", parent.space.1.as_str().into()));
        row.push(("unique_constraint_name", key.map_or("", |index| index.name.as_str()).into()));
        row.push(("match_option", "NONE".into()));
        let rule = |action| match action {
            OnDelete::Refuse => "NO ACTION",
            OnDelete::Cascade => "CASCADE",
            OnDelete::SetNull => "SET NULL",
        };
        row.push(("update_rule", rule(reference.on_update).into()));
        row.push(("delete_rule", rule(reference.on_delete).into()));
        row
    };
    references(snapshot).map(row).collect()
}

fn key_columns(snapshot: &Snapshot) -> Vec<Row> {
    let of = |index: &DescribedIndex| -> Vec<Row> {
        let fields = snapshot.columns_of(index).enumerate();
        let row = |(n, field): (usize, &Field)| {
            let mut row = constraint(snapshot, index);
            row.push(("column_name", field.name().as_str().into()));
            row.push(("ordinal_position", (n as i32 + 1).into()));
            row
        };
        fields.map(row).collect()
    };
    let foreign = |(relation, reference): (&DescribedRelation, &DescribedReference)| -> Vec<Row> {
        let key = snapshot.key_of(reference);
        let row = |(n, at): (usize, &usize)| {
            let mut row = constraint_of(relation, &reference.name, named);
            row.push(("column_name", relation.schema.field(*at).name().as_str().into()));
            row.push(("ordinal_position", (n as i32 + 1).into()));
            let place = key.and_then(|index| index.key.iter().position(|key| *key == reference.to[n]));
            row.push(("position_in_unique_constraint", place.map_or(0, |place| place as i32 + 1).into()));
            row
        };
        reference.key.iter().enumerate().map(row).collect()
    };
    keys(snapshot).flat_map(of).chain(references(snapshot).flat_map(foreign)).collect()
}

/// The columns that constraints use: of a foreign key, those that it refers to.
fn constraint_columns(snapshot: &Snapshot) -> Vec<Row> {
    let of = |index: &DescribedIndex| -> Vec<Row> {
        let row = |field: &Field| {
            let mut row = constraint(snapshot, index);
            row.push(("column_name", field.name().as_str().into()));
            row
        };
        snapshot.columns_of(index).map(row).collect()
    };
    let foreign = |(_, reference): (&DescribedRelation, &DescribedReference)| -> Vec<Row> {
        let parent = &snapshot.relations[reference.parent];
        let row = |at: &usize| {
            let mut row = constraint_of(parent, &reference.name, named);
            row.push(("column_name", parent.schema.field(*at).name().as_str().into()));
            row
        };
        reference.to.iter().map(row).collect()
    };
    keys(snapshot).flat_map(of).chain(references(snapshot).flat_map(foreign)).collect()
}
