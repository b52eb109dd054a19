//! The pattern of `MATCH_RECOGNIZE`: a regular expression over variables.
//!
//! `A B` in sequence, `A | B` alternatives, `(A B)` groups, `* + ? {n} {n,} {,m} {n,m}`
//! repetitions, reluctant with a further `?`.

use anabranch_plan::recognize::RowPattern;
use datafusion_expr::sqlparser::tokenizer::{Location, Token, TokenWithSpan, Word};

use crate::error::{ErrorKind, Result, SqlError};

/// A pattern over names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Parts {
    Variable(String),
    Sequence(Vec<Parts>),
    Alternatives(Vec<Parts>),
    Repeat { part: Box<Parts>, min: usize, max: Option<usize>, is_reluctant: bool },
}

impl Parts {
    /// The variables, each once, in order.
    pub(crate) fn variables(&self) -> Vec<String> {
        let mut names = Vec::new();
        self.collect(&mut names);
        names
    }

    fn collect(&self, names: &mut Vec<String>) {
        match self {
            Parts::Variable(name) if names.contains(name) => {}
            Parts::Variable(name) => names.push(name.clone()),
            Parts::Sequence(parts) | Parts::Alternatives(parts) => parts.iter().for_each(|part| part.collect(names)),
            Parts::Repeat { part, .. } => part.collect(names),
        }
    }

    pub(crate) fn accepts_nothing_at_all(&self) -> bool {
        match self {
            Parts::Variable(_) => false,
            Parts::Sequence(parts) => parts.iter().all(Parts::accepts_nothing_at_all),
            Parts::Alternatives(parts) => parts.iter().any(Parts::accepts_nothing_at_all),
            Parts::Repeat { part, min, .. } => *min == 0 || part.accepts_nothing_at_all(),
        }
    }

    /// The pattern over the numbers of variables.
    pub(crate) fn numbered(&self, variables: &[String]) -> RowPattern {
        let all = |parts: &[Parts]| parts.iter().map(|part| part.numbered(variables)).collect();
        match self {
            Parts::Variable(name) => {
                let number = variables.iter().position(|variable| variable == name);
                RowPattern::Variable(number.expect("the pattern's variables are known"))
            }
            Parts::Sequence(parts) => RowPattern::Sequence(all(parts)),
            Parts::Alternatives(parts) => RowPattern::Alternatives(all(parts)),
            Parts::Repeat { part, min, max, is_reluctant } => RowPattern::Repeat {
                part: Box::new(part.numbered(variables)),
                min: *min,
                max: *max,
                is_reluctant: *is_reluctant,
            },
        }
    }
}

/// A piece of a pattern's text.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Name(String),
    Number(String),
    Sign(char),
}

/// Parses what stands between the parentheses of PATTERN; `end` is the closing one.
///
/// # Errors
/// `Syntax`, placed; `Unsupported` for anchors, exclusions and permutations.
pub(crate) fn parse_pattern(tokens: &[TokenWithSpan], end: &TokenWithSpan) -> Result<Parts> {
    let mut pieces = Vec::new();
    for token in tokens {
        let at = token.span.start;
        match &token.token {
            Token::Whitespace(_) => {}
            Token::Word(Word { value, quote_style: None, .. }) => pieces.push((Piece::Name(value.to_lowercase()), at)),
            Token::Word(word) => pieces.push((Piece::Name(word.value.clone()), at)),
            Token::Number(digits, _) => pieces.push((Piece::Number(digits.to_string()), at)),
            other => pieces.extend(other.to_string().chars().map(|sign| (Piece::Sign(sign), at))),
        }
    }
    let mut reader = PatternReader { pieces, next: 0, end: end.span.start };
    let parts = reader.alternatives()?;
    if reader.next < reader.pieces.len() {
        return Err(reader.unexpected("a variable, a group or a repetition"));
    }
    Ok(parts)
}

struct PatternReader {
    pieces: Vec<(Piece, Location)>,
    next: usize,
    end: Location,
}

impl PatternReader {
    fn alternatives(&mut self) -> Result<Parts> {
        let mut parts = vec![self.sequence()?];
        while self.eat('|') {
            parts.push(self.sequence()?);
        }
        Ok(one_or(parts, Parts::Alternatives))
    }

    fn sequence(&mut self) -> Result<Parts> {
        let mut parts = Vec::new();
        while !matches!(self.piece(), None | Some(Piece::Sign('|' | ')'))) {
            parts.push(self.repeated()?);
        }
        Ok(one_or(parts, Parts::Sequence))
    }

    fn repeated(&mut self) -> Result<Parts> {
        let mut part = self.part()?;
        loop {
            let (min, max) = if self.eat('*') {
                (0, None)
            } else if self.eat('+') {
                (1, None)
            } else if self.eat('?') {
                (0, Some(1))
            } else if self.eat('{') {
                self.bounds()?
            } else {
                return Ok(part);
            };
            let is_reluctant = self.eat('?');
            part = Parts::Repeat { part: Box::new(part), min, max, is_reluctant };
        }
    }

    fn bounds(&mut self) -> Result<(usize, Option<usize>)> {
        let refused = |sign| {
            let what = if sign == '-' { "an exclusion {- -}" } else { "this repetition" };
            SqlError::unsupported(format!("{what} in a pattern"), "Write {n}, {n,}, {,m} or {n,m}.")
        };
        if self.piece() == Some(&Piece::Sign('-')) {
            return Err(refused('-'));
        }
        let min = self.number()?;
        let max = match self.eat(',') {
            true => self.number()?,
            false => min,
        };
        if min.is_none() && max.is_none() {
            return Err(self.unexpected("a number"));
        }
        if !self.eat('}') {
            return Err(self.unexpected("}"));
        }
        let min = min.unwrap_or(0);
        if max == Some(0) || max.is_some_and(|max| max < min) {
            return Err(SqlError::new(ErrorKind::Invalid, "a repetition of a pattern ends before it begins")
                .with_hint("Write {n,m} with a number m that is above zero and not below n."));
        }
        Ok((min, max))
    }

    fn number(&mut self) -> Result<Option<usize>> {
        let Some(Piece::Number(digits)) = self.piece().cloned() else { return Ok(None) };
        let number = digits.parse().map_err(|_| self.unexpected("a whole number"))?;
        self.next += 1;
        Ok(Some(number))
    }

    fn part(&mut self) -> Result<Parts> {
        match self.piece().cloned() {
            Some(Piece::Name(name)) => {
                self.next += 1;
                if name == "permute" && self.piece() == Some(&Piece::Sign('(')) {
                    return Err(SqlError::unsupported(
                        "PERMUTE in a pattern",
                        "Write the orders as alternatives: (A B | B A).",
                    ));
                }
                Ok(Parts::Variable(name))
            }
            Some(Piece::Sign('(')) => {
                self.next += 1;
                let parts = self.alternatives()?;
                if !self.eat(')') {
                    return Err(self.unexpected(")"));
                }
                Ok(parts)
            }
            Some(Piece::Sign('^' | '$')) => Err(SqlError::unsupported(
                "an anchor (^ or $) in a pattern",
                "Compare with the row before or after: PREV(x) IS NULL is true of the first row if x is never NULL.",
            )),
            Some(Piece::Sign('{')) => Err(SqlError::unsupported(
                "an exclusion {- -} in a pattern",
                "It only matters with ALL ROWS PER MATCH: leave the braces out.",
            )),
            _ => Err(self.unexpected("a variable or a group")),
        }
    }

    fn piece(&self) -> Option<&Piece> {
        self.pieces.get(self.next).map(|(piece, _)| piece)
    }

    fn eat(&mut self, sign: char) -> bool {
        let is_there = self.piece() == Some(&Piece::Sign(sign));
        self.next += usize::from(is_there);
        is_there
    }

    fn unexpected(&self, expected: &str) -> SqlError {
        let (found, at) = match self.pieces.get(self.next) {
            Some((Piece::Name(text) | Piece::Number(text), at)) => (text.clone(), *at),
            Some((Piece::Sign(sign), at)) => (sign.to_string(), *at),
            None => (")".to_owned(), self.end),
        };
        SqlError::new(ErrorKind::Syntax, format!("syntax error at or near \"{found}\" in a pattern"))
            .with_detail(format!("Expected {expected}."))
            .at(at)
    }
}

fn one_or(mut parts: Vec<Parts>, all: fn(Vec<Parts>) -> Parts) -> Parts {
    match (parts.len(), parts.pop()) {
        (1, Some(part)) => part,
        (_, last) => {
            parts.extend(last);
            all(parts)
        }
    }
}

#[cfg(test)]
mod tests {
    use datafusion_expr::sqlparser::tokenizer::Tokenizer;

    use super::*;
    use crate::syntax::dialect::Postgres;

    fn parse(text: &str) -> Result<Parts> {
        let tokens = Tokenizer::new(&Postgres, text).tokenize_with_location().unwrap();
        parse_pattern(&tokens, &TokenWithSpan::wrap(Token::EOF))
    }

    #[test]
    fn repetitions_bind_before_sequences_before_alternatives() {
        let variable = |name: &str| Parts::Variable(name.to_owned());
        let repeat = |name, min, max, is_reluctant| {
            let part = Box::new(variable(name));
            Parts::Repeat { part, min, max, is_reluctant }
        };
        let sequence = Parts::Sequence(vec![repeat("a", 0, None, false), repeat("b", 1, None, true)]);
        assert_eq!(parse("A* B+?").unwrap(), sequence);
        let either = Parts::Alternatives(vec![repeat("a", 0, Some(1), false), variable("B")]);
        assert_eq!(parse("(A?|\"B\")").unwrap(), either);
        for (text, min, max) in [("{2}", 2, Some(2)), ("{2,}", 2, None), ("{,3}", 0, Some(3)), ("{2,3}", 2, Some(3))] {
            assert_eq!(parse(&format!("A{text}")).unwrap(), repeat("a", min, max, false), "{text}");
        }
        assert_eq!(parse("A??").unwrap(), repeat("a", 0, Some(1), true));
    }

    #[test]
    fn what_is_no_pattern_is_told() {
        for text in ["A | * B", "(A", "A)", "A{,}", "A{3,2}", "A{0}", "^A", "{- A -}", "PERMUTE(A, B)", "A{1.5}"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
