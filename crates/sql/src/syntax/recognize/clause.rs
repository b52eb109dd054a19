//! The clause of `MATCH_RECOGNIZE`, parsed.
//!
//! ```text
//! [PARTITION BY expr, ..] ORDER BY expr, .. [MEASURES expr AS name, ..] [ONE ROW PER MATCH]
//! [AFTER MATCH SKIP PAST LAST ROW | TO NEXT ROW | TO [FIRST | LAST] variable]
//! PATTERN (pattern) [WITHIN interval] [DEFINE variable AS condition, ..]
//! ```

use datafusion_expr::sqlparser::ast::{Expr, Ident, OrderByExpr};
use datafusion_expr::sqlparser::keywords::Keyword;
use datafusion_expr::sqlparser::parser::Parser;
use datafusion_expr::sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};

use super::pattern::{Parts, parse_pattern};
use crate::error::{ErrorKind, Result, SqlError};
use crate::syntax::dialect::Postgres;
use crate::syntax::names::fold;
use crate::syntax::span::Span;

/// Levels of an expression.
const DEPTH_MAX: usize = 50;

/// What stands between the parentheses.
#[derive(Clone, Debug)]
pub(crate) struct Clause {
    pub(crate) partition: Vec<Expr>,
    pub(crate) order: Vec<OrderByExpr>,
    pub(crate) measures: Vec<(Expr, Ident)>,
    pub(crate) skip: SkipTo,
    pub(crate) pattern: Parts,
    pub(crate) within: Option<Span>,
    /// Variables by their folded names.
    pub(crate) defines: Vec<(String, Expr)>,
}

/// Where the search goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SkipTo {
    PastLastRow,
    NextRow,
    First(String),
    Last(String),
}

impl Clause {
    /// Parses the text of a clause.
    ///
    /// # Errors
    /// As [`Clause::of_tokens`].
    pub(crate) fn of_text(text: &str) -> Result<Clause> {
        Clause::of_tokens(Tokenizer::new(&Postgres, text).tokenize_with_location()?)
    }

    /// Parses the tokens of a clause.
    ///
    /// # Errors
    /// `Syntax`, placed by the tokens; `Unsupported` for what is not done, `Invalid` for variables
    /// that do not fit the pattern.
    pub(crate) fn of_tokens(tokens: Vec<TokenWithSpan>) -> Result<Clause> {
        let dialect = Postgres;
        let parser = Parser::new(&dialect).with_recursion_limit(DEPTH_MAX).with_tokens_with_locations(tokens);
        let clause = ClauseReader { parser }.clause()?;
        clause.check()?;
        Ok(clause)
    }

    fn check(&self) -> Result<()> {
        if self.pattern.accepts_nothing_at_all() {
            return Err(SqlError::new(
                ErrorKind::Invalid,
                "the pattern of MATCH_RECOGNIZE may be met by no row at all",
            )
            .with_hint("A match has a row: write A+ for A*, or a variable that must be there."));
        }
        let variables = self.pattern.variables();
        let mut named: Vec<(&str, &str)> = self.defines.iter().map(|(name, _)| (name.as_str(), "DEFINE")).collect();
        if let SkipTo::First(name) | SkipTo::Last(name) = &self.skip {
            named.push((name, "AFTER MATCH SKIP"));
        }
        for (n, (name, place)) in named.iter().enumerate() {
            if !variables.iter().any(|variable| variable == name) {
                let message = format!("variable \"{name}\" of {place} is not in the pattern of MATCH_RECOGNIZE");
                return Err(SqlError::new(ErrorKind::Invalid, message)
                    .with_hint(format!("The pattern has {}.", variables.join(", "))));
            }
            if named[..n].contains(&(name, place)) {
                let message = format!("variable \"{name}\" of MATCH_RECOGNIZE is defined twice");
                return Err(SqlError::new(ErrorKind::Duplicate, message));
            }
        }
        Ok(())
    }
}

struct ClauseReader<'a> {
    parser: Parser<'a>,
}

impl ClauseReader<'_> {
    fn clause(&mut self) -> Result<Clause> {
        let partition = match self.eat("PARTITION BY") {
            true => self.parser.parse_comma_separated(Parser::parse_expr)?,
            false => vec![],
        };
        if !self.eat("ORDER BY") {
            return Err(self.unexpected("ORDER BY").with_hint("A pattern is looked for in rows that have an order."));
        }
        let order = self.parser.parse_comma_separated(Parser::parse_order_by_expr)?;
        let measures = if self.eat("MEASURES") { self.measures()? } else { vec![] };
        self.rows_per_match()?;
        let skip = if self.eat("AFTER MATCH SKIP") { self.skip()? } else { SkipTo::PastLastRow };
        self.expect("PATTERN")?;
        let pattern = self.pattern()?;
        let within = if self.eat("WITHIN") { Some(self.within()?) } else { None };
        if self.eat("SUBSET") {
            return Err(SqlError::unsupported("SUBSET in MATCH_RECOGNIZE", "Name the variables one by one."));
        }
        let defines = if self.eat("DEFINE") { self.defines()? } else { vec![] };
        self.expect_token(&Token::EOF, "the end of the clause")?;
        Ok(Clause { partition, order, measures, skip, pattern, within, defines })
    }

    fn measures(&mut self) -> Result<Vec<(Expr, Ident)>> {
        let mut measures = Vec::new();
        loop {
            // (With one row a match, both mean the complete match.)
            let _ = self.eat("FINAL") || self.eat("RUNNING");
            let expr = self.parser.parse_expr()?;
            self.expect("AS")?;
            measures.push((expr, self.parser.parse_identifier()?));
            if !self.parser.consume_token(&Token::Comma) {
                return Ok(measures);
            }
        }
    }

    fn rows_per_match(&mut self) -> Result<()> {
        if self.eat("ALL ROWS PER MATCH") {
            return Err(SqlError::unsupported(
                "ALL ROWS PER MATCH",
                "Write ONE ROW PER MATCH, measure the first and the last time of the match, and join with the rows between.",
            ));
        }
        self.eat("ONE ROW PER MATCH");
        Ok(())
    }

    fn skip(&mut self) -> Result<SkipTo> {
        if self.eat("PAST LAST ROW") {
            return Ok(SkipTo::PastLastRow);
        }
        self.expect("TO")?;
        if self.eat("NEXT ROW") {
            return Ok(SkipTo::NextRow);
        }
        let is_first = self.eat("FIRST");
        let _ = is_first || self.eat("LAST");
        let name = fold(&self.parser.parse_identifier()?);
        Ok(if is_first { SkipTo::First(name) } else { SkipTo::Last(name) })
    }

    fn pattern(&mut self) -> Result<Parts> {
        self.expect_token(&Token::LParen, "(")?;
        let mut tokens = Vec::new();
        let mut depth = 0;
        loop {
            let token = self.parser.next_token();
            match token.token {
                Token::LParen => depth += 1,
                Token::RParen if depth == 0 => return parse_pattern(&tokens, &token),
                Token::RParen => depth -= 1,
                Token::EOF => return Err(self.unexpected(")")),
                _ => {}
            }
            tokens.push(token);
        }
    }

    fn within(&mut self) -> Result<Span> {
        let expr = self.parser.parse_expr()?;
        Span::read(&expr).filter(|span| span.amount() > 0).ok_or_else(|| {
            SqlError::new(ErrorKind::Invalid, format!("WITHIN wants a constant interval above zero, not {expr}"))
                .with_hint(
                    "Write an interval of weeks, days, hours, minutes or seconds: months are not all of one length.",
                )
        })
    }

    fn defines(&mut self) -> Result<Vec<(String, Expr)>> {
        let mut defines = Vec::new();
        loop {
            let name = fold(&self.parser.parse_identifier()?);
            self.expect("AS")?;
            defines.push((name, self.parser.parse_expr()?));
            if !self.parser.consume_token(&Token::Comma) {
                return Ok(defines);
            }
        }
    }

    /// Consumes these words if they come next.
    fn eat(&mut self, words: &str) -> bool {
        let words: Vec<&str> = words.split(' ').collect();
        let is_next = |(n, word): (usize, &&str)| match &self.parser.peek_nth_token_ref(n).token {
            Token::Word(next) => next.quote_style.is_none() && next.value.eq_ignore_ascii_case(word),
            _ => false,
        };
        let is_there = words.iter().enumerate().all(is_next);
        if is_there {
            words.iter().for_each(|_| self.parser.advance_token());
        }
        is_there
    }

    fn expect(&mut self, words: &str) -> Result<()> {
        if self.eat(words) { Ok(()) } else { Err(self.unexpected(words)) }
    }

    fn expect_token(&mut self, token: &Token, name: &str) -> Result<()> {
        if self.parser.consume_token(token) { Ok(()) } else { Err(self.unexpected(name)) }
    }

    fn unexpected(&self, expected: &str) -> SqlError {
        let found = self.parser.peek_token_ref();
        let message = match &found.token {
            Token::EOF => "syntax error at the end of MATCH_RECOGNIZE".to_owned(),
            other => format!("syntax error at or near \"{other}\""),
        };
        let error = SqlError::new(ErrorKind::Syntax, message).with_detail(format!("Expected {expected}."));
        let is_keyword = matches!(&found.token, Token::Word(word) if word.keyword != Keyword::NoKeyword);
        let error = match is_keyword {
            true => error.with_hint("The parts of MATCH_RECOGNIZE come in this order: PARTITION BY, ORDER BY, MEASURES, ONE ROW PER MATCH, AFTER MATCH SKIP, PATTERN, WITHIN, DEFINE."),
            false => error,
        };
        error.at(found.span.start)
    }
}
