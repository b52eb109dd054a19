//! Aggregates of two columns (`corr`, `covar_pop`, `regr_slope` ..) as variances of one.
//!
//! Over the rows in which both columns have a value, the covariance is `(var(y + x) - var(y - x)) /
//! 4`. Variances are computed exactly and rounded once, so nothing cancels that the data does not
//! cancel; removed rows leave no trace.

use datafusion_expr::sqlparser::ast::{Expr, Function};

/// The call of such an aggregate in terms of others; `None` for another function.
pub(super) fn rewrite(name: &str, function: &Function, args: &[&Expr]) -> Option<String> {
    let [y, x] = args else { return None };
    let own = function.filter.as_ref().map(|filter| format!(" AND ({filter})")).unwrap_or_default();
    let over = function.over.as_ref().map(|over| format!(" OVER {over}")).unwrap_or_default();
    let rows = format!("FILTER (WHERE ({y}) IS NOT NULL AND ({x}) IS NOT NULL{own}){over}");
    let (y, x) = (format!("CAST({y} AS double precision)"), format!("CAST({x} AS double precision)"));
    let call = |name: &str, argument: &str| format!("{name}({argument}) {rows}");
    let n = call("count", "*");
    let (of_x, of_y) = (call("var_pop", &x), call("var_pop", &y));
    let (sum, difference) = (call("var_pop", &format!("{y} + {x}")), call("var_pop", &format!("{y} - {x}")));
    let both = format!("(({sum} - {difference}) / 4)");
    let slope = format!("({both} / nullif({of_x}, 0))");
    Some(match name {
        "covar_pop" => both,
        "covar_samp" => format!("({both} * {n} / nullif({n} - 1, 0))"),
        "corr" => format!("({both} / nullif(sqrt({of_x} * {of_y}), 0))"),
        "regr_count" => format!("({n})"),
        "regr_avgx" => format!("({})", call("avg", &x)),
        "regr_avgy" => format!("({})", call("avg", &y)),
        "regr_sxx" => format!("({n} * {of_x})"),
        "regr_syy" => format!("({n} * {of_y})"),
        "regr_sxy" => format!("({n} * {both})"),
        "regr_slope" => slope,
        "regr_intercept" => format!("({} - {slope} * {})", call("avg", &y), call("avg", &x)),
        "regr_r2" => format!(
            "(CASE WHEN {of_x} = 0 THEN NULL WHEN {of_y} = 0 THEN 1.0::double precision \
             ELSE {both} * {both} / ({of_x} * {of_y}) END)"
        ),
        _ => return None,
    })
}
