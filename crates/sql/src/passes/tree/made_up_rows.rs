//! Tables in whose place outer joins make up rows of NULLs, and the column that tells such a row.
//!
//! ```text
//!     q LEFT JOIN p ON p.k = q.k      p: k
//!     q RIGHT JOIN p ON p.k = q.k     q: k
//!     q FULL JOIN p ON p.k = q.k      q, p: none
//! ```
//!
//! Law: a column that is compared by `=` in the condition of a join is NULL in no row that the join
//! has matched. Where rows are shown that have matched nothing (FULL JOIN) it may be NULL in a row
//! of the table, so it tells nothing.

use std::collections::BTreeMap;

use datafusion_expr::sqlparser::ast::{
    BinaryOperator, Expr, JoinConstraint, JoinOperator, TableFactor, TableWithJoins,
};

use crate::syntax::names::{fold, object_name};

/// For each table of which rows are made up: the column that is NULL in those rows alone, if one is
/// known.
pub(super) type MadeUp = BTreeMap<String, Option<String>>;

/// The tables of a FROM entry of which rows are made up. `name_of` says how a query knows an entry.
pub(super) fn made_up(from: &TableWithJoins, name_of: impl Fn(&TableFactor) -> Option<String>) -> MadeUp {
    let mut made_up = MadeUp::new();
    let mut before: Vec<String> = name_of(&from.relation).into_iter().collect();
    for join in &from.joins {
        let name = name_of(&join.relation);
        // (A column that told a row that was made up before does so behind the join too.)
        let mut enter = |table: &String, column: Option<String>| {
            made_up.entry(table.clone()).or_insert(column);
        };
        match &join.join_operator {
            JoinOperator::Join(_) | JoinOperator::Inner(_) | JoinOperator::CrossJoin(_) => {}
            JoinOperator::Left(on) | JoinOperator::LeftOuter(on) => {
                name.iter().for_each(|name| enter(name, compared(on, name)));
            }
            JoinOperator::Right(on) | JoinOperator::RightOuter(on) => {
                before.iter().for_each(|table| enter(table, compared(on, table)));
            }
            _ => before.iter().chain(&name).for_each(|table| enter(table, None)),
        }
        before.extend(name);
    }
    made_up
}

/// A column of a table that is compared by `=`, or is one that both sides have.
fn compared(on: &JoinConstraint, table: &str) -> Option<String> {
    match on {
        JoinConstraint::On(condition) => compared_in(condition, table),
        JoinConstraint::Using(columns) => object_name(columns.first()?).ok(),
        _ => None,
    }
}

fn compared_in(condition: &Expr, table: &str) -> Option<String> {
    match condition {
        Expr::Nested(inner) => compared_in(inner, table),
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
            compared_in(left, table).or_else(|| compared_in(right, table))
        }
        Expr::BinaryOp { left, op: BinaryOperator::Eq, right } => {
            [left, right].into_iter().find_map(|side| match side.as_ref() {
                Expr::CompoundIdentifier(parts) => match parts.as_slice() {
                    [of, column] if fold(of) == table => Some(fold(column)),
                    _ => None,
                },
                _ => None,
            })
        }
        _ => None,
    }
}
