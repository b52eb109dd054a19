//! The steps of a dataflow, decided and compiled: plain data that can be sent to every worker.
//!
//! A [`Physical`] is a list of steps in order; a step refers to earlier ones by number. Each step
//! yields a stream or an arrangement. Everything that can fail has been done when it exists, so
//! workers render it without failing, and all the same.

use std::collections::BTreeSet;
use std::sync::Arc;

use anabranch_batch::order::Nulls;
use anabranch_batch::{Batch, Time};
use anabranch_operators::aggregate::AggregateSpec;
use anabranch_operators::ordered::asof::AsofSpec;
use anabranch_operators::ordered::match_recognize::RecognizeSpec;
use anabranch_operators::ordered::session::SessionSpec;
use anabranch_operators::ordered::top_k::TopKSpec;
use anabranch_operators::ordered::window::WindowSpec;
use anabranch_operators::relational::join::JoinSpec;
use anabranch_operators::relational::semi_join::{Keep, Residual, SemiJoinSpec};
use anabranch_operators::relational::set_operation::Operation;
use anabranch_operators::relational::threshold::Comparison;
use anabranch_operators::stateless::filter_project::Stage;
use anabranch_operators::stateless::unnest::Unnest;
use anabranch_plan::Plan;
use anabranch_spec::limits::RoundLimit;
use arrow::datatypes::DataType;

use super::temporal_step::TemporalStep;
use crate::cluster::spec::{ArrangementId, CollectionId, Export, LimitStep};

/// Number of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StepId(pub usize);

/// A dataflow's steps.
#[derive(Clone)]
pub struct Physical {
    /// Inputs come before users.
    pub steps: Vec<Step>,
    /// The step that yields the plan's rows, as a stream.
    pub root: StepId,
    /// Types of the root's columns.
    pub types: Vec<DataType>,
    /// Steps that yield the exported arrangements, in order of the exports.
    pub exports: Vec<(Export, StepId)>,
    /// Whether the root's rows are never taken back.
    pub is_append_only: bool,
    /// The root's rows of which no change will come.
    pub floor: Option<LimitStep>,
    /// What steps compute, inputs before users; for people.
    pub plans: Vec<(StepId, Arc<Plan>)>,
}

impl Physical {
    /// The existing arrangements that it reads.
    pub fn uses(&self) -> BTreeSet<ArrangementId> {
        let used = self.steps.iter().filter_map(|step| match step {
            Step::ImportStream { history, .. } => *history,
            Step::ImportArranged { arrangement, .. } => Some(*arrangement),
            _ => None,
        });
        used.collect()
    }

    /// The collections whose changes it reads as they come.
    pub fn follows(&self) -> BTreeSet<CollectionId> {
        let followed = self.steps.iter().filter_map(|step| match step {
            Step::ImportStream { input, .. } => *input,
            _ => None,
        });
        followed.collect()
    }

    /// The existing arrangements all rows of which some join may look at for ever.
    pub fn keeps(&self) -> BTreeSet<ArrangementId> {
        let sides = self.steps.iter().flat_map(|step| match step {
            Step::Join { left, right, limits, .. } | Step::SemiJoin { left, right, limits, .. } => {
                let is_kept = |(input, _): &(usize, StepId)| limits.iter().all(|limit| limit.input != *input);
                [(0, *left), (1, *right)].into_iter().filter(is_kept).map(|(_, step)| step).collect()
            }
            Step::Recursive { arranged, .. } => arranged.clone(),
            _ => vec![],
        });
        let imported = sides.filter_map(|step| match &self.steps[step.0] {
            Step::ImportArranged { arrangement, .. } => Some(*arrangement),
            _ => None,
        });
        imported.collect()
    }

    /// How many users each step has among the others; the root has one more if its stream is
    /// wanted.
    pub fn users(&self, is_root_wanted: bool) -> Vec<usize> {
        let mut users = vec![0; self.steps.len()];
        self.steps.iter().flat_map(Step::inputs).for_each(|input| users[input.0] += 1);
        users[self.root.0] += usize::from(is_root_wanted);
        users
    }

    /// What a step yields for others, if it does.
    pub fn exported(&self, step: StepId) -> Option<&Export> {
        self.exports.iter().find(|(_, exported)| *exported == step).map(|(export, _)| export)
    }
}

impl Step {
    /// The steps that it reads.
    pub fn inputs(&self) -> Vec<StepId> {
        match self {
            Step::ImportStream { .. } | Step::ImportArranged { .. } | Step::Constant { .. } => vec![],
            Step::Enter { .. } | Step::EnterArranged { .. } | Step::Variable { .. } => vec![],
            Step::Recursive { inputs, arranged, .. } => inputs.iter().chain(arranged).copied().collect(),
            Step::Stage { input, .. }
            | Step::Unnest { input, .. }
            | Step::Arrange { input, .. }
            | Step::Aggregate { input, .. }
            | Step::TopK { input, .. }
            | Step::Sessions { input, .. }
            | Step::Recognize { input, .. }
            | Step::Window { input, .. } => vec![*input],
            Step::Join { left, right, .. }
            | Step::SemiJoin { left, right, .. }
            | Step::JoinOnce { left, right, .. }
            | Step::SemiJoinOnce { left, right, .. }
            | Step::Asof { left, right, .. } => vec![*left, *right],
            Step::Threshold { rows, scalars, .. } => vec![*rows, *scalars],
            Step::Union { inputs } | Step::SetOperation { inputs, .. } | Step::Temporal { inputs, .. } => {
                inputs.clone()
            }
        }
    }
}

/// One step.
#[derive(Clone)]
pub enum Step {
    /// The history of a relation and its changes, as a stream.
    ImportStream {
        name: String,
        /// Where the changes of an input come from; `None` listens to the arrangement.
        input: Option<CollectionId>,
        /// Where the history is.
        history: Option<ArrangementId>,
        columns: Vec<usize>,
    },
    /// An existing arrangement, shared.
    ImportArranged {
        name: String,
        arrangement: ArrangementId,
    },
    /// Literal rows.
    Constant {
        rows: Batch,
    },
    /// Filter and project.
    Stage {
        input: StepId,
        stage: Stage,
    },
    Unnest {
        input: StepId,
        unnest: Unnest,
    },
    Union {
        inputs: Vec<StepId>,
    },
    /// A stream becomes an arrangement by key.
    Arrange {
        input: StepId,
        key: Vec<usize>,
        types: Vec<DataType>,
    },
    /// Two arrangements; yields a stream.
    Join {
        left: StepId,
        right: StepId,
        join: JoinStep,
        limits: Vec<LimitStep>,
    },
    /// Two arrangements; yields a stream.
    SemiJoin {
        left: StepId,
        right: StepId,
        semi_join: SemiJoinStep,
        limits: Vec<LimitStep>,
    },
    /// Two streams, joined as of the dataflow's first time only; yields a stream.
    JoinOnce {
        left: StepId,
        right: StepId,
        join: JoinStep,
    },
    /// Likewise.
    SemiJoinOnce {
        left: StepId,
        right: StepId,
        semi_join: SemiJoinStep,
    },
    /// Two streams; yields a stream.
    Asof {
        left: StepId,
        right: StepId,
        asof: AsofSpec,
        limits: Vec<LimitStep>,
    },
    Sessions {
        input: StepId,
        sessions: SessionSpec,
        limits: Vec<LimitStep>,
    },
    Aggregate {
        input: StepId,
        aggregate: AggregateSpec,
        limits: Vec<LimitStep>,
    },
    /// Distinct and the set operations: one or two inputs.
    SetOperation {
        inputs: Vec<StepId>,
        operation: Operation,
        types: Vec<DataType>,
        limits: Vec<LimitStep>,
    },
    /// Rows (their value first) against a scalar; yields the rows without the value.
    Threshold {
        rows: StepId,
        scalars: StepId,
        comparison: Comparison,
        limits: Vec<LimitStep>,
    },
    TopK {
        input: StepId,
        top: TopKSpec,
        limits: Vec<LimitStep>,
    },
    Recognize {
        input: StepId,
        recognize: Box<RecognizeSpec>,
        limits: Vec<LimitStep>,
    },
    Window {
        input: StepId,
        window: Box<WindowSpec>,
        limits: Vec<LimitStep>,
    },
    /// A verb on events.
    Temporal {
        verb: TemporalStep,
        inputs: Vec<StepId>,
    },
    /// A loop.
    Recursive {
        /// Streams that enter.
        inputs: Vec<StepId>,
        /// The types of their columns.
        types: Vec<Vec<DataType>>,
        /// Imported arrangements that enter.
        arranged: Vec<StepId>,
        body: Arc<Body>,
    },
    /// In a loop: the rows of a stream that enters.
    Enter {
        input: usize,
    },
    /// In a loop: an arrangement that enters.
    EnterArranged {
        input: usize,
    },
    /// In a loop: the rows of a variable as of the round before.
    Variable {
        binding: usize,
    },
}

/// The steps of a loop.
pub struct Body {
    /// Inputs come before users.
    pub steps: Vec<Step>,
    /// The step that defines each variable.
    pub bindings: Vec<StepId>,
    /// The step whose rows leave the loop.
    pub result: StepId,
    pub limit: RoundLimit,
}

/// As [`anabranch_operators::relational::join::JoinSpec`], without the time.
#[derive(Clone)]
pub struct JoinStep {
    pub left_key: Vec<usize>,
    pub right_key: Vec<usize>,
    pub nulls: Nulls,
    pub gather_left: Vec<usize>,
    pub gather_right: Vec<usize>,
    pub stage: Stage,
}

impl JoinStep {
    /// What the operator is asked.
    pub fn spec(&self, as_of: Time) -> JoinSpec {
        JoinSpec {
            left_key: self.left_key.clone(),
            right_key: self.right_key.clone(),
            nulls: self.nulls,
            gather_left: self.gather_left.clone(),
            gather_right: self.gather_right.clone(),
            stage: self.stage.clone(),
            as_of,
        }
    }
}

/// As [`anabranch_operators::relational::semi_join::SemiJoinSpec`], without the time.
#[derive(Clone)]
pub struct SemiJoinStep {
    pub left_key: Vec<usize>,
    pub right_key: Vec<usize>,
    pub nulls: Nulls,
    pub keep: Keep,
    pub residual: Option<Residual>,
    pub gather: Vec<usize>,
    pub stage: Stage,
}

impl SemiJoinStep {
    /// What the operator is asked.
    pub fn spec(&self, as_of: Time) -> SemiJoinSpec {
        SemiJoinSpec {
            left_key: self.left_key.clone(),
            right_key: self.right_key.clone(),
            nulls: self.nulls,
            keep: self.keep,
            residual: self.residual.clone(),
            gather: self.gather.clone(),
            stage: self.stage.clone(),
            as_of,
        }
    }
}
