//! `x BETWEEN SYMMETRIC a AND b`: between them, whichever is the greater.
//!
//! The parser does not read the word. In its place stands an operator that no query has, before
//! the first operand of `a` (`syntax/parse/symmetric.rs`).

use datafusion_expr::sqlparser::ast::{BinaryOperator, Expr, UnaryOperator};

/// Spells out a comparison that has the mark.
pub(super) fn spell(expr: &mut Expr) {
    let Expr::Between { expr: value, negated, low, high } = expr else { return };
    if !take_mark(low) {
        return;
    }
    let between = |low: &Expr, high: &Expr| {
        let (low, high) = (Box::new(low.clone()), Box::new(high.clone()));
        Expr::Nested(Box::new(Expr::Between { expr: value.clone(), negated: *negated, low, high }))
    };
    let op = if *negated { BinaryOperator::And } else { BinaryOperator::Or };
    let (left, right) = (Box::new(between(low, high)), Box::new(between(high, low)));
    *expr = Expr::Nested(Box::new(Expr::BinaryOp { left, op, right }));
}

/// Takes the mark off the first operand.
fn take_mark(expr: &mut Expr) -> bool {
    match expr {
        Expr::UnaryOp { op: UnaryOperator::PGPrefixFactorial, expr: marked } => {
            *expr = (**marked).clone();
            true
        }
        Expr::BinaryOp { left, .. } => take_mark(left),
        Expr::Cast { expr, .. } | Expr::Collate { expr, .. } => take_mark(expr),
        Expr::AtTimeZone { timestamp, .. } => take_mark(timestamp),
        _ => false,
    }
}
