//! Functions that tell of the catalog, of the server, and of what a user may do.
//!
//! A function is made for one planning and holds the catalog's [`Snapshot`] of then. Arguments may
//! be of any type: numbers come as literals in quotes, too.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use anabranch_batch::numeric;
use anabranch_sql::statement::CreateType;
use arrow::datatypes::{DataType, Field};
use datafusion_common::{Result as DfResult, ScalarValue, exec_err};
use datafusion_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

use super::lists::{DATABASE, format_type, system_oid, type_lines};
use super::rows::check_oid;
use super::schema::{list, text};
use super::snapshot::{INFORMATION_SCHEMA, OWNER, PG_CATALOG, PUBLIC, Snapshot, quoted};
use crate::catalog::sequence::sequence_of_column;

/// What a function gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gives {
    Bool,
    Int,
    Long,
    Oid,
    Text,
    Texts,
    Short,
    Time,
}

impl Gives {
    fn data_type(self) -> DataType {
        match self {
            Gives::Bool => DataType::Boolean,
            Gives::Int => DataType::Int32,
            Gives::Long => DataType::Int64,
            Gives::Oid => DataType::UInt32,
            Gives::Short => DataType::Int16,
            Gives::Text => DataType::Utf8View,
            Gives::Texts => DataType::List(Arc::new(Field::new_list_field(DataType::Utf8View, true))),
            Gives::Time => DataType::Timestamp(arrow::datatypes::TimeUnit::Microsecond, Some("UTC".into())),
        }
    }
}

type Compute = fn(&Snapshot, &[ScalarValue]) -> Option<ScalarValue>;

/// Functions by name; `None` is NULL.
const FUNCTIONS: &[(&str, Gives, Compute)] = &[
    ("format_type", Gives::Text, |snapshot, args| {
        let modifier = whole(args, 1).map(|modifier| modifier as i32);
        Some(text(&snapshot.type_name(whole(args, 0)?.try_into().ok()?, modifier)))
    }),
    ("pg_get_expr", Gives::Text, |_, args| args.first().cloned()),
    ("pg_get_viewdef", Gives::Text, |snapshot, args| {
        let relation = snapshot.relation(relation_oid(snapshot, args, 0)?)?;
        relation.query.as_ref().map(|query| text(&format!("{query};")))
    }),
    ("pg_get_indexdef", Gives::Text, |snapshot, args| {
        let index = snapshot.index(relation_oid(snapshot, args, 0)?)?;
        match usize::try_from(whole(args, 1).unwrap_or(0)).ok()? {
            0 => Some(text(&snapshot.index_definition(index))),
            n => snapshot.listed(index).get(n - 1).map(|part| text(part)),
        }
    }),
    ("pg_get_constraintdef", Gives::Text, |snapshot, args| {
        let oid: u32 = whole(args, 0)?.try_into().ok()?;
        if let Some(index) = snapshot.indexes.iter().find(|index| index.constraint == Some(oid)) {
            return Some(text(&snapshot.constraint_definition(index)));
        }
        let mut references = snapshot.relations.iter().flat_map(|relation| &relation.references);
        if let Some(reference) = references.find(|reference| reference.oid == oid) {
            return Some(text(&reference.definition));
        }
        let checks = snapshot.relations.iter().flat_map(|relation| {
            relation.checks.iter().enumerate().map(move |(n, check)| (check_oid(relation, n), &check.1))
        });
        let (_, condition) = checks.into_iter().find(|(known, _)| *known == oid)?;
        let is_pretty = matches!(args.get(1), Some(ScalarValue::Boolean(Some(true))));
        Some(text(&if is_pretty { format!("CHECK ({condition})") } else { format!("CHECK (({condition}))") }))
    }),
    ("pg_get_userbyid", Gives::Text, |_, _| Some(text(DATABASE))),
    ("pg_table_is_visible", Gives::Bool, |snapshot, args| {
        let oid: u32 = whole(args, 0)?.try_into().ok()?;
        let index = snapshot.index(oid).map(|index| &snapshot.relations[index.relation]);
        let is_elsewhere = |relation: &super::snapshot::DescribedRelation| {
            snapshot.schemas.iter().any(|(schema, _)| *schema == relation.space.0)
        };
        let relation = snapshot.relation(oid).or(index);
        Some(ScalarValue::Boolean(Some(!relation.is_some_and(is_elsewhere))))
    }),
    ("pg_type_is_visible", Gives::Bool, yes),
    ("pg_function_is_visible", Gives::Bool, yes),
    ("pg_opclass_is_visible", Gives::Bool, yes),
    ("pg_operator_is_visible", Gives::Bool, yes),
    ("pg_collation_is_visible", Gives::Bool, yes),
    ("pg_is_other_temp_schema", Gives::Bool, no),
    ("pg_relation_is_publishable", Gives::Bool, no),
    ("pg_is_in_recovery", Gives::Bool, no),
    ("row_security_active", Gives::Bool, no),
    ("has_any_column_privilege", Gives::Bool, yes),
    ("has_column_privilege", Gives::Bool, yes),
    ("has_database_privilege", Gives::Bool, yes),
    ("has_function_privilege", Gives::Bool, yes),
    ("has_schema_privilege", Gives::Bool, yes),
    ("has_sequence_privilege", Gives::Bool, yes),
    ("has_table_privilege", Gives::Bool, yes),
    ("pg_has_role", Gives::Bool, yes),
    ("obj_description", Gives::Text, null),
    ("col_description", Gives::Text, null),
    ("shobj_description", Gives::Text, null),
    ("pg_get_serial_sequence", Gives::Text, |snapshot, args| {
        let relation = snapshot.relation(relation_oid(snapshot, args, 0)?)?;
        let sequence = sequence_of_column(&relation.name, &words(args, 1)?);
        let known = snapshot.sequences.iter().find(|known| known.space == relation.space && known.name == sequence)?;
        Some(text(&format!("{}.{}", quoted(&known.space.1), quoted(&known.name))))
    }),
    ("pg_get_partkeydef", Gives::Text, null),
    ("pg_get_ruledef", Gives::Text, null),
    ("pg_get_triggerdef", Gives::Text, null),
    ("pg_get_functiondef", Gives::Text, null),
    ("pg_get_function_arguments", Gives::Text, null),
    ("pg_get_function_identity_arguments", Gives::Text, null),
    ("pg_get_function_result", Gives::Text, null),
    ("pg_get_statisticsobjdef_columns", Gives::Text, null),
    ("pg_tablespace_location", Gives::Text, |_, _| Some(text(""))),
    ("pg_encoding_to_char", Gives::Text, |_, _| Some(text("UTF8"))),
    ("pg_client_encoding", Gives::Text, |_, _| Some(text("UTF8"))),
    ("getdatabaseencoding", Gives::Text, |_, _| Some(text("UTF8"))),
    ("inet_server_addr", Gives::Text, null),
    ("inet_client_addr", Gives::Text, null),
    ("inet_server_port", Gives::Int, null),
    ("inet_client_port", Gives::Int, null),
    ("pg_backend_pid", Gives::Int, |_, _| Some(ScalarValue::Int32(Some(std::process::id() as i32)))),
    ("pg_size_pretty", Gives::Text, |_, args| Some(text(&pretty_size(whole(args, 0)?)))),
    ("pg_relation_size", Gives::Long, zero),
    ("pg_table_size", Gives::Long, zero),
    ("pg_indexes_size", Gives::Long, zero),
    ("pg_total_relation_size", Gives::Long, zero),
    ("pg_database_size", Gives::Long, zero),
    ("pg_tablespace_size", Gives::Long, zero),
    ("pg_stat_get_numscans", Gives::Long, zero),
    ("pg_stat_get_live_tuples", Gives::Long, zero),
    ("pg_my_temp_schema", Gives::Oid, |_, _| Some(ScalarValue::UInt32(Some(0)))),
    ("pg_postmaster_start_time", Gives::Time, null),
    ("pg_conf_load_time", Gives::Time, null),
    ("pg_sequence_last_value", Gives::Long, |snapshot, args| {
        let oid = relation_oid(snapshot, args, 0)?;
        let sequence = snapshot.sequences.iter().find(|sequence| sequence.oid == oid)?;
        Some(ScalarValue::Int64(sequence.place.is_called.then_some(sequence.place.last)))
    }),
    ("__sequence_last", Gives::Long, |snapshot, args| {
        let name = words(args, 0)?;
        let sequence = snapshot.sequences.iter().find(|sequence| sequence.full_name() == name)?;
        Some(ScalarValue::Int64(Some(sequence.place.last)))
    }),
    ("__sequence_called", Gives::Bool, |snapshot, args| {
        let name = words(args, 0)?;
        let sequence = snapshot.sequences.iter().find(|sequence| sequence.full_name() == name)?;
        Some(ScalarValue::Boolean(Some(sequence.place.is_called)))
    }),
    ("pg_column_is_updatable", Gives::Bool, yes),
    ("pg_relation_is_updatable", Gives::Int, |_, _| Some(ScalarValue::Int32(Some(28)))),
    ("current_schemas", Gives::Texts, |_, args| {
        let with_implicit = matches!(args.first(), Some(ScalarValue::Boolean(Some(true))));
        let names: &[&str] = if with_implicit { &["pg_catalog", "public"] } else { &["public"] };
        let names: Vec<ScalarValue> = names.iter().map(|name| text(name)).collect();
        Some(list(&names, &DataType::Utf8View))
    }),
    ("to_regclass", Gives::Oid, regclass_in),
    ("regclass_in", Gives::Oid, regclass_in),
    ("regclass_out", Gives::Text, |snapshot, args| {
        let oid: u32 = whole(args, 0)?.try_into().ok()?;
        Some(text(&snapshot.name_of(oid).map_or_else(|| dash(oid), quoted)))
    }),
    ("to_regtype", Gives::Oid, regtype_in),
    ("regtype_in", Gives::Oid, regtype_in),
    ("regtype_out", Gives::Text, |snapshot, args| {
        Some(text(&snapshot.type_name(whole(args, 0)?.try_into().ok()?, None)))
    }),
    ("regnamespace_in", Gives::Oid, |snapshot, args| {
        let name = words(args, 0)?;
        let built_in = NAMESPACES.iter().find(|(_, known)| *known == name).map(|(oid, _)| *oid);
        let made = || snapshot.schemas.iter().find(|(_, known)| *known == name).map(|(oid, _)| *oid);
        built_in.or_else(made).map(|oid| ScalarValue::UInt32(Some(oid)))
    }),
    ("regnamespace_out", Gives::Text, |snapshot, args| {
        let oid: u32 = whole(args, 0)?.try_into().ok()?;
        if let Some((_, name)) = snapshot.schemas.iter().find(|(known, _)| *known == oid) {
            return Some(text(name));
        }
        Some(text(NAMESPACES.iter().find(|(known, _)| *known == oid).map_or("-", |(_, name)| name)))
    }),
    ("regrole_out", Gives::Text, |_, _| Some(text(DATABASE))),
    ("regrole_in", Gives::Oid, |_, _| Some(ScalarValue::UInt32(Some(OWNER)))),
    ("regproc_in", Gives::Text, procedure),
    ("regproc_out", Gives::Text, procedure),
    ("regprocedure_in", Gives::Text, procedure),
    ("regprocedure_out", Gives::Text, procedure),
    ("regoper_in", Gives::Text, procedure),
    ("regoper_out", Gives::Text, procedure),
    ("pg_index_column_has_property", Gives::Bool, no),
    ("pg_indexam_has_property", Gives::Bool, no),
    ("pg_char_to_encoding", Gives::Int, |_, _| Some(ScalarValue::Int32(Some(6)))),
    ("pg_trigger_depth", Gives::Int, |_, _| Some(ScalarValue::Int32(Some(0)))),
    ("array_ndims_of_type", Gives::Short, null),
];

const NAMESPACES: [(u32, &str); 3] =
    [(PG_CATALOG, "pg_catalog"), (PUBLIC, "public"), (INFORMATION_SCHEMA, "information_schema")];

fn yes(_: &Snapshot, _: &[ScalarValue]) -> Option<ScalarValue> {
    Some(ScalarValue::Boolean(Some(true)))
}

fn no(_: &Snapshot, _: &[ScalarValue]) -> Option<ScalarValue> {
    Some(ScalarValue::Boolean(Some(false)))
}

fn null(_: &Snapshot, _: &[ScalarValue]) -> Option<ScalarValue> {
    None
}

fn zero(_: &Snapshot, _: &[ScalarValue]) -> Option<ScalarValue> {
    Some(ScalarValue::Int64(Some(0)))
}

/// A procedure is known by its name alone.
fn procedure(_: &Snapshot, args: &[ScalarValue]) -> Option<ScalarValue> {
    let name = words(args, 0)?;
    Some(text(name.strip_prefix("pg_catalog.").unwrap_or(&name)))
}

/// Bytes in the largest unit of which there are ten, as PostgreSQL writes them.
fn pretty_size(n_bytes: i64) -> String {
    let mut left = n_bytes;
    for unit in ["bytes", "kB", "MB", "GB"] {
        if left.abs() < 10_240 {
            return format!("{left} {unit}");
        }
        left = (left + 512 * left.signum()) / 1024;
    }
    format!("{left} TB")
}

/// What stands for a number that nothing has.
fn dash(oid: u32) -> String {
    if oid == 0 { "-".to_owned() } else { oid.to_string() }
}

fn words(args: &[ScalarValue], n: usize) -> Option<String> {
    match args.get(n)? {
        ScalarValue::Utf8(value) | ScalarValue::Utf8View(value) | ScalarValue::LargeUtf8(value) => value.clone(),
        other if other.is_null() => None,
        other => Some(other.to_string()),
    }
}

fn whole(args: &[ScalarValue], n: usize) -> Option<i64> {
    match args.get(n)? {
        ScalarValue::Int16(value) => value.map(i64::from),
        ScalarValue::Int32(value) => value.map(i64::from),
        ScalarValue::UInt32(value) => value.map(i64::from),
        ScalarValue::Int64(value) => *value,
        // (Of a numeric what is before its point.)
        ScalarValue::Decimal128(value, _, scale) => {
            value.and_then(|value| i64::try_from(value / 10i128.pow(u32::try_from(*scale).ok()?)).ok())
        }
        ScalarValue::LargeBinary(value) => {
            let mut text = String::new();
            numeric::write(&numeric::number_of(value.as_ref()?), &mut text);
            text.split('.').next()?.parse().ok()
        }
        _ => words(args, n)?.trim().parse().ok(),
    }
}

/// A relation by its number or its name.
fn relation_oid(snapshot: &Snapshot, args: &[ScalarValue], n: usize) -> Option<u32> {
    match whole(args, n) {
        Some(oid) => oid.try_into().ok(),
        None => snapshot.oid_of(&unquoted(&words(args, n)?)),
    }
}

/// The last part of a name as it is written in SQL, folded.
fn unquoted(name: &str) -> String {
    let last = match name.strip_suffix('"') {
        Some(rest) => rest.rsplit_once("\"").map_or(rest, |(_, last)| last).to_owned(),
        None => name.rsplit_once('.').map_or(name, |(_, last)| last).to_lowercase(),
    };
    last.trim().to_owned()
}

fn regclass_in(snapshot: &Snapshot, args: &[ScalarValue]) -> Option<ScalarValue> {
    let name = words(args, 0)?;
    let number = name.parse().ok();
    let oid = number.or_else(|| snapshot.oid_of(&unquoted(&name))).or_else(|| system_oid(&unquoted(&name)));
    oid.map(|oid| ScalarValue::UInt32(Some(oid)))
}

/// The name by which the catalog knows a type that is spelled otherwise.
fn plain_type(name: &str) -> &str {
    match name {
        "int" => "int4",
        "float" => "float8",
        "decimal" | "dec" => "numeric",
        "char" => "bpchar",
        "timestamp without time zone" => "timestamp",
        "timestamp with time zone" => "timestamptz",
        "int[]" => "_int4",
        "float[]" => "_float8",
        "decimal[]" => "_numeric",
        name => name,
    }
}

fn regtype_in(snapshot: &Snapshot, args: &[ScalarValue]) -> Option<ScalarValue> {
    let name = words(args, 0)?;
    let own = name.strip_prefix("public.").unwrap_or(&name);
    let is_own = |(oid, _): &&(u32, CreateType)| snapshot.type_name(*oid, None) == own;
    if let Some((oid, _)) = snapshot.types.iter().find(is_own) {
        return Some(ScalarValue::UInt32(Some(*oid)));
    }
    let name = name.trim().to_lowercase().replace('"', "");
    let name = plain_type(name.strip_prefix("pg_catalog.").unwrap_or(&name));
    let is_named = |line: &Vec<&str>| {
        line[1] == name || line[0].parse().is_ok_and(|oid| format_type(oid, None) == name) || line[0] == name
    };
    let line = type_lines().find(is_named)?;
    Some(ScalarValue::UInt32(line[0].parse().ok()))
}

/// A function of the table over a snapshot.
struct Telling {
    name: &'static str,
    gives: Gives,
    compute: Compute,
    signature: Signature,
    snapshot: Arc<Snapshot>,
}

/// The function of that name.
pub(super) fn find(name: &str, snapshot: impl FnOnce() -> Arc<Snapshot>) -> Option<Arc<ScalarUDF>> {
    let (name, gives, compute) = *FUNCTIONS.iter().find(|(known, ..)| *known == name)?;
    let signature = Signature::one_of(
        vec![datafusion_expr::TypeSignature::Nullary, datafusion_expr::TypeSignature::VariadicAny],
        Volatility::Stable,
    );
    Some(Arc::new(ScalarUDF::from(Telling { name, gives, compute, signature, snapshot: snapshot() })))
}

impl fmt::Debug for Telling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Telling").field("name", &self.name).finish_non_exhaustive()
    }
}

impl PartialEq for Telling {
    fn eq(&self, other: &Telling) -> bool {
        self.name == other.name && Arc::ptr_eq(&self.snapshot, &other.snapshot)
    }
}

impl Eq for Telling {}

impl Hash for Telling {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl ScalarUDFImpl for Telling {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arg_types: &[DataType]) -> DfResult<DataType> {
        Ok(self.gives.data_type())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let columns = args.args.iter().map(|arg| arg.to_array(args.number_rows));
        let columns = columns.collect::<DfResult<Vec<_>>>()?;
        let null = ScalarValue::try_from(&self.gives.data_type())?;
        let mut values = Vec::with_capacity(args.number_rows);
        for row in 0..args.number_rows {
            let given = columns.iter().map(|column| ScalarValue::try_from_array(column, row));
            let given = given.collect::<DfResult<Vec<_>>>()?;
            let value = (self.compute)(&self.snapshot, &given);
            // (Relations of PostgreSQL's own that are not here have no number.)
            if let ("regclass_in", None, Some(name)) = (self.name, &value, words(&given, 0))
                && !name.contains("pg_")
                && !name.contains("information_schema")
            {
                return exec_err!("relation \"{name}\" does not exist");
            }
            if let ("regtype_in", None, Some(name)) = (self.name, &value, words(&given, 0)) {
                return exec_err!("type \"{name}\" does not exist");
            }
            values.push(match value {
                Some(value) if self.gives == Gives::Text => text_of(value),
                Some(value) => value,
                None => null.clone(),
            });
        }
        match values.is_empty() {
            true => Ok(ColumnarValue::Array(arrow::array::new_empty_array(&self.gives.data_type()))),
            false => Ok(ColumnarValue::Array(ScalarValue::iter_to_array(values)?)),
        }
    }
}

/// A text in the one form of texts.
fn text_of(value: ScalarValue) -> ScalarValue {
    match value {
        ScalarValue::Utf8(value) | ScalarValue::LargeUtf8(value) => ScalarValue::Utf8View(value),
        ScalarValue::Utf8View(value) => ScalarValue::Utf8View(value),
        other if other.is_null() => ScalarValue::Utf8View(None),
        other => text(&other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use anabranch_sql::pg_types::oid;

    use super::*;

    #[test]
    fn types_have_the_names_of_postgresql() {
        assert_eq!(format_type(oid::NUMERIC, Some((10 << 16 | 2) + 4)), "numeric(10,2)");
        assert_eq!(format_type(oid::VARCHAR, Some(9)), "character varying(5)");
        assert_eq!(format_type(oid::TIMESTAMPTZ, Some(3)), "timestamp(3) with time zone");
        assert_eq!(format_type(1007, Some(-1)), "integer[]");
        assert_eq!(format_type(2950, None), "uuid");
    }

    #[test]
    fn names_are_read_as_they_are_written() {
        assert_eq!(unquoted("public.Orders"), "orders");
        assert_eq!(unquoted("\"public\".\"Orders\""), "Orders");
        assert_eq!(unquoted("\"Or.ders\""), "Or.ders");
        let number = |args: &[ScalarValue]| regtype_in(&Snapshot::default(), args);
        assert_eq!(number(&[text("integer")]), Some(ScalarValue::UInt32(Some(23))));
        assert_eq!(number(&[text("pg_catalog.int4")]), Some(ScalarValue::UInt32(Some(23))));
        assert_eq!(number(&[text("nothing")]), None);
    }
}
