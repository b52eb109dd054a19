//! From a plan to a running dataflow, in two moves.
//!
//! [`prepare`](prepare::prepare) decides and compiles on the session's side, and may fail;
//! [`render`] builds the operators on a worker, and may not: every worker must build the same
//! operators in the same order. Law: the dataflow computes the plan's meaning as of `as_of` and
//! from then on.

mod aggregate;
pub(crate) mod bases;
mod deal;
pub(crate) mod detect;
mod entering;
pub mod expression;
mod join;
mod kernels;
mod leaves;
mod limits;
mod loops;
mod moments;
pub mod physical;
mod places;
mod prepare;
mod prepare_loop;
mod recognize;
mod shares;
mod shift;
mod specs;
pub mod temporal;
mod temporal_step;
mod threshold;
mod window;

use std::collections::BTreeMap;
use std::sync::Arc;

use anabranch_arrangement::{Layout, MergeEffort, Reader};
use anabranch_batch::{ShardNumber, Time, hash, route};
use anabranch_flow::arrange::{Made, Readers};
use anabranch_flow::chain::{Chain, timed};
use anabranch_flow::egress::{EgressRef, egress};
use anabranch_flow::hidden::HiddenTimes;
use anabranch_flow::import::Horizon;
use anabranch_flow::limit::Limited;
use anabranch_flow::relay::Relay;
use anabranch_flow::runs::{Arranged, Runs};
use anabranch_flow::sink::{CaptureRef, capture};
use anabranch_flow::tactic::Timed;
use anabranch_flow::{Scope, Stream};
use anabranch_operators::aggregate::Combiner;
use anabranch_operators::ordered::asof::{Asof, AsofSpec};
use anabranch_operators::ordered::match_recognize::{Recognize, RecognizeSpec};
use anabranch_operators::ordered::session::{SessionSpec, Sessions};
use anabranch_operators::ordered::top_k::TopKTactic;
use anabranch_operators::ordered::window::{WindowSpec, WindowTactic};
use anabranch_operators::recursive::{LoopBegin, recursive};
use anabranch_operators::relational::join::join;
use anabranch_operators::relational::once::{join_once, semi_join_once};
use anabranch_operators::relational::semi_join::semi_join;
use anabranch_operators::relational::set_operation::SetOperation;
use anabranch_operators::relational::threshold::Threshold;
use arrow::array::{ArrayRef, StringViewArray};
use arrow::datatypes::DataType;

use crate::cluster::marks::Marks;
use crate::cluster::spec::{ArrangementId, CollectionId, Egress, LimitStep};
use aggregate::combined;
use deal::{Deal, deals, placed};
pub(crate) use leaves::Leaves;
use physical::{Physical, Step, StepId};
pub(crate) use places::{RowMovement, movements};
pub(crate) use prepare::prepare;
pub(crate) use shares::{Found, NoShares, Shares};
use specs::layout;

/// What a worker has that dataflows may read.
pub(crate) struct WorkerShared<'a> {
    pub relays: &'a mut BTreeMap<CollectionId, Relay>,
    pub arrangements: &'a BTreeMap<ArrangementId, Exported>,
}

/// An arrangement of a worker, as others see it: its rows, and the row errors of its collection (by
/// message).
#[derive(Clone)]
pub(crate) struct Exported {
    pub rows: Reader,
    pub errors: Reader,
}

/// What rendering hands back to the worker.
pub(crate) struct Rendered {
    pub exports: Vec<(ArrangementId, Exported)>,
    pub capture: Option<CaptureRef>,
    pub events: Option<EgressRef>,
}

/// How to build a dataflow, apart from its steps.
#[derive(Clone, Debug)]
pub(crate) struct RenderOptions {
    pub as_of: Time,
    /// Before it no reader tells times apart.
    pub horizon: Horizon,
    /// The same, for loops.
    pub hidden: HiddenTimes,
    pub effort: MergeEffort,
    pub egress: Egress,
    pub marks: Marks,
}

/// Builds the operators of a dataflow in a scope.
pub(crate) fn render<'s>(
    scope: Scope<'s>,
    name: &str,
    physical: &Physical,
    shared: &mut WorkerShared<'_>,
    options: RenderOptions,
) -> Rendered {
    let wanted = options.egress;
    let users = physical.users(wanted != Egress::Nothing);
    let mut deals = if scope.peers() > 1 { deals(physical, &users) } else { BTreeMap::new() };
    // (What is there already has to be where the key is.)
    deals.retain(|(import, _), deal| match &physical.steps[import.0] {
        Step::ImportStream { history: Some(history), columns, .. } => {
            let arranged = &shared.arrangements[history].rows;
            placed(&arranged.layout().key, columns).as_ref() == Some(&deal.key)
        }
        _ => true,
    });
    let mut renderer = Renderer {
        scope,
        name,
        physical,
        shared,
        options,
        users,
        deals,
        user: physical.root,
        n_loops: 0,
        built: Vec::new(),
        errors: BTreeMap::new(),
    };
    for index in 0..physical.steps.len() {
        renderer.user = StepId(index);
        let built = renderer.step(StepId(index));
        renderer.built.push(built);
    }
    renderer.user = StepId(physical.steps.len());
    let exports = renderer.exports();
    let capture = match wanted {
        Egress::Changes(bounds) => {
            // (Rows that only come have nothing to meet: moving them costs more than making them.)
            let meets_by = (!physical.is_append_only).then_some(physical.types.len());
            Some(capture(renderer.chain(physical.root), meets_by, bounds))
        }
        _ => None,
    };
    let events = (wanted == Egress::Events).then(|| egress(renderer.chain(physical.root)));
    Rendered { exports, capture, events }
}

/// What a step has become so far.
enum Built<'s> {
    /// Of one user, who has not come yet.
    Chain(Chain<'s>),
    /// Of several users.
    Stream(Stream<'s>),
    /// An arrangement, and its runs if operators of this dataflow read them.
    Arranged(Reader, Option<Runs<'s>>),
    /// Of an import, which each user opens for itself.
    Import,
    /// Its user continued it.
    Used,
}

struct Renderer<'s, 'a, 'b> {
    scope: Scope<'s>,
    /// Of the dataflow, and so of its readers.
    name: &'b str,
    physical: &'b Physical,
    shared: &'b mut WorkerShared<'a>,
    options: RenderOptions,
    /// How many users each step has, exports not counted.
    users: Vec<usize>,
    /// How imports deal out rows, by import and user.
    deals: BTreeMap<(StepId, StepId), Deal>,
    /// The step that is being built.
    user: StepId,
    /// How many loops were built so far.
    n_loops: usize,
    built: Vec<Built<'s>>,
    /// The row errors beside what is exported: complete where it is, without waking readers, so
    /// who reads one of the two must hear of the other.
    errors: BTreeMap<StepId, Reader>,
}

impl<'s> Renderer<'s, '_, '_> {
    /// A step, to be continued.
    fn chain(&mut self, step: StepId) -> Chain<'s> {
        self.rows_of(step).of_operator(step.0)
    }

    fn rows_of(&mut self, step: StepId) -> Chain<'s> {
        if let Built::Stream(stream) = &self.built[step.0] {
            return Chain::of_stream(stream.clone(), self.options.as_of);
        }
        if let (Built::Import, Step::ImportStream { name, input, history, columns }) =
            (&self.built[step.0], &self.physical.steps[step.0])
        {
            return match self.deals.get(&(step, self.user)).cloned() {
                Some(Deal { key, wanted, is_sure }) => {
                    let dealing = self.dealing(key.clone(), None, (!is_sure).then_some(key));
                    let chain = self.import_changes(name, *input, *history, columns, Some(dealing));
                    chain.placed(is_sure.then_some(wanted))
                }
                None => self.import_changes(name, *input, *history, columns, None),
            };
        }
        match std::mem::replace(&mut self.built[step.0], Built::Used) {
            Built::Chain(chain) => chain,
            _ => unreachable!("a chain with one user was prepared here"),
        }
    }

    fn arranged(&self, step: StepId) -> Arranged<'s> {
        match &self.built[step.0] {
            Built::Arranged(reader, Some(runs)) => Arranged { reader: reader.clone(), runs: runs.clone() },
            _ => unreachable!("an arrangement was prepared here"),
        }
    }

    fn step(&mut self, id: StepId) -> Built<'s> {
        let physical = self.physical;
        let chain = match &physical.steps[id.0] {
            Step::ImportStream { .. } if self.deals.keys().any(|(import, _)| *import == id) => return Built::Import,
            Step::ImportArranged { name, arrangement } => return self.import(name, *arrangement),
            Step::Arrange { input, key, types } => {
                let (reader, runs) = self.arrange(id, *input, layout(key, types));
                return Built::Arranged(reader, runs);
            }
            step @ (Step::ImportStream { .. } | Step::Constant { .. } | Step::Union { .. }) => self.chain_of(step),
            step => self.chain_of(step).counted(id.0),
        };
        match self.users[id.0] {
            0 | 1 => Built::Chain(chain),
            _ => Built::Stream(chain.into_stream()),
        }
    }

    /// A step that yields rows.
    fn chain_of(&mut self, step: &Step) -> Chain<'s> {
        let as_of = self.options.as_of;
        match step {
            Step::ImportArranged { .. } | Step::Arrange { .. } => unreachable!("it yields an arrangement"),
            Step::ImportStream { name, input, history, columns } => {
                self.import_changes(name, *input, *history, columns, None)
            }
            Step::Constant { rows } => self.constant(rows),
            Step::Stage { input, stage } if self.deals.contains_key(&(*input, self.user)) => {
                self.dealt_stage(*input, stage)
            }
            Step::Stage { input, stage } => {
                let (stage, chain) = (stage.clone(), self.chain(*input));
                let placed = chain.places().and_then(|columns| stage.shown(columns));
                chain.then("Stage", move |batch, out| stage.apply(batch, out)).placed(placed)
            }
            Step::Unnest { input, unnest } => {
                let unnest = unnest.clone();
                self.chain(*input).then("Unnest", move |batch, out| unnest.apply(batch.compact(), out))
            }
            Step::Union { inputs } => Chain::union(inputs.iter().map(|input| self.chain(*input)).collect()),
            Step::Join { left, right, join: step, limits } => {
                let limits = self.options.marks.limits(limits);
                join(self.arranged(*left), self.arranged(*right), step.spec(as_of), limits)
            }
            Step::SemiJoin { left, right, semi_join: step, limits } => {
                let limits = self.options.marks.limits(limits);
                semi_join(self.arranged(*left), self.arranged(*right), step.spec(as_of), limits)
            }
            Step::JoinOnce { left, right, join: step } => {
                let (left, right) = (self.chain(*left), self.chain(*right));
                join_once(left, right, step.spec(as_of))
            }
            Step::SemiJoinOnce { left, right, semi_join: step } => {
                let (left, right) = (self.chain(*left), self.chain(*right));
                semi_join_once(left, right, step.spec(as_of))
            }
            Step::Asof { left, right, asof, limits } => {
                let spec = AsofSpec { effort: self.options.effort, ..asof.clone() };
                let (left, right) = (self.chain(*left), self.chain(*right));
                let inputs = vec![(left, spec.join.left_key.clone()), (right, spec.join.right_key.clone())];
                timed(inputs, "Asof", as_of, self.limited(Box::new(Asof::new(spec)), limits))
            }
            Step::Sessions { input, sessions, limits } => {
                let spec = SessionSpec { effort: self.options.effort, ..sessions.clone() };
                let partition = spec.windows.partition.clone();
                let tactic = self.limited(Box::new(Sessions::new(spec)), limits);
                timed(vec![(self.chain(*input), partition)], "Session", as_of, tactic)
            }
            Step::Aggregate { input, aggregate, limits } => {
                let chain = self.chain(*input);
                self.aggregate(chain, aggregate, limits)
            }
            Step::SetOperation { inputs, operation, types, limits } => {
                let set_operation = SetOperation::new(*operation, types.clone()).on_shard(self.shard());
                let tactic = self.limited(Box::new(set_operation), limits);
                let key: Vec<usize> = (0..types.len()).collect();
                if let [input] = inputs[..] {
                    let shard = self.shard();
                    let combine = || combined(Combiner::of_rows(types).on_shard(shard));
                    let chain = self.chain(input).then_unless_placed(&key, "Combine", combine);
                    return chain.then_timed("SetOperation", key.clone(), tactic, Some(key));
                }
                let inputs = inputs.iter().map(|input| (self.chain(*input), key.clone())).collect();
                timed(inputs, "SetOperation", as_of, tactic)
            }
            Step::Threshold { rows, scalars, comparison, limits } => {
                let inputs = vec![(self.chain(*rows), vec![]), (self.chain(*scalars), vec![])];
                timed(inputs, "Threshold", as_of, self.limited(Box::new(Threshold::new(*comparison)), limits))
            }
            Step::TopK { input, top, limits } => {
                let mut spec = top.clone();
                spec.effort = self.options.effort;
                let group = spec.top.group.clone();
                let tactic = self.limited(Box::new(TopKTactic::new(spec)), limits);
                self.chain(*input).then_timed("TopK", group.clone(), tactic, Some(group))
            }
            Step::Recognize { input, recognize, limits } => {
                let spec = RecognizeSpec { effort: self.options.effort, ..recognize.as_ref().clone() };
                let partition = spec.partition.clone();
                let tactic = self.limited(Box::new(Recognize::new(spec)), limits);
                timed(vec![(self.chain(*input), partition)], "Recognize", as_of, tactic)
            }
            Step::Window { input, window, limits } => {
                let spec = WindowSpec { effort: self.options.effort, ..window.as_ref().clone() };
                let partition = spec.window.partition.clone();
                let tactic = self.limited(Box::new(WindowTactic::new(spec)), limits);
                timed(vec![(self.chain(*input), partition)], "Window", as_of, tactic)
            }
            Step::Recursive { inputs, types, arranged, body } => self.recursive(inputs, types, arranged, body),
            Step::Enter { .. } | Step::EnterArranged { .. } | Step::Variable { .. } => {
                unreachable!("it is a step of a loop")
            }
            Step::Temporal { verb, inputs } => {
                let inputs = inputs.iter().map(|input| self.chain(*input)).collect();
                verb.render(inputs, self.options.effort)
            }
        }
    }

    /// A loop, on one worker.
    fn recursive(
        &mut self,
        inputs: &[StepId],
        types: &[Vec<DataType>],
        arranged: &[StepId],
        body: &physical::Body,
    ) -> Chain<'s> {
        let effort = self.options.effort;
        let owner = self.next_loop_owner();
        let begin = LoopBegin {
            as_of: self.options.as_of,
            hidden: self.options.hidden.listen(),
            is_owner: owner == self.scope.index(),
        };
        let layout_of = |step: &StepId| match &self.built[step.0] {
            Built::Arranged(reader, _) => Arc::clone(reader.layout()),
            _ => unreachable!("an arrangement was prepared here"),
        };
        let layouts: Vec<Arc<Layout>> = arranged.iter().map(layout_of).collect();
        let mut streams: Vec<Chain<'s>> = inputs.iter().map(|input| self.chain(*input).on_worker(owner)).collect();
        if self.scope.peers() == 1 {
            let spec = loops::spec_of(body, types, &layouts, loops::EnterAs::Arrangements, effort);
            let arranged = arranged.iter().map(|step| self.arranged(*step)).collect();
            return recursive(self.scope.clone(), spec, streams, arranged, begin);
        }
        for (step, layout) in arranged.iter().zip(&layouts) {
            let Step::ImportArranged { name, arrangement } = &self.physical.steps[step.0] else {
                unreachable!("arrangements that enter a loop are imported")
            };
            let all: Vec<usize> = (0..layout.types.len()).collect();
            streams.push(self.import_changes(name, None, Some(*arrangement), &all, None).on_worker(owner));
        }
        let spec = loops::spec_of(body, types, &layouts, loops::EnterAs::Streams, effort);
        recursive(self.scope.clone(), spec, streams, vec![], begin)
    }

    /// A tactic that is told what has passed.
    fn limited(&self, tactic: Box<dyn Timed>, limits: &[LimitStep]) -> Box<dyn Timed> {
        Limited::tactic(tactic, self.options.marks.limits(limits))
    }

    /// Rows by key: for operators of this dataflow, for others, or for both.
    fn arrange(&mut self, id: StepId, input: StepId, layout: Arc<Layout>) -> (Reader, Option<Runs<'s>>) {
        let readers = match (self.physical.exported(id), self.users[id.0]) {
            (None, _) => Readers::Inside,
            (Some(export), 0) if export.is_part => Readers::Perhaps,
            (Some(_), 0) => Readers::Outside,
            (Some(_), _) => Readers::Everywhere,
        };
        let made = self.chain(input).arrange_for(readers, self.name, layout, self.options.effort);
        let Made { rows, sealed, errors } = made;
        self.errors.extend(errors.map(|errors| (id, errors)));
        (rows.named(self.name), sealed.map(Runs::Edge))
    }

    /// The worker of the next loop of this dataflow, the same on all workers: loops of a dataflow,
    /// and of dataflows with other names, are spread.
    fn next_loop_owner(&mut self) -> usize {
        let name: ArrayRef = Arc::new(StringViewArray::from(vec![self.name]));
        let name = hash::hash_columns(&[name], 1)[0];
        self.n_loops += 1;
        (route(name, self.scope.peers()) + self.n_loops - 1) % self.scope.peers()
    }

    /// Which of the workers this is.
    fn shard(&self) -> ShardNumber {
        ShardNumber::new(self.scope.index(), self.scope.peers())
    }

    /// Whether rows without a key come to this worker.
    fn owns_single_group(&self) -> bool {
        let hash = hash::hash_columns(&[], 1)[0];
        route(hash, self.scope.peers()) == self.scope.index()
    }

    fn exports(&self) -> Vec<(ArrangementId, Exported)> {
        let exported = self.physical.exports.iter().map(|(export, step)| {
            let errors = self.errors.get(step).expect("row errors are arranged beside what is exported").clone();
            let Built::Arranged(rows, _) = &self.built[step.0] else {
                unreachable!("an arrangement was prepared here")
            };
            (export.arrangement, Exported { rows: rows.clone(), errors })
        });
        exported.collect()
    }
}
