//! The check of a scalar subquery for one row, above the join with its values.
//!
//! ```text
//! t left join (one_row(v, n), id of ..)     one_row(v, n) of (t left join (v, id, n of ..))
//! ```
//!
//! Law: a row that joins no other asks for no value, so several rows for a value that no outer row
//! joins are no error. Conditions on the value that stand below an inner join go above it as well.
//!
//! Cost: the number of rows of a value goes through the join with it.

use std::sync::Arc;

use anabranch_plan::{JoinKind, Node, Plan};
use datafusion_common::Column as Name;
use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_expr::Expr;

use super::expr::column;
use super::stage::{Column, all_columns, stage};
use crate::error::Result;
use crate::functions::checked::{ONE_ROW, OneRow};

/// The right side of a join without its checks.
pub(super) struct Unchecked {
    pub(super) right: Arc<Plan>,
    /// For each check, the columns of the value and of the number of rows.
    calls: Vec<(usize, usize)>,
    /// Columns that are checked, and their checks.
    columns: Vec<(usize, usize)>,
    /// Conditions on values that are checked.
    conditions: Vec<Expr>,
}

/// Takes the checks out of the right side of a join; `None` where there are none.
pub(super) fn unchecked(right: &Arc<Plan>, kind: JoinKind) -> Result<Option<Unchecked>> {
    let Node::Stage { input, filter, project } = &right.node else { return Ok(None) };
    let mut checks = Checks::default();
    let (mut kept, mut conditions) = (Vec::new(), Vec::new());
    for condition in filter {
        match checks.lifted(condition)?.filter(|_| kind == JoinKind::Inner) {
            Some(lifted) => conditions.push(lifted),
            None => kept.push(condition.clone()),
        }
    }
    let mut checked = Vec::new();
    let mut columns: Vec<Column> = Vec::with_capacity(project.len());
    for (at, (expr, field)) in project.iter().zip(right.schema.fields()).enumerate() {
        let value = parts(expr).map(|(value, _)| {
            checked.push((at, checks.place(expr)));
            value.clone()
        });
        columns.push((value.unwrap_or_else(|| expr.clone()), Some(field.name().clone())));
    }
    if checked.is_empty() && conditions.is_empty() {
        return Ok(None);
    }
    let mut calls = Vec::with_capacity(checks.0.len());
    for (n, call) in checks.0.iter().enumerate() {
        let Some((value, count)) = parts(call) else { continue };
        let known = checked.iter().find(|(_, check)| *check == n).map(|(at, _)| *at);
        let value_at = known.unwrap_or_else(|| {
            columns.push((value.clone(), None));
            columns.len() - 1
        });
        columns.push((count.clone(), None));
        calls.push((value_at, columns.len() - 1));
    }
    let right = stage(input.clone(), kept, columns)?;
    Ok(Some(Unchecked { right, calls, columns: checked, conditions }))
}

impl Unchecked {
    /// The join's columns with the checks, `offset` before those of the right side; what was added
    /// to it goes.
    pub(super) fn checked(self, plan: Arc<Plan>, offset: usize, width: usize) -> Result<Arc<Plan>> {
        let at = |place: usize| column(&plan.schema, offset + place);
        let call = |check: usize| {
            let (value, count) = self.calls[check];
            OneRow::udf().call(vec![at(value), at(count)])
        };
        let mut columns = all_columns(&plan.schema);
        for (place, check) in &self.columns {
            let name = plan.schema.field(offset + place).name().clone();
            columns[offset + place] = (call(*check), Some(name));
        }
        columns.truncate(width);
        let condition = |condition: Expr| {
            let written = condition.transform(|part| match &part {
                Expr::Column(name) => match name.name.strip_prefix(CHECKED).and_then(|n| n.parse().ok()) {
                    Some(check) => Ok(Transformed::yes(call(check))),
                    None => Ok(Transformed::no(part)),
                },
                _ => Ok(Transformed::no(part)),
            })?;
            Ok(written.data)
        };
        let conditions = self.conditions.iter().cloned().map(condition).collect::<Result<Vec<Expr>>>()?;
        stage(plan.clone(), conditions, columns)
    }
}

/// Stands for a value that is checked, with its number behind.
const CHECKED: &str = "__checked_";

/// The checks that were found, each once.
#[derive(Default)]
struct Checks(Vec<Expr>);

impl Checks {
    fn place(&mut self, call: &Expr) -> usize {
        self.0.iter().position(|known| known == call).unwrap_or_else(|| {
            self.0.push(call.clone());
            self.0.len() - 1
        })
    }

    /// A condition whose only columns are values that are checked, over these.
    fn lifted(&mut self, condition: &Expr) -> Result<Option<Expr>> {
        let mut own = Checks(self.0.clone());
        let written = condition.clone().transform_down(|part| match parts(&part) {
            Some(_) => {
                let name = format!("{CHECKED}{}", own.place(&part));
                Ok(Transformed::new(Expr::Column(Name::from_name(name)), true, TreeNodeRecursion::Jump))
            }
            None => Ok(Transformed::no(part)),
        })?;
        let is_other = |part: &Expr| matches!(part, Expr::Column(name) if !name.name.starts_with(CHECKED));
        let names_others = written.data.exists(|part| Ok(is_other(part)))?;
        if !written.transformed || names_others {
            return Ok(None);
        }
        *self = own;
        Ok(Some(written.data))
    }
}

/// The value and the number of rows of a check.
fn parts(expr: &Expr) -> Option<(&Expr, &Expr)> {
    match expr {
        Expr::ScalarFunction(call) if call.func.name() == ONE_ROW => match call.args.as_slice() {
            [value, count] => Some((value, count)),
            _ => None,
        },
        _ => None,
    }
}
