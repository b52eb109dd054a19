//! Operators and casts between kinds of values that have none.
//!
//! ```text
//! date > 5             operator does not exist: date > bigint
//! timestamp::bigint    cannot cast type timestamp without time zone to bigint
//! ```
//!
//! DataFusion takes moments for the numbers that they are kept as, so that an answer would depend
//! on how they are kept.

use arrow::datatypes::DataType;
use datafusion_common::{DFSchema, Result as DfResult, plan_err};
use datafusion_expr::expr::Between;
use datafusion_expr::{BinaryExpr, Expr, ExprSchemable, Operator};

use crate::resolve::type_names::{is_number, sql_name};

/// Values that are compared with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Number,
    Truth,
    /// A date, with or without a time.
    Moment,
    TimeOfDay,
    Interval,
}

impl Kind {
    /// `None` for texts, which may be literals, and for all other types.
    pub(super) fn of(is: &DataType) -> Option<Kind> {
        match is {
            _ if is_number(is) => Some(Kind::Number),
            DataType::Boolean => Some(Kind::Truth),
            DataType::Date32 | DataType::Timestamp(..) => Some(Kind::Moment),
            DataType::Time64(_) => Some(Kind::TimeOfDay),
            DataType::Interval(_) => Some(Kind::Interval),
            _ => None,
        }
    }

    /// Whether PostgreSQL has a cast.
    fn becomes(self, other: Kind) -> bool {
        use Kind::{Interval, Moment, Number, TimeOfDay, Truth};
        let is_known = matches!(
            (self, other),
            (Number, Truth) | (Truth, Number) | (Moment | Interval, TimeOfDay) | (TimeOfDay, Interval)
        );
        self == other || is_known
    }
}

/// Refuses what PostgreSQL has no operator or cast for.
pub(super) fn check(expr: &Expr, schema: &DFSchema) -> DfResult<()> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match op {
            Operator::Eq | Operator::NotEq | Operator::IsDistinctFrom | Operator::IsNotDistinctFrom => {
                check_compared(left, *op, right, schema)
            }
            Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq => check_compared(left, *op, right, schema),
            Operator::Plus => check_sum(left, right, schema),
            _ => Ok(()),
        },
        Expr::Between(Between { expr, low, high, .. }) => {
            check_compared(expr, Operator::GtEq, low, schema)?;
            check_compared(expr, Operator::LtEq, high, schema)
        }
        Expr::InList(list) => {
            list.list.iter().try_for_each(|value| check_compared(&list.expr, Operator::Eq, value, schema))
        }
        Expr::ScalarFunction(call) if call.func.name() == "nullif" && call.args.len() == 2 => {
            check_compared(&call.args[0], Operator::Eq, &call.args[1], schema)
        }
        Expr::Cast(cast) => {
            let Ok(from) = cast.expr.get_type(schema) else { return Ok(()) };
            let to = cast.field.data_type();
            match (Kind::of(&from), Kind::of(to)) {
                (Some(before), Some(after)) if !before.becomes(after) => {
                    plan_err!("cannot cast type {} to {}", sql_name(&from), sql_name(to))
                }
                _ => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

fn check_compared(left: &Expr, op: Operator, right: &Expr, schema: &DFSchema) -> DfResult<()> {
    let (Ok(l), Ok(r)) = (left.get_type(schema), right.get_type(schema)) else { return Ok(()) };
    match (Kind::of(&l), Kind::of(&r)) {
        (Some(a), Some(b)) if a != b => no_operator(&l, op, &r),
        _ => Ok(()),
    }
}

/// Two times of day, or two moments, have no sum.
fn check_sum(left: &Expr, right: &Expr, schema: &DFSchema) -> DfResult<()> {
    let (Ok(l), Ok(r)) = (left.get_type(schema), right.get_type(schema)) else { return Ok(()) };
    match (Kind::of(&l), Kind::of(&r)) {
        (Some(Kind::TimeOfDay), Some(Kind::TimeOfDay)) => no_operator(&l, Operator::Plus, &r),
        _ => Ok(()),
    }
}

fn no_operator(left: &DataType, op: Operator, right: &DataType) -> DfResult<()> {
    plan_err!("operator does not exist: {} {op} {}", sql_name(left), sql_name(right))
}
