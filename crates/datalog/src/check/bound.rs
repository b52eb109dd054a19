//! Whether every variable that a rule looks at has a value.
//!
//! Literals are taken as soon as what they look at is bound; those that never are make the rule
//! unsafe: its answer would not be finite, or not defined.

use std::collections::BTreeSet;

use anabranch_engine::Error;

use crate::ast::{Comparison, Span};
use crate::core::{CoreAggregate, Literal, Rule, Term, VariableId};

/// Variables that have values.
pub(crate) type Bound = BTreeSet<VariableId>;

/// Checks one rule, whose head stands at `head_at`.
pub(super) fn check(rule: &Rule, head_at: Span) -> Result<(), Error> {
    let in_head = variables_of(|visit| rule.arguments.iter().for_each(|term| term.variables(visit)));
    let bound = bind(&rule.body, &Bound::new(), &in_head).map_err(|stuck| unbound(rule, &stuck))?;
    match in_head.iter().find(|variable| !bound.contains(variable)) {
        Some(variable) => {
            let stuck = Stuck { variables: vec![*variable], at: head_at, place: "the head" };
            Err(unbound(rule, &stuck))
        }
        None => Ok(()),
    }
}

/// A place that looks at variables without values.
struct Stuck {
    variables: Vec<VariableId>,
    at: Span,
    place: &'static str,
}

/// What is bound after all literals; `around` are the variables that the rest of the rule has.
fn bind(body: &[Literal], before: &Bound, around: &Bound) -> Result<Bound, Stuck> {
    let mut bound = before.clone();
    let mut open: Vec<usize> = (0..body.len()).collect();
    loop {
        let n_open = open.len();
        let mut left = vec![];
        for idx in open {
            let outside = outside_of(body, idx, around);
            match ready(&body[idx], &bound, &outside) {
                true => bind_one(&body[idx], &mut bound, &outside)?,
                false => left.push(idx),
            }
        }
        open = left;
        if open.is_empty() {
            return Ok(bound);
        }
        if open.len() == n_open {
            return Err(stuck(&body[open[0]], &bound, &outside_of(body, open[0], around)));
        }
    }
}

/// The variables that a body has outside of one literal, and those around.
pub(crate) fn outside_of(body: &[Literal], idx: usize, around: &Bound) -> Bound {
    let mut outside = around.clone();
    for (_, other) in body.iter().enumerate().filter(|(other, _)| *other != idx) {
        other.variables(&mut |variable| {
            outside.insert(variable);
        });
    }
    outside
}

/// Variables of an aggregate that the rest of the rule has too, but for its result.
pub(crate) fn injected(aggregate: &CoreAggregate, outside: &Bound) -> Bound {
    let inner = variables_of(|visit| aggregate.inner_variables(visit));
    inner.intersection(outside).copied().collect()
}

fn ready(literal: &Literal, bound: &Bound, outside: &Bound) -> bool {
    let is_bound = |variable: VariableId| bound.contains(&variable);
    match literal {
        Literal::Atom(_) => true,
        Literal::Condition { comparison: Comparison::Equal, left, right, .. } => {
            (left.is_known(&is_bound) && right.is_pattern(&is_bound))
                || (right.is_known(&is_bound) && left.is_pattern(&is_bound))
        }
        Literal::Condition { left, right, .. } => left.is_known(&is_bound) && right.is_known(&is_bound),
        Literal::Range { arguments, .. } => arguments.iter().all(|term| term.is_known(&is_bound)),
        Literal::Aggregate(aggregate) => injected(aggregate, outside).is_subset(bound),
        Literal::Not { body, .. } => named(body, outside).is_subset(bound),
    }
}

/// Variables of a negated body, but for those that take a record apart within.
fn named(body: &[Literal], outside: &Bound) -> Bound {
    let all = variables_of(|visit| body.iter().for_each(|literal| literal.variables(visit)));
    let local = |variable: &VariableId| !outside.contains(variable) && is_taken_apart(body, *variable);
    all.into_iter().filter(|variable| !local(variable)).collect()
}

fn is_taken_apart(body: &[Literal], variable: VariableId) -> bool {
    body.iter().any(|literal| matches!(literal, Literal::Condition { left, .. } if *left == Term::Variable(variable)))
}

fn bind_one(literal: &Literal, bound: &mut Bound, outside: &Bound) -> Result<(), Stuck> {
    match literal {
        Literal::Aggregate(aggregate) => {
            let within = bind(&aggregate.body, bound, &Bound::new())?;
            let target = variables_of(|visit| aggregate.target.iter().for_each(|term| term.variables(visit)));
            let missing: Vec<VariableId> = target.difference(&within).copied().collect();
            if !missing.is_empty() {
                return Err(Stuck { variables: missing, at: aggregate.at, place: "the aggregate" });
            }
            bound.insert(aggregate.result);
        }
        Literal::Not { body, .. } => {
            debug_assert!(named(body, outside).is_subset(bound));
        }
        _ => literal.variables(&mut |variable| {
            bound.insert(variable);
        }),
    }
    Ok(())
}

fn stuck(literal: &Literal, bound: &Bound, outside: &Bound) -> Stuck {
    let (looked_at, place) = match literal {
        Literal::Not { body, .. } => (named(body, outside), "the negation"),
        Literal::Aggregate(aggregate) => (injected(aggregate, outside), "the aggregate"),
        Literal::Range { arguments, .. } => {
            (variables_of(|visit| arguments.iter().for_each(|term| term.variables(visit))), "the range")
        }
        _ => (variables_of(|visit| literal.variables(visit)), "the condition"),
    };
    Stuck { variables: looked_at.difference(bound).copied().collect(), at: literal.at(), place }
}

fn unbound(rule: &Rule, stuck: &Stuck) -> Error {
    let mut names: Vec<&str> = vec![];
    for variable in &stuck.variables {
        let name = rule.variables[*variable].name.as_str();
        if !name.is_empty() && !names.contains(&name) {
            names.push(name);
        }
    }
    let (what, verb) = match names.len() {
        0 => ("a value".to_owned(), "is"),
        1 => (format!("variable {}", names[0]), "is"),
        _ => (format!("variables {}", names.join(", ")), "are"),
    };
    let error = Error::invalid(format!("{what} in {} {verb} not bound", stuck.place)).at(stuck.at.start);
    match stuck.place {
        "the aggregate" => error
            .with_detail("What an aggregate's body binds stays inside; what the rule uses has to be bound outside too.")
            .with_hint("Bind it in a positive atom of the rule's body."),
        _ => error.with_hint("Bind it in a positive atom of the rule's body, or by = with a known value."),
    }
}

/// Whether a body binds all of `wanted` by itself.
pub(crate) fn binds(body: &[Literal], wanted: &Bound) -> bool {
    bind(body, &Bound::new(), &Bound::new()).is_ok_and(|bound| wanted.is_subset(&bound))
}

/// The variables that a walk visits.
pub(crate) fn variables_of(walk: impl FnOnce(&mut dyn FnMut(VariableId))) -> Bound {
    let mut found = Bound::new();
    walk(&mut |variable| {
        found.insert(variable);
    });
    found
}
