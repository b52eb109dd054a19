//! Aggregates: the matches of a body, grouped by the variables that the rest of the rule has.
//!
//! `count` and `sum` are over the set of all bindings of the body, wildcards included, so repeated
//! rows of a table are told apart from repeated values. Without a match they are 0, and min, max
//! and mean have no value, so the rule gives nothing.

use std::sync::Arc;

use anabranch_plan::{AggregateCall, AggregateFunction, JoinKind, Node, Plan};
use arrow::datatypes::DataType;
use datafusion_common::ScalarValue;
use datafusion_expr::{Expr, when};

use super::Planner;
use super::body::{BodyRows, narrowed};
use super::build::{all, column, distinct, filtered, join, plan, stage, types};
use super::term::equal;
use crate::ast::AggregateKind;
use crate::check::bound::{Bound, binds, variables_of};
use crate::core::{CoreAggregate, Literal, Rule, RuleVariable, Term, VariableId};
use crate::functor::Functor;
use crate::value::Base;

impl Planner<'_> {
    /// Rows with the aggregate's value for each.
    pub(super) fn aggregate(
        &mut self,
        rule: &Rule,
        rows: &BodyRows,
        aggregate: &CoreAggregate,
        injected: &Bound,
        asked: &Bound,
    ) -> BodyRows {
        if rows.binds(aggregate.result) {
            return self.compared(rule, rows, aggregate, injected, asked);
        }
        let base = rule.variables[aggregate.result].base;
        let grouped = self.grouped(rule, rows, aggregate, injected);
        let has_zero = matches!(aggregate.function, AggregateKind::Count | AggregateKind::Sum);
        let value = grouped.columns.len() - 1;
        if injected.is_empty() {
            let one = match has_zero {
                true => with_zero(&grouped.plan, value, base),
                false => filtered(&grouped.plan, vec![Expr::IsNotNull(Box::new(column(&grouped.plan, value)))]),
            };
            let one = BodyRows::new(one, vec![aggregate.result]);
            return narrowed(&crossed(rows, one), asked);
        }
        let key: Vec<(usize, usize)> = (0..injected.len())
            .map(|idx| (rows.place(grouped.columns[idx]).expect("injected variables are bound"), idx))
            .collect();
        let mut output: Vec<usize> = (0..rows.columns.len()).collect();
        output.push(rows.columns.len() + value);
        let mut columns = rows.columns.clone();
        columns.push(aggregate.result);
        let joined = match has_zero {
            true => {
                let joined = join(&rows.plan, &grouped.plan, JoinKind::Left, &key, output);
                with_zero(&joined, rows.columns.len(), base)
            }
            false => join(&rows.plan, &grouped.plan, JoinKind::Inner, &key, output),
        };
        narrowed(&BodyRows::new(joined, columns), asked)
    }

    /// Rows whose variable, which is bound already, has the aggregate's value.
    fn compared(
        &mut self,
        rule: &Rule,
        rows: &BodyRows,
        aggregate: &CoreAggregate,
        injected: &Bound,
        asked: &Bound,
    ) -> BodyRows {
        let mut rule = rule.clone();
        let result = rule.variables.len();
        rule.variables.push(rule.variables[aggregate.result].clone());
        let mut both = asked.clone();
        both.extend([result, aggregate.result]);
        let fresh = CoreAggregate { result, ..aggregate.clone() };
        let joined = self.aggregate(&rule, rows, &fresh, injected, &both);
        let (bound, value) = (Term::Variable(aggregate.result), Term::Variable(result));
        let filter = vec![equal(joined.value(&bound), joined.value(&value))];
        narrowed(&BodyRows::new(filtered(&joined.plan, filter), joined.columns), asked)
    }

    /// One row a group: the injected variables, then the value.
    fn grouped(&mut self, rule: &Rule, rows: &BodyRows, aggregate: &CoreAggregate, injected: &Bound) -> BodyRows {
        let mut rule = rule.clone();
        let counts = matches!(aggregate.function, AggregateKind::Count | AggregateKind::Sum | AggregateKind::Mean);
        let body: Vec<Literal> = match counts {
            true => aggregate.body.iter().map(|literal| self.without_wildcards(literal, &mut rule)).collect(),
            false => aggregate.body.clone(),
        };
        let mut inner = variables_of(|visit| body.iter().for_each(|literal| literal.variables(visit)));
        if let Some(target) = &aggregate.target {
            target.variables(&mut |variable| {
                inner.insert(variable);
            });
        }
        let wanted: Bound = match counts {
            true => inner.clone(),
            false => {
                let target = variables_of(|visit| aggregate.target.iter().for_each(|term| term.variables(visit)));
                target.union(injected).copied().collect()
            }
        };
        let target_only: Bound = aggregate.target.iter().fold(injected.clone(), |mut all, target| {
            target.variables(&mut |variable| {
                all.insert(variable);
            });
            all
        });
        // A body that does not bind what it takes from outside starts with what there is outside.
        let start = match binds(&body, &target_only) && binds(&body, &wanted) {
            true => BodyRows::unit(),
            false => {
                let seeds = narrowed(rows, injected);
                match injected.is_empty() {
                    true => BodyRows::unit(),
                    false => BodyRows::new(distinct(&seeds.plan), seeds.columns),
                }
            }
        };
        let matches = self.body(&rule, &body, start, &wanted, &Bound::new());
        let is_set = !counts || body.iter().all(|literal| !self.may_repeat(literal));
        let matches = if is_set { matches } else { BodyRows::new(distinct(&matches.plan), matches.columns) };
        self.grouped_matches(&matches, aggregate, injected, rule.variables[aggregate.result].base)
    }

    fn grouped_matches(&self, matches: &BodyRows, aggregate: &CoreAggregate, injected: &Bound, base: Base) -> BodyRows {
        let mut columns: Vec<VariableId> = injected.iter().copied().collect();
        let mut project: Vec<(Expr, DataType)> = columns
            .iter()
            .map(|variable| {
                let place = matches.place(*variable).expect("the body is asked for its injected variables");
                (column(&matches.plan, place), types(&matches.plan)[place].clone())
            })
            .collect();
        let keys = (0..columns.len()).collect();
        let argument = aggregate.target.as_ref().map(|target| {
            project.push(argument(matches, target, aggregate.function, base));
            columns.len()
        });
        let input = stage(&matches.plan, vec![], project);
        let call = AggregateCall {
            function: function(aggregate.function),
            argument,
            distinct: false,
            filter: None,
            order: vec![],
            output_type: base.data_type(),
        };
        let mut output = types(&input);
        output.truncate(columns.len());
        output.push(base.data_type());
        columns.push(aggregate.result);
        BodyRows::new(plan(Node::Aggregate { input, keys, calls: vec![call] }, &output), columns)
    }

    /// Whether the rows of a literal may repeat.
    fn may_repeat(&self, literal: &Literal) -> bool {
        match literal {
            Literal::Atom(atom) => self.is_bag(atom.relation),
            Literal::Range { .. } => true,
            _ => false,
        }
    }

    /// The literal with a variable for each wildcard, so that rows which differ there stay apart.
    fn without_wildcards(&self, literal: &Literal, rule: &mut Rule) -> Literal {
        let Literal::Atom(atom) = literal else { return literal.clone() };
        let mut atom = atom.clone();
        for (idx, term) in atom.terms.iter_mut().enumerate().filter(|(_, term)| **term == Term::Wildcard) {
            let base = self.core.relations[atom.relation].columns[idx].base;
            rule.variables.push(RuleVariable { name: String::new(), base });
            *term = Term::Variable(rule.variables.len() - 1);
        }
        Literal::Atom(atom)
    }
}

/// What is added up or compared; a mean is of floats.
fn argument(matches: &BodyRows, target: &Term, function: AggregateKind, base: Base) -> (Expr, DataType) {
    let value = matches.value(target);
    match function {
        AggregateKind::Mean => (Functor::NumberToFloat.call(vec![value]), DataType::Float64),
        _ => (value, base.data_type()),
    }
}

fn function(kind: AggregateKind) -> AggregateFunction {
    match kind {
        AggregateKind::Count => AggregateFunction::Count,
        AggregateKind::Sum => AggregateFunction::Sum,
        AggregateKind::Min => AggregateFunction::Min,
        AggregateKind::Max => AggregateFunction::Max,
        AggregateKind::Mean => AggregateFunction::Avg,
    }
}

/// The plan with 0 where the value is missing.
fn with_zero(input: &Arc<Plan>, value: usize, base: Base) -> Arc<Plan> {
    let zero = match base {
        Base::Float => ScalarValue::Float64(Some(0.0)),
        _ => ScalarValue::Int64(Some(0)),
    };
    let missing = Expr::IsNull(Box::new(column(input, value)));
    let present = when(missing, Expr::Literal(zero, None)).otherwise(column(input, value));
    let mut project = all(input);
    project[value].0 = present.expect("one condition and an alternative make a case");
    stage(input, vec![], project)
}

/// Every row with the one row.
fn crossed(rows: &BodyRows, one: BodyRows) -> BodyRows {
    if rows.is_unit() {
        return one;
    }
    let mut columns = rows.columns.clone();
    columns.extend(one.columns);
    let output = (0..columns.len()).collect();
    BodyRows::new(join(&rows.plan, &one.plan, JoinKind::Inner, &[], output), columns)
}
