//! The number of a round, carried through the plan of a step: each round's rows are evaluated as if
//! they were alone.
//!
//! Law: the rows with number r of a carried plan are the rows of the plan over the variable's rows
//! with number r. So a group, a partition, an order and a join of two parts with the variable are
//! those of one round. The number is the last column.

use std::sync::Arc;

use anabranch_plan::{JoinKind, Node, Nulls, Plan, SetOperation};
use arrow::datatypes::DataType;

use super::super::expr::column;
use super::super::schema::{Draft, drafts, schema};
use super::super::stage::{all_columns, stage, take};
use super::{distinct, next_round};
use crate::error::{Result, SqlError};

/// What the column of the number is called.
pub(super) const ROUND: &str = "__round";

/// Whether a step yields for each row of its variable what it would yield for this row alone. Then
/// the step over some rows and over others, put together as sets, is the step over all.
pub(super) fn looks_at_rows(step: &Plan) -> bool {
    looks_at_rows_of(step, 0)
}

fn looks_at_rows_of(plan: &Plan, depth: usize) -> bool {
    if !reads(plan, depth) {
        return true;
    }
    match &plan.node {
        Node::Variable { .. } => true,
        Node::Stage { input, .. } | Node::Unnest { input, .. } | Node::Distinct { input } => {
            looks_at_rows_of(input, depth)
        }
        Node::Aggregate { input, keys, calls } => {
            calls.is_empty() && !keys.is_empty() && looks_at_rows_of(input, depth)
        }
        Node::Union { inputs } => inputs.iter().all(|input| looks_at_rows_of(input, depth)),
        Node::Join { left, right, kind, .. } => match (reads(left, depth), reads(right, depth)) {
            (true, true) => false,
            (true, false) => !matches!(kind, JoinKind::Right | JoinKind::Full) && looks_at_rows_of(left, depth),
            _ => matches!(kind, JoinKind::Inner | JoinKind::Right) && looks_at_rows_of(right, depth),
        },
        Node::Asof { left, right, .. } => !reads(right, depth) && looks_at_rows_of(left, depth),
        Node::SetOperation { operation, left, right } => {
            let is_of_sets = matches!(operation, SetOperation::Except | SetOperation::Intersect);
            is_of_sets && !reads(right, depth) && looks_at_rows_of(left, depth)
        }
        _ => false,
    }
}

/// Whether a plan reads the variable of the loop `depth` loops out.
pub(super) fn reads(plan: &Plan, depth: usize) -> bool {
    match &plan.node {
        Node::Variable { depth: of, .. } => *of == depth,
        Node::Recursive(_) => plan.inputs().into_iter().any(|input| reads(input, depth + 1)),
        _ => plan.inputs().into_iter().any(|input| reads(input, depth)),
    }
}

/// Makes plans carry the number.
#[derive(Default)]
pub(super) struct Carry {
    /// Rows that each row of the part is paired with: where a round has none of them, what the part
    /// says of the round has no reader.
    beside: Option<Arc<Plan>>,
}

impl Carry {
    /// The step, whose rows have the number after that of the rows that they come of.
    ///
    /// # Errors
    /// `Unsupported` for what has no meaning in one round.
    pub(super) fn step(&self, step: &Arc<Plan>) -> Result<Arc<Plan>> {
        let carried = self.carried(step)?;
        let mut columns = all_columns(&carried.schema);
        if let Some(last) = columns.last_mut() {
            *last = (next_round(&carried), Some(ROUND.to_string()));
        }
        stage(carried, vec![], columns)
    }

    fn carried(&self, plan: &Arc<Plan>) -> Result<Arc<Plan>> {
        let width = plan.schema.fields().len();
        let extended = |node: Node, columns: Vec<Draft>| Arc::new(Plan { node, schema: schema(columns) });
        match &plan.node {
            Node::Variable { depth: 0, .. } => Ok(extended(plan.node.clone(), with_number(drafts(&plan.schema)))),
            Node::Stage { input, filter, project } => {
                let input = self.carried(input)?;
                let mut project = project.clone();
                project.push(number(&input));
                Ok(extended(Node::Stage { input, filter: filter.clone(), project }, with_number(drafts(&plan.schema))))
            }
            Node::Unnest { input, columns, outer } => {
                let input = of_variable(input)?;
                let node = Node::Unnest { input, columns: columns.clone(), outer: *outer };
                Ok(extended(node, with_number(drafts(&plan.schema))))
            }
            Node::Distinct { input } => Ok(distinct(of_variable(input)?)),
            Node::Aggregate { input, keys, calls } if !keys.is_empty() || self.has_same_rows_beside(input) => {
                let input = of_variable(input)?;
                let mut keys = keys.clone();
                keys.push(number_at(&input));
                let columns = number_after(keys.len() - 1, drafts(&plan.schema));
                let at = keys.len() - 1;
                let grouped = extended(Node::Aggregate { input, keys, calls: calls.clone() }, columns);
                Ok(number_last(grouped, at, width))
            }
            Node::TopK { input, top } => {
                let input = of_variable(input)?;
                let (at, mut top) = (number_at(&input), top.clone());
                top.group.push(at);
                let chosen = extended(Node::TopK { input, top }, number_after(at, drafts(&plan.schema)));
                Ok(number_last(chosen, at, width))
            }
            Node::Window { input, window } => {
                let input = of_variable(input)?;
                let (at, mut window) = (number_at(&input), window.clone());
                window.partition.push(at);
                let seen = extended(Node::Window { input, window }, number_after(at, drafts(&plan.schema)));
                Ok(number_last(seen, at, width))
            }
            Node::Session { input, session } => {
                let input = of_variable(input)?;
                let (at, mut session) = (number_at(&input), session.clone());
                session.partition.push(at);
                let seen = extended(Node::Session { input, session }, number_after(at, drafts(&plan.schema)));
                Ok(number_last(seen, at, width))
            }
            Node::Union { inputs } => {
                let inputs = inputs.iter().map(of_variable).collect::<Result<Vec<_>>>()?;
                Ok(extended(Node::Union { inputs }, with_number(drafts(&plan.schema))))
            }
            Node::Join { .. } => self.join(plan),
            Node::Asof { left, right, asof } if !reads(right, 0) => {
                let left = of_variable(left)?;
                let at = number_at(&left);
                let node = Node::Asof { left, right: right.clone(), asof: asof.clone() };
                Ok(number_last(extended(node, number_after(at, drafts(&plan.schema))), at, width))
            }
            Node::SetOperation { operation, left, right } => Self::set_operation(plan, *operation, left, right),
            _ => Err(unsupported()),
        }
    }

    /// Whether an aggregate of all these rows stands beside the rows themselves, as a window
    /// function does. An aggregate alone would have a row in each round without any.
    fn has_same_rows_beside(&self, input: &Arc<Plan>) -> bool {
        self.beside.as_ref().is_some_and(|beside| has_same_rows(beside, input))
    }

    fn join(&self, plan: &Arc<Plan>) -> Result<Arc<Plan>> {
        let Node::Join { left, right, kind, left_key, right_key, nulls, residual, output } = &plan.node else {
            return Err(SqlError::internal("a join is a join"));
        };
        let (of_left, of_right) = (reads(left, 0), reads(right, 0));
        let fits = match (of_left, of_right) {
            (true, true) => !matches!(kind, JoinKind::Full | JoinKind::LeftAntiNullAware),
            (true, false) => !matches!(kind, JoinKind::Right | JoinKind::Full),
            _ => matches!(kind, JoinKind::Inner | JoinKind::Right),
        };
        if !fits {
            return Err(unsupported());
        }
        let width = left.schema.fields().len();
        let is_paired = of_left && *kind == JoinKind::Inner;
        let of_right_side = Carry { beside: is_paired.then(|| left.clone()) };
        let left = if of_left { Carry::default().carried(left)? } else { left.clone() };
        let right = if of_right { of_right_side.carried(right)? } else { right.clone() };
        let (mut left_key, mut right_key) = (left_key.clone(), right_key.clone());
        if of_left && of_right {
            left_key.push(number_at(&left));
            right_key.push(number_at(&right));
        }
        // The number of the left side moves the columns of the right one, and the mark.
        let moved = |at: &usize| if *at >= width { at + usize::from(of_left) } else { *at };
        let mut output: Vec<usize> = output.iter().map(moved).collect();
        let is_of_right = !of_left || *kind == JoinKind::Right;
        output.push(if is_of_right { left.schema.fields().len() + number_at(&right) } else { width });
        let node = Node::Join {
            left,
            right,
            kind: *kind,
            left_key,
            right_key,
            nulls: *nulls,
            residual: residual.clone(),
            output,
        };
        Ok(Arc::new(Plan { node, schema: schema(with_number(drafts(&plan.schema))) }))
    }

    /// `EXCEPT` and `INTERSECT` with a side without the variable are an antijoin and a semijoin.
    fn set_operation(
        plan: &Arc<Plan>,
        operation: SetOperation,
        left: &Arc<Plan>,
        right: &Arc<Plan>,
    ) -> Result<Arc<Plan>> {
        let columns = with_number(drafts(&plan.schema));
        let left = of_variable(left)?;
        if reads(right, 0) {
            let node = Node::SetOperation { operation, left, right: of_variable(right)? };
            return Ok(Arc::new(Plan { node, schema: schema(columns) }));
        }
        let kind = match operation {
            SetOperation::Except => JoinKind::LeftAnti,
            SetOperation::Intersect => JoinKind::LeftSemi,
            _ => return Err(unsupported()),
        };
        let key: Vec<usize> = (0..number_at(&left)).collect();
        let node = Node::Join {
            output: (0..=key.len()).collect(),
            left,
            right: right.clone(),
            kind,
            left_key: key.clone(),
            right_key: key,
            nulls: Nulls::Equal,
            residual: None,
        };
        Ok(distinct(Arc::new(Plan { node, schema: schema(columns) })))
    }
}

/// A part that must read the variable: rows without a number would come in every round.
fn of_variable(plan: &Arc<Plan>) -> Result<Arc<Plan>> {
    if !reads(plan, 0) {
        return Err(SqlError::unsupported(
            "a branch of a recursive term that does not read the query itself",
            "Put the branch before UNION: its rows come once.",
        ));
    }
    Carry::default().carried(plan)
}

/// Whether two plans are of the same rows, perhaps with other columns.
fn has_same_rows(a: &Arc<Plan>, b: &Arc<Plan>) -> bool {
    match (&a.node, &b.node) {
        _ if a == b => true,
        (Node::Stage { input, filter, .. }, _) if filter.is_empty() => has_same_rows(input, b),
        (_, Node::Stage { input, filter, .. }) if filter.is_empty() => has_same_rows(a, input),
        (Node::Stage { input: a, filter: of_a, .. }, Node::Stage { input: b, filter: of_b, .. }) => {
            of_a == of_b && has_same_rows(a, b)
        }
        (Node::Join { output: of_a, .. }, Node::Join { .. }) => {
            let mut node = b.node.clone();
            if let Node::Join { output, .. } = &mut node {
                output.clone_from(of_a);
            }
            node == a.node
        }
        _ => false,
    }
}

fn number_at(carried: &Plan) -> usize {
    carried.schema.fields().len() - 1
}

fn number(carried: &Plan) -> datafusion_expr::Expr {
    column(&carried.schema, number_at(carried))
}

fn draft() -> Draft {
    (ROUND.to_string(), DataType::Int64, false)
}

fn with_number(columns: Vec<Draft>) -> Vec<Draft> {
    number_after(columns.len(), columns)
}

fn number_after(at: usize, mut columns: Vec<Draft>) -> Vec<Draft> {
    columns.insert(at, draft());
    columns
}

/// The plan with the column at `at` as its last one.
fn number_last(plan: Arc<Plan>, at: usize, width: usize) -> Arc<Plan> {
    let others = (0..=width).filter(|column| *column != at);
    take(plan, &others.chain([at]).collect::<Vec<_>>())
}

fn unsupported() -> SqlError {
    SqlError::unsupported(
        "this query in a recursive term with UNION ALL or with window functions",
        "Write UNION, or WITH MUTUALLY RECURSIVE, whose rounds see all rows found so far.",
    )
}
