//! How joins become steps: which side is arranged by what, what is gathered, and outer joins by
//! their parts.
//!
//! - inner: probe both ways; residual predicate, projection and the stage above are fused behind
//!   the gather.
//! - semi, anti, mark: one step.
//! - left, right, full: the inner join, and the rows without a match padded with NULLs.
//! - asked once, where no side is arranged already: streams are joined, and nothing is kept.
//! - null-aware anti (`NOT IN`): the anti join, joined with two facts about the right side: is it
//!   empty, has it a NULL key.

use std::collections::BTreeSet;
use std::sync::Arc;

use anabranch_batch::Columns;
use anabranch_operators::expression::{Column, Expression, ExpressionRef};
use anabranch_operators::relational::semi_join::{Keep, Residual};
use anabranch_operators::relational::set_operation::Operation;
use anabranch_operators::stateless::filter_project::Stage;
use anabranch_plan::bounds::Leaving;
use anabranch_plan::{AggregateCall, AggregateFunction, JoinKind, Node, Nulls, Plan};
use arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use arrow::datatypes::{DataType, Int64Type};

use super::expression::{Compiled, null_column, stage_of};
use super::physical::{JoinStep, SemiJoinStep, Step, StepId};
use super::prepare::{ArrangedSide, Preparer};
use super::specs::{aggregate_spec, types_of};
use crate::cluster::spec::LimitStep;
use crate::error::Error;

/// A join being prepared. Expressions and positions are over all left columns followed by all right
/// ones.
struct JoinParts<'p> {
    left: &'p Arc<Plan>,
    right: &'p Arc<Plan>,
    left_key: Vec<usize>,
    right_key: Vec<usize>,
    nulls: Nulls,
    residual: Option<Compiled>,
    filter: Vec<Compiled>,
    project: Vec<Compiled>,
    types: Vec<DataType>,
    /// What leaves each side.
    leaving: [Option<Leaving>; 2],
}

impl JoinParts<'_> {
    fn n_left(&self) -> usize {
        self.left.schema.fields().len()
    }

    fn n_right(&self) -> usize {
        self.right.schema.fields().len()
    }

    /// The same join seen from the other side.
    fn swapped(&self) -> Self {
        let (n_left, n_right) = (self.n_left(), self.n_right());
        let position = move |column: usize| if column < n_left { column + n_right } else { column - n_left };
        let types: Vec<DataType> = self.types[n_left..].iter().chain(&self.types[..n_left]).cloned().collect();
        let turn = |compiled: &Compiled| compiled.moved(&types, &position);
        JoinParts {
            left: self.right,
            right: self.left,
            left_key: self.right_key.clone(),
            right_key: self.left_key.clone(),
            nulls: self.nulls,
            residual: self.residual.as_ref().map(turn),
            filter: self.filter.iter().map(turn).collect(),
            project: self.project.iter().map(turn).collect(),
            types: types.clone(),
            leaving: [self.leaving[1].clone(), self.leaving[0].clone()],
        }
    }

    /// The limits of the sides, which are arranged so.
    fn limits(&self, left: &ArrangedSide, right: &ArrangedSide) -> Vec<LimitStep> {
        let sides = [left, right].into_iter().zip(&self.leaving).enumerate();
        let limit = |(input, (side, leaving)): (usize, (&ArrangedSide, &Option<Leaving>))| {
            let Leaving { column, below } = leaving.clone()?;
            Some(LimitStep { input, column: side.columns[column], below })
        };
        sides.filter_map(limit).collect()
    }
}

impl Preparer<'_> {
    /// A join, with the filter and projection of the stage above it, if there is one.
    pub(super) fn join(&mut self, plan: &Plan, above: Option<(Vec<Compiled>, Vec<Compiled>)>) -> Result<StepId, Error> {
        let Node::Join { left, right, kind, left_key, right_key, nulls, residual, output } = &plan.node else {
            return Err(Error::internal("a join was expected"));
        };
        let (left_types, right_types) = (types_of(&left.schema), types_of(&right.schema));
        let mut types: Vec<DataType> = left_types.iter().chain(&right_types).cloned().collect();
        if *kind == JoinKind::LeftMark {
            // The mark stands where the right columns would begin.
            types.truncate(left_types.len());
            types.push(DataType::Boolean);
        }
        let plain: Vec<Compiled> = output.iter().map(|column| Compiled::column(*column, &types)).collect();
        let (filter, project): (Vec<Compiled>, Vec<Compiled>) = match above {
            Some((filter, project)) => {
                let moved = |compiled: Compiled| compiled.moved(&types, &|column| output[column]);
                (filter.into_iter().map(moved).collect(), project.into_iter().map(moved).collect())
            }
            None => (vec![], plain.clone()),
        };
        if let Some(step) = self.threshold(plan, &filter, &project)? {
            return Ok(step);
        }
        let residual = match residual {
            Some(residual) => Some(Compiled::new(residual, &Plan::join_schema(left, right))?),
            None => None,
        };
        let order = self.key_order(left, left_key, right, right_key);
        let parts = JoinParts {
            left,
            right,
            left_key: order.iter().map(|place| left_key[*place]).collect(),
            right_key: order.iter().map(|place| right_key[*place]).collect(),
            nulls: *nulls,
            residual,
            filter,
            project,
            types,
            leaving: self.leaving_sides(plan),
        };
        match kind {
            JoinKind::Inner => self.inner(&parts),
            JoinKind::LeftSemi => self.semi_join(&parts, Keep::Semi),
            JoinKind::LeftAnti => self.semi_join(&parts, Keep::Anti),
            JoinKind::LeftMark => self.semi_join(&parts, Keep::Mark),
            JoinKind::LeftAntiNullAware => self.not_in(&parts),
            JoinKind::Left | JoinKind::Right | JoinKind::Full => self.outer(parts, *kind, &plain),
        }
    }

    /// The order in which to take the key columns, so that an arrangement that exists can be used.
    fn key_order(&self, left: &Arc<Plan>, left_key: &[usize], right: &Arc<Plan>, right_key: &[usize]) -> Vec<usize> {
        self.existing_key_order(left, left_key)
            .or_else(|| self.existing_key_order(right, right_key))
            .unwrap_or_else(|| (0..left_key.len()).collect())
    }

    fn sides(&mut self, parts: &JoinParts<'_>) -> Result<(ArrangedSide, ArrangedSide), Error> {
        let left = self.arranged(parts.left, &parts.left_key)?;
        let right = self.arranged(parts.right, &parts.right_key)?;
        Ok((left, right))
    }

    /// Whether the join is asked once and has to look at all rows of both sides: no side is
    /// arranged already.
    fn is_once(&mut self, parts: &JoinParts<'_>) -> Result<bool, Error> {
        if !self.is_asked_once() || self.n_loops() > 0 {
            return Ok(false);
        }
        let is_arranged = self.existing_arranged(parts.left, &parts.left_key)?.is_some()
            || self.existing_arranged(parts.right, &parts.right_key)?.is_some();
        Ok(!is_arranged)
    }

    /// The rows of the sides, and where the right side's come from when it is only asked which keys
    /// it has, not how many times.
    fn streams(
        &mut self,
        parts: &JoinParts<'_>,
        is_asked_whether: bool,
    ) -> Result<(ArrangedSide, ArrangedSide), Error> {
        let right = match &parts.right.node {
            Node::Distinct { input } if is_asked_whether && !self.is_there(parts.right) => input,
            _ => parts.right,
        };
        let mut side = |plan: &Arc<Plan>| -> Result<ArrangedSide, Error> {
            let columns = (0..plan.schema.fields().len()).collect();
            Ok(ArrangedSide { step: self.stream(plan)?, columns })
        };
        Ok((side(parts.left)?, side(right)?))
    }

    fn inner(&mut self, parts: &JoinParts<'_>) -> Result<StepId, Error> {
        let is_once = self.is_once(parts)?;
        let (left, right) = if is_once { self.streams(parts, false)? } else { self.sides(parts)? };
        let n_left = parts.n_left();
        let all = parts.residual.iter().chain(&parts.filter).chain(&parts.project);
        let used: Vec<usize> = all.flat_map(Compiled::columns).collect::<BTreeSet<_>>().into_iter().collect();
        let bind = Binding::new(&used, &parts.types);
        let stage = bind.stage(parts.residual.iter().chain(&parts.filter), &parts.project);
        let (from_left, from_right): (Vec<usize>, Vec<usize>) = used.iter().partition(|column| **column < n_left);
        let from_right: Vec<usize> = from_right.iter().map(|column| column - n_left).collect();
        let join = JoinStep {
            left_key: left.place(&parts.left_key),
            right_key: right.place(&parts.right_key),
            nulls: parts.nulls,
            gather_left: left.place(&from_left),
            gather_right: right.place(&from_right),
            stage,
        };
        if is_once {
            return Ok(self.push(Step::JoinOnce { left: left.step, right: right.step, join }));
        }
        let limits = parts.limits(&left, &right);
        Ok(self.push(Step::Join { left: left.step, right: right.step, join, limits }))
    }

    fn semi_join(&mut self, parts: &JoinParts<'_>, keep: Keep) -> Result<StepId, Error> {
        let n_left = parts.n_left();
        let all = parts.filter.iter().chain(&parts.project);
        let used: BTreeSet<usize> = all.flat_map(Compiled::columns).collect();
        let gather: Vec<usize> = used.iter().copied().filter(|column| *column < n_left).collect();
        // The mark comes after whatever is gathered, also when no reader asks for it.
        let mut places = gather.clone();
        if keep == Keep::Mark {
            places.push(n_left);
        }
        let bind = Binding::new(&places, &parts.types);
        let stage = bind.stage(&parts.filter, &parts.project);
        self.matched_step(parts, keep, &gather, stage)
    }

    fn matched_step(
        &mut self,
        parts: &JoinParts<'_>,
        keep: Keep,
        gather: &[usize],
        stage: Stage,
    ) -> Result<StepId, Error> {
        let is_once = self.is_once(parts)?;
        let (left, right) = match is_once {
            true => self.streams(parts, parts.residual.is_none())?,
            false => self.sides(parts)?,
        };
        let n_left = parts.n_left();
        let residual = parts.residual.as_ref().map(|residual| {
            let used: Vec<usize> = residual.columns().into_iter().collect();
            let mut types = types_of(&parts.left.schema);
            types.extend(types_of(&parts.right.schema));
            let bind = Binding::new(&used, &types);
            let (from_left, from_right): (Vec<usize>, Vec<usize>) = used.iter().partition(|column| **column < n_left);
            let from_right: Vec<usize> = from_right.iter().map(|column| column - n_left).collect();
            Residual {
                gather_left: left.place(&from_left),
                gather_right: right.place(&from_right),
                predicate: bind.bind(residual),
            }
        });
        let semi_join = SemiJoinStep {
            left_key: left.place(&parts.left_key),
            right_key: right.place(&parts.right_key),
            nulls: parts.nulls,
            keep,
            residual,
            gather: left.place(gather),
            stage,
        };
        if is_once {
            return Ok(self.push(Step::SemiJoinOnce { left: left.step, right: right.step, semi_join }));
        }
        let limits = parts.limits(&left, &right);
        Ok(self.push(Step::SemiJoin { left: left.step, right: right.step, semi_join, limits }))
    }

    /// The inner join of the plain output columns, the padded rest, and then the stage above.
    fn outer(&mut self, parts: JoinParts<'_>, kind: JoinKind, plain: &[Compiled]) -> Result<StepId, Error> {
        let needed: BTreeSet<usize> = parts.filter.iter().chain(&parts.project).flat_map(Compiled::columns).collect();
        let needed: Vec<usize> = needed.into_iter().collect();
        let above = Binding::new(&needed, &parts.types);
        let stage = above.stage(&parts.filter, &parts.project);
        let is_plain = parts.filter.is_empty()
            && parts.project.len() == plain.len()
            && parts.project.iter().map(Compiled::as_column).eq(needed.iter().map(|column| Some(*column)));
        let project = needed.iter().map(|column| Compiled::column(*column, &parts.types)).collect();
        let core = JoinParts { filter: vec![], project, ..parts };

        let mut inputs = vec![self.inner(&core)?];
        if matches!(kind, JoinKind::Left | JoinKind::Full) {
            inputs.push(self.padded(&core)?);
        }
        if matches!(kind, JoinKind::Right | JoinKind::Full) {
            inputs.push(self.padded(&core.swapped())?);
        }
        let union = self.push(Step::Union { inputs });
        Ok(if is_plain { union } else { self.push(Step::Stage { input: union, stage }) })
    }

    /// Left rows without a match, with NULLs for the right columns of the (plain) projection.
    fn padded(&mut self, parts: &JoinParts<'_>) -> Result<StepId, Error> {
        let n_left = parts.n_left();
        let output: Vec<usize> = parts.project.iter().filter_map(Compiled::as_column).collect();
        let gather: Vec<usize> = output.iter().copied().filter(|column| *column < n_left).collect();
        let mut place = 0..;
        let project = output.iter().map(|column| -> ExpressionRef {
            if *column < n_left {
                Arc::new(Column(place.next().expect("positions do not run out")))
            } else {
                null_column(&parts.types[*column])
            }
        });
        let stage = Stage { filter: vec![], kept: None, project: Some(project.collect()) };
        self.matched_step(parts, Keep::Anti, &gather, stage)
    }

    fn not_in(&mut self, parts: &JoinParts<'_>) -> Result<StepId, Error> {
        let ([left_key], [right_key], None) = (&parts.left_key[..], &parts.right_key[..], &parts.residual) else {
            let error = Error::invalid("NOT IN over several columns, or correlated beyond equality, is not supported");
            return Err(error.with_hint("write NOT EXISTS (SELECT .. WHERE ..) instead."));
        };
        let used = parts.filter.iter().chain(&parts.project).flat_map(Compiled::columns);
        let mut gather: Vec<usize> = used.collect::<BTreeSet<_>>().into_iter().collect();
        gather.retain(|column| column != left_key);
        gather.push(*left_key);
        let keep_all = Stage { filter: vec![], kept: None, project: None };
        let anti = self.matched_step(parts, Keep::Anti, &gather, keep_all)?;
        let anti_types: Vec<DataType> = gather.iter().map(|column| parts.types[*column].clone()).collect();
        let anti = self.arrange_step(anti, &[], &anti_types);
        let facts = self.facts_of(parts.right, *right_key)?;

        let n = gather.len();
        let bind = Binding::new(&gather, &parts.types);
        let mut filter: Vec<ExpressionRef> = vec![Arc::new(NotIn { key: n - 1, is_empty: n, has_null: n + 1 })];
        // Behind the join the two facts follow the gathered columns.
        let mut types = anti_types;
        types.extend([DataType::Boolean, DataType::Boolean]);
        let rebind = |e: &Compiled| e.moved(&types, &|column| bind.place(column)).into_ref();
        filter.extend(parts.filter.iter().map(rebind));
        let join = JoinStep {
            left_key: vec![],
            right_key: vec![],
            nulls: Nulls::Equal,
            gather_left: (0..n).collect(),
            gather_right: vec![0, 1],
            stage: Stage { filter, kept: None, project: Some(parts.project.iter().map(rebind).collect()) },
        };
        Ok(self.push(Step::Join { left: anti, right: facts, join, limits: vec![] }))
    }

    /// One row, arranged under no key: is the relation empty, and has it a NULL in the column. It
    /// changes only when a fact does.
    fn facts_of(&mut self, plan: &Arc<Plan>, column: usize) -> Result<StepId, Error> {
        let count = |argument| AggregateCall {
            function: AggregateFunction::Count,
            argument,
            distinct: false,
            filter: None,
            order: vec![],
            output_type: DataType::Int64,
        };
        let input = self.stream(plan)?;
        let calls = [count(None), count(Some(column))];
        let aggregate = aggregate_spec(&[], &calls, types_of(&plan.schema))?;
        let counts = self.push(Step::Aggregate { input, aggregate, limits: vec![] });
        let project: Vec<ExpressionRef> = vec![Arc::new(IsZero(0)), Arc::new(Differ(0, 1))];
        let stage = Stage { filter: vec![], kept: None, project: Some(project) };
        let facts = self.push(Step::Stage { input: counts, stage });
        let types = vec![DataType::Boolean, DataType::Boolean];
        let inputs = vec![facts];
        let facts = self.push(Step::SetOperation {
            inputs,
            operation: Operation::Distinct,
            types: types.clone(),
            limits: vec![],
        });
        Ok(self.arrange_step(facts, &[], &types))
    }
}

/// Which columns are gathered, and so where each of them is.
pub(super) struct Binding {
    columns: Vec<usize>,
    types: Vec<DataType>,
}

impl Binding {
    pub(super) fn new(columns: &[usize], all_types: &[DataType]) -> Binding {
        let types = columns.iter().map(|column| all_types[*column].clone()).collect();
        Binding { columns: columns.to_vec(), types }
    }

    fn place(&self, column: usize) -> usize {
        self.columns.iter().position(|gathered| *gathered == column).expect("what is used is gathered")
    }

    pub(super) fn bind(&self, expression: &Compiled) -> ExpressionRef {
        self.moved(expression).into_ref()
    }

    /// Filter and projection over what is gathered.
    pub(super) fn stage<'a>(
        &self,
        filter: impl IntoIterator<Item = &'a Compiled>,
        project: impl IntoIterator<Item = &'a Compiled>,
    ) -> Stage {
        let filter = filter.into_iter().map(|e| self.moved(e)).collect();
        let project = project.into_iter().map(|e| self.moved(e)).collect();
        stage_of(filter, project, &self.types)
    }

    fn moved(&self, expression: &Compiled) -> Compiled {
        expression.moved(&self.types, &|column| self.place(column))
    }
}

struct IsZero(usize);

impl Expression for IsZero {
    fn evaluate(&self, columns: &Columns, _rows: usize) -> Result<ArrayRef, String> {
        let counts = columns[self.0].as_primitive::<Int64Type>();
        Ok(Arc::new(counts.values().iter().map(|count| Some(*count == 0)).collect::<BooleanArray>()))
    }
}

struct Differ(usize, usize);

impl Expression for Differ {
    fn evaluate(&self, columns: &Columns, _rows: usize) -> Result<ArrayRef, String> {
        let left = columns[self.0].as_primitive::<Int64Type>().values();
        let right = columns[self.1].as_primitive::<Int64Type>().values();
        Ok(Arc::new(left.iter().zip(right).map(|(left, right)| Some(left != right)).collect::<BooleanArray>()))
    }
}

/// SQL's `NOT IN` for a row without a match: true over nothing; else unknown if a NULL is on either
/// side.
struct NotIn {
    key: usize,
    is_empty: usize,
    has_null: usize,
}

impl Expression for NotIn {
    fn evaluate(&self, columns: &Columns, rows: usize) -> Result<ArrayRef, String> {
        let key = &columns[self.key];
        let (is_empty, has_null) = (columns[self.is_empty].as_boolean(), columns[self.has_null].as_boolean());
        let passes = |row| is_empty.value(row) || (key.is_valid(row) && !has_null.value(row));
        Ok(Arc::new((0..rows).map(|row| Some(passes(row))).collect::<BooleanArray>()))
    }
}
