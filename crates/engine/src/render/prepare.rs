//! From a plan to steps: what is imported, what is arranged and by which key, what is fused, and
//! the compiled expressions.
//!
//! Law: equal sub-plans become one step, and equal (sub-plan, key) pairs one arrangement. An
//! arrangement that exists, of a relation or of a sub-plan that other queries share, is used
//! wherever its key is the key that is needed, in any order of its columns.
//!
//! Cost: once a query, linear in the plan (structural hashing makes it quadratic in its depth).

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use anabranch_batch::{Batch, Columns, Diffs, Time, Times, types};
use anabranch_operators::relational::set_operation::Operation;
use anabranch_operators::stateless::unnest::Unnest;
use anabranch_plan::bounds;
use anabranch_plan::rewrite::cannot_fail;
use anabranch_plan::variables::lifted;
use anabranch_plan::{Node, Plan, SetOperation};
use arrow::array::ArrayRef;
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion_common::{DFSchema, ScalarValue};
use datafusion_expr::Expr;
use datafusion_expr::utils::split_conjunction;

use super::bases::{base_of, order_of};
use super::expression::{Compiled, stage_of};
use super::leaves::Leaves;
use super::physical::{Physical, Step, StepId};
use super::prepare_loop::Entries;
use super::shares::Shares;
use super::specs::{aggregate_spec, asof_spec, session_spec, top_k_spec, types_of};
use crate::cluster::promised::Reading;
use crate::cluster::spec::{ArrangementId, Export, Read};
use crate::error::Error;

/// Decides and compiles the steps of a plan, whose joins, and those of the query it is a part of,
/// want `leaves`.
///
/// # Errors
/// `Invalid` for expressions that cannot be evaluated and joins that are not supported.
pub(crate) fn prepare(
    plan: &Arc<Plan>,
    leaves: &Leaves,
    reads: &BTreeMap<String, Read>,
    exports: &[Export],
    shares: &mut dyn Shares,
) -> Result<Physical, Error> {
    let mut preparer = Preparer::new(leaves, reads, shares);
    let root = preparer.root(plan)?;
    let types = types_of(&plan.schema);
    let mut exported = Vec::new();
    for export in exports {
        exported.push((export.clone(), preparer.arrange_step(root, &export.key, &types)));
    }
    let floor = preparer.floor_of(plan);
    let is_append_only = bounds::is_append_only(plan, &Reading(reads));
    let PreparerFrame { steps, plans, .. } = preparer.frames.pop().expect("loops are prepared one inside the other");
    Ok(Physical { steps, root, types, exports: exported, is_append_only, floor, plans })
}

pub(super) struct Preparer<'a> {
    pub(super) reads: &'a BTreeMap<String, Read>,
    shares: &'a mut dyn Shares,
    /// The dataflow's own steps, then those of the loops around what is being prepared.
    pub(super) frames: Vec<PreparerFrame>,
    leaves: &'a Leaves,
}

/// Steps that run at one place: in the dataflow, or in a loop.
#[derive(Default)]
pub(super) struct PreparerFrame {
    pub steps: Vec<Step>,
    pub streams: HashMap<Arc<Plan>, StepId>,
    /// The first plan of each step that yields rows, in order of the steps' making.
    pub plans: Vec<(StepId, Arc<Plan>)>,
    arrangements: HashMap<(StepId, Vec<usize>), StepId>,
    imports: HashMap<ArrangementId, StepId>,
    /// What a loop has beside; nothing in the dataflow's own.
    pub entries: Entries,
}

/// A side of a join: an arrangement, and where the plan's columns are in it.
pub(super) struct ArrangedSide {
    pub step: StepId,
    /// Position in the arrangement's rows of each column of the plan.
    pub columns: Vec<usize>,
}

impl ArrangedSide {
    pub fn place(&self, columns: &[usize]) -> Vec<usize> {
        columns.iter().map(|column| self.columns[*column]).collect()
    }
}

impl<'a> Preparer<'a> {
    fn new(leaves: &'a Leaves, reads: &'a BTreeMap<String, Read>, shares: &'a mut dyn Shares) -> Preparer<'a> {
        Preparer { leaves, reads, shares, frames: vec![PreparerFrame::default()] }
    }

    pub(super) fn frame(&mut self) -> &mut PreparerFrame {
        self.frames.last_mut().expect("the dataflow's own steps have a frame")
    }

    /// How many loops there are around what is being prepared.
    pub(super) fn n_loops(&self) -> usize {
        self.frames.len() - 1
    }

    /// Whether the answer is asked for as of the first time only.
    pub(super) fn is_asked_once(&self) -> bool {
        self.shares.is_asked_once()
    }

    pub(super) fn push(&mut self, step: Step) -> StepId {
        let steps = &mut self.frame().steps;
        steps.push(step);
        StepId(steps.len() - 1)
    }

    /// The step that yields the rows of the whole plan. They may come from what others made, but
    /// are not made for others: that is what this dataflow is for.
    fn root(&mut self, plan: &Arc<Plan>) -> Result<StepId, Error> {
        let step = match self.shares.rows(plan) {
            Some(arrangement) => self.shared_stream(plan, arrangement),
            None => self.new_stream(plan)?,
        };
        self.note_stream(plan, step);
        Ok(step)
    }

    /// The step that yields a plan's rows as a stream.
    pub(super) fn stream(&mut self, plan: &Arc<Plan>) -> Result<StepId, Error> {
        if let Some(step) = self.frame().streams.get(plan) {
            return Ok(*step);
        }
        let step = match self.n_loops() {
            0 => match self.shares.shared_rows(plan)? {
                Some(arrangement) => self.shared_stream(plan, arrangement),
                None => self.new_stream(plan)?,
            },
            _ => match lifted(plan) {
                Some(outside) => self.entered(&outside)?,
                None => self.new_stream(plan)?,
            },
        };
        self.note_stream(plan, step);
        Ok(step)
    }

    fn note_stream(&mut self, plan: &Arc<Plan>, step: StepId) {
        let frame = self.frame();
        frame.streams.insert(Arc::clone(plan), step);
        if !frame.plans.iter().any(|(known, _)| *known == step) {
            frame.plans.push((step, Arc::clone(plan)));
        }
    }

    /// Whether there is a step, or an arrangement, with the rows of the plan.
    pub(super) fn is_there(&mut self, plan: &Arc<Plan>) -> bool {
        self.frame().streams.contains_key(plan) || self.n_loops() == 0 && self.shares.rows(plan).is_some()
    }

    /// The rows of an arrangement that holds exactly the plan's.
    fn shared_stream(&mut self, plan: &Plan, arrangement: ArrangementId) -> StepId {
        self.push(Step::ImportStream {
            name: "shared".to_owned(),
            input: None,
            history: Some(arrangement),
            columns: (0..plan.schema.fields().len()).collect(),
        })
    }

    fn new_stream(&mut self, plan: &Arc<Plan>) -> Result<StepId, Error> {
        match &plan.node {
            Node::Scan { relation, columns } => self.scan(relation, columns),
            Node::Constant { rows } => self.constant(plan, rows),
            Node::Stage { input, filter, project } => self.stage(plan, input, filter, project),
            Node::Unnest { input, columns, outer } => {
                let input = self.stream(input)?;
                Ok(self.push(Step::Unnest { input, unnest: Unnest { columns: columns.clone(), outer: *outer } }))
            }
            Node::Join { .. } => self.join(plan, None),
            Node::Asof { left, right, asof } => {
                let asof = asof_spec(asof, types_of(&left.schema), types_of(&right.schema));
                let (left, right) = (self.stream(left)?, self.stream(right)?);
                let limits = self.limits(plan);
                Ok(self.push(Step::Asof { left, right, asof, limits }))
            }
            Node::Session { input, session } => {
                let sessions = session_spec(session, types_of(&input.schema));
                let (input, limits) = (self.stream(input)?, self.limits(plan));
                Ok(self.push(Step::Sessions { input, sessions, limits }))
            }
            Node::Aggregate { input, keys, calls } => {
                let mut aggregate = aggregate_spec(keys, calls, types_of(&input.schema))?;
                aggregate.is_append_only = bounds::is_append_only(input, &Reading(self.reads));
                let limits = self.limits(plan);
                let input = self.stream(input)?;
                Ok(self.push(Step::Aggregate { input, aggregate, limits }))
            }
            Node::Distinct { input } => {
                let types = types_of(&input.schema);
                let inputs = vec![self.stream(input)?];
                let limits = self.limits(plan);
                Ok(self.push(Step::SetOperation { inputs, operation: Operation::Distinct, types, limits }))
            }
            Node::TopK { input, top } => {
                let mut top = top_k_spec(top, types_of(&input.schema));
                top.is_append_only = bounds::is_append_only(input, &Reading(self.reads));
                let input = self.stream(input)?;
                let limits = self.limits(plan);
                Ok(self.push(Step::TopK { input, top, limits }))
            }
            Node::Recognize { input, recognize } => {
                let recognize = Box::new(super::recognize::compile(recognize, types_of(&input.schema))?);
                let input = self.stream(input)?;
                let limits = self.limits(plan);
                Ok(self.push(Step::Recognize { input, recognize, limits }))
            }
            Node::Window { input, window } => {
                let window = Box::new(super::window::compile(window, types_of(&input.schema))?);
                let input = self.stream(input)?;
                let limits = self.limits(plan);
                Ok(self.push(Step::Window { input, window, limits }))
            }
            Node::Union { inputs } => {
                let inputs = inputs.iter().map(|input| self.stream(input)).collect::<Result<Vec<_>, _>>()?;
                Ok(self.push(Step::Union { inputs }))
            }
            Node::SetOperation { operation, left, right } => {
                let types = types_of(&left.schema);
                let inputs = vec![self.stream(left)?, self.stream(right)?];
                let operation = match operation {
                    SetOperation::ExceptAll => Operation::ExceptAll,
                    SetOperation::IntersectAll => Operation::IntersectAll,
                    SetOperation::Except => Operation::Except,
                    SetOperation::Intersect => Operation::Intersect,
                };
                let limits = self.limits(plan);
                Ok(self.push(Step::SetOperation { inputs, operation, types, limits }))
            }
            Node::Temporal { verb, inputs } => self.temporal(plan, verb, inputs),
            Node::Recursive(recursive) => self.recursive(recursive),
            Node::Variable { index, .. } => self.variable(*index),
        }
    }

    pub(super) fn read(&self, relation: &str) -> Result<&'a Read, Error> {
        self.reads
            .get(relation)
            .ok_or_else(|| Error::internal(format!("the plan scans \"{relation}\", which it was not bound to")))
    }

    fn scan(&mut self, relation: &str, columns: &[usize]) -> Result<StepId, Error> {
        let read = self.read(relation)?;
        Ok(self.push(Step::ImportStream {
            name: relation.to_owned(),
            input: read.is_input.then_some(read.collection),
            history: read.arrangements.first().map(|(arrangement, _)| *arrangement),
            columns: columns.to_vec(),
        }))
    }

    fn constant(&mut self, plan: &Plan, rows: &[Vec<ScalarValue>]) -> Result<StepId, Error> {
        let mut columns: Vec<ArrayRef> = Vec::new();
        for (index, data_type) in types_of(&plan.schema).iter().enumerate() {
            let values = rows.iter().map(|row| row[index].clone());
            columns.push(constant_column(values, data_type)?);
        }
        let times = Times::Constant(Time::MIN);
        let rows = Batch::with_len(Columns::from(columns), rows.len(), times, Diffs::Constant(1));
        Ok(self.push(Step::Constant { rows }))
    }

    fn stage(&mut self, plan: &Plan, input: &Arc<Plan>, filter: &[Expr], project: &[Expr]) -> Result<StepId, Error> {
        let filter = conditions(filter, &input.schema)?;
        let types = types_of(&plan.schema);
        let project = project.iter().zip(&types).enumerate();
        let project = project
            .map(|(at, (e, data_type))| Ok(Compiled::near(e, &input.schema, at)?.typed(data_type)))
            .collect::<Result<Vec<_>, Error>>()?;
        if matches!(input.node, Node::Join { .. }) && !self.is_there(input) {
            return self.join(input, Some((filter, project)));
        }
        let input_types = types_of(&input.schema);
        let n_columns = input_types.len();
        let input = self.stream(input)?;
        let columns = project.iter().map(Compiled::as_column).collect::<Option<Vec<_>>>();
        if filter.is_empty() && columns.is_some_and(|columns| columns.iter().copied().eq(0..n_columns)) {
            return Ok(input);
        }
        let stage = stage_of(filter, project, &input_types);
        Ok(self.push(Step::Stage { input, stage }))
    }

    /// The arrangement of a plan's rows by key: one that exists, or a new one.
    pub(super) fn arranged(&mut self, plan: &Arc<Plan>, key: &[usize]) -> Result<ArrangedSide, Error> {
        if self.n_loops() > 0 {
            return self.arranged_in_loop(plan, key);
        }
        if let Some(side) = self.existing_arranged(plan, key)? {
            return Ok(side);
        }
        let (plan, key, columns) = match self.leaves.widened(plan, key)? {
            Some(wide) => (wide.plan, wide.key, wide.columns),
            None => (Arc::clone(plan), key.to_vec(), (0..plan.schema.fields().len()).collect()),
        };
        let stream = self.stream(&plan)?;
        let step = self.arrange_step(stream, &key, &types_of(&plan.schema));
        Ok(ArrangedSide { step, columns })
    }

    /// An arrangement of a plan's rows by key that exists, or that others will use.
    pub(super) fn existing_arranged(&mut self, plan: &Arc<Plan>, key: &[usize]) -> Result<Option<ArrangedSide>, Error> {
        if let Some((relation, columns)) = as_scan(plan) {
            let wanted: Vec<usize> = key.iter().map(|column| columns[*column]).collect();
            let read = self.read(&relation)?;
            if let Some((arrangement, _)) = read.arrangements.iter().find(|(_, key)| *key == wanted)
                && self.shares.reads_indexes()
            {
                return Ok(Some(ArrangedSide { step: self.import(&relation, *arrangement), columns }));
            }
        }
        let (plan, key, columns) = match self.leaves.widened(plan, key)? {
            Some(wide) => (wide.plan, wide.key, wide.columns),
            None => (Arc::clone(plan), key.to_vec(), (0..plan.schema.fields().len()).collect()),
        };
        let Some(found) = self.shares.arrangement(&plan, &key)? else { return Ok(None) };
        let columns = columns.into_iter().map(|column| found.columns[column]).collect();
        Ok(Some(ArrangedSide { step: self.import("shared", found.arrangement), columns }))
    }

    fn import(&mut self, name: &str, arrangement: ArrangementId) -> StepId {
        if let Some(step) = self.frame().imports.get(&arrangement) {
            return *step;
        }
        let step = self.push(Step::ImportArranged { name: name.to_owned(), arrangement });
        self.frame().imports.insert(arrangement, step);
        step
    }

    /// The order of a join key's columns in which an arrangement of the plan exists.
    pub(super) fn existing_key_order(&self, plan: &Arc<Plan>, key: &[usize]) -> Option<Vec<usize>> {
        // (Arrangements enter a loop, not one inside of it.)
        if self.n_loops() > 1 || !plan.is_closed() {
            return None;
        }
        self.index_key_order(plan, key).or_else(|| self.shares.key_order(plan, key))
    }

    fn index_key_order(&self, plan: &Arc<Plan>, key: &[usize]) -> Option<Vec<usize>> {
        let (relation, columns) = as_scan(plan)?;
        let read = self.reads.get(&relation).filter(|_| self.shares.reads_indexes())?;
        read.arrangements.iter().find_map(|(_, existing)| order_of(existing, key, &columns))
    }

    pub(super) fn arrange_step(&mut self, input: StepId, key: &[usize], types: &[DataType]) -> StepId {
        if let Some(step) = self.frame().arrangements.get(&(input, key.to_vec())) {
            return *step;
        }
        let step = self.push(Step::Arrange { input, key: key.to_vec(), types: types.to_vec() });
        self.frame().arrangements.insert((input, key.to_vec()), step);
        step
    }
}

/// A filter's conditions as they are evaluated. Those that follow each other and cannot fail go
/// together, so that rows are copied once and not after each, and what needs no planner's form goes
/// first.
fn conditions(filter: &[Expr], schema: &DFSchema) -> Result<Vec<Compiled>, Error> {
    let mut compiled = Vec::new();
    for group in filter.chunk_by(|left, right| cannot_fail(left, schema) && cannot_fail(right, schema)) {
        if !cannot_fail(&group[0], schema) {
            compiled.push(Compiled::new(&group[0], schema)?);
            continue;
        }
        let (mut quick, mut others) = (Vec::new(), Vec::new());
        for condition in group.iter().flat_map(|condition| split_conjunction(condition)) {
            let is_quick = Compiled::new(condition, schema)?.is_condition();
            if is_quick { &mut quick } else { &mut others }.push(condition.clone());
        }
        for conditions in [quick, others] {
            if let Some(condition) = conditions.into_iter().reduce(Expr::and) {
                compiled.push(Compiled::new(&condition, schema)?);
            }
        }
    }
    Ok(compiled)
}

/// A relation of which the plan shows some columns and all rows.
fn as_scan(plan: &Arc<Plan>) -> Option<(String, Vec<usize>)> {
    let (base, columns) = base_of(plan);
    let Node::Scan { relation, columns: shown } = &base.node else { return None };
    Some((relation.clone(), columns.into_iter().map(|column| shown[column]).collect()))
}

fn constant_column(values: impl Iterator<Item = ScalarValue>, data_type: &DataType) -> Result<ArrayRef, Error> {
    let values: Vec<ScalarValue> = values.collect();
    let internal =
        |error: &dyn std::fmt::Display| Error::internal(format!("cannot make a column of literals: {error}"));
    if values.is_empty() {
        return Ok(arrow::array::new_empty_array(data_type));
    }
    let planned = types::widened_type(data_type);
    let values = values
        .into_iter()
        .map(|value| value.cast_to(&planned))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| Error::invalid(super::expression::plain_message(&error)))?;
    let column = ScalarValue::iter_to_array(values).map_err(|error| internal(&error))?;
    let column = types::to_planned(&column).map_err(|error| internal(&error))?;
    let column = match *column.data_type() == planned {
        true => column,
        false => cast(&column, &planned).map_err(|error| internal(&error))?,
    };
    types::narrowed(&column).map_err(|error| Error::invalid(error.detail()))
}
