//! Nodes of plans with their schemas. Columns are named by their position.

use std::collections::HashMap;
use std::sync::Arc;

use anabranch_plan::{JoinKind, Node, Nulls, Plan};
use arrow::datatypes::{DataType, Field, Fields};
use datafusion_common::{Column, DFSchema, DFSchemaRef};
use datafusion_expr::Expr;

/// A schema of columns `c0`, `c1`, ..
pub(super) fn schema(types: &[DataType]) -> DFSchemaRef {
    let field = |(idx, data_type): (usize, &DataType)| Field::new(format!("c{idx}"), data_type.clone(), true);
    named_schema(types.iter().enumerate().map(field).collect())
}

/// A schema of these columns.
pub(super) fn named_schema(fields: Vec<Field>) -> DFSchemaRef {
    let schema = DFSchema::from_unqualified_fields(Fields::from(fields), HashMap::new());
    Arc::new(schema.expect("columns of a relation, and positions, have names of their own"))
}

pub(super) fn plan(node: Node, types: &[DataType]) -> Arc<Plan> {
    Arc::new(Plan { node, schema: schema(types) })
}

/// One row without columns.
pub(super) fn unit() -> Arc<Plan> {
    plan(Node::Constant { rows: vec![vec![]] }, &[])
}

pub(super) fn types(plan: &Plan) -> Vec<DataType> {
    plan.schema.fields().iter().map(|field| field.data_type().clone()).collect()
}

pub(super) fn column(plan: &Plan, position: usize) -> Expr {
    Expr::Column(Column::from_name(plan.schema.field(position).name()))
}

pub(super) fn stage(input: &Arc<Plan>, filter: Vec<Expr>, project: Vec<(Expr, DataType)>) -> Arc<Plan> {
    let (project, types): (Vec<Expr>, Vec<DataType>) = project.into_iter().unzip();
    plan(Node::Stage { input: Arc::clone(input), filter, project }, &types)
}

/// All columns, as a stage's output.
pub(super) fn all(input: &Plan) -> Vec<(Expr, DataType)> {
    types(input).into_iter().enumerate().map(|(idx, data_type)| (column(input, idx), data_type)).collect()
}

pub(super) fn filtered(input: &Arc<Plan>, filter: Vec<Expr>) -> Arc<Plan> {
    match filter.is_empty() {
        true => Arc::clone(input),
        false => stage(input, filter, all(input)),
    }
}

/// A join on pairs of columns; `output` are positions in the left columns followed by the right
/// ones.
pub(super) fn join(
    left: &Arc<Plan>,
    right: &Arc<Plan>,
    kind: JoinKind,
    key: &[(usize, usize)],
    output: Vec<usize>,
) -> Arc<Plan> {
    let mut both = types(left);
    both.extend(types(right));
    let types: Vec<DataType> = output.iter().map(|column| both[*column].clone()).collect();
    let node = Node::Join {
        left: Arc::clone(left),
        right: Arc::clone(right),
        kind,
        left_key: key.iter().map(|(left, _)| *left).collect(),
        right_key: key.iter().map(|(_, right)| *right).collect(),
        nulls: Nulls::Differ,
        residual: None,
        output,
    };
    plan(node, &types)
}

pub(super) fn distinct(input: &Arc<Plan>) -> Arc<Plan> {
    match &input.node {
        Node::Distinct { .. } => Arc::clone(input),
        _ => plan(Node::Distinct { input: Arc::clone(input) }, &types(input)),
    }
}

/// The rows of all; none at all for no inputs.
pub(super) fn union(mut inputs: Vec<Arc<Plan>>, types: &[DataType]) -> Arc<Plan> {
    match inputs.len() {
        0 => plan(Node::Constant { rows: vec![] }, types),
        1 => inputs.remove(0),
        _ => plan(Node::Union { inputs }, types),
    }
}
