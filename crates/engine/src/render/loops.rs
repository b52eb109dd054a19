//! The steps of a loop as nodes of its operator.
//!
//! A step that is a function of the rows of each key becomes an arrangement by the key, and the
//! function of it. A loop within a loop is such a function, of all rows.

use std::collections::HashMap;
use std::sync::Arc;

use anabranch_arrangement::{Layout, MergeEffort};
use anabranch_flow::tactic::Timed;
use anabranch_operators::aggregate::{Aggregate, AggregateSpec};
use anabranch_operators::ordered::asof::{Asof, AsofSpec};
use anabranch_operators::ordered::match_recognize::{Recognize, RecognizeSpec};
use anabranch_operators::ordered::session::{SessionSpec, Sessions};
use anabranch_operators::ordered::top_k::TopKTactic;
use anabranch_operators::ordered::window::{WindowSpec, WindowTactic};
use anabranch_operators::recursive::{LeastSpec, LoopNode, LoopSpec, NodeId, TacticMaker};
use anabranch_operators::relational::semi_join::TimedSemiJoin;
use anabranch_operators::relational::set_operation::{Operation, SetOperation};
use anabranch_spec::aggregate::{AggregateCall, AggregateFunction};
use arrow::datatypes::DataType;

use super::physical::{Body, Step, StepId};
use super::specs::layout;

/// How arrangements outside enter a loop.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum EnterAs {
    /// As they are.
    Arrangements,
    /// As streams behind the others, arranged again inside: with several workers, a part of the
    /// arrangement is on each, and the loop on one.
    Streams,
}

/// The operator of a loop whose body is `body`. `types` are those of the streams that enter,
/// `arranged` the layouts of the arrangements.
pub(super) fn spec_of(
    body: &Body,
    types: &[Vec<DataType>],
    arranged: &[Arc<Layout>],
    enter_as: EnterAs,
    effort: MergeEffort,
) -> LoopSpec {
    let mut nodes = Nodes { nodes: vec![], arrangements: HashMap::new(), of_step: vec![], effort };
    for step in &body.steps {
        let node = match step {
            Step::EnterArranged { input } if enter_as == EnterAs::Streams => {
                let entered = nodes.push(LoopNode::Enter { input: types.len() + input });
                nodes.push(LoopNode::Arrange { input: entered, layout: Arc::clone(&arranged[*input]) })
            }
            step => nodes.step(step),
        };
        nodes.of_step.push(node);
    }
    let n_more = if enter_as == EnterAs::Streams { arranged.len() } else { 0 };
    LoopSpec {
        bindings: body.bindings.iter().map(|binding| nodes.of(*binding)).collect(),
        result: nodes.of(body.result),
        nodes: nodes.nodes,
        n_inputs: types.len() + n_more,
        limit: body.limit,
        effort,
    }
}

struct Nodes {
    nodes: Vec<LoopNode>,
    /// Arrangements by their input and key.
    arrangements: HashMap<(NodeId, Vec<usize>), NodeId>,
    of_step: Vec<NodeId>,
    effort: MergeEffort,
}

impl Nodes {
    fn of(&self, step: StepId) -> NodeId {
        self.of_step[step.0]
    }

    fn push(&mut self, node: LoopNode) -> NodeId {
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    fn step(&mut self, step: &Step) -> NodeId {
        let effort = self.effort;
        match step {
            Step::Enter { input } => self.push(LoopNode::Enter { input: *input }),
            Step::EnterArranged { input } => self.push(LoopNode::EnterArranged { input: *input }),
            Step::Variable { binding } => self.push(LoopNode::Variable { binding: *binding }),
            Step::Stage { input, stage } => self.push(LoopNode::Stage { input: self.of(*input), stage: stage.clone() }),
            Step::Unnest { input, unnest } => {
                self.push(LoopNode::Unnest { input: self.of(*input), unnest: unnest.clone() })
            }
            Step::Union { inputs } => {
                self.push(LoopNode::Union { inputs: inputs.iter().map(|input| self.of(*input)).collect() })
            }
            Step::Arrange { input, key, types } => self.arrange(self.of(*input), key, types),
            Step::Join { left, right, join, .. } => {
                let (left, right) = (self.of(*left), self.of(*right));
                self.push(LoopNode::Join { left, right, join: Box::new(join.spec(0)) })
            }
            Step::SemiJoin { left, right, semi_join, .. } => {
                let spec = semi_join.spec(0);
                let inputs = vec![self.of(*left), self.of(*right)];
                self.reduce(inputs, false, move |layouts| {
                    Box::new(TimedSemiJoin::new(spec.clone(), &layouts[0], &layouts[1]))
                })
            }
            Step::SetOperation { inputs, operation: Operation::Distinct, types, .. } => {
                self.push(LoopNode::Distinct { input: self.of(inputs[0]), types: types.clone() })
            }
            Step::SetOperation { inputs, operation, types, .. } => {
                let (operation, types) = (*operation, types.clone());
                let all: Vec<usize> = (0..types.len()).collect();
                let inputs = inputs.iter().map(|input| self.arrange(self.of(*input), &all, &types)).collect();
                self.reduce(inputs, false, move |_| Box::new(SetOperation::new(operation, types.clone())))
            }
            Step::Aggregate { input, aggregate, .. } => {
                if let Some(least) = least_of(aggregate) {
                    return self.push(LoopNode::Least { input: self.of(*input), least });
                }
                let spec = AggregateSpec { effort, ..aggregate.clone() };
                let input = self.arrange(self.of(*input), &spec.keys, &spec.input_types);
                let is_over_nothing = spec.keys.is_empty();
                let from = is_over_nothing.then_some(1);
                self.reduce(vec![input], is_over_nothing, move |_| Box::new(Aggregate::new(spec.clone(), from)))
            }
            Step::TopK { input, top, .. } => {
                // (A round takes back what another one had.)
                let is_append_only = false;
                let spec = anabranch_operators::ordered::top_k::TopKSpec { is_append_only, effort, ..top.clone() };
                let input = self.arrange(self.of(*input), &spec.top.group, &spec.input_types);
                self.reduce(vec![input], false, move |_| Box::new(TopKTactic::new(spec.clone())))
            }
            Step::Window { input, window, .. } => {
                let spec = WindowSpec { effort, ..window.as_ref().clone() };
                let input = self.arrange(self.of(*input), &spec.window.partition, &spec.input_types);
                self.reduce(vec![input], false, move |_| Box::new(WindowTactic::new(spec.clone())))
            }
            Step::Recognize { input, recognize, .. } => {
                let spec = RecognizeSpec { effort, ..recognize.as_ref().clone() };
                let input = self.arrange(self.of(*input), &spec.partition, &spec.input_types);
                self.reduce(vec![input], false, move |_| Box::new(Recognize::new(spec.clone())))
            }
            Step::Sessions { input, sessions, .. } => {
                let spec = SessionSpec { effort, ..sessions.clone() };
                let input = self.arrange(self.of(*input), &spec.windows.partition, &spec.input_types);
                self.reduce(vec![input], false, move |_| Box::new(Sessions::new(spec.clone())))
            }
            Step::Asof { left, right, asof, .. } => {
                let spec = AsofSpec { effort, ..asof.clone() };
                let left = self.arrange(self.of(*left), &spec.join.left_key, &spec.left_types);
                let right = self.arrange(self.of(*right), &spec.join.right_key, &spec.right_types);
                self.reduce(vec![left, right], false, move |_| Box::new(Asof::new(spec.clone())))
            }
            Step::Recursive { inputs, types, body, .. } => {
                let spec = spec_of(body, types, &[], EnterAs::Arrangements, effort);
                let inputs = inputs.iter().zip(types);
                let inputs = inputs.map(|(input, types)| self.arrange(self.of(*input), &[], types)).collect();
                self.push(LoopNode::Loop { inputs, inner: Arc::new(spec) })
            }
            Step::ImportStream { .. } | Step::ImportArranged { .. } | Step::Constant { .. } => {
                unreachable!("what depends on no variable is computed outside of the loop")
            }
            Step::Threshold { .. } | Step::Temporal { .. } | Step::JoinOnce { .. } | Step::SemiJoinOnce { .. } => {
                unreachable!("a loop is prepared without these steps")
            }
        }
    }

    fn arrange(&mut self, input: NodeId, key: &[usize], types: &[DataType]) -> NodeId {
        if let Some(node) = self.arrangements.get(&(input, key.to_vec())) {
            return *node;
        }
        let node = self.push(LoopNode::Arrange { input, layout: layout(key, types) });
        self.arrangements.insert((input, key.to_vec()), node);
        node
    }

    fn reduce(
        &mut self,
        inputs: Vec<NodeId>,
        is_over_nothing: bool,
        tactic: impl Fn(&[Arc<Layout>]) -> Box<dyn Timed> + Send + Sync + 'static,
    ) -> NodeId {
        let tactic: TacticMaker = Arc::new(tactic);
        self.push(LoopNode::Reduce { inputs, tactic, is_over_nothing })
    }
}

/// An aggregate that is the least or the greatest number of each key, and nothing else.
fn least_of(aggregate: &AggregateSpec) -> Option<LeastSpec> {
    let AggregateSpec { keys, calls, input_types, .. } = aggregate;
    let [
        AggregateCall {
            function: function @ (AggregateFunction::Min | AggregateFunction::Max),
            argument,
            filter: None,
            output_type,
            ..
        },
    ] = calls.as_slice()
    else {
        return None;
    };
    let value = argument.filter(|value| !keys.is_empty() && input_types[*value] == *output_type)?;
    let is_greatest = *function == AggregateFunction::Max;
    LeastSpec::takes(output_type).then(|| LeastSpec {
        key: keys.clone(),
        value,
        is_greatest,
        types: input_types.clone(),
    })
}
