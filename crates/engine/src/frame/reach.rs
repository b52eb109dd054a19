//! How far back a new start may lie, read off its expression.
//!
//! A verb that moves starts back holds its frontier back by as much, so the distance must be known
//! before any row comes. It is known of expressions that move [`start`](super::start) by constants,
//! remainders of constants, and rounding to multiples:
//!
//! ```text
//!     start() - 5                  5 ticks back at most
//!     start() - start() % 10       9
//!     start() / 10 * 10            9
//!     start() - x                  not known
//! ```
//!
//! Law: where a distance is given, no value of the expression lies further before `start()`.

use datafusion_common::ScalarValue;
use datafusion_expr::{BinaryExpr, Expr, Operator};

use super::expression::START;

/// How many ticks the value of an expression may lie before `start()`; `None` where that is not
/// known.
pub(super) fn back(expr: &Expr) -> Option<i64> {
    match range(expr)? {
        Range::FromStart(least, _) => i64::try_from((-least).max(0)).ok(),
        _ => None,
    }
}

/// Where the values of an expression lie, both bounds included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Range {
    /// Between two numbers.
    Number(i128, i128),
    /// Between two distances from the start, after which they are positive.
    FromStart(i128, i128),
    /// So many parts of a value that lies between two distances from the start.
    Quotient(i128, i128, i128),
}

use Range::{FromStart, Number, Quotient};

impl Range {
    /// Whether bounds are small enough that sums of some of them fit.
    fn is_small(self) -> bool {
        let (Number(least, most) | FromStart(least, most) | Quotient(_, least, most)) = self;
        least.abs().max(most.abs()) < 1 << 64
    }
}

fn range(expr: &Expr) -> Option<Range> {
    match expr {
        Expr::Column(column) if column.name == START => Some(FromStart(0, 0)),
        Expr::Literal(value, _) => number(value).map(|value| Number(value, value)),
        Expr::Cast(cast) if cast.field.data_type().is_integer() => range(&cast.expr),
        Expr::Alias(alias) => range(&alias.expr),
        Expr::Negative(inner) => match range(inner)? {
            Number(least, most) => Some(Number(-most, -least)),
            _ => None,
        },
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            computed(*op, range(left)?, range(right)?).filter(|range| range.is_small())
        }
        Expr::Case(case) if case.expr.is_none() => {
            let branches = case.when_then_expr.iter().map(|(_, branch)| branch).chain(&case.else_expr);
            branches.map(|branch| range(branch)).reduce(|one, other| either(one?, other?)).flatten()
        }
        _ => None,
    }
}

fn number(value: &ScalarValue) -> Option<i128> {
    match value {
        ScalarValue::Int64(Some(value)) => Some(i128::from(*value)),
        ScalarValue::Int32(Some(value)) => Some(i128::from(*value)),
        ScalarValue::Int16(Some(value)) => Some(i128::from(*value)),
        ScalarValue::Int8(Some(value)) => Some(i128::from(*value)),
        _ => None,
    }
}

fn computed(op: Operator, left: Range, right: Range) -> Option<Range> {
    match (op, left, right) {
        (Operator::Plus, Number(a, b), Number(c, d)) => Some(Number(a + c, b + d)),
        (Operator::Plus, FromStart(a, b), Number(c, d)) | (Operator::Plus, Number(c, d), FromStart(a, b)) => {
            Some(FromStart(a + c, b + d))
        }
        (Operator::Minus, Number(a, b), Number(c, d)) => Some(Number(a - d, b - c)),
        (Operator::Minus, FromStart(a, b), Number(c, d)) => Some(FromStart(a - d, b - c)),
        (Operator::Minus, FromStart(a, b), FromStart(c, d)) => Some(Number(a - d, b - c)),
        // The sign of a remainder is that of what was divided.
        (Operator::Modulo, _, Number(by, same)) if by == same && by != 0 => Some(Number(1 - by.abs(), by.abs() - 1)),
        (Operator::Divide, FromStart(a, b), Number(by, same)) if by == same && by > 0 => Some(Quotient(by, a, b)),
        // Division drops less than one part, towards zero: up or down.
        (Operator::Multiply, Quotient(by, a, b), Number(c, d))
        | (Operator::Multiply, Number(c, d), Quotient(by, a, b))
            if c == d && c == by =>
        {
            Some(FromStart(a - by + 1, b + by - 1))
        }
        // (Parts more or less are as many ticks times the part.)
        (Operator::Plus, Quotient(by, a, b), Number(c, d)) | (Operator::Plus, Number(c, d), Quotient(by, a, b)) => {
            Some(Quotient(by, a.checked_add(c.checked_mul(by)?)?, b.checked_add(d.checked_mul(by)?)?))
        }
        (Operator::Minus, Quotient(by, a, b), Number(c, d)) => {
            Some(Quotient(by, a.checked_sub(d.checked_mul(by)?)?, b.checked_sub(c.checked_mul(by)?)?))
        }
        _ => None,
    }
}

/// The values of one or the other.
fn either(one: Range, other: Range) -> Option<Range> {
    match (one, other) {
        (Number(a, b), Number(c, d)) => Some(Number(a.min(c), b.max(d))),
        (FromStart(a, b), FromStart(c, d)) => Some(FromStart(a.min(c), b.max(d))),
        (Quotient(by, a, b), Quotient(same, c, d)) if by == same => Some(Quotient(by, a.min(c), b.max(d))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::expression::{col, floor_div, start};
    use super::*;
    use datafusion_expr::{lit, when};

    #[test]
    fn distances_are_read_off_expressions() {
        let floor = start() - (start() % lit(10) + lit(10)) % lit(10);
        let chosen = when(col("x").gt(lit(0)), start() - lit(3)).otherwise(start() + lit(3)).expect("an expression");
        let cases = [
            (start(), Some(0)),
            (start() + lit(5), Some(0)),
            (start() - lit(5), Some(5)),
            (lit(-5) + start(), Some(5)),
            (start() - start() % lit(10), Some(9)),
            (floor, Some(9)),
            (start() / lit(10) * lit(10), Some(9)),
            ((start() / lit(10) - lit(1)) * lit(10), Some(19)),
            (floor_div(start(), lit(10)) * lit(10), Some(18)),
            (chosen, Some(3)),
            (start() - col("x"), None),
            (start() * lit(2), None),
            (start() / lit(10) * lit(9), None),
            (lit(7), None),
            (start() - lit(i64::MAX) - lit(i64::MAX), None),
        ];
        for (expr, expected) in cases {
            assert_eq!(back(&expr), expected, "{expr}");
        }
    }
}
