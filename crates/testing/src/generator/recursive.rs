//! Random loops.
//!
//! A loop of any operators has a limit, since negation and arithmetic may go on for ever. A
//! *monotone* loop has none: it joins, filters and unites sets of values that are there, so it
//! ends.

use std::num::NonZeroU64;
use std::sync::Arc;

use anabranch_plan::{JoinKind, Plan, RoundLimit};
use arrow::datatypes::DataType;

use super::expressions::{Fallible, predicate};
use super::plans::Plans;
use crate::build::types;
use crate::rng::Rng;

impl Plans<'_> {
    /// A loop over plans of at most `depth` steps, some of which may be loops.
    pub fn recursive(&mut self, rng: &mut Rng, depth: usize) -> Arc<Plan> {
        self.enter_loop(rng);
        let variables = self.loops.last().expect("it was just entered").clone();
        let bindings = variables.iter().map(|types| self.binding(rng, depth, types)).collect();
        let result =
            if rng.chance(60) { self.variable_of(0, rng.below(variables.len())) } else { self.plan(rng, depth) };
        self.loops.pop();
        let rounds = NonZeroU64::new(rng.between(1, 6) as u64).expect("it is one at least");
        let limit = if rng.chance(70) { RoundLimit::Return(rounds) } else { RoundLimit::Error(rounds) };
        self.builder.recursive(bindings, &result, limit)
    }

    /// A loop with a loop in each of its variables, which may read the outer variables. Outer
    /// rounds may be more than an engine keeps inner loops for.
    pub fn two_deep(&mut self, rng: &mut Rng) -> Arc<Plan> {
        self.enter_loop(rng);
        let variables = self.loops.last().expect("it was just entered").clone();
        let mut bindings = Vec::new();
        for types in &variables {
            let (inner, scan) = (self.recursive(rng, 1), self.scan(rng));
            let parts = vec![self.conform(rng, &inner, types), self.conform(rng, &scan, types)];
            let rows = self.builder.union(parts);
            bindings.push(self.builder.distinct(&rows));
        }
        let result = self.variable_of(0, rng.below(variables.len()));
        self.loops.pop();
        let rounds = NonZeroU64::new(rng.between(2, 20) as u64).expect("it is two at least");
        self.builder.recursive(bindings, &result, RoundLimit::Return(rounds))
    }

    /// A loop of sets that ends by itself.
    pub fn monotone(&mut self, rng: &mut Rng) -> Arc<Plan> {
        self.enter_loop(rng);
        let variables = self.loops.last().expect("it was just entered").clone();
        let bindings = variables.iter().map(|types| self.monotone_binding(rng, types)).collect();
        let result = self.variable_of(0, rng.below(variables.len()));
        self.loops.pop();
        self.builder.recursive(bindings, &result, RoundLimit::None)
    }

    /// One or two variables, of columns that all relations have.
    fn enter_loop(&mut self, rng: &mut Rng) {
        let common = |data_type: &&DataType| !matches!(data_type, DataType::Float64 | DataType::Float32);
        let mut common: Vec<DataType> = self.relations[0].types[..2].iter().filter(common).cloned().collect();
        if common.is_empty() {
            common.push(DataType::Int64);
        }
        let n_variables = rng.between(1, 2);
        let mut variable = || {
            let n_columns = rng.between(1, 2) as usize;
            (0..n_columns).map(|column| common[column % common.len()].clone()).collect::<Vec<DataType>>()
        };
        let variables = (0..n_variables).map(|_| variable()).collect();
        self.loops.push(variables);
    }

    fn binding(&mut self, rng: &mut Rng, depth: usize, types: &[DataType]) -> Arc<Plan> {
        let mut parts = Vec::new();
        for _ in 0..rng.between(1, 2) {
            let part = match self.loops.len() < 2 && rng.chance(15) {
                true => self.recursive(rng, 1),
                false => self.plan(rng, depth),
            };
            parts.push(self.conform(rng, &part, types));
        }
        if rng.chance(50) {
            let scan = self.scan(rng);
            parts.push(self.conform(rng, &scan, types));
        }
        let rows = if parts.len() == 1 { parts.remove(0) } else { self.builder.union(parts) };
        self.builder.distinct(&rows)
    }

    fn monotone_binding(&mut self, rng: &mut Rng, wanted: &[DataType]) -> Arc<Plan> {
        let mut parts = Vec::new();
        for _ in 0..rng.between(1, 2) {
            let (mut left, right) = (self.scan(rng), self.scan(rng));
            if rng.chance(30) {
                let condition = predicate(rng, &left, Fallible::Never);
                left = self.builder.filter(&left, vec![condition]);
            }
            let part = if rng.chance(75) { self.join(rng, &left, &right, JoinKind::Inner) } else { left };
            parts.push(self.conform(rng, &part, wanted));
        }
        let start = rng.below(self.relations.len());
        let start = self.relation(start);
        parts.push(self.conform(rng, &start, wanted));
        let rows = self.builder.union(parts);
        self.builder.distinct(&rows)
    }

    /// A variable of some loop around.
    pub(super) fn variable(&mut self, rng: &mut Rng) -> Arc<Plan> {
        let depth = rng.below(self.loops.len());
        let index = rng.below(self.loops[self.loops.len() - 1 - depth].len());
        self.variable_of(depth, index)
    }

    fn variable_of(&mut self, depth: usize, index: usize) -> Arc<Plan> {
        let types = self.loops[self.loops.len() - 1 - depth][index].clone();
        let variable = self.builder.variable(depth, index, &types);
        debug_assert_eq!(self::types(&variable), types);
        variable
    }
}
