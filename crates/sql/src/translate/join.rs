//! Joins of every kind.
//!
//! Keys become plain columns: computed ones are projected below the join. Right semi, anti and mark
//! joins are turned round. What of the condition is not an equality stays as the residual, over
//! [`Plan::join_schema`].

use std::sync::Arc;

use anabranch_plan::{JoinKind, Node, Nulls, Plan};
use arrow::datatypes::DataType;
use datafusion_common::{Column, DFSchema, JoinType, NullEquality};
use datafusion_expr::logical_plan::Join;
use datafusion_expr::utils::conjunction;
use datafusion_expr::{Expr, ExprSchemable, cast};

use super::Translator;
use super::expr::{Stand, conjuncts, resolve, resolve_with};
use super::one_row::unchecked;
use super::schema::{Draft, drafts, schema};
use super::stage::with_columns;
use crate::error::{ErrorKind, Result, SqlError};
use crate::resolve::common_types::union_type;
use crate::resolve::type_names::sql_name;
use crate::type_words::CAST_ONE_SIDE;

/// Columns that a residual names.
const SIDES: [&str; 2] = ["left", "right"];

/// A join to be: its inputs with the keys as columns.
pub(super) struct Draw {
    pub(super) kind: JoinKind,
    pub(super) left: Arc<Plan>,
    pub(super) right: Arc<Plan>,
    pub(super) left_key: Vec<usize>,
    pub(super) right_key: Vec<usize>,
    pub(super) nulls: Nulls,
    pub(super) residual: Option<Expr>,
    /// Positions in left columns followed by right columns.
    pub(super) output: Vec<usize>,
}

impl Translator {
    pub(super) fn join(&self, join: &Join) -> Result<Arc<Plan>> {
        let (kind, turned) = kind_of(join)?;
        let (near, far) = if turned { (&join.right, &join.left) } else { (&join.left, &join.right) };
        let left = self.node(near)?;
        let mut right = self.node(far)?;
        // (Without a key all rows ask, and an error is one of each.)
        let is_asked = join.filter.is_none() && !join.on.is_empty();
        let unchecked = match kind {
            JoinKind::Inner | JoinKind::Left if is_asked => unchecked(&right, kind)?,
            _ => None,
        };
        if let Some(unchecked) = &unchecked {
            right = unchecked.right.clone();
        }
        let (left_width, right_width) = (left.schema.fields().len(), far.schema().fields().len());

        let mut left_exprs = Vec::new();
        let mut right_exprs = Vec::new();
        for (l, r) in &join.on {
            let (l, r) = if turned { (r, l) } else { (l, r) };
            let l = resolve(l, near.schema(), &left.schema)?;
            let r = resolve(r, far.schema(), &right.schema)?;
            let (l, r) = same_type(l, &left.schema, r, &right.schema)?;
            left_exprs.push(l);
            right_exprs.push(r);
        }
        let (left, left_key) = with_columns(left, left_exprs)?;
        let n_right = right.schema.fields().len();
        let (right, right_key) = with_columns(right, right_exprs)?;
        let (left_key, right_key) = distinct_pairs(left_key, right_key);

        let residual = join
            .filter
            .as_ref()
            .map(|filter| self.residual(filter, near.schema(), &left, far.schema(), &right))
            .transpose()?
            .flatten();
        let mut output: Vec<usize> = (0..left_width).collect();
        match kind {
            JoinKind::LeftSemi | JoinKind::LeftAnti | JoinKind::LeftAntiNullAware => {}
            JoinKind::LeftMark => output.push(left.schema.fields().len()),
            JoinKind::Inner | JoinKind::Left | JoinKind::Right | JoinKind::Full => {
                let offset = left.schema.fields().len();
                output.extend((0..n_right).map(|at| offset + at));
            }
        }
        let nulls = match join.null_equality {
            NullEquality::NullEqualsNothing => Nulls::Differ,
            NullEquality::NullEqualsNull => Nulls::Equal,
        };
        let plan = joined(Draw { kind, left, right, left_key, right_key, nulls, residual, output });
        match unchecked {
            Some(unchecked) => unchecked.checked(plan, left_width, left_width + right_width),
            None => Ok(plan),
        }
    }

    fn residual(
        &self,
        filter: &Expr,
        left_from: &DFSchema,
        left: &Plan,
        right_from: &DFSchema,
        right: &Plan,
    ) -> Result<Option<Expr>> {
        let stand = |name: &Column| {
            let (side, from, to) = match left_from.maybe_index_of_column(name) {
                Some(_) => (SIDES[0], left_from, left),
                None => (SIDES[1], right_from, right),
            };
            let at = from.index_of_column(name)?;
            let field = to.schema.field(at);
            Ok(Stand {
                expr: Expr::Column(Column::new(Some(side), field.name())),
                is: field.data_type().clone(),
                was: from.field(at).data_type().clone(),
            })
        };
        let parts = conjuncts(filter).iter().map(|part| resolve_with(part, &stand)).collect::<Result<Vec<_>>>()?;
        Ok(conjunction(parts))
    }
}

/// The join as a plan.
pub(super) fn joined(draw: Draw) -> Arc<Plan> {
    let Draw { kind, left, right, left_key, right_key, nulls, residual, output } = draw;
    let (left_null, right_null) = match kind {
        JoinKind::Left => (false, true),
        JoinKind::Right => (true, false),
        JoinKind::Full => (true, true),
        _ => (false, false),
    };
    let mut all: Vec<Draft> = Vec::new();
    all.extend(drafts(&left.schema).into_iter().map(|(n, t, null)| (n, t, null || left_null)));
    match kind {
        JoinKind::LeftMark => all.push(("mark".into(), DataType::Boolean, false)),
        _ => all.extend(drafts(&right.schema).into_iter().map(|(n, t, null)| (n, t, null || right_null))),
    }
    let columns = output.iter().map(|at| all[*at].clone()).collect();
    Arc::new(Plan {
        node: Node::Join { left, right, kind, left_key, right_key, nulls, residual, output },
        schema: schema(columns),
    })
}

/// The kind of a join, and whether its sides change places.
fn kind_of(join: &Join) -> Result<(JoinKind, bool)> {
    if join.null_aware && (join.filter.is_some() || join.on.len() > 1) {
        return Err(SqlError::unsupported(
            "a correlated NOT IN over columns that may be NULL",
            "Write NOT EXISTS (SELECT .. WHERE inner.x = outer.x AND ..), or declare the columns NOT NULL.",
        ));
    }
    Ok(match join.join_type {
        JoinType::Inner => (JoinKind::Inner, false),
        JoinType::Left => (JoinKind::Left, false),
        JoinType::Right => (JoinKind::Right, false),
        JoinType::Full => (JoinKind::Full, false),
        JoinType::LeftSemi => (JoinKind::LeftSemi, false),
        JoinType::RightSemi => (JoinKind::LeftSemi, true),
        JoinType::LeftAnti if join.null_aware => (JoinKind::LeftAntiNullAware, false),
        JoinType::LeftAnti => (JoinKind::LeftAnti, false),
        JoinType::RightAnti => (JoinKind::LeftAnti, true),
        JoinType::LeftMark => (JoinKind::LeftMark, false),
        JoinType::RightMark => (JoinKind::LeftMark, true),
    })
}

pub(super) fn same_type(
    left: Expr,
    left_schema: &DFSchema,
    right: Expr,
    right_schema: &DFSchema,
) -> Result<(Expr, Expr)> {
    let (l, r) = (left.get_type(left_schema)?, right.get_type(right_schema)?);
    if l == r {
        return Ok((left, right));
    }
    let common = union_type(&l, &r).ok_or_else(|| {
        SqlError::new(ErrorKind::Type, format!("cannot join {} with {}", sql_name(&l), sql_name(&r)))
            .with_hint(CAST_ONE_SIDE)
    })?;
    let common = crate::resolve::type_names::canonical(&common);
    let conform = |e: Expr, is: DataType| if is == common { e } else { cast(e, common.clone()) };
    Ok((conform(left, l), conform(right, r)))
}

pub(super) fn distinct_pairs(left: Vec<usize>, right: Vec<usize>) -> (Vec<usize>, Vec<usize>) {
    let mut pairs: Vec<(usize, usize)> = Vec::with_capacity(left.len());
    for pair in left.into_iter().zip(right) {
        if !pairs.contains(&pair) {
            pairs.push(pair);
        }
    }
    pairs.into_iter().unzip()
}
