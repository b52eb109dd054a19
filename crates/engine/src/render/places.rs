//! Where the rows of each step lie among several workers, and which of them move: for people.
//!
//! Law: what is told is what [`render`](super::render) does: rows move where the next step wants
//! those of equal keys together and it is not derived that they are. It is derived here as chains
//! derive it (`flow/src/chain.rs`), from the steps alone, so EXPLAIN tells it before anything runs.
//! Verbs on lifetimes and the steps of a loop tell nothing. Cost: a pass over the steps.

use std::collections::BTreeMap;

use anabranch_batch::Time;
use anabranch_operators::aggregate::Combiner;

use super::aggregate::is_in_two_steps;
use super::deal::{deals, placed};
use super::physical::{Physical, Step, StepId};
use crate::cluster::spec::ArrangementId;

/// How rows come to be where a step wants them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RowMovement {
    /// All go to one worker.
    ToOne,
    /// To the workers of the hashes of these columns.
    ByKey(Vec<usize>),
    /// The same, those of a worker put together before.
    Combined(Vec<usize>),
    /// Each worker takes those of its hashes of these columns as they come in.
    Dealt(Vec<usize>),
}

/// Where rows lie, step by step.
struct Places<'a> {
    /// The key of an arrangement that exists.
    key_of: &'a dyn Fn(ArrangementId) -> Option<Vec<usize>>,
    deals: BTreeMap<(StepId, StepId), RowMovement>,
    /// Columns of the hash by which rows of each step lie, if that is known.
    by: Vec<Option<Vec<usize>>>,
    /// What moves of the rows of a step.
    movements: Vec<(StepId, RowMovement)>,
}

/// What moves of the rows of each step, with several workers. `is_root_wanted` as for
/// [`Physical::users`].
pub(crate) fn movements(
    physical: &Physical,
    is_root_wanted: bool,
    key_of: &dyn Fn(ArrangementId) -> Option<Vec<usize>>,
) -> Vec<(StepId, RowMovement)> {
    let mut dealt = deals(physical, &physical.users(is_root_wanted));
    // (As where steps are rendered: what is there already has to be where the key is.)
    dealt.retain(|(import, _), deal| match &physical.steps[import.0] {
        Step::ImportStream { history: Some(history), columns, .. } => {
            key_of(*history).and_then(|key| placed(&key, columns)).as_ref() == Some(&deal.key)
        }
        _ => true,
    });
    let is_sure = dealt.iter().filter(|(_, deal)| deal.is_sure);
    let deals = is_sure.map(|(users, deal)| (*users, RowMovement::Dealt(deal.key.clone()))).collect();
    let mut places = Places { key_of, deals, by: vec![], movements: vec![] };
    for (index, step) in physical.steps.iter().enumerate() {
        let place = places.place(StepId(index), step);
        places.by.push(place);
    }
    places.movements.sort_unstable();
    places.movements.dedup();
    places.movements
}

impl Places<'_> {
    /// Where the rows of a step lie; notes what moves before it.
    fn place(&mut self, id: StepId, step: &Step) -> Option<Vec<usize>> {
        match step {
            Step::ImportStream { input: None, history: Some(history), columns, .. } => {
                (self.key_of)(*history).and_then(|key| placed(&key, columns))
            }
            Step::Stage { input, stage } => {
                let of_input = self.of_input(*input, id);
                of_input.and_then(|columns| stage.shown(&columns))
            }
            Step::Union { inputs } => {
                let mut all = inputs.iter().map(|input| self.by[input.0].clone());
                let first = all.next().flatten();
                first.filter(|first| all.all(|other| other.as_ref() == Some(first)))
            }
            Step::Arrange { input, key, .. } => {
                self.wants(*input, id, key);
                Some(key.clone())
            }
            Step::Join { join, .. } => join.spec(Time::MIN).placed(),
            Step::SemiJoin { semi_join, .. } => semi_join.spec(Time::MIN).placed(),
            Step::JoinOnce { left, right, join } => {
                self.wants(*left, id, &join.left_key);
                self.wants(*right, id, &join.right_key);
                join.spec(Time::MIN).placed()
            }
            Step::SemiJoinOnce { left, right, semi_join } => {
                self.wants(*left, id, &semi_join.left_key);
                self.wants(*right, id, &semi_join.right_key);
                semi_join.spec(Time::MIN).placed()
            }
            Step::Asof { left, right, asof, .. } => {
                self.wants(*left, id, &asof.join.left_key);
                self.wants(*right, id, &asof.join.right_key);
                None
            }
            Step::Sessions { input, sessions, .. } => self.wants(*input, id, &sessions.windows.partition),
            Step::Recognize { input, recognize, .. } => self.wants(*input, id, &recognize.partition),
            Step::Window { input, window, .. } => self.wants(*input, id, &window.window.partition),
            Step::Threshold { rows, scalars, .. } => {
                self.wants(*rows, id, &[]);
                self.wants(*scalars, id, &[])
            }
            Step::Aggregate { input, aggregate, limits } => {
                let keys = &aggregate.keys;
                let combines = |place: Option<&[usize]>| {
                    Combiner::of_aggregate(aggregate).is_some() || is_in_two_steps(aggregate, limits, place)
                };
                let place = self.together(*input, id, keys, combines);
                place.iter().map(|column| keys.iter().position(|key| key == column)).collect()
            }
            Step::SetOperation { inputs, types, .. } => {
                let key: Vec<usize> = (0..types.len()).collect();
                if let [input] = inputs[..] {
                    return Some(self.together(input, id, &key, |_| true));
                }
                inputs.iter().for_each(|input| drop(self.wants(*input, id, &key)));
                None
            }
            Step::TopK { input, top, .. } => Some(self.together(*input, id, &top.top.group, |_| false)),
            Step::Recursive { inputs, arranged, .. } => {
                let all = inputs.iter().chain(arranged);
                self.movements.extend(all.map(|input| (*input, RowMovement::ToOne)));
                None
            }
            Step::ImportArranged { .. }
            | Step::ImportStream { .. }
            | Step::Constant { .. }
            | Step::Unnest { .. }
            | Step::Temporal { .. }
            | Step::Enter { .. }
            | Step::EnterArranged { .. }
            | Step::Variable { .. } => None,
        }
    }

    /// Where the rows of an input lie for one of its users. What is dealt out is noted.
    fn of_input(&mut self, input: StepId, user: StepId) -> Option<Vec<usize>> {
        let Some(dealt) = self.deals.get(&(input, user)) else { return self.by[input.0].clone() };
        self.movements.push((input, dealt.clone()));
        match dealt {
            RowMovement::Dealt(key) => Some(key.clone()),
            _ => None,
        }
    }

    /// A step wants its rows by the hash of just this key. (Behind it their place is not known.)
    fn wants(&mut self, input: StepId, user: StepId, key: &[usize]) -> Option<Vec<usize>> {
        if self.of_input(input, user).as_deref() != Some(key) {
            self.movements.push((input, by(key, false)));
        }
        None
    }

    /// A step wants rows of equal keys on one worker: by which columns they are.
    fn together(
        &mut self,
        input: StepId,
        user: StepId,
        key: &[usize],
        combines: impl FnOnce(Option<&[usize]>) -> bool,
    ) -> Vec<usize> {
        let is_part = |placed: &Vec<usize>| {
            placed == key || !placed.is_empty() && placed.iter().all(|column| key.contains(column))
        };
        let placed = self.of_input(input, user);
        if let Some(placed) = placed.clone().filter(is_part) {
            return placed;
        }
        self.movements.push((input, by(key, combines(placed.as_deref()))));
        key.to_vec()
    }
}

fn by(key: &[usize], combines: bool) -> RowMovement {
    match (key, combines) {
        ([], false) => RowMovement::ToOne,
        (_, false) => RowMovement::ByKey(key.to_vec()),
        (_, true) => RowMovement::Combined(key.to_vec()),
    }
}
