//! Keys that are intervals or `jsonb`, or arrays of them, as keys of what is equal: `1 day` and
//! `24:00:00` are one group, and so are `1.0` and `1`.
//!
//! Law: what PostgreSQL's `=` calls equal is one group, one row of DISTINCT, one partition and one
//! peer. A group shows the least of its spellings, so that it depends on the group's rows alone.
//! Keys of other types are not touched.
//!
//! Cost: a group by such a key remembers its values in order, for the least of them; else a number
//! or a text a row.

use std::sync::Arc;

use arrow::datatypes::Field;
use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_common::{Column, DFSchema, Result as DfResult, internal_datafusion_err};
use datafusion_expr::expr::{AggregateFunction, InSubquery, SetComparison, Sort, WindowFunction};
use datafusion_expr::expr_rewriter::NamePreserver;
use datafusion_expr::logical_plan::{Aggregate, Distinct, Join, LogicalPlan, LogicalPlanBuilder, Projection, Window};
use datafusion_expr::utils::grouping_set_to_exprlist;
use datafusion_expr::{Expr, ExprSchemable, WindowFrameBound, WindowFrameUnits, when};

use super::interval_sets::by_lengths;
use super::interval_sums::{WindowColumn, split};
use super::set_operations::SetNode;
use crate::functions::aggregates;
use crate::functions::distinct_lists::{self, Spelling};
use crate::functions::interval_lists::is_list_of_intervals;
use crate::functions::intervals::{INTERVAL, is_interval, length_of};
use crate::functions::json::operators::sort_key;
use crate::functions::most_frequent;
use crate::functions::table::FUNCTIONS;
use crate::functions::table::call;
use crate::resolve::documents::{DocumentForm, form_in_list, form_of};
use crate::resolve::type_marks::EnumMark;

/// Replaces keys that are intervals, also in subqueries.
pub(crate) fn replace(plan: LogicalPlan) -> DfResult<LogicalPlan> {
    Ok(plan.transform_up_with_subqueries(replace_in)?.data)
}

fn replace_in(node: LogicalPlan) -> DfResult<Transformed<LogicalPlan>> {
    match node {
        LogicalPlan::Aggregate(aggregate) => in_aggregate(aggregate),
        LogicalPlan::Distinct(Distinct::All(input)) if has_interval(input.schema()) => {
            let columns = input.schema().iter().map(|column| Expr::Column(Column::from(column))).collect();
            let aggregate = Aggregate::try_new(input, columns, vec![])?;
            Ok(Transformed::yes(in_aggregate(aggregate)?.data))
        }
        LogicalPlan::Window(window) => in_window(window),
        LogicalPlan::Sort(mut sort) => {
            let schema = Arc::clone(sort.input.schema());
            let mut changed = false;
            let keys = sort.expr.into_iter().map(|key| by_length_of_key(key, &schema));
            sort.expr = keys.map(|key| note(key, &mut changed)).collect();
            Ok(Transformed::new_transformed(LogicalPlan::Sort(sort), changed))
        }
        LogicalPlan::Join(join) => in_join(join),
        LogicalPlan::Filter(_) | LogicalPlan::Projection(_) => in_membership(node),
        LogicalPlan::Extension(node) => match node.node.as_any().downcast_ref::<SetNode>() {
            Some(set) if has_interval(set.left.schema()) => Ok(Transformed::yes(by_lengths(set)?)),
            _ => Ok(Transformed::no(LogicalPlan::Extension(node))),
        },
        other => Ok(Transformed::no(other)),
    }
}

/// Groups are those of the lengths; of each group's intervals the least is shown.
fn in_aggregate(aggregate: Aggregate) -> DfResult<Transformed<LogicalPlan>> {
    let input_schema = Arc::clone(aggregate.input.schema());
    let is_key = |e: &Expr| is_spelled(e, &input_schema);
    let is_changed = |call: &Expr| {
        counts_distinct(call, &input_schema)
            || orders_spellings(call, &input_schema)
            || lists_distinct(call, &input_schema).is_some()
            || most_frequent_of(call, &input_schema).is_some()
    };
    let counts = aggregate.aggr_expr.iter().any(is_changed);
    let has_key = grouping_set_to_exprlist(&aggregate.group_expr)?.into_iter().any(is_key);
    if !counts && !has_key {
        return Ok(Transformed::no(LogicalPlan::Aggregate(aggregate)));
    }
    if has_key && aggregate.group_expr.iter().any(|e| matches!(e, Expr::GroupingSet(_))) {
        return in_grouping_sets(aggregate);
    }
    let Aggregate { input, group_expr, aggr_expr, schema, .. } = aggregate;
    let (mut groups, mut calls, mut columns) = (Vec::new(), Vec::new(), Vec::new());
    // (`GROUP BY i, i` has one column.)
    let keys: Vec<Expr> = grouping_set_to_exprlist(&group_expr)?.into_iter().cloned().collect();
    let n_groups = keys.len();
    for (index, (expr, (qualifier, field))) in keys.into_iter().zip(schema.iter()).enumerate() {
        let own = Column::new(qualifier.cloned(), field.name());
        if !is_key(&expr) {
            groups.push(expr);
            columns.push(Expr::Column(own));
            continue;
        }
        let shown = format!("__interval_{index}");
        let least = again(&expr, Column::from_name(&shown), &input_schema);
        columns.push(least.alias_qualified(own.relation, own.name));
        calls.push(aggregates::min().call(vec![expr.clone()]).alias(shown));
        groups.push(compared(expr, &input_schema).alias(format!("__length_{index}")));
    }
    for (call, (qualifier, field)) in aggr_expr.into_iter().zip(schema.iter().skip(n_groups)) {
        let own = result_of(&call, field.name(), &input_schema);
        columns.push(own.alias_qualified(qualifier.cloned(), field.name()));
        calls.push(count_lengths(call, &input_schema)?.alias(field.name()));
    }
    let plan = LogicalPlan::Aggregate(Aggregate::try_new(input, groups, calls)?);
    Ok(Transformed::yes(LogicalPlan::Projection(Projection::try_new(columns, Arc::new(plan))?)))
}

/// The lengths stand as columns beside the rows, and in the sets in place of the intervals. A row
/// of a set without the interval has no length, and so shows no interval.
fn in_grouping_sets(aggregate: Aggregate) -> DfResult<Transformed<LogicalPlan>> {
    let Aggregate { input, group_expr, aggr_expr, schema, .. } = aggregate;
    let input_schema = Arc::clone(input.schema());
    let keys: Vec<Expr> = grouping_set_to_exprlist(&group_expr)?.into_iter().cloned().collect();
    let length = |key: &Expr| {
        let index = keys.iter().position(|k| k == key);
        index.map(|index| Column::from_name(format!("__length_{index}")))
    };
    let mut below: Vec<Expr> = input_schema.columns().into_iter().map(Expr::Column).collect();
    let mut calls = Vec::with_capacity(aggr_expr.len());
    let mut columns = Vec::with_capacity(schema.fields().len());
    let mut fields = schema.iter();
    for ((index, key), (qualifier, field)) in keys.iter().enumerate().zip(&mut fields) {
        let own = Column::new(qualifier.cloned(), field.name());
        let Some(length) = length(key).filter(|_| is_spelled(key, &input_schema)) else {
            columns.push(Expr::Column(own));
            continue;
        };
        below.push(compared(key.clone(), &input_schema).alias(&length.name));
        let shown = Column::from_name(format!("__interval_{index}"));
        calls.push(aggregates::min().call(vec![key.clone()]).alias(&shown.name));
        let shown = when(Expr::Column(length).is_not_null(), again(key, shown, &input_schema)).end()?;
        columns.push(shown.alias_qualified(own.relation, own.name));
    }
    // (The column that tells the set.)
    let (qualifier, field) = fields.next().ok_or_else(|| internal_datafusion_err!("sets without a number"))?;
    columns.push(Expr::Column(Column::new(qualifier.cloned(), field.name())));
    for (call, (qualifier, field)) in aggr_expr.into_iter().zip(fields) {
        columns.push(result_of(&call, field.name(), &input_schema).alias_qualified(qualifier.cloned(), field.name()));
        calls.push(count_lengths(call, &input_schema)?.alias(field.name()));
    }
    let by_column = |e: Expr| match length(&e).filter(|_| is_spelled(&e, &input_schema)) {
        Some(length) => Ok(Transformed::new(Expr::Column(length), true, TreeNodeRecursion::Jump)),
        None => Ok(Transformed::no(e)),
    };
    let sets = group_expr.into_iter().map(|e| Ok(e.transform_down(by_column)?.data));
    let sets = sets.collect::<DfResult<Vec<Expr>>>()?;
    let input = Arc::new(LogicalPlan::Projection(Projection::try_new(below, input)?));
    let plan = LogicalPlan::Aggregate(Aggregate::try_new(input, sets, calls)?);
    Ok(Transformed::yes(LogicalPlan::Projection(Projection::try_new(columns, Arc::new(plan))?)))
}

/// `count(DISTINCT i)`, in an alias or not.
fn counts_distinct(call: &Expr, schema: &DFSchema) -> bool {
    match call {
        Expr::Alias(alias) => counts_distinct(&alias.expr, schema),
        Expr::AggregateFunction(AggregateFunction { func, params }) => {
            let has_spelled =
                |e: &Expr| is_spelled(e, schema) || values_of_row(e).iter().any(|e| is_spelled(e, schema));
            func.name() == "count" && params.distinct && params.args.iter().any(has_spelled)
        }
        _ => false,
    }
}

/// Whether values are listed in an order of intervals, in an alias or not. (With DISTINCT the order
/// is that of the values themselves.)
fn orders_spellings(call: &Expr, schema: &DFSchema) -> bool {
    match call {
        Expr::Alias(alias) => orders_spellings(&alias.expr, schema),
        Expr::AggregateFunction(AggregateFunction { func, params }) => {
            matches!(func.name(), "array_agg" | "string_agg" | "first_value" | "last_value")
                && !params.distinct
                && params.order_by.iter().any(|key| is_interval(&key.expr, schema))
        }
        _ => false,
    }
}

/// What the values of `array_agg(DISTINCT x)` are equal by, in an alias or not; `None` where they
/// are kept in one spelling, in order.
fn lists_distinct(call: &Expr, schema: &DFSchema) -> Option<Spelling> {
    match call {
        Expr::Alias(alias) => lists_distinct(&alias.expr, schema),
        Expr::AggregateFunction(AggregateFunction { func, params })
            if func.name() == "array_agg" && params.distinct =>
        {
            let value = params.args.first()?;
            let is_ordered_by_other = params.order_by.iter().any(|key| key.expr != *value);
            spelling_of(value, schema).filter(|_| !is_ordered_by_other)
        }
        _ => None,
    }
}

/// What the values of `mode(x)` are equal by, in an alias or not.
fn most_frequent_of(call: &Expr, schema: &DFSchema) -> Option<Spelling> {
    match call {
        Expr::Alias(alias) => most_frequent_of(&alias.expr, schema),
        Expr::AggregateFunction(AggregateFunction { func, params }) if func.name() == "mode" => {
            spelling_of(params.args.first()?, schema).filter(|by| *by != Spelling::Label)
        }
        _ => None,
    }
}

/// What values are equal by that are not kept in the order of their type.
fn spelling_of(value: &Expr, schema: &DFSchema) -> Option<Spelling> {
    if is_interval(value, schema) {
        return Some(Spelling::Length);
    }
    let (_, field) = value.to_field(schema).ok()?;
    match EnumMark::of(&field) {
        Some(_) => Some(Spelling::Label),
        None => is_jsonb(&field).then_some(Spelling::Document),
    }
}

/// The result of a call: of a list of values that differ, without those that equal the one before;
/// of one that is counted, the most frequent.
fn result_of(call: &Expr, name: &str, schema: &DFSchema) -> Expr {
    let result = Expr::Column(Column::from_name(name));
    match (lists_distinct(call, schema), most_frequent_of(call, schema)) {
        (Some(by), _) => distinct_lists::udf(by).call(vec![result]),
        (None, Some(by)) => most_frequent::udf(by).call(vec![result]),
        (None, None) => result,
    }
}

fn count_lengths(call: Expr, schema: &DFSchema) -> DfResult<Expr> {
    let is_mode = most_frequent_of(&call, schema).is_some();
    if (is_mode || lists_distinct(&call, schema).is_some())
        && let Expr::AggregateFunction(mut call) = call.clone().unalias()
    {
        let value = call.params.args[0].clone();
        let (asc, nulls_first) = call.params.order_by.first().map_or((true, false), |key| (key.asc, key.nulls_first));
        let by = |expr: Expr, asc| Sort { expr, asc, nulls_first };
        call.params.order_by = vec![by(compared(value.clone(), schema), asc), by(value, true)];
        call.params.distinct = false;
        if is_mode && let Some(list) = FUNCTIONS.aggregate.get("array_agg") {
            call.func = list.clone();
        }
        return Ok(Expr::AggregateFunction(call));
    }
    if orders_spellings(&call, schema)
        && let Expr::AggregateFunction(mut call) = call.clone().unalias()
    {
        let keys = call.params.order_by.into_iter().map(|key| by_length_of_key(key, schema).data);
        call.params.order_by = keys.collect();
        return Ok(Expr::AggregateFunction(call));
    }
    if !counts_distinct(&call, schema) {
        return Ok(call.unalias());
    }
    let Expr::AggregateFunction(mut call) = call.unalias() else { unreachable!("counts_distinct has seen a call") };
    call.params.args = call.params.args.into_iter().map(|e| row_by_length(e, schema)).collect();
    Ok(Expr::AggregateFunction(call))
}

/// The values of `(x, y)`.
fn values_of_row(expr: &Expr) -> &[Expr] {
    match expr {
        Expr::Alias(alias) => values_of_row(&alias.expr),
        Expr::ScalarFunction(row) if row.func.name() == "struct" => &row.args,
        _ => &[],
    }
}

/// What is the same for all spellings of a value, or of the values of a row.
fn row_by_length(expr: Expr, schema: &DFSchema) -> Expr {
    match expr.unalias() {
        Expr::ScalarFunction(mut row) if row.func.name() == "struct" => {
            row.args = row.args.into_iter().map(|e| by_length(e, schema).data).collect();
            Expr::ScalarFunction(row)
        }
        other => by_length(other, schema).data,
    }
}

/// Partitions and peers are those of the lengths. The calls change their names by it, so a
/// projection gives them back.
fn in_window(window: Window) -> DfResult<Transformed<LogicalPlan>> {
    let input_schema = Arc::clone(window.input.schema());
    let width = input_schema.fields().len();
    let (mut calls, mut made) = (Vec::new(), Vec::with_capacity(window.window_expr.len()));
    let mut changed = false;
    for call in &window.window_expr {
        let call = call.clone().transform(|e| match e {
            Expr::WindowFunction(call) => by_length_in_call(*call, &input_schema),
            other => Ok(Transformed::no(other)),
        })?;
        changed |= call.transformed;
        made.push(split(call.data, &input_schema, &mut calls));
    }
    let is_split = made.iter().any(|made| matches!(made, WindowColumn::Interval { .. }));
    if !changed && !is_split {
        return Ok(Transformed::no(LogicalPlan::Window(window)));
    }
    let plan = LogicalPlanBuilder::from(Arc::unwrap_or_clone(window.input)).window(calls)?.build()?;
    let below = input_schema.columns().into_iter().map(Expr::Column);
    let values = below.chain(made.iter().map(|made| made.put_together(plan.schema(), width)));
    let columns = values
        .zip(window.schema.iter())
        .map(|(value, (qualifier, field))| value.alias_qualified(qualifier.cloned(), field.name()));
    let columns: Vec<Expr> = columns.collect();
    Ok(Transformed::yes(LogicalPlan::Projection(Projection::try_new(columns, Arc::new(plan))?)))
}

fn by_length_in_call(mut call: WindowFunction, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    let mut changed = false;
    let partition = call.params.partition_by.into_iter().map(|e| by_length(e, schema));
    call.params.partition_by = partition.map(|e| note(e, &mut changed)).collect();
    // (An offset of a RANGE frame is added to the value of the key.)
    let frame = &call.params.window_frame;
    let has_offset = [&frame.start_bound, &frame.end_bound].into_iter().any(|bound| match bound {
        WindowFrameBound::Preceding(by) | WindowFrameBound::Following(by) => !by.is_null(),
        WindowFrameBound::CurrentRow => false,
    });
    if frame.units != WindowFrameUnits::Range || !has_offset {
        let keys = call.params.order_by.into_iter().map(|key| by_length_of_key(key, schema));
        call.params.order_by = keys.map(|key| note(key, &mut changed)).collect();
    }
    Ok(Transformed::new_transformed(Expr::from(call), changed))
}

fn note<T>(changed: Transformed<T>, any: &mut bool) -> T {
    *any |= changed.transformed;
    changed.data
}

/// What USING and NATURAL compare. (Conditions are rewritten as expressions.)
fn in_join(mut join: Join) -> DfResult<Transformed<LogicalPlan>> {
    let mut changed = false;
    for (left, right) in &mut join.on {
        for (key, side) in [(left, &join.left), (right, &join.right)] {
            *key = note(by_length(std::mem::take(key), side.schema()), &mut changed);
        }
    }
    Ok(Transformed::new_transformed(LogicalPlan::Join(join), changed))
}

/// `i IN (SELECT j ..)`, and `i < ANY (SELECT j ..)` and its like.
fn in_membership(node: LogicalPlan) -> DfResult<Transformed<LogicalPlan>> {
    let [input] = node.inputs()[..] else { return Ok(Transformed::no(node)) };
    let schema = Arc::clone(input.schema());
    let names = NamePreserver::new(&node);
    node.map_expressions(|e| {
        let name = names.save(&e);
        let tested = e.transform_up(|e| match e {
            Expr::InSubquery(test) if is_spelled(&test.expr, &schema) => {
                let InSubquery { expr, mut subquery, negated } = test;
                let column = Expr::Column(subquery.subquery.schema().columns().swap_remove(0));
                let lengths = compared(column, subquery.subquery.schema()).alias("__length");
                subquery.subquery = Arc::new(LogicalPlan::Projection(Projection::try_new(
                    vec![lengths],
                    Arc::clone(&subquery.subquery),
                )?));
                let test = InSubquery { expr: Box::new(compared(*expr, &schema)), subquery, negated };
                Ok(Transformed::yes(Expr::InSubquery(test)))
            }
            Expr::SetComparison(test) if is_ordered_by_key(&test.expr, &schema) => {
                let SetComparison { expr, mut subquery, op, quantifier } = test;
                let column = Expr::Column(subquery.subquery.schema().columns().swap_remove(0));
                let key = compared(column, subquery.subquery.schema()).alias("__key");
                subquery.subquery =
                    Arc::new(LogicalPlan::Projection(Projection::try_new(vec![key], Arc::clone(&subquery.subquery))?));
                let expr = Box::new(compared(*expr, &schema));
                Ok(Transformed::yes(Expr::SetComparison(SetComparison { expr, subquery, op, quantifier })))
            }
            other => Ok(Transformed::no(other)),
        })?;
        Ok(tested.update_data(|e| name.restore(e)))
    })
}

fn by_length_of_key(key: Sort, schema: &DFSchema) -> Transformed<Sort> {
    let Sort { expr, asc, nulls_first } = key;
    by_length(expr, schema).update_data(|expr| Sort { expr, asc, nulls_first })
}

fn by_length(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    match is_spelled(&expr, schema) {
        true => Transformed::yes(compared(expr, schema)),
        false => Transformed::no(expr),
    }
}

/// Whether values have several spellings.
fn is_spelled(expr: &Expr, schema: &DFSchema) -> bool {
    expr.to_field(schema).is_ok_and(|(_, field)| has_spellings(&field))
}

/// Whether values are ordered by something else than what they are kept as.
fn is_ordered_by_key(expr: &Expr, schema: &DFSchema) -> bool {
    is_spelled(expr, schema) || expr.to_field(schema).is_ok_and(|(_, field)| EnumMark::of_elements(&field).is_some())
}

fn is_jsonb(field: &Field) -> bool {
    form_of(field) == Some(DocumentForm::Jsonb)
}

/// What is the same for all spellings of a value.
pub(super) fn compared(expr: Expr, schema: &DFSchema) -> Expr {
    match expr.to_field(schema) {
        Ok((_, field)) if *field.data_type() != INTERVAL => sort_key(expr, Some(&field)),
        _ => length_of(expr),
    }
}

/// The least spelling of a key, marked as the key is.
fn again(key: &Expr, least: Column, schema: &DFSchema) -> Expr {
    match key.to_field(schema) {
        Ok((_, field)) if is_jsonb(&field) => call("__jsonb_document", vec![Expr::Column(least)]),
        Ok((_, field)) if form_in_list(&field).is_some() => call("__jsonbs_in", vec![Expr::Column(least)]),
        _ => Expr::Column(least),
    }
}

pub(super) fn has_spellings(field: &Field) -> bool {
    let is_of_lists = is_list_of_intervals(field.data_type()) || form_in_list(field) == Some(DocumentForm::Jsonb);
    *field.data_type() == INTERVAL || is_jsonb(field) || is_of_lists
}

fn has_interval(schema: &DFSchema) -> bool {
    schema.fields().iter().any(|field| has_spellings(field))
}
