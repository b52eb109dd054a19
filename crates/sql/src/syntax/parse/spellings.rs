//! Spellings of PostgreSQL that the parser reads otherwise, rewritten in the tokens.
//!
//! ```text
//! j->-1                          j -> -1
//! FROM t semi JOIN u             FROM t "semi" JOIN u
//! SELECT (VALUES (5))            SELECT (SELECT * FROM (VALUES (5)) AS __values)
//! t JOIN u USING (a) AS m .. m.a t JOIN u USING (a) .. a
//! json_agg(t.*)                  json_agg(t)
//! t.* IS NULL                    t IS NULL
//! FROM ONLY t, FROM ONLY (t)     FROM t
//! EXISTS (SELECT)                EXISTS (SELECT NULL)
//! GROUP BY ALL a                 GROUP BY a
//! GROUP BY DISTINCT a, b         GROUP BY __distinct, a, b
//! ```

use datafusion_expr::sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer, Word};

use super::any_values::{as_select, closing};
use super::recursion::words_at;
use crate::syntax::dialect::Postgres;

/// Stands first in GROUP BY where groups that come twice count once.
pub(crate) const DISTINCT_SETS: &str = "__distinct";

/// Rewrites the tokens of a statement, among which are no spaces.
pub(super) fn rewrite(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 0;
    while at < tokens.len() {
        match &tokens[at].token {
            Token::CustomBinaryOperator(operator) => {
                if let Some(parts) = split_operator(operator) {
                    let span = tokens[at].span;
                    tokens.splice(at..=at, parts.into_iter().map(|token| TokenWithSpan { token, span }));
                }
            }
            Token::LParen if words_at(tokens, at + 1, &["VALUES"]) && at > 0 && is_value_behind(tokens, at - 1) => {
                if let Some(close) = closing(tokens, at) {
                    as_select(tokens, at, close);
                }
            }
            Token::Word(Word { value, quote_style: None, .. }) => {
                let name = value.to_ascii_lowercase();
                match name.as_str() {
                    "semi" | "anti" if !is_sided(tokens, at) => {
                        tokens[at].token = Token::make_word(&name, Some('"'));
                    }
                    "using" => merged_alias(tokens, at),
                    "json_agg" | "jsonb_agg" | "to_json" | "to_jsonb" | "row_to_json" => whole_row(tokens, at + 1),
                    "only" if at > 0 && is_before_table(tokens, at - 1) => only_table(tokens, at),
                    "exists" => empty_list(tokens, at + 1),
                    "group" if words_at(tokens, at + 1, &["BY"]) => group_by(tokens, at + 2),
                    _ => {}
                }
            }
            Token::Mul if at > 1 && tokens[at - 1].token == Token::Period && is_null_test(tokens, at + 1) => {
                tokens.drain(at - 1..=at);
            }
            _ => {}
        }
        at += 1;
    }
}

/// Whether a table is wanted behind the token.
fn is_before_table(tokens: &[TokenWithSpan], at: usize) -> bool {
    ["FROM", "JOIN", "UPDATE"].iter().any(|word| words_at(tokens, at, &[word]))
}

/// There is no inheritance: `ONLY` says nothing.
fn only_table(tokens: &mut Vec<TokenWithSpan>, at: usize) {
    let is_name = |token: &TokenWithSpan| matches!(token.token, Token::Word(_) | Token::Period);
    match tokens.get(at + 1).map(|token| &token.token) {
        Some(Token::Word(_)) => {
            tokens.remove(at);
        }
        Some(Token::LParen) => {
            if let Some(close) = closing(tokens, at + 1)
                && tokens[at + 2..close].iter().all(is_name)
            {
                tokens.remove(close);
                tokens.drain(at..=at + 1);
            }
        }
        _ => {}
    }
}

/// A query that selects nothing has rows all the same.
fn empty_list(tokens: &mut Vec<TokenWithSpan>, open: usize) {
    let is = |at: usize, token: &Token| tokens.get(at).is_some_and(|found| found.token == *token);
    if is(open, &Token::LParen) && words_at(tokens, open + 1, &["SELECT"]) && is(open + 2, &Token::RParen) {
        let null = TokenWithSpan { token: Token::make_word("NULL", None), span: tokens[open + 2].span };
        tokens.insert(open + 2, null);
    }
}

/// Whether `IS [NOT] NULL` follows.
fn is_null_test(tokens: &[TokenWithSpan], at: usize) -> bool {
    words_at(tokens, at, &["IS", "NULL"]) || words_at(tokens, at, &["IS", "NOT", "NULL"])
}

/// An operator ends with a sign only if it has a character that no sign follows in arithmetic: any
/// other sign is that of the operand.
fn split_operator(operator: &str) -> Option<Vec<Token>> {
    let own = operator.trim_end_matches(['-', '+']);
    if own.len() == operator.len() || own.is_empty() || own.contains(['~', '!', '@', '#', '%', '^', '&', '|', '`', '?'])
    {
        return None;
    }
    let mut tokens = Tokenizer::new(&Postgres, own).tokenize().ok()?;
    tokens.extend(operator[own.len()..].chars().map(|sign| if sign == '-' { Token::Minus } else { Token::Plus }));
    Some(tokens)
}

/// Whether a value is wanted behind the token.
fn is_value_behind(tokens: &[TokenWithSpan], at: usize) -> bool {
    const WORDS: [&str; 12] =
        ["SELECT", "WHERE", "AND", "OR", "NOT", "ON", "WHEN", "THEN", "ELSE", "BY", "RETURNING", "HAVING"];
    match &tokens[at].token {
        Token::Word(_) => WORDS.iter().any(|word| words_at(tokens, at, &[word])),
        Token::RParen | Token::RBracket | Token::SemiColon | Token::Number(..) | Token::SingleQuotedString(_) => false,
        _ => true,
    }
}

/// `LEFT SEMI JOIN` is none of PostgreSQL's, but no alias either.
fn is_sided(tokens: &[TokenWithSpan], at: usize) -> bool {
    at == 0 || words_at(tokens, at - 1, &["LEFT"]) || words_at(tokens, at - 1, &["RIGHT"])
}

/// Takes the alias behind `USING (..)` out of the tokens, and what names it: columns that are
/// merged have plain names.
fn merged_alias(tokens: &mut Vec<TokenWithSpan>, using: usize) {
    if tokens.get(using + 1).is_none_or(|token| token.token != Token::LParen) {
        return;
    }
    let Some(close) = closing(tokens, using + 1) else { return };
    let is_name = |token: &TokenWithSpan| matches!(token.token, Token::Word(_) | Token::Comma);
    let is_query = words_at(tokens, using + 2, &["SELECT"]) || words_at(tokens, using + 2, &["TABLE"]);
    if !words_at(tokens, close + 1, &["AS"]) || is_query || !tokens[using + 2..close].iter().all(is_name) {
        return;
    }
    let Some(Token::Word(alias)) = tokens.get(close + 2).map(|token| token.token.clone()) else { return };
    let columns: Vec<TokenWithSpan> = tokens[using + 2..close].to_vec();
    tokens.drain(close + 1..=close + 2);
    let is_alias = |token: &Token| match token {
        Token::Word(word) if alias.quote_style.is_none() && word.quote_style.is_none() => {
            word.value.eq_ignore_ascii_case(&alias.value)
        }
        Token::Word(word) => word.value == alias.value,
        _ => false,
    };
    let mut at = 0;
    while at + 2 < tokens.len() {
        let is_named = is_alias(&tokens[at].token) && tokens[at + 1].token == Token::Period;
        let is_first = at == 0 || tokens[at - 1].token != Token::Period;
        if is_named && is_first && tokens[at + 2].token == Token::Mul {
            tokens.splice(at..at + 3, columns.clone());
        } else if is_named && is_first {
            tokens.drain(at..at + 2);
        }
        at += 1;
    }
}

/// `t.*` as the argument is `t`: its rows.
fn whole_row(tokens: &mut Vec<TokenWithSpan>, open: usize) {
    let is = |at: usize, token: &Token| tokens.get(at).is_some_and(|found| found.token == *token);
    let is_whole = is(open, &Token::LParen)
        && matches!(tokens.get(open + 1).map(|token| &token.token), Some(Token::Word(_)))
        && is(open + 2, &Token::Period)
        && is(open + 3, &Token::Mul)
        && is(open + 4, &Token::RParen);
    if is_whole {
        tokens.drain(open + 2..=open + 3);
    }
}

/// `ALL` is what is meant without it; `DISTINCT` becomes the first of the groups.
fn group_by(tokens: &mut Vec<TokenWithSpan>, at: usize) {
    let ends = |token: &Token| !matches!(token, Token::Word(_) | Token::LParen | Token::Number(..));
    let follows = tokens.get(at + 1).is_some_and(|token| !ends(&token.token));
    let next_is = |word: &str| words_at(tokens, at + 1, &[word]);
    if !follows || ["HAVING", "ORDER", "LIMIT", "WINDOW", "UNION"].iter().any(|word| next_is(word)) {
        return;
    }
    if words_at(tokens, at, &["ALL"]) {
        tokens.remove(at);
    } else if words_at(tokens, at, &["DISTINCT"]) {
        let span = tokens[at].span;
        tokens[at].token = Token::make_word(DISTINCT_SETS, None);
        tokens.insert(at + 1, TokenWithSpan { token: Token::Comma, span });
    }
}
