//! Literals of a type that the parser does not take for one, and the clock to some digits.
//!
//! ```text
//! bpchar 'ab '            CAST('ab ' AS bpchar)
//! N'ab'                   'ab'
//! current_timestamp(0)    CAST(current_timestamp AS timestamptz(0))
//! interval(0) '1.6 s'     CAST('1.6 s' AS interval(0))
//! '1 h'::interval PRECEDING     INTERVAL '1 h' PRECEDING
//! ```

use datafusion_expr::sqlparser::tokenizer::{Token, TokenWithSpan, Word};

use super::recursion::words_at;
use crate::resolve::types::refused;

/// Rewrites the tokens of a statement, among which are no spaces.
pub(super) fn rewrite(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 0;
    while at < tokens.len() {
        if is_bound(tokens, at) {
            let text = tokens[at].token.clone();
            tokens[at].token = Token::make_keyword("INTERVAL");
            tokens[at + 1].token = text;
            tokens.remove(at + 2);
        }
        match &tokens[at].token {
            Token::NationalStringLiteral(text) => tokens[at].token = Token::SingleQuotedString(text.clone()),
            Token::Word(Word { value, quote_style: None, .. }) => {
                let name = value.to_ascii_lowercase();
                if let Some(of) = clock_type(&name) {
                    to_digits(tokens, at, of);
                } else if name == "interval" {
                    interval_of_digits(tokens, at);
                } else if is_type(&name) && is_text(tokens, at + 1) {
                    let text = tokens.remove(at + 1);
                    let name = tokens[at].token.clone();
                    replace(tokens, at, [word("CAST"), Token::LParen, text.token, word("AS"), name, Token::RParen]);
                }
            }
            _ => {}
        }
        at += 1;
    }
}

/// Whether a name is one of a type, and of no option that one would write before a text (`path`).
fn is_type(name: &str) -> bool {
    const REFUSED: [&str; 7] = ["inet", "cidr", "macaddr", "macaddr8", "money", "tsvector", "tsquery"];
    matches!(name, "bpchar" | "nchar") || REFUSED.contains(&name) || name.ends_with("range") && refused(name).is_some()
}

/// Whether an interval that is cast from a text is the bound of a frame.
fn is_bound(tokens: &[TokenWithSpan], at: usize) -> bool {
    let is_cast = tokens.get(at + 1).is_some_and(|token| token.token == Token::DoubleColon);
    let ends = |word| words_at(tokens, at + 2, &["INTERVAL", word]);
    is_text(tokens, at) && is_cast && (ends("PRECEDING") || ends("FOLLOWING"))
}

fn is_text(tokens: &[TokenWithSpan], at: usize) -> bool {
    matches!(tokens.get(at).map(|token| &token.token), Some(Token::SingleQuotedString(_)))
}

/// The type of a reading of the clock.
fn clock_type(name: &str) -> Option<&'static str> {
    match name {
        "current_timestamp" => Some("TIMESTAMPTZ"),
        "localtimestamp" => Some("TIMESTAMP"),
        "current_time" | "localtime" => Some("TIME"),
        _ => None,
    }
}

/// A reading of the clock with a number of digits in parentheses.
fn to_digits(tokens: &mut Vec<TokenWithSpan>, at: usize, of: &str) {
    let is = |at: usize, token: &Token| tokens.get(at).is_some_and(|found| found.token == *token);
    let is_number = matches!(tokens.get(at + 2).map(|token| &token.token), Some(Token::Number(..)));
    let is_cast = at > 1 && words_at(tokens, at - 1, &["AS"]);
    if is_cast || !is_number || !is(at + 1, &Token::LParen) || !is(at + 3, &Token::RParen) {
        return;
    }
    let digits = tokens[at + 2].token.clone();
    tokens.drain(at + 1..at + 4);
    let clock = tokens[at].token.clone();
    let parts =
        [word("CAST"), Token::LParen, clock, word("AS"), word(of), Token::LParen, digits, Token::RParen, Token::RParen];
    replace(tokens, at, parts);
}

/// `interval(0) '1.6 s'`, of which the parser drops the digits.
fn interval_of_digits(tokens: &mut Vec<TokenWithSpan>, at: usize) {
    let is = |at: usize, token: &Token| tokens.get(at).is_some_and(|found| found.token == *token);
    let is_number = matches!(tokens.get(at + 2).map(|token| &token.token), Some(Token::Number(..)));
    if !is_number || !is(at + 1, &Token::LParen) || !is(at + 3, &Token::RParen) || !is_text(tokens, at + 4) {
        return;
    }
    let of: Vec<TokenWithSpan> = tokens.drain(at + 1..at + 4).collect();
    let text = tokens.remove(at + 1);
    let of = of.into_iter().map(|token| token.token);
    let cast = [word("CAST"), Token::LParen, text.token, word("AS"), word("INTERVAL")];
    replace(tokens, at, cast.into_iter().chain(of).chain([Token::RParen]));
}

/// Puts tokens in the place of one.
fn replace(tokens: &mut Vec<TokenWithSpan>, at: usize, with: impl IntoIterator<Item = Token>) {
    let span = tokens[at].span;
    tokens.splice(at..=at, with.into_iter().map(|token| TokenWithSpan { token, span }));
}

fn word(text: &str) -> Token {
    Token::make_keyword(text)
}
