//! As-of joins: each becomes a marked join in parentheses, which [`asof`](crate::passes::plan::asof) plans.
//!
//! ```text
//! FROM a, b JOIN c ON .. ASOF LEFT JOIN r ON p JOIN d ON q
//! FROM a, ((b JOIN c ON ..) LEFT JOIN r ON p) AS __asof JOIN d ON q
//! ```

use datafusion_expr::sqlparser::ast::{
    BinaryOperator, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, Join, JoinConstraint, JoinOperator,
    TableAlias, TableFactor, TableWithJoins,
};

use crate::error::{ErrorKind, Result, SqlError};
use crate::resolve::catalog::Catalog;
use crate::syntax::parse::{SYSTEM_TIME, object_name};

/// Alias that marks a join as an as-of join.
pub(crate) const ASOF_MARK: &str = "__asof";

/// Marks the as-of joins of one entry of FROM.
///
/// # Errors
/// `Unsupported` and `Invalid` for joins that are none; see the messages.
pub(super) fn mark(from: &mut TableWithJoins, catalog: Option<&dyn Catalog>) -> Result<()> {
    if !from.joins.iter().any(is_asof) {
        return Ok(());
    }
    for join in std::mem::take(&mut from.joins) {
        if !is_asof(&join) {
            from.joins.push(join);
            continue;
        }
        let join = plain(join, catalog)?;
        let joins = std::mem::take(&mut from.joins);
        let relation = std::mem::replace(&mut from.relation, join.relation.clone());
        let left = match joins.is_empty() {
            true => relation,
            false => nested(TableWithJoins { relation, joins }, None),
        };
        let alias = TableAlias { explicit: true, name: Ident::new(ASOF_MARK), columns: vec![], at: None };
        from.relation = nested(TableWithJoins { relation: left, joins: vec![join] }, Some(alias));
    }
    Ok(())
}

/// Whether the entry is an as-of join that is marked already.
pub(crate) fn is_marked(alias: Option<&TableAlias>) -> bool {
    alias.is_some_and(|alias| alias.name.value == ASOF_MARK)
}

fn nested(table_with_joins: TableWithJoins, alias: Option<TableAlias>) -> TableFactor {
    TableFactor::NestedJoin { table_with_joins: Box::new(table_with_joins), alias }
}

fn is_asof(join: &Join) -> bool {
    join.global || matches!(join.join_operator, JoinOperator::AsOf { .. })
}

/// The join as an inner or left one with its whole condition after ON.
fn plain(mut join: Join, catalog: Option<&dyn Catalog>) -> Result<Join> {
    join.global = false;
    join.join_operator = match join.join_operator {
        JoinOperator::AsOf { match_condition, constraint } => {
            let condition = match constraint {
                JoinConstraint::On(keys) => and(keys, match_condition),
                JoinConstraint::None => match_condition,
                JoinConstraint::Using(_) | JoinConstraint::Natural => return Err(using()),
            };
            JoinOperator::Left(JoinConstraint::On(condition))
        }
        JoinOperator::Left(constraint) | JoinOperator::LeftOuter(constraint) => {
            JoinOperator::Left(JoinConstraint::On(condition(constraint, &join.relation, catalog)?))
        }
        JoinOperator::Join(constraint) | JoinOperator::Inner(constraint) => {
            JoinOperator::Inner(JoinConstraint::On(condition(constraint, &join.relation, catalog)?))
        }
        _ => {
            let hint = "Write ASOF JOIN or ASOF LEFT JOIN.";
            return Err(SqlError::unsupported("an as-of join of this kind", hint));
        }
    };
    Ok(join)
}

fn condition(constraint: JoinConstraint, right: &TableFactor, catalog: Option<&dyn Catalog>) -> Result<Expr> {
    match constraint {
        JoinConstraint::On(mut condition) => {
            write_system_time(&mut condition, right, catalog)?;
            Ok(condition)
        }
        JoinConstraint::Using(_) | JoinConstraint::Natural => Err(using()),
        JoinConstraint::None => Err(SqlError::new(ErrorKind::Syntax, "an as-of join lacks its condition")
            .with_hint("Write ASOF JOIN r ON a.k = r.k AND a.ts >= r.ts.")),
    }
}

fn using() -> SqlError {
    SqlError::unsupported("USING in an as-of join", "Write ON a.k = r.k AND a.ts >= r.ts.")
}

/// Replaces the mark of `FOR SYSTEM_TIME AS OF` by the comparison with the time of the right side's versions.
fn write_system_time(condition: &mut Expr, right: &TableFactor, catalog: Option<&dyn Catalog>) -> Result<()> {
    match condition {
        Expr::BinaryOp { left, op: BinaryOperator::And, .. } => write_system_time(left, right, catalog),
        Expr::Function(function) if function.name.to_string() == SYSTEM_TIME => {
            let FunctionArguments::List(list) = &function.args else { return Ok(()) };
            let [FunctionArg::Unnamed(FunctionArgExpr::Expr(time))] = list.args.as_slice() else { return Ok(()) };
            let version = Box::new(version_time(right, catalog)?);
            *condition = Expr::BinaryOp { left: Box::new(time.clone()), op: BinaryOperator::GtEq, right: version };
            Ok(())
        }
        _ => Ok(()),
    }
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
    Expr::BinaryOp { left: Box::new(Expr::Nested(Box::new(left))), op: BinaryOperator::And, right: Box::new(right) }
}
