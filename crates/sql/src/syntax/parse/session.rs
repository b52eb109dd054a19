//! The arguments of `SESSION`, put in an order that the parser reads.
//!
//! ```text
//! SESSION(t PARTITION BY a, b, DESCRIPTOR(ts), gap)                            SESSION(t, DESCRIPTOR(ts), gap, a, b)
//! SESSION(DATA => t PARTITION BY a, TIMECOL => DESCRIPTOR(ts), GAP => gap)     SESSION(t, DESCRIPTOR(ts), gap, a)
//! ```

use datafusion_expr::sqlparser::tokenizer::{Token, TokenWithSpan, Word};

/// The names of the arguments.
const NAMES: [&str; 3] = ["DATA", "TIMECOL", "GAP"];

/// Rewrites the calls in FROM. What is no such call, or lacks arguments, stays as it is.
pub(super) fn rewrite(tokens: &mut Vec<TokenWithSpan>) {
    let is_call = |tokens: &[TokenWithSpan], at: usize| {
        let before = last_before(tokens, at);
        let opens = tokens.get(at + 1).is_some_and(|token| token.token == Token::LParen);
        let in_from = before.is_some_and(|token| {
            ["FROM", "JOIN"].iter().any(|word| word_is(token, word)) || token.token == Token::Comma
        });
        word_is(&tokens[at], "SESSION") && opens && in_from
    };
    let mut at = 0;
    while at < tokens.len() {
        if is_call(tokens, at)
            && let Some((end, arguments)) = arguments(tokens, at + 2)
            && let Some(ordered) = ordered(arguments)
        {
            let comma = TokenWithSpan { token: Token::Comma, span: tokens[at].span };
            let ordered: Vec<TokenWithSpan> = ordered.join(&comma);
            let next = at + 2 + ordered.len();
            tokens.splice(at + 2..end, ordered);
            at = next;
        }
        at += 1;
    }
}

/// Where the arguments end that begin at `from`, and what they are made of, without spaces.
fn arguments(tokens: &[TokenWithSpan], from: usize) -> Option<(usize, Vec<Vec<TokenWithSpan>>)> {
    let mut arguments = vec![Vec::new()];
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate().skip(from) {
        match &token.token {
            Token::LParen => depth += 1,
            Token::RParen if depth == 0 => return Some((at, arguments)),
            Token::RParen => depth -= 1,
            Token::Comma if depth == 0 => {
                arguments.push(Vec::new());
                continue;
            }
            Token::Whitespace(_) => continue,
            _ => {}
        }
        arguments.last_mut()?.push(token.clone());
    }
    None
}

/// Table, time, gap, then the columns of the partition. `None` when there is nothing to put in
/// order.
fn ordered(arguments: Vec<Vec<TokenWithSpan>>) -> Option<Vec<Vec<TokenWithSpan>>> {
    let names: Vec<Option<usize>> = arguments.iter().map(|argument| name_of(argument)).collect();
    let is_named = names.iter().any(Option::is_some);
    let n = arguments.len();
    let mut named: [Option<Vec<TokenWithSpan>>; 3] = [None, None, None];
    let mut partition = Vec::new();
    for (at, mut argument) in arguments.into_iter().enumerate() {
        let place = match names[at] {
            Some(place) => {
                argument.drain(..2);
                Some(place)
            }
            None if is_named => None,
            None if at == 0 => Some(0),
            None => (at + 2 >= n).then(|| at + 3 - n),
        };
        if place == Some(0)
            && let Some(by) = (0..argument.len()).find(|by| {
                word_is(&argument[*by], "PARTITION") && argument.get(by + 1).is_some_and(|next| word_is(next, "BY"))
            })
        {
            partition.extend(unparenthesized(argument.split_off(by).split_off(2)));
        }
        match place {
            Some(place) => named[place] = Some(argument),
            None => partition.push(argument),
        }
    }
    let [Some(table), Some(time), Some(gap)] = named else { return None };
    Some([table, time, gap].into_iter().chain(partition).collect())
}

/// The columns of `a` or `(a, b)`.
fn unparenthesized(columns: Vec<TokenWithSpan>) -> Vec<Vec<TokenWithSpan>> {
    let is_list = columns.first().is_some_and(|token| token.token == Token::LParen);
    match (is_list, arguments(&columns, 1)) {
        (true, Some((end, parts))) if end + 1 == columns.len() => parts,
        _ => vec![columns],
    }
}

/// Which argument is named.
fn name_of(argument: &[TokenWithSpan]) -> Option<usize> {
    let is_named = argument.get(1).is_some_and(|token| token.token == Token::RArrow);
    is_named.then(|| NAMES.iter().position(|name| word_is(&argument[0], name)))?
}

/// The token before, apart from spaces.
fn last_before(tokens: &[TokenWithSpan], at: usize) -> Option<&TokenWithSpan> {
    tokens[..at].iter().rev().find(|token| !matches!(token.token, Token::Whitespace(_)))
}

fn word_is(token: &TokenWithSpan, expected: &str) -> bool {
    matches!(&token.token, Token::Word(Word { value, quote_style: None, .. }) if value.eq_ignore_ascii_case(expected))
}
