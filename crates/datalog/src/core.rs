//! A checked program: names are numbers, every variable has a type, bodies are conjunctions.
//!
//! Law: in a rule all variables of head, negations, conditions and functors can be bound from left
//! to right in some order (`check::bound` has found one), and no relation depends on its own
//! absence (`stratify`).

use crate::ast::{AggregateKind, Comparison, Span};
use crate::functor::Functor;
use crate::value::{Base, Value};

/// Position of a relation in [`Core::relations`].
pub(crate) type RelationId = usize;
/// Position of a variable in [`Rule::variables`].
pub(crate) type VariableId = usize;

/// A checked program.
#[derive(Clone, Debug)]
pub(crate) struct Core {
    pub relations: Vec<Relation>,
    /// Rules with a body; facts are at their relations.
    pub rules: Vec<Rule>,
    /// Types of the fields of each record type.
    pub records: Vec<Vec<Base>>,
    /// Names and types of the branches of each data type.
    pub branches: Vec<Vec<(String, Vec<Base>)>>,
}

/// A relation, its facts and where its rows come from.
#[derive(Clone, Debug)]
pub(crate) struct Relation {
    pub name: String,
    pub columns: Vec<Column>,
    /// Whether the relation has no attributes; its one column says that its row is there.
    pub is_nullary: bool,
    /// Where it is declared.
    pub at: Span,
    /// Rows that the program states.
    pub facts: Vec<Vec<Value>>,
    /// Whether facts come from outside too.
    pub is_input: bool,
    /// Whether its rows, or their number, are an answer.
    pub is_output: bool,
}

/// A column of a relation.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub name: String,
    pub base: Base,
}

/// A rule with one head.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    pub head: RelationId,
    pub arguments: Vec<Term>,
    pub body: Vec<Literal>,
    pub variables: Vec<RuleVariable>,
    pub at: Span,
}

/// A variable of a rule.
#[derive(Clone, Debug)]
pub(crate) struct RuleVariable {
    /// As written; empty for one that the checker has made.
    pub name: String,
    pub base: Base,
}

/// A value that a rule looks up or computes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Term {
    Variable(VariableId),
    /// Some value, each time another.
    Wildcard,
    Value(Value),
    Call(Functor, Vec<Term>),
    /// A record or a branch that is put together or taken apart, with the types of its parts.
    Structure(Structure, Vec<(Base, Term)>),
}

/// What a [`Term::Structure`] puts together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Structure {
    Record,
    /// The branch's name.
    Branch(String),
}

/// A part of a body.
#[derive(Clone, Debug)]
pub(crate) enum Literal {
    /// A row that is there. Terms are variables, wildcards and values.
    Atom(Atom),
    /// No match of these literals. Variables that the rest of the rule has are bound before.
    Not { body: Vec<Literal>, at: Span },
    /// A condition. Equality binds the variables of one side when the other is known.
    Condition { comparison: Comparison, left: Term, right: Term, at: Span },
    /// A variable for each value of `range(..)`.
    Range { result: VariableId, arguments: Vec<Term>, base: Base, at: Span },
    /// A variable for what the matches of a body come to.
    Aggregate(CoreAggregate),
}

/// `relation(terms)` in a body.
#[derive(Clone, Debug)]
pub(crate) struct Atom {
    pub relation: RelationId,
    pub terms: Vec<Term>,
    pub at: Span,
}

/// An aggregate in a body.
#[derive(Clone, Debug)]
pub(crate) struct CoreAggregate {
    pub result: VariableId,
    pub function: AggregateKind,
    /// What is added up or compared; `None` for counts.
    pub target: Option<Term>,
    pub body: Vec<Literal>,
    pub at: Span,
}

impl Core {
    /// Whether the relation has rules: else it is a table.
    pub fn is_derived(&self, relation: RelationId) -> bool {
        self.rules.iter().any(|rule| rule.head == relation)
    }

    pub fn relation_named(&self, name: &str) -> Option<RelationId> {
        self.relations.iter().position(|relation| relation.name == name)
    }
}

impl Term {
    /// Calls `visit` with each variable, as often as it occurs.
    pub fn variables(&self, visit: &mut dyn FnMut(VariableId)) {
        match self {
            Term::Variable(variable) => visit(*variable),
            Term::Wildcard | Term::Value(_) => {}
            Term::Call(_, arguments) => arguments.iter().for_each(|argument| argument.variables(visit)),
            Term::Structure(_, parts) => parts.iter().for_each(|(_, part)| part.variables(visit)),
        }
    }

    /// Whether its value follows from variables for which `bound` holds.
    pub fn is_known(&self, bound: &dyn Fn(VariableId) -> bool) -> bool {
        match self {
            Term::Variable(variable) => bound(*variable),
            Term::Wildcard => false,
            Term::Value(_) => true,
            Term::Call(_, arguments) => arguments.iter().all(|argument| argument.is_known(bound)),
            Term::Structure(_, parts) => parts.iter().all(|(_, part)| part.is_known(bound)),
        }
    }

    /// Whether a known value can be matched with the term: no functor has to be inverted. (The
    /// checker leaves no functor within a structure.)
    pub fn is_pattern(&self, bound: &dyn Fn(VariableId) -> bool) -> bool {
        match self {
            Term::Call(..) => self.is_known(bound),
            _ => true,
        }
    }
}

impl Literal {
    pub fn at(&self) -> Span {
        match self {
            Literal::Atom(atom) => atom.at,
            Literal::Aggregate(aggregate) => aggregate.at,
            Literal::Not { at, .. } | Literal::Condition { at, .. } | Literal::Range { at, .. } => *at,
        }
    }

    /// Calls `visit` with each variable, those within negations and aggregates included.
    pub fn variables(&self, visit: &mut dyn FnMut(VariableId)) {
        match self {
            Literal::Atom(atom) => atom.terms.iter().for_each(|term| term.variables(visit)),
            Literal::Not { body, .. } => body.iter().for_each(|literal| literal.variables(visit)),
            Literal::Condition { left, right, .. } => {
                left.variables(visit);
                right.variables(visit);
            }
            Literal::Range { result, arguments, .. } => {
                visit(*result);
                arguments.iter().for_each(|term| term.variables(visit));
            }
            Literal::Aggregate(aggregate) => {
                visit(aggregate.result);
                aggregate.inner_variables(visit);
            }
        }
    }

    /// Calls `visit` with each relation that is read, and whether its absence or all of its rows
    /// matter.
    pub fn relations(&self, visit: &mut dyn FnMut(RelationId, Use, Span)) {
        match self {
            Literal::Atom(atom) => visit(atom.relation, Use::Positive, atom.at),
            Literal::Condition { .. } | Literal::Range { .. } => {}
            Literal::Not { body, at } => {
                body.iter().for_each(|literal| literal.relations(&mut |id, _, _| visit(id, Use::Negated, *at)));
            }
            Literal::Aggregate(aggregate) => {
                let at = aggregate.at;
                let mut counted = |id, _, _| visit(id, Use::Aggregated, at);
                aggregate.body.iter().for_each(|literal| literal.relations(&mut counted));
            }
        }
    }
}

impl CoreAggregate {
    /// Calls `visit` with each variable of the target and the body.
    pub fn inner_variables(&self, visit: &mut dyn FnMut(VariableId)) {
        if let Some(target) = &self.target {
            target.variables(visit);
        }
        self.body.iter().for_each(|literal| literal.variables(visit));
    }
}

/// How a rule uses a relation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// More rows there give more rows here.
    Positive,
    /// Under `!`.
    Negated,
    /// In the body of an aggregate.
    Aggregated,
}
