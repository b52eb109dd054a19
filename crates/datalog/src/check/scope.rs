//! The variables of a rule, and their types.
//!
//! A name means one variable in head and body. A name that only stands within an aggregate is a
//! variable of that aggregate alone. Types come from the atoms that bind variables; equations carry
//! them on; a whole number takes the type that its place wants.

use std::collections::HashMap;

use anabranch_engine::Error;

use super::alternatives::{Part, alternatives};
use super::signatures::Signatures;
use super::types::Type;
use crate::ast::{AggregateKind, AggregateTerm, Argument, ArgumentKind, Atom, Comparison, Span};
use crate::core::{RuleVariable, VariableId};
use crate::value::Base;

/// The variables of one rule.
pub(super) struct RuleScope<'a> {
    pub signatures: &'a Signatures,
    variables: Vec<ScopeVariable>,
    outer: Names,
    /// Variables and body of each aggregate, by the address of its part of the tree.
    inner: HashMap<*const AggregateTerm, Inner<'a>>,
    /// The keys of `inner`, in the order of the text.
    aggregates: Vec<*const AggregateTerm>,
}

/// Names of variables.
pub(super) type Names = HashMap<String, VariableId>;

/// What an aggregate has of its own.
pub(super) struct Inner<'a> {
    pub names: Names,
    pub parts: Vec<Part<'a>>,
}

struct ScopeVariable {
    name: String,
    typed: Option<Type>,
}

impl<'a> RuleScope<'a> {
    /// The scope of a rule, with all types.
    pub fn of(head: &'a Atom, parts: &[Part<'a>], signatures: &'a Signatures) -> Result<RuleScope<'a>, Error> {
        let mut scope =
            RuleScope { signatures, variables: vec![], outer: Names::new(), inner: HashMap::new(), aggregates: vec![] };
        let mut aggregates = vec![];
        for argument in &head.arguments {
            scope.declare(argument, &mut aggregates);
        }
        scope.declare_parts(parts, &mut aggregates);
        for (aggregate, at) in aggregates {
            scope.declare_aggregate(aggregate, at)?;
        }
        scope.infer(head, parts)?;
        Ok(scope)
    }

    /// What an aggregate has of its own.
    pub fn inner(&self, aggregate: &AggregateTerm) -> &Inner<'a> {
        &self.inner[&std::ptr::from_ref(aggregate)]
    }

    /// The variable of a name, within an aggregate if `names` are its own.
    pub fn variable(&self, name: &str, names: Option<&Names>) -> VariableId {
        let found = names.and_then(|names| names.get(name)).or_else(|| self.outer.get(name));
        *found.expect("all names of the rule are declared")
    }

    /// The variable's type, if anything tells it.
    pub fn typed(&self, variable: VariableId) -> Option<&Type> {
        self.variables[variable].typed.as_ref()
    }

    /// A new variable without a name.
    pub fn fresh(&mut self, typed: Type) -> VariableId {
        self.variables.push(ScopeVariable { name: String::new(), typed: Some(typed) });
        self.variables.len() - 1
    }

    /// All variables. A type that nothing tells is of a variable that nothing binds.
    pub fn into_variables(self) -> Vec<RuleVariable> {
        let base = |typed: Option<Type>| typed.map_or(Base::Number, |typed| typed.base);
        let variable = |each: ScopeVariable| RuleVariable { name: each.name, base: base(each.typed) };
        self.variables.into_iter().map(variable).collect()
    }

    fn add(&mut self, name: &str) -> VariableId {
        self.variables.push(ScopeVariable { name: name.to_owned(), typed: None });
        self.variables.len() - 1
    }

    /// Declares the names outside of aggregates, and notes the aggregates.
    fn declare(&mut self, argument: &'a Argument, aggregates: &mut Vec<(&'a AggregateTerm, Span)>) {
        match &argument.kind {
            ArgumentKind::Variable(name) => {
                if !self.outer.contains_key(name) {
                    let variable = self.add(name);
                    self.outer.insert(name.clone(), variable);
                }
            }
            ArgumentKind::Aggregate(aggregate) => aggregates.push((aggregate, argument.at)),
            _ => parts_of(argument).for_each(|part| self.declare(part, aggregates)),
        }
    }

    fn declare_parts(&mut self, parts: &[Part<'a>], aggregates: &mut Vec<(&'a AggregateTerm, Span)>) {
        for part in parts {
            match part {
                Part::Atom(atom) | Part::NotAtom(atom) => {
                    atom.arguments.iter().for_each(|argument| self.declare(argument, aggregates));
                }
                Part::Constraint { left, right, .. } => {
                    self.declare(left, aggregates);
                    self.declare(right, aggregates);
                }
            }
        }
    }

    fn declare_aggregate(&mut self, aggregate: &'a AggregateTerm, at: Span) -> Result<(), Error> {
        let mut bodies = alternatives(&aggregate.body, at)?;
        let (Some(parts), true) = (bodies.pop(), bodies.is_empty()) else {
            return Err(Error::invalid("alternatives (;) in the body of an aggregate are not supported")
                .at(at.start)
                .with_hint("Define a relation for the alternatives, and aggregate over that."));
        };
        let outer = std::mem::take(&mut self.outer);
        let mut nested = vec![];
        if let Some(target) = &aggregate.target {
            self.declare_within(target, &outer, &mut nested);
        }
        for part in &parts {
            match part {
                Part::Atom(atom) | Part::NotAtom(atom) => {
                    atom.arguments.iter().for_each(|argument| self.declare_within(argument, &outer, &mut nested));
                }
                Part::Constraint { left, right, .. } => {
                    self.declare_within(left, &outer, &mut nested);
                    self.declare_within(right, &outer, &mut nested);
                }
            }
        }
        let names = std::mem::replace(&mut self.outer, outer);
        if let Some((_, at)) = nested.first() {
            return Err(Error::invalid("an aggregate within an aggregate is not supported")
                .at(at.start)
                .with_hint("Define a relation for the inner aggregate."));
        }
        self.inner.insert(aggregate, Inner { names, parts });
        self.aggregates.push(aggregate);
        Ok(())
    }

    /// Declares the names that the rule has not outside of the aggregate.
    fn declare_within(&mut self, argument: &'a Argument, outer: &Names, nested: &mut Vec<(&'a AggregateTerm, Span)>) {
        match &argument.kind {
            ArgumentKind::Variable(name) if outer.contains_key(name) => {}
            ArgumentKind::Variable(_) | ArgumentKind::Aggregate(_) => self.declare(argument, nested),
            _ => parts_of(argument).for_each(|part| self.declare_within(part, outer, nested)),
        }
    }

    fn infer(&mut self, head: &'a Atom, parts: &[Part<'a>]) -> Result<(), Error> {
        let mut equations = vec![];
        self.of_atoms(parts, None, &mut equations)?;
        for key in self.aggregates.clone() {
            let Inner { names, parts } = &self.inner[&key];
            let (names, parts) = (names.clone(), parts.clone());
            self.of_atoms(&parts, Some(&names), &mut equations)?;
        }
        self.solve(&equations)?;
        // What nothing else tells, the head does; a whole number is a number then.
        let relation = self.signatures.relation(&head.relation)?;
        for (argument, (_, wanted)) in head.arguments.iter().zip(self.signatures.attributes(relation)) {
            if let ArgumentKind::Variable(name) = &argument.kind
                && self.typed(self.outer[name]).is_none()
            {
                self.meet(self.outer[name], wanted, argument.at)?;
            }
        }
        self.solve(&equations)?;
        for Equation { left, right, names } in &equations {
            let number = self.signatures.types.primitive(Base::Number);
            for (one, other) in [(left, right), (right, left)] {
                if self.type_of(one, names.as_ref()).is_none() && is_whole(one) {
                    self.pattern(other, &number, names.as_ref())?;
                }
            }
        }
        self.solve(&equations)
    }

    /// Types of the variables that positive atoms bind; equations are noted.
    fn of_atoms(
        &mut self,
        parts: &[Part<'a>],
        names: Option<&Names>,
        equations: &mut Vec<Equation<'a>>,
    ) -> Result<(), Error> {
        for part in parts {
            match part {
                Part::Atom(atom) => {
                    let relation = self.signatures.relation(&atom.relation)?;
                    let signatures = self.signatures;
                    for (argument, (_, wanted)) in atom.arguments.iter().zip(signatures.attributes(relation)) {
                        self.pattern(argument, wanted, names)?;
                    }
                }
                Part::Constraint { comparison: Comparison::Equal, left, right, .. } => {
                    equations.push(Equation { left, right, names: names.cloned() });
                }
                Part::NotAtom(_) | Part::Constraint { .. } => {}
            }
        }
        Ok(())
    }

    /// Carries types over equations until nothing changes.
    fn solve(&mut self, equations: &[Equation<'a>]) -> Result<(), Error> {
        loop {
            let before = self.n_typed();
            for Equation { left, right, names } in equations {
                for (one, other) in [(left, right), (right, left)] {
                    if let Some(known) = self.type_of(one, names.as_ref()) {
                        self.pattern(other, &known, names.as_ref())?;
                    }
                }
            }
            if self.n_typed() == before {
                return Ok(());
            }
        }
    }

    fn n_typed(&self) -> usize {
        self.variables.iter().filter(|variable| variable.typed.is_some()).count()
    }

    /// The variables in `argument` have values of the type that its place wants.
    fn pattern(&mut self, argument: &Argument, wanted: &Type, names: Option<&Names>) -> Result<(), Error> {
        let signatures = self.signatures;
        match &argument.kind {
            ArgumentKind::Variable(name) => self.meet(self.variable(name, names), wanted, argument.at),
            ArgumentKind::Record(arguments) => {
                let Base::Record(place) = wanted.base else { return Ok(()) };
                let fields = &signatures.types.records[place].fields;
                arguments.iter().zip(fields).try_for_each(|(inner, field)| self.pattern(inner, field, names))
            }
            ArgumentKind::Branch(name, arguments) => {
                let (_, shape) = signatures.types.branch(name)?;
                arguments.iter().zip(&shape.fields).try_for_each(|(inner, field)| self.pattern(inner, field, names))
            }
            _ => Ok(()),
        }
    }

    fn meet(&mut self, variable: VariableId, wanted: &Type, at: Span) -> Result<(), Error> {
        let types = &self.signatures.types;
        let met = match &self.variables[variable].typed {
            None => wanted.clone(),
            Some(known) => types.meet(known, wanted).ok_or_else(|| {
                let name = &self.variables[variable].name;
                let (known, wanted) = (types.shown(known), types.shown(wanted));
                Error::invalid(format!("variable {name} is of type {known}, but its place here of type {wanted}"))
                    .at(at.start)
                    .with_detail("The two types have no values in common.")
            })?,
        };
        self.variables[variable].typed = Some(met);
        Ok(())
    }

    /// The type of an argument, where it does not depend on its place.
    pub fn type_of(&self, argument: &Argument, names: Option<&Names>) -> Option<Type> {
        let types = &self.signatures.types;
        let primitive = |base| Some(types.primitive(base));
        match &argument.kind {
            ArgumentKind::Variable(name) => self.typed(self.variable(name, names)).cloned(),
            ArgumentKind::Text(_) => primitive(Base::Symbol),
            ArgumentKind::Unsigned(_) => primitive(Base::Unsigned),
            ArgumentKind::Float(_) => primitive(Base::Float),
            ArgumentKind::Cast(_, name) => types.named(name).ok(),
            ArgumentKind::Branch(name, _) => types.branch(name).ok().map(|(of, _)| of),
            ArgumentKind::Call(functor, arguments) => match super::call::fixed_output(functor) {
                Some(base) => primitive(base),
                None => {
                    let known = arguments.iter().find_map(|operand| self.type_of(operand, names))?;
                    primitive_of(known.base).and_then(primitive)
                }
            },
            ArgumentKind::Aggregate(aggregate) => {
                let names = &self.inner.get(&std::ptr::from_ref::<AggregateTerm>(aggregate))?.names;
                match (aggregate.function, &aggregate.target) {
                    (AggregateKind::Count, _) => primitive(Base::Number),
                    (AggregateKind::Mean, _) => primitive(Base::Float),
                    (_, Some(target)) => {
                        let known = self.type_of(target, Some(names))?;
                        primitive_of(known.base).and_then(primitive)
                    }
                    (_, None) => None,
                }
            }
            ArgumentKind::Integer(_) | ArgumentKind::Nil | ArgumentKind::Record(_) | ArgumentKind::Wildcard => None,
        }
    }
}

/// An equation, and the names of the aggregate that it stands in.
struct Equation<'a> {
    left: &'a Argument,
    right: &'a Argument,
    names: Option<Names>,
}

fn primitive_of(base: Base) -> Option<Base> {
    (!base.is_structured()).then_some(base)
}

/// Whether the argument is a whole number, or computed of such.
pub(super) fn is_whole(argument: &Argument) -> bool {
    match &argument.kind {
        ArgumentKind::Integer(_) => true,
        ArgumentKind::Call(_, arguments) => arguments.iter().all(is_whole),
        ArgumentKind::Aggregate(aggregate) => aggregate.target.as_ref().is_some_and(is_whole),
        _ => false,
    }
}

/// The arguments of an argument.
fn parts_of(argument: &Argument) -> impl Iterator<Item = &Argument> {
    let parts: Vec<&Argument> = match &argument.kind {
        ArgumentKind::Record(parts) | ArgumentKind::Branch(_, parts) | ArgumentKind::Call(_, parts) => {
            parts.iter().collect()
        }
        ArgumentKind::Cast(part, _) => vec![part],
        _ => vec![],
    };
    parts.into_iter()
}
