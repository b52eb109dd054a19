//! Row patterns as parts of a `SELECT`: `MATCH_RECOGNIZE`, written anew from its plan.
//!
//! What the plan took apart is put together: cells, which conditions and measures read, become
//! columns of variables, calls and aggregates again. Partition, order and arguments are columns of
//! the rows below. A match's measures are cells alone; what is computed of them stands above.

use anabranch_spec::recognize::{At, Cell, CellValue, End, Fold, Skip};
use datafusion_common::Column;

use super::block::{Block, identifier};
use super::events::distance;
use super::query::{direction, names};
use crate::expressions::{BoundText, ExpressionText, list};
use crate::recognize::Recognize;
use crate::{Node, Plan};

/// The matches in the rows of a block.
///
/// # Errors
/// Words for what has no text.
pub(super) fn recognize(plan: &Plan, block: Block, aliases: [&str; 2]) -> Result<Block, String> {
    let Node::Recognize { input, recognize } = &plan.node else { return Err("what is no row pattern".to_owned()) };
    let is_plain = |name: &str| identifier(name) == name;
    if recognize.variables.iter().any(|variable| !is_plain(&variable.name)) {
        return Err("a row pattern whose variables have names in quotes".to_owned());
    }
    let clause = Clause { recognize, columns: block.names.iter().map(|name| identifier(name)).collect() };
    let measures = clause.measures(plan);
    let mut parts = Vec::new();
    let partition: Vec<String> = recognize.partition.iter().map(|at| clause.columns[*at].clone()).collect();
    if !partition.is_empty() {
        parts.push(format!("PARTITION BY {}", list(partition.iter().cloned())));
    }
    let order = recognize.order.iter().map(|key| format!("{}{}", clause.columns[key.column], direction(key)));
    parts.push(format!("ORDER BY {}", list(order)));
    if !measures.is_empty() {
        let texts = recognize.output.iter().zip(&measures);
        parts.push(format!("MEASURES {}", list(texts.map(|(cell, name)| format!("{} AS {name}", clause.cell(cell))))));
    }
    parts.push(format!("AFTER MATCH SKIP {}", clause.skip()));
    parts.push(format!("PATTERN ({})", recognize.pattern_text()));
    if let Some(units) = recognize.within {
        let first = recognize.order.first().ok_or("a span of rows without an order")?;
        parts.push(format!("WITHIN {}", distance(units, input.schema.field(first.column).data_type())?));
    }
    let defines: Vec<String> = clause.defines();
    if !defines.is_empty() {
        parts.push(format!("DEFINE {}", defines.join(", ")));
    }
    let from = format!("({}) AS {} MATCH_RECOGNIZE ({}) AS {}", block.text(), aliases[0], parts.join(" "), aliases[1]);
    let columns = partition.iter().chain(&measures).map(|name| BoundText::tight(format!("{}.{name}", aliases[1])));
    Ok(Block { columns: columns.collect(), ..Block::of_table(from, aliases[1].to_owned(), names(&plan.schema)) })
}

/// A clause in the making.
struct Clause<'p> {
    recognize: &'p Recognize,
    /// Names of the columns of rows, as SQL reads them.
    columns: Vec<String>,
}

impl Clause<'_> {
    /// Names of measures, which are none of the partition's.
    fn measures(&self, plan: &Plan) -> Vec<String> {
        let n_keys = self.recognize.partition.len();
        let taken: Vec<&String> = self.recognize.partition.iter().map(|at| &self.columns[*at]).collect();
        let mut measures: Vec<String> = Vec::new();
        for name in &names(&plan.schema)[n_keys..] {
            let mut name = name.clone();
            while taken.iter().any(|taken| **taken == identifier(&name)) || measures.contains(&identifier(&name)) {
                name.push('_');
            }
            measures.push(identifier(&name));
        }
        measures
    }

    fn cell(&self, cell: &Cell) -> String {
        match &cell.value {
            CellValue::Column { column, at } => self.value(*column, at),
            CellValue::Classifier => "CLASSIFIER()".to_owned(),
            CellValue::MatchNumber => "MATCH_NUMBER()".to_owned(),
            CellValue::Fold { function, column, variable } => {
                let function = match function {
                    Fold::Count => "COUNT",
                    Fold::Sum => "SUM",
                    Fold::Min => "MIN",
                    Fold::Max => "MAX",
                };
                format!("{function}({})", self.of(column.map_or("*", |at| &self.columns[at]), *variable))
            }
        }
    }

    /// A column of a row.
    fn value(&self, column: usize, at: &At) -> String {
        let name = self.of(&self.columns[column], at.variable);
        let row = match (at.end, at.skipped) {
            (End::Last, 0) => name,
            (End::First, 0) => format!("FIRST({name})"),
            (End::Last, skipped) => format!("LAST({name}, {skipped})"),
            (End::First, skipped) => format!("FIRST({name}, {skipped})"),
        };
        match at.offset {
            0 => row,
            offset if offset < 0 => format!("PREV({row}, {})", offset.unsigned_abs()),
            offset => format!("NEXT({row}, {offset})"),
        }
    }

    /// A column of the rows that were taken for a variable.
    fn of(&self, column: &str, variable: Option<usize>) -> String {
        match variable {
            Some(variable) => format!("{}.{column}", self.recognize.variables[variable].name),
            None => column.to_owned(),
        }
    }

    fn skip(&self) -> String {
        let name = |variable: usize| &self.recognize.variables[variable].name;
        match self.recognize.skip {
            Skip::PastLastRow => "PAST LAST ROW".to_owned(),
            Skip::ToNextRow => "TO NEXT ROW".to_owned(),
            Skip::ToFirst(variable) => format!("TO FIRST {}", name(variable)),
            Skip::ToLast(variable) => format!("TO LAST {}", name(variable)),
        }
    }

    /// The conditions of variables.
    fn defines(&self) -> Vec<String> {
        let column = |column: &Column| {
            let cell = self.recognize.cells.iter().find(|cell| cell.name == column.name);
            BoundText::tight(cell.map_or_else(|| identifier(&column.name), |cell| self.cell(cell)))
        };
        let texts = ExpressionText { column: &column, is_exact: true };
        let conditions = self.recognize.variables.iter().filter_map(|variable| {
            variable.condition.as_ref().map(|condition| format!("{} AS {}", variable.name, texts.write(condition)))
        });
        conditions.collect()
    }
}
