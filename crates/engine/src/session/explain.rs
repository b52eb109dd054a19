//! EXPLAIN: the plan, and what of it exists already.

use std::collections::BTreeSet;

use anabranch_plan::{Node, Plan, SortKey};
use anabranch_sql::Planned;
use anabranch_sql::statement::Explain;

use super::dataflows::uses_arrangements;
use super::outcome::Rows;
use super::show::text_rows;
use super::{Session, planning::Named};
use crate::catalog::Arranged;
use crate::cluster::ArrangementId;
use crate::error::Error;

impl Session {
    pub(super) fn explain(&self, explain: &Explain) -> Result<Rows, Error> {
        let Named { planned, .. } = self.plan_query(&explain.query)?;
        let mut lines: Vec<String> = finish_line(&planned).into_iter().collect();
        let direct = self.direct(&planned.plan);
        let read = direct.as_ref().and_then(|direct| direct.arranged());
        let used = match &read {
            Some(_) => BTreeSet::new(),
            None => uses_arrangements(&planned.plan, &self.reads(&planned.plan)?)?,
        };
        let annotate = |plan: &Plan| match (&plan.node, &read) {
            (Node::Scan { relation, .. }, Some((read, arranged, by_key))) if relation == read => {
                let how = if *by_key { "looks keys up in" } else { "reads all of" };
                Some(format!("{how} {}", self.arrangement_name(relation, arranged)))
            }
            (Node::Scan { relation, .. }, None) => self.shared_arrangements(relation, &used),
            _ => None,
        };
        let tree = anabranch_plan::explain::explain(&planned.plan, &annotate);
        let indent = if lines.is_empty() { "" } else { "  " };
        lines.extend(tree.lines().map(|line| format!("{indent}{line}")));
        text_rows("plan", lines)
    }

    fn arrangement_name(&self, relation: &str, arranged: &Arranged) -> String {
        let key = self.catalog.find(relation).map(|object| object.column_list(&arranged.key)).unwrap_or_default();
        let indexes: BTreeSet<&String> = arranged.owners.iter().filter(|owner| *owner != relation).collect();
        match indexes.first() {
            Some(index) => format!("index {index} ({key})"),
            None => format!("the arrangement of {relation} by ({key})"),
        }
    }

    /// The arrangements of the relation that are used, and by how many queries already.
    fn shared_arrangements(&self, relation: &str, used: &BTreeSet<ArrangementId>) -> Option<String> {
        let maintained = self.catalog.find(relation)?.maintained.as_ref()?;
        let used = maintained.arrangements.iter().filter(|arranged| used.contains(&arranged.arrangement));
        let name = |arranged: &Arranged| {
            let name = self.arrangement_name(relation, arranged);
            match self.dataflows.readers(arranged.dataflow) {
                0 => name,
                n => format!("{name} (shared with {n})"),
            }
        };
        let names: Vec<String> = used.map(name).collect();
        (!names.is_empty()).then(|| format!("uses {}", names.join(", ")))
    }
}

/// What is done to the rows at the end, if anything.
fn finish_line(planned: &Planned) -> Option<String> {
    let finish = &planned.finish;
    let mut parts = Vec::new();
    if !finish.order.is_empty() {
        let key = |key: &SortKey| {
            let name = planned.plan.schema.field(key.column).name();
            let direction = if key.descending { " desc" } else { "" };
            let nulls = match (key.descending, key.nulls_first) {
                (false, true) => " nulls first",
                (true, false) => " nulls last",
                _ => "",
            };
            format!("{name}{direction}{nulls}")
        };
        parts.push(format!("order by {}", finish.order.iter().map(key).collect::<Vec<_>>().join(", ")));
    }
    if let Some(limit) = finish.limit {
        parts.push(format!("limit {limit}"));
    }
    if finish.offset > 0 {
        parts.push(format!("offset {}", finish.offset));
    }
    (!parts.is_empty()).then(|| format!("Finish {}", parts.join(" ")))
}
