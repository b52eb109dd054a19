//! What the planner says of operators, casts and places that do not fit, in PostgreSQL's words.

use crate::type_words::{CAST_ONE_SIDE, NO_OPERATOR, sql_types};

/// The hint of a message about types.
fn hint_of(message: &str) -> &'static str {
    if message.starts_with("operator does not exist") {
        return NO_OPERATOR;
    }
    if message.ends_with("cannot be matched") { CAST_ONE_SIDE } else { "Explicit type casts may help." }
}

/// Operators that are written as words.
const PATTERN_OPERATORS: [(&str, &str); 3] = [("LIKE", "~~"), ("ILIKE", "~~*"), ("SIMILAR TO", "~")];

/// What does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Something stands where it cannot, or is of another number.
    Place,
    /// Types of operands and casts.
    Types,
    /// A name.
    Name,
}

/// What is said of it, and the way out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    pub fault: Fault,
    pub message: String,
    pub hint: &'static str,
}

/// What a message about operands, types or places says.
pub(crate) fn of_operation(line: &str) -> Option<Told> {
    of_place(line).or_else(|| of_types(line)).or_else(|| of_columns(line))
}

/// What stands where it cannot.
fn of_place(line: &str) -> Option<Told> {
    let invalid =
        |message: &str, hint: &'static str| Some(Told { fault: Fault::Place, message: message.to_owned(), hint });
    if line.contains("does not support logical expression AggregateFunction") {
        let hint = "Aggregate in a derived table: FROM (SELECT k, count(*) AS n FROM t GROUP BY k) AS c.";
        return invalid("aggregate functions are not allowed here", hint);
    }
    if line.contains("does not support logical expression WindowFunction") {
        let hint = "Compute it in a derived table: FROM (SELECT *, row_number() OVER () AS n FROM t) AS c.";
        return invalid("window functions are not allowed here", hint);
    }
    if line.contains("does not support logical expression Wildcard") {
        return invalid("* stands for columns in a select list and in count(*) only", "Name the columns.");
    }
    if line.contains("ggregate function calls cannot contain window function calls") {
        let hint = "Compute the window function in a derived table.";
        return invalid("aggregate function calls cannot contain window function calls", hint);
    }
    if line.starts_with("expecting number or byte length") || line.starts_with("Expecting number or byte length") {
        return invalid("the size of a sample is a number", "Write TABLESAMPLE BERNOULLI (10): of a hundred rows ten.");
    }
    None
}

/// Operands and casts.
fn of_types(line: &str) -> Option<Told> {
    let typed =
        |message: String| Some(Told { fault: Fault::Types, hint: hint_of(&message), message: sql_types(&message) });
    let behind = |words: &str| line.find(words).map(|at| &line[at + words.len()..]);
    if line.starts_with("operator does not exist: ") || line.starts_with("cannot cast type ") {
        return typed(line.to_owned());
    }
    if let Some((from, to)) = behind("nsupported CAST from ").and_then(|rest| rest.split_once(" to ")) {
        return typed(format!("cannot cast type {from} to {to}"));
    }
    if let Some(operands) = behind("common argument type for logical boolean operation ")
        && let Some((operator, (left, right))) =
            ["AND", "OR"].iter().find_map(|word| Some((*word, operands.split_once(&format!(" {word} "))?)))
    {
        let is = if left == "Boolean" { right } else { left };
        return typed(format!("argument of {operator} must be type boolean, not type {is}"));
    }
    for words in ["common argument type for comparison operation ", "common argument type for regex operation "] {
        if let Some(operation) = behind(words) {
            return match operation.strip_suffix(" IS DISTINCT FROM Boolean") {
                Some(is) => typed(format!("argument of IS TRUE must be type boolean, not type {is}")),
                None => typed(format!("operator does not exist: {operation}")),
            };
        }
    }
    if let Some((left, right)) = behind("nvalid string/binary operation: ").and_then(|rest| rest.split_once(" LIKE ")) {
        return typed(format!("operator does not exist: {left} ~~ {right}"));
    }
    // (Such as `integer and text in ILIKE`.)
    if let Some((left, rest)) = behind("common type to coerce ").and_then(|rest| rest.split_once(" and "))
        && let Some((right, name)) = rest.trim_end_matches(" expression").split_once(" in ")
        && let Some((_, operator)) = PATTERN_OPERATORS.iter().find(|(known, _)| *known == name)
    {
        return typed(format!("operator does not exist: {left} {operator} {right}"));
    }
    if let Some((from, to)) = behind("annot automatically convert ").and_then(|rest| rest.split_once(" to ")) {
        return typed(format!("a value of type {from} does not become one of type {to} without a cast"));
    }
    if let Some(is) = behind("Cannot run range queries on datatype: ") {
        let is = is.split(". ").next().unwrap_or(is);
        let message = format!("RANGE with offset PRECEDING or FOLLOWING is not there for column type {is}");
        let hint = "Order by a number or a time, or write ROWS or GROUPS.";
        return typed(message).map(|told| Told { hint, ..told });
    }
    if let Some((was, rest)) =
        behind("nconsistent data type across values list at ").and_then(|rest| rest.split_once(" but found "))
    {
        let was = was.rsplit_once("Was ").map_or(was, |(_, was)| was);
        return typed(format!("VALUES types {was} and {rest} cannot be matched"));
    }
    if line.contains("nconsistent metadata across values list") {
        return typed("VALUES types of one column cannot be matched".into());
    }
    if line.contains("Failed due to a difference in schemas") {
        return typed("the types of the arguments cannot be matched".into());
    }
    let operators = [("AtArrow", "@>"), ("ArrowAt", "<@")];
    if let Some((_, operator)) = operators.iter().find(|(name, _)| line.contains(&format!("inary operator '{name}'"))) {
        return typed(format!("operator {operator} takes two arrays, or two jsonb"));
    }
    if line.contains("nsupported binary operator: Overlaps") {
        return typed("OVERLAPS takes two pairs of times: (a, b) OVERLAPS (c, d)".into());
    }
    if line.contains("nsupported SQL unary operator PGPostfixFactorial") {
        return typed("operator ! has nothing on its right: write factorial(n)".into());
    }
    if line.contains("nsupported SQL unary operator Hash") {
        return typed("operator # has nothing on its left".into());
    }
    None
}

/// Columns and elements that are not there.
fn of_columns(line: &str) -> Option<Told> {
    let behind = |words: &str| line.find(words).map(|at| &line[at + words.len()..]);
    let counted = behind("ource table contains ")
        .and_then(|rest| rest.split_once(" columns but only "))
        .and_then(|(has, rest)| Some((has, rest.split_once(" names given")?.0)));
    if let Some((has, given)) = counted {
        let message = format!("the table has {has} columns available but {given} columns specified");
        return Some(Told { fault: Fault::Place, message, hint: "Give as many names as there are columns." });
    }
    if let Some(field) = behind("ield ").and_then(|rest| rest.strip_suffix(" not found in struct")) {
        let message = format!("could not identify column \"{field}\" in record data type");
        return Some(Told { fault: Fault::Name, message, hint: "Fields of ROW(..) are called c0, c1, .." });
    }
    if line.contains("array_repeat: offset") {
        let message = "array_fill has too many elements".to_owned();
        return Some(Told { fault: Fault::Place, message, hint: "Take fewer." });
    }
    None
}

#[cfg(test)]
mod tests {
    use super::of_operation;

    #[test]
    fn no_word_of_the_library_is_left() {
        for (line, told) in [
            ("unsupported CAST from BinaryView to Int32", "cannot cast type bytea to integer"),
            (
                "Cannot infer common argument type for comparison operation Int64 IS DISTINCT FROM Boolean",
                "argument of IS TRUE must be type boolean, not type bigint",
            ),
            (
                "Inconsistent data type across values list at row 1 column 0. Was Date32 but found Int64",
                "VALUES types date and bigint cannot be matched",
            ),
            (
                "Source table contains 1 columns but only 2 names given as column alias",
                "the table has 1 columns available but 2 columns specified",
            ),
            ("Field f1 not found in struct", "could not identify column \"f1\" in record data type"),
            ("Invalid string/binary operation: Int64 LIKE Int64", "operator does not exist: bigint ~~ bigint"),
            (
                "There isn't a common type to coerce Int32 and Utf8 in ILIKE expression",
                "operator does not exist: integer ~~* text",
            ),
        ] {
            assert_eq!(of_operation(line).map(|told| told.message).as_deref(), Some(told));
        }
        assert!(of_operation("division by zero").is_none());
    }
}
