//! Words that are taken out of the tokens before `sqlparser` reads them, which does not know them.

use datafusion_expr::sqlparser::tokenizer::{Token, TokenWithSpan, Word};

use crate::syntax::statement::Overriding;

/// Takes `OVERRIDING {SYSTEM | USER} VALUE` of an INSERT out of the tokens, which `sqlparser` does
/// not know.
pub(super) fn take_overriding(tokens: &mut Vec<TokenWithSpan>) -> Overriding {
    let word = |at: usize| match &tokens[at].token {
        Token::Word(Word { value, quote_style: None, .. }) => Some(value.to_uppercase()),
        _ => None,
    };
    let solid: Vec<usize> = (0..tokens.len()).filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_))).collect();
    let found = solid.windows(3).find_map(|places| {
        let words = [word(places[0])?, word(places[1])?, word(places[2])?];
        let said = match (words[0].as_str(), words[1].as_str(), words[2].as_str()) {
            ("OVERRIDING", "SYSTEM", "VALUE") => Overriding::System,
            ("OVERRIDING", "USER", "VALUE") => Overriding::User,
            _ => return None,
        };
        Some((said, places[0]..=places[2]))
    });
    let Some((said, places)) = found else { return Overriding::Unsaid };
    tokens.drain(places);
    said
}

/// Takes `WITH DATA` at the end of `CREATE .. AS query` out of the tokens. `WITH NO DATA` asks for
/// no rows of a table; a view is current all the same.
pub(super) fn take_with_data(tokens: &mut Vec<TokenWithSpan>) {
    let word = |token: &TokenWithSpan| match &token.token {
        Token::Word(Word { value, quote_style: None, .. }) => value.to_uppercase(),
        _ => String::new(),
    };
    let solid: Vec<usize> = (0..tokens.len())
        .filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_) | Token::EOF | Token::SemiColon))
        .collect();
    let words: Vec<String> = solid.iter().map(|at| word(&tokens[*at])).collect();
    let is = |expected: &[&str]| words.iter().map(String::as_str).collect::<Vec<_>>().ends_with(expected);
    let n_words = match (words.first().map(String::as_str), is(&["WITH", "DATA"]), is(&["WITH", "NO", "DATA"])) {
        (Some("CREATE"), true, _) => 2,
        (Some("CREATE"), _, true) => 3,
        _ => return,
    };
    let of_table = words.iter().take(4).any(|word| word == "TABLE");
    let first = solid[solid.len() - n_words];
    if n_words == 3 && of_table {
        // (Three tokens in the place of three.)
        let places = &solid[solid.len() - 3..];
        let put = |token: &mut TokenWithSpan, with: Token| token.token = with;
        put(&mut tokens[places[0]], Token::make_keyword("LIMIT"));
        put(&mut tokens[places[1]], Token::Number("0".into(), false));
        tokens.remove(places[2]);
        return;
    }
    tokens.drain(first..=solid[solid.len() - 1]);
}

/// Takes `AS OF time` out of the tokens, and returns those of the time. `sqlparser` would read `of`
/// as an alias. The time goes on to `UP TO`, `WITH`, or the end.
pub(super) fn take_as_of(tokens: &mut Vec<TokenWithSpan>) -> Option<Vec<TokenWithSpan>> {
    let word = |token: &Token| match token {
        Token::Word(Word { value, quote_style: None, .. }) => Some(value.to_uppercase()),
        _ => None,
    };
    let is_space = |token: &Token| matches!(token, Token::Whitespace(_));
    let mut depth = 0;
    let mut start = None;
    for (at, token) in tokens.iter().enumerate() {
        match &token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            other if depth == 0 && word(other).as_deref() == Some("AS") => {
                let next = (at + 1..tokens.len()).find(|next| !is_space(&tokens[*next].token));
                let of = next.filter(|next| word(&tokens[*next].token).as_deref() == Some("OF"));
                // An alias may be called `of`.
                let then = of.and_then(|of| tokens[of + 1..].iter().find(|token| !is_space(&token.token)));
                let is_alias = then.is_none_or(|token| {
                    matches!(token.token, Token::Comma | Token::EOF) || word(&token.token).as_deref() == Some("FROM")
                });
                start = of.filter(|_| !is_alias).map(|of| (at, of));
                if start.is_some() {
                    break;
                }
            }
            _ => {}
        }
    }
    let (start, of) = start?;
    let ends = |token: &TokenWithSpan| {
        matches!(token.token, Token::EOF) || matches!(word(&token.token).as_deref(), Some("UP" | "WITH"))
    };
    let end = (of + 1..tokens.len()).find(|at| ends(&tokens[*at])).unwrap_or(tokens.len());
    let taken: Vec<TokenWithSpan> = tokens.drain(start..end).collect();
    Some(taken.into_iter().skip(of + 1 - start).collect())
}

/// Leaves out the word `TABLE` before the first argument of a table function, or after its
/// name: the table is an argument like others. Also `TABLE(` around the whole call: the call is a
/// table like others.
pub(super) fn tables_of_windows(tokens: &mut Vec<TokenWithSpan>) {
    const CALLS: [&str; 5] = ["TUMBLE", "HOP", "CUMULATE", "SESSION", "SPLIT"];
    let word = |token: &TokenWithSpan, words: &[&str]| match &token.token {
        Token::Word(Word { value, quote_style: None, .. }) => words.iter().any(|word| value.eq_ignore_ascii_case(word)),
        _ => false,
    };
    let is_space = |token: &TokenWithSpan| matches!(token.token, Token::Whitespace(_));
    let mut before: Vec<usize> = Vec::new();
    let mut dropped = Vec::new();
    // The open parentheses, and whether each is that of `TABLE(` around a call.
    let mut open: Vec<bool> = Vec::new();
    for at in (0..tokens.len()).filter(|&at| !is_space(&tokens[at])) {
        let last = |n: usize| before.len().checked_sub(n).map(|index| &tokens[before[index]]);
        if word(&tokens[at], &["TABLE"])
            && let (Some(opening), Some(function)) = (last(1), last(2))
            && (opening.token == Token::LParen && word(function, &CALLS)
                || opening.token == Token::RArrow && word(function, &["DATA"]))
        {
            dropped.push(at);
        }
        if tokens[at].token == Token::LParen {
            open.push(false);
        } else if tokens[at].token == Token::RParen {
            if open.pop() == Some(true) {
                dropped.push(at);
            }
        } else if word(&tokens[at], &CALLS)
            && let (Some(opening), Some(table)) = (last(1), last(2))
            && opening.token == Token::LParen
            && word(table, &["TABLE"])
            && let Some(around) = open.last_mut()
        {
            *around = true;
            dropped.extend_from_slice(&before[before.len() - 2..]);
        }
        before.push(at);
    }
    dropped.sort_unstable();
    let mut at = 0;
    tokens.retain(|_| {
        at += 1;
        dropped.binary_search(&(at - 1)).is_err()
    });
}
