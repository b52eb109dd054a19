//! Nodes of two inputs as parts of a `SELECT`.

use super::block::{Block, identifier};
use super::query::names;
use crate::expressions::{BoundText, ExpressionText, list};
use crate::{JoinKind, Node, Nulls, Plan, SetOperation};
use datafusion_common::Column;

/// Binds more tightly than a comparison.
const OPERAND: u8 = 21;

/// Conditions joined by AND.
const CONDITION: u8 = 15;

/// A join of two blocks.
///
/// # Errors
/// Words for what has no text.
pub(super) fn join(plan: &Plan, left: Block, right: Block, aliases: [&str; 2]) -> Result<Block, String> {
    let Node::Join { kind, left: left_plan, right: right_plan, left_key, right_key, nulls, residual, output } =
        &plan.node
    else {
        return Err("what is no join".to_owned());
    };
    let keeps_filter = !matches!(kind, JoinKind::Right | JoinKind::Full);
    let left = open(left, keeps_filter, aliases[0]);
    let looks_up =
        matches!(kind, JoinKind::LeftSemi | JoinKind::LeftAnti | JoinKind::LeftAntiNullAware | JoinKind::LeftMark);
    // (What is joined from the right is one table; what is looked up stands in a query of its own.)
    let right = match looks_up {
        true => open(right, true, aliases[1]),
        false if right.is_table() => right,
        false => right.nested(aliases[1]),
    };
    let equals = if *nulls == Nulls::Equal { "IS NOT DISTINCT FROM" } else { "=" };
    let pairs = left_key.iter().zip(right_key);
    let mut on: Vec<String> = pairs
        .map(|(l, r)| format!("{} {equals} {}", left.columns[*l].within(OPERAND), right.columns[*r].within(OPERAND)))
        .collect();
    if let Some(residual) = residual {
        let column = |column: &Column| {
            let is_left = column.relation.as_ref().is_some_and(|side| side.table() == "left");
            let (schema, columns) =
                if is_left { (&left_plan.schema, &left.columns) } else { (&right_plan.schema, &right.columns) };
            let at = schema.index_of_column_by_name(None, &column.name);
            at.map_or_else(|| BoundText::tight(column.name.clone()), |at| columns[at].clone())
        };
        on.push(ExpressionText { column: &column, is_exact: true }.bound(residual).within(CONDITION));
    }
    let width = left_plan.schema.fields().len();
    let names = names(&plan.schema);
    if !looks_up {
        let word = match kind {
            JoinKind::Inner => "JOIN",
            JoinKind::Left => "LEFT JOIN",
            JoinKind::Right => "RIGHT JOIN",
            _ => "FULL JOIN",
        };
        let from = match on.is_empty() {
            true if *kind == JoinKind::Inner => format!("{} CROSS JOIN {}", left.from, right.from),
            true => format!("{} {word} {} ON true", left.from, right.from),
            false => format!("{} {word} {} ON {}", left.from, right.from, on.join(" AND ")),
        };
        let column = |at: &usize| match *at < width {
            true => left.columns[*at].clone(),
            false => right.columns[*at - width].clone(),
        };
        return Ok(Block { from, table: None, columns: output.iter().map(column).collect(), names, ..left });
    }
    let conditions = list_and(right.filter.iter().cloned().chain(on.clone()));
    let exists = format!("EXISTS (SELECT 1 FROM {}{conditions})", right.from);
    let mut block = left;
    match kind {
        JoinKind::LeftSemi => block.filter.push(exists.clone()),
        JoinKind::LeftAnti => block.filter.push(format!("NOT {exists}")),
        JoinKind::LeftAntiNullAware => {
            let ([l], [r], None) = (left_key.as_slice(), right_key.as_slice(), residual) else {
                return Err("NOT IN of several columns".to_owned());
            };
            let filter = list_and(right.filter.iter().cloned());
            let (ours, theirs) = (block.columns[*l].within(OPERAND), &right.columns[*r].text);
            block.filter.push(format!("{ours} NOT IN (SELECT {theirs} FROM {}{filter})", right.from));
        }
        _ => {}
    }
    let column = |at: &usize| match *at < width {
        true => block.columns[*at].clone(),
        false => BoundText::tight(exists.clone()),
    };
    Ok(Block { columns: output.iter().map(column).collect(), names, ..block })
}

/// A block whose FROM another table can be joined to.
fn open(block: Block, keeps_filter: bool, alias: &str) -> Block {
    match block.is_rows() && (keeps_filter || block.filter.is_empty()) {
        true => block,
        false => block.nested(alias),
    }
}

fn list_and(conditions: impl Iterator<Item = String>) -> String {
    let conditions: Vec<String> = conditions.collect();
    if conditions.is_empty() { String::new() } else { format!(" WHERE {}", conditions.join(" AND ")) }
}

/// A set operation of two blocks.
pub(super) fn set_operation(plan: &Plan, operation: SetOperation, left: &Block, right: &Block, alias: &str) -> Block {
    let word = match operation {
        SetOperation::Except => "EXCEPT",
        SetOperation::ExceptAll => "EXCEPT ALL",
        SetOperation::Intersect => "INTERSECT",
        SetOperation::IntersectAll => "INTERSECT ALL",
    };
    combined(plan, word, &[left, right], alias)
}

/// The rows of several blocks.
pub(super) fn union(plan: &Plan, blocks: &[&Block], alias: &str) -> Block {
    combined(plan, "UNION ALL", blocks, alias)
}

fn combined(plan: &Plan, word: &str, blocks: &[&Block], alias: &str) -> Block {
    let names = names(&plan.schema);
    let parts = blocks.iter().map(|block| {
        let block = Block { names: names.clone(), ..(*block).clone() };
        if block.tail.is_empty() { block.text() } else { format!("({})", block.text()) }
    });
    let text = parts.collect::<Vec<_>>().join(&format!(" {word} "));
    Block::of_table(format!("({text}) AS {alias}"), alias.to_owned(), names)
}

/// Literal rows.
pub(super) fn values(plan: &Plan, rows: &[Vec<String>], types: &[String], alias: &str) -> Block {
    let mut names = names(&plan.schema);
    // (A table has a column.)
    let is_bare = names.is_empty();
    if is_bare {
        names.push("one".to_owned());
    }
    let row = |row: &Vec<String>| if is_bare { "(1)".to_owned() } else { format!("({})", row.join(", ")) };
    let columns = list(names.iter().map(|name| identifier(name)));
    let from = match rows.is_empty() {
        true => {
            let types = types.iter().map(String::as_str).chain(std::iter::repeat("integer"));
            let nulls = names.iter().zip(types).map(|(name, of)| format!("null::{of} AS {}", identifier(name)));
            format!("(SELECT {} WHERE false) AS {alias}", list(nulls))
        }
        false => format!("(VALUES {}) AS {alias}({columns})", list(rows.iter().map(row))),
    };
    Block::of_table(from, alias.to_owned(), names)
}
