//! Subscripts before `=` in SET, which the parser does not read: they travel within the name of the
//! column.

use datafusion_expr::sqlparser::tokenizer::{Token, TokenWithSpan, Word};

/// What the names of columns with subscripts begin with.
const SUBSCRIPTED: &str = "__subscripted ";

/// Puts subscripts before `=` in SET into the names of columns. Among the tokens are no spaces.
pub(super) fn rewrite(tokens: &mut Vec<TokenWithSpan>) {
    let is = |token: &TokenWithSpan, word: &str| matches!(&token.token, Token::Word(Word { value, quote_style: None, .. }) if value.eq_ignore_ascii_case(word));
    if !tokens.iter().any(|token| is(token, "UPDATE")) {
        return;
    }
    let mut at = 1;
    while at + 1 < tokens.len() {
        let begins = is(&tokens[at - 1], "SET") || tokens[at - 1].token == Token::Comma;
        if let (true, Token::Word(name), Token::LBracket) = (begins, &tokens[at].token, &tokens[at + 1].token)
            && let Some(end) = subscripts_end(tokens, at + 1)
            && tokens.get(end).is_some_and(|token| token.token == Token::Eq)
        {
            let column = match name.quote_style {
                Some(_) => name.value.clone(),
                None => name.value.to_lowercase(),
            };
            let texts: Vec<String> = tokens[at + 1..end].iter().map(|token| token.token.to_string()).collect();
            tokens[at].token = Token::make_word(&format!("{SUBSCRIPTED}{column}\u{0}{}", texts.join(" ")), Some('"'));
            tokens.drain(at + 1..end);
        }
        at += 1;
    }
}

/// The token behind the last of the brackets that open at `at`.
fn subscripts_end(tokens: &[TokenWithSpan], mut at: usize) -> Option<usize> {
    let mut depth = 0;
    loop {
        match tokens.get(at)?.token {
            Token::LBracket => depth += 1,
            Token::RBracket => depth -= 1,
            _ => {}
        }
        at += 1;
        if depth == 0 && tokens.get(at).is_none_or(|token| token.token != Token::LBracket) {
            return Some(at);
        }
    }
}

/// The column, and the text of the subscripts, that a name before `=` stands for.
pub(super) fn subscripted(name: &str) -> Option<(&str, &str)> {
    name.strip_prefix(SUBSCRIPTED)?.split_once('\u{0}')
}
