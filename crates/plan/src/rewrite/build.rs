//! Making nodes: schemas with unique names, choices of columns.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Fields};
use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_common::{Column, DFSchema, DFSchemaRef};
use datafusion_expr::Expr;

use crate::ir::{Node, Plan};

/// The number of columns.
pub(super) fn width(plan: &Plan) -> usize {
    plan.schema.fields().len()
}

/// The column at a position, as expressions name it.
pub(super) fn column(plan: &Plan, at: usize) -> Expr {
    Expr::Column(Column::from_name(plan.schema.field(at).name()))
}

/// A schema of these fields; repeated names get a number.
pub(super) fn schema(fields: impl IntoIterator<Item = (String, DataType, bool)>) -> DFSchemaRef {
    let mut taken: HashSet<String> = HashSet::new();
    let mut all = Vec::new();
    for (name, data_type, nullable) in fields {
        let mut candidate = name.clone();
        let mut n = 0;
        while taken.contains(&candidate) {
            n += 1;
            candidate = format!("{name}_{n}");
        }
        taken.insert(candidate.clone());
        all.push(Field::new(candidate, data_type, nullable));
    }
    let schema = DFSchema::from_unqualified_fields(Fields::from(all), HashMap::new())
        .expect("repeated names were numbered apart");
    Arc::new(schema)
}

/// Name, type and nullability of a column.
pub(super) fn field(plan: &Plan, at: usize) -> (String, DataType, bool) {
    let field = plan.schema.field(at);
    (field.name().clone(), field.data_type().clone(), field.is_nullable())
}

/// The columns at these positions, chosen by the node itself where it can choose.
pub(super) fn choose(plan: &Arc<Plan>, wanted: &[usize]) -> Arc<Plan> {
    if wanted.iter().copied().eq(0..width(plan)) {
        return Arc::clone(plan);
    }
    let schema = schema(wanted.iter().map(|at| field(plan, *at)));
    let distinct = wanted.iter().enumerate().all(|(n, at)| !wanted[..n].contains(at));
    let mut node = plan.node.clone();
    match &mut node {
        Node::Scan { columns, .. } if distinct => *columns = wanted.iter().map(|at| columns[*at]).collect(),
        Node::Join { output, .. } if distinct => *output = wanted.iter().map(|at| output[*at]).collect(),
        Node::Stage { input, filter, project } => {
            *project = wanted.iter().map(|at| project[*at].clone()).collect();
            narrow(input, filter, project);
        }
        _ => {
            let project = wanted.iter().map(|at| column(plan, *at)).collect();
            node = Node::Stage { input: Arc::clone(plan), filter: vec![], project };
        }
    }
    Arc::new(Plan { node, schema })
}

/// Leaves out of a scan what a stage over it does not use.
fn narrow(input: &mut Arc<Plan>, filter: &[Expr], project: &[Expr]) {
    if !matches!(input.node, Node::Scan { .. }) {
        return;
    }
    let mut used = Vec::new();
    for column in filter.iter().chain(project).flat_map(Expr::column_refs) {
        used.extend(input.schema.index_of_column_by_name(None, &column.name));
    }
    used.sort_unstable();
    used.dedup();
    if used.len() < width(input) {
        *input = choose(input, &used);
    }
}

/// The expression with its columns replaced.
pub(super) fn replace(expr: &Expr, by: &dyn Fn(&Column) -> Expr) -> Expr {
    let replaced = expr.clone().transform_up(|e| match &e {
        Expr::Column(column) => Ok(Transformed::yes(by(column))),
        _ => Ok(Transformed::no(e)),
    });
    replaced.expect("the closure does not fail").data
}
