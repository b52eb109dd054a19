//! Facts and rules: heads, and bodies of atoms, conditions, `!`, `,` and `;`.

use anabranch_engine::Error;

use super::declaration::components;
use super::parser::Parser;
use super::token::Token;
use crate::ast::{Atom, Clause, Comparison, Constraint, Formula, Name, Program};

impl Parser {
    pub(super) fn clause(&mut self, program: &mut Program) -> Result<(), Error> {
        let start = self.here();
        let mut heads = vec![self.atom()?];
        if self.is_sign("<=") {
            return Err(Error::invalid("subsumption (<= between heads) is not supported")
                .at(self.here().start)
                .with_hint("Keep the rows that are wanted with min or max: x = min y : { .. }."));
        }
        while self.take(",") {
            heads.push(self.atom()?);
        }
        let body = match self.take(":-") {
            true => self.disjunction()?,
            false if heads.len() > 1 => self.expect(":-", "after several heads").map(|()| Formula::And(vec![]))?,
            false => Formula::And(vec![]),
        };
        self.expect(".", "at the end of the rule")?;
        program.clauses.push(Clause { heads, body, at: start.to(self.before()) });
        self.skip_plans();
        Ok(())
    }

    pub(super) fn atom(&mut self) -> Result<Atom, Error> {
        let relation = self.plain_name("the name of a relation")?;
        self.expect("(", &format!("after the relation {}", relation.text))?;
        let arguments = self.arguments(")")?;
        let at = relation.at.to(self.before());
        Ok(Atom { relation, arguments, at })
    }

    /// `a, b; c`
    pub(super) fn disjunction(&mut self) -> Result<Formula, Error> {
        let first = self.conjunction()?;
        if !self.is_sign(";") {
            return Ok(first);
        }
        let mut parts = vec![first];
        while self.take(";") {
            parts.push(self.conjunction()?);
        }
        Ok(Formula::Or(parts))
    }

    fn conjunction(&mut self) -> Result<Formula, Error> {
        let first = self.term()?;
        if !self.is_sign(",") {
            return Ok(first);
        }
        let mut parts = vec![first];
        while self.take(",") {
            parts.push(self.term()?);
        }
        Ok(Formula::And(parts))
    }

    fn term(&mut self) -> Result<Formula, Error> {
        if self.take("!") {
            return self.deeper(|parser| Ok(Formula::Not(Box::new(parser.term()?))));
        }
        if self.is_sign("(") && !is_operator(&self.past_parenthesis().0) {
            return self.deeper(|parser| {
                parser.next();
                let inner = parser.disjunction()?;
                parser.expect(")", "after the alternatives")?;
                Ok(inner)
            });
        }
        if let Token::Name(name) = self.peek().clone() {
            let is_call = matches!(self.peek_at(1), Token::Sign("("));
            // (A variable is followed by a comparison here.)
            if matches!(self.peek_at(1), Token::Sign(".")) && matches!(self.peek_at(2), Token::Name(_)) {
                return Err(components(self.here(), &format!("the qualified name {name}.")));
            }
            match name.as_str() {
                "true" | "false" if !is_call => {
                    self.next();
                    return Ok(if name == "true" { Formula::And(vec![]) } else { Formula::Or(vec![]) });
                }
                "match" | "contains" if is_call => return self.text_condition(&name),
                _ if is_call && !super::argument::is_word(&name) => {
                    let relation = Name { text: name, at: self.here() };
                    let atom = self.atom()?;
                    return match is_operator(self.peek()) {
                        true => Err(unknown_functor(&relation)),
                        false => Ok(Formula::Atom(atom)),
                    };
                }
                _ => {}
            }
        }
        self.comparison()
    }

    fn text_condition(&mut self, name: &str) -> Result<Formula, Error> {
        let start = self.here();
        self.next();
        self.expect("(", "before the arguments")?;
        let mut arguments = self.arguments(")")?.into_iter();
        let at = start.to(self.before());
        let comparison = if name == "match" { Comparison::Match } else { Comparison::Contains };
        match (arguments.next(), arguments.next(), arguments.next()) {
            (Some(left), Some(right), None) => Ok(Formula::Constraint(Constraint { comparison, left, right, at })),
            _ => Err(Error::invalid(format!("{name} takes two arguments")).at(at.start)),
        }
    }

    fn comparison(&mut self) -> Result<Formula, Error> {
        let start = self.here();
        let left = self.argument()?;
        let comparison = match self.peek() {
            Token::Sign("=") => Comparison::Equal,
            Token::Sign("!=") => Comparison::NotEqual,
            Token::Sign("<") => Comparison::Less,
            Token::Sign("<=") => Comparison::LessOrEqual,
            Token::Sign(">") => Comparison::Greater,
            Token::Sign(">=") => Comparison::GreaterOrEqual,
            other => return Err(self.expected("a comparison after the value", &other.clone())),
        };
        self.next();
        let right = self.argument()?;
        Ok(Formula::Constraint(Constraint { comparison, left, right, at: start.to(self.before()) }))
    }
}

pub(super) fn unknown_functor(name: &Name) -> Error {
    Error::invalid(format!("there is no functor {}", name.text))
        .at(name.at.start)
        .with_hint("Functors: cat, strlen, substr, ord, to_string, to_number, to_unsigned, to_float, min, max, range.")
}

/// Whether the word continues a value or a comparison.
fn is_operator(token: &Token) -> bool {
    match token {
        Token::Sign(sign) => {
            matches!(*sign, "=" | "!=" | "<" | "<=" | ">" | ">=" | "+" | "-" | "*" | "/" | "%" | "^")
        }
        Token::Name(name) => super::argument::precedence(name).is_some(),
        _ => false,
    }
}
