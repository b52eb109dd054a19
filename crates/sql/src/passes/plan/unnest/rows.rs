//! Nodes of one input, and set operations, for each value of a domain: the rules of `push`.

use std::sync::Arc;

use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_common::{Column, JoinType, NullEquality, Result as DfResult, ScalarValue};
use datafusion_expr::expr::{WindowFunction, WindowFunctionParams};
use datafusion_expr::logical_plan::{
    Aggregate, Distinct, Extension, FetchType, Filter, Limit, LogicalPlan, LogicalPlanBuilder, Projection, SkipType,
    Sort, SubqueryAlias, Union, Unnest, Values, Window,
};
use datafusion_expr::utils::{conjunction, split_conjunction_owned};
use datafusion_expr::{
    Expr, UserDefinedLogicalNodeCore, WindowFrame, WindowFrameBound, WindowFrameUnits, WindowFunctionDefinition, cast,
    lit,
};

use super::free::{has_subquery, subquery_of};
use super::loops::Widening;
use super::{Domain, PRESENT, Unnesting, named_as, refused, replaced, set_node, show};
use crate::functions::table::FUNCTIONS;
use crate::passes::plan::decorrelate::only_present;
use crate::passes::plan::distinct_on;

impl Unnesting<'_> {
    pub(super) fn filter(&mut self, filter: Filter, domain: Option<&Domain>) -> DfResult<(LogicalPlan, Vec<Column>)> {
        // (A variable's rows carry the values that the filter compares them with.)
        let is_carried =
            |widening: &&Widening| domain.is_some_and(|domain| widening.is_scan_of(&filter.input, &domain.outer));
        if let Some(widening) = self.loops.iter().find(is_carried) {
            let keys = widening.keys_of(&filter.input);
            return Ok((Arc::unwrap_or_clone(filter.input), keys));
        }
        let own = filter.input.schema().clone();
        let (rows, keys) = self.push(Arc::unwrap_or_clone(filter.input), domain)?;
        let predicate = replaced(filter.predicate, domain, &keys, rows.schema(), &own)?;
        let before = rows.schema().columns();
        // (Rows that other conditions remove ask nothing.)
        let (asking, plain): (Vec<Expr>, Vec<Expr>) =
            split_conjunction_owned(predicate).into_iter().partition(has_subquery);
        let rows = match conjunction(plain) {
            Some(plain) => LogicalPlan::Filter(Filter::try_new(plain, Arc::new(rows))?),
            None => rows,
        };
        let Some(asking) = conjunction(asking) else { return Ok((rows, keys)) };
        let (rows, mut predicates) = self.over(rows, vec![asking])?;
        let is_widened = rows.schema().fields().len() > before.len();
        let predicate = predicates.pop().unwrap_or_else(|| lit(true));
        let filtered = LogicalPlan::Filter(Filter::try_new(predicate, Arc::new(rows))?);
        let rows = match is_widened {
            true => LogicalPlanBuilder::from(filtered).project(before.into_iter().map(Expr::Column))?.build()?,
            false => filtered,
        };
        Ok((rows, keys))
    }

    pub(super) fn projection(
        &mut self,
        projection: Projection,
        domain: Option<&Domain>,
    ) -> DfResult<(LogicalPlan, Vec<Column>)> {
        let own = projection.input.schema().clone();
        let shown = projection.schema.clone();
        let (rows, keys) = self.push(Arc::unwrap_or_clone(projection.input), domain)?;
        let items = projection.expr.into_iter().map(|item| replaced(item, domain, &keys, rows.schema(), &own));
        let items = items.collect::<DfResult<Vec<Expr>>>()?;
        let (rows, items) = self.over(rows, items)?;
        let named = named_as(items, &shown);
        let items: Vec<Expr> = named.chain(keys.iter().cloned().map(Expr::Column)).collect();
        Ok((LogicalPlanBuilder::from(rows).project(items)?.build()?, keys))
    }

    pub(super) fn aggregate(
        &mut self,
        aggregate: Aggregate,
        domain: Option<&Domain>,
    ) -> DfResult<(LogicalPlan, Vec<Column>)> {
        let has_sets = aggregate.group_expr.iter().any(|group| matches!(group, Expr::GroupingSet(_)));
        if let (true, Some(domain)) = (has_sets, domain) {
            return self.grouping_sets(aggregate, domain);
        }
        let Aggregate { input, group_expr, aggr_expr, schema, .. } = aggregate;
        let own = input.schema().clone();
        let (mut rows, mut keys) = self.push(Arc::unwrap_or_clone(input), domain)?;
        let is_total = group_expr.is_empty();
        let group = group_expr.into_iter().map(|group| replaced(group, domain, &keys, rows.schema(), &own));
        let group = group.collect::<DfResult<Vec<Expr>>>()?;
        let calls = aggr_expr.into_iter().map(|call| replaced(call, domain, &keys, rows.schema(), &own));
        let mut calls = calls.collect::<DfResult<Vec<Expr>>>()?;
        let nested = |expr: &Expr| expr.exists(|part| Ok(subquery_of(part).is_some())).unwrap_or(true);
        if group.iter().chain(&calls).any(nested) {
            return Err(refused("a subquery in an aggregate"));
        }
        if let (Some(domain), true) = (domain, is_total) {
            // A value of the domain without rows has a row of the aggregate, too.
            let mut columns: Vec<Expr> = rows.schema().columns().into_iter().map(Expr::Column).collect();
            columns.push(lit(true).alias(PRESENT));
            rows = LogicalPlanBuilder::from(rows).project(columns)?.build()?;
            let (values, own_keys) = self.copy(domain)?;
            rows = LogicalPlanBuilder::from(values)
                .join_detailed(rows, JoinType::Left, (own_keys.clone(), keys), None, NullEquality::NullEqualsNull)?
                .build()?;
            keys = own_keys;
            calls = calls.into_iter().map(only_present).collect::<DfResult<_>>()?;
        }
        let all: Vec<Expr> = group.iter().cloned().chain(keys.iter().cloned().map(Expr::Column)).collect();
        let n_group = group.len();
        let rows = LogicalPlanBuilder::from(rows).aggregate(all, calls)?.build()?;
        let columns = rows.schema().columns();
        let shown = columns.iter().take(n_group).chain(columns.iter().skip(n_group + keys.len()));
        let shown: Vec<Expr> = shown.cloned().map(Expr::Column).collect();
        let carried: Vec<Column> = columns[n_group..n_group + keys.len()].to_vec();
        show(rows, shown, &schema, carried)
    }

    pub(super) fn window(&mut self, window: Window, domain: Option<&Domain>) -> DfResult<(LogicalPlan, Vec<Column>)> {
        let Window { input, window_expr, schema } = window;
        let own = input.schema().clone();
        let n_before = own.fields().len();
        let (rows, keys) = self.push(Arc::unwrap_or_clone(input), domain)?;
        let before: Vec<Column> = own.columns();
        let calls = window_expr.into_iter().map(|call| {
            let call = replaced(call, domain, &keys, rows.schema(), &own)?;
            let partitioned = call.transform_up(|mut part| {
                if let Expr::WindowFunction(call) = &mut part {
                    call.params.partition_by.extend(keys.iter().cloned().map(Expr::Column));
                    return Ok(Transformed::yes(part));
                }
                Ok(Transformed::no(part))
            })?;
            Ok(partitioned.data)
        });
        let calls = calls.collect::<DfResult<Vec<Expr>>>()?;
        let n_rows = rows.schema().fields().len();
        let rows = LogicalPlanBuilder::from(rows).window(calls)?.build()?;
        let values = rows.schema().columns().into_iter().skip(n_rows);
        let shown: Vec<Expr> = before.into_iter().chain(values).map(Expr::Column).collect();
        debug_assert!(shown.len() >= n_before, "a window keeps the columns below");
        show(rows, shown, &schema, keys)
    }

    pub(super) fn alias(
        &mut self,
        alias: SubqueryAlias,
        domain: Option<&Domain>,
    ) -> DfResult<(LogicalPlan, Vec<Column>)> {
        let (rows, keys) = self.push(Arc::unwrap_or_clone(alias.input), domain)?;
        let name = alias.alias;
        let rows = LogicalPlan::SubqueryAlias(SubqueryAlias::try_new(Arc::new(rows), name.clone())?);
        let keys = keys.into_iter().map(|key| Column::new(Some(name.clone()), key.name)).collect();
        Ok((rows, keys))
    }

    pub(super) fn sort(&mut self, sort: Sort, domain: Option<&Domain>) -> DfResult<(LogicalPlan, Vec<Column>)> {
        match sort.fetch {
            // (The order of a subquery's rows means nothing by itself.)
            None => self.push(Arc::unwrap_or_clone(sort.input), domain),
            Some(fetch) => {
                let limit = Limit {
                    skip: None,
                    fetch: Some(Box::new(lit(fetch as i64))),
                    input: Arc::new(LogicalPlan::Sort(Sort { fetch: None, ..sort })),
                };
                self.limit(limit, domain)
            }
        }
    }

    /// So many rows for each value of the domain: those of the first numbers.
    pub(super) fn limit(&mut self, limit: Limit, domain: Option<&Domain>) -> DfResult<(LogicalPlan, Vec<Column>)> {
        let (skip, fetch) = match (limit.get_skip_type()?, limit.get_fetch_type()?) {
            (SkipType::Literal(skip), FetchType::Literal(fetch)) => (skip, fetch),
            _ => return Err(refused("a LIMIT")),
        };
        // (The first rows of groups have the order of DISTINCT ON.)
        if let LogicalPlan::Distinct(first @ Distinct::On(_)) = limit.input.as_ref() {
            let first = distinct_on::replace(LogicalPlan::Distinct(first.clone()))?;
            return self.limit(Limit { input: Arc::new(first), ..limit }, domain);
        }
        // The order may stand below items that it does not show.
        if let LogicalPlan::Projection(projection) = limit.input.as_ref()
            && matches!(projection.input.as_ref(), LogicalPlan::Sort(_))
        {
            let below = Limit { input: projection.input.clone(), ..limit.clone() };
            let projection = Projection::try_new(projection.expr.clone(), Arc::new(LogicalPlan::Limit(below)))?;
            return self.projection(projection, domain);
        }
        let (order, input) = match Arc::unwrap_or_clone(limit.input) {
            LogicalPlan::Sort(Sort { expr, input, fetch: None }) => (expr, input),
            other => (vec![], Arc::new(other)),
        };
        let own = input.schema().clone();
        let (rows, keys) = self.push(Arc::unwrap_or_clone(input), domain)?;
        let order = order.into_iter().map(|mut sort| {
            sort.expr = replaced(sort.expr, domain, &keys, rows.schema(), &own)?;
            Ok(sort)
        });
        let order = order.collect::<DfResult<Vec<_>>>()?;
        let number = self.name("place");
        let Some(row_number) = FUNCTIONS.window.get("row_number").cloned() else {
            return Err(refused("a LIMIT"));
        };
        let first = WindowFrameBound::Preceding(ScalarValue::UInt64(None));
        let params = WindowFunctionParams {
            args: vec![],
            partition_by: keys.iter().cloned().map(Expr::Column).collect(),
            order_by: order,
            window_frame: WindowFrame::new_bounds(WindowFrameUnits::Rows, first, WindowFrameBound::CurrentRow),
            filter: None,
            null_treatment: None,
            distinct: false,
        };
        let call = Expr::from(WindowFunction { fun: WindowFunctionDefinition::WindowUDF(row_number), params });
        let shown: Vec<Expr> = rows.schema().columns().into_iter().map(Expr::Column).collect();
        let numbered = LogicalPlanBuilder::from(rows).window(vec![call.alias(&number)])?;
        let place = Expr::Column(Column::new_unqualified(&number));
        let beyond = (skip > 0).then(|| place.clone().gt(lit(skip as u64)));
        let within = fetch.map(|fetch| place.lt_eq(lit((skip + fetch) as u64)));
        let wanted = beyond.into_iter().chain(within).reduce(Expr::and).unwrap_or_else(|| lit(true));
        Ok((numbered.filter(wanted)?.project(shown)?.build()?, keys))
    }

    pub(super) fn union(&mut self, union: Union, domain: Option<&Domain>) -> DfResult<(LogicalPlan, Vec<Column>)> {
        let mut branches = Vec::with_capacity(union.inputs.len());
        let mut names: Vec<String> = Vec::new();
        for input in union.inputs {
            let columns = input.schema().columns();
            let (rows, keys) = self.push(Arc::unwrap_or_clone(input), domain)?;
            if names.is_empty() {
                names = keys.iter().map(|_| self.name("domain")).collect();
            }
            let keys = keys.into_iter().zip(&names).map(|(key, name)| Expr::Column(key).alias(name));
            let items: Vec<Expr> = columns.into_iter().map(Expr::Column).chain(keys).collect();
            branches.push(Arc::new(LogicalPlanBuilder::from(rows).project(items)?.build()?));
        }
        let rows = LogicalPlan::Union(Union::try_new_with_loose_types(branches)?);
        let n_keys = names.len();
        let columns = rows.schema().columns();
        let (shown, keys) = columns.split_at(columns.len() - n_keys);
        let shown: Vec<Expr> = shown.iter().cloned().map(Expr::Column).collect();
        show(rows, shown, &union.schema, keys.to_vec())
    }

    /// `VALUES` over outer columns: each row once for each value of the domain.
    pub(super) fn rows_written_out(
        &mut self,
        values: Values,
        domain: Option<&Domain>,
    ) -> DfResult<(LogicalPlan, Vec<Column>)> {
        let Some(domain) = domain else { return Err(refused("VALUES")) };
        let names: Vec<String> = domain.outer.iter().map(|_| self.name("domain")).collect();
        let mut branches = Vec::with_capacity(values.values.len());
        for row in values.values {
            let (rows, keys) = self.copy(domain)?;
            let cells = row.into_iter().zip(values.schema.iter()).map(|(cell, (table, field))| {
                let cell = replaced(cell, Some(domain), &keys, rows.schema(), &values.schema)?;
                if cell.exists(|part| Ok(subquery_of(part).is_some()))? {
                    return Err(refused("a subquery in VALUES"));
                }
                Ok(cast(cell, field.data_type().clone()).alias_qualified(table.cloned(), field.name()))
            });
            let mut items = cells.collect::<DfResult<Vec<Expr>>>()?;
            items.extend(keys.into_iter().zip(&names).map(|(key, name)| Expr::Column(key).alias(name)));
            branches.push(Arc::new(LogicalPlanBuilder::from(rows).project(items)?.build()?));
        }
        let rows = match branches.as_slice() {
            [only] => only.as_ref().clone(),
            _ => LogicalPlan::Union(Union::try_new_with_loose_types(branches)?),
        };
        let columns = rows.schema().columns();
        let (shown, keys) = columns.split_at(columns.len() - names.len());
        let shown: Vec<Expr> = shown.iter().cloned().map(Expr::Column).collect();
        show(rows, shown, &values.schema, keys.to_vec())
    }

    /// EXCEPT and INTERSECT: the value of the domain is one of the columns that are compared.
    pub(super) fn set_operation(
        &mut self,
        node: &Extension,
        domain: Option<&Domain>,
    ) -> DfResult<(LogicalPlan, Vec<Column>)> {
        let (Some(set), Some(domain)) = (set_node(node), domain) else { return Err(refused("a set operation")) };
        let names: Vec<String> = domain.outer.iter().map(|_| self.name("domain")).collect();
        let n_shown = set.left.schema().fields().len();
        let columns: Vec<String> = (0..n_shown).map(|_| self.name("compared")).collect();
        let mut side = |side: &LogicalPlan| {
            let own = side.schema().columns();
            let (rows, keys) = self.push(side.clone(), Some(domain))?;
            let own = own.into_iter().zip(&columns).map(|(column, name)| Expr::Column(column).alias(name));
            let keys = keys.into_iter().zip(&names).map(|(key, name)| Expr::Column(key).alias(name));
            let items: Vec<Expr> = own.chain(keys).collect();
            LogicalPlanBuilder::from(rows).project(items)?.build()
        };
        let compared = set.with_exprs_and_inputs(vec![], vec![side(&set.left)?, side(&set.right)?])?;
        let schema = set.schema().clone();
        let rows = LogicalPlan::Extension(Extension { node: Arc::new(compared) });
        let all = rows.schema().columns();
        let (shown, keys) = all.split_at(n_shown);
        let shown: Vec<Expr> = shown.iter().cloned().map(Expr::Column).collect();
        show(rows, shown, &schema, keys.to_vec())
    }

    pub(super) fn unnest_lists(
        &mut self,
        unnest: Unnest,
        domain: Option<&Domain>,
    ) -> DfResult<(LogicalPlan, Vec<Column>)> {
        let Unnest { input, exec_columns, options, schema, .. } = unnest;
        let (rows, keys) = self.push(Arc::unwrap_or_clone(input), domain)?;
        let rows = LogicalPlanBuilder::from(rows).unnest_columns_with_options(exec_columns, options)?.build()?;
        let n = schema.fields().len();
        let shown: Vec<Expr> = rows.schema().columns().into_iter().take(n).map(Expr::Column).collect();
        show(rows, shown, &schema, keys)
    }
}
