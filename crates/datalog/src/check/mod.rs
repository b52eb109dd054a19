//! From the syntax tree to a [`Core`]: names, types, alternatives, what binds what, strata.
//!
//! Law: a program that passes has a plan, and its answer is the least fixed point of its rules,
//! stratum by stratum. All errors of users are found here, with a place in the text.
//!
//! Reading order: [`types`], [`signatures`], [`alternatives`], [`scope`] (the variables of a rule
//! and their types), [`lower`] (terms and literals), [`bound`], [`stratify`](crate::stratify).

mod alternatives;
pub(crate) mod bound;
mod call;
mod lower;
mod scope;
mod signatures;
pub(crate) mod types;

use anabranch_engine::Error;

use crate::ast::{Clause, DirectiveKind, Program, RelationDeclaration};
use crate::core::{Atom, Column, Core, Literal, Relation, RelationId, Rule, RuleVariable, Term};
use crate::stratify;
use crate::value::{Base, Value};
use signatures::Signatures;
use types::{Shape, Types, check_names};

/// Columns of the relation without attributes: SQL has no table without columns.
const PRESENT: &str = "present";

/// Checks a program.
///
/// # Errors
/// The first thing that is wrong with it.
pub(crate) fn check(program: &Program) -> Result<Core, Error> {
    let types = Types::new(&program.types)?;
    let mut signatures = Signatures::new(types);
    let mut core = Core {
        relations: vec![],
        rules: vec![],
        records: signatures.types.records.iter().map(bases).collect(),
        branches: signatures.types.branches.iter().map(|branches| branches.iter().map(branch).collect()).collect(),
    };
    for declaration in &program.relations {
        core.relations.push(relation(declaration, &mut signatures)?);
        if declaration.is_equivalence {
            let id = core.relations.len() - 1;
            core.rules.extend(equivalence(id, declaration, &core.relations[id])?);
        }
    }
    for directive in &program.directives {
        for name in &directive.relations {
            let relation = &mut core.relations[signatures.relation(name)?];
            match directive.kind {
                DirectiveKind::Input => relation.is_input = true,
                DirectiveKind::Output | DirectiveKind::PrintSize => relation.is_output = true,
            }
        }
    }
    for clause in &program.clauses {
        add_clause(clause, &signatures, &mut core)?;
    }
    stratify::check(&core)?;
    Ok(core)
}

fn relation(declaration: &RelationDeclaration, signatures: &mut Signatures) -> Result<Relation, Error> {
    let name = &declaration.name;
    if signatures.is_declared(&name.text) {
        return Err(Error::invalid(format!("relation {} is declared twice", name.text))
            .at(name.at.start)
            .with_hint("Give one of the two another name."));
    }
    check_names(&declaration.attributes)?;
    let mut attributes = vec![];
    for attribute in &declaration.attributes {
        attributes.push((attribute.name.text.clone(), signatures.types.named(&attribute.type_name)?));
    }
    let mut columns: Vec<Column> =
        attributes.iter().map(|(name, of)| Column { name: name.clone(), base: of.base }).collect();
    if columns.is_empty() {
        columns.push(Column { name: PRESENT.to_owned(), base: Base::Number });
    }
    signatures.declare(&name.text, attributes);
    Ok(Relation {
        name: name.text.clone(),
        is_nullary: declaration.attributes.is_empty(),
        columns,
        at: name.at,
        facts: vec![],
        is_input: false,
        is_output: false,
    })
}

/// The rules that make a relation reflexive, symmetric and transitive.
fn equivalence(id: RelationId, declaration: &RelationDeclaration, relation: &Relation) -> Result<Vec<Rule>, Error> {
    let at = declaration.name.at;
    let bases: Vec<Base> = relation.columns.iter().map(|column| column.base).collect();
    let [base, other] = bases[..] else {
        return Err(Error::invalid(format!("eqrel {} does not have two attributes", relation.name)).at(at.start));
    };
    if base != other || declaration.attributes[0].type_name.text != declaration.attributes[1].type_name.text {
        return Err(Error::invalid(format!("the attributes of eqrel {} differ in type", relation.name)).at(at.start));
    }
    let variable = |name: &str| RuleVariable { name: name.to_owned(), base };
    let variables = [variable("x"), variable("y"), variable("z")];
    let atom = |left: usize, right: usize| {
        Literal::Atom(Atom { relation: id, terms: vec![Term::Variable(left), Term::Variable(right)], at })
    };
    let rule = |left: usize, right: usize, body: Vec<Literal>, n_variables: usize| Rule {
        head: id,
        arguments: vec![Term::Variable(left), Term::Variable(right)],
        body,
        variables: variables[..n_variables].to_vec(),
        at,
    };
    Ok(vec![
        rule(0, 0, vec![atom(0, 1)], 2),
        rule(1, 0, vec![atom(0, 1)], 2),
        rule(0, 2, vec![atom(0, 1), atom(1, 2)], 3),
    ])
}

fn add_clause(clause: &Clause, signatures: &Signatures, core: &mut Core) -> Result<(), Error> {
    for head in &clause.heads {
        let relation = signatures.relation(&head.relation)?;
        for parts in alternatives::alternatives(&clause.body, clause.at)? {
            let mut rule = lower::rule(relation, head, &parts, clause.at, signatures)?;
            if rule.arguments.is_empty() {
                rule.arguments.push(Term::Value(Value::Number(1)));
            }
            bound::check(&rule, head.at)?;
            let constants: Option<Vec<Value>> = rule.arguments.iter().map(constant).collect();
            match constants.filter(|_| rule.body.is_empty()) {
                Some(fact) => core.relations[relation].facts.push(fact),
                None => core.rules.push(rule),
            }
        }
    }
    Ok(())
}

fn bases(shape: &Shape) -> Vec<Base> {
    shape.fields.iter().map(|field| field.base).collect()
}

fn branch(shape: &Shape) -> (String, Vec<Base>) {
    (shape.name.clone(), bases(shape))
}

fn constant(term: &Term) -> Option<Value> {
    match term {
        Term::Value(value) => Some(value.clone()),
        _ => None,
    }
}
