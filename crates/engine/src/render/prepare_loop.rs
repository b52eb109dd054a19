//! Loops as steps: what is evaluated in each round, and what enters from outside.
//!
//! Law: a part of a loop that depends on no variable of it is computed outside, once, as the same
//! part of any other query: it is shared, it reads indexes. Where a join inside wants such a part
//! by a key, an arrangement that exists enters the loop as it is; where there is none, the rows
//! enter and are arranged inside.

use std::collections::HashMap;
use std::sync::Arc;

use anabranch_operators::recursive::ROUNDS_MAX;
use anabranch_plan::variables::{lifted, result_outside};
use anabranch_plan::{Binding, Plan, Recursive, RoundLimit};
use arrow::datatypes::DataType;

use super::physical::{Body, Step, StepId};
use super::prepare::{ArrangedSide, Preparer, PreparerFrame};
use super::specs::types_of;
use crate::error::Error;

/// What a loop has beside its steps.
#[derive(Default)]
pub(super) struct Entries {
    /// The steps outside that enter as streams, with the types of their columns.
    streams: Vec<(StepId, Vec<DataType>)>,
    /// Those that enter as arrangements.
    arranged: Vec<StepId>,
    /// The steps inside for both, by those outside.
    inside: HashMap<StepId, StepId>,
    /// The steps of variables as of the round before.
    variables: HashMap<usize, StepId>,
    /// The steps that define the variables before the present one.
    bound: Vec<StepId>,
}

impl Preparer<'_> {
    /// A loop.
    pub(super) fn recursive(&mut self, recursive: &Recursive) -> Result<StepId, Error> {
        if let Some(plan) = result_outside(recursive) {
            return self.stream(&plan);
        }
        self.frames.push(PreparerFrame::default());
        let prepared = self.body(recursive);
        let frame = self.frames.pop().expect("it was just pushed");
        let (bindings, result) = prepared?;
        let body = Body { steps: frame.steps, bindings, result, limit: checked_limit(recursive.limit)? };
        let (inputs, types) = frame.entries.streams.into_iter().unzip();
        Ok(self.push(Step::Recursive { inputs, types, arranged: frame.entries.arranged, body: Arc::new(body) }))
    }

    fn body(&mut self, recursive: &Recursive) -> Result<(Vec<StepId>, StepId), Error> {
        for Binding { plan, .. } in &recursive.bindings {
            let step = self.stream(plan)?;
            // (From here on the variable is the one of this round.)
            let frame = self.frame();
            frame.entries.bound.push(step);
            frame.streams.clear();
        }
        let result = self.stream(&recursive.result)?;
        Ok((self.frame().entries.bound.clone(), result))
    }

    /// A variable of the innermost loop.
    pub(super) fn variable(&mut self, binding: usize) -> Result<StepId, Error> {
        if self.n_loops() == 0 {
            return Err(Error::internal("a variable stands outside of its loop"));
        }
        let entries = &self.frame().entries;
        if let Some(step) = entries.bound.get(binding).or_else(|| entries.variables.get(&binding)) {
            return Ok(*step);
        }
        let step = self.push(Step::Variable { binding });
        self.frame().entries.variables.insert(binding, step);
        Ok(step)
    }

    /// What stands outside of the innermost loop.
    fn outside<T>(&mut self, prepare: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        let frame = self.frames.pop().expect("a loop has a frame");
        let prepared = prepare(self);
        self.frames.push(frame);
        prepared
    }

    /// The step inside of the innermost loop for the rows of a plan outside.
    pub(super) fn entered(&mut self, plan: &Arc<Plan>) -> Result<StepId, Error> {
        let outside = self.outside(|preparer| preparer.stream(plan))?;
        if let Some(step) = self.frame().entries.inside.get(&outside) {
            return Ok(*step);
        }
        let input = self.frame().entries.streams.len();
        let step = self.push(Step::Enter { input });
        let entries = &mut self.frame().entries;
        entries.streams.push((outside, types_of(&plan.schema)));
        entries.inside.insert(outside, step);
        Ok(step)
    }

    /// As [`Preparer::arranged`], in a loop.
    pub(super) fn arranged_in_loop(&mut self, plan: &Arc<Plan>, key: &[usize]) -> Result<ArrangedSide, Error> {
        let outside = match lifted(plan).filter(|_| self.n_loops() == 1) {
            Some(plan) => self.outside(|preparer| preparer.existing_arranged(&plan, key))?,
            None => None,
        };
        if let Some(ArrangedSide { step, columns }) = outside {
            return Ok(ArrangedSide { step: self.entered_arranged(step), columns });
        }
        let stream = self.stream(plan)?;
        let step = self.arrange_step(stream, key, &types_of(&plan.schema));
        Ok(ArrangedSide { step, columns: (0..plan.schema.fields().len()).collect() })
    }

    fn entered_arranged(&mut self, outside: StepId) -> StepId {
        if let Some(step) = self.frame().entries.inside.get(&outside) {
            return *step;
        }
        let input = self.frame().entries.arranged.len();
        let step = self.push(Step::EnterArranged { input });
        let entries = &mut self.frame().entries;
        entries.arranged.push(outside);
        entries.inside.insert(outside, step);
        step
    }
}

fn checked_limit(limit: RoundLimit) -> Result<RoundLimit, Error> {
    match limit.rounds_max() {
        Some(rounds) if rounds > ROUNDS_MAX => {
            Err(Error::invalid(format!("a recursion limit of {rounds} rounds is too large"))
                .with_hint(format!("the greatest limit is {ROUNDS_MAX}.")))
        }
        _ => Ok(limit),
    }
}
