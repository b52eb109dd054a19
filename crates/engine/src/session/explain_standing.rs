//! EXPLAIN and EXPLAIN ANALYZE of a view that stands: its plan, what its operators have done since
//! it was made, and what bounds their state.
//!
//! Law: the counts are those of SHOW OPERATORS: of all workers, as far as they had been counted. A
//! part that several views share is counted since the first of them was made, and says so.

use std::collections::BTreeMap;
use std::sync::Arc;

use anabranch_batch::Time;
use anabranch_flow::account::ShardWork;
use anabranch_plan::Plan;
use anabranch_sql::statement::{ObjectKind, Shows};
use arrow::temporal_conversions::timestamp_us_to_datetime;

use super::analyze::cost_remark;
use super::explain::readable_bytes;
use super::outcome::Rows;
use super::show::text_rows;
use super::state::Session;
use super::state_remark::state_remark;
use crate::cluster::{ArrangementId, DataflowId};
use crate::dataflows::Operator;
use crate::error::Error;

/// A view that stands.
struct Standing {
    plan: Arc<Plan>,
    dataflow: DataflowId,
    /// Its rows.
    arrangement: ArrangementId,
    since: Time,
}

impl Session {
    /// What EXPLAIN says of a materialized view that is named alone; `None` where the name is of
    /// something else.
    pub(super) fn explain_standing(&mut self, name: &str, shows: Shows) -> Result<Option<Rows>, Error> {
        let Some(standing) = self.standing(name) else { return Ok(None) };
        self.await_dataflows_shortly()?;
        let reads = self.reads_told(&standing.plan)?;
        let counted = if shows == Shows::Analyze { self.counted(&standing) } else { vec![] };
        let annotate = |plan: &Plan| {
            let counts = counted.iter().find(|(of, ..)| of.as_ref() == plan);
            let cost = counts.and_then(|(_, work, since)| match *since == standing.since {
                true => cost_remark(plan, work),
                false => Some(format!("{}, shared since {}", cost_remark(plan, work)?, moment(*since))),
            });
            let remarks: Vec<String> = cost.into_iter().chain(state_remark(plan, &reads)).collect();
            (!remarks.is_empty()).then(|| remarks.join("; "))
        };
        let tree = anabranch_plan::explain::explain(&standing.plan, &annotate);
        let mut lines: Vec<String> = tree.lines().map(str::to_owned).collect();
        if shows == Shows::Analyze {
            lines.push(self.rows_held(&standing));
        }
        text_rows("plan", lines).map(Some)
    }

    fn standing(&self, name: &str) -> Option<Standing> {
        let view = self.catalog.find(name).filter(|object| object.kind == ObjectKind::MaterializedView)?;
        let arranged = view.maintained.as_ref()?.arrangements.first()?;
        let (plan, since) = self.dataflows.installed_plan(arranged.dataflow)?;
        Some(Standing { plan: Arc::clone(plan), dataflow: arranged.dataflow, arrangement: arranged.arrangement, since })
    }

    /// Operators, what they have done, and since when: those of the view itself first.
    fn counted(&self, standing: &Standing) -> Vec<(Arc<Plan>, ShardWork, Time)> {
        let mut all = self.worked_operators();
        all.sort_by_key(|(operator, _)| operator.dataflow != standing.dataflow);
        let told = |(operator, works): (Operator<'_>, BTreeMap<usize, ShardWork>)| {
            (Arc::clone(operator.plan), ShardWork::of_all(works.values()), operator.since)
        };
        all.into_iter().map(told).collect()
    }

    fn rows_held(&mut self, standing: &Standing) -> String {
        let stats = self.arrangements().into_iter().find(|stats| stats.arrangement == standing.arrangement);
        let held = stats.map(|stats| format!("{} rows in {} held, ", stats.rows, readable_bytes(stats.bytes)));
        format!("{}counted since {}", held.unwrap_or_default(), moment(standing.since))
    }
}

/// The time of a commit, in words.
fn moment(time: Time) -> String {
    match timestamp_us_to_datetime(time) {
        Some(moment) => moment.format("%Y-%m-%d %H:%M:%S").to_string(),
        None => format!("commit {time}"),
    }
}
