//! Aggregates of two columns (`corr`, `covar_pop`, `regr_slope` ..) as variances of one.
//!
//! Over the rows in which both columns have a value, the covariance is `(var(y + w x) - var(y - w
//! x)) / 4 w`. Variances are computed exactly and rounded once, so removed rows leave no trace, and
//! columns far from zero lose nothing. Digits are lost where `y` and `w x` vary by different
//! amounts: of three weights `w` that one is taken that brings them nearest to each other.

use datafusion_expr::sqlparser::ast::{Expr, Function};

/// 2 to the 24th: with columns whose deviations differ by up to its 1.5th power, 12 bits are lost
/// at most.
const WEIGHT: &str = "16777216::double precision";

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
    let weighted = |y: &str, x: &str, weight: &str| {
        let of = |sign: &str| call("var_pop", &format!("{y} {sign} {x}"));
        format!("({} - {}) / (4 * {weight})", of("+"), of("-"))
    };
    let heavy = |column: &str| format!("{WEIGHT} * {column}");
    let both = format!(
        "(CASE WHEN {of_y} > {WEIGHT} * {of_x} THEN {} WHEN {of_x} > {WEIGHT} * {of_y} THEN {} ELSE {} END)",
        weighted(&y, &heavy(&x), WEIGHT),
        weighted(&heavy(&y), &x, WEIGHT),
        weighted(&y, &x, "1")
    );
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
