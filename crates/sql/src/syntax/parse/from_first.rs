//! `FROM` before `SELECT`, as DuckDB has it, and queries without `SELECT`.
//!
//! ```text
//! FROM t                          SELECT * FROM t
//! EXISTS (SELECT WHERE b > 1)     EXISTS (SELECT NULL WHERE b > 1)
//! FROM t SELECT a WHERE b > 1     SELECT a FROM t WHERE b > 1
//! ```

use datafusion_expr::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::recursion::words_at;

/// Words that begin what may stand behind the items of a select list.
const CLAUSES: [&str; 13] = [
    "FROM",
    "WHERE",
    "GROUP",
    "HAVING",
    "WINDOW",
    "QUALIFY",
    "ORDER",
    "LIMIT",
    "OFFSET",
    "FETCH",
    "UNION",
    "EXCEPT",
    "INTERSECT",
];

/// Clauses of the query itself, which come first in the list.
const N_OWN: usize = 10;

/// Rewrites the tokens of a statement, among which are no spaces.
pub(super) fn rewrite(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 0;
    while at < tokens.len() {
        if words_at(tokens, at, &["SELECT", "WHERE"]) && is_existence(tokens, at) {
            let span = tokens[at].span;
            tokens.insert(at + 1, TokenWithSpan { token: Token::make_keyword("NULL"), span });
        }
        if words_at(tokens, at, &["FROM"]) && begins_query(tokens, at) {
            let (select, end) = items(tokens, at);
            let items: Vec<TokenWithSpan> = match select {
                Some(select) => {
                    // (A view's text begins where its first token stands.)
                    tokens[select].span = tokens[at].span;
                    tokens.drain(select..end).collect()
                }
                None => {
                    let span = tokens[at].span;
                    let all = [Token::make_keyword("SELECT"), Token::Mul];
                    all.into_iter().map(|token| TokenWithSpan { token, span }).collect()
                }
            };
            tokens.splice(at..at, items);
        }
        at += 1;
    }
}

/// Whether the query that begins at the token is looked at for its rows alone.
fn is_existence(tokens: &[TokenWithSpan], at: usize) -> bool {
    let is_open = at.checked_sub(1).is_some_and(|before| tokens[before].token == Token::LParen);
    is_open && at.checked_sub(2).is_some_and(|before| words_at(tokens, before, &["EXISTS"]))
}

/// Whether a query may begin at the token.
fn begins_query(tokens: &[TokenWithSpan], at: usize) -> bool {
    match at.checked_sub(1).map(|before| &tokens[before].token) {
        None => true,
        Some(Token::LParen) => match at.checked_sub(2).map(|before| &tokens[before].token) {
            None | Some(Token::LParen | Token::Comma) => true,
            // (TRIM(FROM x) is none.)
            Some(_) => {
                is_one_of(tokens, at - 2, &["AS", "IN", "EXISTS", "FROM", "JOIN", "LATERAL", "SUBSCRIBE", "ANY", "ALL"])
            }
        },
        Some(Token::RParen) => ends_named_query(tokens, at - 1) || is_inserted(tokens, at),
        Some(_) => is_one_of(tokens, at - 1, &["AS", "EXPLAIN"]) || is_inserted(tokens, at),
    }
}

/// Whether a query of WITH ends at the parenthesis.
fn ends_named_query(tokens: &[TokenWithSpan], close: usize) -> bool {
    let mut depth = 0;
    let open = (0..=close).rev().find(|at| {
        match tokens[*at].token {
            Token::RParen => depth += 1,
            Token::LParen => depth -= 1,
            _ => {}
        }
        depth == 0
    });
    open.is_some_and(|open| open > 0 && is_one_of(tokens, open - 1, &["AS", "MATERIALIZED"]))
}

/// Whether the rows of an INSERT stand here.
fn is_inserted(tokens: &[TokenWithSpan], at: usize) -> bool {
    words_at(tokens, 0, &["INSERT", "INTO"])
        && !(2..at).any(|before| is_one_of(tokens, before, &["SELECT", "VALUES", "WITH", "FROM", "CONFLICT"]))
}

/// Where the SELECT of a query stands that begins with FROM, and where its items end.
fn items(tokens: &[TokenWithSpan], from: usize) -> (Option<usize>, usize) {
    let mut select = None;
    let mut depth = 0;
    for at in from + 1..tokens.len() {
        match tokens[at].token {
            Token::LParen => depth += 1,
            Token::RParen if depth == 0 => return (select, at),
            Token::RParen => depth -= 1,
            Token::SemiColon => return (select, at),
            _ if depth > 0 => {}
            _ if select.is_none() && words_at(tokens, at, &["SELECT"]) => select = Some(at),
            // (Behind a set operation there is another query.)
            _ if is_one_of(tokens, at, if select.is_some() { &CLAUSES } else { &CLAUSES[N_OWN..] }) => {
                return (select, at);
            }
            _ => {}
        }
    }
    (select, tokens.len())
}

fn is_one_of(tokens: &[TokenWithSpan], at: usize, words: &[&str]) -> bool {
    words.iter().any(|word| words_at(tokens, at, &[word]))
}

#[cfg(test)]
mod tests {
    use crate::syntax::parse::parse_query;

    #[test]
    fn select_stands_before_from() {
        let of = |text: &str| parse_query(text).expect("it is a query").to_string();
        assert_eq!(of("FROM t"), "SELECT * FROM t");
        assert_eq!(of("FROM t WHERE a > 1 ORDER BY a"), "SELECT * FROM t WHERE a > 1 ORDER BY a");
        assert_eq!(of("FROM t SELECT a, max(b) GROUP BY a"), "SELECT a, max(b) FROM t GROUP BY a");
        assert_eq!(
            of("SELECT trim(BOTH FROM a) FROM (FROM t) AS t"),
            "SELECT TRIM(BOTH ' ' FROM a) FROM (SELECT * FROM t) AS t"
        );
        assert_eq!(of("WITH c AS (FROM t) FROM c SELECT a"), "WITH c AS (SELECT * FROM t) SELECT a FROM c");
        assert_eq!(of("FROM t UNION ALL SELECT b FROM u"), "SELECT * FROM t UNION ALL SELECT b FROM u");
    }
}
