//! What a loop is asked to compute: nodes in the order in which a round evaluates them.

use std::sync::Arc;

use anabranch_arrangement::{Layout, MergeEffort};
use anabranch_batch::Time;
use anabranch_flow::tactic::Timed;
use anabranch_spec::limits::RoundLimit;
use arrow::datatypes::DataType;

use crate::relational::join::JoinSpec;
use crate::stateless::filter_project::Stage;
use crate::stateless::unnest::Unnest;

/// The position of a node in [`LoopSpec::nodes`].
pub type NodeId = usize;

/// The greatest limit of rounds.
pub const ROUNDS_MAX: u64 = u32::MAX as u64;

/// A loop: its nodes, its variables, and what leaves it.
#[derive(Clone)]
pub struct LoopSpec {
    /// Inputs come before users; only variables lead back.
    pub nodes: Vec<LoopNode>,
    /// How many streams enter.
    pub n_inputs: usize,
    /// The node that defines each variable.
    pub bindings: Vec<NodeId>,
    /// The node whose rows leave the loop.
    pub result: NodeId,
    /// What ends the loop before its fixed point; at most [`ROUNDS_MAX`] rounds.
    pub limit: RoundLimit,
    /// How hard the loop's own arrangements work at merging.
    pub effort: MergeEffort,
}

impl LoopSpec {
    /// The number of the last round, counted from 1, if there is a last one.
    pub fn round_max(&self) -> Option<Time> {
        // (Limits are within ROUNDS_MAX.)
        self.limit.rounds_max().map(|rounds| rounds as Time)
    }

    /// Whether all nodes are monotone functions of sets, and there is no limit: then the fixed
    /// point does not depend on the rounds in which rows come. What a variable brings into the next
    /// round must be a set.
    pub fn is_monotone(&self) -> bool {
        let is_sum =
            |node: &LoopNode| !matches!(node, LoopNode::Reduce { .. } | LoopNode::Least { .. } | LoopNode::Loop { .. });
        let is_read = |binding| {
            self.nodes.iter().any(|node| matches!(node, LoopNode::Variable { binding: read } if *read == binding))
        };
        let is_set = |binding: usize| matches!(self.nodes[self.bindings[binding]], LoopNode::Distinct { .. });
        let sets = (0..self.bindings.len()).all(|binding| !is_read(binding) || is_set(binding));
        self.limit.is_none() && sets && self.nodes.iter().all(is_sum)
    }

    /// The ranks of distinct rows: sticky ones are cheaper.
    pub fn ranks(&self) -> Ranks {
        if self.is_monotone() { Ranks::Sticky } else { Ranks::Exact }
    }

    /// For each node the nodes to which its rows may be passed while they are made, the last of
    /// which absorbs them: [`Node::Distinct`] or [`Node::Least`]. Empty where rows have other
    /// users.
    pub(super) fn ways(&self) -> Vec<Vec<NodeId>> {
        let mut users: Vec<Vec<NodeId>> = vec![Vec::new(); self.nodes.len()];
        for (user, node) in self.nodes.iter().enumerate() {
            node.inputs().into_iter().for_each(|input| users[input].push(user));
        }
        // (What leaves the round has the loop as a user.)
        self.bindings.iter().chain([&self.result]).for_each(|node| users[*node].push(self.nodes.len()));
        let mut ways: Vec<Vec<NodeId>> = vec![Vec::new(); self.nodes.len()];
        for id in (0..self.nodes.len()).rev() {
            let [user] = users[id][..] else { continue };
            let Some(node) = self.nodes.get(user) else { continue };
            let absorbs = matches!(node, LoopNode::Distinct { .. } | LoopNode::Least { .. });
            let passes = matches!(node, LoopNode::Union { .. } | LoopNode::Stage { .. }) && !ways[user].is_empty();
            if absorbs || passes {
                ways[id] = std::iter::once(user).chain(ways[user].iter().copied()).collect();
            }
        }
        ways
    }
}

impl LoopNode {
    /// The nodes that it reads.
    fn inputs(&self) -> Vec<NodeId> {
        match self {
            LoopNode::Enter { .. } | LoopNode::EnterArranged { .. } | LoopNode::Variable { .. } => vec![],
            LoopNode::Stage { input, .. } | LoopNode::Unnest { input, .. } | LoopNode::Arrange { input, .. } => {
                vec![*input]
            }
            LoopNode::Distinct { input, .. } | LoopNode::Least { input, .. } => vec![*input],
            LoopNode::Join { left, right, .. } => vec![*left, *right],
            LoopNode::Union { inputs } | LoopNode::Reduce { inputs, .. } | LoopNode::Loop { inputs, .. } => {
                inputs.clone()
            }
        }
    }
}

/// From which round on a distinct row is present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ranks {
    /// From the first one that has a reason for it: what rounds mean.
    Exact,
    /// From one that has a reason for it: a row that is present does not move when an earlier
    /// reason comes. The fixed point of a [monotone](LoopSpec::is_monotone) loop is the same.
    Sticky,
}

/// The least or greatest number of each key.
#[derive(Clone, Debug)]
pub struct LeastSpec {
    /// Key columns, at least one.
    pub key: Vec<usize>,
    /// The column of numbers, of a type that [`LeastSpec::takes`].
    pub value: usize,
    /// The greatest one is asked for.
    pub is_greatest: bool,
    /// Types of all columns. Key columns come out, and the number.
    pub types: Vec<DataType>,
}

/// Makes the tactic of a [`LoopNode::Reduce`], for inputs of these layouts. It may put out rows
/// over nothing at round 1.
pub type TacticMaker = Arc<dyn Fn(&[Arc<Layout>]) -> Box<dyn Timed> + Send + Sync>;

/// A step of a round.
#[derive(Clone)]
pub enum LoopNode {
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
    /// The least number of each key, or the greatest.
    Least {
        /// Rows, perhaps repeated.
        input: NodeId,
        /// What of them.
        least: LeastSpec,
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
    /// A loop inside of the loop.
    Loop {
        /// An arrangement without a key for each stream that enters it.
        inputs: Vec<NodeId>,
        /// The inner loop, which no arrangement enters.
        inner: Arc<LoopSpec>,
    },
}
