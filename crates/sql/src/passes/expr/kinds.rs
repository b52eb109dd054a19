//! Operators and casts between kinds of values that have none.
//!
//! ```text
//! date > 5             operator does not exist: date > bigint
//! s = 5                operator does not exist: text = integer
//! timestamp::bigint    cannot cast type timestamp without time zone to bigint
//! ```
//!
//! DataFusion takes moments for the numbers that they are kept as, so that an answer would depend
//! on how they are kept. A text would be read as a number, row by row.

use arrow::datatypes::DataType;
use datafusion_common::{DFSchema, Result as DfResult, plan_err};
use datafusion_expr::expr::Between;
use datafusion_expr::logical_plan::LogicalPlan;
use datafusion_expr::{BinaryExpr, Expr, ExprSchemable, Operator};

use super::matched::Choice;
use crate::resolve::type_names::{is_number, is_text, sql_name};

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
            Operator::Plus => {
                check_sum(left, right, schema)?;
                check_computed(left, *op, right, schema)
            }
            Operator::Minus | Operator::Multiply | Operator::Divide | Operator::Modulo => {
                check_computed(left, *op, right, schema)
            }
            _ => Ok(()),
        },
        Expr::Between(Between { expr, low, high, .. }) => {
            check_compared(expr, Operator::GtEq, low, schema)?;
            check_compared(expr, Operator::LtEq, high, schema)
        }
        Expr::InList(list) => {
            list.list.iter().try_for_each(|value| check_compared(&list.expr, Operator::Eq, value, schema))
        }
        Expr::InSubquery(test) => check_subquery(&test.expr, Operator::Eq, &test.subquery.subquery, schema),
        Expr::SetComparison(test) => check_subquery(&test.expr, test.op, &test.subquery.subquery, schema),
        Expr::Case(case) => match &case.expr {
            Some(value) => {
                let whens = case.when_then_expr.iter().map(|(when, _)| when.as_ref());
                whens.into_iter().try_for_each(|when| check_compared(value, Operator::Eq, when, schema))
            }
            None => Ok(()),
        },
        Expr::ScalarFunction(call) if call.func.name() == "nullif" && call.args.len() == 2 => {
            check_compared(&call.args[0], Operator::Eq, &call.args[1], schema)
        }
        // (What `= ANY(array)` is.)
        Expr::ScalarFunction(call) if call.func.name() == "array_has" && call.args.len() == 2 => {
            check_element(&call.args[1], &call.args[0], schema)
        }
        Expr::Cast(cast) => {
            let Ok(from) = cast.expr.get_type(schema) else { return Ok(()) };
            let to = cast.field.data_type();
            match (Kind::of(&from), Kind::of(to)) {
                (Some(before), Some(after)) if !before.becomes(after) => {
                    plan_err!("cannot cast type {} to {}", sql_name(&from), sql_name(to))
                }
                (Some(_), None) if matches!(to, DataType::List(_)) => {
                    let value = Choice::of(&cast.expr, cast.expr.to_field(schema)?.1.as_ref());
                    let from = value.map_or_else(|| sql_name(&from), |value| value.name());
                    plan_err!("cannot cast type {from} to {}", sql_name(to))
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
        _ if is_text(&l) != is_text(&r) => {
            let with_number = is_number(&l) || is_number(&r);
            let choice = |value: &Expr| {
                let field = value.to_field(schema).ok()?.1;
                match value {
                    // (A parameter of which the client says that it is a text.)
                    Expr::Placeholder(_) if with_number => {
                        Choice::of(&Expr::Column(field.name().as_str().into()), &field)
                    }
                    value => Choice::of(value, &field),
                }
            };
            check_apart(choice(left), op, choice(right))
        }
        _ if is_text(&l) && is_written_text(left) != is_written_text(right) => {
            let choice = |value: &Expr| Choice::of(value, value.to_field(schema).ok()?.1.as_ref());
            match (choice(left), choice(right)) {
                (Some(left), Some(right)) if left.is_marked() != right.is_marked() => {
                    plan_err!("operator does not exist: {} {op} {}", left.name(), right.name())
                }
                _ => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

/// Whether a value is a literal of which is said that it is a text.
fn is_written_text(value: &Expr) -> bool {
    matches!(value, Expr::Cast(cast) if matches!(cast.expr.as_ref(), Expr::Literal(..)) && is_text(cast.field.data_type()))
}

/// Refuses a text beside a value of another kind, unless the text is a literal.
fn check_apart(left: Option<Choice>, op: Operator, right: Option<Choice>) -> DfResult<()> {
    match (left, right) {
        (Some(left), Some(right)) if left.is_apart(&right) => {
            plan_err!("operator does not exist: {} {op} {}", left.name(), right.name())
        }
        _ => Ok(()),
    }
}

/// Texts are not computed with.
fn check_computed(left: &Expr, op: Operator, right: &Expr, schema: &DFSchema) -> DfResult<()> {
    let (Ok(l), Ok(r)) = (left.get_type(schema), right.get_type(schema)) else { return Ok(()) };
    if is_text(&l) == is_text(&r) {
        return Ok(());
    }
    let choice = |value: &Expr| Choice::of(value, value.to_field(schema).ok()?.1.as_ref());
    check_apart(choice(left), op, choice(right))
}

/// As [`check_compared`], with the elements of an array.
fn check_element(value: &Expr, list: &Expr, schema: &DFSchema) -> DfResult<()> {
    let (Ok((_, value_field)), Ok((_, list_field))) = (value.to_field(schema), list.to_field(schema)) else {
        return Ok(());
    };
    let DataType::List(element) = list_field.data_type() else { return Ok(()) };
    if is_text(value_field.data_type()) == is_text(element.data_type()) {
        return Ok(());
    }
    let element = Choice::of(&Expr::Column("element".into()), element);
    check_apart(Choice::of(value, &value_field), Operator::Eq, element)
}

/// As [`check_compared`], with the one column of a subquery.
fn check_subquery(value: &Expr, op: Operator, rows: &LogicalPlan, schema: &DFSchema) -> DfResult<()> {
    let choice = |value: &Expr| Choice::of(value, value.to_field(schema).ok()?.1.as_ref());
    match rows.schema().fields().is_empty() {
        true => Ok(()),
        false => check_apart(choice(value), op, Choice::of_column(rows, 0)),
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
