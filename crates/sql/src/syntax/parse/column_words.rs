//! Words that are names in PostgreSQL, where the parser takes them for the begin of a clause.
//!
//! ```text
//! SELECT top FROM t            SELECT "top" FROM t            TOP of other systems has a number
//! SELECT x, interval FROM t    SELECT x, "interval" FROM t    a literal has a text behind the word
//! WHERE trim = 1               WHERE "trim" = 1               the function has a parenthesis
//! ```

use datafusion_expr::sqlparser::tokenizer::{Token, TokenWithSpan, Word};

/// Words behind which an expression stands, and no type.
const BEFORE_VALUES: [&str; 17] = [
    "SELECT",
    "DISTINCT",
    "ALL",
    "WHERE",
    "AND",
    "OR",
    "NOT",
    "BY",
    "ON",
    "WHEN",
    "THEN",
    "ELSE",
    "CASE",
    "HAVING",
    "RETURNING",
    "SET",
    "IN",
];

/// Rewrites the tokens of a statement, among which are no spaces.
pub(super) fn rewrite(tokens: &mut [TokenWithSpan]) {
    // (The types of parameters stand between parentheses and commas, as values do.)
    if word(tokens, 0).as_deref() == Some("PREPARE") {
        return;
    }
    for at in 1..tokens.len() {
        let is_name = match word(tokens, at).as_deref() {
            Some("TOP") => {
                matches!(word(tokens, at - 1).as_deref(), Some("SELECT" | "DISTINCT" | "ALL"))
                    && !matches!(next(tokens, at), Some(Token::Number(..) | Token::LParen | Token::Placeholder(_)))
            }
            Some("INTERVAL") => begins_value(tokens, at) && !begins_literal(tokens, at + 1),
            Some("TRIM") => begins_value(tokens, at) && next(tokens, at) != Some(&Token::LParen),
            _ => false,
        };
        if is_name && let Token::Word(Word { value, .. }) = &tokens[at].token {
            tokens[at].token = Token::make_word(&value.to_ascii_lowercase(), Some('"'));
        }
    }
}

fn word(tokens: &[TokenWithSpan], at: usize) -> Option<String> {
    match &tokens.get(at)?.token {
        Token::Word(Word { value, quote_style: None, .. }) => Some(value.to_ascii_uppercase()),
        _ => None,
    }
}

fn next(tokens: &[TokenWithSpan], at: usize) -> Option<&Token> {
    tokens.get(at + 1).map(|token| &token.token)
}

/// Whether what stands before is followed by a value.
fn begins_value(tokens: &[TokenWithSpan], at: usize) -> bool {
    match &tokens[at - 1].token {
        Token::Comma | Token::LParen | Token::Eq | Token::Neq | Token::Lt | Token::Gt | Token::LtEq | Token::GtEq => {
            true
        }
        Token::Plus | Token::Minus | Token::Mul | Token::Div | Token::StringConcat | Token::Period => true,
        _ => word(tokens, at - 1).is_some_and(|word| BEFORE_VALUES.contains(&word.as_str())),
    }
}

/// Whether the value of an interval stands there, in quotes or computed, or its precision.
fn begins_literal(tokens: &[TokenWithSpan], at: usize) -> bool {
    match tokens.get(at).map(|token| &token.token) {
        Some(
            Token::Comma
            | Token::RParen
            | Token::Eq
            | Token::Neq
            | Token::Lt
            | Token::Gt
            | Token::LtEq
            | Token::GtEq
            | Token::Plus
            | Token::Mul
            | Token::Div
            | Token::DoubleColon
            | Token::StringConcat
            | Token::SemiColon
            | Token::EOF,
        )
        | None => false,
        _ => !matches!(
            word(tokens, at).as_deref(),
            Some(
                "FROM"
                    | "IS"
                    | "IN"
                    | "AND"
                    | "OR"
                    | "ASC"
                    | "DESC"
                    | "AS"
                    | "BETWEEN"
                    | "LIMIT"
                    | "WHERE"
                    | "GROUP"
                    | "ORDER"
                    | "HAVING"
                    | "THEN"
                    | "ELSE"
                    | "END"
                    | "WHEN"
                    | "NULLS"
                    | "NOT"
            )
        ),
    }
}
