//! Joins as nested loops.

use anabranch_plan::{JoinKind, Node, Nulls, Plan};
use datafusion_common::{DFSchema, ScalarValue};

use super::answer::Answer;
use super::expression::Evaluator;
use crate::row::{Contents, Row};

/// The answer of a join node over its inputs' answers.
pub fn join(plan: &Plan, left: Answer, right: Answer) -> Answer {
    let Node::Join { left: left_plan, right: right_plan, left_key, right_key, kind, nulls, residual, output } =
        &plan.node
    else {
        panic!("not a join: {:?}", plan.node)
    };
    let mut answer = Answer { rows: Contents::new(), errors: left.errors };
    answer.fail_all(right.errors);
    let on = On::new(left_plan, right_plan, left_key, right_key, *nulls, residual.as_ref());
    let pairs = on.pairs(&left.rows, &right.rows, &mut answer);
    let (left_nulls, right_nulls) = (null_row(&left_plan.schema), null_row(&right_plan.schema));

    let mut matched_left = Contents::new();
    let mut matched_right = Contents::new();
    for (left_row, left_count, right_row, right_count) in &pairs {
        matched_left.add((*left_row).clone(), 1);
        matched_right.add((*right_row).clone(), 1);
        if yields_pairs(*kind) {
            answer.rows.add(left_row.concat(right_row).project(output), left_count * right_count);
        }
    }
    for (row, count) in left.rows.iter() {
        let matched = matched_left.count(row) > 0;
        let shown = match kind {
            JoinKind::Inner | JoinKind::Right => None,
            JoinKind::Left | JoinKind::Full => (!matched).then(|| row.concat(&right_nulls)),
            JoinKind::LeftSemi => matched.then(|| row.clone()),
            JoinKind::LeftAnti => (!matched).then(|| row.clone()),
            JoinKind::LeftAntiNullAware => on.is_certainly_not_in(row, matched, &right.rows).then(|| row.clone()),
            JoinKind::LeftMark => Some(row.with(ScalarValue::Boolean(Some(matched)))),
        };
        if let Some(shown) = shown {
            answer.rows.add(shown.project(output), count);
        }
    }
    if matches!(kind, JoinKind::Right | JoinKind::Full) {
        for (row, count) in right.rows.iter().filter(|(row, _)| matched_right.count(row) == 0) {
            answer.rows.add(left_nulls.concat(row).project(output), count);
        }
    }
    answer
}

fn yields_pairs(kind: JoinKind) -> bool {
    matches!(kind, JoinKind::Inner | JoinKind::Left | JoinKind::Right | JoinKind::Full)
}

pub(super) fn null_row(schema: &DFSchema) -> Row {
    let null = |data_type| ScalarValue::try_from(data_type).expect("every type has a null");
    Row::new(schema.fields().iter().map(|field| null(field.data_type())))
}

/// When a left and a right row belong together.
struct On<'a> {
    left_key: &'a [usize],
    right_key: &'a [usize],
    nulls: Nulls,
    residual: Option<Evaluator>,
}

type Pair<'a> = (&'a Row, i64, &'a Row, i64);

impl<'a> On<'a> {
    fn new(
        left: &Plan,
        right: &Plan,
        left_key: &'a [usize],
        right_key: &'a [usize],
        nulls: Nulls,
        residual: Option<&datafusion_expr::Expr>,
    ) -> On<'a> {
        let residual = residual.map(|expr| Evaluator::new(expr, &Plan::join_schema(left, right)));
        On { left_key, right_key, nulls, residual }
    }

    fn pairs<'r>(&self, left: &'r Contents, right: &'r Contents, answer: &mut Answer) -> Vec<Pair<'r>> {
        let mut pairs = Vec::new();
        for (left_row, left_count) in left.iter() {
            for (right_row, right_count) in right.iter() {
                if !self.keys_match(left_row, right_row) {
                    continue;
                }
                match self.residual_is_true(left_row, right_row) {
                    Ok(true) => pairs.push((left_row, left_count, right_row, right_count)),
                    Ok(false) => {}
                    Err(message) => answer.fail(message, left_count * right_count),
                }
            }
        }
        pairs
    }

    fn keys_match(&self, left: &Row, right: &Row) -> bool {
        let (left, right) = (left.project(self.left_key), right.project(self.right_key));
        left == right && (self.nulls == Nulls::Equal || !left.has_null())
    }

    fn residual_is_true(&self, left: &Row, right: &Row) -> Result<bool, String> {
        match &self.residual {
            None => Ok(true),
            Some(residual) => residual.is_true(&left.concat(right)),
        }
    }

    /// `NOT IN`: true unless there is a match, or a comparison with NULL leaves it open.
    fn is_certainly_not_in(&self, left: &Row, matched: bool, right: &Contents) -> bool {
        let null_left = left.project(self.left_key).has_null();
        let null_right = right.iter().any(|(row, _)| row.project(self.right_key).has_null());
        right.is_empty() || !(matched || null_left || null_right)
    }
}
