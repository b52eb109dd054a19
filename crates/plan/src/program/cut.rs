//! Where a plan is cut: rows move only where a node would not see all rows that it needs.
//!
//! - An *aggregate* needs rows by a subset of its keys. Else each shard computes its part first,
//!   and the parts move by the keys; rows do if parts cannot be put together.
//! - A *join* needs rows by paired keys, or one side everywhere. Else the side that is cheaper to
//!   copy is copied, or both move by the keys. An *as-of join* is one whose left side is not
//!   copied.
//! - *DISTINCT* and *set operations* need equal rows together: by any columns, else by all.
//! - *First rows*, *windows*, *sessions* and *row patterns* need their groups together. First rows
//!   of all are those of each shard, then of those.
//!
//! Sizes are guessed from rows of relations; a guess changes what moves, never what comes out.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use anabranch_spec::asof::AsofJoin;

use super::block::{Block, identifier, table, with_tables};
use super::part::{Part, aside, leaf, orders_by_a_name};
use super::query::{self, names};
use super::shares::ShardShares;
use super::{PlannedStep, Program, StepAction, TABLES, events, join, patterns};
use crate::expressions::{exact_literal, exact_type};
use crate::placement::{self, PlanPlacement};
use crate::{AggregateCall, JoinKind, Node, Plan, RankedBy, TopK};

/// What cutting needs to know.
pub struct Cut<'a> {
    /// All columns of a relation.
    pub columns: &'a dyn Fn(&str) -> Vec<String>,
    /// About how many rows a relation has.
    pub rows: &'a dyn Fn(&str) -> f64,
    /// For how many shards sizes are weighed.
    pub shards: f64,
}

/// The program of a plan, whose result has these columns.
///
/// # Errors
/// Words for a node that programs do not have.
pub fn cut(plan: &Arc<Plan>, columns: &[String], how: &Cut) -> Result<Program, String> {
    let mut cutter =
        Cutter { how, steps: vec![], known: HashMap::new(), wanted: wanted(plan, how.columns), aliases: 0 };
    let mut part = cutter.part(plan)?;
    if part.place == PlanPlacement::Replicated {
        return Err("a query that reads no relation".to_owned());
    }
    // (ORDER BY would read a new name as the column that has it.)
    let is_cut = part.block.columns.len() != columns.len();
    if is_cut || (!part.block.tail.is_empty() && part.block.names != columns) {
        let (alias, names) = (cutter.alias(), names(&plan.schema));
        part.block = Block { names, ..part.block }.nested(&alias);
        part.block.columns.truncate(columns.len());
    }
    part.block.names = once_each(columns);
    cutter.step(&part);
    let is_bare = |step: &PlannedStep| matches!(&step.action, StepAction::Sql { inputs, .. } if inputs.is_empty());
    if cutter.steps.iter().any(is_bare) {
        return Err("literal rows that are a step by themselves".to_owned());
    }
    Ok(Program { steps: cutter.steps })
}

/// Names of a result's columns: each once, as those of tables are.
fn once_each(columns: &[String]) -> Vec<String> {
    let mut taken: Vec<String> = Vec::new();
    for column in columns {
        let name = if column == "?column?" { "column" } else { column };
        let mut free = (2..).map(|number| format!("{name}_{number}"));
        let other = taken.iter().any(|taken| taken == name).then(|| free.find(|free| !taken.contains(free)));
        taken.push(other.flatten().unwrap_or_else(|| name.to_owned()));
    }
    taken
}

pub(super) struct Cutter<'a, 'h> {
    pub(super) how: &'a Cut<'h>,
    pub(super) steps: Vec<PlannedStep>,
    /// Steps whose rows are those of a plan, and where they lie.
    known: HashMap<Arc<Plan>, (usize, PlanPlacement)>,
    /// Columns of each relation that are read somewhere.
    wanted: BTreeMap<String, Vec<String>>,
    aliases: usize,
}

impl Cutter<'_, '_> {
    fn alias(&mut self) -> String {
        self.aliases += 1;
        format!("t{}", self.aliases)
    }

    fn part(&mut self, plan: &Arc<Plan>) -> Result<Part, String> {
        if let Some((step, place)) = self.known.get(plan).cloned() {
            return Ok(leaf(step, names(&plan.schema), place, self.guess(plan)));
        }
        let rows = self.guess(plan);
        let part = match &plan.node {
            Node::Scan { relation, columns } => self.relation(plan, relation, columns)?,
            Node::Constant { rows: values } => self.constant(plan, values),
            Node::Stage { input, filter, project } => {
                let part = self.part(input)?;
                let alias = self.alias();
                let block = query::stage(part.block.clone(), &input.schema, plan, filter, project, &alias);
                self.over(plan, block, &[&part])
            }
            Node::Unnest { input, columns, outer: false } => {
                let part = self.rows_of(input)?;
                let alias = self.alias();
                let block = query::unnest(part.block.clone(), columns, plan).nested(&alias);
                self.over(plan, block, &[&part])
            }
            Node::Join { .. } => self.join(plan)?,
            Node::Asof { left, right, asof } => self.asof(plan, left, right, asof)?,
            Node::Session { input, session } => {
                let part = self.rows_of(input)?;
                let part = self.within(part, &session.partition);
                let alias = self.alias();
                let block = events::session(plan, &part.block, &alias)?;
                self.over(plan, block, &[&part])
            }
            Node::Aggregate { input, keys, calls } => self.aggregate(plan, input, keys, calls)?,
            Node::Distinct { input } => {
                let part = self.part(input)?;
                let all: Vec<usize> = (0..plan.schema.fields().len()).collect();
                let part = self.distinct(part);
                let part = if is_together(&part.place) { part } else { self.by_columns(&part, &all) };
                let block = query::distinct(self.as_rows(part.block.clone()));
                self.over(plan, block, &[&part])
            }
            Node::TopK { input, top } => self.top_k(plan, input, top)?,
            Node::Window { input, window } => {
                let part = self.rows_of(input)?;
                let part = self.within(part, &window.partition);
                let block = query::window(part.block.clone(), window, plan)?;
                self.over(plan, block, &[&part])
            }
            Node::Recognize { input, recognize } => {
                let part = self.rows_of(input)?;
                let part = self.within(part, &recognize.partition);
                let aliases = [self.alias(), self.alias()];
                let block = patterns::recognize(plan, part.block.clone(), [&aliases[0], &aliases[1]])?;
                self.over(plan, block, &[&part])
            }
            Node::Union { inputs } => self.union(plan, inputs)?,
            Node::SetOperation { operation, left, right } => {
                let all: Vec<usize> = (0..plan.schema.fields().len()).collect();
                let (left, right) = (self.part(left)?, self.part(right)?);
                let (left, right) = (self.by_columns(&left, &all), self.by_columns(&right, &all));
                let left = if left.inputs.len() > 1 { self.as_step(&left) } else { left };
                let right = if right.inputs.len() > 1 { self.as_step(&right) } else { right };
                let right = aside(&right, left.inputs.len());
                let alias = self.alias();
                let block = join::set_operation(plan, *operation, &left.block, &right.block, &alias);
                self.over(plan, block, &[&left, &right])
            }
            _ => return Err(crate::explain::line(plan)),
        };
        Ok(Part { rows, ..part })
    }

    /// A part over others, whose rows lie as the plan says.
    fn over(&self, plan: &Plan, block: Block, below: &[&Part]) -> Part {
        let places: Vec<PlanPlacement> = below.iter().map(|part| part.place.clone()).collect();
        let place = placement::over(plan, &places).unwrap_or(PlanPlacement::Arbitrary);
        let inputs = below.iter().flat_map(|part| part.inputs.iter().copied()).collect();
        Part { block, inputs, place, rows: 0.0 }
    }

    fn relation(&mut self, plan: &Arc<Plan>, relation: &str, positions: &[usize]) -> Result<Part, String> {
        let all = (self.how.columns)(relation);
        let mut columns = self.wanted.get(relation).cloned().unwrap_or_default();
        // (A table has a column.)
        if columns.is_empty() {
            columns.extend(all.first().cloned());
        }
        if columns.is_empty() {
            return Err(format!("the relation \"{relation}\", which has no columns"));
        }
        let action = StepAction::Relation { relation: relation.to_owned(), columns: columns.clone() };
        let step = match self.steps.iter().position(|step| step.action == action) {
            Some(step) => step,
            None => self.push(relation, action),
        };
        if positions.is_empty() {
            return Ok(leaf(step, columns, PlanPlacement::Arbitrary, 0.0));
        }
        // (A scan may name columns anew.)
        let read = positions.iter().filter_map(|at| all.get(*at).cloned()).collect();
        let part = leaf(step, read, PlanPlacement::Arbitrary, 0.0);
        Ok(Part { block: Block { names: names(&plan.schema), ..part.block }, ..part })
    }

    fn constant(&mut self, plan: &Plan, values: &[Vec<datafusion_common::ScalarValue>]) -> Part {
        let rows: Vec<Vec<String>> = values.iter().map(|row| row.iter().map(exact_literal).collect()).collect();
        let types: Vec<String> = plan.schema.fields().iter().map(|field| exact_type(field.data_type())).collect();
        let alias = self.alias();
        let block = join::values(plan, &rows, &types, &alias);
        Part { block, inputs: vec![], place: PlanPlacement::Replicated, rows: 0.0 }
    }

    fn join(&mut self, plan: &Arc<Plan>) -> Result<Part, String> {
        let Node::Join { left, right, kind, left_key, right_key, .. } = &plan.node else {
            return Err("what is no join".to_owned());
        };
        let (mut ours, mut theirs) = (self.part(left)?, self.part(right)?);
        if placement::over(plan, &[ours.place.clone(), theirs.place.clone()]).is_none() {
            (ours, theirs) = self.brought_together(*kind, (ours, left_key), (theirs, right_key));
        }
        let (ours, theirs) = self.side_by_side(ours, theirs);
        let aliases = [self.alias(), self.alias()];
        let block = join::join(plan, ours.block.clone(), theirs.block.clone(), [&aliases[0], &aliases[1]])?;
        Ok(self.over(plan, block, &[&ours, &theirs]))
    }

    fn asof(&mut self, plan: &Arc<Plan>, left: &Arc<Plan>, right: &Arc<Plan>, on: &AsofJoin) -> Result<Part, String> {
        let (mut ours, mut theirs) = (self.part(left)?, self.part(right)?);
        if placement::over(plan, &[ours.place.clone(), theirs.place.clone()]).is_none() {
            // (Rows of the left are looked up, each by itself.)
            (ours, theirs) = self.brought_together(JoinKind::Left, (ours, &on.left_key), (theirs, &on.right_key));
        }
        let (ours, theirs) = self.side_by_side(ours, theirs);
        let aliases = [self.alias(), self.alias()];
        let block = events::asof(plan, ours.block.clone(), theirs.block.clone(), [&aliases[0], &aliases[1]])?;
        Ok(self.over(plan, block, &[&ours, &theirs]))
    }

    /// Both parts with so few inputs that one step may read them.
    fn side_by_side(&mut self, mut ours: Part, mut theirs: Part) -> (Part, Part) {
        if ours.inputs.len() + theirs.inputs.len() > TABLES.len() && ours.inputs.len() > 1 {
            ours = self.as_step(&ours);
        }
        if ours.inputs.len() + theirs.inputs.len() > TABLES.len() {
            theirs = self.as_step(&theirs);
        }
        let theirs = aside(&theirs, ours.inputs.len());
        (ours, theirs)
    }

    fn aggregate(
        &mut self,
        plan: &Arc<Plan>,
        input: &Arc<Plan>,
        keys: &[usize],
        calls: &[AggregateCall],
    ) -> Result<Part, String> {
        let mut part = self.part(input)?;
        if !query::takes_groups(&part.block, keys) {
            let alias = self.alias();
            part.block = part.block.nested(&alias);
        }
        let is_whole = placement::is_within(&part.place, keys) || part.place == PlanPlacement::Replicated;
        let partial: Option<Vec<ShardShares>> =
            calls.iter().map(|call| ShardShares::of(call, &part.block, &input.schema)).collect();
        let (Some(partial), false) = (partial, is_whole) else {
            let part = if is_whole { part } else { self.within(part, keys) };
            let texts: Vec<String> = calls.iter().map(|call| query::call(&part.block, call)).collect();
            let block = query::aggregate(part.block.clone(), keys, &texts, names(&plan.schema));
            return Ok(self.over(plan, block, &[&part]));
        };
        // Each shard's groups, then the groups of those.
        let names = names(&plan.schema);
        let mut shared = names[..keys.len()].to_vec();
        let mut texts = Vec::new();
        for (share, name) in partial.iter().zip(&names[keys.len()..]) {
            for (text, suffix) in &share.parts {
                texts.push(text.clone());
                shared.push(format!("{name}{suffix}"));
            }
        }
        let block = query::aggregate(part.block.clone(), keys, &texts, shared);
        let groups: Vec<usize> = (0..keys.len()).collect();
        let rows = self.guess(plan) * self.how.shards;
        let first = Part { block, place: PlanPlacement::Arbitrary, rows, ..part };
        let moved = if keys.is_empty() { self.in_one(&first) } else { self.by_columns(&first, &groups) };
        let mut at = keys.len();
        let mut finals = Vec::new();
        for share in &partial {
            let columns: Vec<String> =
                (at..at + share.parts.len()).map(|at| moved.block.columns[at].text.clone()).collect();
            finals.push(share.combined(&columns));
            at += share.parts.len();
        }
        let block = query::aggregate(moved.block.clone(), &groups, &finals, names);
        let place = moved.place.clone();
        Ok(Part { block, place, ..moved })
    }

    fn top_k(&mut self, plan: &Arc<Plan>, input: &Arc<Plan>, top: &TopK) -> Result<Part, String> {
        let part = self.rows_of(input)?;
        // (Rows do not differ in a literal, and ORDER BY would read a number as a position.)
        let order = top.order.iter().filter(|key| !is_literal(&part.block.columns[key.column].text)).copied();
        let top = &TopK { order: order.collect(), ..top.clone() };
        let is_whole = placement::is_within(&part.place, &top.group) || part.place == PlanPlacement::Replicated;
        let part = match (is_whole, top.limit) {
            (false, Some(limit)) if top.group.is_empty() && top.ranked == RankedBy::Row => {
                let first =
                    TopK { limit: Some(limit.saturating_add(top.offset)), offset: 0, numbered: false, ..top.clone() };
                let aliases = [self.alias(), self.alias()];
                let block = query::top_k(part.block.clone(), &first, input, [&aliases[0], &aliases[1]]);
                self.in_one(&Part { block, rows: limit as f64, ..part })
            }
            (false, _) => self.within(part, &top.group),
            (true, _) => part,
        };
        let aliases = [self.alias(), self.alias()];
        let block = query::top_k(part.block.clone(), top, plan, [&aliases[0], &aliases[1]]);
        Ok(self.over(plan, block, &[&part]))
    }

    fn union(&mut self, plan: &Arc<Plan>, inputs: &[Arc<Plan>]) -> Result<Part, String> {
        let parts = inputs.iter().map(|input| self.part(input)).collect::<Result<Vec<Part>, String>>()?;
        let is_one_step = parts.iter().all(|part| part.inputs == parts[0].inputs) && !parts[0].inputs.is_empty();
        let is_split = |part: &Part| part.place != PlanPlacement::Replicated;
        if parts.iter().all(|part| !is_split(part)) || (is_one_step && parts.iter().all(is_split)) {
            let alias = self.alias();
            let block = join::union(plan, &parts.iter().map(|part| &part.block).collect::<Vec<_>>(), &alias);
            let whole = self.over(plan, block, &parts.iter().collect::<Vec<_>>());
            return Ok(Part { inputs: parts[0].inputs.clone(), ..whole });
        }
        if !parts.iter().all(is_split) {
            return Err("a union of literal rows with those of relations".to_owned());
        }
        let columns = names(&plan.schema);
        let mut step = None;
        for part in &parts {
            let next =
                self.step(&Part { block: Block { names: columns.clone(), ..part.block.clone() }, ..part.clone() });
            step = Some(match step {
                None => next,
                Some(before) => self.push("s", StepAction::Union { inputs: [before, next] }),
            });
        }
        let step = step.ok_or_else(|| "a union of nothing".to_owned())?;
        Ok(leaf(step, columns, PlanPlacement::Arbitrary, 0.0))
    }

    /// A part of rows that are neither grouped nor cut.
    fn rows_of(&mut self, plan: &Arc<Plan>) -> Result<Part, String> {
        let part = self.part(plan)?;
        Ok(Part { block: self.as_rows(part.block.clone()), ..part })
    }

    fn as_rows(&mut self, block: Block) -> Block {
        if block.is_rows() {
            return block;
        }
        let alias = self.alias();
        block.nested(&alias)
    }

    fn distinct(&mut self, part: Part) -> Part {
        match is_together(&part.place) || part.place == PlanPlacement::Replicated {
            true => part,
            false => Part {
                block: query::distinct(self.as_rows(part.block)),
                inputs: part.inputs,
                place: part.place,
                rows: part.rows,
            },
        }
    }

    fn as_step(&mut self, part: &Part) -> Part {
        let step = self.step(part);
        leaf(step, part.block.names.clone(), part.place.clone(), part.rows)
    }

    /// The step whose rows are the part's.
    pub(super) fn step(&mut self, part: &Part) -> usize {
        // (A block over a nested one is all of a table, too, but of rows that the nested one
        // makes.)
        let is_input = part.block.is_table() && part.block.from == table(0);
        if let ([step], true) = (part.inputs.as_slice(), is_input)
            && self.columns(*step).as_ref() == Some(&part.block.names)
        {
            return *step;
        }
        let mut text = part.block.text();
        if part.inputs.len() == 1
            && !text.contains("EXISTS (")
            && !text.contains(" IN (SELECT")
            && !text.contains(" JOIN ")
            && !orders_by_a_name(&part.block)
        {
            text = text.replace(&format!("{}.", table(0)), "");
        }
        let text = with_tables(&text, &|number| TABLES.get(number).copied().unwrap_or("shard").to_owned());
        let action = StepAction::Sql { inputs: part.inputs.clone(), text };
        match self.steps.iter().position(|step| step.action == action) {
            Some(step) => step,
            None => self.push("s", action),
        }
    }

    /// The columns of a step that only hands rows on.
    fn columns(&self, step: usize) -> Option<Vec<String>> {
        match &self.steps[step].action {
            StepAction::Relation { columns, .. } => Some(columns.clone()),
            StepAction::Rekey { input, .. } | StepAction::Move { input, .. } | StepAction::Multicast { input, .. } => {
                self.columns(*input)
            }
            StepAction::Sql { .. } | StepAction::Union { .. } | StepAction::Split { .. } => None,
        }
    }

    pub(super) fn push(&mut self, name: &str, action: StepAction) -> usize {
        let name = match name {
            "s" => format!("s{}", self.steps.len() + 1),
            name => {
                let plain: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
                let is_taken = self.steps.iter().any(|step| step.name == plain) || identifier(&plain) != plain;
                if is_taken { format!("{plain}_{}", self.steps.len() + 1) } else { plain }
            }
        };
        self.steps.push(PlannedStep { name, action });
        self.steps.len() - 1
    }

    /// About how many rows a plan has.
    fn guess(&self, plan: &Plan) -> f64 {
        let below: Vec<f64> = plan.inputs().into_iter().map(|input| self.guess(input)).collect();
        let greatest = below.iter().copied().fold(1.0, f64::max);
        match &plan.node {
            Node::Scan { relation, .. } => (self.how.rows)(relation).max(1.0),
            Node::Constant { rows } => rows.len() as f64,
            Node::Stage { filter, .. } => greatest * 0.5f64.powi(i32::try_from(filter.len()).unwrap_or(8)),
            Node::Aggregate { keys, .. } if keys.is_empty() => 1.0,
            Node::Aggregate { .. } | Node::Distinct { .. } => greatest * 0.2,
            Node::TopK { top: TopK { limit: Some(limit), group, .. }, .. } if group.is_empty() => *limit as f64,
            Node::Join { kind: JoinKind::LeftSemi | JoinKind::LeftAnti | JoinKind::LeftAntiNullAware, .. } => {
                below[0] * 0.5
            }
            Node::Join { kind: JoinKind::LeftMark, .. } => below[0],
            Node::Union { .. } => below.iter().sum(),
            _ => greatest,
        }
    }
}

/// The columns of each relation that a plan reads, in order of first use.
fn wanted(plan: &Plan, all: &dyn Fn(&str) -> Vec<String>) -> BTreeMap<String, Vec<String>> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut waiting = vec![plan];
    while let Some(plan) = waiting.pop() {
        if let Node::Scan { relation, columns } = &plan.node {
            let (all, found) = (all(relation), found.entry(relation.clone()).or_default());
            for name in columns.iter().filter_map(|at| all.get(*at)) {
                if !found.contains(name) {
                    found.push(name.clone());
                }
            }
        }
        waiting.extend(plan.inputs().into_iter().rev().map(|input| &**input));
    }
    found
}

/// Whether a column's text is a number or a text, perhaps cast.
fn is_literal(text: &str) -> bool {
    let value = text.split("::").next().unwrap_or(text).trim_matches(['(', ')']);
    let inner = value.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
    inner.is_some_and(|inner| !inner.contains('\'')) || value.trim_start_matches('-').parse::<f64>().is_ok()
}

fn is_together(place: &PlanPlacement) -> bool {
    matches!(place, PlanPlacement::Together { .. } | PlanPlacement::One | PlanPlacement::Replicated)
}
