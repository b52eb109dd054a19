//! SHOW OPERATORS and `anabranch_operators`: what each operator of each view, index and
//! subscription has done, and what bounds its state. `anabranch_shards`: on which worker, and what
//! of its rows has gone to others.
//!
//! Law: time, rows and bytes are those of all workers since the dataflow was installed, as far as
//! they had been counted; no worker is asked, but for what arrangements hold.

use std::collections::BTreeMap;
use std::sync::Arc;

use anabranch_batch::Time;
use anabranch_flow::account::{OperatorCounts, ShardWork};
use anabranch_plan::{Node, Plan};
use datafusion_common::ScalarValue;

use super::outcome::Rows;
use super::show::{numbers, optional_numbers, optional_texts, rows, texts};
use super::state::Session;
use super::state_remark::{KEPT, state_remark};
use crate::catalog::system::{self, SHARDS, SystemCell, tells_of_operators};
use crate::cluster::{ArrangementId, ArrangementStats, DataflowId};
use crate::dataflows::Operator;
use crate::error::Error;
use crate::transaction::substitute;

/// An operator, or an arrangement at the end of a dataflow.
struct OperatorRow {
    dataflow: DataflowId,
    name: String,
    operator: String,
    /// Updates put out; of an arrangement none.
    rows_out: Option<u64>,
    cpu_us: Option<u64>,
    /// Rows held; of an arrangement updates.
    rows: Option<usize>,
    bytes: usize,
    bound: Option<String>,
    since: i64,
}

impl OperatorRow {
    /// As a row of `anabranch_operators`.
    fn cells(&self) -> system::Row {
        vec![
            ("relation", self.name.as_str().into()),
            ("dataflow", number(Some(self.dataflow.0))),
            ("operator", self.operator.as_str().into()),
            ("rows_out", number(self.rows_out)),
            ("cpu_us", number(self.cpu_us)),
            ("state_rows", number(self.rows.map(|rows| rows as u64))),
            ("state_bytes", number(Some(self.bytes as u64))),
            ("bound", self.bound.clone().into()),
            ("since", SystemCell::Number(self.since)),
        ]
    }
}

/// A row of `anabranch_shards`, as of the last commit.
fn shard_cells(operator: &Operator<'_>, worker: usize, work: &ShardWork, last: Time) -> system::Row {
    let counts = work.counts;
    // (What is at its end is not behind.)
    let lag = |counts: OperatorCounts| last.saturating_add(1).saturating_sub(counts.upto).max(0).unsigned_abs();
    vec![
        ("relation", operator.name.into()),
        ("dataflow", number(Some(operator.dataflow.0))),
        ("operator", anabranch_plan::explain::line(operator.plan).as_str().into()),
        ("worker", number(Some(worker as u64))),
        ("rows_out", number(counts.map(|counts| counts.rows))),
        ("batches_out", number(counts.map(|counts| counts.batches))),
        ("cpu_us", number(counts.map(|counts| counts.nanos / 1_000))),
        ("lag", number(counts.filter(|counts| counts.upto > Time::MIN).map(lag))),
        ("state_rows", number(counts.and_then(|counts| counts.held).map(|rows| rows as u64))),
        ("state_bytes", number(counts.map(|counts| counts.bytes as u64))),
        ("rows_moved", number(Some(work.moved.rows))),
        ("bytes_moved", number(Some(work.moved.bytes))),
        ("bytes_to", SystemCell::Numbers(work.bytes_to.iter().map(|bytes| *bytes as i64).collect())),
        ("rows_waiting", number(Some(work.rows_waiting))),
    ]
}

/// Unknown is NULL.
fn number(n: Option<u64>) -> SystemCell {
    n.and_then(|n| i64::try_from(n).ok()).map_or(SystemCell::Null, SystemCell::Number)
}

impl Session {
    pub(super) fn show_operators(&mut self) -> Result<Rows, Error> {
        self.await_dataflows_shortly()?;
        let all = self.operator_rows();
        rows(vec![
            ("name", texts(all.iter().map(|row| row.name.clone()))),
            ("dataflow", numbers(all.iter().map(|row| row.dataflow.0 as i64))),
            ("operator", texts(all.iter().map(|row| row.operator.clone()))),
            ("rows_out", optional_numbers(all.iter().map(|row| row.rows_out.map(|n| n as i64)))),
            ("cpu_us", optional_numbers(all.iter().map(|row| row.cpu_us.map(|n| n as i64)))),
            ("state_rows", optional_numbers(all.iter().map(|row| row.rows.map(|n| n as i64)))),
            ("state_bytes", numbers(all.iter().map(|row| row.bytes as i64))),
            ("state", optional_texts(all.iter().map(|row| row.bound.clone()))),
            ("since", numbers(all.iter().map(|row| row.since))),
        ])
    }

    /// The plan with rows in place of `anabranch_operators` and `anabranch_shards`, as of now.
    pub(super) fn with_operator_rows(&mut self, plan: &Arc<Plan>) -> Result<Arc<Plan>, Error> {
        let relations = plan.relations();
        let is_told = |name: &&String| tells_of_operators(name) && self.catalog.find(name).is_none();
        let read: Vec<&String> = relations.iter().filter(is_told).collect();
        if read.is_empty() {
            return Ok(Arc::clone(plan));
        }
        let told: BTreeMap<&String, Vec<system::Row>> =
            read.into_iter().map(|name| (name, self.told_operators(name))).collect();
        let mut problem = None;
        let scan = |scan: &Arc<Plan>| -> Result<Arc<Plan>, Error> {
            let Node::Scan { relation, columns } = &scan.node else { return Ok(Arc::clone(scan)) };
            let Some(told) = told.get(relation) else { return Ok(Arc::clone(scan)) };
            let rows = system::values(relation, columns, told)?;
            Ok(Arc::new(Plan { node: Node::Constant { rows }, schema: scan.schema.clone() }))
        };
        let changed = substitute(plan, &scan, &mut problem);
        problem.map_or(Ok(changed), Err)
    }

    /// These columns of a relation that tells of operators, as of now.
    pub(super) fn operator_values(&mut self, name: &str, columns: &[usize]) -> Result<Vec<Vec<ScalarValue>>, Error> {
        system::values(name, columns, &self.told_operators(name))
    }

    fn told_operators(&mut self, name: &str) -> Vec<system::Row> {
        match name == SHARDS {
            true => self.told_shards(),
            false => self.operator_rows().iter().map(OperatorRow::cells).collect(),
        }
    }

    /// A row for each operator and worker: those that count, and those whose rows move.
    fn told_shards(&self) -> Vec<system::Row> {
        let (mut all, last) = (Vec::new(), self.timeline.last());
        for (operator, works) in self.worked_operators() {
            all.extend(works.into_iter().map(|(worker, work)| shard_cells(&operator, worker, &work, last)));
        }
        all
    }

    /// The operators that stand, and what they have done on each worker.
    pub(super) fn worked_operators(&self) -> Vec<(Operator<'_>, BTreeMap<usize, ShardWork>)> {
        let mut works: BTreeMap<DataflowId, BTreeMap<usize, BTreeMap<usize, ShardWork>>> = BTreeMap::new();
        let worked = self.dataflows.operators().filter_map(|operator| {
            let of_dataflow = works.entry(operator.dataflow);
            let works = of_dataflow.or_insert_with(|| self.cluster.work_of_shards(operator.dataflow));
            works.get(&operator.step).cloned().map(|works| (operator, works))
        });
        worked.collect()
    }

    fn operator_rows(&mut self) -> Vec<OperatorRow> {
        let stats: BTreeMap<ArrangementId, ArrangementStats> =
            self.arrangements().into_iter().map(|stats| (stats.arrangement, stats)).collect();
        let mut all = Vec::new();
        for (operator, counts) in self.counted_operators() {
            all.push(OperatorRow {
                dataflow: operator.dataflow,
                name: operator.name.to_owned(),
                operator: anabranch_plan::explain::line(operator.plan),
                rows_out: Some(counts.rows),
                cpu_us: Some(counts.nanos / 1_000),
                rows: counts.held,
                bytes: counts.bytes,
                bound: self.bound_of(operator.plan),
                since: operator.since,
            });
        }
        for (dataflow, name, since, arrangement) in self.dataflows.makers() {
            let Some(stats) = stats.get(&arrangement) else { continue };
            all.push(OperatorRow {
                dataflow,
                name: name.to_owned(),
                operator: self.arranged_by(arrangement),
                rows_out: None,
                cpu_us: None,
                rows: Some(stats.rows),
                bytes: stats.bytes,
                bound: self.bound_of_arranged(arrangement),
                since,
            });
        }
        all.sort_by_key(|row| row.dataflow);
        all
    }

    /// The operators that stand, and what they have done.
    pub(super) fn counted_operators(&self) -> Vec<(Operator<'_>, OperatorCounts)> {
        let counted = self.worked_operators().into_iter();
        counted.filter_map(|(operator, works)| Some((operator, ShardWork::of_all(works.values()).counts?))).collect()
    }

    /// What bounds the rows of an arrangement that the operators of some views share: what bounds
    /// the state of these, of which one that keeps its rows keeps them all.
    fn bound_of_arranged(&self, arrangement: ArrangementId) -> Option<String> {
        let (arranged, _) = self.dataflows.registry().describe(arrangement)?;
        let mut readers = Vec::new();
        self.dataflows.operators().for_each(|operator| add_readers(operator.plan, arranged, &mut readers));
        let bounds: Vec<String> = readers.into_iter().filter_map(|reader| self.bound_of(reader)).collect();
        bounds.iter().find(|bound| bound.starts_with(KEPT)).or(bounds.first()).cloned()
    }

    /// What bounds the state of a plan's root, in words, if that may grow.
    fn bound_of(&self, plan: &Arc<Plan>) -> Option<String> {
        state_remark(plan, &self.reads_told(plan).ok()?)
    }
}

/// Adds the nodes of a plan that read another one, each once.
fn add_readers<'a>(plan: &'a Arc<Plan>, read: &Plan, readers: &mut Vec<&'a Arc<Plan>>) {
    for input in plan.inputs() {
        match input.as_ref() == read {
            true if !readers.contains(&plan) => readers.push(plan),
            true => {}
            false => add_readers(input, read, readers),
        }
    }
}
