//! Semi and anti joins over keys that are there once.
//!
//! ```text
//! customers without an order:   Join anti c = o, customers, Scan orders
//! =   Join anti c = o, customers, Distinct (Stage [o], Scan orders)
//! ```
//!
//! Law: the plan keeps its meaning: such a join asks whether there is a row with the key, not how
//! many there are.
//!
//! Cost: a count a key. What is spared is to arrange all rows, and to look each of them up on the
//! other side: of many rows with one key only the first and the last change anything. Rows that are
//! unique by the key, or arranged by it already, are left as they are.
//!
//! Source: TPC-H on differential dataflow, query 22.

use std::sync::Arc;

use super::build::{choose, width};
use super::facts::Indexes;
use super::inputs::with_inputs;
use crate::ir::{JoinKind, Node, Plan};
use crate::positions::positions;

/// The plan with joins that look for keys in distinct keys.
pub(super) fn keys_once(plan: &Arc<Plan>, indexes: Indexes) -> Arc<Plan> {
    let plan = with_inputs(plan, |input| keys_once(input, indexes));
    let Node::Join { right, kind, right_key, residual: None, .. } = &plan.node else { return plan };
    let asks_whether =
        matches!(kind, JoinKind::LeftSemi | JoinKind::LeftAnti | JoinKind::LeftAntiNullAware | JoinKind::LeftMark);
    let is_list = right_key.iter().enumerate().all(|(n, at)| !right_key[..n].contains(at));
    if !asks_whether || right_key.is_empty() || !is_list || is_served(right, right_key, indexes) {
        return plan;
    }
    let keys = choose(right, right_key);
    let schema = keys.schema.clone();
    let distinct = Arc::new(Plan { node: Node::Distinct { input: keys }, schema });
    let mut node = plan.node.clone();
    if let Node::Join { right, right_key, .. } = &mut node {
        *right_key = (0..right_key.len()).collect();
        *right = distinct;
    }
    Arc::new(Plan { node, schema: plan.schema.clone() })
}

/// Whether the rows are unique by the key, or arranged by it.
pub(super) fn is_served(plan: &Plan, key: &[usize], indexes: Indexes) -> bool {
    match &plan.node {
        Node::Constant { .. } => true,
        Node::Scan { relation, columns } => {
            let key: Vec<usize> = key.iter().map(|at| columns[*at]).collect();
            indexes(relation, &key)
        }
        Node::Stage { input, project, .. } => {
            let chosen: Vec<_> = key.iter().map(|at| project[*at].clone()).collect();
            positions(&chosen, &input.schema).is_some_and(|key| is_served(input, &key, indexes))
        }
        Node::Aggregate { keys, .. } => (0..keys.len()).all(|group| key.contains(&group)),
        Node::Distinct { .. } => (0..width(plan)).all(|column| key.contains(&column)),
        _ => false,
    }
}
