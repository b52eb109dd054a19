//! An outer join under a grouping by its key: two groupings in one, and no join.
//!
//! ```text
//! count(o) by c over (customers c left join orders o on o.c = c)
//! = (count(o) * n by c, where n > 0) over (count(o), count(customers) as n by c over (customers ∪ orders))
//! ```
//!
//! Every pair of the join has the key of its group, so a group's pairs are all pairs of its left
//! and its right rows: calls over right columns need the right rows of the group, taken as often as
//! there are left rows (which changes a count, and not a least or greatest value). Neither side is
//! remembered row by row. Right rows whose key is NULL match nothing and are left out; right rows
//! without a left row wait in the group's state and are not shown.
//!
//! Source: Yan and Larson, *Eager Aggregation and Lazy Aggregation*, VLDB 1995 (group-by push-down
//! on both sides).

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion_common::ScalarValue;
use datafusion_expr::{BinaryExpr, Expr, Operator, lit};

use super::build::{column, field, schema, width};
use crate::ir::{JoinKind, Node, Plan};
use anabranch_spec::aggregate::{AggregateCall, AggregateFunction};
use anabranch_spec::order::Nulls;

/// The grouping without the join, if the plan is one.
pub(super) fn apart(plan: &Arc<Plan>) -> Option<Arc<Plan>> {
    let Node::Aggregate { input, keys, calls } = &plan.node else {
        return None;
    };
    let Node::Join {
        left,
        right,
        kind: JoinKind::Left,
        left_key,
        right_key,
        nulls: Nulls::Differ,
        residual: None,
        output,
    } = &input.node
    else {
        return None;
    };
    let n_left = width(left);
    // The groups are the join's key, each column once: a left column that is equal to two right
    // ones is a condition on these.
    let groups: Vec<usize> = keys.iter().map(|key| output[*key]).collect();
    let distinct = groups.iter().enumerate().all(|(n, group)| !groups[..n].contains(group));
    let is_key = distinct && groups.len() == left_key.len() && left_key.iter().all(|key| groups.contains(key));
    let arguments: Option<Vec<usize>> = calls.iter().map(|call| right_argument(call, output, n_left)).collect();
    let arguments = arguments.filter(|arguments| is_key && !groups.is_empty() && !arguments.is_empty())?;
    let right_groups: Vec<usize> = groups
        .iter()
        .map(|group| left_key.iter().position(|key| key == group).map(|n| right_key[n]))
        .collect::<Option<_>>()?;
    let together = both(left, &groups, right, &right_groups, &arguments)?;
    Some(shown(plan, grouped(together, groups.len(), calls)))
}

/// The right column of a call that only looks at a right column, and not at how often.
fn right_argument(call: &AggregateCall, output: &[usize], n_left: usize) -> Option<usize> {
    use AggregateFunction::{BoolAnd, BoolOr, Count, Max, Min};
    let known = matches!(call.function, Count | Min | Max | BoolAnd | BoolOr);
    let plain = known && call.filter.is_none() && !call.distinct;
    output[call.argument?].checked_sub(n_left).filter(|_| plain)
}

/// The rows of both sides: groups, arguments, and a mark on left rows.
fn both(
    left: &Arc<Plan>,
    groups: &[usize],
    right: &Arc<Plan>,
    right_groups: &[usize],
    arguments: &[usize],
) -> Option<Arc<Plan>> {
    let absent = |data_type: &DataType| ScalarValue::try_from(data_type).ok().map(|null| Expr::Literal(null, None));
    let mut from_left: Vec<Expr> = groups.iter().map(|at| column(left, *at)).collect();
    for at in arguments {
        from_left.push(absent(right.schema.field(*at).data_type())?);
    }
    from_left.push(lit(true));
    let mut from_right: Vec<Expr> = right_groups.iter().chain(arguments).map(|at| column(right, *at)).collect();
    from_right.push(absent(&DataType::Boolean)?);

    let mut fields: Vec<_> = groups.iter().map(|at| field(left, *at)).collect();
    fields.extend(arguments.iter().map(|at| {
        let (name, data_type, _) = field(right, *at);
        (name, data_type, true)
    }));
    fields.push(("__present".to_owned(), DataType::Boolean, true));
    for (field, at) in fields.iter_mut().zip(right_groups) {
        field.2 |= right.schema.field(*at).is_nullable();
    }
    let schema = schema(fields);
    let nullable = right_groups.iter().filter(|at| right.schema.field(**at).is_nullable());
    let not_null = nullable.map(|at| Expr::IsNotNull(Box::new(column(right, *at)))).collect();
    let stage = |input: &Arc<Plan>, filter, project| {
        Arc::new(Plan { node: Node::Stage { input: Arc::clone(input), filter, project }, schema: schema.clone() })
    };
    let inputs = vec![stage(left, vec![], from_left), stage(right, not_null, from_right)];
    Some(Arc::new(Plan { node: Node::Union { inputs }, schema }))
}

/// The calls, and the number of left rows, by group.
fn grouped(input: Arc<Plan>, n_groups: usize, calls: &[AggregateCall]) -> Arc<Plan> {
    let mut both: Vec<AggregateCall> = calls
        .iter()
        .enumerate()
        .map(|(n, call)| AggregateCall { argument: Some(n_groups + n), order: vec![], ..call.clone() })
        .collect();
    both.push(AggregateCall {
        function: AggregateFunction::Count,
        argument: Some(n_groups + calls.len()),
        distinct: false,
        filter: None,
        order: vec![],
        output_type: DataType::Int64,
    });
    let mut fields: Vec<_> = (0..n_groups).map(|at| field(&input, at)).collect();
    for (n, call) in both.iter().enumerate() {
        let nullable = call.function != AggregateFunction::Count;
        fields.push((format!("call {n}"), call.output_type.clone(), nullable));
    }
    let schema = schema(fields);
    Arc::new(Plan { node: Node::Aggregate { input, keys: (0..n_groups).collect(), calls: both }, schema })
}

/// Groups with a left row; counts taken as often as there are left rows.
fn shown(plan: &Plan, grouped: Arc<Plan>) -> Arc<Plan> {
    let Node::Aggregate { keys, calls, .. } = &grouped.node else {
        unreachable!("a grouping was made");
    };
    let n_left_rows = keys.len() + calls.len() - 1;
    let binary = |left: Expr, op, right: Expr| Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right)));
    let rows = || column(&grouped, n_left_rows);
    let mut project: Vec<Expr> = (0..keys.len()).map(|at| column(&grouped, at)).collect();
    for (n, call) in calls[..calls.len() - 1].iter().enumerate() {
        let result = column(&grouped, keys.len() + n);
        let counts = call.function == AggregateFunction::Count;
        project.push(if counts { binary(result, Operator::Multiply, rows()) } else { result });
    }
    let filter = vec![binary(rows(), Operator::Gt, lit(0_i64))];
    Arc::new(Plan { node: Node::Stage { input: grouped, filter, project }, schema: plan.schema.clone() })
}
