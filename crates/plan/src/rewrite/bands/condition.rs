//! The band that a join's condition holds two columns in.
//!
//! Law: where the condition is true, `low <= left - right <= high`, in ticks: units of the columns'
//! type. (Conditions that are strict are taken as if they were not: the band is a little wider.)

use datafusion_common::{DFSchema, ScalarValue};
use datafusion_expr::utils::split_conjunction;
use datafusion_expr::{BinaryExpr, Expr, ExprSchemable, Operator};

use crate::bounds::conditions::{comparisons, shifted, side_of, unqualified, whole};
use crate::ir::Plan;
use crate::rewrite::selectivity::cannot_fail;
use arrow::datatypes::{DataType, TimeUnit};

/// Two values, one of each side, that are near each other.
#[derive(Debug)]
pub(super) struct Band {
    /// Over the left columns.
    pub left: Expr,
    /// Over the right columns.
    pub right: Expr,
    /// `left - right` is at least this,
    pub low: i64,
    /// and at most this.
    pub high: i64,
}

/// A band that is open at one end, or at none.
struct Half {
    left: Expr,
    right: Expr,
    low: Option<i64>,
    high: Option<i64>,
}

/// A value of a side, without a constant that was added to it.
struct Shifted {
    side: usize,
    value: Expr,
    ticks: i64,
}

impl Band {
    /// The band of a join's condition; the first, if there are several.
    pub fn of(condition: &Expr, left: &Plan, right: &Plan) -> Option<Band> {
        let sides = [left.schema.as_ref(), right.schema.as_ref()];
        let mut halves: Vec<Half> = Vec::new();
        for condition in split_conjunction(condition) {
            for (greater, less) in comparisons(condition) {
                let Some(half) = half_of(greater, less, &sides) else { continue };
                match halves.iter_mut().find(|known| known.left == half.left && known.right == half.right) {
                    Some(known) => known.narrow(&half),
                    None => halves.push(half),
                }
            }
        }
        halves.into_iter().find_map(|Half { left, right, low, high }| {
            let band = Band { left, right, low: low?, high: high? };
            (band.low <= band.high).then_some(band)
        })
    }

    /// How far apart the ends are.
    pub fn width(&self) -> Option<i64> {
        self.high.checked_sub(self.low)
    }
}

impl Half {
    fn narrow(&mut self, other: &Half) {
        self.low = self.low.max(other.low);
        self.high = match (self.high, other.high) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
    }

    /// `first - second` is at least `least`, and at most `most`.
    fn of(first: Shifted, second: Shifted, least: Option<i64>, most: Option<i64>) -> Option<Half> {
        if first.side == second.side {
            return None;
        }
        let moved = second.ticks.checked_sub(first.ticks)?;
        let by = |limit: Option<i64>| limit.map_or(Some(None), |limit| limit.checked_add(moved).map(Some));
        let (least, most) = (by(least)?, by(most)?);
        let turned = |limit: Option<i64>| limit.map_or(Some(None), |limit| limit.checked_neg().map(Some));
        Some(match first.side {
            0 => Half { left: first.value, right: second.value, low: least, high: most },
            _ => Half { left: second.value, right: first.value, low: turned(most)?, high: turned(least)? },
        })
    }
}

/// What `greater >= less` says of two values.
fn half_of(greater: &Expr, less: &Expr, sides: &[&DFSchema; 2]) -> Option<Half> {
    match (greater, less) {
        (difference, Expr::Literal(least, _)) => {
            let difference = Difference::of(difference, sides)?;
            let least = difference.ticks(least, Rounded::Up)?;
            Half::of(difference.first, difference.second, Some(least), None)
        }
        (Expr::Literal(most, _), Expr::ScalarFunction(call)) if call.func.name() == "abs" => {
            let difference = Difference::of(call.args.first()?, sides)?;
            let most = difference.ticks(most, Rounded::Down)?;
            Half::of(difference.first, difference.second, Some(most.checked_neg()?), Some(most))
        }
        (Expr::Literal(most, _), difference) => {
            let difference = Difference::of(difference, sides)?;
            let most = difference.ticks(most, Rounded::Down)?;
            Half::of(difference.first, difference.second, None, Some(most))
        }
        (greater, less) => {
            let (greater, less) = (Shifted::of(greater, sides)?, Shifted::of(less, sides)?);
            let type_of = |shifted: &Shifted| shifted.value.get_type(sides[shifted.side]).ok();
            let is_alike = greater.side != less.side && type_of(&greater) == type_of(&less);
            Half::of(greater, less, Some(0), None).filter(|_| is_alike)
        }
    }
}

impl Shifted {
    /// `None` for what is not of one side, may fail, or has no ticks.
    fn of(expr: &Expr, sides: &[&DFSchema; 2]) -> Option<Shifted> {
        let side = side_of(expr)?;
        let expr = unqualified(expr);
        let (value, ticks) = shifted(&expr, sides[side])?;
        let of = value.get_type(sides[side]).ok()?;
        let has_ticks = matches!(
            of,
            DataType::Int16 | DataType::Int32 | DataType::Int64 | DataType::Date32 | DataType::Timestamp(..)
        );
        (has_ticks && cannot_fail(value, sides[side])).then(|| Shifted { side, value: value.clone(), ticks })
    }
}

/// How a constant that lies between two ticks is rounded.
#[derive(Clone, Copy)]
enum Rounded {
    Up,
    Down,
}

/// A difference of two values, in ticks or in parts of one.
struct Difference {
    first: Shifted,
    second: Shifted,
    /// So many units of the difference are a tick.
    units_a_tick: i128,
}

impl Difference {
    fn of(expr: &Expr, sides: &[&DFSchema; 2]) -> Option<Difference> {
        let (first, second, units_a_tick) = match expr {
            Expr::BinaryExpr(BinaryExpr { left, op: Operator::Minus, right }) => (left.as_ref(), right.as_ref(), 1),
            Expr::ScalarFunction(call) => match (call.func.name(), &call.args[..]) {
                ("date_subtract", [first, second]) => (first, second, 1),
                // (Nanoseconds, of times in microseconds.)
                ("interval_length", [span]) => {
                    let Expr::ScalarFunction(span) = without_cast(span) else { return None };
                    let [first, second] = &span.args[..] else { return None };
                    if span.func.name() != "timestamp_difference" {
                        return None;
                    }
                    (first, second, 1000)
                }
                _ => return None,
            },
            _ => return None,
        };
        let (first, second) = (Shifted::of(first, sides)?, Shifted::of(second, sides)?);
        let of = first.value.get_type(sides[first.side]).ok()?;
        let is_alike = second.value.get_type(sides[second.side]).ok()? == of;
        let is_whole = of.is_integer() || of == DataType::Date32;
        let has_ticks =
            if units_a_tick == 1 { is_whole } else { matches!(of, DataType::Timestamp(TimeUnit::Microsecond, _)) };
        (is_alike && has_ticks).then_some(Difference { first, second, units_a_tick })
    }

    /// A constant that the difference is compared with, in ticks.
    fn ticks(&self, constant: &ScalarValue, rounded: Rounded) -> Option<i64> {
        let units = match constant {
            ScalarValue::Decimal128(Some(units), _, 0) => *units,
            constant => i128::from(whole(constant)?),
        };
        let down = units.div_euclid(self.units_a_tick);
        let is_between = units.rem_euclid(self.units_a_tick) != 0;
        i64::try_from(down + i128::from(is_between && matches!(rounded, Rounded::Up))).ok()
    }
}

fn without_cast(expr: &Expr) -> &Expr {
    match expr {
        Expr::Cast(cast) => without_cast(&cast.expr),
        expr => expr,
    }
}
