//! Subqueries in the ON of an outer join that are about columns of both sides: the condition is
//! evaluated for pairs.
//!
//! ```text
//! l LEFT JOIN r ON l.k = r.k AND EXISTS (SELECT 1 FROM u WHERE u.x = l.x AND u.y = r.y)
//! =   p := SELECT DISTINCT l.k, l.x, r.k, r.y FROM l JOIN r ON l.k = r.k WHERE EXISTS (..)
//!     l LEFT JOIN (r JOIN p ON r.k, r.y) ON l.k, l.x
//! ```
//!
//! Columns are compared by IS NOT DISTINCT FROM. A pair stands in `p` once, so a row of `r` meets a
//! row of `l` once. A full join adds the rows of `r` that meet no row of `l`.
//!
//! Law: two rows are joined where the condition is true for their columns, and no others. Cost: the
//! pairs of values that the condition without its subqueries leaves.

use std::sync::Arc;

use datafusion_common::{Column, DFSchema, JoinType, NullEquality, Result as DfResult, ScalarValue};
use datafusion_expr::logical_plan::{Filter, Join, LogicalPlan, LogicalPlanBuilder};
use datafusion_expr::utils::{conjunction, split_conjunction_owned};
use datafusion_expr::{Expr, lit};

use crate::passes::plan::unnest::{columns_within, has_subquery, is_lateral};

/// The join without subqueries in its condition; `None` for a join of another kind, and where the
/// right side depends on the left.
pub(super) fn join_pairs(join: &Join, n_lifted: &mut usize) -> DfResult<Option<LogicalPlan>> {
    if !matches!(join.join_type, JoinType::Left | JoinType::Right | JoinType::Full) || is_lateral(&join.right) {
        return Ok(None);
    }
    let pairs = Pairs::of(join, n_lifted)?;
    let Pairs { of_left, of_right, .. } = &pairs;
    let (left, right) = (join.left.as_ref().clone(), join.right.as_ref().clone());
    let shown: Vec<Expr> = join.schema.columns().into_iter().map(Expr::Column).collect();
    let joined = match join.join_type {
        JoinType::Right => equated(pairs.beside(left, of_left)?, right, JoinType::Right, of_right.swapped())?,
        _ => equated(left, pairs.beside(right, of_right)?, JoinType::Left, of_left.clone())?,
    };
    let joined = LogicalPlanBuilder::from(joined);
    match join.join_type {
        JoinType::Full => pairs.with_others(joined, join, &shown, n_lifted).map(Some),
        _ => joined.project(shown)?.build().map(Some),
    }
}

/// The columns of a side that the condition is about, and their names among the pairs.
#[derive(Clone)]
struct Matched {
    own: Vec<Column>,
    paired: Vec<Column>,
}

impl Matched {
    fn of(schema: &DFSchema, used: &[Column], name: &mut impl FnMut() -> Column) -> DfResult<Matched> {
        let mut own: Vec<Column> = Vec::new();
        for column in used.iter().filter(|column| schema.has_column(column)) {
            let column = Column::from(schema.qualified_field_from_column(column)?);
            if !own.contains(&column) {
                own.push(column);
            }
        }
        let paired = own.iter().map(|_| name()).collect();
        Ok(Matched { own, paired })
    }

    fn swapped(&self) -> Matched {
        Matched { own: self.paired.clone(), paired: self.own.clone() }
    }

    fn columns(&self) -> impl Iterator<Item = Expr> + '_ {
        self.own.iter().cloned().map(Expr::Column)
    }
}

/// The pairs of values for which the condition is true, each once.
struct Pairs {
    rows: LogicalPlan,
    of_left: Matched,
    of_right: Matched,
}

impl Pairs {
    fn of(join: &Join, n_lifted: &mut usize) -> DfResult<Pairs> {
        *n_lifted += 1;
        let (number, mut n_names) = (*n_lifted, 0);
        let mut name = || {
            n_names += 1;
            Column::new_unqualified(format!("__pair_{number}_{n_names}"))
        };
        let equal = join.on.iter().map(|(l, r)| match join.null_equality {
            NullEquality::NullEqualsNull => is_not_distinct(l.clone(), r.clone()),
            NullEquality::NullEqualsNothing => l.clone().eq(r.clone()),
        });
        let conditions = equal.chain(join.filter.clone().map(split_conjunction_owned).unwrap_or_default());
        let (tests, rest): (Vec<Expr>, Vec<Expr>) = conditions.partition(has_subquery);
        let mut used = Vec::new();
        for part in tests.iter().chain(&rest) {
            columns_within(part, &mut used)?;
        }
        let of_left = Matched::of(join.left.schema(), &used, &mut name)?;
        let of_right = Matched::of(join.right.schema(), &used, &mut name)?;
        let (left, right) = (join.left.as_ref().clone(), join.right.as_ref().clone());
        let rows = match rest.is_empty() {
            // (Values that come often are crossed once.)
            true => {
                let (left, right) = (distinct(left, of_left.columns())?, distinct(right, of_right.columns())?);
                LogicalPlanBuilder::from(left).cross_join(right)?.build()?
            }
            false => LogicalPlanBuilder::from(left).join_on(right, JoinType::Inner, rest)?.build()?,
        };
        let rows = distinct(rows, of_left.columns().chain(of_right.columns()))?;
        let test = conjunction(tests).unwrap_or_else(|| lit(true));
        let rows = LogicalPlan::Filter(Filter::try_new(test, Arc::new(rows))?);
        let renamed = |side: &Matched| -> Vec<Expr> {
            side.columns().zip(&side.paired).map(|(column, name)| column.alias(&name.name)).collect()
        };
        let items = [renamed(&of_left), renamed(&of_right), vec![lit(true).alias(name().name)]].concat();
        let rows = LogicalPlanBuilder::from(rows).project(items)?.build()?;
        Ok(Pairs { rows, of_left, of_right })
    }

    /// The rows of a side, each with the pairs that it is in.
    fn beside(&self, side: LogicalPlan, of: &Matched) -> DfResult<LogicalPlan> {
        equated(side, self.rows.clone(), JoinType::Inner, of.clone())
    }

    /// The joined rows, and those of the right side that meet no row of the left.
    fn with_others(
        &self,
        joined: LogicalPlanBuilder,
        join: &Join,
        shown: &[Expr],
        n_lifted: &mut usize,
    ) -> DfResult<LogicalPlan> {
        let met = self.beside(join.left.as_ref().clone(), &self.of_left)?;
        let others = equated(join.right.as_ref().clone(), met, JoinType::LeftAnti, self.of_right.clone())?;
        // (A union has names without tables.)
        *n_lifted += 1;
        let names: Vec<String> = (0..shown.len()).map(|at| format!("__joined_{n_lifted}_{at}")).collect();
        let n_left = join.left.schema().fields().len();
        let mut padded = Vec::with_capacity(shown.len());
        for (at, (column, name)) in shown.iter().zip(&names).enumerate() {
            let value = match at < n_left {
                true => Expr::Literal(ScalarValue::try_from(join.schema.field(at).data_type())?, None),
                false => column.clone(),
            };
            padded.push(value.alias(name));
        }
        let others = LogicalPlanBuilder::from(others).project(padded)?.build()?;
        let joined = joined.project(shown.iter().zip(&names).map(|(column, name)| column.clone().alias(name)))?;
        let back = join.schema.iter().zip(&names).map(|((table, field), name)| {
            Expr::Column(Column::new_unqualified(name)).alias_qualified(table.cloned(), field.name())
        });
        joined.union(others)?.project(back)?.build()
    }
}

/// A join by columns that are not distinct; of all rows where there are no columns.
fn equated(left: LogicalPlan, right: LogicalPlan, kind: JoinType, by: Matched) -> DfResult<LogicalPlan> {
    let rows = LogicalPlanBuilder::from(left);
    match by.own.is_empty() {
        true => rows.join_on(right, kind, [lit(true)])?.build(),
        false => rows.join_detailed(right, kind, (by.own, by.paired), None, NullEquality::NullEqualsNull)?.build(),
    }
}

/// The distinct values of some columns; one row if there are rows and no columns.
fn distinct(rows: LogicalPlan, columns: impl Iterator<Item = Expr>) -> DfResult<LogicalPlan> {
    let mut columns: Vec<Expr> = columns.collect();
    if columns.is_empty() {
        columns.push(lit(true).alias("__any"));
    }
    LogicalPlanBuilder::from(rows).project(columns)?.distinct()?.build()
}

fn is_not_distinct(left: Expr, right: Expr) -> Expr {
    datafusion_expr::binary_expr(left, datafusion_expr::Operator::IsNotDistinctFrom, right)
}
