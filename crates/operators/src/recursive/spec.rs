//! What a loop is asked to compute: nodes in the order in which a round evaluates them.

use std::sync::Arc;

use anabranch_arrangement::{Layout, MergeEffort};
use anabranch_batch::Time;
use anabranch_flow::tactic::Timed;
use arrow::datatypes::DataType;

use crate::relational::join::JoinSpec;
use crate::stateless::filter_project::Stage;
use crate::stateless::unnest::Unnest;

/// The position of a node in [`LoopSpec::nodes`].
pub type NodeId = usize;

/// A loop: its nodes, its variables, and what leaves it.
#[derive(Clone)]
pub struct LoopSpec {
    /// Inputs come before users; only variables lead back.
    pub nodes: Vec<Node>,
    /// How many streams enter.
    pub n_inputs: usize,
    /// The node that defines each variable.
    pub bindings: Vec<NodeId>,
    /// The node whose rows leave the loop.
    pub result: NodeId,
    /// What ends the loop before its fixed point.
    pub limit: Limit,
    /// How hard the loop's own arrangements work at merging.
    pub effort: MergeEffort,
}

/// The last round of a loop, counted from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Limit {
    /// There is none.
    None,
    /// The loop yields what is there after this round.
    Return(Time),
    /// As [`Limit::Return`], and a row error with this message while the round changes a variable.
    Error(Time, String),
}

impl Limit {
    /// The number of the last round, if there is a last one.
    pub fn round_max(&self) -> Option<Time> {
        match self {
            Limit::None => None,
            Limit::Return(round) | Limit::Error(round, _) => Some(*round),
        }
    }
}

/// Makes the tactic of a [`Node::Reduce`], for inputs of these layouts. It may put out rows over
/// nothing at round 1.
pub type TacticMaker = Arc<dyn Fn(&[Arc<Layout>]) -> Box<dyn Timed>>;

/// A step of a round.
#[derive(Clone)]
pub enum Node {
    /// The rows of a stream from outside of the loop.
    Enter {
        /// Number of the stream.
        input: usize,
    },
    /// The rows of a variable, as of the round before.
    Variable {
        /// Number of the variable.
        binding: usize,
    },
    /// Filter and project.
    Stage {
        /// Rows to filter and compute from.
        input: NodeId,
        /// What is computed.
        stage: Stage,
    },
    /// One row for each element of lists.
    Unnest {
        /// Rows with lists.
        input: NodeId,
        /// Which lists.
        unnest: Unnest,
    },
    /// The rows of all inputs.
    Union {
        /// At least one.
        inputs: Vec<NodeId>,
    },
    /// An arrangement from outside of the loop.
    EnterArranged {
        /// Number of the arrangement.
        input: usize,
    },
    /// Rows by key.
    Arrange {
        /// The rows.
        input: NodeId,
        /// The key, and the types of all columns.
        layout: Arc<Layout>,
    },
    /// Pairs of rows of two arrangements, of which at most one is from outside.
    Join {
        /// An arrangement.
        left: NodeId,
        /// An arrangement.
        right: NodeId,
        /// Keys, and what is made of pairs. (`as_of` is not looked at.)
        join: Box<JoinSpec>,
    },
    /// Each row once.
    Distinct {
        /// Rows, perhaps repeated.
        input: NodeId,
        /// Types of all columns.
        types: Vec<DataType>,
    },
    /// A function of the rows of each key, by a tactic that knows rows of one key only.
    Reduce {
        /// Arrangements by the key.
        inputs: Vec<NodeId>,
        /// Makes the tactic.
        tactic: TacticMaker,
        /// Whether the tactic puts out rows even if no row ever comes.
        is_over_nothing: bool,
    },
}
