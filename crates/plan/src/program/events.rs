//! Nodes over times as parts of a `SELECT`: sessions and as-of joins.

use anabranch_spec::asof::Strategy;
use arrow::datatypes::{DataType, TimeUnit};
use datafusion_common::DFSchema;

use super::block::{Block, identifier};
use super::query::names;
use crate::expressions::{BoundText, exact_type};
use crate::{Node, Nulls, Plan};

/// Binds more tightly than a comparison.
const OPERAND: u8 = 21;

/// Sessions of the rows of a block.
///
/// # Errors
/// Words for what has no text.
pub(super) fn session(plan: &Plan, block: &Block, alias: &str) -> Result<Block, String> {
    let Node::Session { input, session } = &plan.node else { return Err("what are no sessions".to_owned()) };
    let distance = distance(session.gap, type_at(&input.schema, session.time))?;
    let columns: Vec<String> = block.names.iter().map(|name| identifier(name)).collect();
    let partition: Vec<&str> = session.partition.iter().map(|at| columns[*at].as_str()).collect();
    let partition = if partition.is_empty() { "," } else { &format!(" PARTITION BY {},", partition.join(", ")) };
    let from = format!("SESSION(({}){partition} {}, {distance}) AS {alias}", block.text(), columns[session.time]);
    let names = names(&plan.schema);
    let mut texts: Vec<BoundText> =
        columns.iter().map(|column| BoundText::tight(format!("{alias}.{column}"))).collect();
    // (A session's window ends a gap behind its last row.)
    let time_type = exact_type(type_at(&input.schema, session.time));
    texts.push(BoundText::tight(format!("{alias}.window_start::{time_type}")));
    texts.push(BoundText::tight(format!("({alias}.window_end - {distance})::{time_type}")));
    Ok(Block { columns: texts, ..Block::of_table(from, alias.to_owned(), names) })
}

/// An as-of join of two tables.
///
/// # Errors
/// Words for what has no text.
pub(super) fn asof(plan: &Plan, left: Block, right: Block, aliases: [&str; 2]) -> Result<Block, String> {
    let Node::Asof { left: left_plan, asof, .. } = &plan.node else { return Err("what is no as-of join".to_owned()) };
    let bare = |block: Block, alias: &str| if block.is_table() { block } else { block.nested(alias) };
    let (left, right) = (bare(left, aliases[0]), bare(right, aliases[1]));
    let equals = if asof.nulls == Nulls::Equal { "IS NOT DISTINCT FROM" } else { "=" };
    let of = |block: &Block, at: usize| block.columns[at].within(OPERAND);
    let keys = asof.left_key.iter().zip(&asof.right_key);
    let mut on: Vec<String> = keys.map(|(l, r)| format!("{} {equals} {}", of(&left, *l), of(&right, *r))).collect();
    let (ours, theirs) = (of(&left, asof.left_time), of(&right, asof.right_time));
    let (sign, later, earlier) = match asof.strategy {
        Strategy::Backward => (">", &ours, &theirs),
        Strategy::Forward => ("<", &theirs, &ours),
        Strategy::Nearest => return Err("an as-of join to the nearest row".to_owned()),
    };
    on.push(format!("{ours} {sign}{} {theirs}", if asof.exact { "=" } else { "" }));
    if let Some(tolerance) = asof.tolerance {
        let distance = distance(tolerance, type_at(&left_plan.schema, asof.left_time))?;
        on.push(format!("{later} <= {earlier} + {distance}"));
    }
    let word = if asof.outer { "ASOF LEFT JOIN" } else { "ASOF JOIN" };
    let from = format!("{} {word} {} ON {}", left.from, right.from, on.join(" AND "));
    let columns = left.columns.iter().chain(&right.columns).cloned().collect();
    Ok(Block { from, table: None, columns, names: names(&plan.schema), ..left })
}

fn type_at(schema: &DFSchema, at: usize) -> &DataType {
    schema.field(at).data_type()
}

/// So many units of a type of times, as SQL reads them.
pub(super) fn distance(units: u64, data_type: &DataType) -> Result<String, String> {
    match data_type {
        DataType::Timestamp(TimeUnit::Microsecond, _) => Ok(format!("INTERVAL '{units} microseconds'")),
        DataType::Date32 => Ok(format!("INTERVAL '{units} days'")),
        data_type if data_type.is_integer() => Ok(units.to_string()),
        data_type => Err(format!("distances of {data_type}")),
    }
}
