//! Plans with other inputs.

use std::sync::Arc;

use crate::ir::{Node, Plan};

/// The plan with other inputs of the same schemas.
pub fn with_inputs(plan: &Arc<Plan>, change: impl Fn(&Arc<Plan>) -> Arc<Plan>) -> Arc<Plan> {
    let mut node = plan.node.clone();
    match &mut node {
        Node::Scan { .. } | Node::Constant { .. } | Node::Variable { .. } => return Arc::clone(plan),
        // (The rewrites look at each part of a loop alone: nothing passes a variable.)
        Node::Recursive(recursive) => {
            recursive.bindings.iter_mut().for_each(|binding| binding.plan = change(&binding.plan));
            recursive.result = change(&recursive.result);
        }
        Node::Stage { input, .. }
        | Node::Unnest { input, .. }
        | Node::Aggregate { input, .. }
        | Node::Distinct { input }
        | Node::TopK { input, .. }
        | Node::Session { input, .. }
        | Node::Recognize { input, .. }
        | Node::Window { input, .. } => *input = change(input),
        Node::Join { left, right, .. } | Node::Asof { left, right, .. } | Node::SetOperation { left, right, .. } => {
            *left = change(left);
            *right = change(right);
        }
        Node::Union { inputs } | Node::Temporal { inputs, .. } => {
            inputs.iter_mut().for_each(|input| *input = change(input))
        }
    }
    Arc::new(Plan { node, schema: plan.schema.clone() })
}
