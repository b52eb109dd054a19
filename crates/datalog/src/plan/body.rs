//! Bodies as joins: rows of bindings, one literal after the other.

use std::sync::Arc;

use anabranch_plan::{JoinKind, Node, Plan};
use arrow::datatypes::DataType;
use datafusion_expr::Expr;

use super::Planner;
use super::build::{all, column, filtered, join, plan, stage, types, unit};
use super::term::{Matched, compare, constant, equal, may_fail};
use crate::ast::Comparison;
use crate::check::bound::{Bound, injected, outside_of, variables_of};
use crate::core::{Atom, Literal, Rule, Term, VariableId};
use crate::functor::Functor;
use crate::value::Base;

/// Bindings of variables, one a row.
#[derive(Clone)]
pub(super) struct BodyRows {
    pub plan: Arc<Plan>,
    /// The variable of each column.
    pub columns: Vec<VariableId>,
    /// Whether this is the one row that is there before all literals.
    is_unit: bool,
}

impl BodyRows {
    pub fn unit() -> BodyRows {
        BodyRows { plan: unit(), columns: vec![], is_unit: true }
    }

    pub fn new(plan: Arc<Plan>, columns: Vec<VariableId>) -> BodyRows {
        BodyRows { plan, columns, is_unit: false }
    }

    pub fn is_unit(&self) -> bool {
        self.is_unit
    }

    /// The column of a variable, if it is bound.
    pub fn place(&self, variable: VariableId) -> Option<usize> {
        self.columns.iter().position(|other| *other == variable)
    }

    pub fn binds(&self, variable: VariableId) -> bool {
        self.place(variable).is_some()
    }
}

/// What is left to do of a body.
struct Open<'b> {
    body: &'b [Literal],
    /// Positions of the literals that were not taken.
    left: Vec<usize>,
    /// Variables that are asked for after the body.
    needed: &'b Bound,
    /// Variables that the rest of the rule has.
    around: &'b Bound,
}

impl<'b> Open<'b> {
    fn literals(&self) -> impl Iterator<Item = (usize, &'b Literal)> + '_ {
        self.left.iter().map(|idx| (*idx, &self.body[*idx]))
    }

    fn done(&mut self, idx: usize) {
        self.left.retain(|other| *other != idx);
    }

    /// Variables that are asked for once the literals taken so far are done.
    fn asked(&self) -> Bound {
        let mut asked = self.needed.clone();
        for (_, literal) in self.literals() {
            asked.extend(variables_of(|visit| literal.variables(visit)));
        }
        asked
    }

    fn outside(&self, idx: usize) -> Bound {
        outside_of(self.body, idx, self.around)
    }
}

impl Planner<'_> {
    /// The bindings of `needed` for which all literals hold, starting from `rows`. Bindings may
    /// repeat. `around` are the variables that the rest of the rule has.
    pub(super) fn body(
        &mut self,
        rule: &Rule,
        body: &[Literal],
        rows: BodyRows,
        needed: &Bound,
        around: &Bound,
    ) -> BodyRows {
        let around: Bound = around.union(needed).copied().collect();
        let mut open = Open { body, left: (0..body.len()).collect(), needed, around: &around };
        let mut rows = rows;
        while !open.left.is_empty() {
            // An atom comes first: conditions on its columns are filters then, not joins.
            let first = best_atom(&rows, &open).filter(|_| rows.is_unit());
            rows = match first {
                Some((idx, _)) => self.take_atom(&rows, &mut open, idx),
                None => match self.conditions(&rows, &mut open, rule, false) {
                    Some(narrowed) => narrowed,
                    None => self.next_literal(rule, &rows, &mut open),
                },
            };
        }
        narrowed(&rows, needed)
    }

    /// All conditions that are ready, in one pass; those that may fail only if `fallible`.
    fn conditions(&self, rows: &BodyRows, open: &mut Open<'_>, rule: &Rule, fallible: bool) -> Option<BodyRows> {
        let is_bound = |variable: VariableId| rows.binds(variable);
        let (mut filter, mut bindings, mut done) = (vec![], vec![], vec![]);
        for (idx, literal) in open.literals() {
            let Literal::Condition { comparison, left, right, .. } = literal else { continue };
            if (may_fail(left) || may_fail(right) || *comparison == Comparison::Match) && !fallible {
                continue;
            }
            if left.is_known(&is_bound) && right.is_known(&is_bound) {
                filter.push(compare(*comparison, rows.value(left), rows.value(right)));
                done.push(idx);
                continue;
            }
            if *comparison != Comparison::Equal {
                continue;
            }
            let (known, pattern) = match (left.is_known(&is_bound), right.is_known(&is_bound)) {
                (true, _) => (left, right),
                (_, true) => (right, left),
                _ => continue,
            };
            if !pattern.is_pattern(&is_bound) {
                continue;
            }
            let matched = Matched::of(pattern, rows.value(known), rows);
            // A variable that another equation of this pass binds is compared in the next one.
            let is_taken = |variable: &VariableId| bindings.iter().any(|(other, _)| other == variable);
            if matched.bindings.iter().any(|(variable, _)| is_taken(variable)) {
                continue;
            }
            filter.extend(matched.conditions);
            bindings.extend(matched.bindings);
            done.push(idx);
        }
        if done.is_empty() {
            return None;
        }
        done.into_iter().for_each(|idx| open.done(idx));
        Some(with_bindings(rows, filter, bindings, rule, &open.asked()))
    }

    /// Takes the literal that is best to take next.
    fn next_literal(&mut self, rule: &Rule, rows: &BodyRows, open: &mut Open<'_>) -> BodyRows {
        if let Some(idx) = self.ready_negation(rows, open) {
            open.done(idx);
            let Literal::Not { body, .. } = &open.body[idx] else { unreachable!("it is a negation") };
            return self.without(rule, rows, body, &open.asked());
        }
        if let Some((idx, _)) = best_atom(rows, open).filter(|(_, n_joined)| *n_joined > 0) {
            return self.take_atom(rows, open, idx);
        }
        let ready = |literal: &Literal, outside: Bound| match literal {
            Literal::Aggregate(aggregate) => injected(aggregate, &outside).iter().all(|each| rows.binds(*each)),
            Literal::Range { arguments, .. } => arguments.iter().all(|term| term.is_known(&|each| rows.binds(each))),
            _ => false,
        };
        let computed = open.literals().find(|(idx, literal)| ready(literal, open.outside(*idx)));
        match computed {
            Some((idx, Literal::Aggregate(aggregate))) => {
                let outside = open.outside(idx);
                open.done(idx);
                return self.aggregate(rule, rows, aggregate, &injected(aggregate, &outside), &open.asked());
            }
            Some((idx, Literal::Range { result, arguments, base, .. })) => {
                open.done(idx);
                return ranged(rows, *result, arguments, *base, &open.asked());
            }
            _ => {}
        }
        if let Some(narrowed) = self.conditions(rows, open, rule, true) {
            return narrowed;
        }
        let (idx, _) = best_atom(rows, open).expect("the checker has found an order of the literals");
        self.take_atom(rows, open, idx)
    }

    fn ready_negation(&self, rows: &BodyRows, open: &Open<'_>) -> Option<usize> {
        let ready = |(idx, literal): &(usize, &Literal)| match literal {
            Literal::Not { body, .. } => {
                let all = variables_of(|visit| body.iter().for_each(|inner| inner.variables(visit)));
                all.intersection(&open.outside(*idx)).all(|variable| rows.binds(*variable))
            }
            _ => false,
        };
        open.literals().find(ready).map(|(idx, _)| idx)
    }

    fn take_atom(&mut self, rows: &BodyRows, open: &mut Open<'_>, idx: usize) -> BodyRows {
        open.done(idx);
        let Literal::Atom(atom) = &open.body[idx] else { unreachable!("it is an atom") };
        self.joined(rows, atom, &open.asked())
    }

    /// Rows paired with the rows of an atom.
    fn joined(&mut self, rows: &BodyRows, atom: &Atom, asked: &Bound) -> BodyRows {
        let (right, variables) = self.atom_rows(atom);
        if rows.is_unit() {
            return narrowed(&BodyRows::new(right, variables), asked);
        }
        let place = |variable: &VariableId| variables.iter().position(|other| other == variable);
        let key: Vec<(usize, usize)> =
            (0..rows.columns.len()).filter_map(|left| place(&rows.columns[left]).map(|right| (left, right))).collect();
        let kept = |(idx, variable): (usize, &VariableId)| asked.contains(variable).then_some(idx);
        let mut output: Vec<usize> = rows.columns.iter().enumerate().filter_map(kept).collect();
        let mut columns: Vec<VariableId> = output.iter().map(|idx| rows.columns[*idx]).collect();
        let n_left = output.len();
        for (idx, variable) in variables.iter().enumerate() {
            if asked.contains(variable) && !rows.binds(*variable) {
                output.push(rows.columns.len() + idx);
                columns.push(*variable);
            }
        }
        // An atom that binds nothing only asks whether there is a row. (In a loop pairs are counted
        // up, which the set that the variable is forgets again.)
        let asks_only = output.len() == n_left && !self.variables.contains_key(&atom.relation);
        let kind = if asks_only { JoinKind::LeftSemi } else { JoinKind::Inner };
        BodyRows::new(join(&rows.plan, &right, kind, &key, output), columns)
    }

    /// The rows of an atom, constants and repeated variables checked, and the variable of each
    /// column. (Columns that no variable names carry a number that none has.)
    fn atom_rows(&mut self, atom: &Atom) -> (Arc<Plan>, Vec<VariableId>) {
        let plan = self.relation(atom.relation);
        let mut filter = vec![];
        let mut variables: Vec<VariableId> = vec![];
        for (idx, term) in atom.terms.iter().enumerate() {
            let mut named = VariableId::MAX;
            match term {
                Term::Value(value) => filter.push(equal(column(&plan, idx), constant(value))),
                Term::Variable(variable) => match variables.iter().position(|other| other == variable) {
                    Some(before) => filter.push(equal(column(&plan, before), column(&plan, idx))),
                    None => named = *variable,
                },
                _ => {}
            }
            variables.push(named);
        }
        (filtered(&plan, filter), variables)
    }

    /// Rows for which the negated body has no match.
    fn without(&mut self, rule: &Rule, rows: &BodyRows, body: &[Literal], asked: &Bound) -> BodyRows {
        let all = variables_of(|visit| body.iter().for_each(|literal| literal.variables(visit)));
        let shared: Bound = all.into_iter().filter(|variable| rows.binds(*variable)).collect();
        let right = self.body(rule, body, BodyRows::unit(), &shared, &Bound::new());
        let key: Vec<(usize, usize)> =
            shared.iter().filter_map(|variable| Some((rows.place(*variable)?, right.place(*variable)?))).collect();
        let output: Vec<usize> = (0..rows.columns.len()).filter(|idx| asked.contains(&rows.columns[*idx])).collect();
        let columns = output.iter().map(|idx| rows.columns[*idx]).collect();
        BodyRows::new(join(&rows.plan, &right.plan, JoinKind::LeftAnti, &key, output), columns)
    }
}

/// The atom with most columns bound, and how many join; of equal ones the first. An atom that joins
/// goes before all that do not.
fn best_atom(rows: &BodyRows, open: &Open<'_>) -> Option<(usize, usize)> {
    let joins = |term: &&Term| matches!(term, Term::Variable(variable) if rows.binds(*variable));
    let mut best: Option<(usize, usize, usize)> = None;
    for (idx, literal) in open.literals() {
        let Literal::Atom(atom) = literal else { continue };
        let n_joined = atom.terms.iter().filter(joins).count();
        let n_bound = n_joined + atom.terms.iter().filter(|term| matches!(term, Term::Value(_))).count();
        if best.is_none_or(|(_, joined, bound)| (n_joined > 0, n_bound) > (joined > 0, bound)) {
            best = Some((idx, n_joined, n_bound));
        }
    }
    best.map(|(idx, n_joined, _)| (idx, n_joined))
}

/// The rows with their filter and further columns; of all columns those that are asked for.
fn with_bindings(
    rows: &BodyRows,
    filter: Vec<Expr>,
    bindings: Vec<(VariableId, Expr)>,
    rule: &Rule,
    asked: &Bound,
) -> BodyRows {
    let (mut project, mut columns) = (vec![], vec![]);
    for (variable, each) in rows.columns.iter().zip(all(&rows.plan)) {
        if asked.contains(variable) {
            project.push(each);
            columns.push(*variable);
        }
    }
    for (variable, value) in bindings {
        if asked.contains(&variable) {
            project.push((value, rule.variables[variable].base.data_type()));
            columns.push(variable);
        }
    }
    BodyRows::new(stage(&rows.plan, filter, project), columns)
}

/// The columns that are asked for.
pub(super) fn narrowed(rows: &BodyRows, asked: &Bound) -> BodyRows {
    if rows.columns.iter().all(|variable| asked.contains(variable)) {
        return rows.clone();
    }
    let kept: Vec<usize> = (0..rows.columns.len()).filter(|idx| asked.contains(&rows.columns[*idx])).collect();
    let columns = kept.iter().map(|idx| rows.columns[*idx]).collect();
    let mut every = all(&rows.plan).into_iter().map(Some).collect::<Vec<_>>();
    let project = kept.iter().filter_map(|idx| every[*idx].take()).collect();
    BodyRows::new(stage(&rows.plan, vec![], project), columns)
}

/// A row for each value of a range.
fn ranged(rows: &BodyRows, result: VariableId, arguments: &[Term], base: Base, asked: &Bound) -> BodyRows {
    let functor = if base == Base::Float { Functor::RangeFloat } else { Functor::Range };
    let values = functor.call(arguments.iter().map(|term| rows.value(term)).collect());
    let item = Arc::new(arrow::datatypes::Field::new_list_field(base.data_type(), true));
    let mut project = all(&rows.plan);
    project.push((values, DataType::List(item)));
    let lists = stage(&rows.plan, vec![], project);
    let mut types = types(&lists);
    let place = types.len() - 1;
    types[place] = base.data_type();
    let unnested = plan(Node::Unnest { input: lists, columns: vec![place], outer: false }, &types);
    let mut columns = rows.columns.clone();
    columns.push(result);
    let bound = BodyRows::new(unnested, columns);
    narrowed(&with_equal(bound, rows, result), asked)
}

/// A range whose variable was bound before keeps the rows with that value.
fn with_equal(bound: BodyRows, before: &BodyRows, result: VariableId) -> BodyRows {
    match before.place(result) {
        None => bound,
        Some(place) => {
            let last = bound.columns.len() - 1;
            let filter = vec![equal(column(&bound.plan, place), column(&bound.plan, last))];
            let mut project = all(&bound.plan);
            project.pop();
            BodyRows::new(stage(&bound.plan, filter, project), before.columns.clone())
        }
    }
}
