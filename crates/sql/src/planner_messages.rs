//! What the planner says, in PostgreSQL's words: its messages are told apart by their text.
//!
//! Law: no word of a library is shown, and the way out is named where it is known.

use crate::error::{ErrorKind, SqlError};
use crate::operation_messages::{Fault, Told, of_operation};
use crate::resolve::value_errors::of_functions;
use crate::type_words::{CAST_ONE_SIDE, NO_FUNCTION, NO_OPERATOR, sql_types};

/// Where a subquery cannot stand, a column can.
pub(crate) const NAME_IT: &str =
    "Compute it in a derived table, as in FROM (SELECT *, .. AS c FROM t) AS t, and write the column c here.";

/// What [`in_words`](crate::resolve::value_errors::in_words) and
/// [`convert`](crate::functions::input::convert) say of values.
const VALUE_ERRORS: [&str; 4] = ["invalid input syntax", "out of range", "field overflow", "value too long"];

/// What a function of ours says of the types of its arguments, which DataFusion puts into a message
/// of its own. Functions of arrays are told as the operators that users write.
fn of_coercion(told: &str) -> Option<SqlError> {
    let told = told.strip_prefix("Error during planning: ").unwrap_or(told);
    if let Some((matched, _)) = told.split_once(" cannot be matched") {
        return Some(SqlError::new(ErrorKind::Type, format!("{matched} cannot be matched")).with_hint(CAST_ONE_SIDE));
    }
    if told.starts_with("operator does not exist: ") {
        return operation_error(told.split(". No function matches").next().unwrap_or(told));
    }
    let end = told.find(" does not exist").or_else(|| told.find(" No function matches"))?;
    let what = &told[..end];
    let call = what.strip_prefix("function ")?;
    let (name, types) = call.strip_suffix(')')?.split_once('(')?;
    let message = match OPERATORS.iter().find(|(functions, _)| functions.contains(&name)) {
        Some((_, operator)) => {
            let (left, right) = types.split_once(", ")?;
            format!("operator does not exist: {left} {operator} {right}")
        }
        None if matches!(name, "jsonb_in" | "json_in") => {
            format!("cannot cast type {types} to {}", name.trim_end_matches("_in"))
        }
        None if matches!(name, "array_element" | "array_slice") => return Some(bad_subscript(types)),
        None if name == "similar_to_escape" => format!("operator does not exist: text ~ {types}"),
        None if name.starts_with("__") => format!("operator does not exist for types {types}"),
        None if name == "array_has" => {
            let (list, value) = types.split_once(", ")?;
            match list.strip_suffix("[]") {
                Some(element) => format!("operator does not exist: {value} = {element}"),
                None => {
                    let message = "op ANY/ALL (array) requires array on right side";
                    return Some(
                        SqlError::new(ErrorKind::Type, message)
                            .with_hint("Write x = ANY (ARRAY[a, b]), or x IN (a, b)."),
                    );
                }
            }
        }
        None => format!("function {name}({types}) does not exist"),
    };
    let hint = if message.starts_with("function ") { NO_FUNCTION } else { NO_OPERATOR };
    Some(SqlError::new(ErrorKind::Type, message).with_hint(hint))
}

/// Functions of ours that users write as operators.
const OPERATORS: [(&[&str], &str); 15] = [
    (&["array_has_any"], "&&"),
    (&["array_has_all"], "@>"),
    (&["__json_get", "__jsonb_get"], "->"),
    (&["__json_get_text", "__jsonb_get_text"], "->>"),
    (&["__json_path", "__jsonb_path"], "#>"),
    (&["__json_path_text", "__jsonb_path_text"], "#>>"),
    (&["__jsonb_concat"], "||"),
    (&["__jsonb_contains"], "@>"),
    (&["__jsonb_delete", "__jsonb_delete_all"], "-"),
    (&["__jsonb_delete_path"], "#-"),
    (&["__jsonb_exists"], "?"),
    (&["__jsonb_exists_any"], "?|"),
    (&["__jsonb_exists_all"], "?&"),
    (&["__jsonb_path_is_there"], "@?"),
    (&["__jsonb_path_holds"], "@@"),
];

/// Sorts a planner message into our kinds by its words.
pub(crate) fn from_message(message: &str) -> SqlError {
    let line = first_line(message);
    if let Some(rest) = line.strip_prefix("Invalid function '") {
        let name = rest.split('\'').next().unwrap_or(rest);
        return SqlError::new(ErrorKind::UnknownName, format!("function {name} does not exist"));
    }
    if let Some(table) = line.strip_prefix("Invalid qualifier ") {
        return SqlError::new(ErrorKind::UnknownName, format!("missing FROM-clause entry for table \"{table}\""));
    }
    if let Some((_, told)) = line.split_once("coercion failed with: ")
        && let Some(error) = of_coercion(told)
    {
        return error;
    }
    if let Some(error) = uncoerced(line) {
        return error;
    }
    if line.contains("No function matches") || line.contains("Function '") {
        let mut words = line.split('\'');
        let call = words.nth(1).unwrap_or(line);
        if let Some(types) = call.strip_prefix("array_element(").and_then(|rest| rest.strip_suffix(')')) {
            return bad_subscript(types);
        }
        return SqlError::new(ErrorKind::Type, format!("function {} does not take these arguments", sql_types(call)))
            .with_hint("Look at how many arguments it takes, and of which types: explicit type casts may help.");
    }
    if let Some(rest) = line.strip_prefix("Cannot create filter with non-boolean predicate ") {
        let is = rest.rsplit_once("returning ").map_or("", |(_, is)| is);
        return SqlError::new(ErrorKind::Type, format!("the condition is of type {}, not boolean", sql_types(is)))
            .with_hint("Compare it with a value, as in x <> 0.");
    }
    if let Some(rest) = line.split("Previous inputs were of type ").nth(1)
        && let Some((first, rest)) = rest.split_once(", but got incompatible type ")
    {
        let second = rest.split(" on column").next().unwrap_or(rest);
        let message = format!("UNION types {} and {} cannot be matched", sql_types(first), sql_types(second));
        return SqlError::new(ErrorKind::Type, message).with_hint(CAST_ONE_SIDE);
    }
    if let Some(error) = known_message(line) {
        return error;
    }
    if VALUE_ERRORS.iter().any(|words| line.contains(words)) {
        return SqlError::new(ErrorKind::Invalid, line);
    }
    if line.contains("subquery can only be used in") {
        return SqlError::unsupported("a subquery at this place", NAME_IT);
    }
    let lower = line.to_lowercase();
    let kind = if ["coerc", "cast", "common argument type", "boolean type", "data type", "type mismatch", "types"]
        .iter()
        .any(|word| lower.contains(word))
    {
        ErrorKind::Type
    } else if lower.contains("not supported") || lower.contains("unsupported") || lower.contains("not implemented") {
        ErrorKind::Unsupported
    } else {
        ErrorKind::Invalid
    };
    let error = SqlError::new(kind, sql_types(&lower_first(line)));
    if kind == ErrorKind::Type {
        return error.with_hint("Explicit type casts may help.");
    }
    if line.contains("must be in the GROUP BY") || line.contains("must appear in the GROUP BY") {
        return SqlError::new(ErrorKind::Invalid, sql_types(&grouping_message(line)))
            .with_hint("Add it to GROUP BY, or wrap it in an aggregate such as min().");
    }
    error
}

/// What a subscript is that is none, of an array or of another value.
fn bad_subscript(types: &str) -> SqlError {
    let is = sql_types(types.split(", ").next().unwrap_or(types));
    SqlError::new(
        ErrorKind::Type,
        match is.ends_with("[]") {
            true => "array subscript must have type integer".to_owned(),
            false => format!("cannot subscript type {is} because it does not support subscripting"),
        },
    )
}

/// The function that does not take a value of a type, where the library names its signatures.
fn uncoerced(line: &str) -> Option<SqlError> {
    let (_, rest) = line.split_once("to satisfy a call to '")?;
    let (name, rest) = rest.split_once('\'')?;
    let (_, rest) = rest.split_once("coercion from ")?;
    let (types, _) = rest.split_once(" to the signature")?;
    if name == "array_slice" {
        return Some(bad_subscript(types));
    }
    let message = match name {
        // (ALL is a comparison with each element, which are counted.)
        "cardinality" => "op ANY/ALL (array) requires array on right side".to_owned(),
        name => format!("function {name}({}) does not exist", sql_types(types)),
    };
    Some(SqlError::new(ErrorKind::Type, message).with_hint(NO_FUNCTION))
}

/// The error of a message about operands, types or places.
pub fn operation_error(line: &str) -> Option<SqlError> {
    let Told { fault, message, hint } = of_operation(line)?;
    let kind = match fault {
        Fault::Place => ErrorKind::Invalid,
        Fault::Types => ErrorKind::Type,
        Fault::Name => ErrorKind::UnknownName,
    };
    Some(SqlError::new(kind, message).with_hint(hint))
}

/// Parts of a time that `extract` gives.
const UNITS: &str = "Units are century, day, decade, dow, doy, epoch, hour, isodow, isoyear, microseconds, millennium, \
                     milliseconds, minute, month, quarter, second, week and year.";

/// Messages of the planner for which PostgreSQL has other words.
pub(crate) fn known_message(line: &str) -> Option<SqlError> {
    operation_error(line).or_else(|| function_error(line)).or_else(|| clause_error(line))
}

/// What functions and operators do not take.
fn function_error(line: &str) -> Option<SqlError> {
    let typed = |message: String| SqlError::new(ErrorKind::Type, message);
    if line.contains("unique expression names") {
        let what = "two expressions of one list that differ in a cast only";
        return Some(SqlError::unsupported(what, "Cast in a subquery, SELECT a::text AS b, and use its columns."));
    }
    if let Some(operation) = unknown_operation(line) {
        return Some(typed(format!("operator does not exist: {}", sql_types(operation))).with_hint(NO_OPERATOR));
    }
    if let Some(words) = of_functions(line) {
        let hint = match words.as_str() {
            words if words.starts_with("unit ") => UNITS,
            words if words.starts_with("generate_series") => "Choose a nearer end, or a larger step.",
            _ => "",
        };
        return Some(SqlError::new(ErrorKind::Invalid, words).with_hint(hint));
    }
    if line.starts_with("Inconsistent data length across values list") {
        return Some(SqlError::new(ErrorKind::Syntax, "VALUES lists must all be the same length"));
    }
    if line.contains("nsupported binary operator: PGOverlap") {
        let hint = "Both sides are arrays of one type: ARRAY[a] && b.";
        return Some(typed("operator && takes two arrays".into()).with_hint(hint));
    }
    if line.contains("date_part requires non-empty constant string") {
        return Some(SqlError::unsupported("date_part() of a part that is not written out", UNITS));
    }
    if line.starts_with("unnest() can only be applied to array") {
        return Some(
            SqlError::new(ErrorKind::UnknownName, "function unnest takes an array, and no other value")
                .with_hint("Write unnest(ARRAY[1, 2])."),
        );
    }
    if lower_first(line).starts_with("cannot access field at argument") {
        return Some(
            typed("the elements of an array are numbered, not named".into())
                .with_hint("Write a whole number: a[1] is the first element."),
        );
    }
    None
}

/// What clauses of a query, and statements in it, do not take.
fn clause_error(line: &str) -> Option<SqlError> {
    position_error(line).or_else(|| aggregate_error(line)).or_else(|| place_error(line))
}

/// Numbers and positions that clauses do not take.
fn position_error(line: &str) -> Option<SqlError> {
    let typed = |message: String| SqlError::new(ErrorKind::Type, message);
    if let Some((clause, is)) = line
        .strip_prefix("Expected ")
        .or(line.strip_prefix("expected "))
        .and_then(|rest| rest.split_once(" to be an integer or null, but got "))
    {
        return Some(
            typed(format!("argument of {clause} must be of type bigint, not {}", sql_types(is)))
                .with_hint(format!("Write {clause} with a number from zero on.")),
        );
    }
    if let Some(rest) = line.strip_prefix("Order by column out of bounds, specified: ") {
        let position = rest.split(',').next().unwrap_or_default();
        return Some(
            SqlError::new(ErrorKind::Invalid, format!("ORDER BY position {position} is not in select list"))
                .with_hint("Positions count the columns of the select list, from 1."),
        );
    }
    if let Some(rest) = lower_first(line).strip_prefix("cannot find column with position ") {
        let position = rest.split(' ').next().unwrap_or_default();
        return Some(
            SqlError::new(ErrorKind::Invalid, format!("GROUP BY position {position} is not in select list"))
                .with_hint("Positions count the columns of the select list, from 1."),
        );
    }
    if line.starts_with("LIMIT must be") || line.starts_with("OFFSET must be") {
        let word = line.split(' ').next().unwrap_or_default();
        return Some(
            SqlError::new(ErrorKind::Invalid, format!("{word} must not be negative"))
                .with_hint(format!("Write {word} with a number from zero on.")),
        );
    }
    None
}

/// Aggregates and windows at wrong places.
fn aggregate_error(line: &str) -> Option<SqlError> {
    if line.contains("to grouping function is not in grouping columns") {
        let message = "arguments to GROUPING must be grouping expressions of the associated query level";
        return Some(SqlError::new(ErrorKind::Invalid, message));
    }
    if line.contains("frame offsets for ROWS / GROUPS must be non negative") {
        let message = "frame starting offset must not be negative";
        return Some(SqlError::new(ErrorKind::Invalid, message).with_hint("Write a number from zero on."));
    }
    if line.starts_with("OVER and WITHIN GROUP clause cannot be used together") {
        let hint = "Aggregate in a derived table, with GROUP BY, and join with it.";
        return Some(SqlError::unsupported("OVER of an aggregate WITHIN GROUP", hint));
    }
    if line.to_lowercase().starts_with("aggregate functions are not allowed in the where clause") {
        let hint = "Put the condition into HAVING, or aggregate in a derived table.";
        return Some(SqlError::new(ErrorKind::Invalid, "aggregate functions are not allowed in WHERE").with_hint(hint));
    }
    if line.to_lowercase().starts_with("aggregate function calls cannot be nested") {
        return Some(SqlError::new(ErrorKind::Invalid, "aggregate function calls cannot be nested").with_hint(
            "Aggregate in a derived table: SELECT max(n) FROM (SELECT count(*) AS n FROM t GROUP BY k) AS c.",
        ));
    }
    None
}

/// Values, subqueries and changes at wrong places.
fn place_error(line: &str) -> Option<SqlError> {
    let typed = |message: String| SqlError::new(ErrorKind::Type, message);
    if line.contains("requires a boolean expression, got ") {
        let is = line.rsplit_once("got ").map_or("", |(_, is)| is);
        return Some(
            typed(format!("argument of NOT must be boolean, not {}", sql_types(is)))
                .with_hint("Compare it with a value, as in x <> 0."),
        );
    }
    if line.starts_with("Too many columns! The subquery should only return one column") {
        return Some(
            SqlError::new(ErrorKind::Invalid, "subquery must return only one column")
                .with_hint("Select one column, or compare rows: (a, b) = (SELECT x, y ..)."),
        );
    }
    let changes = ["Query DELETE", "Query INSERT", "Query UPDATE", "Query MERGE"];
    if changes.iter().any(|change| line.starts_with(change)) && line.contains("not implemented") {
        return Some(SqlError::unsupported(
            if line.starts_with("Query MERGE") { "MERGE in WITH" } else { "a statement in WITH that changes rows" },
            "Run the change by itself, with RETURNING where its rows are wanted, and query then.",
        ));
    }
    if let Some((function, _)) = line.split_once(" not supported for Null") {
        let function = function.rsplit(' ').next().unwrap_or(function).to_lowercase();
        return Some(
            typed(format!("function {function}(unknown) is not unique"))
                .with_hint(format!("Say the type: {function}(NULL::bigint).")),
        );
    }
    if line.contains("nterval argument. Expected") {
        return Some(
            SqlError::new(ErrorKind::Syntax, "syntax error at or near \"interval\"")
                .with_hint("An interval is a literal, interval '1 day'; of a number, write x * interval '1 day'."),
        );
    }
    if line.contains("nnest should be rewritten") {
        let hint = "Unnest in a derived table: FROM (SELECT *, unnest(a) AS e FROM t) AS t.";
        return Some(SqlError::unsupported("a function of rows here", hint));
    }
    if line.contains("Struct(") {
        return Some(SqlError::unsupported(
            "this use of a row value",
            "Write out the columns: compare (a, b) = (c, d), and cast them one by one.",
        ));
    }
    None
}

/// The operands and the operator of which the planner's message says that they do not fit.
fn unknown_operation(line: &str) -> Option<&str> {
    let lower = line.get(..1).map(str::to_lowercase)? + line.get(1..)?;
    let rest = |words: &str| lower.starts_with(words).then(|| &line[words.len()..]);
    if let Some(operation) = rest("cannot coerce arithmetic expression ") {
        return Some(operation.trim_end_matches(" to valid types"));
    }
    if let Some(operation) = rest("cannot infer common string type for string concat operation ") {
        return Some(operation);
    }
    let operation = rest("cannot get result type for arithmetic operation ")
        .or_else(|| rest("cannot get result type for temporal operation "))?;
    Some(operation.split(": ").next().unwrap_or(operation))
}

fn grouping_message(line: &str) -> String {
    match line.split('"').nth(1) {
        Some(name) => format!("column \"{name}\" must appear in GROUP BY or be used in an aggregate"),
        None => lower_first(line),
    }
}

pub(crate) fn first_line(message: &str) -> &str {
    message.lines().next().unwrap_or(message)
}

pub(crate) fn lower_first(message: &str) -> String {
    let mut chars = message.chars();
    match (chars.next(), chars.clone().next()) {
        (Some(first), Some(second)) if first.is_uppercase() && !second.is_uppercase() => {
            first.to_lowercase().chain(chars).collect()
        }
        _ => message.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_have_names_of_sql_and_literals_none() {
        assert_eq!(sql_types("t.a > Int64(1) and Float64(1.5)"), "t.a > 1 and 1.5");
        assert_eq!(sql_types("f(Int64, Utf8View)"), "f(bigint, text)");
        assert_eq!(sql_types("UInt64(1)"), "bigint(1)");
        assert_eq!(sql_types("Int64(a) then Int64(2"), "bigint(a) then bigint(2");
    }
}
