//! Constant distances in time: intervals without months, or whole numbers for columns that are
//! numbers.

use datafusion_expr::sqlparser::ast::{self, Expr};

use crate::time::calendar::MICROS_A_DAY;
use crate::time::interval::Qualifier;
use crate::time::interval_input::read_interval;

const NANOS_A_MICRO: i64 = 1000;

/// A constant distance.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Span {
    /// Nanoseconds, of whole microseconds.
    Interval(i64),
    /// Units of a numeric column.
    Ticks(i64),
}

impl Span {
    /// The distance that an expression is; `None` when it is no constant, or has months.
    pub fn read(expr: &Expr) -> Option<Span> {
        match expr {
            Expr::Value(value) => match &value.value {
                ast::Value::Number(digits, _) => digits.to_string().parse().ok().map(Span::Ticks),
                _ => None,
            },
            Expr::UnaryOp { op: ast::UnaryOperator::Minus, expr } => Some(match Span::read(expr)? {
                Span::Ticks(ticks) => Span::Ticks(-ticks),
                Span::Interval(nanos) => Span::Interval(-nanos),
            }),
            Expr::Nested(expr) => Span::read(expr),
            Expr::Interval(interval) => {
                let Expr::Value(value) = interval.value.as_ref() else { return None };
                let amount = value.value.clone().into_string()?;
                let unit = interval.leading_field.as_ref().map_or(String::new(), ToString::to_string);
                let read = read_interval(format!("{amount} {unit}").trim(), Qualifier::default()).ok()?;
                let micros = i64::from(read.days).checked_mul(MICROS_A_DAY)?.checked_add(read.micros)?;
                let nanos = micros.checked_mul(NANOS_A_MICRO)?;
                (read.months == 0).then_some(Span::Interval(nanos))
            }
            _ => None,
        }
    }

    /// Nanoseconds, or ticks.
    pub fn amount(&self) -> i64 {
        match self {
            Span::Interval(amount) | Span::Ticks(amount) => *amount,
        }
    }

    /// The greatest span that both are multiples of. Both are positive.
    pub fn common(&self, other: &Span) -> Span {
        let (mut a, mut b) = (self.amount(), other.amount());
        while b != 0 {
            (a, b) = (b, a % b);
        }
        match self {
            Span::Interval(_) => Span::Interval(a),
            Span::Ticks(_) => Span::Ticks(a),
        }
    }

    /// The span `n` times.
    pub fn times(&self, n: i64) -> Span {
        match self {
            Span::Interval(nanos) => Span::Interval(nanos.saturating_mul(n)),
            Span::Ticks(ticks) => Span::Ticks(ticks.saturating_mul(n)),
        }
    }
}

/// As SQL.
impl std::fmt::Display for Span {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Span::Interval(nanos) => write!(f, "INTERVAL '{} microseconds'", nanos / NANOS_A_MICRO),
            Span::Ticks(ticks) => write!(f, "{ticks}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::parse::parse_expr;

    #[test]
    fn the_common_span_of_two_divides_both() {
        assert_eq!(Span::Ticks(6).common(&Span::Ticks(4)), Span::Ticks(2));
        assert_eq!(Span::Ticks(5).common(&Span::Ticks(10)), Span::Ticks(5));
    }

    #[test]
    fn spans_are_constant_and_have_no_months() {
        let read = |text: &str| Span::read(&parse_expr(text).unwrap());
        assert_eq!(read("INTERVAL '10' MINUTES"), Some(Span::Interval(600_000_000_000)));
        assert_eq!(read("INTERVAL '1 day 2 seconds'"), Some(Span::Interval(86_402_000_000_000)));
        assert_eq!((read("-5"), read("INTERVAL '1 month'"), read("x")), (Some(Span::Ticks(-5)), None, None));
    }
}
