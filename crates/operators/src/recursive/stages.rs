//! A loop inside of a loop, kept current.
//!
//! Law: that of [`super::reduce`], for the inner loop as a function of all rows of its inputs.
//!
//! Method: the *stage* of an outer round is the inner loop over all that has entered up to that
//! round. A round has a stage if the round changes an input. An epoch brings each later stage all
//! that the epoch has brought so far, as one epoch of the inner loop. The round puts out what its
//! stage changes, less what the stage before has changed.
//!
//! ```text
//!   outer round          1      3          7
//!   the epoch brings     +a     .          -a
//!   stages are brought   +a     +a         .           each is a loop that is kept current
//!   stages change by     d1     d3         0
//!   rounds put out       d1     d3 - d1    -d3
//! ```
//!
//! A round that has no stage, and brings something, begins with a copy of the stage before: that
//! is the inner loop over all rounds before, this epoch's changes included. So its changes are what
//! the round puts out.
//!
//! State: a stage for each such round, [`STAGES_MAX`] at most. Runs of arrangements are shared by
//! copies; tables are not. A stage whose round no longer changes anything is dropped when there are
//! twice as many stages as at the last look. With more rounds than that the inner loop is evaluated
//! anew in each epoch from then on, by [`super::reduce`].
//!
//! Cost: an epoch costs what it changes in each stage from its first round on. A new stage costs
//! its tables.
//!
//! Source: our own (decision 0092). Differential dataflow keeps one loop by product times, so that
//! a change costs what differs between outer rounds; here a change is paid for once a stage.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anabranch_batch::consolidate::consolidate;
use anabranch_batch::{Batch, Time, Times};
use anabranch_flow::tactic::Output;

use super::feed::Nested;
use super::machine::Machine;
use super::moment::Moment;
use super::reduce::{Reduce, ReduceInput, less};
use super::spec::{LoopSpec, TacticMaker};

/// So many stages are kept at most: each may be as large as the inner loop.
const STAGES_MAX: usize = 16;
/// With fewer stages none is looked for that could be dropped.
const LOOK_MIN: usize = 4;

/// See the module's page.
pub(super) struct Stages {
    spec: Arc<LoopSpec>,
    stages: BTreeMap<Time, Machine>,
    /// There are so many stages when it is next looked which of them have changes.
    look_at: usize,
    /// More rounds had changes than stages are kept.
    is_over: bool,
    /// The inner loop is evaluated anew by this.
    anew: Option<Reduce>,
    epoch: Epoch,
}

/// What the present epoch has done.
#[derive(Default)]
struct Epoch {
    /// The latest round that has begun; none is 0.
    round: Time,
    /// What has entered so far, by input. (The first epoch has no later stages to bring it to.)
    brought: Vec<Option<Batch>>,
    /// What the latest stage has changed.
    changed: Output,
    /// The stage that is being worked on.
    working: Option<Working>,
    /// A stage that is not kept, of this round.
    passing: Option<(Time, Machine)>,
}

struct Working {
    stage: Machine,
    /// Whether the stage was there before the epoch.
    is_kept: bool,
    out: Output,
}

impl Stages {
    pub fn new(spec: &Arc<LoopSpec>) -> Stages {
        Stages {
            spec: Arc::clone(spec),
            stages: BTreeMap::new(),
            look_at: LOOK_MIN,
            is_over: false,
            anew: None,
            epoch: Epoch::default(),
        }
    }

    /// The same stages, between epochs.
    pub fn copy(&self) -> Stages {
        Stages {
            spec: Arc::clone(&self.spec),
            stages: self.stages.iter().map(|(round, stage)| (*round, stage.copy())).collect(),
            look_at: self.look_at,
            is_over: self.is_over,
            anew: self.anew.as_ref().map(|_| anew(&self.spec)),
            epoch: Epoch::default(),
        }
    }

    /// Takes the changes of a round. Returns whether there is something to do in it.
    pub fn begin(&mut self, inputs: &[ReduceInput<'_>], moment: &Moment) -> bool {
        if self.epoch.round == 0 && self.anew.is_none() {
            self.look(inputs);
        }
        self.epoch.round = moment.round;
        if let Some(anew) = &mut self.anew {
            return anew.begin(inputs, moment);
        }
        let changes: Vec<Vec<Batch>> = inputs.iter().map(|input| input.changes(moment)).collect();
        let brings = changes.iter().any(|batches| !batches.is_empty());
        if brings && !moment.is_first {
            self.epoch.bring(&changes);
        }
        // (A loop may have rows over nothing.)
        let starts = moment.is_first && moment.round == 1;
        let kept = self.epoch.has_brought().then(|| self.stages.remove(&moment.round)).flatten();
        let is_kept = kept.is_some();
        let (mut stage, entered) = match kept {
            Some(stage) => (stage, self.epoch.entered()),
            None if brings || starts => (self.stage_before(moment.round), changes),
            None => return false,
        };
        stage.begin(moment.round, entered);
        self.epoch.working = Some(Working { stage, is_kept, out: Output::default() });
        true
    }

    /// The inner loop over all that has entered before a round.
    fn stage_before(&mut self, round: Time) -> Machine {
        let before = self.stages.range(..round).next_back();
        match self.epoch.passing.take() {
            Some((at, stage)) if before.is_none_or(|(kept, _)| *kept < at) => stage,
            _ => before.map_or_else(|| Machine::new((*self.spec).clone(), vec![]), |(_, stage)| stage.copy()),
        }
    }

    /// Goes on with a round; what it puts out, once that is all.
    pub fn work(&mut self, round: Time, fuel: &mut isize) -> Option<Output> {
        if let Some(anew) = &mut self.anew {
            let out = anew.work(round);
            if out.is_none() {
                *fuel = 0;
            }
            return out;
        }
        let Some(working) = &mut self.epoch.working else { return Some(Output::default()) };
        if !working.stage.work(fuel, &mut working.out) {
            return None;
        }
        let Working { stage, is_kept, out } = self.epoch.working.take()?;
        if is_kept {
            self.stages.insert(round, stage);
            let before = std::mem::replace(&mut self.epoch.changed, copied(&out));
            return Some(Output {
                rows: less(out.rows, before.rows, round),
                errors: less(out.errors, before.errors, round),
            });
        }
        self.epoch.changed.rows.extend(out.rows.iter().cloned());
        self.epoch.changed.errors.extend(out.errors.iter().cloned());
        if self.stages.len() < STAGES_MAX {
            self.stages.insert(round, stage);
        } else {
            self.is_over = true;
            self.epoch.passing = Some((round, stage));
        }
        Some(out)
    }

    /// The next round in which something may change.
    pub fn next_round(&self) -> Option<Time> {
        match &self.anew {
            Some(anew) => anew.next_round(),
            None if self.epoch.has_brought() => {
                self.stages.range(self.epoch.round + 1..).next().map(|(round, _)| *round)
            }
            None => None,
        }
    }

    /// The epoch is over.
    pub fn close(&mut self) {
        self.epoch = Epoch::default();
        if let Some(anew) = &mut self.anew {
            anew.close();
        }
    }

    /// Drops stages of rounds that change nothing any more, if there are many stages.
    fn look(&mut self, inputs: &[ReduceInput<'_>]) {
        if self.stages.len() < self.look_at && !self.is_over {
            return;
        }
        let live: BTreeSet<Time> = inputs.iter().flat_map(|input| input.rounds_after(1)).collect();
        self.is_over = live.iter().any(|round| !self.stages.contains_key(round));
        if self.is_over {
            self.stages.clear();
            self.anew = Some(anew(&self.spec));
            return;
        }
        self.stages.retain(|round, _| *round == 1 || live.contains(round));
        self.look_at = LOOK_MIN.max(2 * self.stages.len());
    }

    pub fn size_bytes(&self) -> usize {
        self.stages.values().map(Machine::size_bytes).sum()
    }
}

impl Epoch {
    fn bring(&mut self, changes: &[Vec<Batch>]) {
        self.brought.resize(changes.len(), None);
        for (brought, batches) in self.brought.iter_mut().zip(changes) {
            if batches.is_empty() {
                continue;
            }
            let all = brought.take().into_iter().chain(batches.iter().cloned());
            let all: Vec<Batch> = all.map(|batch| batch.flatten().with_times(Times::Constant(1))).collect();
            *brought = Batch::concat(&all).map(consolidate);
        }
    }

    fn has_brought(&self) -> bool {
        !self.brought.is_empty()
    }

    fn entered(&self) -> Vec<Vec<Batch>> {
        let rows = |brought: &Option<Batch>| brought.iter().filter(|batch| !batch.is_empty()).cloned().collect();
        self.brought.iter().map(rows).collect()
    }
}

fn anew(spec: &Arc<LoopSpec>) -> Reduce {
    let spec = Arc::clone(spec);
    let tactic: TacticMaker = Arc::new(move |_| Box::new(Nested::new((*spec).clone())));
    Reduce::new(&tactic, true)
}

fn copied(out: &Output) -> Output {
    Output { rows: out.rows.clone(), errors: out.errors.clone() }
}
