//! `EXISTS`, `IN`, `ANY` and `ALL` as values: counts of rows, in three values where NULLs leave an
//! answer open. DataFusion plans these tests in filters only.

use datafusion_expr::sqlparser::ast::{BinaryOperator, Expr, Query, Select, SelectItem, SetExpr, UnaryOperator};

use super::rows::{Tested, row, test_of, tested};
use super::subquery::{Shape, around, expr, is_total, set_projection};
use crate::error::Result;
use crate::syntax::walk::{Changing, change, change_outside_queries};

/// Rewrites `EXISTS` and `IN` in a select list.
pub(super) fn count_in_projection(select: &mut Select) -> Result<()> {
    for item in &mut select.projection {
        if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item {
            change_outside_queries(expr, &mut count)?;
        }
    }
    Ok(())
}

fn count(expr: &mut Expr) -> Result<()> {
    *expr = match expr {
        // One row or none: the plan says which.
        Expr::Exists { subquery, .. } if is_total(subquery) => return Ok(()),
        Expr::Exists { subquery, negated } => more_than(0, (**subquery).clone(), *negated)?,
        Expr::InSubquery { expr: value, subquery, negated } => in_as_count(value, subquery, *negated)?,
        Expr::AnyOp { .. } | Expr::AllOp { .. } if tested(expr).is_some() => match tested(expr) {
            Some(Tested { left, op, query, negated: false }) => row_as_count(&left, &op, query)?,
            Some(Tested { left, op, query, negated: true }) => not(row_as_count(&left, &op, query)?),
            None => return Ok(()),
        },
        Expr::AnyOp { left, compare_op, right, .. } => match right.as_ref() {
            Expr::Subquery(query) => any_as_count(left, compare_op, query)?,
            _ => return Ok(()),
        },
        Expr::AllOp { left, compare_op, right } => match (right.as_ref(), opposite(compare_op)) {
            (Expr::Subquery(query), Some(op)) => not(any_as_count(left, &op, query)?),
            _ => return Ok(()),
        },
        _ => return Ok(()),
    };
    Ok(())
}

/// The comparison that is true where the other is false.
pub(super) fn opposite(op: &BinaryOperator) -> Option<BinaryOperator> {
    use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    match op {
        Eq => Some(NotEq),
        NotEq => Some(Eq),
        Lt => Some(GtEq),
        LtEq => Some(Gt),
        Gt => Some(LtEq),
        GtEq => Some(Lt),
        _ => None,
    }
}

fn not(expr: Expr) -> Expr {
    Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(Expr::Nested(Box::new(expr))) }
}

/// Whether a query has more than `n` rows.
pub(super) fn more_than(n: u64, mut query: Query, negated: bool) -> Result<Expr> {
    let test = if negated { format!("count(*) <= {n}") } else { format!("count(*) > {n}") };
    let plain = match query.body.as_ref() {
        SetExpr::Select(select) => {
            let shape = Shape::of(select);
            let distinct = n > 0 && select.distinct.is_some();
            let repeats = shape.aggregates || shape.groups || shape.lists || distinct || select.qualify.is_some();
            !repeats && query.limit_clause.is_none() && !select.from.is_empty()
        }
        _ => false,
    };
    if plain {
        set_projection(&mut query, expr(&test)?);
        return Ok(Expr::Subquery(Box::new(query)));
    }
    Ok(Expr::Subquery(around(&format!("SELECT {test} FROM (SELECT 1) AS __any(__c)"), query)?))
}

/// `x IN (query)` in three values.
pub(super) fn in_as_count(value: &Expr, query: &Query, negated: bool) -> Result<Expr> {
    let answer = match row(value) {
        Some(columns) => row_as_count(&columns, &BinaryOperator::Eq, query)?,
        None => any_as_count(value, &BinaryOperator::Eq, query)?,
    };
    Ok(if negated { not(answer) } else { answer })
}

/// `(a, b) op ANY (query)` in three values: true for a match, null where NULLs leave a match open,
/// else false.
fn row_as_count(columns: &[Expr], op: &BinaryOperator, query: &Query) -> Result<Expr> {
    let names: Vec<String> = (0..columns.len()).map(|at| format!("__c{at}")).collect();
    let test = test_of(columns, op, "__in", &names)?;
    let counting = |condition: String| -> Result<Expr> {
        let text = format!("SELECT count(*) > 0 FROM (SELECT 1) AS __in({}) WHERE {condition}", names.join(", "));
        Ok(Expr::Subquery(around(&text, query.clone())?))
    };
    let (matches, open) = (counting(test.clone())?, counting(format!("({test}) IS NULL"))?);
    let mut answer = expr("nullif(CASE WHEN (SELECT 1) THEN 1 WHEN (SELECT 2) THEN 2 ELSE 0 END, 2) = 1")?;
    change(&mut answer, &mut FillIn([Some(matches), Some(open), None, None]))?;
    Ok(answer)
}

/// `x op ANY (query)` in three values: true for a match, null for want of knowledge, else false.
fn any_as_count(value: &Expr, op: &BinaryOperator, query: &Query) -> Result<Expr> {
    let counting = |condition: &str| -> Result<Expr> {
        let text = format!("SELECT count(*) > 0 FROM (SELECT 1) AS __in(__c) {condition}");
        Ok(Expr::Subquery(around(&text, query.clone())?))
    };
    let matches = counting(&format!("WHERE ({value}) {op} __in.__c"))?;
    let any = counting("")?;
    let any_null = counting("WHERE __in.__c IS NULL")?;
    // (The text holds nothing of a user's, so each place in it is ours.)
    // Numbers, not truth values: DataFusion would spell a truth-valued CASE out, and repeat the
    // subqueries.
    let mut answer = expr(
        "nullif(CASE WHEN (SELECT 1) THEN 1 WHEN (SELECT 4) IS NULL AND (SELECT 2) THEN 2 WHEN (SELECT 3) THEN 2 ELSE 0 END, 2) = 1",
    )?;
    let value = Expr::Nested(Box::new(value.clone()));
    change(&mut answer, &mut FillIn([Some(matches), Some(any), Some(any_null), Some(value)]))?;
    Ok(answer)
}

/// Puts expressions in the places of `(SELECT 1)` to `(SELECT 4)`, each once. What is put in is not
/// walked.
struct FillIn([Option<Expr>; 4]);

impl Changing for FillIn {
    fn after_expr(&mut self, expr: &mut Expr) -> Result<()> {
        if let Expr::Subquery(query) = expr
            && let Some(n) =
                ["SELECT 1", "SELECT 2", "SELECT 3", "SELECT 4"].iter().position(|text| query.to_string() == *text)
            && let Some(condition) = self.0[n].take()
        {
            *expr = condition;
        }
        Ok(())
    }
}
