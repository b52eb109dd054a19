//! Forms of PostgreSQL 16, of DuckDB and of the standard that the parser does not read, rewritten
//! in the tokens.
//!
//! ```text
//! 0x1F, 0o17, 0b11                    31, 15, 3
//! 2 ** 3                              2 ^ 3
//! 7 // 2                              one operator, which `precedence` reads
//! ORDER BY x USING >                  ORDER BY x DESC
//! substring(x SIMILAR p ESCAPE e)     substring(x FROM p FOR e)
//! t.*::text                           t::text
//! U&'d!0061t' UESCAPE '!'             'dat'
//! ```

use datafusion_expr::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::any_values::closing;
use super::asof::placed;
use super::recursion::words_at;
use crate::error::{ErrorKind, Result, SqlError, offset_of};
use crate::syntax::precedence::DIVIDE_WHOLE;

/// Rewrites the tokens of a statement, among which are no spaces.
///
/// # Errors
/// `Unsupported` for parts of the rows that a standing query cannot choose; `Syntax` for escapes
/// that name no character.
pub(super) fn rewrite(tokens: &mut Vec<TokenWithSpan>, text: &str) -> Result<()> {
    let mut at = 0;
    while at < tokens.len() {
        match &tokens[at].token {
            Token::HexStringLiteral(_) => whole_number(tokens, at, text),
            Token::Number(digits, _) if digits == "0" && is_word(tokens, at + 1) => whole_number(tokens, at, text),
            Token::Mul if touches(tokens, at, &Token::Mul) => join(tokens, at, Token::Caret),
            Token::Mul if is_row_cast(tokens, at) => {
                tokens.drain(at - 1..=at);
                at -= 1;
            }
            Token::Div if touches(tokens, at, &Token::Div) => {
                join(tokens, at, Token::CustomBinaryOperator(DIVIDE_WHOLE.to_owned()));
            }
            Token::UnicodeStringLiteral(_) if words_at(tokens, at + 1, &["UESCAPE"]) => escaped(tokens, at, text)?,
            Token::Word(_) => word(tokens, at, text)?,
            _ => {}
        }
        at += 1;
    }
    Ok(())
}

fn word(tokens: &mut Vec<TokenWithSpan>, at: usize, text: &str) -> Result<()> {
    if words_at(tokens, at, &["SUBSTRING"]) {
        similar_part(tokens, at + 1);
    } else if is_sample(tokens, at) {
        let hint = "A sample would differ with every change: for one answer write ORDER BY random() LIMIT 100.";
        return Err(placed(SqlError::unsupported("USING SAMPLE", hint), &tokens[at], text));
    } else if words_at(tokens, at, &["USING"]) {
        let direction = match tokens.get(at + 1).map(|token| &token.token) {
            Some(Token::Gt) => "DESC",
            Some(Token::Lt) => "ASC",
            _ => return Ok(()),
        };
        join(tokens, at, Token::make_keyword(direction));
    } else if words_at(tokens, at, &["LIMIT"]) && is_percentage(tokens, at + 1) {
        let hint = "Write LIMIT with a number of rows, or with a query: LIMIT (SELECT count(*) / 2 FROM t).";
        return Err(placed(SqlError::unsupported("LIMIT of a percentage", hint), &tokens[at + 1], text));
    }
    Ok(())
}

/// `USING SAMPLE 10%`, `USING SAMPLE reservoir(50 ROWS)`; a table may be called so.
fn is_sample(tokens: &[TokenWithSpan], at: usize) -> bool {
    let is_method = ["RESERVOIR", "BERNOULLI", "SYSTEM"].iter().any(|method| words_at(tokens, at + 2, &[method]));
    let is_number = matches!(tokens.get(at + 2).map(|token| &token.token), Some(Token::Number(..)));
    words_at(tokens, at, &["USING", "SAMPLE"]) && (is_number || is_method)
}

/// Whether the next token is this one, without a space between.
fn touches(tokens: &[TokenWithSpan], at: usize, next: &Token) -> bool {
    tokens.get(at + 1).is_some_and(|token| token.token == *next && token.span.start == tokens[at].span.end)
}

/// One token in place of two.
fn join(tokens: &mut Vec<TokenWithSpan>, at: usize, token: Token) {
    tokens[at].span.end = tokens[at + 1].span.end;
    tokens[at].token = token;
    tokens.remove(at + 1);
}

fn is_word(tokens: &[TokenWithSpan], at: usize) -> bool {
    matches!(tokens.get(at).map(|token| &token.token), Some(Token::Word(_)))
}

/// Whether `t.*` is cast, which is its row.
fn is_row_cast(tokens: &[TokenWithSpan], at: usize) -> bool {
    let is_behind_name = at >= 2 && tokens[at - 1].token == Token::Period && is_word(tokens, at - 2);
    is_behind_name && tokens.get(at + 1).is_some_and(|token| token.token == Token::DoubleColon)
}

/// `50%` and `50 PERCENT`, behind which no operand stands.
fn is_percentage(tokens: &[TokenWithSpan], at: usize) -> bool {
    let is_number = matches!(tokens.get(at).map(|token| &token.token), Some(Token::Number(..)));
    let is_sign = tokens.get(at + 1).is_some_and(|token| token.token == Token::Mod);
    let ends = match tokens.get(at + 2).map(|token| &token.token) {
        None | Some(Token::RParen | Token::SemiColon) => true,
        Some(_) => words_at(tokens, at + 2, &["OFFSET"]),
    };
    is_number && (is_sign && ends || words_at(tokens, at + 1, &["PERCENT"]))
}

/// A whole number to another base than ten.
fn whole_number(tokens: &mut Vec<TokenWithSpan>, at: usize, text: &str) {
    let place = |at: usize, tokens: &[TokenWithSpan]| {
        let start = tokens[at].span.start;
        offset_of(text, start.line, start.column)
    };
    let start = place(at, tokens);
    let written: String =
        text[start..].chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect::<String>().to_lowercase();
    let base = match written.get(..2) {
        Some("0x") => 16,
        Some("0o") => 8,
        Some("0b") => 2,
        _ => return,
    };
    let Ok(number) = u128::from_str_radix(&written[2..].replace('_', ""), base) else { return };
    let n_tokens = (at..tokens.len()).take_while(|at| place(*at, tokens) < start + written.len()).count();
    tokens.drain(at + 1..at + n_tokens);
    tokens[at].token = Token::Number(number.to_string(), false);
}

/// `(x SIMILAR p ESCAPE e)` as `(x FROM p FOR e)`.
fn similar_part(tokens: &mut [TokenWithSpan], open: usize) {
    if tokens.get(open).is_none_or(|token| token.token != Token::LParen) {
        return;
    }
    let Some(close) = closing(tokens, open) else { return };
    let mut depth = 0;
    let mut words = [("SIMILAR", "FROM"), ("ESCAPE", "FOR")].into_iter().peekable();
    for at in open + 1..close {
        match tokens[at].token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            _ => {}
        }
        let Some((written, read)) = words.peek() else { return };
        if depth == 0 && words_at(tokens, at, &[written]) && !words_at(tokens, at + 1, &["TO"]) {
            tokens[at].token = Token::make_keyword(read);
            words.next();
        }
    }
}

/// `U&'d!0061t' UESCAPE '!'` as the text that it says.
fn escaped(tokens: &mut Vec<TokenWithSpan>, at: usize, text: &str) -> Result<()> {
    let Some(Token::SingleQuotedString(escape)) = tokens.get(at + 2).map(|token| &token.token) else { return Ok(()) };
    let mut characters = escape.chars();
    let (Some(escape), None) = (characters.next(), characters.next()) else {
        let error = SqlError::new(ErrorKind::Syntax, "invalid Unicode escape character");
        return Err(placed(error, &tokens[at + 2], text));
    };
    let (start, end) = (tokens[at].span.start, tokens[at].span.end);
    let written = &text[offset_of(text, start.line, start.column)..offset_of(text, end.line, end.column)];
    let inside = written.find('\'').map_or("", |quote| written[quote + 1..].trim_end_matches('\''));
    let Some(read) = unescaped(&inside.replace("''", "'"), escape) else {
        let error = SqlError::new(ErrorKind::Syntax, "invalid Unicode escape")
            .with_hint(format!("Unicode escapes are {escape}XXXX or {escape}+XXXXXX."));
        return Err(placed(error, &tokens[at], text));
    };
    tokens[at].token = Token::SingleQuotedString(read);
    tokens.drain(at + 1..=at + 2);
    Ok(())
}

/// A text whose characters may be written by their numbers.
fn unescaped(text: &str, escape: char) -> Option<String> {
    let mut read = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(escape) {
        read.push_str(&rest[..at]);
        rest = &rest[at + escape.len_utf8()..];
        if let Some(behind) = rest.strip_prefix(escape) {
            (rest, _) = (behind, read.push(escape));
            continue;
        }
        let (digits, n_digits) = rest.strip_prefix('+').map_or((rest, 4), |digits| (digits, 6));
        let number = u32::from_str_radix(digits.get(..n_digits)?, 16).ok()?;
        read.push(char::from_u32(number)?);
        rest = &digits[n_digits..];
    }
    read.push_str(rest);
    Some(read)
}

#[cfg(test)]
mod tests {
    use super::unescaped;

    #[test]
    fn characters_are_read_by_their_numbers() {
        assert_eq!(unescaped("d!0061t!+000061!!", '!').as_deref(), Some("data!"));
        assert_eq!(unescaped("d!00", '!'), None);
    }
}
