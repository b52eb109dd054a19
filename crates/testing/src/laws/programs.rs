//! Queries that come and go over a changing history, sharing what they have in common.
//!
//! Law under test: whatever else is installed, was installed and has gone, an installed plan's
//! arrangement holds, at every time, what the model computes; and when all queries are gone, so is
//! all that they shared.
//!
//! A program installs and drops plans at random between the portions of a history, each with its
//! own keys, its own extent of sharing, as of now or of a time that is past and not forgotten. The
//! plans are put together from each other, so most have parts in common.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use anabranch_batch::Batch;
use anabranch_engine::cluster::{ArrangementId, Cluster, CollectionId, DataflowId, Egress, Peek, Read, WantedKeys};
use anabranch_engine::dataflows::{Dataflows, WantedDataflow};
use anabranch_engine::{Interrupt, Sharing};
use anabranch_flow::account::memory::Holder;
use anabranch_flow::sink::Bounds;
use anabranch_plan::Plan;
use anabranch_plan::bounds::Promises;

use super::feed::portions;
use super::run::{read_updates, same};
use super::setting::Setting;
use crate::build::{Builder, width};
use crate::generator::history::History;
use crate::model::{Answer, evaluate};
use crate::rng::Rng;
use crate::row::Row;

/// Runs a random program of `plans` over a history.
///
/// # Panics
/// If an installed plan's arrangement is not what the model computes, or something stays when all
/// are gone.
pub fn run(rng: &mut Rng, plans: &[Arc<Plan>], history: &History) {
    super::collide_hashes_if_asked();
    let workers = rng.below(4);
    let setting = Setting { arranged: true, late: true, ..Setting::random(rng, workers) };
    let portions = portions(rng, history, &setting);
    let mut program = Program::start(rng.fork(), plans, history, &setting);
    for portion in portions {
        program.change();
        for (relation, batch) in portion.batches {
            program.cluster.push(collection(relation), batch.flatten());
            program.step_sometimes();
        }
        let before = std::mem::replace(&mut program.completed, portion.last);
        program.pass_over_times_sometimes(before);
        program.cluster.advance(portion.last + 1);
        program.step_sometimes();
        if program.rng.chance(60) {
            program.change();
            program.check();
        }
        program.forget_sometimes();
    }
    program.check();
    program.dismiss();
}

fn collection(relation: usize) -> CollectionId {
    CollectionId(1_000_000 + relation as u64)
}

struct Program<'a> {
    rng: Rng,
    plans: &'a [Arc<Plan>],
    history: &'a History,
    setting: &'a Setting,
    cluster: Cluster,
    dataflows: Dataflows,
    reads: BTreeMap<String, Read>,
    /// All inputs are complete up to and including this time.
    completed: i64,
    /// What was before this time may be forgotten.
    forgotten: i64,
    live: Vec<Live>,
    /// Arrangements of the relations, with their readers before there were queries.
    base: BTreeMap<ArrangementId, usize>,
    n_base: usize,
}

/// An installed plan.
struct Live {
    plan: usize,
    dataflow: DataflowId,
    as_of: i64,
    sink: Sink,
}

enum Sink {
    Arrangement(ArrangementId),
    /// What the changes were so far.
    Changes(Vec<(Row, i64, i64)>),
}

impl<'a> Program<'a> {
    fn start(rng: Rng, plans: &'a [Arc<Plan>], history: &'a History, setting: &'a Setting) -> Program<'a> {
        let cluster = Cluster::start(setting.workers, setting.effort).expect("a cluster starts");
        let mut program = Program {
            rng,
            plans,
            history,
            setting,
            cluster,
            dataflows: Dataflows::default(),
            reads: BTreeMap::new(),
            completed: 0,
            forgotten: 0,
            live: vec![],
            base: BTreeMap::new(),
            n_base: 0,
        };
        for relation in 0..history.relations.len() {
            program.arrange(relation);
        }
        program.base = program.readers();
        program.n_base = program.dataflows.count();
        program
    }

    /// Arranges an input whole, and perhaps by its first column too.
    fn arrange(&mut self, index: usize) {
        self.cluster.create_input(collection(index), 1);
        let relation = &self.history.relations[index];
        let plan = Builder::new().scan(relation);
        let mut keys = vec![(0..relation.types.len()).collect()];
        if self.rng.chance(50) {
            keys.push(vec![0]);
        }
        let mut read = Read {
            collection: collection(index),
            is_input: true,
            arrangements: vec![],
            primary_key: vec![],
            promises: Promises::default(),
        };
        let reads = BTreeMap::from([(relation.name.clone(), read.clone())]);
        let wanted = WantedDataflow {
            name: &relation.name,
            plan: &plan,
            keys: &keys,
            egress: Egress::Nothing,
            reads: &reads,
            as_of: 0,
            sharing: Sharing::Full,
            is_asked_once: false,
            holder: Holder::Rows,
            client: None,
        };
        let (_, arrangements) = self.dataflows.install(&mut self.cluster, &wanted).expect("a scan can be installed");
        read.arrangements = arrangements.into_iter().zip(keys).collect();
        self.reads.insert(relation.name.clone(), read);
    }

    /// Installs and drops some plans.
    fn change(&mut self) {
        for _ in 0..self.rng.below(4) {
            if !self.live.is_empty() && self.rng.chance(40) {
                let index = self.rng.below(self.live.len());
                let gone = self.live.swap_remove(index);
                self.dataflows.release(&mut self.cluster, gone.dataflow);
            } else {
                self.install();
            }
            self.step_sometimes();
        }
    }

    fn install(&mut self) {
        let index = self.rng.below(self.plans.len());
        let plan = &self.plans[index];
        let egress = if self.rng.chance(30) { Egress::Changes(Bounds::NONE) } else { Egress::Nothing };
        let columns = self.rng.below(width(plan) + 1);
        let keys = if egress != Egress::Nothing { vec![] } else { vec![self.rng.subset(width(plan), columns)] };
        let sharing = *self.rng.pick(&[Sharing::Full, Sharing::Full, Sharing::Full, Sharing::Existing, Sharing::Off]);
        let mut reads = self.reads.clone();
        let mut as_of = self.completed;
        if self.rng.chance(30) {
            // What came since then is in the arrangements.
            as_of = self.rng.between(self.forgotten, self.completed);
            reads.values_mut().for_each(|read| read.is_input = false);
        }
        let (holder, client) = (Holder::Standing, None);
        let wanted = WantedDataflow {
            name: "a plan",
            plan,
            keys: &keys,
            egress,
            reads: &reads,
            as_of,
            sharing,
            is_asked_once: false,
            holder,
            client,
        };
        let (dataflow, arrangements) = self.dataflows.install(&mut self.cluster, &wanted).expect("the plan is valid");
        let sink = match arrangements.first() {
            Some(arrangement) => Sink::Arrangement(*arrangement),
            None => Sink::Changes(vec![]),
        };
        self.live.push(Live { plan: index, dataflow, as_of, sink });
    }

    /// Compares everything that is installed with the model.
    fn check(&mut self) {
        let at = self.completed;
        let answers: Vec<Answer> =
            self.plans.iter().map(|plan| evaluate(plan, &self.history.contents_at(at))).collect();
        for live in &mut self.live {
            let what = format!("plan {} as of {at}, installed as of {}", live.plan, live.as_of);
            let (updates, failed) = contents(&mut self.cluster, live, at);
            let found = updates.into_iter().map(|(row, _, diff)| (row, diff)).collect();
            if let Some(failed) = failed.or_else(|| (!answers[live.plan].errors.is_empty()).then_some(true))
                && let Err(difference) = same(&what, &found, failed, &answers[live.plan])
            {
                let shown = anabranch_plan::explain::explain(&self.plans[live.plan], &|_| None);
                panic!("{difference}\nunder {:?}\nof\n{shown}", self.setting);
            }
        }
    }

    /// Drops everything; only the relations may remain.
    fn dismiss(&mut self) {
        for gone in std::mem::take(&mut self.live) {
            self.dataflows.release(&mut self.cluster, gone.dataflow);
        }
        assert_eq!(self.dataflows.count(), self.n_base, "a shared dataflow outlives its users");
        assert_eq!(self.readers(), self.base, "an arrangement or a reader outlives its dataflow");
    }

    fn readers(&mut self) -> BTreeMap<ArrangementId, usize> {
        let stats = self.cluster.stats();
        stats.into_iter().map(|stats| (stats.arrangement, stats.readers)).collect()
    }

    fn step_sometimes(&mut self) {
        if self.rng.chance(30) {
            self.cluster.step();
        }
    }

    /// Declares that no reader will read the times between the last portion's and this one's last.
    fn pass_over_times_sometimes(&mut self, before: i64) {
        if self.setting.compacting && self.rng.chance(50) {
            self.forget();
            self.cluster.set_horizons(before, self.dataflows.horizons(|_| self.completed));
        }
    }

    fn forget_sometimes(&mut self) {
        if !self.setting.compacting || self.rng.chance(30) {
            return;
        }
        self.forget();
    }

    fn forget(&mut self) {
        let all: BTreeSet<ArrangementId> = self.cluster.stats().iter().map(|stats| stats.arrangement).collect();
        all.into_iter().for_each(|arrangement| self.cluster.allow_compaction(arrangement, self.completed));
        self.dataflows.forget_before(self.completed);
        self.forgotten = self.completed;
    }
}

/// What an installed plan holds at a time, and whether it has row errors; nothing is known of those
/// without an arrangement once changes of errors were summed away.
fn contents(cluster: &mut Cluster, live: &mut Live, at: i64) -> (Vec<(Row, i64, i64)>, Option<bool>) {
    let interrupt = Interrupt::new();
    match &mut live.sink {
        Sink::Arrangement(arrangement) => {
            let peek = Peek { arrangement: *arrangement, at, rows: WantedKeys::All };
            let result = cluster.peek(peek, &interrupt).expect("an installed plan can be read");
            let failed = result.errors.iter().any(|(_, count)| *count != 0);
            (updates(&result.batches), Some(failed))
        }
        Sink::Changes(changes) => {
            cluster.await_frontier(live.dataflow, at, &interrupt).expect("an installed plan is complete");
            let new = cluster.changes(live.dataflow, Duration::ZERO).expect("an installed plan has changes");
            changes.extend(updates(&new.batches));
            assert!(changes.iter().all(|(_, time, _)| *time >= live.as_of), "changes come after the start");
            (changes.clone(), None)
        }
    }
}

fn updates(batches: &[Batch]) -> Vec<(Row, i64, i64)> {
    let mut updates = vec![];
    batches.iter().for_each(|batch| read_updates(batch, &mut updates));
    updates
}
