//! What never changes: types, settings, names.

use anabranch_sql::pg_types::{element_of, oid};

use super::schema::oid_of;

/// The database's name, and that of the one who owns all.
pub(crate) const DATABASE: &str = "anabranch";

/// Lines of types: number, name, length, by value, kind, category, preferred, delimiter, element,
/// array, collation.
const TYPES: &str = include_str!("types.txt");

/// Settings of PostgreSQL that clients look at, with the one value that each has.
pub(super) const SETTINGS: &[(&str, &str)] = &[
    ("DateStyle", "ISO, MDY"),
    ("IntervalStyle", "postgres"),
    ("TimeZone", "UTC"),
    ("application_name", ""),
    ("bytea_output", "hex"),
    ("client_encoding", "UTF8"),
    ("default_table_access_method", "heap"),
    ("default_transaction_isolation", "serializable"),
    ("default_transaction_read_only", "off"),
    ("extra_float_digits", "1"),
    ("integer_datetimes", "on"),
    ("lc_collate", "C"),
    ("lc_ctype", "C"),
    ("max_identifier_length", "63"),
    ("max_index_keys", "32"),
    ("search_path", "\"$user\", public"),
    ("server_encoding", "UTF8"),
    ("server_version", "15.0"),
    ("server_version_num", "150000"),
    ("standard_conforming_strings", "on"),
    ("transaction_isolation", "serializable"),
    ("transaction_read_only", "off"),
];

/// The fields of the lines of types.
pub(super) fn type_lines() -> impl Iterator<Item = Vec<&'static str>> {
    TYPES.lines().map(|line| line.split('\t').collect())
}

/// What a type is called in SQL; `None` leaves the modifier out of account.
pub(super) fn format_type(of: u32, modifier: Option<i32>) -> String {
    let is_vector = matches!(of, oid::INT2VECTOR | oid::OIDVECTOR);
    if let Some(element) = element_of(of).filter(|_| !is_vector) {
        return format!("{}[]", format_type(element, modifier));
    }
    let given = modifier.filter(|modifier| *modifier >= 0);
    let length = given.map_or(String::new(), |modifier| format!("({})", modifier - 4));
    let digits = given.map_or(String::new(), |modifier| format!("({modifier})"));
    match of {
        0 => "-".to_owned(),
        oid::BOOL => "boolean".to_owned(),
        oid::INT2 => "smallint".to_owned(),
        oid::INT4 => "integer".to_owned(),
        oid::INT8 => "bigint".to_owned(),
        oid::FLOAT4 => "real".to_owned(),
        oid::FLOAT8 => "double precision".to_owned(),
        oid::VARCHAR => format!("character varying{length}"),
        oid::BPCHAR if modifier == Some(-1) => "bpchar".to_owned(),
        oid::BPCHAR => format!("character{length}"),
        oid::TIME => format!("time{digits} without time zone"),
        oid::TIMESTAMP => format!("timestamp{digits} without time zone"),
        oid::TIMESTAMPTZ => format!("timestamp{digits} with time zone"),
        oid::INTERVAL => format!("interval{digits}"),
        oid::NUMERIC => match given {
            Some(given) => format!("numeric({},{})", (given - 4) >> 16, (given - 4) & 0xffff),
            None => "numeric".to_owned(),
        },
        18 => "\"char\"".to_owned(),
        _ => {
            let line = type_lines().find(|line| line[0] == of.to_string());
            line.map_or_else(|| "???".to_owned(), |line| line[1].to_owned())
        }
    }
}

/// The number of a system relation, for `'pg_class'::regclass`.
pub(super) fn system_oid(name: &str) -> Option<u32> {
    oid_of(name.strip_prefix("pg_catalog.").unwrap_or(name))
}
