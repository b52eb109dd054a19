//! `MATCH_RECOGNIZE`: the partition, the order and the arguments of cells become plain columns;
//! conditions are taken out of their query.

use std::sync::Arc;

use anabranch_plan::asof::is_instant;
use anabranch_plan::recognize::{Cell, CellValue, Recognize, Variable};
use anabranch_plan::{Node, Plan, SortKey};
use arrow::datatypes::DataType;
use datafusion_common::DFSchema;
use datafusion_expr::{Expr, ExprSchemable, cast};

use super::Translator;
use super::asof::ticks;
use super::expr::{column, resolve, substitute};
use super::schema::{drafts, schema};
use super::stage::with_columns;
use crate::error::{ErrorKind, Result, SqlError};
use crate::passes::plan::recognize::{RecognizeCell as CellDraft, RecognizeNode};
use crate::resolve::type_names::sql_name;

impl Translator {
    pub(super) fn recognize(&self, node: &RecognizeNode) -> Result<Arc<Plan>> {
        let from = node.input.schema();
        let input = self.node(&node.input)?;
        let mut exprs = Vec::new();
        for expr in node.partition.iter().chain(node.order.iter().map(|key| &key.expr)) {
            exprs.push(resolve(expr, from, &input.schema)?);
        }
        for cell in node.cells.iter().chain(&node.output) {
            exprs.extend(argument(cell, from, &input.schema)?);
        }
        let (input, columns) = with_columns(input, exprs)?;
        let mut columns = columns.into_iter();
        let partition: Vec<usize> = columns.by_ref().take(node.partition.len()).collect();
        let order: Vec<SortKey> = node
            .order
            .iter()
            .zip(columns.by_ref())
            .map(|(key, column)| SortKey { column, descending: !key.asc, nulls_first: key.nulls_first })
            .collect();
        let mut place = |cell: &CellDraft| placed(cell, &mut columns);
        let cells: Vec<Cell> = node.cells.iter().map(&mut place).collect::<Result<_>>()?;
        let output: Vec<Cell> = node.output.iter().map(&mut place).collect::<Result<_>>()?;

        let conditions = match &node.conditions {
            Some(conditions) => computed(&*self.node(conditions)?)?,
            None => vec![],
        };
        let variable = |(name, condition): &(String, Option<usize>)| Variable {
            name: name.clone(),
            condition: condition.and_then(|at| conditions.get(at).cloned()),
        };
        let within = match (&node.within, order.first()) {
            (Some(span), Some(key)) => Some(within(span, input.schema.field(key.column).data_type())?),
            _ => None,
        };
        let recognize = Recognize {
            order,
            pattern: node.pattern.clone(),
            variables: node.variables.iter().map(variable).collect(),
            skip: node.skip,
            within,
            cells,
            output,
            partition,
        };
        let all = drafts(&input.schema);
        let keys = recognize.partition.iter().map(|at| all[*at].clone());
        let cells = recognize.output.iter().map(|cell| (cell.name.clone(), cell.data_type.clone(), true));
        let schema = schema(keys.chain(cells).collect());
        Ok(Arc::new(Plan { node: Node::Recognize { input, recognize: Box::new(recognize) }, schema }))
    }
}

/// The argument of a cell, of the type that the cell wants.
fn argument(cell: &CellDraft, from: &DFSchema, to: &DFSchema) -> Result<Option<Expr>> {
    let Some(argument) = &cell.argument else { return Ok(None) };
    let argument = resolve(argument, from, to)?;
    let is_counted = matches!(&cell.value, CellValue::Fold { function: anabranch_plan::recognize::Fold::Count, .. });
    let is_same = argument.get_type(to)? == cell.data_type;
    Ok(Some(if is_same || is_counted { argument } else { cast(argument, cell.data_type.clone()) }))
}

/// The cell, its argument the next of the columns.
fn placed(cell: &CellDraft, columns: &mut dyn Iterator<Item = usize>) -> Result<Cell> {
    let mut next = || columns.next().ok_or_else(|| SqlError::internal("every argument of a cell has a column"));
    let value = match &cell.value {
        CellValue::Column { at, .. } => CellValue::Column { column: next()?, at: *at },
        CellValue::Fold { function, column: Some(_), variable } => {
            CellValue::Fold { function: *function, column: Some(next()?), variable: *variable }
        }
        other => other.clone(),
    };
    Ok(Cell { name: cell.name.clone(), value, data_type: cell.data_type.clone() })
}

/// The columns of a plan as expressions over the table that it reads.
fn computed(plan: &Plan) -> Result<Vec<Expr>> {
    match &plan.node {
        Node::Scan { .. } => Ok((0..plan.schema.fields().len()).map(|at| column(&plan.schema, at)).collect()),
        Node::Stage { input, filter, project } if filter.is_empty() => {
            let below = computed(input)?;
            project.iter().map(|expr| substitute(expr.clone(), 0, &input.schema, &below)).collect()
        }
        _ => Err(SqlError::internal("the conditions of a pattern are computed from cells alone")),
    }
}

fn within(span: &crate::syntax::span::Span, data_type: &DataType) -> Result<u64> {
    if !is_instant(data_type) {
        let message = format!("WITHIN cannot bound the distance of values of type {}", sql_name(data_type));
        return Err(SqlError::new(ErrorKind::Type, message)
            .with_hint("ORDER BY a timestamp, a date, a time or a whole number first."));
    }
    ticks(span, data_type)
}
