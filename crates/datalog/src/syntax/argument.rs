//! Values: constants, variables, operators, functors, records, branches and aggregates.

use anabranch_engine::Error;

use super::clause::unknown_functor;
use super::parser::{DEPTH_MAX, Parser, too_deep};
use super::token::Token;
use crate::ast::{AggregateKind, AggregateTerm, Argument, ArgumentKind, Formula, Name, Span};

/// Functors that are written as calls.
const FUNCTORS: &[&str] = &[
    "cat",
    "ord",
    "range",
    "strlen",
    "substr",
    "to_float",
    "to_number",
    "to_string",
    "to_unsigned",
    "itou",
    "itof",
    "utoi",
    "utof",
    "ftoi",
    "ftou",
];

/// Words that name no variable and no relation.
pub(super) fn is_word(name: &str) -> bool {
    FUNCTORS.contains(&name)
        || aggregate_kind(name).is_some()
        || precedence(name).is_some()
        || matches!(name, "match" | "contains" | "true" | "false" | "nil" | "as" | "bnot" | "lnot")
        || refused_functor(name).is_some()
}

/// How tightly a binary operator binds; more is tighter.
pub(super) fn precedence(operator: &str) -> Option<u8> {
    Some(match operator {
        "lor" => 1,
        "lxor" => 2,
        "land" => 3,
        "bor" => 4,
        "bxor" => 5,
        "band" => 6,
        "bshl" | "bshr" | "bshru" => 7,
        "+" | "-" => 8,
        "*" | "/" | "%" => 9,
        _ => return None,
    })
}

fn aggregate_kind(name: &str) -> Option<AggregateKind> {
    Some(match name {
        "count" => AggregateKind::Count,
        "sum" => AggregateKind::Sum,
        "min" => AggregateKind::Min,
        "max" => AggregateKind::Max,
        "mean" => AggregateKind::Mean,
        _ => return None,
    })
}

fn refused_functor(name: &str) -> Option<&'static str> {
    Some(match name {
        "autoinc" => "Use a column of the data as the number, or count the rows before: count : { .. }.",
        "recursive_iteration_cnt" => "Carry a counter as a column of the relation.",
        "fold" => "Use sum, min, max or a recursive relation.",
        _ => return None,
    })
}

/// An argument and how deep its tree is.
struct Deep {
    argument: Argument,
    depth: usize,
}

impl Deep {
    fn leaf(kind: ArgumentKind, at: Span) -> Deep {
        Deep { argument: Argument { kind, at }, depth: 1 }
    }

    /// A part around others.
    fn around(kind: ArgumentKind, at: Span, below: usize) -> Result<Deep, Error> {
        match below >= DEPTH_MAX {
            true => Err(too_deep(at)),
            false => Ok(Deep { argument: Argument { kind, at }, depth: below + 1 }),
        }
    }
}

impl Parser {
    pub(super) fn argument(&mut self) -> Result<Argument, Error> {
        Ok(self.binary(1)?.argument)
    }

    /// Arguments up to the closing sign, which is taken.
    pub(super) fn arguments(&mut self, close: &str) -> Result<Vec<Argument>, Error> {
        Ok(self.deep_arguments(close)?.0)
    }

    fn deep_arguments(&mut self, close: &str) -> Result<(Vec<Argument>, usize), Error> {
        let mut arguments = vec![];
        let mut depth = 0;
        if self.take(close) {
            return Ok((arguments, depth));
        }
        loop {
            let next = self.binary(1)?;
            depth = depth.max(next.depth);
            arguments.push(next.argument);
            if !self.take(",") {
                self.expect(close, "after the arguments")?;
                return Ok((arguments, depth));
            }
        }
    }

    /// Operators that bind at least as tightly as `least`.
    fn binary(&mut self, least: u8) -> Result<Deep, Error> {
        self.deeper(|parser| {
            let mut left = parser.unary()?;
            while let Some((operator, binds)) = parser.operator().filter(|(_, binds)| *binds >= least) {
                parser.next();
                let right = parser.binary(binds + 1)?;
                let at = left.argument.at.to(right.argument.at);
                let below = left.depth.max(right.depth);
                left = Deep::around(ArgumentKind::Call(operator, vec![left.argument, right.argument]), at, below)?;
            }
            Ok(left)
        })
    }

    fn operator(&self) -> Option<(String, u8)> {
        let name = match self.peek() {
            Token::Sign(sign) => sign,
            Token::Name(name) => name.as_str(),
            _ => return None,
        };
        precedence(name).map(|binds| (name.to_owned(), binds))
    }

    fn unary(&mut self) -> Result<Deep, Error> {
        let start = self.here();
        let operator = match self.peek() {
            Token::Sign("-") => "negate",
            Token::Name(name) if name == "bnot" => "bnot",
            Token::Name(name) if name == "lnot" => "lnot",
            _ => return self.power(),
        };
        self.next();
        let operand = self.deeper(Parser::unary)?;
        let at = start.to(operand.argument.at);
        match operand.argument.kind {
            ArgumentKind::Integer(number) if operator == "negate" => Ok(Deep::leaf(ArgumentKind::Integer(-number), at)),
            ArgumentKind::Float(bits) if operator == "negate" => {
                Ok(Deep::leaf(ArgumentKind::Float((-f64::from_bits(bits)).to_bits()), at))
            }
            _ => Deep::around(ArgumentKind::Call(operator.to_owned(), vec![operand.argument]), at, operand.depth),
        }
    }

    /// `a ^ b ^ c`, which is `a ^ (b ^ c)`.
    fn power(&mut self) -> Result<Deep, Error> {
        let base = self.primary()?;
        if !self.take("^") {
            return Ok(base);
        }
        let exponent = self.deeper(Parser::unary)?;
        let at = base.argument.at.to(exponent.argument.at);
        let below = base.depth.max(exponent.depth);
        Deep::around(ArgumentKind::Call("^".to_owned(), vec![base.argument, exponent.argument]), at, below)
    }

    fn primary(&mut self) -> Result<Deep, Error> {
        let at = self.here();
        let kind = match self.peek().clone() {
            Token::Text(text) => ArgumentKind::Text(text),
            Token::Integer(number) => ArgumentKind::Integer(number),
            Token::Unsigned(number) => ArgumentKind::Unsigned(number),
            Token::Float(number) => ArgumentKind::Float(number.to_bits()),
            Token::Wildcard => ArgumentKind::Wildcard,
            Token::Sign("(") => return self.parenthesised(),
            Token::Sign("[") => {
                self.next();
                let (arguments, below) = self.deep_arguments("]")?;
                return Deep::around(ArgumentKind::Record(arguments), at.to(self.before()), below);
            }
            Token::Sign("$") => return self.branch(),
            Token::Sign("@") => {
                return Err(Error::invalid("functors of users (@name) are not supported")
                    .at(at.start)
                    .with_hint("Compute the values outside, and read them as facts."));
            }
            Token::Name(name) => return self.word(name),
            other => return Err(self.expected("a value", &other)),
        };
        self.next();
        Ok(Deep::leaf(kind, at))
    }

    fn parenthesised(&mut self) -> Result<Deep, Error> {
        self.next();
        let inner = self.binary(1)?;
        self.expect(")", "after the value")?;
        Ok(inner)
    }

    fn branch(&mut self) -> Result<Deep, Error> {
        let start = self.here();
        self.next();
        if !matches!(self.peek(), Token::Name(_)) {
            return Err(counter(start));
        }
        let name = self.plain_name("the name of a branch")?;
        let (arguments, below) = match self.take("(") {
            true => self.deep_arguments(")")?,
            false => (vec![], 0),
        };
        Deep::around(ArgumentKind::Branch(name, arguments), start.to(self.before()), below)
    }

    /// What a name begins: a variable, a functor, an aggregate, `nil`, `as`.
    fn word(&mut self, name: String) -> Result<Deep, Error> {
        let at = self.here();
        let is_call = matches!(self.peek_at(1), Token::Sign("("));
        if let Some(hint) = refused_functor(&name).filter(|_| is_call) {
            return Err(Error::invalid(format!("the functor {name} is not supported")).at(at.start).with_hint(hint));
        }
        if let Some(function) = aggregate_kind(&name) {
            let functor = matches!(function, AggregateKind::Min | AggregateKind::Max);
            self.next();
            return match functor && is_call && self.past_parenthesis().1 {
                true => self.call(name, at),
                false => self.aggregate(function, at),
            };
        }
        self.next();
        match name.as_str() {
            "nil" => Ok(Deep::leaf(ArgumentKind::Nil, at)),
            "as" if is_call => self.cast(at),
            _ if FUNCTORS.contains(&name.as_str()) && is_call => self.call(name, at),
            _ if is_call => Err(unknown_functor(&Name { text: name, at })),
            _ if is_word(&name) => Err(Error::invalid(format!("'{name}' is a word of the language, no variable"))
                .at(at.start)
                .with_hint("Give the variable another name.")),
            _ => Ok(Deep::leaf(ArgumentKind::Variable(name), at)),
        }
    }

    fn call(&mut self, name: String, start: Span) -> Result<Deep, Error> {
        self.expect("(", "before the arguments")?;
        let (arguments, below) = self.deep_arguments(")")?;
        Deep::around(ArgumentKind::Call(name, arguments), start.to(self.before()), below)
    }

    fn cast(&mut self, start: Span) -> Result<Deep, Error> {
        self.expect("(", "before the arguments")?;
        let inner = self.binary(1)?;
        self.expect(",", "and a type after the value")?;
        let type_name = self.plain_name("the name of a type")?;
        self.expect(")", "after the type")?;
        let kind = ArgumentKind::Cast(Box::new(inner.argument), type_name);
        Deep::around(kind, start.to(self.before()), inner.depth)
    }

    fn aggregate(&mut self, function: AggregateKind, start: Span) -> Result<Deep, Error> {
        let mut below = 0;
        let target = match (function, self.is_sign(":")) {
            (AggregateKind::Count, true) => None,
            (AggregateKind::Count, false) => {
                return Err(self.expected("':' after count", &self.peek().clone()));
            }
            (_, true) => {
                return Err(Error::invalid(format!("{} of what? A value is expected", function.name()))
                    .at(start.start)
                    .with_hint(format!("Write {} x : {{ .. }}.", function.name())));
            }
            (_, false) => {
                let target = self.binary(1)?;
                below = target.depth;
                Some(target.argument)
            }
        };
        self.expect(":", "after the aggregate's value")?;
        let body = self.deeper(|parser| match parser.take("{") {
            true => {
                let body = parser.disjunction()?;
                parser.expect("}", "after the aggregate's body")?;
                Ok(body)
            }
            false => Ok(Formula::Atom(parser.atom()?)),
        })?;
        let aggregate = AggregateTerm { function, target, body };
        Deep::around(ArgumentKind::Aggregate(Box::new(aggregate)), start.to(self.before()), below)
    }
}

fn counter(at: Span) -> Error {
    Error::invalid("the counter $ is not supported")
        .at(at.start)
        .with_hint("Use a column of the data as the number, or count the rows before: count : { .. }.")
}
