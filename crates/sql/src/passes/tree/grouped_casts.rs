//! `GROUP BY a, a::int`: two expressions that differ in a cast only.
//!
//! ```text
//! SELECT a, a::int, count(*) FROM t GROUP BY a, a::int
//! =   SELECT a, coalesce(a::int), count(*) FROM t GROUP BY a, coalesce(a::int)
//! ```
//!
//! Law: the query means what it meant: the first of one value is that value.

use datafusion_expr::sqlparser::ast::{Expr, GroupByExpr, Select, SelectItem};

use super::positions::item_at;
use crate::error::Result;
use crate::syntax::parse::parse_expr;
use crate::syntax::walk::change_outside_queries;

/// Gives such casts a form of their own, wherever the SELECT writes them.
///
/// # Errors
/// None that a user can cause.
pub(super) fn spell(select: &mut Select) -> Result<()> {
    write_out_positions(select);
    let GroupByExpr::Expressions(groups, _) = &select.group_by else { return Ok(()) };
    let casts: Vec<String> = groups.iter().filter(|group| is_cast_of_another(group, groups)).map(text).collect();
    if casts.is_empty() {
        return Ok(());
    }
    let mut spelt = |expr: &mut Expr| {
        let written = text(expr);
        // (Several casts of one value have several forms.)
        if let Some(at) = casts.iter().position(|cast| *cast == written) {
            *expr = parse_expr(&format!("coalesce({written}{})", ", NULL".repeat(at)))?;
        }
        Ok(())
    };
    for item in &mut select.projection {
        if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item {
            change_outside_queries(expr, &mut spelt)?;
        }
    }
    if let GroupByExpr::Expressions(groups, _) = &mut select.group_by {
        groups.iter_mut().try_for_each(|group| change_outside_queries(group, &mut spelt))?;
    }
    match &mut select.having {
        Some(having) => change_outside_queries(having, &mut spelt),
        None => Ok(()),
    }
}

/// Puts items in the place of their positions, where one differs from another group in a cast only.
fn write_out_positions(select: &mut Select) {
    let GroupByExpr::Expressions(groups, _) = &mut select.group_by else { return };
    let item = |group: &Expr| item_at(&select.projection, group);
    let meant: Vec<Expr> = groups.iter().map(|group| item(group).unwrap_or_else(|| group.clone())).collect();
    for (group, meant_by_it) in groups.iter_mut().zip(&meant) {
        let of = innermost(meant_by_it);
        let is_close = |other: &Expr| *other != *meant_by_it && innermost(other) == of;
        if meant.iter().any(is_close) {
            *group = meant_by_it.clone();
        }
    }
}

fn is_cast_of_another(group: &Expr, groups: &[Expr]) -> bool {
    let of = innermost(group);
    !std::ptr::eq(of, group) && groups.iter().any(|other| !std::ptr::eq(other, group) && innermost(other) == of)
}

/// What is cast.
fn innermost(expr: &Expr) -> &Expr {
    match expr {
        Expr::Cast { expr, .. } | Expr::Nested(expr) => innermost(expr),
        other => other,
    }
}

fn text(expr: &Expr) -> String {
    expr.to_string()
}
