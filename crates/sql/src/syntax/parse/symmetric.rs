//! `BETWEEN SYMMETRIC`, which the parser does not read: the word becomes an operator before the
//! first operand, one that PostgreSQL no longer has. `passes/tree/symmetric.rs` spells it out.

use datafusion_expr::sqlparser::tokenizer::{Token, TokenWithSpan, Word};

/// Rewrites the tokens of a statement, among which are no spaces.
pub(super) fn rewrite(tokens: &mut [TokenWithSpan]) {
    let is = |token: &Token, expected: &str| matches!(token, Token::Word(Word { value, quote_style: None, .. }) if value.eq_ignore_ascii_case(expected));
    for at in 1..tokens.len() {
        if is(&tokens[at].token, "SYMMETRIC") && is(&tokens[at - 1].token, "BETWEEN") {
            tokens[at].token = Token::DoubleExclamationMark;
        }
    }
}
