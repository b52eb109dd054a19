//! As-of joins: each is put in parentheses with what stands left of it, with its whole condition in
//! `MATCH_CONDITION`, and so planned by [`asof`](crate::passes::plan::asof).
//!
//! ```text
//! FROM a, b JOIN c ON .. ASOF JOIN r MATCH_CONDITION (__asof_left()) ON p JOIN d ON q
//! FROM a, ((b JOIN c ON ..) ASOF JOIN r MATCH_CONDITION (__asof_left(p))) JOIN d ON q
//! ```

use datafusion_expr::sqlparser::ast::{
    BinaryOperator, Expr, Ident, Join, JoinConstraint, JoinOperator, TableFactor, TableWithJoins,
};

use crate::error::{ErrorKind, Result, SqlError};
use crate::resolve::catalog::Catalog;
use crate::syntax::names::object_name;
use crate::syntax::relation_calls::{ASOF_INNER, ASOF_LEFT, call, called};

/// Settles the as-of joins of one entry of FROM.
///
/// # Errors
/// `Unsupported` and `Invalid` for joins that are none; see the messages.
pub(super) fn settle(from: &mut TableWithJoins, catalog: Option<&dyn Catalog>) -> Result<()> {
    if !from.joins.iter().any(is_open) {
        return Ok(());
    }
    for join in std::mem::take(&mut from.joins) {
        if !is_open(&join) {
            from.joins.push(join);
            continue;
        }
        let join = whole(join, catalog)?;
        let joins = std::mem::take(&mut from.joins);
        let relation = std::mem::replace(&mut from.relation, join.relation.clone());
        let left = match joins.is_empty() {
            true => relation,
            false => nested(TableWithJoins { relation, joins }),
        };
        from.relation = nested(TableWithJoins { relation: left, joins: vec![join] });
    }
    Ok(())
}

/// An as-of join that is settled: its sides, its condition, and whether left rows without a match
/// are kept.
pub(crate) fn settled(factor: &TableFactor) -> Option<(&TableFactor, &TableFactor, &Expr, bool)> {
    let TableFactor::NestedJoin { table_with_joins, .. } = factor else { return None };
    let TableWithJoins { relation, joins } = table_with_joins.as_ref();
    let [join] = joins.as_slice() else { return None };
    let (condition, is_outer) = settled_condition(join)?;
    Some((relation, &join.relation, condition, is_outer))
}

fn settled_condition(join: &Join) -> Option<(&Expr, bool)> {
    let JoinOperator::AsOf { match_condition, constraint: JoinConstraint::None } = &join.join_operator else {
        return None;
    };
    match called(match_condition)? {
        (name, args) if name == ASOF_LEFT => Some((args.first()?, true)),
        (name, args) if name == ASOF_INNER => Some((args.first()?, false)),
        _ => None,
    }
}

fn nested(table_with_joins: TableWithJoins) -> TableFactor {
    TableFactor::NestedJoin { table_with_joins: Box::new(table_with_joins), alias: None }
}

/// Whether the join is an as-of join.
pub(super) fn is_asof_join(join: &Join) -> bool {
    matches!(join.join_operator, JoinOperator::AsOf { .. })
}

/// Whether the join is an as-of join that is not settled.
fn is_open(join: &Join) -> bool {
    is_asof_join(join) && settled_condition(join).is_none()
}

/// The join with its whole condition.
fn whole(mut join: Join, catalog: Option<&dyn Catalog>) -> Result<Join> {
    let JoinOperator::AsOf { match_condition, constraint } = join.join_operator else { return Ok(join) };
    let keys = match constraint {
        JoinConstraint::On(keys) => Some(keys),
        JoinConstraint::None => None,
        JoinConstraint::Using(_) | JoinConstraint::Natural => {
            return Err(SqlError::unsupported("USING in an as-of join", "Write ON a.k = r.k AND a.ts >= r.ts."));
        }
    };
    let (kind, condition) = match (called(&match_condition), keys) {
        (Some((kind, args)), keys) if kind == ASOF_LEFT || kind == ASOF_INNER => {
            let Some(keys) = keys else {
                return Err(SqlError::new(ErrorKind::Syntax, "an as-of join lacks its condition")
                    .with_hint("Write ASOF JOIN r ON a.k = r.k AND a.ts >= r.ts."));
            };
            match args.as_slice() {
                [time] => {
                    let (time, version) = (Box::new((*time).clone()), Box::new(version_time(&join.relation, catalog)?));
                    (kind, and(Expr::BinaryOp { left: time, op: BinaryOperator::GtEq, right: version }, keys))
                }
                _ => (kind, keys),
            }
        }
        (_, Some(keys)) => (ASOF_LEFT.to_string(), and(keys, match_condition)),
        (_, None) => (ASOF_LEFT.to_string(), match_condition),
    };
    let match_condition = call(&kind, vec![condition]);
    join.join_operator = JoinOperator::AsOf { match_condition, constraint: JoinConstraint::None };
    Ok(join)
}

/// The column with the time from which a row of the relation holds: that of its watermark.
fn version_time(right: &TableFactor, catalog: Option<&dyn Catalog>) -> Result<Expr> {
    let hint = "Give the table a WATERMARK FOR its time, or write ASOF JOIN r ON a.k = r.k AND a.ts >= r.ts.";
    let TableFactor::Table { name, alias, .. } = right else {
        return Err(SqlError::unsupported("FOR SYSTEM_TIME AS OF a query", hint));
    };
    let name = object_name(name)?;
    let relation = catalog.and_then(|catalog| catalog.relation(&name));
    let Some(watermark) = relation.and_then(|relation| relation.watermark) else {
        let message = format!("the versions of \"{name}\" have no time");
        return Err(SqlError::new(ErrorKind::Invalid, message).with_hint(hint));
    };
    let table = alias.as_ref().map_or_else(|| Ident::with_quote('"', name), |alias| alias.name.clone());
    Ok(Expr::CompoundIdentifier(vec![table, Ident::with_quote('"', watermark.column)]))
}

fn and(left: Expr, right: Expr) -> Expr {
    let nested = |part| Box::new(Expr::Nested(Box::new(part)));
    Expr::BinaryOp { left: nested(left), op: BinaryOperator::And, right: nested(right) }
}
