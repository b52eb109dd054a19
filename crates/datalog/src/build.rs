//! Programs made in Rust: the same tree as text gives.
//!
//! ```
//! use anabranch_datalog::Program;
//! use anabranch_datalog::build::{atom, variable};
//!
//! let (x, y, z) = (variable("x"), variable("y"), variable("z"));
//! let program = Program::new()
//!     .declare("edge", &[("a", "number"), ("b", "number")])
//!     .declare("path", &[("a", "number"), ("b", "number")])
//!     .input("edge")
//!     .rule(atom("path", [x.clone(), y.clone()]), [atom("edge", [x.clone(), y.clone()]).into()])
//!     .rule(atom("path", [x.clone(), z.clone()]), [
//!         atom("path", [x, y.clone()]).into(),
//!         atom("edge", [y, z]).into(),
//!     ])
//!     .output("path");
//! program.check()?;
//! # Ok::<(), anabranch_engine::Error>(())
//! ```

use anabranch_engine::Error;

use crate::ast::{
    AggregateKind, AggregateTerm, Argument, ArgumentKind, Atom, Attribute, Clause, Comparison, Constraint, Directive,
    DirectiveKind, Formula, Program, RelationDeclaration, Span,
};

impl Program {
    /// A program without anything.
    pub fn new() -> Program {
        Program::default()
    }

    /// Declares a relation with names and types of its attributes.
    #[must_use]
    pub fn declare(mut self, relation: &str, attributes: &[(&str, &str)]) -> Program {
        let attribute = |(name, of): &(&str, &str)| Attribute { name: (*name).into(), type_name: (*of).into() };
        let attributes = attributes.iter().map(attribute).collect();
        self.relations.push(RelationDeclaration { name: relation.into(), attributes, is_equivalence: false });
        self
    }

    /// Adds a fact.
    #[must_use]
    pub fn fact(self, relation: &str, values: impl IntoIterator<Item = Argument>) -> Program {
        self.rule(atom(relation, values), [])
    }

    /// Adds a rule: the head holds where all of the body does.
    #[must_use]
    pub fn rule(mut self, head: Atom, body: impl IntoIterator<Item = Formula>) -> Program {
        let body = Formula::And(body.into_iter().collect());
        self.clauses.push(Clause { heads: vec![head], body, at: Span::default() });
        self
    }

    /// Lets facts of the relation come from outside.
    #[must_use]
    pub fn input(self, relation: &str) -> Program {
        self.directive(DirectiveKind::Input, relation)
    }

    /// Makes the relation an answer.
    #[must_use]
    pub fn output(self, relation: &str) -> Program {
        self.directive(DirectiveKind::Output, relation)
    }

    /// Adds the declarations, facts and rules of a text.
    ///
    /// # Errors
    /// As [`parse`](Program::parse).
    pub fn and(mut self, text: &str) -> Result<Program, Error> {
        let other = Program::parse(text)?;
        self.text.clear();
        self.types.extend(other.types);
        self.relations.extend(other.relations);
        self.clauses.extend(other.clauses);
        self.directives.extend(other.directives);
        Ok(self)
    }

    fn directive(mut self, kind: DirectiveKind, relation: &str) -> Program {
        let relations = vec![relation.into()];
        self.directives.push(Directive { kind, relations, parameters: vec![], at: Span::default() });
        self
    }
}

/// `relation(arguments)`
pub fn atom(relation: &str, arguments: impl IntoIterator<Item = Argument>) -> Atom {
    Atom { relation: relation.into(), arguments: arguments.into_iter().collect(), at: Span::default() }
}

/// `!atom`
pub fn negated(atom: Atom) -> Formula {
    Formula::Not(Box::new(atom.into()))
}

/// One of these holds.
pub fn any(parts: impl IntoIterator<Item = Formula>) -> Formula {
    Formula::Or(parts.into_iter().collect())
}

/// A variable.
pub fn variable(name: &str) -> Argument {
    argument(ArgumentKind::Variable(name.to_owned()))
}

/// `_`
pub fn wildcard() -> Argument {
    argument(ArgumentKind::Wildcard)
}

/// A symbol.
pub fn text(text: &str) -> Argument {
    argument(ArgumentKind::Text(text.to_owned()))
}

/// A whole number.
pub fn number(number: i64) -> Argument {
    argument(ArgumentKind::Integer(number))
}

/// A float.
pub fn float(number: f64) -> Argument {
    argument(ArgumentKind::Float(number.to_bits()))
}

/// `[a, b]`
pub fn record(parts: impl IntoIterator<Item = Argument>) -> Argument {
    argument(ArgumentKind::Record(parts.into_iter().collect()))
}

/// `$Name(a, b)`
pub fn branch(name: &str, parts: impl IntoIterator<Item = Argument>) -> Argument {
    argument(ArgumentKind::Branch(name.into(), parts.into_iter().collect()))
}

/// A functor or operator by its name in Souffle: `cat`, `+`, `band`.
pub fn call(functor: &str, arguments: impl IntoIterator<Item = Argument>) -> Argument {
    argument(ArgumentKind::Call(functor.to_owned(), arguments.into_iter().collect()))
}

/// `count : { body }`
pub fn count(body: impl IntoIterator<Item = Formula>) -> Argument {
    aggregated(AggregateKind::Count, None, body)
}

/// `sum target : { body }`, or another aggregate of a value.
pub fn aggregate(function: AggregateKind, target: Argument, body: impl IntoIterator<Item = Formula>) -> Argument {
    aggregated(function, Some(target), body)
}

fn aggregated(function: AggregateKind, target: Option<Argument>, body: impl IntoIterator<Item = Formula>) -> Argument {
    let body = Formula::And(body.into_iter().collect());
    argument(ArgumentKind::Aggregate(Box::new(AggregateTerm { function, target, body })))
}

fn argument(kind: ArgumentKind) -> Argument {
    Argument { kind, at: Span::default() }
}

impl From<Atom> for Formula {
    fn from(atom: Atom) -> Formula {
        Formula::Atom(atom)
    }
}

impl Argument {
    /// The condition that this compares so with the other.
    pub fn compared(self, comparison: Comparison, other: Argument) -> Formula {
        Formula::Constraint(Constraint { comparison, left: self, right: other, at: Span::default() })
    }

    /// `self = other`
    pub fn equals(self, other: Argument) -> Formula {
        self.compared(Comparison::Equal, other)
    }

    /// `self != other`
    pub fn differs(self, other: Argument) -> Formula {
        self.compared(Comparison::NotEqual, other)
    }

    /// `self < other`
    pub fn less(self, other: Argument) -> Formula {
        self.compared(Comparison::Less, other)
    }

    /// `self > other`
    pub fn greater(self, other: Argument) -> Formula {
        self.compared(Comparison::Greater, other)
    }

    /// `self + other`
    pub fn plus(self, other: Argument) -> Argument {
        call("+", [self, other])
    }

    /// `self - other`
    pub fn minus(self, other: Argument) -> Argument {
        call("-", [self, other])
    }
}
