//! Sets of groups in each other, and groups that come twice.
//!
//! ```text
//! GROUP BY ()                              no GROUP BY, and HAVING count(*) >= 0
//! GROUP BY ROLLUP ((a, b), c)               GROUP BY GROUPING SETS ((a, b, c), (a, b), ())
//! GROUP BY GROUPING SETS (a, ROLLUP (a, b)) GROUP BY GROUPING SETS ((a), (a, b), (a), ())
//! GROUP BY DISTINCT ROLLUP (a), ROLLUP (a)  GROUP BY GROUPING SETS ((a), ())
//! ```

use std::collections::BTreeSet;

use datafusion_expr::sqlparser::ast::{Expr, GroupByExpr, Select};

use super::subquery::has_aggregate;
use crate::error::{Result, SqlError};
use crate::syntax::parse::parse_expr;
use crate::syntax::parse::spellings::DISTINCT_SETS;
use crate::syntax::relation_calls::called;

/// Most sets of one GROUP BY, as in PostgreSQL.
const SETS_MAX: usize = 4096;

type Sets = Vec<Vec<Expr>>;

/// One row, also where nothing else in the select is an aggregate.
fn as_total(select: &mut Select) -> Result<()> {
    const ALWAYS: &str = "count(*) >= 0";
    select.having = Some(match &select.having {
        Some(having) => parse_expr(&format!("({having}) AND {ALWAYS}"))?,
        None => parse_expr(ALWAYS)?,
    });
    Ok(())
}

/// Rewrites the GROUP BY of a select.
///
/// # Errors
/// Too many sets.
pub(super) fn spell(select: &mut Select) -> Result<()> {
    let GroupByExpr::Expressions(groups, _) = &mut select.group_by else { return Ok(()) };
    let is_mark = |expr: &Expr| matches!(expr, Expr::Identifier(name) if name.value == DISTINCT_SETS);
    let is_distinct = groups.first().is_some_and(is_mark);
    let n_before = groups.len();
    groups.retain(|expr| !is_mark(expr) && !matches!(expr, Expr::Tuple(parts) if parts.is_empty()));
    if groups.is_empty() && (n_before > 0 || select.having.is_some()) {
        let is_total = has_aggregate(&select.projection) || select.having.as_ref().is_some_and(has_aggregate);
        return if is_total { Ok(()) } else { as_total(select) };
    }
    for group in groups.iter_mut() {
        let has_tuple = |parts: &Sets| parts.iter().any(|part| part.len() > 1);
        match group {
            Expr::GroupingSets(sets) => {
                *sets = std::mem::take(sets).into_iter().map(within).collect::<Result<Vec<Sets>>>()?.concat();
            }
            // (DataFusion takes single columns there.)
            Expr::Rollup(parts) if has_tuple(parts) => *group = Expr::GroupingSets(rolled(parts)),
            Expr::Cube(parts) if has_tuple(parts) => *group = Expr::GroupingSets(cubed(parts)?),
            _ => {}
        }
    }
    if !is_distinct {
        return Ok(());
    }
    let mut product: Sets = vec![vec![]];
    for group in groups.iter() {
        let sets = sets_of(group)?;
        if product.len() * sets.len() > SETS_MAX {
            return Err(too_many());
        }
        let joined = product.iter().flat_map(|before| sets.iter().map(move |set| [before.as_slice(), set].concat()));
        product = joined.collect();
    }
    let mut known = BTreeSet::new();
    product.retain_mut(|set| {
        let mut names = BTreeSet::new();
        set.retain(|expr| names.insert(expr.to_string()));
        known.insert(names)
    });
    *groups = match product.as_mut_slice() {
        [set] => std::mem::take(set),
        _ => vec![Expr::GroupingSets(product)],
    };
    Ok(())
}

/// The sets that one of GROUPING SETS stands for: the parser takes ROLLUP and CUBE there for calls.
fn within(set: Vec<Expr>) -> Result<Sets> {
    let [expr] = set.as_slice() else { return Ok(vec![set]) };
    let Some((name, parts)) = called(expr) else { return Ok(vec![set]) };
    let parts: Sets = parts.into_iter().map(parts_of).collect();
    match name.to_ascii_lowercase().as_str() {
        "rollup" => Ok(rolled(&parts)),
        "cube" => cubed(&parts),
        _ => Ok(vec![set]),
    }
}

/// `(a, b)` counts as one in ROLLUP and CUBE.
fn parts_of(part: &Expr) -> Vec<Expr> {
    match part {
        Expr::Tuple(parts) => parts.clone(),
        Expr::Nested(part) => parts_of(part),
        part => vec![part.clone()],
    }
}

fn sets_of(group: &Expr) -> Result<Sets> {
    match group {
        Expr::GroupingSets(sets) => Ok(sets.clone()),
        Expr::Rollup(parts) => Ok(rolled(parts)),
        Expr::Cube(parts) => cubed(parts),
        other => Ok(vec![parts_of(other)]),
    }
}

fn rolled(parts: &[Vec<Expr>]) -> Sets {
    (0..=parts.len()).rev().map(|n| parts[..n].concat()).collect()
}

fn cubed(parts: &[Vec<Expr>]) -> Result<Sets> {
    let n_sets = 1usize.checked_shl(parts.len() as u32).filter(|n| *n <= SETS_MAX).ok_or_else(too_many)?;
    let is_in = |set: usize, at: usize| set >> (parts.len() - 1 - at) & 1 == 1;
    let set = |set: usize| (0..parts.len()).filter(|at| is_in(set, *at)).flat_map(|at| parts[at].clone()).collect();
    Ok((0..n_sets).rev().map(set).collect())
}

fn too_many() -> SqlError {
    SqlError::unsupported("GROUP BY of so many grouping sets", "There may be 4096 at most.")
}
