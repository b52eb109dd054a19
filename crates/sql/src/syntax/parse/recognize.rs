//! `MATCH_RECOGNIZE`, which the parser of this dialect does not read, as a function that it does.
//!
//! ```text
//! t AS a MATCH_RECOGNIZE (clause) AS m      __match_recognize((SELECT * FROM t AS a), 'clause') AS m
//! ```
//!
//! The clause is parsed here for its errors, which have places, and once more where it is planned.

use std::ops::Range;

use datafusion_expr::sqlparser::tokenizer::{Span, Token, TokenWithSpan, Word};

use crate::error::{ErrorKind, Result, SqlError, offset_of};
use crate::syntax::recognize::clause::Clause;
use crate::syntax::relation_calls::MATCH_RECOGNIZE;

/// Rewrites the tokens of a statement, among which are no spaces.
///
/// # Errors
/// Of the clause; `Syntax` where no table stands before it.
pub(super) fn rewrite(tokens: &mut Vec<TokenWithSpan>, text: &str) -> Result<()> {
    let mut at = 0;
    while at < tokens.len() {
        let begins = is(tokens, at, "MATCH_RECOGNIZE")
            && tokens.get(at + 1).is_some_and(|token| token.token == Token::LParen)
            && at > 0;
        at = if begins { clause(tokens, at, text)? } else { at + 1 };
    }
    Ok(())
}

fn clause(tokens: &mut Vec<TokenWithSpan>, at: usize, text: &str) -> Result<usize> {
    let place = tokens[at].clone();
    let offset = |location: (u64, u64)| offset_of(text, location.0, location.1);
    let start_of = |token: &TokenWithSpan| offset((token.span.start.line, token.span.start.column));
    let wrong = |message: &str| SqlError {
        position: Some(start_of(&place)),
        ..SqlError::new(ErrorKind::Syntax, message)
            .with_hint("Write FROM t MATCH_RECOGNIZE (ORDER BY .. PATTERN (..) ..).")
    };
    let end = closing(tokens, at + 1).ok_or_else(|| wrong("MATCH_RECOGNIZE lacks its closing parenthesis"))?;
    let table = table_before(tokens, at).ok_or_else(|| wrong("MATCH_RECOGNIZE follows a table"))?;

    let mut inside: Vec<TokenWithSpan> = tokens[at + 2..end].to_vec();
    let written = written(&inside);
    inside.push(TokenWithSpan { token: Token::EOF, span: tokens[end].span });
    Clause::of_tokens(inside)?;

    let like = |token: Token| TokenWithSpan { token, span: place.span };
    let word = |word: &str| like(Token::make_word(word, None));
    let mut call = vec![word(MATCH_RECOGNIZE), like(Token::LParen), like(Token::LParen)];
    call.extend([word("SELECT"), like(Token::Mul), word("FROM")]);
    call.extend(tokens[table.clone()].iter().cloned());
    call.extend([like(Token::RParen), like(Token::Comma), like(Token::SingleQuotedString(written))]);
    call.push(like(Token::RParen));
    let next = table.start + call.len();
    tokens.splice(table.start..end + 1, call);
    Ok(next)
}

/// The clause as text that is tokenized alike.
fn written(tokens: &[TokenWithSpan]) -> String {
    let mut text = String::new();
    let mut before: Option<Span> = None;
    for token in tokens {
        // (Signs that touch may be one sign.)
        if before.is_some_and(|before| before.end != token.span.start) {
            text.push(' ');
        }
        before = Some(token.span);
        text.push_str(&token.token.to_string());
    }
    text
}

/// The closing parenthesis of the one at `open`.
fn closing(tokens: &[TokenWithSpan], open: usize) -> Option<usize> {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen if depth == 1 => return Some(at),
            Token::RParen => depth -= 1,
            _ => {}
        }
    }
    None
}

/// The table that ends before `at`, with its alias.
fn table_before(tokens: &[TokenWithSpan], at: usize) -> Option<Range<usize>> {
    let last = at.checked_sub(1)?;
    // FROM t AS a, FROM t a: the alias is taken along.
    let without_alias = if last >= 1 && is(tokens, last - 1, "AS") {
        last.checked_sub(2)?
    } else if last >= 1
        && is_name(&tokens[last])
        && (is_name(&tokens[last - 1]) || tokens[last - 1].token == Token::RParen)
    {
        last - 1
    } else {
        last
    };
    let mut start = without_alias;
    if tokens[start].token == Token::RParen {
        let mut depth = 0;
        loop {
            match tokens[start].token {
                Token::RParen => depth += 1,
                Token::LParen if depth == 1 => break,
                Token::LParen => depth -= 1,
                _ => {}
            }
            start = start.checked_sub(1)?;
        }
        // A table function: its name.
        if start > 0 && is_name(&tokens[start - 1]) {
            start -= 1;
        }
        return Some(start..at);
    }
    if !is_name(&tokens[start]) {
        return None;
    }
    while start >= 2 && tokens[start - 1].token == Token::Period && is_name(&tokens[start - 2]) {
        start -= 2;
    }
    Some(start..at)
}

/// Whether the token may name a table.
fn is_name(token: &TokenWithSpan) -> bool {
    match &token.token {
        Token::Word(Word { value, quote_style: None, .. }) => {
            !["FROM", "JOIN", "AS", "ON", "AND", "LATERAL", "ONLY", "IN"]
                .iter()
                .any(|word| value.eq_ignore_ascii_case(word))
        }
        Token::Word(_) => true,
        _ => false,
    }
}

fn is(tokens: &[TokenWithSpan], at: usize, expected: &str) -> bool {
    tokens.get(at).is_some_and(|token| {
        matches!(&token.token, Token::Word(Word { value, quote_style: None, .. }) if value.eq_ignore_ascii_case(expected))
    })
}
