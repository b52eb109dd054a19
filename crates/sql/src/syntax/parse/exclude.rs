//! `EXCLUDE` in the frame of a window, which the parser does not read, as a constant that the
//! window is partitioned by: one more partition key, the same for all rows, changes nothing.
//!
//! ```text
//! OVER (PARTITION BY a ORDER BY b ROWS .. EXCLUDE TIES)
//! =   OVER (PARTITION BY concat('__exclude_ties'), a ORDER BY b ROWS ..)
//! ```
//!
//! The translation takes the literal for what it stands for (`translate/exclude.rs`).

use datafusion_expr::sqlparser::ast::Expr;
use datafusion_expr::sqlparser::tokenizer::{Token, TokenWithSpan, Word};

/// Words after EXCLUDE, and the literal.
pub(crate) const EXCLUSIONS: [(&[&str], &str); 4] = [
    (&["NO", "OTHERS"], "__exclude_no_others"),
    (&["CURRENT", "ROW"], "__exclude_current_row"),
    (&["GROUP"], "__exclude_group"),
    (&["TIES"], "__exclude_ties"),
];

/// Rewrites the tokens of a statement, among which are no spaces.
pub(super) fn rewrite(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 0;
    while at < tokens.len() {
        if is(tokens, at, "EXCLUDE")
            && let Some((words, literal)) = exclusion(tokens, at + 1)
            && let Some(open) = opening(tokens, at)
            && (open..at).any(|at| ["ROWS", "RANGE", "GROUPS"].iter().any(|unit| is(tokens, at, unit)))
        {
            let place = tokens[at].clone();
            tokens.drain(at..at + 1 + words);
            insert(tokens, open, literal, &place);
        }
        at += 1;
    }
}

/// The exclusion whose words stand there, before the end of a window: how many, and the literal.
fn exclusion(tokens: &[TokenWithSpan], at: usize) -> Option<(usize, &'static str)> {
    let (words, literal) = EXCLUSIONS.iter().find(|(words, _)| {
        let mut all = words.iter().enumerate();
        all.all(|(n, word)| is(tokens, at + n, word))
    })?;
    let ends = tokens.get(at + words.len()).is_some_and(|token| token.token == Token::RParen);
    ends.then_some((words.len(), *literal))
}

/// The parenthesis that the window of the token at `at` begins with.
fn opening(tokens: &[TokenWithSpan], at: usize) -> Option<usize> {
    let mut depth = 0;
    (0..at).rev().find(|before| {
        match tokens[*before].token {
            Token::RParen => depth += 1,
            Token::LParen if depth == 0 => return true,
            Token::LParen => depth -= 1,
            _ => {}
        }
        false
    })
}

fn insert(tokens: &mut Vec<TokenWithSpan>, open: usize, literal: &str, place: &TokenWithSpan) {
    let like = |token: Token| TokenWithSpan { token, span: place.span };
    // (DataFusion drops keys that are literals.)
    let text = like(Token::SingleQuotedString(literal.to_owned()));
    let word = |word: &str| like(Token::make_word(word, None));
    let key = [word("concat"), like(Token::LParen), text, like(Token::RParen)];
    let starts = ["PARTITION", "ORDER", "ROWS", "RANGE", "GROUPS"];
    // (Behind the name of another window, which gives its own keys later.)
    let has_name = !starts.iter().any(|word| is(tokens, open + 1, word));
    let behind = open + 1 + usize::from(has_name);
    if is(tokens, behind, "PARTITION") {
        tokens.splice(behind + 2..behind + 2, key.into_iter().chain([like(Token::Comma)]));
    } else {
        tokens.splice(behind..behind, [word("PARTITION"), word("BY")].into_iter().chain(key));
    }
}

/// Whether an expression is the key that an exclusion became.
pub(crate) fn is_exclusion(key: &Expr) -> bool {
    let text = key.to_string();
    EXCLUSIONS.iter().any(|(_, literal)| text == format!("concat('{literal}')"))
}

fn is(tokens: &[TokenWithSpan], at: usize, expected: &str) -> bool {
    tokens.get(at).is_some_and(|token| {
        matches!(&token.token, Token::Word(Word { value, quote_style: None, .. }) if value.eq_ignore_ascii_case(expected))
    })
}

#[cfg(test)]
mod tests {
    use crate::syntax::parse::parse_query;

    #[test]
    fn exclusions_become_partition_keys() {
        let of = |window: &str| {
            parse_query(&format!("SELECT sum(x) OVER ({window}) FROM t")).expect("it is a query").to_string()
        };
        assert!(
            of("ORDER BY a ROWS UNBOUNDED PRECEDING EXCLUDE TIES")
                .contains("PARTITION BY concat('__exclude_ties') ORDER")
        );
        let kept = of("PARTITION BY f(b), c RANGE UNBOUNDED PRECEDING EXCLUDE CURRENT ROW");
        assert!(kept.contains("PARTITION BY concat('__exclude_current_row'), f(b), c RANGE"), "{kept}");
        assert!(of("w ROWS 1 PRECEDING EXCLUDE TIES").contains("(w PARTITION BY concat('__exclude_ties') ROWS"));
        assert!(parse_query("SELECT sum(x) OVER (ORDER BY a EXCLUDE TIES) FROM t").is_err());
    }
}
