//! One run of a plan in a cluster, compared with what the model expects.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anabranch_batch::{Batch, types};
use anabranch_engine::cluster::{
    ArrangementId, Cluster, CollectionId, DataflowId, DataflowSpec, Egress, Export, Peek, Read, WantedKeys,
};
use anabranch_engine::{Error, Interrupt};
use anabranch_flow::sink::Bounds;
use anabranch_plan::Plan;
use anabranch_plan::bounds::Promises;

use super::TOLERANCE;
use super::feed::portions;
use super::setting::Setting;
use crate::build::{Builder, width};
use crate::generator::history::History;
use crate::model::Answer;
use crate::rng::Rng;
use crate::row::{Contents, Row};

const PLAN: DataflowId = DataflowId(1000);
const EXPORT: ArrangementId = ArrangementId(1000);

/// Runs the plan over the history as the setting says. An error says what differs from `expected`.
pub fn compare(
    plan: &Arc<Plan>,
    history: &History,
    setting: &Setting,
    expected: &[(i64, Answer)],
) -> Result<(), String> {
    let mut rng = Rng::new(setting.seed);
    let portions = portions(&mut rng, history, setting);
    let mut run = Run::start(plan, history, setting, rng).map_err(|error| format!("start: {error:?}"))?;
    let installed_at = if setting.late { run.rng.below(portions.len()) } else { 0 };
    for (index, portion) in portions.into_iter().enumerate() {
        if index == installed_at {
            run.install().map_err(|error| format!("install: {error:?}"))?;
        }
        if index > installed_at {
            run.change_neighbours().map_err(|error| format!("neighbour: {error:?}"))?;
        }
        for (relation, batch) in portion.batches {
            run.cluster.push(collection(relation), batch.flatten());
            run.step_sometimes();
        }
        run.complete(portion.last);
        if index >= installed_at && run.setting.waiting {
            run.await_results()?;
            run.compare_contents(expected)?;
        }
        run.forget_sometimes(index >= installed_at);
    }
    run.await_results()?;
    run.dismiss_neighbours()?;
    run.compare_contents(expected)?;
    run.compare_changes(expected)
}

struct Run<'a> {
    cluster: Cluster,
    plan: &'a Arc<Plan>,
    history: &'a History,
    setting: &'a Setting,
    rng: Rng,
    /// All inputs are complete up to and including this time.
    completed: i64,
    /// The time as of which the plan was installed.
    as_of: i64,
    /// Key of the exported arrangement.
    key: Vec<usize>,
    changes: Vec<(Row, i64, i64)>,
    errors: Vec<(String, i64, i64)>,
    /// Other dataflows that run now, and how many there have been.
    neighbours: Vec<u64>,
    neighbours_made: u64,
    /// Readers of the inputs' arrangements before there was a neighbour.
    readers: BTreeMap<ArrangementId, usize>,
}

fn collection(relation: usize) -> CollectionId {
    CollectionId(relation as u64)
}

fn base(relation: usize) -> ArrangementId {
    ArrangementId(relation as u64)
}

impl<'a> Run<'a> {
    fn start(plan: &'a Arc<Plan>, history: &'a History, setting: &'a Setting, rng: Rng) -> Result<Run<'a>, Error> {
        let cluster = Cluster::start(setting.workers, setting.effort)?;
        let mut run = Run {
            cluster,
            plan,
            history,
            setting,
            rng,
            completed: 0,
            as_of: 0,
            key: vec![],
            changes: vec![],
            errors: vec![],
            neighbours: vec![],
            neighbours_made: 0,
            readers: BTreeMap::new(),
        };
        for relation in 0..history.relations.len() {
            run.cluster.create_input(collection(relation), 1);
            if setting.arranged {
                run.arrange(relation)?;
            }
        }
        Ok(run)
    }

    /// Arranges an input by some of its columns, or whole.
    fn arrange(&mut self, relation: usize) -> Result<(), Error> {
        let schema = &self.history.relations[relation];
        let spec = DataflowSpec {
            dataflow: DataflowId(relation as u64),
            name: schema.name.clone(),
            plan: Builder::new().scan(schema),
            reads: [(schema.name.clone(), self.read(relation, false))].into_iter().collect(),
            as_of: 0,
            exports: vec![Export { arrangement: base(relation), key: self.base_key(relation), is_part: false }],
            egress: Egress::Nothing,
        };
        self.cluster.install(spec)
    }

    /// One column, two, or all: a function of the setting, so that it is the same whenever asked.
    fn base_key(&self, relation: usize) -> Vec<usize> {
        let width = self.history.relations[relation].types.len();
        let mut rng = Rng::new(self.setting.seed ^ relation as u64);
        match rng.below(3) {
            0 => (0..width).collect(),
            1 => vec![rng.below(2)],
            _ => vec![1, 0],
        }
    }

    fn read(&self, relation: usize, arranged: bool) -> Read {
        let arrangements = if arranged { vec![(base(relation), self.base_key(relation))] } else { vec![] };
        Read {
            collection: collection(relation),
            is_input: true,
            arrangements,
            primary_key: vec![],
            promises: Promises::default(),
        }
    }

    fn install(&mut self) -> Result<(), Error> {
        let width = width(self.plan);
        self.as_of = self.completed;
        let columns = if self.rng.chance(50) { width } else { self.rng.below(width + 1) };
        self.key = self.rng.subset(width, columns);
        let spec = self.spec(PLAN, EXPORT, self.key.clone());
        self.cluster.install(spec)
    }

    /// The plan under test, from now on.
    fn spec(&self, dataflow: DataflowId, arrangement: ArrangementId, key: Vec<usize>) -> DataflowSpec {
        let relations = self.history.relations.iter().enumerate();
        let reads: BTreeMap<String, Read> = relations
            .map(|(index, relation)| (relation.name.clone(), self.read(index, self.setting.arranged)))
            .collect();
        DataflowSpec {
            dataflow,
            name: "plan under test".to_string(),
            plan: self.plan.clone(),
            reads,
            as_of: self.completed,
            exports: vec![Export { arrangement, key, is_part: false }],
            egress: Egress::Changes(Bounds::NONE),
        }
    }

    /// Installs the plan once more, beside the one under test, or drops such a copy.
    fn change_neighbours(&mut self) -> Result<(), Error> {
        if !self.setting.neighbours {
            return Ok(());
        }
        if self.neighbours_made == 0 {
            self.readers = self.readers_now();
        }
        if !self.neighbours.is_empty() && self.rng.chance(50) {
            let index = self.rng.below(self.neighbours.len());
            let gone = self.neighbours.swap_remove(index);
            self.cluster.uninstall(DataflowId(gone));
            return Ok(());
        }
        self.neighbours_made += 1;
        let id = PLAN.0 + self.neighbours_made;
        let spec = self.spec(DataflowId(id), ArrangementId(id), vec![]);
        self.neighbours.push(id);
        self.cluster.install(spec)
    }

    /// Drops all copies; nothing of them may remain.
    fn dismiss_neighbours(&mut self) -> Result<(), String> {
        for gone in std::mem::take(&mut self.neighbours) {
            self.cluster.uninstall(DataflowId(gone));
        }
        let left = self.cluster.stats();
        if let Some(left) = left.iter().find(|stats| stats.arrangement > EXPORT) {
            return Err(format!("an arrangement outlives its dataflow: {left:?}"));
        }
        let readers = self.readers_now();
        let grown = |(arrangement, before): &(&ArrangementId, &usize)| readers.get(arrangement) > Some(before);
        match self.readers.iter().find(grown) {
            Some((arrangement, before)) => Err(format!(
                "{arrangement:?} had {before} readers and has {:?} after its other readers were dropped",
                readers.get(arrangement)
            )),
            None => Ok(()),
        }
    }

    fn readers_now(&mut self) -> BTreeMap<ArrangementId, usize> {
        self.cluster.stats().into_iter().map(|stats| (stats.arrangement, stats.readers)).collect()
    }

    fn complete(&mut self, time: i64) {
        self.completed = time;
        self.cluster.advance(time + 1);
        self.step_sometimes();
    }

    fn step_sometimes(&mut self) {
        if self.rng.chance(30) {
            self.cluster.step();
        }
    }

    /// Lets arrangements forget times before the last complete one.
    fn forget_sometimes(&mut self, installed: bool) {
        if !self.setting.compacting || self.rng.chance(30) {
            return;
        }
        if self.setting.arranged {
            for relation in 0..self.history.relations.len() {
                self.cluster.allow_compaction(base(relation), self.completed);
            }
        }
        if installed {
            self.cluster.allow_compaction(EXPORT, self.completed);
        }
    }

    fn await_results(&mut self) -> Result<(), String> {
        let interrupt = Interrupt::new();
        self.cluster
            .await_frontier(PLAN, self.completed, &interrupt)
            .map_err(|error| format!("await_frontier: {error:?}"))?;
        let changes = self.cluster.changes(PLAN, Duration::ZERO).map_err(|error| format!("changes: {error:?}"))?;
        if changes.upper <= self.completed {
            return Err(format!("changes are complete before {} only, not up to {}", changes.upper, self.completed));
        }
        changes.batches.iter().for_each(|batch| read_updates(batch, &mut self.changes));
        self.errors.extend(changes.errors.into_iter().map(|(time, message, diff)| (message, time, diff)));
        Ok(())
    }

    /// The exported arrangement as of now, whole, and the rows with some of its keys.
    fn compare_contents(&mut self, expected: &[(i64, Answer)]) -> Result<(), String> {
        let Some((_, answer)) = expected.iter().rev().find(|(time, _)| *time <= self.completed) else {
            return Ok(());
        };
        let what = format!("the arrangement by {:?}, as of {}", self.key, self.completed);
        let (found, failed) = self.peek(None)?;
        same(&what, &found, failed, answer)?;
        if self.key.is_empty() || failed || found.is_empty() {
            return Ok(());
        }
        let index = self.rng.below(found.len());
        let wanted = found.iter().nth(index).expect("the index is in range").0.project(&self.key);
        let with_key = found.iter().filter(|(row, _)| row.project(&self.key) == wanted);
        let rows: Contents = with_key.map(|(row, count)| (row.clone(), count)).collect();
        let (found, _) = self.peek(Some(&wanted))?;
        same(&format!("{what}, rows with {wanted:?}"), &found, false, &Answer { rows, ..Answer::default() })
    }

    fn peek(&mut self, key: Option<&Row>) -> Result<(Contents, bool), String> {
        let rows = key.map_or(WantedKeys::All, |row| {
            let types = self.key.iter().map(|&column| self.plan.schema.field(column).data_type());
            let array = |(value, data_type): (&datafusion_common::ScalarValue, _)| {
                let array = value.to_array_of_size(1).expect("every supported type has an array form");
                let array = arrow::compute::cast(&array, data_type).expect("values are of the column's type");
                types::narrowed(&array).expect("values have the digits of their column's type")
            };
            WantedKeys::Keys(row.values().zip(types).map(array).collect())
        });
        let peek = Peek { arrangement: EXPORT, at: self.completed, rows };
        let result = self.cluster.peek(peek, &Interrupt::new()).map_err(|error| format!("peek: {error:?}"))?;
        let mut updates = vec![];
        result.batches.iter().for_each(|batch| read_updates(batch, &mut updates));
        let failed = result.errors.iter().any(|(_, count)| *count != 0);
        Ok((updates.into_iter().map(|(row, _, diff)| (row, diff)).collect(), failed))
    }

    /// The changes, accumulated at every time from the installation on.
    fn compare_changes(&self, expected: &[(i64, Answer)]) -> Result<(), String> {
        if let Some((row, time, _)) = self.changes.iter().find(|(_, time, _)| *time < self.as_of) {
            return Err(format!("{row:?} changed at {time}, before the plan was installed as of {}", self.as_of));
        }
        for (time, answer) in expected.iter().filter(|(time, _)| *time >= self.as_of) {
            let changes = self.changes.iter().filter(|(_, at, _)| at <= time);
            let found: Contents = changes.map(|(row, _, diff)| (row.clone(), *diff)).collect();
            let mut errors: BTreeMap<&str, i64> = BTreeMap::new();
            for (message, _, diff) in self.errors.iter().filter(|(_, at, _)| at <= time) {
                *errors.entry(message).or_insert(0) += diff;
            }
            if let Some((message, count)) = errors.iter().find(|(_, count)| **count < 0) {
                return Err(format!("at {time} the error '{message}' is there {count} times"));
            }
            let failed = errors.values().any(|count| *count != 0);
            same(&format!("the changes up to {time}"), &found, failed, answer)?;
        }
        Ok(())
    }
}

pub(super) fn read_updates(batch: &Batch, into: &mut Vec<(Row, i64, i64)>) {
    let batch = batch.clone().flatten();
    for index in 0..batch.len() {
        let row = Row::of_columns(batch.columns(), index);
        into.push((row, batch.times().get(index), batch.diffs().get(index)));
    }
}

pub(super) fn same(what: &str, found: &Contents, failed: bool, expected: &Answer) -> Result<(), String> {
    if failed == expected.errors.is_empty() {
        return Err(format!("{what}: row errors: {failed}, but the model has {:?}", expected.errors));
    }
    if !found.is_close(&expected.rows, TOLERANCE) {
        return Err(format!("{what}: too many (+) and missing (-):\n{}", found.difference(&expected.rows)));
    }
    Ok(())
}
