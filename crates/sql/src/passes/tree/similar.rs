//! `SIMILAR TO`: a test of a regular expression, which a function makes of the SQL pattern. And
//! `LIKE .. ESCAPE ''`, in whose pattern a backslash is one.

use datafusion_expr::sqlparser::ast::{Expr, Value};

use crate::error::Result;
use crate::syntax::parse::parse_expr;

/// Rewrites `x SIMILAR TO pattern ESCAPE '#'` to `x ~ similar_to_escape(pattern, '#')`.
pub(super) fn rewrite(expr: &mut Expr) -> Result<()> {
    if let Expr::Like { pattern, escape_char, .. } | Expr::ILike { pattern, escape_char, .. } = expr {
        if escape_char
            .as_ref()
            .is_some_and(|escape| matches!(&escape.value, Value::SingleQuotedString(c) if c.is_empty()))
        {
            (**pattern, *escape_char) = (parse_expr(&format!(r"replace({pattern}, '\', '\\')"))?, None);
        }
        return Ok(());
    }
    let Expr::SimilarTo { negated, expr: text, pattern, escape_char } = expr else {
        return Ok(());
    };
    let op = if *negated { "!~" } else { "~" };
    let escape = escape_char.as_ref().map(|escape| format!(", {escape}")).unwrap_or_default();
    *expr = parse_expr(&format!("(({text}) {op} similar_to_escape({pattern}{escape}))"))?;
    Ok(())
}
