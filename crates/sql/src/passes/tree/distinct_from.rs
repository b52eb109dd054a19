//! `a IS DISTINCT FROM b AND c`: the parser takes everything to the right for the operand of `IS
//! DISTINCT FROM`.
//!
//! PostgreSQL's operand ends before `AND` and `OR`. The expression is read as a row of operands
//! between `AND`s and `OR`s, and put together anew. Parentheses are nodes of their own in the
//! syntax tree, so nothing in them is moved.

use datafusion_expr::sqlparser::ast::{BinaryOperator, Expr, UnaryOperator, Value};

use crate::error::Result;

/// Ends an operand where it ends in PostgreSQL.
///
/// # Errors
/// None.
pub(super) fn end_operand(expr: &mut Expr) -> Result<()> {
    if swallows(expr) {
        let mut row = Row::default();
        row.read(expr.clone());
        *expr = row.together();
    }
    Ok(())
}

/// `x IS DISTINCT FROM 'text'` as `(x = 'text') IS NOT TRUE`: a comparison reads the text as a
/// value of the type of *x*.
///
/// # Errors
/// None.
pub(super) fn compare_literal(expr: &mut Expr) -> Result<()> {
    let (left, right, is_distinct) = match expr {
        Expr::IsDistinctFrom(left, right) => (left, right, true),
        Expr::IsNotDistinctFrom(left, right) => (left, right, false),
        _ => return Ok(()),
    };
    if is_text(left) == is_text(right) {
        return Ok(());
    }
    let inner = |side: &Expr| Box::new(Expr::Nested(Box::new(side.clone())));
    let equal = Expr::BinaryOp { left: inner(left), op: BinaryOperator::Eq, right: inner(right) };
    let equal = Box::new(Expr::Nested(Box::new(equal)));
    *expr = Expr::Nested(Box::new(if is_distinct { Expr::IsNotTrue(equal) } else { Expr::IsTrue(equal) }));
    Ok(())
}

/// The operators as which the tests reach the planner of operators.
pub(crate) const IS_DISTINCT: &str = "IS DISTINCT FROM";
pub(crate) const IS_NOT_DISTINCT: &str = "IS NOT DISTINCT FROM";

/// A test as an operator, which the planner of operators gives its types.
///
/// # Errors
/// None.
pub(super) fn as_operator(expr: &mut Expr) -> Result<()> {
    let (left, right, op) = match expr {
        Expr::IsDistinctFrom(left, right) => (left, right, IS_DISTINCT),
        Expr::IsNotDistinctFrom(left, right) => (left, right, IS_NOT_DISTINCT),
        _ => return Ok(()),
    };
    let take = |side: &mut Box<Expr>| std::mem::replace(side, Box::new(Expr::value(Value::Null)));
    let (left, right) = (take(left), take(right));
    *expr = Expr::BinaryOp { left, op: BinaryOperator::Custom(op.into()), right };
    Ok(())
}

fn is_text(expr: &Expr) -> bool {
    matches!(expr, Expr::Value(value) if matches!(value.value, Value::SingleQuotedString(_)))
}

fn joins(op: &BinaryOperator) -> bool {
    matches!(op, BinaryOperator::And | BinaryOperator::Or)
}

/// Whether an `IS DISTINCT FROM` at the right edge has an `AND` or `OR` for its operand.
fn swallows(expr: &Expr) -> bool {
    match expr {
        Expr::IsDistinctFrom(_, right) | Expr::IsNotDistinctFrom(_, right) => {
            matches!(right.as_ref(), Expr::BinaryOp { op, .. } if joins(op)) || swallows(right)
        }
        Expr::BinaryOp { left, op, right } if joins(op) => swallows(left) || swallows(right),
        Expr::UnaryOp { op: UnaryOperator::Not, expr } => swallows(expr),
        _ => false,
    }
}

/// Operands, and what stands between them: `rest[i].0` is left of `rest[i].1`.
#[derive(Default)]
struct Row {
    first: Option<Expr>,
    rest: Vec<(BinaryOperator, Expr)>,
}

impl Row {
    fn read(&mut self, expr: Expr) {
        let of = |expr: Box<Expr>| {
            let mut row = Row::default();
            row.read(*expr);
            row
        };
        match expr {
            Expr::BinaryOp { left, op, right } if joins(&op) => {
                *self = of(left);
                let right = of(right);
                self.rest.extend(right.first.map(|first| (op, first)));
                self.rest.extend(right.rest);
            }
            Expr::UnaryOp { op: UnaryOperator::Not, expr } => {
                *self = of(expr);
                self.wrap_first(|expr| Expr::UnaryOp { op: UnaryOperator::Not, expr });
            }
            Expr::IsDistinctFrom(left, right) => {
                *self = of(right);
                self.wrap_first(|right| Expr::IsDistinctFrom(left, right));
            }
            Expr::IsNotDistinctFrom(left, right) => {
                *self = of(right);
                self.wrap_first(|right| Expr::IsNotDistinctFrom(left, right));
            }
            other => self.first = Some(other),
        }
    }

    fn wrap_first(&mut self, wrap: impl FnOnce(Box<Expr>) -> Expr) {
        self.first = self.first.take().map(|first| wrap(Box::new(first)));
    }

    /// `OR`s of `AND`s.
    fn together(self) -> Expr {
        let pair = |left, op, right| Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) };
        let mut ored: Option<Expr> = None;
        let mut anded = self.first;
        for (op, operand) in self.rest {
            let before = anded.take();
            anded = Some(match (op, before) {
                (BinaryOperator::And, Some(before)) => pair(before, BinaryOperator::And, operand),
                (_, Some(before)) => {
                    ored = Some(match ored {
                        Some(ored) => pair(ored, BinaryOperator::Or, before),
                        None => before,
                    });
                    operand
                }
                (_, None) => operand,
            });
        }
        match (ored, anded) {
            (Some(ored), Some(anded)) => pair(ored, BinaryOperator::Or, anded),
            (None, Some(one)) | (Some(one), None) => one,
            (None, None) => unreachable!("a row has an operand"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::parse::parse_expr;
    use crate::syntax::walk::{Changing, change};

    struct EndOperands;

    impl Changing for EndOperands {
        fn expr(&mut self, expr: &mut Expr) -> Result<()> {
            end_operand(expr)
        }
    }

    /// The expression with parentheses around every operator's operands.
    fn shape(text: &str) -> String {
        fn spelt(expr: &Expr) -> String {
            match expr {
                Expr::BinaryOp { left, op, right } => format!("({} {op} {})", spelt(left), spelt(right)),
                Expr::UnaryOp { op, expr } => format!("({op} {})", spelt(expr)),
                Expr::IsDistinctFrom(left, right) => format!("({} <> {})", spelt(left), spelt(right)),
                Expr::IsNotDistinctFrom(left, right) => format!("({} = {})", spelt(left), spelt(right)),
                Expr::Nested(inner) => format!("[{}]", spelt(inner)),
                other => other.to_string(),
            }
        }
        let mut expr = parse_expr(text).expect("it is an expression");
        change(&mut expr, &mut EndOperands).expect("nothing is refused");
        spelt(&expr)
    }

    #[test]
    fn operands_end_before_and_and_or() {
        assert_eq!(shape("a IS DISTINCT FROM b AND c"), "((a <> b) AND c)");
        assert_eq!(shape("a IS DISTINCT FROM (b AND c)"), "(a <> [(b AND c)])");
        assert_eq!(shape("p AND a IS NOT DISTINCT FROM b OR c AND d"), "((p AND (a = b)) OR (c AND d))");
        assert_eq!(shape("NOT a IS DISTINCT FROM b AND c"), "((NOT (a <> b)) AND c)");
        assert_eq!(
            shape("a IS DISTINCT FROM b OR c IS DISTINCT FROM d AND e OR f"),
            "(((a <> b) OR ((c <> d) AND e)) OR f)"
        );
        assert_eq!(
            shape("a IS DISTINCT FROM b + 1 AND [x OR y]".replace(['[', ']'], "").as_str()),
            "(((a <> (b + 1)) AND x) OR y)"
        );
    }
}
