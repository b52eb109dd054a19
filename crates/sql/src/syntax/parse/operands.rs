//! Forms around an operand that the parser does not read, rewritten in the tokens.
//!
//! ```text
//! s NOT ILIKE ANY (array)            s !~~* ANY (array)
//! FETCH FIRST (n + 1) ROWS ONLY      LIMIT (n + 1)
//! (f(x)).*                           (f(x)).__all
//! ROWS FROM (f(x), g(y))             __rows_from (f(x), g(y))
//! f(a, VARIADIC array)               __variadic_f(a, array)
//! TABLE t                            SELECT * FROM t
//! ```

use datafusion_expr::sqlparser::tokenizer::{Token, TokenWithSpan, Word};

use super::any_values::closing;
use super::recursion::words_at;

/// Stands for `*` behind a value of several columns.
pub(crate) const ALL_FIELDS: &str = "__all";

/// The function of rows side by side.
pub(crate) const ROWS_FROM: &str = "__rows_from";

/// What the names of functions begin with whose last argument is the array of their arguments.
pub(crate) const VARIADIC: &str = "__variadic_";

/// Rewrites the tokens of a statement, among which are no spaces.
pub(super) fn rewrite(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 0;
    while at < tokens.len() {
        match &tokens[at].token {
            Token::Word(Word { value, quote_style: None, .. }) => match value.to_ascii_uppercase().as_str() {
                "LIKE" | "ILIKE" => at = quantified(tokens, at),
                "FETCH" => fetched(tokens, at),
                "ROWS" if words_at(tokens, at + 1, &["FROM"]) && is(tokens, at + 2, &Token::LParen) => {
                    tokens[at].token = Token::make_word(ROWS_FROM, None);
                    tokens.remove(at + 1);
                }
                "VARIADIC" => variadic(tokens, at),
                "TABLE" if is_query(tokens, at) => {
                    let span = tokens[at].span;
                    let words = [Token::make_keyword("SELECT"), Token::Mul, Token::make_keyword("FROM")];
                    tokens.splice(at..=at, words.map(|token| TokenWithSpan { token, span }));
                }
                _ => {}
            },
            Token::RParen if is(tokens, at + 1, &Token::Period) && is(tokens, at + 2, &Token::Mul) => {
                tokens[at + 2].token = Token::make_word(ALL_FIELDS, None);
            }
            _ => {}
        }
        at += 1;
    }
}

fn is(tokens: &[TokenWithSpan], at: usize, token: &Token) -> bool {
    tokens.get(at).is_some_and(|found| found.token == *token)
}

/// Whether `TABLE name` stands where a query may.
fn is_query(tokens: &[TokenWithSpan], at: usize) -> bool {
    const BEFORE: [&str; 7] = ["AS", "ALL", "UNION", "EXCEPT", "INTERSECT", "EXPLAIN", "ANALYZE"];
    if !matches!(tokens.get(at + 1).map(|token| &token.token), Some(Token::Word(_))) {
        return false;
    }
    match at.checked_sub(1).map(|before| &tokens[before].token) {
        None | Some(Token::LParen) => true,
        Some(Token::RParen) => words_at(tokens, 0, &["WITH"]),
        Some(_) => BEFORE.iter().any(|word| words_at(tokens, at - 1, &[word])),
    }
}

/// `[NOT] LIKE {ANY | ALL | SOME} (`: the operator of the same meaning. Returns where it stands.
fn quantified(tokens: &mut Vec<TokenWithSpan>, at: usize) -> usize {
    let is_quantified = ["ANY", "ALL", "SOME"].iter().any(|word| words_at(tokens, at + 1, &[word]));
    if !is_quantified || !is(tokens, at + 2, &Token::LParen) {
        return at;
    }
    let is_like = words_at(tokens, at, &["LIKE"]);
    let is_negated = at > 0 && words_at(tokens, at - 1, &["NOT"]);
    tokens[at].token = match (is_negated, is_like) {
        (false, true) => Token::DoubleTilde,
        (false, false) => Token::DoubleTildeAsterisk,
        (true, true) => Token::ExclamationMarkDoubleTilde,
        (true, false) => Token::ExclamationMarkDoubleTildeAsterisk,
    };
    if !is_negated {
        return at;
    }
    tokens.remove(at - 1);
    at - 1
}

/// `FETCH FIRST (e) ROWS ONLY` is `LIMIT (e)`.
fn fetched(tokens: &mut Vec<TokenWithSpan>, at: usize) {
    let is_fetch = words_at(tokens, at + 1, &["FIRST"]) || words_at(tokens, at + 1, &["NEXT"]);
    if !is_fetch || !is(tokens, at + 2, &Token::LParen) {
        return;
    }
    let Some(close) = closing(tokens, at + 2) else { return };
    let is_plain = ["ROW", "ROWS"].iter().any(|word| words_at(tokens, close + 1, &[word, "ONLY"]));
    if is_plain {
        tokens.drain(close + 1..=close + 2);
        tokens[at].token = Token::make_keyword("LIMIT");
        tokens.remove(at + 1);
    }
}

/// The word goes to the name of the function.
fn variadic(tokens: &mut Vec<TokenWithSpan>, at: usize) {
    let mut depth = 0;
    for before in (0..at).rev() {
        match &tokens[before].token {
            Token::RParen => depth += 1,
            Token::LParen if depth > 0 => depth -= 1,
            Token::LParen => {
                if let Some(Token::Word(name)) = before.checked_sub(1).map(|name| tokens[name].token.clone()) {
                    tokens[before - 1].token =
                        Token::make_word(&format!("{VARIADIC}{}", name.value.to_lowercase()), None);
                    tokens.remove(at);
                }
                return;
            }
            _ => {}
        }
    }
}
