//! `TRIM(BOTH FROM x)`, of which the parser wants to know what is trimmed: blanks.
//!
//! ```text
//! TRIM(TRAILING FROM x)   =   TRIM(TRAILING ' ' FROM x)
//! ```

use datafusion_expr::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::recursion::words_at;

/// Rewrites the tokens of a statement, among which are no spaces.
pub(super) fn rewrite(tokens: &mut Vec<TokenWithSpan>) {
    let is_side = |tokens: &[TokenWithSpan], at| {
        ["BOTH", "LEADING", "TRAILING"].iter().any(|side| words_at(tokens, at, &[side, "FROM"]))
    };
    let mut at = 0;
    while at + 3 < tokens.len() {
        if words_at(tokens, at, &["TRIM"]) && tokens[at + 1].token == Token::LParen && is_side(tokens, at + 2) {
            let span = tokens[at + 2].span;
            tokens.insert(at + 3, TokenWithSpan { token: Token::SingleQuotedString(" ".into()), span });
        }
        at += 1;
    }
}
