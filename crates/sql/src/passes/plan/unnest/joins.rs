//! Joins for each value of a domain, and entries of FROM that depend on those before.

use std::sync::Arc;

use datafusion_common::tree_node::TreeNode;
use datafusion_common::{Column, DFSchemaRef, JoinType, NullEquality, Result as DfResult};
use datafusion_expr::logical_plan::{Filter, Join, LogicalPlan, LogicalPlanBuilder};
use datafusion_expr::utils::split_conjunction;
use datafusion_expr::{Expr, Operator, binary_expr, lit, when};

use super::free::{free_of, has_subquery, subquery_of};
use super::guards::asking;
use super::replaced::Replaced;
use super::{Domain, Unnesting, named_as, refused, replaced, show};

impl Unnesting<'_> {
    pub(super) fn join(&mut self, join: Join, domain: Option<&Domain>) -> DfResult<(LogicalPlan, Vec<Column>)> {
        // (Columns that may both be NULL are compared by a join of its own kind: `join_pairs`.)
        if domain.is_none() && join.null_equality == NullEquality::NullEqualsNull && join.filter.is_none() {
            let (left, _) = self.push(Arc::unwrap_or_clone(join.left), None)?;
            let (right, _) = self.push(Arc::unwrap_or_clone(join.right), None)?;
            let joined = LogicalPlan::Join(Join { left: Arc::new(left), right: Arc::new(right), ..join });
            return Ok((joined.recompute_schema()?, vec![]));
        }
        let Join { left, right, on, filter, join_type, schema, null_equality, .. } = join;
        let (left, right) = (Arc::unwrap_or_clone(left), Arc::unwrap_or_clone(right));
        let own = (*left.schema()).as_ref().join(right.schema())?;
        let operator = match null_equality {
            NullEquality::NullEqualsNull => Operator::IsNotDistinctFrom,
            NullEquality::NullEqualsNothing => Operator::Eq,
        };
        let equal = on.into_iter().map(|(l, r)| binary_expr(l, operator, r));
        let condition = equal.chain(filter).reduce(Expr::and);
        let left_schema = left.schema().clone();
        if free_of(&right)?.iter().any(|column| left_schema.has_column(column)) {
            return self.lateral(left, right, condition, join_type, domain);
        }
        let nested = |expr: &Expr| expr.exists(|part| Ok(subquery_of(part).is_some())).unwrap_or(true);
        if condition.as_ref().is_some_and(nested) {
            if join_type != JoinType::Inner {
                return Err(refused("a subquery in the ON of an outer join"));
            }
            let crossed = LogicalPlanBuilder::from(left).cross_join(right)?.build()?;
            let filter = Filter::try_new(condition.unwrap_or_else(|| lit(true)), Arc::new(crossed))?;
            return self.filter(filter, domain);
        }
        let Some(domain) = domain else {
            let (left, _) = self.push(left, None)?;
            let (right, _) = self.push(right, None)?;
            return Ok((LogicalPlanBuilder::from(left).join_on(right, join_type, condition)?.build()?, vec![]));
        };
        let uses = |plan: &LogicalPlan| -> DfResult<bool> {
            Ok(free_of(plan)?.iter().any(|column| domain.outer.contains(column)))
        };
        let mut in_condition = false;
        for part in condition.iter() {
            in_condition |= part.exists(|part| {
                Ok(matches!(part, Expr::OuterReferenceColumn(_, column) if domain.outer.contains(column)))
            })?;
        }
        let (of_left, of_right) = (uses(&left)?, uses(&right)?);
        let (in_left, in_right) = match join_type {
            JoinType::Inner => (of_left || (in_condition && !of_right), of_right),
            JoinType::Left => (true, of_right),
            JoinType::Right => (of_left, true),
            JoinType::Full => (true, true),
            _ => return Err(refused("a join of this kind in a subquery")),
        };
        let shown: Vec<Expr> =
            left.schema().columns().into_iter().chain(right.schema().columns()).map(Expr::Column).collect();
        let (left, left_keys) = self.push(left, in_left.then_some(domain))?;
        let (right, right_keys) = self.push(right, in_right.then_some(domain))?;
        let keys = if in_left { left_keys.clone() } else { right_keys.clone() };
        let joined_schema = (*left.schema()).as_ref().join(right.schema())?;
        let condition =
            condition.map(|condition| replaced(condition, Some(domain), &keys, &joined_schema, &own)).transpose()?;
        let both = in_left && in_right;
        let joined = match both {
            true => LogicalPlanBuilder::from(left).join_detailed(
                right,
                join_type,
                (left_keys.clone(), right_keys.clone()),
                condition,
                NullEquality::NullEqualsNull,
            )?,
            false => LogicalPlanBuilder::from(left).join_on(right, join_type, condition)?,
        };
        let joined = joined.build()?;
        let carried: Vec<(Expr, String)> = match (join_type, both) {
            (JoinType::Full, _) => {
                let pairs = left_keys.into_iter().zip(right_keys);
                let either = pairs.map(|(l, r)| {
                    let (l, r) = (Expr::Column(l), Expr::Column(r));
                    when(l.clone().is_not_null(), l).otherwise(r)
                });
                let either = either.collect::<DfResult<Vec<Expr>>>()?;
                either.into_iter().map(|key| (key, self.name("domain"))).collect()
            }
            (JoinType::Right, true) => {
                right_keys.into_iter().map(|key| (Expr::Column(key), self.name("domain"))).collect()
            }
            _ => keys.into_iter().map(|key| (Expr::Column(key), self.name("domain"))).collect(),
        };
        let names: Vec<Column> = carried.iter().map(|(_, name)| Column::new_unqualified(name)).collect();
        let items = named_as(shown, &schema).chain(carried.into_iter().map(|(key, name)| key.alias(name)));
        let items: Vec<Expr> = items.collect();
        Ok((LogicalPlanBuilder::from(joined).project(items)?.build()?, names))
    }

    /// A join whose right side depends on the left.
    pub(super) fn lateral(
        &mut self,
        left: LogicalPlan,
        right: LogicalPlan,
        condition: Option<Expr>,
        join_type: JoinType,
        domain: Option<&Domain>,
    ) -> DfResult<(LogicalPlan, Vec<Column>)> {
        if !matches!(join_type, JoinType::Inner | JoinType::Left) {
            return Err(refused("the right side of such a join"));
        }
        let own = (*left.schema()).as_ref().join(right.schema())?;
        let shown: Vec<Expr> =
            left.schema().columns().into_iter().chain(right.schema().columns()).map(Expr::Column).collect();
        let shown_schema: DFSchemaRef = Arc::new(own.clone());
        let left_schema = left.schema().clone();
        let (left, keys) = self.push(left, domain)?;
        // Outer columns of the right side are columns of the left, or of the domain that the left
        // carries.
        let right = match domain {
            Some(domain) => {
                let replaced = Replaced { outer: &domain.outer, keys: &keys, schema: left.schema() };
                replaced.in_nested(right, &left_schema)?
            }
            None => right,
        };
        let outer: Vec<Column> =
            free_of(&right)?.into_iter().filter(|column| left.schema().has_column(column)).collect();
        // (Rows of the left that the condition joins with nothing ask nothing.)
        let conjuncts = condition.iter().flat_map(split_conjunction);
        let decides = |part: &&Expr| {
            let is_of_left = part.column_refs().into_iter().all(|column| left.schema().has_column(column));
            is_of_left && !part.contains_outer() && !has_subquery(part)
        };
        let conditions: Vec<Expr> = conjuncts.filter(decides).cloned().collect();
        let inner = self.domain_of(&asking(&left, &conditions)?, &outer)?;
        let (right, right_keys) = self.push(right, Some(&inner))?;
        let joined_schema = (*left.schema()).as_ref().join(right.schema())?;
        let condition =
            condition.map(|condition| replaced(condition, domain, &keys, &joined_schema, &own)).transpose()?;
        let joined = LogicalPlanBuilder::from(left)
            .join_detailed(right, join_type, (outer, right_keys), condition, NullEquality::NullEqualsNull)?
            .build()?;
        show(joined, shown, &shown_schema, keys)
    }
}
