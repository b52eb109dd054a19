//! As-of joins in the spellings that `sqlparser` does not read, as the one that it does.
//!
//! ```text
//! a [LEFT] ASOF [LEFT] JOIN r ON c                DuckDB, ClickHouse   a ASOF JOIN r MATCH_CONDITION (__asof_left()) ON c
//! a [LEFT] JOIN r FOR SYSTEM_TIME AS OF a.ts ON c Flink                a ASOF JOIN r MATCH_CONDITION (__asof_left(a.ts)) ON c
//! a [LEFT] ASOF JOIN r MATCH_CONDITION (p) ON c   Snowflake, Feldera   a ASOF JOIN r MATCH_CONDITION (p) ON c
//! ```
//!
//! Without LEFT, the function is `__asof_inner`.

use datafusion_expr::sqlparser::tokenizer::{Token, TokenWithSpan, Word};

use crate::error::{ErrorKind, Result, SqlError, offset_of};
use crate::syntax::relation_calls::{ASOF_INNER, ASOF_LEFT};

/// Words that end a table of FROM.
const ENDS: [&str; 21] = [
    "ON",
    "LEFT",
    "RIGHT",
    "FULL",
    "INNER",
    "ASOF",
    "OFFSET",
    "FETCH",
    "USING",
    "MATCH_CONDITION",
    "JOIN",
    "CROSS",
    "NATURAL",
    "WHERE",
    "GROUP",
    "HAVING",
    "ORDER",
    "LIMIT",
    "UNION",
    "EXCEPT",
    "INTERSECT",
];

/// Rewrites the tokens of a statement.
///
/// # Errors
/// `Unsupported` for as-of joins of other kinds, `Syntax` for a time that is no column; placed in
/// `text`.
pub(super) fn rewrite(tokens: &mut Vec<TokenWithSpan>, text: &str) -> Result<()> {
    tokens.retain(|token| !matches!(token.token, Token::Whitespace(_)));
    let mut at = 0;
    while at < tokens.len() {
        if is(tokens, at, "GLOBAL")
            && ["JOIN", "LEFT", "INNER", "RIGHT", "FULL"].iter().any(|next| is(tokens, at + 1, next))
        {
            let error = SqlError::unsupported("GLOBAL JOIN", "Leave the word GLOBAL out.");
            return Err(placed(error, &tokens[at], text));
        }
        let begins = ["JOIN", "LEFT", "INNER", "RIGHT", "FULL"].iter().any(|next| is(tokens, at + 1, next));
        if is(tokens, at, "ASOF") && begins {
            at = asof_join(tokens, at, text)?;
        } else if ["FOR", "SYSTEM_TIME", "AS", "OF"].iter().enumerate().all(|(n, word)| is(tokens, at + n, word)) {
            at = system_time(tokens, at, text)?;
        } else {
            at += 1;
        }
    }
    Ok(())
}

/// Rewrites the join whose word `ASOF` is at `at`; returns where to go on.
fn asof_join(tokens: &mut Vec<TokenWithSpan>, at: usize, text: &str) -> Result<usize> {
    let hint = "An as-of join keeps the left rows, or only those with a match: write ASOF LEFT JOIN or ASOF JOIN.";
    if is(tokens, at + 1, "RIGHT") || is(tokens, at + 1, "FULL") {
        return Err(placed(SqlError::unsupported("ASOF RIGHT and FULL JOIN", hint), &tokens[at], text));
    }
    let start = if at > 0 && ["LEFT", "INNER"].iter().any(|kind| is(tokens, at - 1, kind)) { at - 1 } else { at };
    let Some(join) = (at + 1..tokens.len().min(at + 4)).find(|at| is(tokens, *at, "JOIN")) else { return Ok(at + 1) };
    let kinds: Vec<TokenWithSpan> = [&tokens[start..at], &tokens[at + 1..join]].concat();
    if kinds.iter().any(|kind| !["LEFT", "INNER", "OUTER"].iter().any(|known| word_is(kind, known))) {
        return Ok(at + 1);
    }
    let end = end_of_table(tokens, join + 1);
    if is(tokens, end, "MATCH_CONDITION") {
        // Left rows without a match are kept, as in Snowflake.
        if let Some(inner) = kinds.iter().find(|kind| word_is(kind, "INNER")) {
            let hint = "MATCH_CONDITION keeps left rows without a match; write ASOF JOIN .. ON .. AND a.t >= r.t for the others.";
            return Err(placed(SqlError::unsupported("an inner join with MATCH_CONDITION", hint), inner, text));
        }
    } else {
        let kind = if kinds.iter().any(|kind| word_is(kind, "LEFT")) { ASOF_LEFT } else { ASOF_INNER };
        let place = tokens[at].clone();
        tokens.splice(end..end, match_condition(&place, kind, vec![]));
    }
    let word = tokens[at].clone();
    tokens.splice(start..join, [word]);
    Ok(start + 2)
}

/// `MATCH_CONDITION (kind(arguments))`.
fn match_condition(place: &TokenWithSpan, kind: &str, arguments: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let like = |token: Token| TokenWithSpan { token, span: place.span };
    let mut condition =
        vec![named(place, "MATCH_CONDITION"), like(Token::LParen), named(place, kind), like(Token::LParen)];
    condition.extend(arguments);
    condition.extend([like(Token::RParen), like(Token::RParen)]);
    condition
}

/// Rewrites the join to whose table `FOR SYSTEM_TIME AS OF`, at `at`, belongs; returns where to go
/// on.
fn system_time(tokens: &mut Vec<TokenWithSpan>, at: usize, text: &str) -> Result<usize> {
    let is_name = |token: &TokenWithSpan| matches!(token.token, Token::Word(_) | Token::Period);
    let joined = (0..at).rev().find(|before| is(tokens, *before, "JOIN") || !is_name(&tokens[*before]));
    let Some(join) = joined.filter(|join| is(tokens, *join, "JOIN")) else {
        let hint = "Reads see the present; keep history in a table with a time column. JOIN r FOR SYSTEM_TIME AS OF a.ts looks up a past version.";
        return Err(placed(SqlError::unsupported("FOR SYSTEM_TIME AS OF", hint), &tokens[at], text));
    };
    let first = at + 4;
    let parts =
        tokens[first..].chunks(2).take_while(|pair| matches!(pair, [name, ..] if matches!(name.token, Token::Word(_))));
    let parts = parts.scan(true, |goes_on, pair| {
        let shown = *goes_on;
        *goes_on = pair.get(1).is_some_and(|next| next.token == Token::Period);
        shown.then_some(())
    });
    let end = first + (2 * parts.count()).saturating_sub(1);
    let condition = Some(end_of_table(tokens, end)).filter(|end| is(tokens, *end, "ON"));
    let (Some(condition), true) = (condition, end > first) else {
        let error = SqlError::new(ErrorKind::Syntax, "FOR SYSTEM_TIME AS OF wants a column, and the join a condition")
            .with_hint("Write a JOIN r FOR SYSTEM_TIME AS OF a.ts ON a.k = r.k.");
        return Err(placed(error, &tokens[at], text));
    };
    let place = tokens[at].clone();
    let mut start = join;
    while start > 0 && ["LEFT", "INNER", "OUTER"].iter().any(|kind| is(tokens, start - 1, kind)) {
        start -= 1;
    }
    let kind = if (start..join).any(|at| is(tokens, at, "LEFT")) { ASOF_LEFT } else { ASOF_INNER };
    let time = tokens[first..end].to_vec();
    tokens.splice(condition..condition, match_condition(&place, kind, time));
    tokens.drain(at..end);
    tokens.splice(start..join, [named(&place, "ASOF")]);
    Ok(start + 2)
}

/// Where the table ends that begins at `from`.
fn end_of_table(tokens: &[TokenWithSpan], from: usize) -> usize {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate().skip(from) {
        match &token.token {
            Token::LParen => depth += 1,
            Token::RParen if depth == 0 => return at,
            Token::RParen => depth -= 1,
            Token::Comma | Token::SemiColon | Token::EOF if depth == 0 => return at,
            _ if depth == 0 && ENDS.iter().any(|word| word_is(token, word)) => return at,
            _ => {}
        }
    }
    tokens.len()
}

fn is(tokens: &[TokenWithSpan], at: usize, expected: &str) -> bool {
    tokens.get(at).is_some_and(|token| word_is(token, expected))
}

fn word_is(token: &TokenWithSpan, expected: &str) -> bool {
    matches!(&token.token, Token::Word(Word { value, quote_style: None, .. }) if value.eq_ignore_ascii_case(expected))
}

/// A word in the place of a token.
fn named(place: &TokenWithSpan, word: &str) -> TokenWithSpan {
    TokenWithSpan { token: Token::make_word(word, None), span: place.span }
}

pub(super) fn placed(error: SqlError, token: &TokenWithSpan, text: &str) -> SqlError {
    let start = token.span.start;
    SqlError { position: Some(offset_of(text, start.line, start.column)), ..error }
}
