//! `x = ANY (VALUES (1), (2))`, which the parser takes for a call of a function `values`.
//!
//! ```text
//! x >= ALL (VALUES (a), (b))   =   x >= ALL (SELECT * FROM (VALUES (a), (b)) AS __values)
//! ```

use datafusion_expr::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::recursion::words_at;

/// Rewrites the tokens of a statement, among which are no spaces.
pub(super) fn rewrite(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 1;
    while at + 2 < tokens.len() {
        let is_quantifier = ["ANY", "ALL", "SOME"].iter().any(|word| words_at(tokens, at, &[word]));
        // (Behind a word, as in UNION ALL, it is none.)
        let is_compared = !matches!(tokens[at - 1].token, Token::Word(_));
        if is_quantifier
            && is_compared
            && tokens[at + 1].token == Token::LParen
            && words_at(tokens, at + 2, &["VALUES"])
            && let Some(close) = closing(tokens, at + 1)
        {
            as_select(tokens, at + 1, close);
        }
        at += 1;
    }
}

/// The rows between two parentheses as a query.
pub(super) fn as_select(tokens: &mut Vec<TokenWithSpan>, open: usize, close: usize) {
    let span = tokens[open].span;
    let like = |token: Token| TokenWithSpan { token, span };
    let word = |word: &str| like(Token::make_word(word, None));
    tokens.splice(close..close, [like(Token::RParen), word("AS"), word("__values")]);
    let select = [word("SELECT"), like(Token::Mul), word("FROM"), like(Token::LParen)];
    tokens.splice(open + 1..open + 1, select);
}

/// The parenthesis that closes the one at `open`.
pub(super) fn closing(tokens: &[TokenWithSpan], open: usize) -> Option<usize> {
    let mut depth = 0;
    (open..tokens.len()).find(|at| {
        match tokens[*at].token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            _ => {}
        }
        depth == 0
    })
}
