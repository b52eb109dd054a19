//! Plans with variables of loops around them, seen from outside of the loops.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::Arc;

use crate::ir::{Node, Plan, Recursive};
use crate::rewrite::with_inputs;

/// The plan as it is called outside of the innermost loop around it, if it does not depend on a
/// variable of that loop: then it means the same in each round.
pub fn lifted(plan: &Arc<Plan>) -> Option<Arc<Plan>> {
    let is_bound = Cell::new(false);
    let lifted = lifted_from(plan, 0, &is_bound);
    (!is_bound.get()).then_some(lifted)
}

/// The plan without the loop that is `depth` loops out: variables of loops farther out are called
/// by one less. Sets `is_bound` if it depends on that loop.
fn lifted_from(plan: &Arc<Plan>, depth: usize, is_bound: &Cell<bool>) -> Arc<Plan> {
    if plan.free_depth() <= depth {
        return Arc::clone(plan);
    }
    match plan.node {
        Node::Variable { depth: of, index } => {
            is_bound.set(is_bound.get() || of == depth);
            let node = Node::Variable { depth: of.saturating_sub(1), index };
            Arc::new(Plan { node, schema: plan.schema.clone() })
        }
        _ => {
            let depth = depth + usize::from(matches!(plan.node, Node::Recursive(_)));
            with_inputs(plan, |input| lifted_from(input, depth, is_bound))
        }
    }
}

/// A plan that means the same as a loop, with what is made of its variables outside of the loop:
/// only the last round is then asked for it. `None` if the loop yields a variable as it is, or its
/// result needs several of them, or needs one inside of another loop.
pub fn result_outside(recursive: &Recursive) -> Option<Arc<Plan>> {
    let result = &recursive.result;
    if matches!(result.node, Node::Variable { .. }) {
        return None;
    }
    let mut used = BTreeSet::new();
    let is_plain = variables(result, &mut used);
    let index = used.pop_first().filter(|_| is_plain && used.is_empty())?;
    let schema = recursive.bindings[index].plan.schema.clone();
    let variable = Arc::new(Plan { node: Node::Variable { depth: 0, index }, schema: schema.clone() });
    let node = Node::Recursive(Box::new(Recursive { result: variable, ..recursive.clone() }));
    let rows = Arc::new(Plan { node, schema });
    // (The result names the columns of its variable by the variable's schema.)
    let named = |of: &Arc<Plan>| Some(Arc::new(Plan { node: rows.node.clone(), schema: of.schema.clone() }));
    Some(replaced(result, &named))
}

fn replaced(plan: &Arc<Plan>, replace: &dyn Fn(&Arc<Plan>) -> Option<Arc<Plan>>) -> Arc<Plan> {
    match plan.node {
        Node::Variable { depth: 0, .. } => replace(plan).unwrap_or_else(|| Arc::clone(plan)),
        Node::Variable { depth, index } => {
            Arc::new(Plan { node: Node::Variable { depth: depth - 1, index }, schema: plan.schema.clone() })
        }
        _ if plan.is_closed() => Arc::clone(plan),
        _ => with_inputs(plan, |input| replaced(input, replace)),
    }
}

/// Adds the variables of the innermost loop that a plan uses. Returns whether no loop inside of the
/// plan uses a variable of a loop around it.
fn variables(plan: &Plan, used: &mut BTreeSet<usize>) -> bool {
    match &plan.node {
        Node::Variable { depth, index } => {
            used.extend((*depth == 0).then_some(*index));
            true
        }
        Node::Recursive(_) => plan.is_closed(),
        _ => plan.inputs().into_iter().all(|input| variables(input, used)),
    }
}
