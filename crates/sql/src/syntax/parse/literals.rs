//! `'a'` and, on a line below, `'b'`: one literal, as the standard says.

use datafusion_expr::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::asof::placed;
use crate::error::{ErrorKind, Result, SqlError};

/// Joins literals that follow each other on different lines. (Among the tokens are no spaces.)
///
/// # Errors
/// `Syntax` for two on one line, of which the second would be taken for a name.
pub(super) fn join(tokens: &mut Vec<TokenWithSpan>, text: &str) -> Result<()> {
    let continues = |pair: &[TokenWithSpan]| is_literal(&pair[0].token) && is_plain(&pair[1].token);
    if !tokens.windows(2).any(continues) {
        return Ok(());
    }
    let mut joined: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    for token in tokens.drain(..) {
        let before = joined.last_mut().filter(|before| is_literal(&before.token));
        let (Some(before), Token::SingleQuotedString(more)) = (before, &token.token) else {
            joined.push(token);
            continue;
        };
        if before.span.end.line == token.span.start.line {
            let message = format!("syntax error at or near \"'{more}'\"");
            let hint = "Write || between texts to join them, or AS before a name.";
            return Err(placed(SqlError::new(ErrorKind::Syntax, message).with_hint(hint), &token, text));
        }
        if let Token::SingleQuotedString(literal) | Token::EscapedStringLiteral(literal) = &mut before.token {
            literal.push_str(more);
        }
        before.span.end = token.span.end;
    }
    *tokens = joined;
    Ok(())
}

fn is_literal(token: &Token) -> bool {
    matches!(token, Token::SingleQuotedString(_) | Token::EscapedStringLiteral(_))
}

fn is_plain(token: &Token) -> bool {
    matches!(token, Token::SingleQuotedString(_))
}
