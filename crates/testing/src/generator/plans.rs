//! Random plans.
//!
//! [`Plans`] makes one step of a chosen family on top of given inputs, or whole plans of random
//! steps. All that it makes is well typed and fits the model and the engine alike.

use std::sync::Arc;

use anabranch_batch::numeric;
use anabranch_plan::asof::{AsofJoin, Strategy, is_instant};
use anabranch_plan::{AggregateCall, AggregateFunction, JoinKind, Nulls, Plan, RankedBy, SetOperation, SortKey, TopK};
use anabranch_spec::session::SessionWindows;
use arrow::datatypes::DataType;
use datafusion_expr::Expr;

use super::expressions::{Fallible, computation, lit, predicate};
use super::values::{Pool, present};
use crate::build::{Builder, JoinOn, Relation, call, col, types, width};
use crate::rng::Rng;

/// Makes random plans over some relations.
pub struct Plans<'a> {
    pub(super) relations: &'a [Relation],
    /// Whether expressions may fail on rows.
    pub(super) fallible: Fallible,
    pub(super) builder: Builder,
    /// The types of the variables of each loop around what is being made, the innermost last.
    pub(super) loops: Vec<Vec<Vec<DataType>>>,
}

/// All the ways to join.
pub const JOINS: [JoinKind; 8] = [
    JoinKind::Inner,
    JoinKind::Left,
    JoinKind::Right,
    JoinKind::Full,
    JoinKind::LeftSemi,
    JoinKind::LeftAnti,
    JoinKind::LeftAntiNullAware,
    JoinKind::LeftMark,
];

/// All the set operations.
pub const SET_OPERATIONS: [SetOperation; 4] =
    [SetOperation::ExceptAll, SetOperation::IntersectAll, SetOperation::Except, SetOperation::Intersect];

impl<'a> Plans<'a> {
    /// Plans over these relations.
    pub fn new(relations: &'a [Relation], fallible: Fallible) -> Plans<'a> {
        Plans { relations, fallible, builder: Builder::new(), loops: vec![] }
    }

    /// A whole plan, at most `depth` steps above the relations.
    pub fn plan(&mut self, rng: &mut Rng, depth: usize) -> Arc<Plan> {
        if depth == 0 {
            return self.scan(rng);
        }
        let input = self.plan(rng, depth - 1);
        match rng.below(14) {
            0..=2 => self.stage(rng, &input),
            3..=5 => {
                let other_depth = rng.below(depth);
                let other = self.plan(rng, other_depth);
                let kind = *rng.pick(&JOINS);
                self.join(rng, &input, &other, kind)
            }
            6..=7 => self.aggregate(rng, &input),
            8 => self.builder.distinct(&input),
            9 => self.top(rng, &input),
            10 => {
                let other = self.plan(rng, depth - 1);
                self.union(rng, &[input, other])
            }
            11 => self.session(rng, &input),
            12 => {
                let other = self.plan(rng, depth - 1);
                self.asof(rng, &input, &other)
            }
            _ => {
                let other = self.plan(rng, depth - 1);
                let operation = *rng.pick(&SET_OPERATIONS);
                self.set(rng, &input, &other, operation)
            }
        }
    }

    /// A relation, some of its columns; or, in a loop, perhaps a variable.
    pub fn scan(&mut self, rng: &mut Rng) -> Arc<Plan> {
        if !self.loops.is_empty() && rng.chance(50) {
            return self.variable(rng);
        }
        let relation = rng.pick(self.relations);
        let kept = relation.types.len() - rng.below(2);
        let mut columns = rng.subset(relation.types.len(), kept);
        if rng.chance(20) {
            rng.shuffle(&mut columns);
        }
        self.builder.scan_columns(relation, &columns)
    }

    /// A whole relation.
    pub fn relation(&mut self, index: usize) -> Arc<Plan> {
        self.builder.scan(&self.relations[index])
    }

    /// A filter and a projection.
    pub fn stage(&mut self, rng: &mut Rng, input: &Arc<Plan>) -> Arc<Plan> {
        let filters = rng.below(3);
        let filter = (0..filters).map(|_| predicate(rng, input, self.fallible)).collect();
        let columns = rng.between(1, 4);
        let project = (0..columns).map(|_| computation(rng, input, self.fallible)).collect();
        self.builder.stage(input, filter, project)
    }

    /// A join of the given kind; on no key at all if no types agree, against one row then.
    pub fn join(&mut self, rng: &mut Rng, left: &Arc<Plan>, right: &Arc<Plan>, kind: JoinKind) -> Arc<Plan> {
        let mut key = self.key(rng, left, right);
        let mut right = right.clone();
        // NOT IN compares exactly one column; without one it is a plain anti join.
        let kind = if kind == JoinKind::LeftAntiNullAware && key.is_empty() { JoinKind::LeftAnti } else { kind };
        if kind == JoinKind::LeftAntiNullAware {
            key.truncate(1);
        }
        if key.is_empty() {
            right = self.one_row(&right);
        }
        // `NOT IN` always compares something.
        let kind = if key.is_empty() && kind == JoinKind::LeftAntiNullAware { JoinKind::LeftAnti } else { kind };
        let mut on = JoinOn::new(kind, &key);
        if rng.chance(20) && kind != JoinKind::LeftAntiNullAware {
            on.nulls = Nulls::Equal;
        }
        if kind != JoinKind::LeftAntiNullAware && rng.chance(40) {
            on.residual = Some(self.residual(rng, left, &right));
        }
        let all = match kind {
            JoinKind::Inner | JoinKind::Left | JoinKind::Right | JoinKind::Full => width(left) + width(&right),
            JoinKind::LeftMark => width(left) + 1,
            _ => width(left),
        };
        let kept = (all - rng.below(2)).max(1);
        let mut output = rng.subset(all, kept);
        if rng.chance(20) {
            rng.shuffle(&mut output);
        }
        self.builder.join_output(left, &right, on, output)
    }

    /// An as-of join on whatever times and keys the sides have in common; without a time, all rows
    /// of the left side.
    pub fn asof(&mut self, rng: &mut Rng, left: &Arc<Plan>, right: &Arc<Plan>) -> Arc<Plan> {
        let times = |plan: &Plan| types(plan).into_iter().enumerate().filter(|(_, data_type)| is_instant(data_type));
        let (of_left, of_right): (Vec<_>, Vec<_>) = (times(left).collect(), times(right).collect());
        let pairs =
            of_left.iter().flat_map(|(l, a)| of_right.iter().filter(move |(_, b)| a == b).map(move |(r, _)| (*l, *r)));
        let pairs: Vec<(usize, usize)> = pairs.collect();
        if pairs.is_empty() {
            return left.clone();
        }
        let (left_time, right_time) = *rng.pick(&pairs);
        let mut key = self.key(rng, left, right);
        key.retain(|&(l, r)| l != left_time && r != right_time);
        key.truncate(rng.below(3));
        let (left_key, right_key) = key.into_iter().unzip();
        let asof = AsofJoin {
            left_key,
            right_key,
            nulls: if rng.chance(20) { Nulls::Equal } else { Nulls::Differ },
            left_time,
            right_time,
            strategy: *rng.pick(&[Strategy::Backward, Strategy::Forward, Strategy::Nearest]),
            exact: rng.chance(70),
            tolerance: rng.chance(40).then(|| rng.below(4) as u64),
            outer: rng.chance(50),
        };
        self.builder.asof(left, right, asof)
    }

    /// Sessions over whatever time and partition there is; without a time, all rows.
    pub fn session(&mut self, rng: &mut Rng, input: &Arc<Plan>) -> Arc<Plan> {
        let times = types(input).into_iter().enumerate().filter(|(_, data_type)| is_instant(data_type));
        let times: Vec<usize> = times.map(|(column, _)| column).collect();
        if times.is_empty() {
            return input.clone();
        }
        let time = *rng.pick(&times);
        let mut partition = self.group(rng, input);
        partition.retain(|column| *column != time);
        self.builder.session(input, SessionWindows { partition, time, gap: rng.below(5) as u64 })
    }

    /// The rows of `left` against the number and the maximum of `right`'s rows.
    pub fn against_one_row(&mut self, rng: &mut Rng, left: &Arc<Plan>, right: &Arc<Plan>, kind: JoinKind) -> Arc<Plan> {
        let scalar = self.one_row(right);
        let residual = Some(self.residual(rng, left, &scalar));
        self.builder.join(left, &scalar, JoinOn { residual, ..JoinOn::new(kind, &[]) })
    }

    /// Groups, and calls over them.
    pub fn aggregate(&mut self, rng: &mut Rng, input: &Arc<Plan>) -> Arc<Plan> {
        let (keys, wanted) = (self.group(rng, input), rng.between(1, 4));
        let calls = (0..wanted).map(|_| self.call(rng, input, &AGGREGATES)).collect();
        self.builder.aggregate(input, &keys, calls)
    }

    /// Groups, and calls of the given functions only.
    pub fn aggregate_with(&mut self, rng: &mut Rng, input: &Arc<Plan>, functions: &[AggregateFunction]) -> Arc<Plan> {
        let (keys, wanted) = (self.group(rng, input), rng.between(1, 3));
        let calls = (0..wanted).map(|_| self.call(rng, input, functions)).collect();
        self.builder.aggregate(input, &keys, calls)
    }

    /// Each row once.
    pub fn distinct(&mut self, input: &Arc<Plan>) -> Arc<Plan> {
        self.builder.distinct(input)
    }

    /// The first rows of groups.
    pub fn top(&mut self, rng: &mut Rng, input: &Arc<Plan>) -> Arc<Plan> {
        let group = if rng.chance(50) { vec![] } else { rng.subset(width(input), 1) };
        let order = self.order(rng, input);
        let offset = if rng.chance(70) { 0 } else { rng.below(3) };
        let limit = rng.chance(85).then(|| rng.below(4) + usize::from(rng.chance(90)));
        let numbered = rng.chance(30);
        let ranked = *rng.pick(&[RankedBy::Row, RankedBy::Row, RankedBy::Row, RankedBy::Rank, RankedBy::DenseRank]);
        let offset = if ranked == RankedBy::Row { offset } else { 0 };
        self.builder.top(input, TopK { group, order, ranked, offset, limit, numbered })
    }

    /// All rows of all inputs, brought to common types.
    pub fn union(&mut self, rng: &mut Rng, inputs: &[Arc<Plan>]) -> Arc<Plan> {
        let wanted = self.common_types(rng, &inputs[0]);
        let inputs = inputs.iter().map(|input| self.conform(rng, input, &wanted)).collect();
        self.builder.union(inputs)
    }

    /// A set operation on inputs brought to common types.
    pub fn set(&mut self, rng: &mut Rng, left: &Arc<Plan>, right: &Arc<Plan>, operation: SetOperation) -> Arc<Plan> {
        let wanted = self.common_types(rng, left);
        let (left, right) = (self.conform(rng, left, &wanted), self.conform(rng, right, &wanted));
        self.builder.set(operation, &left, &right)
    }

    /// Literal rows beside a relation's.
    pub fn constant(&mut self, rng: &mut Rng, types: &[DataType]) -> Arc<Plan> {
        let count = rng.below(4);
        let rows = (0..count).map(|_| super::values::row(rng, types, Pool::Small).values().cloned().collect());
        let rows = rows.collect();
        self.builder.constant(types, rows)
    }

    fn key(&mut self, rng: &mut Rng, left: &Plan, right: &Plan) -> Vec<(usize, usize)> {
        let (left, right) = (types(left), types(right));
        let mut pairs = Vec::new();
        for (i, left) in left.iter().enumerate().filter(|(_, data_type)| is_simple(data_type)) {
            pairs.extend(right.iter().enumerate().filter(|(_, right)| *right == left).map(|(j, _)| (i, j)));
        }
        rng.shuffle(&mut pairs);
        let mut key: Vec<(usize, usize)> = Vec::new();
        for (i, j) in pairs {
            if key.len() < 2 && key.iter().all(|&(a, b)| a != i && b != j) {
                key.push((i, j));
            }
        }
        key.truncate(rng.between(1, 2) as usize);
        key
    }

    fn one_row(&mut self, input: &Arc<Plan>) -> Arc<Plan> {
        let count = call(AggregateFunction::Count, input, None);
        let calls = std::iter::once(count).chain(input_maximum(input)).collect();
        self.builder.aggregate(input, &[], calls)
    }

    fn residual(&mut self, rng: &mut Rng, left: &Arc<Plan>, right: &Arc<Plan>) -> Expr {
        let schema = left.schema.join(&right.schema).expect("names are unique in both inputs together");
        let both = Plan { node: left.node.clone(), schema: Arc::new(schema) };
        predicate(rng, &both, self.fallible)
    }

    fn group(&mut self, rng: &mut Rng, input: &Arc<Plan>) -> Vec<usize> {
        let simple: Vec<usize> = simple_columns(input);
        let wanted = rng.below(3).min(simple.len());
        rng.subset(simple.len(), wanted).into_iter().map(|i| simple[i]).collect()
    }

    pub(super) fn call(&mut self, rng: &mut Rng, input: &Arc<Plan>, functions: &[AggregateFunction]) -> AggregateCall {
        let mut possible = Vec::new();
        for function in functions {
            for (column, data_type) in types(input).iter().enumerate() {
                if accepts(function, data_type) {
                    possible.push((function.clone(), column));
                }
            }
        }
        if possible.is_empty() || rng.chance(10) {
            return call(AggregateFunction::Count, input, None);
        }
        let (function, column) = rng.pick(&possible).clone();
        let mut call = call(function, input, Some(column));
        let flags: Vec<usize> = (0..width(input)).filter(|&c| types(input)[c] == DataType::Boolean).collect();
        if !flags.is_empty() && rng.chance(30) {
            call.filter = Some(*rng.pick(&flags));
        }
        call.distinct = rng.chance(25);
        if is_ordered(&call.function) && !call.distinct {
            call.order = self.order(rng, input);
        }
        call
    }

    fn order(&mut self, rng: &mut Rng, input: &Arc<Plan>) -> Vec<SortKey> {
        let simple = simple_columns(input);
        let wanted = rng.below(3).min(simple.len());
        let columns = rng.subset(simple.len(), wanted);
        let key = |i: usize| {
            let (descending, nulls_first) = (rng.chance(50), rng.chance(50));
            SortKey { column: simple[i], descending, nulls_first }
        };
        columns.into_iter().map(key).collect()
    }

    fn common_types(&mut self, rng: &mut Rng, plan: &Plan) -> Vec<DataType> {
        let simple: Vec<DataType> = types(plan).into_iter().filter(is_simple).collect();
        if simple.is_empty() {
            return vec![DataType::Int64];
        }
        let count = rng.between(1, 2);
        (0..count).map(|_| rng.pick(&simple).clone()).collect()
    }

    /// A projection to the wanted types, with literals where the plan has no such column.
    pub(super) fn conform(&mut self, rng: &mut Rng, plan: &Arc<Plan>, wanted: &[DataType]) -> Arc<Plan> {
        let have = types(plan);
        let mut column = |data_type: &DataType| {
            let fitting: Vec<usize> = (0..have.len()).filter(|&i| have[i] == *data_type).collect();
            match fitting.is_empty() {
                true => lit(present(rng, data_type, Pool::Small)),
                false => col(plan, *rng.pick(&fitting)),
            }
        };
        let project = wanted.iter().map(&mut column).collect();
        self.builder.stage(plan, vec![], project)
    }
}

/// The aggregates whose results do not depend on how they are computed.
pub const AGGREGATES: [AggregateFunction; 16] = [
    AggregateFunction::Count,
    AggregateFunction::Sum,
    AggregateFunction::Avg,
    AggregateFunction::Min,
    AggregateFunction::Max,
    AggregateFunction::BoolAnd,
    AggregateFunction::BoolOr,
    AggregateFunction::BitAnd,
    AggregateFunction::BitOr,
    AggregateFunction::BitXor,
    AggregateFunction::StringAgg(String::new()),
    AggregateFunction::ArrayAgg,
    AggregateFunction::FirstValue,
    AggregateFunction::LastValue,
    AggregateFunction::Median,
    AggregateFunction::Mode,
];

/// The aggregates that are right up to rounding.
pub const STATISTICS: [AggregateFunction; 4] = [
    AggregateFunction::VarianceSample,
    AggregateFunction::VariancePopulation,
    AggregateFunction::StddevSample,
    AggregateFunction::StddevPopulation,
];

fn accepts(function: &AggregateFunction, data_type: &DataType) -> bool {
    use AggregateFunction as F;
    let simple = is_simple(data_type);
    let whole = matches!(data_type, DataType::Int64 | DataType::Int32);
    let decimal = matches!(data_type, DataType::Decimal128(precision, _) if *precision <= 24);
    let float = *data_type == DataType::Float64;
    match function {
        F::Count => true,
        F::Sum | F::Avg => whole || decimal || float || *data_type == numeric::TYPE,
        F::Min | F::Max | F::Mode | F::FirstValue | F::LastValue | F::ArrayAgg => simple,
        F::BoolAnd | F::BoolOr => *data_type == DataType::Boolean,
        F::BitAnd | F::BitOr | F::BitXor => whole,
        F::StringAgg(_) => *data_type == DataType::Utf8View,
        F::Median => float,
        F::PercentileCont(_) | F::PercentileDisc(_) | F::TopK(_) | F::Custom(..) => false,
        F::VarianceSample | F::VariancePopulation | F::StddevSample | F::StddevPopulation => float,
    }
}

fn is_ordered(function: &AggregateFunction) -> bool {
    use AggregateFunction as F;
    matches!(function, F::StringAgg(_) | F::ArrayAgg | F::FirstValue | F::LastValue)
}

/// Types that may be keys, orders and arguments.
pub(super) fn is_simple(data_type: &DataType) -> bool {
    !matches!(data_type, DataType::List(_) | DataType::UInt64)
}

fn simple_columns(plan: &Plan) -> Vec<usize> {
    let types = types(plan);
    (0..types.len()).filter(|&column| is_simple(&types[column])).collect()
}

fn input_maximum(input: &Arc<Plan>) -> Option<AggregateCall> {
    let column = *simple_columns(input).first()?;
    Some(call(AggregateFunction::Max, input, Some(column)))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::generator::history::{History, Size, relations};
    use crate::model::evaluate;
    use crate::rng::cases;

    #[test]
    fn the_model_answers_random_plans_and_often_with_rows() {
        let (answered, failed, all) = (Cell::new(0), Cell::new(0), Cell::new(0));
        cases("the_model_answers_random_plans_and_often_with_rows", 200, |rng| {
            let relations = relations(rng, 3);
            let history = History::random(rng, &relations, Size::SMALL);
            let depth = rng.below(4);
            let plan = Plans::new(&relations, Fallible::Sometimes).plan(rng, depth);
            let answer = evaluate(&plan, &history.contents_at(i64::MAX));
            for (row, count) in answer.rows.iter() {
                assert!(count > 0);
                assert_eq!(row.width(), width(&plan));
            }
            all.set(all.get() + 1);
            answered.set(answered.get() + usize::from(answer.rows.len() > 1));
            failed.set(failed.get() + usize::from(!answer.errors.is_empty()));
        });
        let (answered, failed, all) = (answered.get(), failed.get(), all.get());
        assert!(answered * 2 > all || all < 200, "{answered} of {all} random plans have more than one row");
        assert!((1..all / 3).contains(&failed) || all < 200, "{failed} of {all} random plans have row errors");
    }
}
