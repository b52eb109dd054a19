//! Names of types in messages: Arrow's, replaced by SQL's.

/// PostgreSQL's hints where types do not fit.
pub(crate) const NO_OPERATOR: &str =
    "No operator matches the given name and argument types. You might need to add explicit type casts.";
pub(crate) const NO_FUNCTION: &str =
    "No function matches the given name and argument types. You might need to add explicit type casts.";
/// The hint where two types have none in common.
pub(crate) const CAST_ONE_SIDE: &str = "Cast one side to the type of the other.";

/// Arrow's names of types, replaced by SQL's.
pub(crate) fn sql_types(message: &str) -> String {
    let mut out = bare_literals(message);
    for (arrow, sql) in [
        ("Timestamp(ns, \"UTC\")", "timestamp with time zone"),
        ("Timestamp(µs, \"UTC\")", "timestamp with time zone"),
        ("Timestamp(ns)", "timestamp"),
        ("Interval(MonthDayNano)", "interval"),
        ("Utf8View", "text"),
        ("LargeUtf8", "text"),
        ("Utf8", "text"),
        ("Int16", "smallint"),
        ("Int32", "integer"),
        ("UInt64", "bigint"),
        ("Int64", "bigint"),
        ("Float32", "real"),
        ("Float64", "double precision"),
        ("Boolean", "boolean"),
        ("Date32", "date"),
        ("Decimal128", "numeric"),
        ("Timestamp(µs)", "timestamp"),
        ("LargeBinary", "numeric"),
        ("BinaryView", "bytea"),
        ("Time64(µs)", "time"),
    ] {
        out = out.replace(arrow, sql);
    }
    while let Some((before, rest)) = out.split_once("Struct(")
        && let Some((_, behind)) = closed(rest)
    {
        out = format!("{before}record{behind}");
    }
    while let Some((before, rest)) = out.split_once("List(")
        && let Some((element, behind)) = closed(rest)
    {
        out = format!("{before}{element}[]{behind}");
    }
    out
}

/// What stands before the parenthesis that closes one before the text, and what behind it.
fn closed(text: &str) -> Option<(&str, &str)> {
    let mut depth = 0;
    let end = text.find(|c| {
        depth += match c {
            '(' => 1,
            ')' => -1,
            _ => 0,
        };
        depth < 0
    })?;
    Some((&text[..end], &text[end + 1..]))
}

/// `Int64(1)` as `1`: literals as they were written.
fn bare_literals(message: &str) -> String {
    let mut out = String::with_capacity(message.len());
    let mut rest = message;
    while let Some((at, name)) =
        ["Int64(", "Int32(", "Float64("].iter().filter_map(|name| Some((rest.find(name)?, *name))).min()
    {
        let inside = &rest[at + name.len()..];
        let Some(end) = inside.find(')') else { break };
        let unsigned = rest[..at].ends_with('U');
        let is_number = end > 0 && inside[..end].bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'-' | b'e'));
        let shown = if is_number && !unsigned { &inside[..end] } else { &rest[at..at + name.len() + end + 1] };
        out.push_str(&rest[..at]);
        out.push_str(shown);
        rest = &inside[end + 1..];
    }
    out + rest
}
