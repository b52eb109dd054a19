//! Operators and calls of PostgreSQL that are others in terms of what DataFusion has.

use datafusion_expr::sqlparser::ast::{
    BinaryOperator, DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause,
    FunctionArguments, Ident, ObjectName, OrderByExpr, UnaryOperator, Value,
};

use crate::error::Result;
use crate::passes::expr::numbers::OF_DOUBLES;
use crate::passes::tree::hooks::Names;
use crate::passes::tree::{derived_calls, hypothetical, refuse, regression, variadic};
use crate::syntax::collation::check_collation;
use crate::syntax::names::fold;
use crate::syntax::parse::parse_expr;

/// Rewrites one expression whose parts are done; `None` leaves it as it is.
///
/// # Errors
/// `Unsupported` for collations.
pub(super) fn rewrite(expr: &Expr) -> Result<Option<Expr>> {
    let text = match expr {
        Expr::UnaryOp { op, expr } => match op {
            UnaryOperator::BitwiseNot => Some(format!("(-1 - ({expr}))")),
            UnaryOperator::PGSquareRoot => Some(format!("sqrt({expr})")),
            UnaryOperator::PGCubeRoot => Some(format!("cbrt({expr})")),
            UnaryOperator::PGAbs => Some(format!("abs({expr})")),
            _ => None,
        },
        Expr::Ceil { expr, .. } if is_text(expr) => Some(format!("ceil(CAST({expr} AS double precision))")),
        Expr::Floor { expr, .. } if is_text(expr) => Some(format!("floor(CAST({expr} AS double precision))")),
        Expr::BinaryOp { left, op: BinaryOperator::PGStartsWith, right } => {
            Some(format!("starts_with({left}, {right})"))
        }
        Expr::Identifier(ident) if ident.quote_style.is_none() => constant(&fold(ident)).map(str::to_string),
        Expr::Function(function) => match variadic::text(function)? {
            Some(text) => {
                let written = parse_expr(&text)?;
                return Ok(Some(rewrite(&written)?.unwrap_or(written)));
            }
            None => {
                let text = call(function);
                if text.is_none() {
                    refuse::function(function)?;
                }
                text
            }
        },
        Expr::IsNormalized { expr, form, negated } => {
            let form = form.map_or("nfc".to_owned(), |form| form.to_string().to_lowercase());
            Some(format!("({}__is_normalized({expr}, '{form}'))", if *negated { "NOT " } else { "" }))
        }
        Expr::Collate { expr, collation } => {
            check_collation(&collation.to_string())?;
            Some(format!("({expr})"))
        }
        _ => None,
    };
    text.map(|text| parse_expr(&text)).transpose()
}

/// Whether a call is of a user's function, whose name hides one that is written with others.
pub(super) fn is_of_a_user(expr: &Expr, names: &Names) -> bool {
    let (Expr::Function(function), Some(catalog)) = (expr, names.catalog) else { return false };
    let has_arguments = matches!(&function.args, FunctionArguments::List(list) if !list.args.is_empty());
    let name = function.name.to_string().to_lowercase();
    has_arguments && (catalog.aggregate(&name).is_some() || catalog.function(&name).is_some())
}

/// Types by whose names a call is a cast.
const CASTS: [&str; 9] = ["int2", "int4", "int8", "float4", "float8", "bool", "text", "varchar", "bpchar"];

/// What a reserved word stands for.
fn constant(word: &str) -> Option<&'static str> {
    match word {
        "localtimestamp" => Some("CAST(now() AS timestamp)"),
        "localtime" => Some("CAST(CAST(now() AS timestamp) AS time)"),
        "current_schema" => Some("'public'"),
        "current_user" | "session_user" | "current_role" | "user" => Some("current_setting('session_authorization')"),
        "current_catalog" => Some("'anabranch'"),
        _ => None,
    }
}

fn call(function: &Function) -> Option<String> {
    let name = function.name.to_string().to_lowercase();
    let list = match &function.args {
        FunctionArguments::List(list) => list.args.as_slice(),
        FunctionArguments::None => &[],
        FunctionArguments::Subquery(_) => return None,
    };
    if name == "make_interval" && function.over.is_none() {
        return make_interval(list);
    }
    if name.starts_with("jsonb_path_") && list.iter().any(|arg| matches!(arg, FunctionArg::Named { .. })) {
        return by_position(&name, list);
    }
    let args: Vec<&Expr> = list
        .iter()
        .map(|arg| match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
            _ => None,
        })
        .collect::<Option<_>>()?;
    if let Some(text) = regression::rewrite(&name, function, &args) {
        return Some(text);
    }
    if function.over.is_some() {
        return None;
    }
    if let Some(text) = hypothetical::rewrite(&name, function, &args) {
        return Some(text);
    }
    if let Some(text) = derived_calls::text(&name, &args) {
        return Some(text);
    }
    match (name.as_str(), args.as_slice()) {
        (word, []) if constant(word).is_some() => constant(word).map(str::to_string),
        (of, [value]) if CASTS.contains(&of) => Some(format!("CAST({value} AS {of})")),
        ("current_database", []) => Some("'anabranch'".into()),
        // (Clients read the first two words, and choose their questions by them.)
        ("version", []) => Some(format!("CAST('PostgreSQL 15.0 (Anabranch {})' AS text)", env!("CARGO_PKG_VERSION"))),
        ("clock_timestamp" | "statement_timestamp" | "transaction_timestamp", []) => Some("now()".into()),
        ("regexp_split_to_table", args) if args.len() >= 2 => {
            let args: Vec<String> = args.iter().map(|arg| arg.to_string()).collect();
            Some(format!("unnest(regexp_split_to_array({}))", args.join(", ")))
        }
        ("generate_subscripts", [list, dimension]) => {
            Some(format!("unnest(generate_series(1, array_length({list}, {dimension})))"))
        }
        ("timeofday", []) => Some("to_char(now(), 'Dy Mon DD HH24:MI:SS.US YYYY TZ')".into()),
        ("gen_random_uuid", []) => Some("CAST(uuid() AS uuid)".into()),
        ("div", [a, b]) => Some(format!("((({a}) - ({a}) % ({b})) / ({b}))")),
        ("age", [a]) => Some(format!("age(CAST(now() AS date), {a})")),
        ("nullif", [x, y]) if is_text(y) => Some(format!("(CASE WHEN ({x}) = {y} THEN NULL ELSE ({x}) END)")),
        ("pg_typeof", [literal]) if is_text(literal) || is_null(literal) => Some("'unknown'".into()),
        ("pg_typeof", [number]) if is_int4(number) => Some("'integer'".into()),
        // (Of the functions of that name PostgreSQL takes the one of double precision.)
        (of_numbers, [literal]) if is_text(literal) && (of_numbers == "abs" || OF_DOUBLES.contains(&of_numbers)) => {
            Some(format!("{of_numbers}(CAST({literal} AS double precision))"))
        }
        ("round" | "trunc", [literal, places]) if is_text(literal) => {
            Some(format!("{name}(CAST({literal} AS numeric), {places})"))
        }
        ("num_nulls", args) if !args.is_empty() => Some(count(args, "IS NULL")),
        ("num_nonnulls", args) if !args.is_empty() => Some(count(args, "IS NOT NULL")),
        (_, args) => aggregate(&name, args, function),
    }
}

/// A call of an aggregate, by the name and the order that the planner knows.
fn aggregate(name: &str, args: &[&Expr], function: &Function) -> Option<String> {
    match (name, args) {
        ("mode", []) => match function.within_group.as_slice() {
            [key] if is_descending(key) => Some(format!("mode({0} ORDER BY {0} DESC){1}", key.expr, filter(function))),
            [key] => Some(format!("mode({}){}", key.expr, filter(function))),
            _ => None,
        },
        ("string_agg" | "listagg" | "array_agg", values) if !function.within_group.is_empty() => {
            let name = if name == "listagg" { "string_agg" } else { name };
            let values: Vec<String> = values.iter().map(ToString::to_string).collect();
            let keys: Vec<String> = function.within_group.iter().map(ToString::to_string).collect();
            Some(format!("{name}({} ORDER BY {}){}", values.join(", "), keys.join(", "), filter(function)))
        }
        ("listagg", _) => {
            let name = ObjectName::from(vec![Ident::new("string_agg")]);
            Some(Function { name, ..function.clone() }.to_string())
        }
        ("string_agg", [value, separator]) if is_computed(separator) && !is_distinct(function) => {
            Some(joined(value, separator, function))
        }
        ("max_by" | "arg_max" | "argmax", [value, by]) => Some(value_at(value, by, "DESC", function)),
        ("min_by" | "arg_min" | "argmin", [value, by]) => Some(value_at(value, by, "ASC", function)),
        ("first" | "last" | "arbitrary", [value]) => Some(match (name, order_of(function)) {
            ("first", Some(order)) => format!("first_value({value} {order}){}", filter(function)),
            ("last", Some(order)) => format!("last_value({value} {order}){}", filter(function)),
            _ => format!("any_value({value}){}", filter(function)),
        }),
        ("percentile_cont" | "percentile_disc", [fraction]) => match (function.within_group.as_slice(), fraction) {
            ([key], Expr::Array(parts)) => {
                let each: Vec<String> = parts.elem.iter().map(|part| percentile(name, part, key, function)).collect();
                // (Of no rows there is no array.)
                let n_rows = format!("count({}){}", key.expr, filter(function));
                Some(format!("CASE WHEN {n_rows} > 0 THEN ARRAY[{}] END", each.join(", ")))
            }
            ([key], fraction) => Some(percentile(name, fraction, key, function)),
            _ => None,
        },
        _ => None,
    }
}

/// The percentile of a part, over values in this order.
fn percentile(name: &str, fraction: &Expr, key: &OrderByExpr, function: &Function) -> String {
    let (filter, expr) = (filter(function), &key.expr);
    let down = if is_descending(key) { " DESC" } else { "" };
    format!("{name}({expr}, {fraction} ORDER BY {expr}{down}){filter}")
}

fn is_descending(key: &OrderByExpr) -> bool {
    key.options.asc == Some(false)
}

/// Whether a separator differs from row to row.
fn is_computed(separator: &Expr) -> bool {
    match separator {
        Expr::Nested(inner) => is_computed(inner),
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::BinaryOp { .. } | Expr::Case { .. } => true,
        Expr::Function(_) => true,
        _ => false,
    }
}

fn is_distinct(function: &Function) -> bool {
    matches!(&function.args, FunctionArguments::List(list) if list.duplicate_treatment == Some(DuplicateTreatment::Distinct))
}

/// `string_agg` whose separators are computed: each stands before its value, and the first is cut
/// off. (Both aggregates have one order.)
fn joined(value: &Expr, separator: &Expr, function: &Function) -> String {
    let order = order_of(function).map_or("ORDER BY ".to_string(), |order| format!("{order}, "));
    let order = format!("{order}({value}), ({separator})");
    let also = function.filter.as_ref().map(|filter| format!(" AND ({filter})")).unwrap_or_default();
    let filter = format!("FILTER (WHERE ({value}) IS NOT NULL{also})");
    let before = format!("coalesce({separator}, '')");
    format!(
        "substr(string_agg({before} || ({value}), '' {order}) {filter}, \
         length(first_value({before} {order}) {filter}) + 1)"
    )
}

/// The FILTER of a call, as text behind another.
fn filter(function: &Function) -> String {
    function.filter.as_ref().map(|filter| format!(" FILTER (WHERE {filter})")).unwrap_or_default()
}

/// The order inside of a call, as text.
fn order_of(function: &Function) -> Option<String> {
    let FunctionArguments::List(list) = &function.args else { return None };
    list.clauses.iter().find(|clause| matches!(clause, FunctionArgumentClause::OrderBy(_))).map(ToString::to_string)
}

/// `max_by(value, by)` as DuckDB has it: the value beside the greatest `by`, where neither is NULL;
/// of several the least.
fn value_at(value: &Expr, by: &Expr, direction: &str, function: &Function) -> String {
    let also = function.filter.as_ref().map(|filter| format!(" AND ({filter})")).unwrap_or_default();
    format!(
        "first_value({value} ORDER BY {by} {direction}, {value}) \
         FILTER (WHERE ({by}) IS NOT NULL AND ({value}) IS NOT NULL{also})"
    )
}

fn is_text(literal: &Expr) -> bool {
    matches!(literal, Expr::Value(value) if matches!(&value.value, Value::SingleQuotedString(_)))
}

/// Whether a literal is an `integer` in PostgreSQL, where it is a `bigint` here.
fn is_int4(literal: &Expr) -> bool {
    match literal {
        Expr::Nested(inner) | Expr::UnaryOp { op: UnaryOperator::Minus, expr: inner } => is_int4(inner),
        Expr::Value(value) => matches!(&value.value, Value::Number(digits, _) if digits.parse::<i32>().is_ok()),
        _ => false,
    }
}

fn is_null(literal: &Expr) -> bool {
    matches!(literal, Expr::Value(value) if matches!(&value.value, Value::Null))
}

fn count(args: &[&Expr], test: &str) -> String {
    let ones: Vec<String> = args.iter().map(|arg| format!("CASE WHEN ({arg}) {test} THEN 1 ELSE 0 END")).collect();
    format!("({})", ones.join(" + "))
}

/// `jsonb_path_exists(j, path, silent => true)` with its arguments by position.
fn by_position(function: &str, args: &[FunctionArg]) -> Option<String> {
    const NAMES: [&str; 4] = ["target", "path", "vars", "silent"];
    let mut given: [Option<String>; 4] = [None, None, Some("'{}'".to_owned()), Some("false".to_owned())];
    for (at, arg) in args.iter().enumerate() {
        match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => *given.get_mut(at)? = Some(value.to_string()),
            FunctionArg::Named { name, arg: FunctionArgExpr::Expr(value), .. } => {
                let at = NAMES.iter().position(|known| *known == fold(name))?;
                given[at] = Some(value.to_string());
            }
            _ => return None,
        }
    }
    let given: Vec<String> = given.into_iter().collect::<Option<_>>()?;
    Some(format!("{function}({})", given.join(", ")))
}

/// `make_interval(days => 3, hours => 2)`, or by position.
fn make_interval(args: &[FunctionArg]) -> Option<String> {
    const UNITS: [(&str, &str); 7] = [
        ("years", "1 year"),
        ("months", "1 month"),
        ("weeks", "7 days"),
        ("days", "1 day"),
        ("hours", "1 hour"),
        ("mins", "1 minute"),
        ("secs", "1 second"),
    ];
    let mut parts = Vec::new();
    for (at, arg) in args.iter().enumerate() {
        let (unit, value) = match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => (UNITS.get(at)?.1, value),
            FunctionArg::Named { name, arg: FunctionArgExpr::Expr(value), .. } => {
                (UNITS.iter().find(|(unit, _)| *unit == fold(name))?.1, value)
            }
            _ => return None,
        };
        parts.push(format!("INTERVAL '{unit}' * ({value})"));
    }
    match parts.is_empty() {
        true => Some("INTERVAL '0 seconds'".to_owned()),
        false => Some(format!("({})", parts.join(" + "))),
    }
}
