//! A table's rows as they are, beside what an UPDATE makes of them.
//!
//! DataFusion plans the values of changed columns alone: its time goes with the square of the
//! columns that it sees. Columns that stay are put beside them here.
//!
//! ```text
//! UPDATE t SET b = a + 1 WHERE c      a + 1, where c    ->    a, b, c, a, a + 1, c, where c
//! ```
//!
//! Law: both halves of a row are of one row of the table, because one scan makes them.

use std::sync::Arc;

use anabranch_plan::positions::position_near;
use anabranch_plan::{Node, Plan};
use arrow::datatypes::{FieldRef, Fields, Schema, SchemaRef};
use datafusion_common::DFSchemaRef;
use datafusion_expr::Expr;

use crate::error::Result;
use crate::translate::conform;
use crate::translate::expr::column;
use crate::translate::schema::{rename, schema};
use crate::translate::stage::take;

/// The rows twice, of a plan that has the table's columns, the values of `changed` ones, and the
/// columns of a join.
pub(super) fn of_joined(rows: &Arc<Plan>, own: &Fields, changed: &[usize], joined: &[FieldRef]) -> Result<Arc<Plan>> {
    let mut new: Vec<usize> = (0..own.len()).collect();
    changed.iter().enumerate().for_each(|(n, at)| new[*at] = own.len() + n);
    let behind = own.len() + changed.len();
    let positions: Vec<usize> = (0..own.len()).chain(new).chain((0..joined.len()).map(|n| behind + n)).collect();
    let fields: Vec<FieldRef> = own.iter().chain(own).chain(joined).cloned().collect();
    conform(take(Arc::clone(rows), &positions), &Schema::new(fields))
}

/// The rows twice, of a plan that has the values of `changed` columns alone; `None` where that is
/// more than a scan, a filter and a projection.
pub(super) fn of_values(values: &Plan, table: &str, own: &SchemaRef, changed: &[usize]) -> Option<Arc<Plan>> {
    let all = all_of(own);
    let (relation, filter, project) = match &values.node {
        Node::Stage { input, filter, project } => {
            let Node::Scan { relation, columns } = &input.node else { return None };
            // (Expressions over the narrow scan are expressions over all columns: these have the
            // same names.)
            let same_name = |(n, at): (usize, &usize)| position_near(&column(&input.schema, n), &all, *at) == Some(*at);
            if !columns.iter().enumerate().all(same_name) {
                return None;
            }
            (relation, filter.clone(), project.clone())
        }
        Node::Scan { relation, columns } => (relation, vec![], columns.iter().map(|at| column(&all, *at)).collect()),
        _ => return None,
    };
    if relation != table {
        return None;
    }
    let whole = Plan {
        node: Node::Scan { relation: relation.clone(), columns: (0..own.fields().len()).collect() },
        schema: all,
    };
    let mut row: Vec<Expr> =
        (0..2 * own.fields().len()).map(|at| column(&whole.schema, at % own.fields().len())).collect();
    let mut nullable: Vec<bool> = own.fields().iter().chain(own.fields()).map(|field| field.is_nullable()).collect();
    for ((n, at), value) in changed.iter().enumerate().zip(project) {
        row[own.fields().len() + at] = value;
        nullable[own.fields().len() + at] = values.schema.field(n).is_nullable();
    }
    let drafts = own.fields().iter().chain(own.fields()).zip(nullable);
    let twice = schema(drafts.map(|(field, null)| (field.name().clone(), field.data_type().clone(), null)).collect());
    let names: Vec<String> = own.fields().iter().chain(own.fields()).map(|field| field.name().clone()).collect();
    let node = Node::Stage { input: Arc::new(whole), filter, project: row };
    Some(Arc::new(Plan { node, schema: rename(&twice, &names) }))
}

fn all_of(own: &SchemaRef) -> DFSchemaRef {
    let draft = |field: &FieldRef| (field.name().clone(), field.data_type().clone(), field.is_nullable());
    schema(own.fields().iter().map(draft).collect())
}
