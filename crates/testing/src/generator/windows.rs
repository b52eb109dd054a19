//! Random window functions.

use std::sync::Arc;

use anabranch_plan::{AggregateFunction, Plan, SortKey};
use anabranch_plan::{Place, Window, WindowCall, WindowFunction};
use anabranch_spec::frame::{Exclude, FrameBound, WindowFrame};
use arrow::datatypes::DataType;
use datafusion_common::ScalarValue;
use datafusion_expr::{Expr, cast};

use super::plans::{Plans, is_simple};
use crate::build::{col, types, width};
use crate::rng::Rng;

impl Plans<'_> {
    /// Random functions over random frames of some rows, half of the time with bounds by values of
    /// whole numbers.
    pub fn window(&mut self, rng: &mut Rng, input: &Arc<Plan>) -> Arc<Plan> {
        let simple: Vec<usize> = (0..width(input)).filter(|&column| is_simple(&types(input)[column])).collect();
        if simple.is_empty() {
            return input.clone();
        }
        let n_keys = rng.below(2);
        let partition: Vec<usize> = rng.subset(simple.len(), n_keys).into_iter().map(|i| simple[i]).collect();
        let n_order = rng.between(1, 2) as usize;
        let key = |rng: &mut Rng| SortKey {
            column: *rng.pick(&simple),
            descending: rng.chance(40),
            nulls_first: rng.chance(50),
        };
        let mut order: Vec<SortKey> = (0..n_order).map(|_| key(rng)).collect();
        let (input, keys) = match types(input)[order[0].column] {
            DataType::Int32 => {
                order.truncate(1);
                self.with_bounds(rng, input, &mut order[0])
            }
            _ => (input.clone(), None),
        };
        let calls = (0..rng.between(1, 3)).map(|_| self.window_call(rng, &input, keys)).collect();
        self.builder.window(&input, Window { partition, order, calls })
    }

    /// Rows with the order's key as a wide number, and two bounds around the key.
    fn with_bounds(
        &mut self,
        rng: &mut Rng,
        input: &Arc<Plan>,
        key: &mut SortKey,
    ) -> (Arc<Plan>, Option<(usize, usize)>) {
        let wide = || cast(col(input, key.column), DataType::Int64);
        let number = |n: i64| Expr::Literal(ScalarValue::Int64(Some(n)), None);
        let n = width(input);
        let mut columns: Vec<Expr> = (0..n).map(|column| col(input, column)).collect();
        let (start, end) = (rng.between(-3, 2), rng.between(-2, 3));
        let sign = if key.descending { -1 } else { 1 };
        columns.extend([wide(), wide() + number(sign * start), wide() + number(sign * end)]);
        key.column = n;
        (self.builder.stage(input, vec![], columns), Some((n + 1, n + 2)))
    }

    fn window_call(&mut self, rng: &mut Rng, input: &Arc<Plan>, keys: Option<(usize, usize)>) -> WindowCall {
        use AggregateFunction::{ArrayAgg, Avg, BoolAnd, Count, Max, Min, Sum};
        let function = match rng.below(8) {
            0 => WindowFunction::PercentRank,
            1 => WindowFunction::CumeDist,
            2 | 3 => {
                let place = *rng.pick(&[Place::First, Place::Last, Place::Nth(1), Place::Nth(2), Place::Nth(3)]);
                WindowFunction::Value { column: rng.below(width(input)), place }
            }
            _ => {
                let mut call = self.call(rng, input, &[Count, Sum, Avg, Min, Max, BoolAnd, ArrayAgg]);
                call.order.clear();
                WindowFunction::Aggregate(call)
            }
        };
        WindowCall { function, frame: frame(rng, keys) }
    }
}

fn frame(rng: &mut Rng, keys: Option<(usize, usize)>) -> WindowFrame {
    let bound = |rng: &mut Rng| match rng.below(4) {
        0 => FrameBound::Rows(rng.between(-3, 3)),
        1 => FrameBound::Peers(rng.between(-2, 2)),
        _ => FrameBound::Peers(0),
    };
    let start = match keys {
        _ if rng.chance(40) => FrameBound::First,
        Some((start, _)) if rng.chance(60) => FrameBound::Key(start),
        _ => bound(rng),
    };
    let end = match keys {
        _ if rng.chance(20) => FrameBound::Last,
        Some((_, end)) if rng.chance(60) => FrameBound::Key(end),
        _ => bound(rng),
    };
    let exclude = match rng.below(6) {
        0 => Exclude::Row,
        1 => Exclude::Peers,
        2 => Exclude::Ties,
        _ => Exclude::Nothing,
    };
    WindowFrame { start, end, exclude }
}
