//! Rows that stand in a plan several times and are planned once: the rows outside of subqueries
//! that general unnesting joins with each of them.
//!
//! Law: the node means its plan. The plan is settled before it goes in, and no step looks inside.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion_common::{DFSchemaRef, Result as DfResult};
use datafusion_expr::logical_plan::{Extension, LogicalPlan};
use datafusion_expr::{Expr, UserDefinedLogicalNodeCore};

/// A plan that is a leaf of another.
#[derive(Clone, Debug)]
pub(crate) struct SharedNode {
    /// Which plan of the query it is.
    pub(crate) number: usize,
    pub(crate) plan: Arc<LogicalPlan>,
    /// Nodes of the plan, those of plans within it as often as they stand there.
    pub(crate) n_nodes: usize,
}

impl SharedNode {
    /// The leaf.
    pub(crate) fn leaf(self) -> LogicalPlan {
        LogicalPlan::Extension(Extension { node: Arc::new(self) })
    }

    /// The node, if a plan is one.
    pub(crate) fn of(plan: &LogicalPlan) -> Option<&SharedNode> {
        match plan {
            LogicalPlan::Extension(extension) => extension.node.as_any().downcast_ref(),
            _ => None,
        }
    }
}

// (A number stands for one plan: comparing plans would take as long as planning them apart.)
impl PartialEq for SharedNode {
    fn eq(&self, other: &SharedNode) -> bool {
        self.number == other.number
    }
}

impl Eq for SharedNode {}

impl Hash for SharedNode {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.number.hash(state);
    }
}

impl PartialOrd for SharedNode {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        self.number.partial_cmp(&other.number)
    }
}

impl UserDefinedLogicalNodeCore for SharedNode {
    fn name(&self) -> &str {
        "Shared"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![]
    }

    fn schema(&self) -> &DFSchemaRef {
        self.plan.schema()
    }

    fn expressions(&self) -> Vec<Expr> {
        vec![]
    }

    fn prevent_predicate_push_down_columns(&self) -> HashSet<String> {
        HashSet::new()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "Shared {}", self.number)
    }

    fn with_exprs_and_inputs(&self, _exprs: Vec<Expr>, _inputs: Vec<LogicalPlan>) -> DfResult<Self> {
        Ok(self.clone())
    }
}
