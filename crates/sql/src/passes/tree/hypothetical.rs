//! Ranks that a row would have (`rank(5) WITHIN GROUP (ORDER BY a)`) as counts of the rows before
//! it.
//!
//! Law: what PostgreSQL answers, but for a row that is NULL.

use datafusion_expr::sqlparser::ast::{Expr, Function, OrderByExpr};

/// The call in terms of others; `None` for another function.
pub(super) fn rewrite(name: &str, function: &Function, args: &[&Expr]) -> Option<String> {
    let keys = function.within_group.as_slice();
    if keys.is_empty() || keys.len() != args.len() {
        return None;
    }
    let pairs: Vec<(&OrderByExpr, &Expr)> = keys.iter().zip(args.iter().copied()).collect();
    let counted = |rows: &str| {
        let own = function.filter.as_ref().map(|filter| format!("({filter}) AND ")).unwrap_or_default();
        format!("FILTER (WHERE {own}{rows})")
    };
    let all = format!("count(*) {}", counted("true"));
    let before = format!("count(*) {}", counted(&before(&pairs)));
    Some(match (name, pairs.as_slice()) {
        ("rank", _) => format!("({before} + 1)"),
        ("dense_rank", [(key, _)]) => {
            // (NULL is no value that is counted.)
            let null =
                format!("CASE WHEN count(*) {} > 0 THEN 1 ELSE 0 END", counted(&format!("({}) IS NULL", key.expr)));
            let null = if nulls_first(key) { format!(" + {null}") } else { String::new() };
            format!("(count(DISTINCT {}) {} + 1{null})", key.expr, counted(&self::before(&pairs)))
        }
        ("percent_rank", _) => {
            format!("(CASE WHEN {all} = 0 THEN 0 ELSE CAST({before} AS double precision) / {all} END)")
        }
        ("cume_dist", _) => {
            let equal: Vec<String> = pairs.iter().map(|(key, value)| format!("({}) = ({value})", key.expr)).collect();
            let equal = format!("count(*) {}", counted(&equal.join(" AND ")));
            format!("(CAST({before} + {equal} + 1 AS double precision) / ({all} + 1))")
        }
        _ => return None,
    })
}

/// Whether a row comes before these values of its keys.
fn before(pairs: &[(&OrderByExpr, &Expr)]) -> String {
    let Some(((key, value), rest)) = pairs.split_first() else { return "false".to_owned() };
    let sign = if key.options.asc == Some(false) { ">" } else { "<" };
    let own = match nulls_first(key) {
        true => format!("(({0}) IS NULL OR ({0}) {sign} ({value}))", key.expr),
        false => format!("({}) {sign} ({value})", key.expr),
    };
    match rest {
        [] => own,
        rest => format!("({own} OR ({}) = ({value}) AND {})", key.expr, before(rest)),
    }
}

fn nulls_first(key: &OrderByExpr) -> bool {
    key.options.nulls_first.unwrap_or(key.options.asc == Some(false))
}
