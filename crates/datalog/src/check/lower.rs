//! Arguments to terms, and parts of bodies to literals, with their types checked.
//!
//! Literals that a term needs (a functor within an atom, an aggregate, a range) are put in front of
//! the literal that has the term; `extras` collects them.

use anabranch_engine::Error;

use super::alternatives::Part;
use super::call::Call;
use super::scope::{Names, RuleScope};
use super::signatures::{Signatures, wrong_count};
use super::types::Type;
use crate::ast::{self, AggregateKind, AggregateTerm, Argument, ArgumentKind, Comparison, Span};
use crate::core::{self, Literal, RelationId, Rule, Structure, Term};
use crate::functor::compile;
use crate::record::{self, NIL, RecordPart};
use crate::value::{Base, Value};

/// A rule with one head and one conjunction. Heads without attributes get no argument here.
pub(super) fn rule(
    relation: RelationId,
    head: &ast::Atom,
    parts: &[Part<'_>],
    at: Span,
    signatures: &Signatures,
) -> Result<Rule, Error> {
    let mut lowering = Lowering { scope: RuleScope::of(head, parts, signatures)? };
    let mut body = vec![];
    for part in parts {
        lowering.part(part, None, &mut body)?;
    }
    let attributes = signatures.attributes(relation);
    lowering.check_count(head, attributes)?;
    let mut arguments = vec![];
    for (argument, (name, wanted)) in head.arguments.iter().zip(attributes) {
        let (term, of) = lowering.term(argument, Some(wanted), None, &mut body)?;
        if term == Term::Wildcard {
            return Err(Error::invalid("a wildcard has no value, and cannot stand in a head")
                .at(argument.at.start)
                .with_hint("Name the variable, and bind it in the body."));
        }
        let types = &signatures.types;
        if matches!(argument.kind, ArgumentKind::Variable(_)) && !types.is_within(&of, wanted) {
            return Err(lowering
                .misfit(argument, &of, wanted)
                .with_detail(format!(
                    "Not all values of type {} are of type {}, which attribute {name} of {} has.",
                    types.shown(&of),
                    types.shown(wanted),
                    head.relation.text
                ))
                .with_hint(format!("Say that they are: as(.., {}).", types.shown(wanted))));
        }
        arguments.push(term);
    }
    Ok(Rule { head: relation, arguments, body, variables: lowering.scope.into_variables(), at })
}

/// The lowering of one rule.
pub(super) struct Lowering<'a> {
    pub scope: RuleScope<'a>,
}

impl Lowering<'_> {
    pub(super) fn primitive(&self, base: Base) -> Type {
        self.scope.signatures.types.primitive(base)
    }

    pub(super) fn shown(&self, base: Base) -> String {
        self.scope.signatures.types.base_shown(base)
    }

    fn part(&mut self, part: &Part<'_>, names: Option<&Names>, body: &mut Vec<Literal>) -> Result<(), Error> {
        match part {
            Part::Atom(atom) => {
                let atom = self.atom(atom, names, body)?;
                body.push(Literal::Atom(atom));
                Ok(())
            }
            Part::NotAtom(atom) => self.negation(atom, names, body),
            Part::Constraint { comparison, left, right, at } => {
                self.condition(*comparison, left, right, *at, names, body)
            }
        }
    }

    fn check_count(&self, atom: &ast::Atom, attributes: &[(String, Type)]) -> Result<(), Error> {
        match attributes.len() == atom.arguments.len() {
            true => Ok(()),
            false => {
                let what = format!("relation {}", atom.relation.text);
                Err(wrong_count(&what, attributes.len(), atom.arguments.len(), atom.at))
            }
        }
    }

    /// An atom of plain terms. What is not plain is bound by equations.
    fn atom(
        &mut self,
        atom: &ast::Atom,
        names: Option<&Names>,
        extras: &mut Vec<Literal>,
    ) -> Result<core::Atom, Error> {
        let signatures = self.scope.signatures;
        let relation = signatures.relation(&atom.relation)?;
        let attributes = signatures.attributes(relation);
        self.check_count(atom, attributes)?;
        let mut terms = vec![];
        for (argument, (_, wanted)) in atom.arguments.iter().zip(attributes) {
            let (term, _) = self.term(argument, Some(wanted), names, extras)?;
            terms.push(self.plain(term, wanted, argument.at, extras));
        }
        if attributes.is_empty() {
            terms.push(Term::Wildcard);
        }
        Ok(core::Atom { relation, terms, at: atom.at })
    }

    /// The term, or a variable that equals it.
    fn plain(&mut self, term: Term, of: &Type, at: Span, extras: &mut Vec<Literal>) -> Term {
        match term {
            Term::Call(..) | Term::Structure(..) => {
                let variable = Term::Variable(self.scope.fresh(of.clone()));
                let (left, right) = (variable.clone(), term);
                extras.push(Literal::Condition { comparison: Comparison::Equal, left, right, at });
                variable
            }
            plain => plain,
        }
    }

    /// `!atom`. Functors are computed before; records with wildcards are taken apart inside.
    fn negation(&mut self, atom: &ast::Atom, names: Option<&Names>, body: &mut Vec<Literal>) -> Result<(), Error> {
        let signatures = self.scope.signatures;
        let relation = signatures.relation(&atom.relation)?;
        let attributes = signatures.attributes(relation);
        self.check_count(atom, attributes)?;
        let (mut terms, mut inner) = (vec![], vec![]);
        for (argument, (_, wanted)) in atom.arguments.iter().zip(attributes) {
            let (term, _) = self.term(argument, Some(wanted), names, body)?;
            let place = if has_wildcard(&term) { &mut inner } else { &mut *body };
            terms.push(self.plain(term, wanted, argument.at, place));
        }
        if attributes.is_empty() {
            terms.push(Term::Wildcard);
        }
        inner.insert(0, Literal::Atom(core::Atom { relation, terms, at: atom.at }));
        body.push(Literal::Not { body: inner, at: atom.at });
        Ok(())
    }

    fn condition(
        &mut self,
        comparison: Comparison,
        left: &Argument,
        right: &Argument,
        at: Span,
        names: Option<&Names>,
        body: &mut Vec<Literal>,
    ) -> Result<(), Error> {
        use Comparison as C;
        let of_text = matches!(comparison, C::Match | C::NotMatch | C::Contains | C::NotContains);
        let wanted = match of_text {
            true => Some(self.primitive(Base::Symbol)),
            false => self.scope.type_of(left, names).or_else(|| self.scope.type_of(right, names)),
        };
        let (left_term, left_type) = self.term(left, wanted.as_ref(), names, body)?;
        let (right_term, right_type) = self.term(right, Some(wanted.as_ref().unwrap_or(&left_type)), names, body)?;
        if left_term == Term::Wildcard || right_term == Term::Wildcard {
            // An equation with a wildcard asks for a value only, which the other side's literals
            // give.
            return match comparison {
                C::Equal => Ok(()),
                _ => Err(Error::invalid("a wildcard has no value to compare")
                    .at(at.start)
                    .with_hint("Name the variable, and bind it in an atom.")),
            };
        }
        if left_type.base.is_structured() && !matches!(comparison, C::Equal | C::NotEqual) {
            return Err(Error::invalid("records and branches have no order, only = and !=").at(at.start));
        }
        if let (C::Match | C::NotMatch, Term::Value(Value::Text(pattern))) = (comparison, &left_term) {
            compile(pattern).map_err(|problem| Error::invalid(problem).at(left.at.start))?;
        }
        debug_assert_eq!(left_type.base, right_type.base);
        body.push(Literal::Condition { comparison, left: left_term, right: right_term, at });
        Ok(())
    }

    /// The term of an argument and its type, which is that of its place if the place wants one.
    pub(super) fn term(
        &mut self,
        argument: &Argument,
        wanted: Option<&Type>,
        names: Option<&Names>,
        extras: &mut Vec<Literal>,
    ) -> Result<(Term, Type), Error> {
        let (term, of) = self.free_term(argument, wanted, names, extras)?;
        match wanted {
            Some(wanted) if wanted.base != of.base => Err(self.misfit(argument, &of, wanted)),
            _ => Ok((term, of)),
        }
    }

    fn misfit(&self, argument: &Argument, of: &Type, wanted: &Type) -> Error {
        let types = &self.scope.signatures.types;
        let what = match &argument.kind {
            ArgumentKind::Variable(name) => format!("variable {name}"),
            _ => "the value".to_owned(),
        };
        let error = Error::invalid(format!(
            "{what} is of type {}, but its place wants type {}",
            types.shown(of),
            types.shown(wanted)
        ))
        .at(argument.at.start);
        match (of.base, wanted.base) {
            (Base::Symbol, Base::Number) => error.with_hint("to_number(..) makes a number of a symbol."),
            (Base::Number | Base::Unsigned | Base::Float, Base::Symbol) => {
                error.with_hint("to_string(..) makes a symbol of a number.")
            }
            (Base::Number, Base::Unsigned) => error.with_hint("itou(..) makes it unsigned."),
            (Base::Unsigned, Base::Number) => error.with_hint("utoi(..) makes it a number."),
            (_, Base::Float) => error.with_hint("to_float(..) makes a float."),
            _ => error,
        }
    }

    fn free_term(
        &mut self,
        argument: &Argument,
        wanted: Option<&Type>,
        names: Option<&Names>,
        extras: &mut Vec<Literal>,
    ) -> Result<(Term, Type), Error> {
        let at = argument.at;
        match &argument.kind {
            ArgumentKind::Variable(name) => {
                let variable = self.scope.variable(name, names);
                let typed = self.scope.typed(variable).or(wanted).cloned();
                Ok((Term::Variable(variable), typed.unwrap_or_else(|| self.primitive(Base::Number))))
            }
            ArgumentKind::Wildcard => {
                let typed = wanted.cloned().unwrap_or_else(|| self.primitive(Base::Number));
                Ok((Term::Wildcard, typed))
            }
            ArgumentKind::Text(text) => Ok((Term::Value(Value::Text(text.clone())), self.primitive(Base::Symbol))),
            ArgumentKind::Integer(number) => self.whole_number(*number, wanted, at),
            ArgumentKind::Unsigned(number) => Ok((Term::Value(Value::Number(*number)), self.primitive(Base::Unsigned))),
            ArgumentKind::Float(bits) => {
                Ok((Term::Value(Value::Float(f64::from_bits(*bits))), self.primitive(Base::Float)))
            }
            ArgumentKind::Nil => match wanted {
                Some(of) if matches!(of.base, Base::Record(_)) => {
                    Ok((Term::Value(Value::Text(NIL.to_owned())), of.clone()))
                }
                Some(of) => {
                    let shown = self.scope.signatures.types.shown(of);
                    Err(Error::invalid(format!("nil is a record, but its place wants type {shown}")).at(at.start))
                }
                None => Err(untyped(at)),
            },
            ArgumentKind::Record(arguments) => self.record(arguments, wanted, names, extras, at),
            ArgumentKind::Branch(name, arguments) => {
                let signatures = self.scope.signatures;
                let (of, shape) = signatures.types.branch(name)?;
                if shape.fields.len() != arguments.len() {
                    let what = format!("branch {}", name.text);
                    return Err(wrong_count(&what, shape.fields.len(), arguments.len(), at));
                }
                let structure = Structure::Branch(name.text.clone());
                Ok((self.structure(structure, arguments, &shape.fields, names, extras)?, of))
            }
            ArgumentKind::Call(functor, arguments) => {
                self.call(&Call { functor, arguments, wanted, at }, names, extras)
            }
            ArgumentKind::Cast(inner, name) => {
                let to = self.scope.signatures.types.named(name)?;
                let whole = matches!(inner.kind, ArgumentKind::Integer(_)).then_some(&to);
                let (term, of) = self.term(inner, whole, names, extras)?;
                match of.base == to.base {
                    true => Ok((term, to)),
                    false => {
                        let (of, to) = (self.shown(of.base), self.shown(to.base));
                        Err(Error::invalid(format!("a {of} cannot be taken as a {to}"))
                            .at(at.start)
                            .with_hint("to_string, to_number, to_unsigned and to_float convert values."))
                    }
                }
            }
            ArgumentKind::Aggregate(aggregate) => self.aggregate(aggregate, wanted, extras, at),
        }
    }

    fn whole_number(&self, number: i64, wanted: Option<&Type>, at: Span) -> Result<(Term, Type), Error> {
        match wanted.map(|of| of.base) {
            Some(Base::Float) => Ok((Term::Value(Value::Float(number as f64)), self.primitive(Base::Float))),
            Some(Base::Unsigned) if number < 0 => {
                Err(Error::invalid(format!("{number} is not an unsigned number")).at(at.start))
            }
            Some(Base::Unsigned) => Ok((Term::Value(Value::Number(number)), self.primitive(Base::Unsigned))),
            _ => Ok((Term::Value(Value::Number(number)), self.primitive(Base::Number))),
        }
    }

    fn record(
        &mut self,
        arguments: &[Argument],
        wanted: Option<&Type>,
        names: Option<&Names>,
        extras: &mut Vec<Literal>,
        at: Span,
    ) -> Result<(Term, Type), Error> {
        let Some(of) = wanted else { return Err(untyped(at)) };
        let signatures = self.scope.signatures;
        let Base::Record(place) = of.base else {
            let shown = signatures.types.shown(of);
            return Err(Error::invalid(format!("there is a record, but its place wants type {shown}")).at(at.start));
        };
        let fields = &signatures.types.records[place].fields;
        if fields.len() != arguments.len() {
            let what = format!("record {}", signatures.types.records[place].name);
            return Err(wrong_count(&what, fields.len(), arguments.len(), at));
        }
        Ok((self.structure(Structure::Record, arguments, fields, names, extras)?, of.clone()))
    }

    fn structure(
        &mut self,
        structure: Structure,
        arguments: &[Argument],
        fields: &[Type],
        names: Option<&Names>,
        extras: &mut Vec<Literal>,
    ) -> Result<Term, Error> {
        let mut terms = vec![];
        for (argument, field) in arguments.iter().zip(fields) {
            let (term, _) = self.term(argument, Some(field), names, extras)?;
            terms.push(match term {
                Term::Call(..) => self.plain(term, field, argument.at, extras),
                other => other,
            });
        }
        let parts: Option<Vec<RecordPart<'_>>> =
            terms.iter().zip(fields).map(|(term, field)| constant_part(term, field.base)).collect();
        Ok(match parts {
            Some(parts) => {
                let branch = match &structure {
                    Structure::Record => None,
                    Structure::Branch(name) => Some(name.as_str()),
                };
                Term::Value(Value::Text(record::write(branch, parts)))
            }
            None => Term::Structure(structure, fields.iter().map(|field| field.base).zip(terms).collect()),
        })
    }

    fn aggregate(
        &mut self,
        aggregate: &AggregateTerm,
        wanted: Option<&Type>,
        extras: &mut Vec<Literal>,
        at: Span,
    ) -> Result<(Term, Type), Error> {
        let inner = self.scope.inner(aggregate);
        let (names, parts) = (inner.names.clone(), inner.parts.clone());
        let mut body = vec![];
        for part in &parts {
            self.part(part, Some(&names), &mut body)?;
        }
        let function = aggregate.function;
        let name = function.name();
        let wanted = wanted.filter(|_| function != AggregateKind::Mean);
        let mut typed = self.primitive(Base::Number);
        let mut target = None;
        if let Some(argument) = &aggregate.target {
            let known = self.scope.type_of(argument, Some(&names)).or_else(|| wanted.cloned());
            let known = known.map(|known| self.primitive_type(&known));
            let (term, of) = self.term(argument, known.as_ref(), Some(&names), &mut body)?;
            if !of.base.is_numeric() {
                let shown = self.shown(of.base);
                return Err(Error::invalid(format!("{name} is of numbers, not of type {shown}")).at(argument.at.start));
            }
            if term == Term::Wildcard {
                return Err(Error::invalid(format!("{name} has no value for a wildcard")).at(argument.at.start));
            }
            typed = self.primitive(if function == AggregateKind::Mean { Base::Float } else { of.base });
            target = Some(term);
        }
        let result = self.scope.fresh(typed.clone());
        extras.push(Literal::Aggregate(core::CoreAggregate { result, function, target, body, at }));
        Ok((Term::Variable(result), typed))
    }

    /// The primitive type that a type is a part of.
    fn primitive_type(&self, of: &Type) -> Type {
        match of.base.is_structured() {
            true => of.clone(),
            false => self.primitive(of.base),
        }
    }
}

fn untyped(at: Span) -> Error {
    Error::invalid("nothing tells which record type this is")
        .at(at.start)
        .with_hint("Say it: as(.., Type), or use the record in an atom.")
}

fn has_wildcard(term: &Term) -> bool {
    match term {
        Term::Structure(_, terms) => terms.iter().any(|(_, term)| *term == Term::Wildcard || has_wildcard(term)),
        _ => false,
    }
}

fn constant_part(term: &Term, base: Base) -> Option<RecordPart<'_>> {
    match term {
        Term::Value(Value::Text(text)) if base.is_structured() => Some(RecordPart::Inner(text)),
        Term::Value(Value::Text(text)) => Some(RecordPart::Text(text)),
        Term::Value(Value::Number(number)) => Some(RecordPart::Number(*number)),
        Term::Value(Value::Float(number)) => Some(RecordPart::Float(*number)),
        _ => None,
    }
}
