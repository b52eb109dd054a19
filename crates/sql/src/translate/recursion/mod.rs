//! Loops: variables that are defined by themselves.
//!
//! ```text
//! a UNION b      v := distinct (a union b)
//! a UNION ALL b  v := (a, 0) union (b, round + 1), where b is made for each round alone
//! ```
//!
//! PostgreSQL evaluates the term `b` over the rows that the round before has found. Over sets, that
//! comes to the same as over all rows found so far, where `b` looks at each row alone
//! ([`carry::looks_at_rows`]). Otherwise, and for `UNION ALL`, rows carry the number of the round
//! that found them ([`carry`]), and `b` is evaluated for each number apart. A row of a `UNION` has
//! the least of its numbers, since a later round that finds the row drops it.
//!
//! Law: the rows and their multiplicities are those of PostgreSQL's rounds; a loop ends if these
//! do.

mod carry;

use std::sync::Arc;

use anabranch_plan::variables::lifted;
use anabranch_plan::{AggregateCall, AggregateFunction, Binding, Node, Plan, Recursive, RoundLimit};
use arrow::datatypes::{DataType, SchemaRef};
use datafusion_common::ScalarValue;
use datafusion_expr::logical_plan::TableScan;
use datafusion_expr::{Expr, lit};

use super::schema::{Draft, schema};
use super::stage::{all_columns, stage, take};
use super::{Translator, conform, expr, rows};
use crate::error::{Result, SqlError};
use crate::passes::plan::recursion::{LoopNode, RecursionForm};
use crate::syntax::relation_calls::variable_name;
use carry::{Carry, ROUND, looks_at_rows, reads};

impl Translator {
    /// A loop.
    pub(super) fn recursion(&self, node: &LoopNode) -> Result<Arc<Plan>> {
        self.loops.borrow_mut().push(node.variables.clone());
        let inputs: Result<Vec<Arc<Plan>>> = node.inputs.iter().map(|input| self.node(input)).collect();
        self.loops.borrow_mut().pop();
        let inputs = inputs?;
        match (&node.form, inputs.as_slice()) {
            (RecursionForm::Terms { is_all }, [first, step]) => self.terms(node, *is_all, first, step),
            (RecursionForm::Queries { result, limit }, queries) => self.queries(node, *result, *limit, queries),
            _ => Err(SqlError::internal("a recursive query has two terms")),
        }
    }

    /// A scan of a variable; `None` if it is one of a relation.
    pub(super) fn variable(&self, scan: &TableScan) -> Option<Arc<Plan>> {
        let name = scan.table_name.table();
        variable_name(name)?;
        let loops = self.loops.borrow();
        let found = loops.iter().rev().enumerate().find_map(|(depth, variables)| {
            variables.iter().position(|variable| variable == name).map(|index| (depth, index))
        });
        let (depth, index) = found?;
        let plan = variable(depth, index, columns_of(&scan.source.schema()));
        Some(match &scan.projection {
            Some(columns) => take(plan, columns),
            None => plan,
        })
    }

    fn terms(&self, node: &LoopNode, is_all: bool, first: &Arc<Plan>, step: &Arc<Plan>) -> Result<Arc<Plan>> {
        let [of_rows] = node.schemas.as_slice() else {
            return Err(SqlError::internal("a recursive query has one variable"));
        };
        let (first, step) = (conform(first.clone(), of_rows)?, conform(step.clone(), of_rows)?);
        let mut columns = columns_of(of_rows);
        let width = columns.len();
        let plan = if matches!(&step.node, Node::Constant { rows } if rows.is_empty()) {
            // A term that is known to have no rows.
            let first = outside(&first)?;
            return Ok(if is_all { first } else { distinct(first) });
        } else if !is_all && looks_at_rows(&step) {
            distinct(rows::union(vec![first, step])?)
        } else {
            let first = with_round(first, lit(0_i64))?;
            let step = Carry::default().step(&step)?;
            let both = rows::union(vec![first, step])?;
            columns.push((ROUND.to_string(), DataType::Int64, false));
            if is_all { both } else { first_rounds(both, width) }
        };
        let binding = Binding { name: shown(&node.variables[0]), schema: schema(columns.clone()), plan };
        let result = take(variable(0, 0, columns), &(0..width).collect::<Vec<_>>());
        Ok(recursive(vec![binding], result, self.round_limit))
    }

    fn queries(&self, node: &LoopNode, result: usize, limit: RoundLimit, plans: &[Arc<Plan>]) -> Result<Arc<Plan>> {
        if let ([plan], [columns]) = (plans, node.schemas.as_slice())
            && limit == RoundLimit::None
            && !reads(plan, 0)
        {
            return conform(outside(plan)?, columns);
        }
        let mut bindings = Vec::with_capacity(plans.len());
        for ((plan, columns), name) in plans.iter().zip(&node.schemas).zip(&node.variables) {
            let plan = conform(plan.clone(), columns)?;
            bindings.push(Binding { name: shown(name), schema: schema(columns_of(columns)), plan });
        }
        let result = variable(0, result, columns_of(&node.schemas[result]));
        let limit = if limit == RoundLimit::None { self.round_limit } else { limit };
        Ok(recursive(bindings, result, limit))
    }
}

/// Whether each round of a loop but the last one adds a row: those of a loop of first rows and of
/// rows that come of the round before, or that goes row by row.
pub(crate) fn adds_rows(of: &Recursive) -> bool {
    let last = |binding: &Binding| binding.schema.fields().last().is_some_and(|field| field.name() == ROUND);
    matches!(of.bindings.as_slice(), [binding] if last(binding) || looks_at_rows(&binding.plan))
}

/// A plan that reads no variable of the loop that it was made for, without that loop: variables of
/// loops around are one loop nearer.
fn outside(plan: &Arc<Plan>) -> Result<Arc<Plan>> {
    lifted(plan).ok_or_else(|| SqlError::internal("a plan outside of a loop reads a variable of the loop"))
}

fn recursive(bindings: Vec<Binding>, result: Arc<Plan>, limit: RoundLimit) -> Arc<Plan> {
    let schema = result.schema.clone();
    Arc::new(Plan { node: Node::Recursive(Box::new(Recursive { bindings, result, limit })), schema })
}

fn variable(depth: usize, index: usize, columns: Vec<Draft>) -> Arc<Plan> {
    Arc::new(Plan { node: Node::Variable { depth, index }, schema: schema(columns) })
}

fn distinct(input: Arc<Plan>) -> Arc<Plan> {
    let schema = input.schema.clone();
    Arc::new(Plan { node: Node::Distinct { input }, schema })
}

/// The rows with a number of a round after their columns.
fn with_round(input: Arc<Plan>, round: Expr) -> Result<Arc<Plan>> {
    let mut columns = all_columns(&input.schema);
    columns.push((round, Some(ROUND.to_string())));
    stage(input, vec![], columns)
}

/// Each row once, with the least of its numbers.
fn first_rounds(input: Arc<Plan>, width: usize) -> Arc<Plan> {
    let schema = input.schema.clone();
    let least = AggregateCall {
        function: AggregateFunction::Min,
        argument: Some(width),
        distinct: false,
        filter: None,
        order: vec![],
        output_type: DataType::Int64,
    };
    Arc::new(Plan { node: Node::Aggregate { input, keys: (0..width).collect(), calls: vec![least] }, schema })
}

/// The number of the round after that in the last column.
fn next_round(plan: &Plan) -> Expr {
    let last = plan.schema.fields().len() - 1;
    expr::column(&plan.schema, last) + Expr::Literal(ScalarValue::Int64(Some(1)), None)
}

fn columns_of(schema: &SchemaRef) -> Vec<Draft> {
    schema.fields().iter().map(|field| (field.name().clone(), field.data_type().clone(), field.is_nullable())).collect()
}

fn shown(variable: &str) -> String {
    variable_name(variable).unwrap_or(variable).to_string()
}
