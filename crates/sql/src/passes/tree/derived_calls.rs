//! Functions of PostgreSQL that others say: `width_bucket`, `make_timestamp`.

use datafusion_expr::sqlparser::ast::{Array, Expr, Ident, Value};

use crate::functions::at_time_zone::AT_TIME_ZONE;
use crate::functions::input::read_list;
use crate::syntax::names::fold;

/// What a call means, as text; `None` for other calls.
pub(super) fn text(name: &str, args: &[&Expr]) -> Option<String> {
    Some(match (name, args) {
        ("width_bucket", [x, low, high, n]) => width_bucket(&x.to_string(), &low.to_string(), &high.to_string(), n),
        ("make_timestamp" | "make_timestamptz", [year, month, day, hour, minute, second]) => {
            let made = format!(
                "(make_date({year}, {month}, {day}) + INTERVAL '1 hour' * ({hour}) + INTERVAL '1 minute' * ({minute}) \
                 + INTERVAL '1 second' * ({second}))"
            );
            if name == "make_timestamp" { made } else { format!("CAST({made} AS timestamptz)") }
        }
        // (The zone is read as behind a moment: +02 is two hours east.)
        ("make_timestamptz", [year, month, day, hour, minute, second, zone]) => format!(
            "CAST(CAST(make_date({year}, {month}, {day}) + INTERVAL '1 hour' * ({hour}) + INTERVAL '1 minute' * ({minute}) \
             + INTERVAL '1 second' * ({second}) AS text) || ' ' || {zone} AS timestamptz)"
        ),
        ("jsonb_set_lax", [document, path, new, rest @ ..]) => set_lax(document, path, new, rest)?,
        ("array_fill", [value, Expr::Array(Array { elem, .. })]) => match elem.as_slice() {
            [] => return None,
            sizes => sizes.iter().rev().fold(value.to_string(), |list, n| format!("array_repeat({list}, {n})")),
        },
        ("array_fill", [value, sizes]) => {
            let sizes = written_sizes(sizes)?;
            sizes.iter().rev().fold(value.to_string(), |list, n| format!("array_repeat({list}, {n})"))
        }
        // (Each bound is compared as its type says.)
        ("width_bucket", [x, Expr::Array(Array { elem, .. })]) if !elem.iter().any(is_null) => {
            let passed = elem.iter().map(|bound| format!(" + CASE WHEN ({x}) >= ({bound}) THEN 1 ELSE 0 END"));
            format!("(CASE WHEN ({x}) IS NOT NULL THEN 0 END{})", passed.collect::<String>())
        }
        ("width_bucket", [x, bounds]) => format!("__width_bucket({x}, {bounds})"),
        ("array_fill", [value, sizes, bounds]) if all_ones(bounds) => return text(name, &[*value, *sizes]),
        ("normalize", [x]) => format!("__normalize({x}, 'nfc')"),
        ("normalize", [x, Expr::Identifier(form)]) => format!("__normalize({x}, '{}')", normal_form(form)?),
        ("to_number", [x, template]) => format!("CAST(__number_digits({x}, {template}) AS numeric)"),
        ("parse_ident", [x, strict]) => format!("parse_ident({x}, CAST({strict} AS int))"),
        // (A number of its own has each moment, and with it each statement.)
        ("txid_current" | "pg_current_xact_id", []) => "CAST(date_part('epoch', now()) * 1000000 AS bigint)".to_owned(),
        ("txid_current_if_assigned" | "pg_current_xact_id_if_assigned", []) => "CAST(NULL AS bigint)".to_owned(),
        ("timezone", [zone, x]) => format!("{AT_TIME_ZONE}({x}, {zone})"),
        ("make_time", [hour, minute, Expr::Value(second)]) if is_fraction(&second.value) => {
            format!("(CAST(make_time({hour}, {minute}, 0) AS time) + INTERVAL '1 second' * {second})")
        }
        // (A literal in quotes is bytes, or an interval, to PostgreSQL.)
        (
            "encode" | "get_byte" | "set_byte" | "get_bit" | "set_bit" | "convert_from" | "sha224" | "sha256"
            | "sha384" | "sha512",
            [Expr::Value(value), rest @ ..],
        ) if matches!(value.value, Value::SingleQuotedString(_)) => {
            let rest: String = rest.iter().map(|arg| format!(", {arg}")).collect();
            format!("{name}(CAST({value} AS bytea){rest})")
        }
        ("jsonb_path_query_array" | "jsonb_path_query_first", [Expr::Value(value), rest @ ..])
            if matches!(value.value, Value::SingleQuotedString(_)) =>
        {
            let rest: String = rest.iter().map(|arg| format!(", {arg}")).collect();
            format!("{name}(jsonb_in({value}){rest})")
        }
        ("justify_interval" | "justify_days" | "justify_hours", [Expr::Value(value)])
            if matches!(value.value, Value::SingleQuotedString(_)) =>
        {
            format!("{name}(CAST({value} AS interval))")
        }
        // (The name of a type is a cast.)
        (
            "int2" | "int4" | "int8" | "float4" | "float8" | "bool" | "text" | "bytea" | "date" | "timestamptz"
            | "uuid" | "json" | "jsonb",
            [x],
        ) => format!("CAST({x} AS {name})"),
        ("row_to_json" | "array_to_json", [x, Expr::Value(lines)]) => match &lines.value {
            Value::Boolean(true) => format!("__json_lines({name}({x}))"),
            Value::Boolean(false) => format!("{name}({x})"),
            _ => return None,
        },
        // (Zeros at the end are not kept.)
        ("min_scale", [x]) => format!(
            "(CASE WHEN CAST({x} AS numeric) NOT IN ('NaN', 'Infinity', '-Infinity') \
             THEN length(split_part(CAST(CAST({x} AS numeric) AS text), '.', 2)) END)"
        ),
        ("trim_scale", [x]) => format!("CAST({x} AS numeric)"),
        _ => return None,
    })
}

fn is_null(expr: &Expr) -> bool {
    matches!(expr, Expr::Value(value) if matches!(value.value, Value::Null))
}

/// The numbers of `'{2,3}'` and `'{2,3}'::int[]`.
fn written_sizes(sizes: &Expr) -> Option<Vec<usize>> {
    let literal = match sizes {
        Expr::Cast { expr, .. } => expr.as_ref(),
        other => other,
    };
    let Expr::Value(value) = literal else { return None };
    let Value::SingleQuotedString(text) = &value.value else { return None };
    let mut elements = Vec::new();
    read_list(text, &mut elements)?;
    let sizes: Option<Vec<usize>> = elements.into_iter().map(|element| element?.parse().ok()).collect();
    sizes.filter(|sizes| !sizes.is_empty())
}

/// A form of `normalize`.
fn normal_form(form: &Ident) -> Option<String> {
    let form = fold(form);
    ["nfc", "nfd", "nfkc", "nfkd"].contains(&form.as_str()).then_some(form)
}

/// Whether an array is one of ones, as arrays begin.
fn all_ones(bounds: &Expr) -> bool {
    let is_one = |bound: &Expr| matches!(bound, Expr::Value(value) if matches!(&value.value, Value::Number(digits, _) if digits == "1"));
    matches!(bounds, Expr::Array(Array { elem, .. }) if elem.iter().all(is_one))
}

/// `jsonb_set_lax`: as `jsonb_set`, but for a new value that is NULL, of which the last argument
/// tells what becomes.
fn set_lax(document: &Expr, path: &Expr, new: &Expr, rest: &[&Expr]) -> Option<String> {
    let creates = rest.first().map_or("true".to_string(), ToString::to_string);
    let treatment = match rest.get(1) {
        None => "use_json_null",
        Some(Expr::Value(value)) => match &value.value {
            Value::SingleQuotedString(name) => name.as_str(),
            _ => return None,
        },
        Some(_) => return None,
    };
    let of_null = match treatment {
        "use_json_null" => format!("jsonb_set({document}, {path}, 'null', {creates})"),
        "delete_key" => format!("CAST({document} AS jsonb) #- {path}"),
        "return_target" => format!("jsonb_in({document})"),
        _ => return None,
    };
    Some(format!(
        "(CASE WHEN CAST({new} AS text) IS NULL THEN {of_null} ELSE jsonb_set({document}, {path}, {new}, {creates}) END)"
    ))
}

/// Whether a literal is a number of seconds with a fraction.
fn is_fraction(value: &Value) -> bool {
    match value {
        Value::Number(digits, _) => {
            digits.contains('.') && digits.parse().is_ok_and(|seconds: f64| (0.0..60.0).contains(&seconds))
        }
        _ => false,
    }
}

/// The bucket of `n` equal ones from `low` to `high`, 0 below and n + 1 from `high` on; the other
/// way round where `low` is the greater.
fn width_bucket(x: &str, low: &str, high: &str, n: &Expr) -> String {
    format!(
        "(CASE WHEN ({low}) < ({high}) AND ({x}) < ({low}) OR ({low}) > ({high}) AND ({x}) > ({low}) THEN 0 \
         WHEN ({low}) < ({high}) AND ({x}) >= ({high}) OR ({low}) > ({high}) AND ({x}) <= ({high}) THEN ({n}) + 1 \
         ELSE CAST(floor((({x}) - ({low})) * ({n}) / (({high}) - ({low}))) AS int) + 1 END)"
    )
}
