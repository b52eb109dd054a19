//! `SIMILAR TO`: the SQL pattern as a regular expression over the whole text.

use datafusion_expr::sqlparser::ast::{BinaryOperator, Expr, Value};

use crate::error::{Result, SqlError};

/// Rewrites `x SIMILAR TO 'pattern'` to `x ~ '^(?:regex)$'`.
pub(super) fn rewrite(expr: &mut Expr) -> Result<()> {
    let Expr::SimilarTo { negated, expr: text, pattern, escape_char } = expr else {
        return Ok(());
    };
    let refused = |what: &str| Err(SqlError::unsupported(what, "Write a regular expression: x ~ '^..$'."));
    let Expr::Value(value) = pattern.as_mut() else {
        return refused("SIMILAR TO a pattern that is not a literal");
    };
    if escape_char.is_some() {
        return refused("SIMILAR TO .. ESCAPE");
    }
    let Value::SingleQuotedString(pattern_text) = &value.value else {
        return refused("SIMILAR TO a pattern that is not a text");
    };
    value.value = Value::SingleQuotedString(regex(pattern_text));
    let op = if *negated { BinaryOperator::PGRegexNotMatch } else { BinaryOperator::PGRegexMatch };
    *expr = Expr::BinaryOp { left: text.clone(), op, right: pattern.clone() };
    Ok(())
}

/// `%` and `_` are any text and any character; `| * + ? { } ( ) [ ]` are what they are in regular expressions.
fn regex(pattern: &str) -> String {
    let mut regex = String::from("^(?:");
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        match character {
            '%' => regex.push_str("(?s:.*)"),
            '_' => regex.push_str("(?s:.)"),
            '\\' => {
                regex.push('\\');
                regex.extend(characters.next());
            }
            '.' | '^' | '$' => {
                regex.push('\\');
                regex.push(character);
            }
            other => regex.push(other),
        }
    }
    regex + ")$"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_anchored() {
        assert_eq!(regex("a%_."), r"^(?:a(?s:.*)(?s:.)\.)$");
        assert_eq!(regex(r"(a|b)\%"), r"^(?:(a|b)\%)$");
    }
}
