//! EXPLAIN ANALYZE: the query is run, and its plan shown with what each node has cost.
//!
//! Law: the counts are of this run alone: of the dataflow that is installed for the query and
//! dropped with it. Parts that the query shares with others were computed before, and have no
//! counts. A connection that analyses a query holds up the others while it runs.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anabranch_batch::Batch;
use anabranch_flow::account::{OperatorCounts, ShardWork};
use anabranch_plan::{Node, Plan};
use anabranch_sql::statement::Explain;

use super::context::Named;
use super::dataflows::Sink;
use super::explain::{finish_line, readable_bytes};
use super::outcome::Rows;
use super::show::text_rows;
use super::state::Session;
use crate::cluster::{Peek, WantedKeys};
use crate::direct::rows_or_error;
use crate::error::Error;

/// Nodes of a plan, and what they have cost.
type Counted = Vec<(Arc<Plan>, ShardWork)>;

impl Session {
    pub(super) fn explain_analyze(&mut self, explain: &Explain) -> Result<Rows, Error> {
        let Named { mut planned, names, .. } = self.plan_explained(explain)?;
        planned.plan = self.with_operator_rows(&planned.plan)?;
        self.settle_sources(&names)?;
        self.check_kept(&planned.plan)?;
        self.await_dataflows_shortly()?;
        let start = Instant::now();
        let (rows, counted): (Vec<Batch>, Counted) = match self.direct(&planned.plan, None).is_some() {
            true => (self.collect(&planned.plan)?, vec![]),
            false => self.run_counted(&planned.plan)?,
        };
        let took = start.elapsed();
        let annotate = |plan: &Plan| {
            let counts = counted.iter().find(|(of, _)| of.as_ref() == plan);
            counts.and_then(|(_, work)| cost_remark(plan, work))
        };
        let mut lines: Vec<String> = finish_line(&planned).into_iter().collect();
        let indent = if lines.is_empty() { "" } else { "  " };
        let tree = anabranch_plan::explain::explain(&planned.plan, &annotate);
        lines.extend(tree.lines().map(|line| format!("{indent}{line}")));
        let n_rows: usize = rows.iter().map(Batch::len).sum();
        lines.push(format!("{n_rows} rows in {}", readable_time(took)));
        text_rows("plan", lines)
    }

    /// The rows of a plan, and the counts of its nodes that have been computed.
    fn run_counted(&mut self, plan: &Arc<Plan>) -> Result<(Vec<Batch>, Counted), Error> {
        let columns: Vec<usize> = (0..plan.schema.fields().len()).collect();
        let (dataflow, arrangements) = self.install("an analysed query", plan, &[columns], Sink::Answer)?;
        let peek = Peek { arrangement: arrangements[0], at: self.timeline.last(), rows: WantedKeys::All };
        let result = self.cluster.peek(peek, &self.interrupt);
        let works = self.cluster.work_of_shards(dataflow);
        let operators = self.dataflows.operators().filter(|operator| operator.dataflow == dataflow);
        let work_of = |step: usize| Some(ShardWork::of_all(works.get(&step)?.values()));
        let counted = operators.filter_map(|operator| Some((operator.plan.clone(), work_of(operator.step)?)));
        let counted = counted.collect();
        self.release_dataflow(dataflow);
        Ok((rows_or_error(result?)?, counted))
    }
}

/// What a node has cost, if that is counted, and what of its rows has gone to other workers.
pub(super) fn cost_remark(plan: &Plan, work: &ShardWork) -> Option<String> {
    let moved = (work.moved.rows > 0).then(|| moved_remark(work));
    let waiting = (work.rows_waiting > 0).then(|| format!("{} rows waiting", work.rows_waiting));
    let counted = work.counts.iter().map(|counts| counts_remark(plan, counts));
    let parts: Vec<String> = counted.chain(moved).chain(waiting).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// What has moved, and where to: `900 rows in 14 kB moved (7 kB to worker 0, 7 kB to worker 1)`.
fn moved_remark(work: &ShardWork) -> String {
    let to = work.bytes_to.iter().enumerate().filter(|(_, bytes)| **bytes > 0);
    let to = to.map(|(worker, bytes)| format!("{} to worker {worker}", readable_bytes(*bytes as usize)));
    let to = to.collect::<Vec<_>>().join(", ");
    format!("{} rows in {} moved ({to})", work.moved.rows, readable_bytes(work.moved.bytes as usize))
}

fn counts_remark(plan: &Plan, counts: &OperatorCounts) -> String {
    let OperatorCounts { rows, batches, nanos, held, bytes, .. } = *counts;
    let held = match (&plan.node, bytes) {
        (Node::Stage { .. } | Node::Unnest { .. }, _) | (_, 0) => String::new(),
        _ => {
            let held = held.map(|held| format!("{held} rows in ")).unwrap_or_default();
            format!(", {held}{} held", readable_bytes(bytes))
        }
    };
    let batches = if batches > 1 { format!(" in {batches} batches") } else { String::new() };
    format!("{rows} rows{batches}, {}{held}", readable_time(Duration::from_nanos(nanos)))
}

fn readable_time(time: Duration) -> String {
    match time.as_micros() {
        micros @ 0..10_000 => format!("{micros} us"),
        10_000..10_000_000 => format!("{:.1} ms", time.as_secs_f64() * 1e3),
        _ => format!("{:.1} s", time.as_secs_f64()),
    }
}
