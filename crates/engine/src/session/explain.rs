//! EXPLAIN: the plan, what of it exists already, how large that is and with how many queries it
//! would be shared.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anabranch_flow::account::memory::Holder;
use anabranch_plan::{Node, Plan, SortKey};
use anabranch_sql::Planned;
use anabranch_sql::statement::{Explain, Shows, Statement};

use super::context::Named;
use super::dataflows::Sink;
use super::outcome::Rows;
use super::show::text_rows;
use super::state::Session;
use super::state_remark::state_remark;
use crate::catalog::Arranged;
use crate::cluster::{ArrangementId, Egress, WantedKeys};
use crate::dataflows::{Usage, WantedDataflow};
use crate::direct::Direct;
use crate::error::Error;
use crate::render::RowMovement;

impl Session {
    pub(super) fn explain(&mut self, explain: &Explain) -> Result<Rows, Error> {
        if explain.shows == Shows::Rewrites {
            return self.explain_rewrites(explain);
        }
        if let (Some(name), Shows::Plan | Shows::Analyze) = (&explain.relation, explain.shows)
            && let Some(rows) = self.explain_standing(name, explain.shows)?
        {
            return Ok(rows);
        }
        if explain.shows == Shows::Analyze {
            return self.explain_analyze(explain);
        }
        if let Shows::Program(language) = explain.shows {
            return self.explain_program(&explain.query, language);
        }
        let Named { planned, .. } = self.plan_explained(explain)?;
        text_rows("plan", self.plan_lines(planned)?)
    }

    /// How the rows of a change are found; nothing is changed.
    pub(super) fn explain_change(&mut self, change: &Statement) -> Result<Rows, Error> {
        let (words, table, Named { planned, .. }) = match change {
            Statement::Insert(insert) => ("Insert into", &insert.table, self.plan_insert(insert)?),
            Statement::Update(update) => ("Update", &update.table, self.plan_update(update)?),
            Statement::Delete(delete) => ("Delete from", &delete.table, self.plan_delete(delete)?),
            _ => return Err(Error::internal("a change is an INSERT, an UPDATE or a DELETE")),
        };
        self.catalog.table(table)?;
        let looked_up = self.looked_up_by(&planned.plan).map(|arranged| self.arrangement_name(table, &arranged));
        let looked_up = looked_up.map(|name| format!("  -- looks the listed keys up in {name}"));
        let head = format!("{words} {table}{}", looked_up.unwrap_or_default());
        let below = self.plan_lines(planned)?.into_iter().map(|line| format!("  {line}"));
        text_rows("plan", std::iter::once(head).chain(below))
    }

    fn plan_lines(&mut self, mut planned: Planned) -> Result<Vec<String>, Error> {
        planned.plan = self.with_operator_rows(&planned.plan)?;
        self.await_dataflows_shortly()?;
        let sizes = self.cluster.stats().into_iter().map(|stats| (stats.arrangement, stats.bytes)).collect();
        let mut lines: Vec<String> = finish_line(&planned).into_iter().collect();
        let direct = self.direct(&planned.plan, None);
        let read = direct.as_ref().and_then(Direct::read);
        let usage = match &read {
            Some(_) => Usage::default(),
            None => self.usage(&planned.plan)?,
        };
        let reads = self.reads(&planned.plan)?;
        let annotate = |plan: &Plan| match (&plan.node, &read) {
            (Node::Scan { relation, .. }, Some(read)) if *relation == read.relation => {
                let name = self.arrangement_name(relation, &read.arranged);
                Some(match &read.rows {
                    WantedKeys::All => format!("reads all of {name}"),
                    WantedKeys::Keys(_) => format!("looks keys up in {name}"),
                    WantedKeys::Hashes(..) => {
                        let object = self.catalog.find(relation);
                        let columns = object.map(|object| object.column_list(&read.arranged.key[..1]));
                        format!("looks a range of ({}) up in {name}", columns.unwrap_or_default())
                    }
                    WantedKeys::Prefixes(columns) => {
                        let object = self.catalog.find(relation);
                        let columns = &read.arranged.key[..columns.len()];
                        let columns = object.map(|object| object.column_list(columns)).unwrap_or_default();
                        format!("looks keys up by ({columns}) in {name}")
                    }
                })
            }
            (_, None) => {
                let sharing = self.sharing_remark(plan, &usage, &sizes);
                // (What depends on the number of workers is last.)
                let remarks = [sharing, state_remark(plan, &reads), self.movement_remark(plan, &usage)];
                let remarks: Vec<String> = remarks.into_iter().flatten().collect();
                (!remarks.is_empty()).then(|| remarks.join("; "))
            }
            _ => None,
        };
        let tree = anabranch_plan::explain::explain(&planned.plan, &annotate);
        let indent = if lines.is_empty() { "" } else { "  " };
        lines.extend(tree.lines().map(|line| format!("{indent}{line}")));
        Ok(lines)
    }

    /// The plan before and after each rewrite that changes it.
    fn explain_rewrites(&self, explain: &Explain) -> Result<Rows, Error> {
        let mut lines = Vec::new();
        for (rewrite, plan) in self.plan_in_steps(explain)? {
            lines.push(format!("-- {rewrite}"));
            let tree = anabranch_plan::explain::explain(&plan, &|_| None);
            lines.extend(tree.lines().map(str::to_string));
        }
        text_rows("plan", lines)
    }

    /// What a view of the plan would share.
    fn usage(&self, plan: &Arc<Plan>) -> Result<Usage, Error> {
        let as_of = self.timeline.last();
        let reads = self.reads(plan)?;
        let sharing = self.sharing_for(Sink::Arrangements, as_of);
        let (holder, client) = (Holder::Standing, None);
        let wanted = WantedDataflow {
            name: "explain",
            plan,
            keys: &[],
            egress: Egress::Nothing,
            reads: &reads,
            as_of,
            sharing,
            is_asked_once: false,
            holder,
            client,
        };
        self.dataflows.usage(&wanted)
    }

    /// What of a node exists already, and what would be made for others to use.
    fn sharing_remark(&self, plan: &Plan, usage: &Usage, sizes: &Sizes) -> Option<String> {
        let mut remarks = Vec::new();
        if let Node::Scan { relation, .. } = &plan.node {
            remarks.extend(self.shared_arrangements(relation, &usage.existing, sizes));
        }
        for entry in self.dataflows.registry().entries(plan) {
            if usage.existing.contains(&entry.arrangement) {
                let key = column_names(plan, &entry.key);
                remarks.push(format!("uses the shared arrangement by ({key}){}", self.users(entry.arrangement, sizes)));
            }
        }
        for (_, key) in usage.made.iter().filter(|(made, _)| **made == *plan) {
            remarks.push(format!("to be shared, arranged by ({})", column_names(plan, key)));
        }
        (!remarks.is_empty()).then(|| remarks.join("; "))
    }

    /// Where rows of a node go, if there are several workers.
    fn movement_remark(&self, plan: &Plan, usage: &Usage) -> Option<String> {
        let moved = usage.movements.iter().filter(|(of, _)| self.cluster.workers() > 1 && **of == *plan);
        let words = |(_, movement): &(Arc<Plan>, RowMovement)| match movement {
            RowMovement::ToOne => "moves to one worker".to_owned(),
            RowMovement::ByKey(key) => format!("moves by ({})", column_names(plan, key)),
            RowMovement::Combined(key) if key.is_empty() => "is combined and moves to one worker".to_owned(),
            RowMovement::Combined(key) => format!("is combined and moves by ({})", column_names(plan, key)),
            RowMovement::Dealt(key) => format!("is dealt out by ({})", column_names(plan, key)),
        };
        let mut remarks: Vec<String> = moved.map(words).collect();
        remarks.dedup();
        (!remarks.is_empty()).then(|| remarks.join("; "))
    }

    /// How many queries read an arrangement, and its size, once a query does.
    fn users(&self, arrangement: ArrangementId, sizes: &Sizes) -> String {
        match self.dataflows.users(arrangement) {
            0 => String::new(),
            n => {
                let bytes = sizes.get(&arrangement).copied().unwrap_or_default();
                format!(" (shared with {n}, {})", readable_bytes(bytes))
            }
        }
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
    fn shared_arrangements(&self, relation: &str, used: &BTreeSet<ArrangementId>, sizes: &Sizes) -> Option<String> {
        let maintained = self.catalog.find(relation)?.maintained.as_ref()?;
        let used = maintained.arrangements.iter().filter(|arranged| used.contains(&arranged.arrangement));
        let name = |arranged: &Arranged| {
            let name = self.arrangement_name(relation, arranged);
            format!("{name}{}", self.users(arranged.arrangement, sizes))
        };
        let names: Vec<String> = used.map(name).collect();
        (!names.is_empty()).then(|| format!("uses {}", names.join(", ")))
    }
}

/// Bytes that each arrangement owns.
type Sizes = BTreeMap<ArrangementId, usize>;

/// Names of a plan's columns, comma separated.
pub(super) fn column_names(plan: &Plan, columns: &[usize]) -> String {
    let names: Vec<&str> = columns.iter().map(|column| plan.schema.field(*column).name().as_str()).collect();
    names.join(", ")
}

pub(super) fn readable_bytes(bytes: usize) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}

/// What is done to the rows at the end, if anything.
pub(super) fn finish_line(planned: &Planned) -> Option<String> {
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
