//! Clauses of WITH that `sqlparser` does not read, as named queries with reserved names.
//!
//! ```text
//! WITH MUTUALLY RECURSIVE (RETURN AT RECURSION LIMIT 9) a (..) ..  WITH RECURSIVE __mutually AS (SELECT 'return', 9), a (..) ..
//! r AS (..) SEARCH DEPTH FIRST BY a, b SET s                       r AS (..), __search AS (SELECT 'depth', a, b, s)
//! r AS (..) CYCLE a, b SET m TO v DEFAULT w USING p                r AS (..), __cycle AS (SELECT v, w, a, b, m, p)
//! ```
//!
//! [`recursion`](crate::passes::tree) takes these out again.

use std::ops::Range;

use datafusion_expr::sqlparser::tokenizer::{Token, TokenWithSpan, Word};

use super::asof::placed;
use crate::error::{ErrorKind, Result, SqlError};
use crate::syntax::relation_calls::{CYCLE, MUTUALLY, SEARCH};

/// Rewrites the tokens of a statement, which have no spaces among them.
///
/// # Errors
/// `Syntax` for a clause that lacks a part; placed in `text`.
pub(super) fn rewrite(tokens: &mut Vec<TokenWithSpan>, text: &str) -> Result<()> {
    let mut at = 0;
    while at < tokens.len() {
        if words_at(tokens, at, &["WITH", "MUTUALLY", "RECURSIVE"]) {
            mutually(tokens, at, text)?;
        } else if tokens[at].token == Token::RParen {
            clause(tokens, at + 1, text)?;
        }
        at += 1;
    }
    Ok(())
}

/// Rewrites the words after `WITH`, which is at `at`, and the limit of rounds behind these.
fn mutually(tokens: &mut Vec<TokenWithSpan>, at: usize, text: &str) -> Result<()> {
    let place = tokens[at + 1].clone();
    let (end, select) = match tokens.get(at + 3).map(|token| &token.token) {
        Some(Token::LParen) => round_limit(tokens, at + 4, text)?,
        _ => (at + 3, vec![string("none")]),
    };
    let mut named = vec![word("RECURSIVE")];
    named.extend(query(MUTUALLY, select));
    named.push(Token::Comma);
    replace(tokens, at + 1..end, named, &place);
    Ok(())
}

/// `[RETURN AT | ERROR AT] RECURSION LIMIT n)`: where it ends, and what is selected in its place.
fn round_limit(tokens: &[TokenWithSpan], from: usize, text: &str) -> Result<(usize, Vec<Token>)> {
    let forms: [(&[&str], &str); 3] = [
        (&["RETURN", "AT", "RECURSION", "LIMIT"], "return"),
        (&["ERROR", "AT", "RECURSION", "LIMIT"], "error"),
        (&["RECURSION", "LIMIT"], "error"),
    ];
    let form = forms.iter().find(|(words, _)| words_at(tokens, from, words));
    let number = form.map(|(words, _)| from + words.len()).map(|at| match tokens.get(at).map(|token| &token.token) {
        Some(Token::Eq) => at + 1,
        _ => at,
    });
    if let (Some((_, kind)), Some(at)) = (form, number)
        && let Some(Token::Number(digits, _)) = tokens.get(at).map(|token| &token.token)
        && digits.parse::<u64>().is_ok_and(|rounds| rounds > 0)
        && tokens.get(at + 1).is_some_and(|token| token.token == Token::RParen)
    {
        return Ok((at + 2, vec![string(kind), Token::Comma, Token::Number(digits.clone(), false)]));
    }
    let error = SqlError::new(ErrorKind::Syntax, "WITH MUTUALLY RECURSIVE takes a limit of rounds in its parentheses")
        .with_hint("Write (RETURN AT RECURSION LIMIT 100) or (ERROR AT RECURSION LIMIT 100), with a number from 1.");
    Err(placed(error, tokens.get(from).unwrap_or(&tokens[from - 1]), text))
}

/// Rewrites the SEARCH or CYCLE that begins at `at`, if there is one.
fn clause(tokens: &mut Vec<TokenWithSpan>, at: usize, text: &str) -> Result<()> {
    let is_search = |order| words_at(tokens, at, &["SEARCH", order, "FIRST", "BY"]);
    let (end, name, select) = if is_search("DEPTH") {
        let (end, select) = search(tokens, at, "depth", text)?;
        (end, SEARCH, select)
    } else if is_search("BREADTH") {
        let (end, select) = search(tokens, at, "breadth", text)?;
        (end, SEARCH, select)
    } else if words_at(tokens, at, &["CYCLE"]) && names(tokens, at + 1).is_some_and(|end| is(tokens, end, "SET")) {
        let (end, select) = cycle(tokens, at, text)?;
        (end, CYCLE, select)
    } else {
        return Ok(());
    };
    let place = tokens[at].clone();
    let mut named = vec![Token::Comma];
    named.extend(query(name, select));
    replace(tokens, at..end, named, &place);
    Ok(())
}

fn search(tokens: &[TokenWithSpan], at: usize, order: &str, text: &str) -> Result<(usize, Vec<Token>)> {
    let found = names(tokens, at + 4).filter(|end| is(tokens, *end, "SET") && is_name(tokens, end + 1));
    let Some(set) = found else {
        let error = SqlError::new(ErrorKind::Syntax, "SEARCH lacks its columns")
            .with_hint("Write SEARCH DEPTH FIRST BY column SET name_of_order.");
        return Err(placed(error, &tokens[at], text));
    };
    let mut select = vec![string(order), Token::Comma];
    select.extend(plain(&tokens[at + 4..set]));
    select.extend([Token::Comma, tokens[set + 1].token.clone()]);
    Ok((set + 2, select))
}

fn cycle(tokens: &[TokenWithSpan], at: usize, text: &str) -> Result<(usize, Vec<Token>)> {
    let lacking = || {
        let error = SqlError::new(ErrorKind::Syntax, "CYCLE lacks a part")
            .with_hint("Write CYCLE column SET is_cycle USING path.");
        placed(error, &tokens[at], text)
    };
    let set = names(tokens, at + 1).ok_or_else(lacking)?;
    let using = (set + 2..tokens.len()).find(|using| is(tokens, *using, "USING"));
    let using = using.filter(|using| is_name(tokens, set + 1) && is_name(tokens, using + 1)).ok_or_else(lacking)?;
    let (mark, unmarked) = match using == set + 2 {
        true => (vec![word("TRUE")], vec![word("FALSE")]),
        false => {
            let default = (set + 3..using).find(|at| is(tokens, *at, "DEFAULT")).ok_or_else(lacking)?;
            if !is(tokens, set + 2, "TO") || default == set + 3 || default + 1 == using {
                return Err(lacking());
            }
            (plain(&tokens[set + 3..default]), plain(&tokens[default + 1..using]))
        }
    };
    let columns = plain(&tokens[at + 1..set]);
    let (marks, paths) = (vec![tokens[set + 1].token.clone()], vec![tokens[using + 1].token.clone()]);
    Ok((using + 2, [mark, unmarked, columns, marks, paths].join(&Token::Comma)))
}

/// Where a list of names ends that begins at `from`.
fn names(tokens: &[TokenWithSpan], from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        if !is_name(tokens, at) {
            return None;
        }
        at += 1;
        if tokens.get(at).is_none_or(|token| token.token != Token::Comma) {
            return Some(at);
        }
        at += 1;
    }
}

/// `name AS (SELECT ..)`.
fn query(name: &str, select: Vec<Token>) -> Vec<Token> {
    let mut named = vec![word(name), word("AS"), Token::LParen, word("SELECT")];
    named.extend(select);
    named.push(Token::RParen);
    named
}

fn replace(tokens: &mut Vec<TokenWithSpan>, range: Range<usize>, by: Vec<Token>, place: &TokenWithSpan) {
    tokens.splice(range, by.into_iter().map(|token| TokenWithSpan { token, span: place.span }));
}

fn plain(tokens: &[TokenWithSpan]) -> Vec<Token> {
    tokens.iter().map(|token| token.token.clone()).collect()
}

fn word(word: &str) -> Token {
    Token::make_word(word, None)
}

fn string(text: &str) -> Token {
    Token::SingleQuotedString(text.to_string())
}

pub(super) fn words_at(tokens: &[TokenWithSpan], at: usize, words: &[&str]) -> bool {
    words.iter().enumerate().all(|(n, word)| is(tokens, at + n, word))
}

fn is(tokens: &[TokenWithSpan], at: usize, expected: &str) -> bool {
    matches!(tokens.get(at).map(|token| &token.token),
        Some(Token::Word(Word { value, quote_style: None, .. })) if value.eq_ignore_ascii_case(expected))
}

fn is_name(tokens: &[TokenWithSpan], at: usize) -> bool {
    matches!(tokens.get(at).map(|token| &token.token), Some(Token::Word(_)))
}
