//! Magic sets: a query with bound arguments computes what it asks for only.
//!
//! Each relation that is asked with some columns bound becomes a relation of its own (*adorned*),
//! whose rules first look at a relation of the values that are asked for (*magic*). What a rule
//! asks of its body follows from its head's values and the atoms before. Law: the rows of an
//! adorned relation are rows of the original, all of them that agree with a value asked for.
//! Negated and aggregated relations stay as they are, and no magic rule looks at them: strata are
//! kept.
//!
//! Source: Beeri and Ramakrishnan, *On the Power of Magic* (1991), the generalised magic sets.

use std::collections::HashMap;

use crate::ast::Comparison;
use crate::check::bound::Bound;
use crate::core::{Atom, Column, Core, Literal, Relation, RelationId, Rule, RuleVariable, Term};
use crate::value::Value;

/// Which columns are bound.
type Adornment = Vec<bool>;

/// A program rewritten for a query.
pub(crate) struct AskedAtoms {
    pub core: Core,
    /// The original of each adorned relation.
    pub origins: HashMap<RelationId, RelationId>,
}

/// Rewrites the rules that `query` reads. Relations for which `is_stored` holds stay as they are.
pub(crate) fn asked(core: &Core, query: RelationId, is_stored: &dyn Fn(RelationId) -> bool) -> AskedAtoms {
    let mut magic = Magic { core, out: core.clone(), is_stored, adorned: HashMap::new(), open: vec![] };
    magic.out.rules.retain(|rule| rule.head != query);
    for rule in core.rules.iter().filter(|rule| rule.head == query) {
        let rewritten = magic.rewritten(rule.clone(), None);
        magic.out.rules.push(rewritten);
    }
    while let Some((relation, adornment)) = magic.open.pop() {
        magic.adorn(relation, &adornment);
    }
    let origins = magic.adorned.iter().map(|((origin, _), ids)| (ids.adorned, *origin)).collect();
    AskedAtoms { core: magic.out, origins }
}

/// The relations made for one relation and adornment.
#[derive(Clone, Copy)]
struct Ids {
    adorned: RelationId,
    magic: RelationId,
}

struct Magic<'a> {
    core: &'a Core,
    out: Core,
    is_stored: &'a dyn Fn(RelationId) -> bool,
    adorned: HashMap<(RelationId, Adornment), Ids>,
    /// Adorned relations whose rules are not made yet.
    open: Vec<(RelationId, Adornment)>,
}

impl Magic<'_> {
    /// The relations for a relation that is asked with these columns bound.
    fn ids(&mut self, relation: RelationId, adornment: Adornment) -> Ids {
        if let Some(ids) = self.adorned.get(&(relation, adornment.clone())) {
            return *ids;
        }
        let original = &self.core.relations[relation];
        let letters: String = adornment.iter().map(|bound| if *bound { 'b' } else { 'f' }).collect();
        let adorned = Relation { name: format!("{}^{letters}", original.name), ..original.clone() };
        let bound = original.columns.iter().zip(&adornment).filter(|(_, bound)| **bound);
        let columns: Vec<Column> = bound.map(|(column, _)| column.clone()).collect();
        let name = format!("?{}", adorned.name);
        let magic = Relation { name, columns, facts: vec![], is_input: false, is_output: false, ..original.clone() };
        let ids = Ids { adorned: self.out.relations.len(), magic: self.out.relations.len() + 1 };
        self.out.relations.extend([adorned, magic]);
        self.adorned.insert((relation, adornment.clone()), ids);
        self.open.push((relation, adornment));
        ids
    }

    /// Makes the rules of an adorned relation.
    fn adorn(&mut self, relation: RelationId, adornment: &Adornment) {
        let ids = self.ids(relation, adornment.clone());
        for rule in self.core.rules.iter().filter(|rule| rule.head == relation) {
            let mut rule = Rule { head: ids.adorned, ..rule.clone() };
            let mut terms = vec![];
            for (position, _) in adornment.iter().enumerate().filter(|(_, bound)| **bound) {
                terms.push(self.asked_term(position, relation, &mut rule));
            }
            let guard = Atom { relation: ids.magic, terms, at: rule.at };
            let rewritten = self.rewritten(rule, Some(guard));
            self.out.rules.push(rewritten);
        }
    }

    /// The head's term in a magic atom; what is computed is compared once it is known.
    fn asked_term(&self, position: usize, relation: RelationId, rule: &mut Rule) -> Term {
        match &rule.arguments[position] {
            Term::Call(..) | Term::Structure(..) => {
                let base = self.core.relations[relation].columns[position].base;
                rule.variables.push(RuleVariable { name: String::new(), base });
                let variable = Term::Variable(rule.variables.len() - 1);
                rule.body.push(Literal::Condition {
                    comparison: Comparison::Equal,
                    left: variable.clone(),
                    right: rule.arguments[position].clone(),
                    at: rule.at,
                });
                variable
            }
            plain => plain.clone(),
        }
    }

    /// The rule with its atoms adorned; magic rules for them are added.
    fn rewritten(&mut self, mut rule: Rule, guard: Option<Atom>) -> Rule {
        let mut bound = Bound::new();
        let mut before: Vec<Literal> = vec![];
        if let Some(guard) = guard {
            bind(&guard, &mut bound);
            before.push(Literal::Atom(guard));
        }
        let mut body = before.clone();
        let mut open = std::mem::take(&mut rule.body);
        while !open.is_empty() {
            self.take_conditions(&mut open, &mut bound, &mut before, &mut body);
            let Some(idx) = best(&open, &bound) else { break };
            let Literal::Atom(atom) = open.remove(idx) else { unreachable!("it is an atom") };
            let atom = self.asked_atom(atom, &rule, &bound, &before);
            bind(&atom, &mut bound);
            before.push(Literal::Atom(atom.clone()));
            body.push(Literal::Atom(atom));
        }
        body.extend(open);
        Rule { body, ..rule }
    }

    /// Conditions whose variables are bound by atoms join the literals before.
    fn take_conditions(
        &self,
        open: &mut Vec<Literal>,
        bound: &mut Bound,
        before: &mut Vec<Literal>,
        body: &mut Vec<Literal>,
    ) {
        loop {
            let ready = |literal: &Literal| {
                let Literal::Condition { comparison, left, right, .. } = literal else { return false };
                let is_bound = |variable| bound.contains(&variable);
                let (left_known, right_known) = (left.is_known(&is_bound), right.is_known(&is_bound));
                (left_known && right_known)
                    || (*comparison == Comparison::Equal
                        && ((left_known && right.is_pattern(&is_bound)) || (right_known && left.is_pattern(&is_bound))))
            };
            let Some(idx) = open.iter().position(ready) else { return };
            let literal = open.remove(idx);
            literal.variables(&mut |variable| {
                bound.insert(variable);
            });
            before.push(literal.clone());
            body.push(literal);
        }
    }

    /// The adorned form of an atom, if columns are bound, with a rule for the values asked for.
    fn asked_atom(&mut self, atom: Atom, rule: &Rule, bound: &Bound, before: &[Literal]) -> Atom {
        let is_bound = |term: &Term| match term {
            Term::Value(_) => true,
            Term::Variable(variable) => bound.contains(variable),
            _ => false,
        };
        let adornment: Adornment = atom.terms.iter().map(is_bound).collect();
        let stays = (self.is_stored)(atom.relation) || !self.core.is_derived(atom.relation);
        if stays || !adornment.contains(&true) {
            return atom;
        }
        let ids = self.ids(atom.relation, adornment);
        let arguments: Vec<Term> = atom.terms.iter().filter(|term| is_bound(term)).cloned().collect();
        let constants: Option<Vec<Value>> = arguments.iter().map(constant).collect();
        match constants.filter(|_| before.is_empty()) {
            Some(fact) => self.out.relations[ids.magic].facts.push(fact),
            None => {
                let (body, variables) = (before.to_vec(), rule.variables.clone());
                self.out.rules.push(Rule { head: ids.magic, arguments, body, variables, at: rule.at });
            }
        }
        Atom { relation: ids.adorned, ..atom }
    }
}

fn constant(term: &Term) -> Option<Value> {
    match term {
        Term::Value(value) => Some(value.clone()),
        _ => None,
    }
}

fn bind(atom: &Atom, bound: &mut Bound) {
    let mut add = |variable| {
        bound.insert(variable);
    };
    atom.terms.iter().for_each(|term| term.variables(&mut add));
}

/// The atom with most columns bound, of equal ones the first.
fn best(open: &[Literal], bound: &Bound) -> Option<usize> {
    let mut best: Option<(usize, usize)> = None;
    for (idx, literal) in open.iter().enumerate() {
        let Literal::Atom(atom) = literal else { continue };
        let is_bound = |term: &&Term| match term {
            Term::Value(_) => true,
            Term::Variable(variable) => bound.contains(variable),
            _ => false,
        };
        let n_bound = atom.terms.iter().filter(is_bound).count();
        if best.is_none_or(|(_, before)| n_bound > before) {
            best = Some((idx, n_bound));
        }
    }
    best.map(|(idx, _)| idx)
}
