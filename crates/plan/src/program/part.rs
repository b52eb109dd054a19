//! A query over each shard that is not a step yet.

use super::block::{Block, identifier, renumbered, table};
use crate::expressions::BoundText;
use crate::placement::PlanPlacement;

/// A query over each shard that is not a step yet.
#[derive(Clone)]
pub(super) struct Part {
    pub block: Block,
    /// Steps that it reads, by the numbers of tables.
    pub inputs: Vec<usize>,
    pub place: PlanPlacement,
    /// About how many rows.
    pub rows: f64,
}

/// Whether ORDER BY, without the table's name, would read a column as another one's new name.
pub(super) fn orders_by_a_name(block: &Block) -> bool {
    block.columns.iter().zip(&block.names).any(|(text, name)| {
        let own = format!("{}.{}", table(0), identifier(name));
        text.text != own && block.tail.contains(&own)
    })
}

/// A part that is all of a step.
pub(super) fn leaf(step: usize, names: Vec<String>, place: PlanPlacement, rows: f64) -> Part {
    Part { block: Block::of_table(table(0), table(0), names), inputs: vec![step], place, rows }
}

/// The part as a second one, beside so many tables.
pub(super) fn aside(part: &Part, tables: usize) -> Part {
    let text = |text: &String| renumbered(text, tables);
    let block = Block {
        from: text(&part.block.from),
        table: part.block.table.as_ref().map(text),
        columns: part.block.columns.iter().map(|bound| BoundText { text: text(&bound.text), ..*bound }).collect(),
        filter: part.block.filter.iter().map(text).collect(),
        group: part.block.group.as_ref().map(|group| group.iter().map(text).collect()),
        having: part.block.having.iter().map(text).collect(),
        tail: text(&part.block.tail),
        ..part.block.clone()
    };
    Part { block, ..part.clone() }
}
