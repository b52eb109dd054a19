//! GROUPING SETS, ROLLUP and CUBE for each value of a domain.
//!
//! ```text
//! aggregate by sets {a}, {} of rows     aggregate by sets {d, a}, {d} of (domain left join rows)
//!                                       where there are rows, or the set is {d}
//! ```
//!
//! Law: the set of no group has a row for each value, of no rows as well; the other sets have none
//! then. The values of the domain come first among the groups: so the bits that tell which groups a
//! set leaves out are what they were.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion_common::tree_node::TreeNode;
use datafusion_common::{Column, JoinType, NullEquality, Result as DfResult};
use datafusion_expr::expr::{AggregateFunction, GroupingSet};
use datafusion_expr::logical_plan::{Aggregate, LogicalPlan, LogicalPlanBuilder};
use datafusion_expr::utils::grouping_set_to_exprlist;
use datafusion_expr::{Expr, cast, lit};

use super::free::subquery_of;
use super::{Domain, PRESENT, Unnesting, refused, replaced, show};
use crate::functions::table::FUNCTIONS;
use crate::passes::plan::decorrelate::only_present;

/// The column with the number of rows of a group.
const N_PRESENT: &str = "__n_present";

impl Unnesting<'_> {
    pub(super) fn grouping_sets(
        &mut self,
        aggregate: Aggregate,
        domain: &Domain,
    ) -> DfResult<(LogicalPlan, Vec<Column>)> {
        let Aggregate { input, group_expr, aggr_expr, schema, .. } = aggregate;
        let ([Expr::GroupingSet(sets)], Some(count)) = (group_expr.as_slice(), FUNCTIONS.aggregate.get("count")) else {
            return Err(refused("GROUPING SETS beside other groups, in a subquery"));
        };
        let sets = expanded(sets);
        let own = input.schema().clone();
        let (rows, keys) = self.push(Arc::unwrap_or_clone(input), Some(domain))?;
        let here = |expr: Expr| replaced(expr, Some(domain), &keys, rows.schema(), &own);
        let all_calls = aggr_expr.into_iter().map(here).collect::<DfResult<Vec<Expr>>>()?;
        let calls: Vec<Expr> = all_calls.iter().filter(|call| grouping_of(call).is_none()).cloned().collect();
        let sets = sets.into_iter().map(|set| set.into_iter().map(here).collect::<DfResult<Vec<Expr>>>());
        let sets = sets.collect::<DfResult<Vec<Vec<Expr>>>>()?;
        let nested = |expr: &Expr| expr.exists(|part| Ok(subquery_of(part).is_some())).unwrap_or(true);
        if sets.iter().flatten().chain(&calls).any(nested) || has_twice(&sets) {
            return Err(refused("a subquery in an aggregate, or one of GROUPING SETS twice, in a subquery"));
        }
        let mut columns: Vec<Expr> = rows.schema().columns().into_iter().map(Expr::Column).collect();
        columns.push(lit(true).alias(PRESENT));
        let rows = LogicalPlanBuilder::from(rows).project(columns)?.build()?;
        let (values, own_keys) = self.copy(domain)?;
        let rows = LogicalPlanBuilder::from(values)
            .join_detailed(rows, JoinType::Left, (own_keys.clone(), keys), None, NullEquality::NullEqualsNull)?
            .build()?;
        let with_keys = |set: Vec<Expr>| own_keys.iter().cloned().map(Expr::Column).chain(set).collect::<Vec<Expr>>();
        let sets = GroupingSet::GroupingSets(sets.into_iter().map(with_keys).collect());
        let mut calls: Vec<Expr> = calls.into_iter().map(only_present).collect::<DfResult<_>>()?;
        let present = Expr::Column(Column::from_name(PRESENT));
        let counted = AggregateFunction::new_udf(Arc::clone(count), vec![present], false, None, vec![], None);
        calls.push(Expr::AggregateFunction(counted).alias(N_PRESENT));
        let group = vec![Expr::GroupingSet(sets)];
        let distinct: Vec<Expr> = grouping_set_to_exprlist(&group)?.into_iter().skip(own_keys.len()).cloned().collect();
        let n_group = distinct.len();
        let rows = LogicalPlanBuilder::from(rows).aggregate(group, calls)?.build()?;
        let columns = rows.schema().columns();
        let n_keys = own_keys.len();
        let id_at = n_keys + n_group;
        let id = cast(Expr::Column(columns[id_at].clone()), schema.field(n_group).data_type().clone());
        let all_left_out = cast(lit((1u64 << n_group) - 1), schema.field(n_group).data_type().clone());
        let n_present = Expr::Column(Column::from_name(N_PRESENT));
        let rows = LogicalPlanBuilder::from(rows).filter(n_present.gt(lit(0i64)).or(id.clone().eq(all_left_out)))?;
        let groups = columns[n_keys..id_at].iter().cloned().map(Expr::Column);
        let mut results = columns[id_at + 1..columns.len() - 1].iter().cloned().map(Expr::Column);
        let mut shown: Vec<Expr> = groups.chain([id.clone()]).collect();
        for (call, field) in all_calls.iter().zip(schema.fields().iter().skip(n_group + 1)) {
            shown.push(match grouping_of(call) {
                Some(args) => cast(left_out(args, &distinct, &id)?, field.data_type().clone()),
                None => results.next().ok_or_else(|| refused("GROUPING SETS in a subquery"))?,
            });
        }
        show(rows.build()?, shown, &schema, columns[..n_keys].to_vec())
    }
}

/// The sets that a grouping stands for.
pub(crate) fn expanded(sets: &GroupingSet) -> Vec<Vec<Expr>> {
    match sets {
        GroupingSet::GroupingSets(sets) => sets.clone(),
        GroupingSet::Rollup(exprs) => (0..=exprs.len()).rev().map(|n| exprs[..n].to_vec()).collect(),
        GroupingSet::Cube(exprs) => (0..1usize << exprs.len())
            .map(|mask| {
                let kept = exprs.iter().enumerate().filter(|(n, _)| mask >> n & 1 == 0);
                kept.map(|(_, e)| e.clone()).collect()
            })
            .collect(),
    }
}

/// The arguments of `grouping(a, b)`, if a call is one.
fn grouping_of(call: &Expr) -> Option<&[Expr]> {
    match call {
        Expr::Alias(alias) => grouping_of(&alias.expr),
        Expr::AggregateFunction(call) if call.func.name() == "grouping" => Some(&call.params.args),
        _ => None,
    }
}

/// A bit for each argument, the last one's the lowest: whether its group is left out.
fn left_out(args: &[Expr], groups: &[Expr], id: &Expr) -> DfResult<Expr> {
    let id = || cast(id.clone(), DataType::Int64);
    let mut sum = lit(0i64);
    for (n, arg) in args.iter().rev().enumerate() {
        let at = groups.iter().rev().position(|group| group == arg);
        let at = at.ok_or_else(|| refused("grouping() of what is no group, in a subquery"))?;
        sum = sum + (id() / lit(1i64 << at)) % lit(2i64) * lit(1i64 << n);
    }
    Ok(sum)
}

/// Whether two sets have the same groups.
fn has_twice(sets: &[Vec<Expr>]) -> bool {
    let is_same = |a: &Vec<Expr>, b: &Vec<Expr>| a.iter().all(|e| b.contains(e)) && b.iter().all(|e| a.contains(e));
    sets.iter().enumerate().any(|(n, set)| sets[..n].iter().any(|other| is_same(set, other)))
}
