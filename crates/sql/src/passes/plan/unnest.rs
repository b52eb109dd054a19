//! General unnesting: a plan without subqueries, from one with any.
//!
//! The *domain* of a subquery is the set of values that its outer columns have. The subquery's rows
//! are computed for each value of the domain, by one plan that carries the value in columns of its
//! own, and are joined back to the outer rows:
//!
//! ```text
//! dep(L, R)  =  L join push(D, R) on L.A is not distinct from D.A      D = select distinct A from L
//! push(D, R without outer columns)  =  D x R
//! push(D, filter or project)        =  the same, over push(D, input); the columns of D are carried
//! push(D, group by G)               =  group by G and D; without G: D left join push(D, input), group by D
//! push(D, limit)                    =  row_number() per D
//! push(D, window)                   =  the same, partitioned by D
//! push(D, join)                     =  into the sides that use D, and into each that is kept; both: D is equated
//! push(D, union)                    =  into each branch
//! push(D, except, intersect)        =  into each side; the value is compared as well
//! push(D, VALUES)                   =  D x each row
//! push(D, loop)                     =  into each variable (`unnest_loops`)
//! ```
//!
//! A scalar subquery becomes a column of a left join. EXISTS, IN, ANY and ALL become aggregates for
//! each value of the domain: for `x op ANY (q)` the domain has `x` too, and the aggregate tells
//! whether a comparison is true, and whether one is NULL. A subquery within a subquery is unnested
//! over the rows that it stands on; outer columns of further out stay until their own rows are
//! reached.
//!
//! Law: the plan means what it did, or planning fails. Cost: the rows of a subquery once for each
//! value of the domain, so the planner comes here only with plans that its other steps leave a
//! subquery in.
//!
//! Source: Neumann and Kemper, *Unnesting Arbitrary Queries*, BTW 2015, sections 3 and 4.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{Field, FieldRef, SchemaRef};
use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_common::{
    Column, DFSchema, DFSchemaRef, ExprSchema, JoinType, NullEquality, Result as DfResult, ScalarValue,
};
use datafusion_expr::expr::{Exists, InSubquery, SetComparison, SetQuantifier, WindowFunction, WindowFunctionParams};
use datafusion_expr::expr_rewriter::NamePreserver;
use datafusion_expr::logical_plan::{
    Aggregate, Distinct, Extension, FetchType, Filter, Join, Limit, LogicalPlan, LogicalPlanBuilder, Projection,
    SkipType, Sort, Subquery, SubqueryAlias, Union, Unnest, Values, Window,
};
use datafusion_expr::{
    BinaryExpr, Expr, Operator, UserDefinedLogicalNodeCore, WindowFrame, WindowFrameBound, WindowFrameUnits,
    WindowFunctionDefinition, cast, lit, when,
};

use crate::error::{ErrorKind, SqlError};
use crate::functions::table::FUNCTIONS;
use crate::passes::plan::decorrelate::only_present;
use crate::passes::plan::distinct_on;
use crate::passes::plan::recursion::LoopNode;
use crate::passes::plan::set_operations::SetNode;
use crate::passes::plan::shared::SharedNode;
use crate::passes::plan::unnest_loops::{Widening, dependent, loop_of, widened};

/// The largest plan, in nodes. A domain holds the rows outside, and stands in each join with the
/// subquery: so a plan may double with each level, and planning takes seconds beyond this.
const NODES_MAX: usize = 1000;

/// The same, where the rows outside are planned once. What is left grows in our own plan, which is
/// walked through faster.
const NODES_MAX_SHARED: usize = 20_000;

/// The column that is true for rows of a subquery, and NULL for a value of the domain without any.
const PRESENT: &str = "__present";

/// The plan without subqueries.
///
/// # Errors
/// `Unsupported` for what depends on outer columns and has no rule.
pub(crate) fn unnest(plan: LogicalPlan) -> DfResult<LogicalPlan> {
    let mut unnesting = Unnesting { n_names: 0, loops: vec![], settle: None };
    let (plan, _) = unnesting.push(plan, None)?;
    unnesting.small(plan)
}

/// The plan without subqueries, in which the rows outside of each are planned once, by `settle`.
///
/// # Errors
/// As [`unnest`].
pub(crate) fn unnest_shared(plan: LogicalPlan, settle: &Settle<'_>) -> DfResult<LogicalPlan> {
    // (Rows of a loop's variable mean something inside of the loop alone.)
    let has_loops = plan.exists(|node| Ok(is_loop(node)))?;
    let mut unnesting = Unnesting { n_names: 0, loops: vec![], settle: (!has_loops).then_some(settle) };
    let (plan, _) = unnesting.push(plan, None)?;
    unnesting.small(plan)
}

fn is_loop(node: &LogicalPlan) -> bool {
    matches!(node, LogicalPlan::Extension(extension) if extension.node.as_any().is::<LoopNode>())
}

/// The steps that a plan without subqueries goes through.
pub(crate) type Settle<'a> = dyn Fn(LogicalPlan) -> DfResult<LogicalPlan> + 'a;

impl Unnesting<'_> {
    /// The plan, if it is not too large.
    fn small(&self, plan: LogicalPlan) -> DfResult<LogicalPlan> {
        let most = if self.settle.is_some() { NODES_MAX_SHARED } else { NODES_MAX };
        match n_nodes(&plan, &mut HashMap::new()) > most {
            true => Err(refused("a subquery, nested in others to this depth,")),
            false => Ok(plan),
        }
    }

    /// The rows as a leaf, where parts are planned once and these depend on nothing outside.
    fn shared(&mut self, rows: LogicalPlan) -> DfResult<LogicalPlan> {
        let Some(settle) = self.settle else { return Ok(rows) };
        let n_nodes = n_nodes(&rows, &mut HashMap::new());
        if n_nodes <= 2 || !self.loops.is_empty() || !free_of(&rows)?.is_empty() {
            return Ok(rows);
        }
        let settled = settle(rows.clone())?;
        if settled.schema().columns() != rows.schema().columns() {
            return Ok(rows);
        }
        self.n_names += 1;
        Ok(SharedNode { number: self.n_names, plan: Arc::new(settled), n_nodes }.leaf())
    }
}

/// Nodes of a plan, each as often as it stands in it. (Parts that are one in memory are counted
/// once: the number can be exponential in the depth.)
fn n_nodes(plan: &LogicalPlan, known: &mut HashMap<*const LogicalPlan, usize>) -> usize {
    if let Some(n) = known.get(&std::ptr::from_ref(plan)) {
        return *n;
    }
    if let Some(shared) = SharedNode::of(plan) {
        return shared.n_nodes;
    }
    let below = plan.inputs().into_iter().map(|input| n_nodes(input, known));
    let n = below.fold(1, usize::saturating_add);
    known.insert(std::ptr::from_ref(plan), n);
    n
}

/// Whether a subquery that depends on outer columns is left in a plan.
pub(crate) fn is_nested(plan: &LogicalPlan) -> bool {
    plan.exists(|node| {
        let mut found = matches!(node, LogicalPlan::Subquery(_));
        for expr in node.expressions() {
            found |= expr.exists(|part| {
                Ok(matches!(
                    part,
                    Expr::Exists(_) | Expr::InSubquery(_) | Expr::SetComparison(_) | Expr::OuterReferenceColumn(..)
                ) || matches!(part, Expr::ScalarSubquery(subquery) if !subquery.outer_ref_columns.is_empty()))
            })?;
        }
        Ok(found)
    })
    .unwrap_or(true)
}

/// Whether an entry of FROM depends on those before. (Subqueries in expressions are none.)
pub(crate) fn is_lateral(plan: &LogicalPlan) -> bool {
    plan.exists(|node| {
        let mut found = matches!(node, LogicalPlan::Subquery(subquery) if !subquery.outer_ref_columns.is_empty());
        for expr in node.expressions() {
            found |= expr.exists(|part| Ok(subquery_of(part).is_some_and(|inner| is_lateral(&inner.subquery))))?;
        }
        Ok(found)
    })
    .unwrap_or(true)
}

/// Whether a plan has a subquery of any kind.
pub(crate) fn has_subqueries(plan: &LogicalPlan) -> bool {
    plan.exists(|node| {
        let mut found = matches!(node, LogicalPlan::Subquery(_));
        for expr in node.expressions() {
            found |= expr.exists(|part| Ok(subquery_of(part).is_some()))?;
        }
        Ok(found)
    })
    .unwrap_or(true)
}

/// The values of outer columns.
#[derive(Clone)]
struct Domain {
    /// The outer columns, as subqueries refer to them.
    outer: Vec<Column>,
    /// Distinct values, one column each.
    rows: LogicalPlan,
}

/// Names for what no user names.
struct Unnesting<'a> {
    n_names: usize,
    /// The loops around what is being unnested that carry a domain.
    loops: Vec<Widening>,
    /// How rows outside of subqueries are planned, if they are planned once.
    settle: Option<&'a Settle<'a>>,
}

fn subquery_of(expr: &Expr) -> Option<&Subquery> {
    match expr {
        Expr::ScalarSubquery(subquery)
        | Expr::Exists(Exists { subquery, .. })
        | Expr::InSubquery(InSubquery { subquery, .. })
        | Expr::SetComparison(SetComparison { subquery, .. }) => Some(subquery),
        _ => None,
    }
}

fn has_subquery(expr: &Expr) -> bool {
    expr.exists(|part| Ok(subquery_of(part).is_some())).unwrap_or(true)
}

fn refused(what: &str) -> datafusion_common::DataFusionError {
    let hint = "Join with the outer table inside of the subquery, and compare outside.";
    SqlError::unsupported(format!("{what} that depends on the outer query"), hint).into()
}

/// Outer columns that a plan refers to from outside of it.
fn free_of(plan: &LogicalPlan) -> DfResult<Vec<Column>> {
    let mut free = Vec::new();
    collect_free(plan, &mut free)?;
    Ok(free)
}

fn collect_free(plan: &LogicalPlan, free: &mut Vec<Column>) -> DfResult<()> {
    let add = |column: Column, free: &mut Vec<Column>| {
        if !free.contains(&column) {
            free.push(column);
        }
    };
    let inputs = plan.inputs();
    for (at, input) in inputs.iter().enumerate() {
        let mut below = Vec::new();
        collect_free(input, &mut below)?;
        // The right side of a join may name columns of the left.
        let left = inputs.first().filter(|_| at == 1 && matches!(plan, LogicalPlan::Join(_)));
        let bound = |column: &Column| left.is_some_and(|left| left.schema().has_column(column));
        below.into_iter().filter(|column| !bound(column)).for_each(|column| add(column, free));
    }
    if let LogicalPlan::Subquery(subquery) = plan {
        collect_free(&subquery.subquery, free)?;
    }
    for expr in plan.expressions() {
        expr.apply(|part| {
            if let Expr::OuterReferenceColumn(_, column) = part {
                add(column.clone(), free);
            }
            if let Some(subquery) = subquery_of(part) {
                let mut below = Vec::new();
                collect_free(&subquery.subquery, &mut below)?;
                let bound = |column: &Column| inputs.iter().any(|input| input.schema().has_column(column));
                below.into_iter().filter(|column| !bound(column)).for_each(|column| add(column, free));
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
    }
    Ok(())
}

/// What outer columns are replaced by: columns of the rows at hand.
struct Replaced<'a> {
    outer: &'a [Column],
    keys: &'a [Column],
    schema: &'a DFSchema,
}

impl Replaced<'_> {
    fn key(&self, column: &Column) -> Option<&Column> {
        self.outer.iter().position(|outer| outer == column).map(|at| &self.keys[at])
    }

    /// An expression over the rows at hand; within its subqueries the keys are outer columns. `own`
    /// has the columns of the rows that the expression stood on, which hide others of their names.
    fn in_expr(&self, expr: Expr, own: &DFSchema) -> DfResult<Expr> {
        let replaced = expr.transform_up(|part| match part {
            Expr::OuterReferenceColumn(field, column) => match self.key(&column) {
                Some(key) => Ok(Transformed::yes(Expr::Column(key.clone()))),
                None => Ok(Transformed::no(Expr::OuterReferenceColumn(field, column))),
            },
            Expr::ScalarSubquery(subquery) => {
                Ok(Transformed::yes(Expr::ScalarSubquery(self.in_subquery(subquery, own)?)))
            }
            Expr::Exists(Exists { subquery, negated }) => {
                Ok(Transformed::yes(Expr::Exists(Exists { subquery: self.in_subquery(subquery, own)?, negated })))
            }
            Expr::InSubquery(test) => {
                let subquery = self.in_subquery(test.subquery, own)?;
                Ok(Transformed::yes(Expr::InSubquery(InSubquery { subquery, ..test })))
            }
            Expr::SetComparison(test) => {
                let subquery = self.in_subquery(test.subquery, own)?;
                Ok(Transformed::yes(Expr::SetComparison(SetComparison { subquery, ..test })))
            }
            other => Ok(Transformed::no(other)),
        })?;
        Ok(replaced.data)
    }

    fn in_subquery(&self, subquery: Subquery, own: &DFSchema) -> DfResult<Subquery> {
        let plan = self.in_nested(Arc::unwrap_or_clone(subquery.subquery), own)?;
        let mut outer_ref_columns = Vec::new();
        for column in free_of(&plan)? {
            let field = self.schema.field_from_column(&column).or_else(|_| own.field_from_column(&column));
            if let Ok(field) = field {
                outer_ref_columns.push(Expr::OuterReferenceColumn(field.clone(), column));
            }
        }
        Ok(Subquery { subquery: Arc::new(plan), outer_ref_columns, spans: subquery.spans })
    }

    /// A plan within a subquery: the keys are outer columns of it.
    fn in_nested(&self, plan: LogicalPlan, own: &DFSchema) -> DfResult<LogicalPlan> {
        let replaced = plan.transform_down_with_subqueries(|node| {
            let names = NamePreserver::new(&node);
            node.map_expressions(|expr| {
                let name = names.save(&expr);
                let replaced = expr.transform_up(|part| match &part {
                    Expr::OuterReferenceColumn(_, column) if !own.has_column(column) => match self.key(column) {
                        Some(key) => {
                            let field = self.schema.field_from_column(key)?.clone();
                            Ok(Transformed::yes(Expr::OuterReferenceColumn(field, key.clone())))
                        }
                        None => Ok(Transformed::no(part)),
                    },
                    _ => Ok(Transformed::no(part)),
                })?;
                Ok(replaced.update_data(|expr| name.restore(expr)))
            })
        })?;
        Ok(replaced.data)
    }
}

impl Unnesting<'_> {
    fn name(&mut self, what: &str) -> String {
        self.n_names += 1;
        format!("__{what}_{}", self.n_names)
    }

    /// The rows of a plan for each value of a domain, and the columns that carry the value. Without
    /// a domain: the rows.
    fn push(&mut self, plan: LogicalPlan, domain: Option<&Domain>) -> DfResult<(LogicalPlan, Vec<Column>)> {
        let Some(domain) = domain else { return Ok((self.push_inside(plan, None)?.0, vec![])) };
        let free = free_of(&plan)?;
        if free.iter().any(|column| domain.outer.contains(column)) {
            return self.push_inside(plan, Some(domain));
        }
        let (rows, _) = self.push(plan, None)?;
        let (values, keys) = self.copy(domain)?;
        Ok((LogicalPlanBuilder::from(rows).cross_join(values)?.build()?, keys))
    }

    /// A domain's values under names of their own.
    fn copy(&mut self, domain: &Domain) -> DfResult<(LogicalPlan, Vec<Column>)> {
        let fields = domain.rows.schema().columns();
        let names: Vec<String> = fields.iter().map(|_| self.name("domain")).collect();
        let items = fields.into_iter().zip(&names).map(|(column, name)| Expr::Column(column).alias(name));
        let rows = LogicalPlanBuilder::from(domain.rows.clone()).project(items.collect::<Vec<_>>())?.build()?;
        Ok((rows, names.into_iter().map(Column::new_unqualified).collect()))
    }

    fn push_inside(&mut self, plan: LogicalPlan, domain: Option<&Domain>) -> DfResult<(LogicalPlan, Vec<Column>)> {
        match plan {
            LogicalPlan::Filter(filter) => self.filter(filter, domain),
            LogicalPlan::Projection(projection) => self.projection(projection, domain),
            LogicalPlan::Aggregate(aggregate) => self.aggregate(aggregate, domain),
            LogicalPlan::Window(window) => self.window(window, domain),
            LogicalPlan::Join(join) => self.join(join, domain),
            LogicalPlan::SubqueryAlias(alias) => self.alias(alias, domain),
            LogicalPlan::Subquery(subquery) => self.push(Arc::unwrap_or_clone(subquery.subquery), domain),
            LogicalPlan::Limit(limit) if domain.is_some() => self.limit(limit, domain),
            LogicalPlan::Sort(sort) if domain.is_some() => self.sort(sort, domain),
            LogicalPlan::Distinct(Distinct::All(input)) => {
                let (rows, keys) = self.push(Arc::unwrap_or_clone(input), domain)?;
                Ok((LogicalPlanBuilder::from(rows).distinct()?.build()?, keys))
            }
            LogicalPlan::Union(union) => self.union(union, domain),
            LogicalPlan::Distinct(Distinct::On(on)) if domain.is_some() => {
                let first = distinct_on::replace(LogicalPlan::Distinct(Distinct::On(on)))?;
                self.push(first, domain)
            }
            LogicalPlan::Values(values) if domain.is_some() => self.rows_written_out(values, domain),
            LogicalPlan::Extension(node) if domain.is_some() && set_node(&node).is_some() => {
                self.set_operation(&node, domain)
            }
            LogicalPlan::Unnest(unnest) => self.unnest_lists(unnest, domain),
            other => match (loop_of(&other), domain) {
                (Some(node), Some(domain)) => self.recursion(node, domain),
                _ => self.other(other, domain),
            },
        }
    }

    fn other(&mut self, plan: LogicalPlan, domain: Option<&Domain>) -> DfResult<(LogicalPlan, Vec<Column>)> {
        match plan {
            other if domain.is_some() => Err(refused(&format!("{} in a subquery", kind(&other)))),
            other => self.elsewhere(other),
        }
    }

    /// A node that has no rule of its own: only its inputs are unnested.
    fn elsewhere(&mut self, plan: LogicalPlan) -> DfResult<(LogicalPlan, Vec<Column>)> {
        let mut nested = false;
        plan.apply_expressions(|expr| {
            nested |= expr.exists(|part| Ok(subquery_of(part).is_some()))?;
            Ok(TreeNodeRecursion::Continue)
        })?;
        if nested {
            return Err(refused(&format!("a subquery in {}", kind(&plan))));
        }
        let changed = plan.map_children(|input| Ok(Transformed::yes(self.push(input, None)?.0)))?;
        Ok((changed.data.recompute_schema()?, vec![]))
    }

    /// A loop, whose variables carry the values of the domain.
    fn recursion(&mut self, node: &LoopNode, domain: &Domain) -> DfResult<(LogicalPlan, Vec<Column>)> {
        let fields = domain.rows.schema().fields().iter();
        let keys: Vec<FieldRef> =
            fields.map(|field| Arc::new(Field::new(self.name("domain"), field.data_type().clone(), true))).collect();
        let renamed: Vec<Column> = keys.iter().map(|_| Column::new_unqualified(self.name("outer"))).collect();
        let mut is_free = Vec::with_capacity(node.inputs.len());
        for input in &node.inputs {
            is_free.push(free_of(input)?.iter().any(|column| domain.outer.contains(column)));
        }
        let dependent = dependent(node, &is_free)?;
        let schemas = node.schemas.iter().zip(&dependent).map(|(schema, dependent)| match dependent {
            true => widened(schema, &keys),
            false => schema.clone(),
        });
        let schemas: Vec<SchemaRef> = schemas.collect();
        let of_variables = node.variables.iter().cloned().zip(schemas.iter().cloned()).zip(&dependent);
        let variables = of_variables.filter(|(_, dependent)| **dependent).map(|(variable, _)| variable).collect();
        let widening =
            Widening { outer: domain.outer.clone(), renamed: renamed.clone(), keys: keys.clone(), variables };
        let domain = Domain { outer: renamed, rows: domain.rows.clone() };
        let plans = node.inputs.iter().map(|input| widening.apply(input.clone())).collect::<DfResult<Vec<_>>>()?;
        self.loops.push(widening);
        let mut inputs = Vec::with_capacity(plans.len());
        for (at, plan) in plans.into_iter().enumerate() {
            // (Both terms of a query are of its one variable.)
            if !dependent.get(at).is_none_or(|dependent| *dependent) {
                inputs.push(self.push(plan, None)?.0);
                continue;
            }
            let own = plan.schema().columns();
            let (rows, carried) = self.push(plan, Some(&domain))?;
            let carried = carried.into_iter().zip(&keys).map(|(key, field)| Expr::Column(key).alias(field.name()));
            let items: Vec<Expr> = own.into_iter().map(Expr::Column).chain(carried).collect();
            inputs.push(LogicalPlanBuilder::from(rows).project(items)?.build()?);
        }
        self.loops.pop();
        let node = node.of(schemas, inputs)?;
        let keys = keys.iter().map(|field| Column::new_unqualified(field.name())).collect();
        Ok((LogicalPlan::Extension(Extension { node: Arc::new(node) }), keys))
    }

    fn filter(&mut self, filter: Filter, domain: Option<&Domain>) -> DfResult<(LogicalPlan, Vec<Column>)> {
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
        let (rows, mut predicates) = self.over(rows, vec![predicate])?;
        let is_widened = rows.schema().fields().len() > before.len();
        let predicate = predicates.pop().unwrap_or_else(|| lit(true));
        let filtered = LogicalPlan::Filter(Filter::try_new(predicate, Arc::new(rows))?);
        let rows = match is_widened {
            true => LogicalPlanBuilder::from(filtered).project(before.into_iter().map(Expr::Column))?.build()?,
            false => filtered,
        };
        Ok((rows, keys))
    }

    fn projection(&mut self, projection: Projection, domain: Option<&Domain>) -> DfResult<(LogicalPlan, Vec<Column>)> {
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

    fn aggregate(&mut self, aggregate: Aggregate, domain: Option<&Domain>) -> DfResult<(LogicalPlan, Vec<Column>)> {
        let Aggregate { input, group_expr, aggr_expr, schema, .. } = aggregate;
        if group_expr.iter().any(|group| matches!(group, Expr::GroupingSet(_))) && domain.is_some() {
            return Err(refused("GROUPING SETS in a subquery"));
        }
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

    fn window(&mut self, window: Window, domain: Option<&Domain>) -> DfResult<(LogicalPlan, Vec<Column>)> {
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

    fn alias(&mut self, alias: SubqueryAlias, domain: Option<&Domain>) -> DfResult<(LogicalPlan, Vec<Column>)> {
        let (rows, keys) = self.push(Arc::unwrap_or_clone(alias.input), domain)?;
        let name = alias.alias;
        let rows = LogicalPlan::SubqueryAlias(SubqueryAlias::try_new(Arc::new(rows), name.clone())?);
        let keys = keys.into_iter().map(|key| Column::new(Some(name.clone()), key.name)).collect();
        Ok((rows, keys))
    }

    fn sort(&mut self, sort: Sort, domain: Option<&Domain>) -> DfResult<(LogicalPlan, Vec<Column>)> {
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
    fn limit(&mut self, limit: Limit, domain: Option<&Domain>) -> DfResult<(LogicalPlan, Vec<Column>)> {
        let (skip, fetch) = match (limit.get_skip_type()?, limit.get_fetch_type()?) {
            (SkipType::Literal(skip), FetchType::Literal(fetch)) => (skip, fetch),
            _ => return Err(refused("a LIMIT")),
        };
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

    fn union(&mut self, union: Union, domain: Option<&Domain>) -> DfResult<(LogicalPlan, Vec<Column>)> {
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
    fn rows_written_out(&mut self, values: Values, domain: Option<&Domain>) -> DfResult<(LogicalPlan, Vec<Column>)> {
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
    fn set_operation(&mut self, node: &Extension, domain: Option<&Domain>) -> DfResult<(LogicalPlan, Vec<Column>)> {
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

    fn unnest_lists(&mut self, unnest: Unnest, domain: Option<&Domain>) -> DfResult<(LogicalPlan, Vec<Column>)> {
        let Unnest { input, exec_columns, options, schema, .. } = unnest;
        let (rows, keys) = self.push(Arc::unwrap_or_clone(input), domain)?;
        let rows = LogicalPlanBuilder::from(rows).unnest_columns_with_options(exec_columns, options)?.build()?;
        let n = schema.fields().len();
        let shown: Vec<Expr> = rows.schema().columns().into_iter().take(n).map(Expr::Column).collect();
        show(rows, shown, &schema, keys)
    }

    fn join(&mut self, join: Join, domain: Option<&Domain>) -> DfResult<(LogicalPlan, Vec<Column>)> {
        let Join { left, right, on, filter, join_type, schema, .. } = join;
        let (left, right) = (Arc::unwrap_or_clone(left), Arc::unwrap_or_clone(right));
        let own = (*left.schema()).as_ref().join(right.schema())?;
        let condition = on.into_iter().map(|(l, r)| l.eq(r)).chain(filter).reduce(Expr::and);
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
    fn lateral(
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
        let inner = self.domain_of(&left, &outer)?;
        let (right, right_keys) = self.push(right, Some(&inner))?;
        let joined_schema = (*left.schema()).as_ref().join(right.schema())?;
        let condition =
            condition.map(|condition| replaced(condition, domain, &keys, &joined_schema, &own)).transpose()?;
        let joined = LogicalPlanBuilder::from(left)
            .join_detailed(right, join_type, (outer, right_keys), condition, NullEquality::NullEqualsNull)?
            .build()?;
        show(joined, shown, &shown_schema, keys)
    }

    /// The distinct values of some columns.
    fn domain_of(&mut self, rows: &LogicalPlan, outer: &[Column]) -> DfResult<Domain> {
        let items: Vec<Expr> = outer
            .iter()
            .map(|column| {
                let name = self.name("domain");
                Expr::Column(column.clone()).alias(name)
            })
            .collect();
        let values = LogicalPlanBuilder::from(rows.clone()).project(items)?.distinct()?.build()?;
        Ok(Domain { outer: outer.to_vec(), rows: values })
    }

    /// Expressions over rows, with columns in place of their subqueries.
    fn over(&mut self, rows: LogicalPlan, exprs: Vec<Expr>) -> DfResult<(LogicalPlan, Vec<Expr>)> {
        let mut rows = match exprs.iter().any(has_subquery) {
            true => self.shared(rows)?,
            false => rows,
        };
        let base = rows.clone();
        let mut out = Vec::with_capacity(exprs.len());
        for expr in exprs {
            let changed = expr.transform_up(|part| {
                if subquery_of(&part).is_none() {
                    return Ok(Transformed::no(part));
                }
                let (joined, value) = self.with_value(rows.clone(), &base, part)?;
                rows = self.small(joined)?;
                Ok(Transformed::yes(value))
            })?;
            out.push(changed.data);
        }
        Ok((rows, out))
    }

    /// Rows with the value of a subquery, and the expression that stands for it. `base` has the
    /// rows without the values of other subqueries, which are joined to the left and so leave each
    /// row: the domain is taken of it, or it would double with each subquery.
    fn with_value(&mut self, rows: LogicalPlan, base: &LogicalPlan, expr: Expr) -> DfResult<(LogicalPlan, Expr)> {
        match expr {
            Expr::ScalarSubquery(subquery) => {
                let (joined, value, _) =
                    self.joined(rows, base, &[], subquery, |_, values| Ok(values[..1].to_vec()))?;
                Ok((joined, value))
            }
            Expr::Exists(Exists { subquery, negated }) => {
                let (joined, found, _) = self.joined(rows, base, &[], subquery, |_, _| Ok(vec![]))?;
                Ok((joined, if negated { found.is_not_true() } else { found.is_true() }))
            }
            Expr::InSubquery(InSubquery { expr, subquery, negated }) => {
                let (joined, value) = self.compared(rows, base, *expr, subquery, Operator::Eq, SetQuantifier::Any)?;
                Ok((joined, if negated { Expr::Not(Box::new(value)) } else { value }))
            }
            Expr::SetComparison(SetComparison { expr, subquery, op, quantifier }) => {
                self.compared(rows, base, *expr, subquery, op, quantifier)
            }
            other => Ok((rows, other)),
        }
    }

    /// `x op ANY (q)` and `x op ALL (q)`.
    fn compared(
        &mut self,
        rows: LogicalPlan,
        base: &LogicalPlan,
        x: Expr,
        subquery: Subquery,
        op: Operator,
        quantifier: SetQuantifier,
    ) -> DfResult<(LogicalPlan, Expr)> {
        let parts = match x {
            // (A row of several values.)
            Expr::ScalarFunction(row) if row.func.name() == "struct" => row.args,
            x => vec![x],
        };
        if parts.len() != subquery.subquery.schema().fields().len() {
            return Err(
                SqlError::new(ErrorKind::Invalid, "the subquery has another number of columns than the row").into()
            );
        }
        if parts.len() > 1 && !matches!(op, Operator::Eq | Operator::NotEq) {
            return Err(refused("an ordered comparison of rows"));
        }
        let names: Vec<Column> = parts.iter().map(|_| Column::new_unqualified(self.name("compared"))).collect();
        let with_parts = |plan: LogicalPlan| {
            let mut items: Vec<Expr> = plan.schema().columns().into_iter().map(Expr::Column).collect();
            items.extend(parts.iter().cloned().zip(&names).map(|(part, name)| part.alias(&name.name)));
            LogicalPlanBuilder::from(plan).project(items)?.build()
        };
        let is_of_base =
            parts.iter().all(|part| part.column_refs().into_iter().all(|column| base.schema().has_column(column)));
        let base = if is_of_base { with_parts(base.clone())? } else { rows.clone() };
        let rows = with_parts(rows)?;
        let decides = quantifier == SetQuantifier::Any;
        let n_parts = names.len();
        let (joined, decided, unknown) = self.joined(rows, &base, &names, subquery, |keys, values| {
            let compared = keys[keys.len() - n_parts..].iter().cloned().map(Expr::Column);
            let each = compared.zip(values.iter().cloned());
            let each = each.map(|(x, y)| Expr::BinaryExpr(BinaryExpr::new(Box::new(x), op, Box::new(y))));
            let both = if op == Operator::NotEq { Expr::or } else { Expr::and };
            let comparison = each.reduce(both).unwrap_or_else(|| lit(true));
            let decided = if decides { comparison.clone().is_true() } else { comparison.clone().is_false() };
            Ok(vec![decided, comparison.is_unknown()])
        })?;
        let unknown = unknown.unwrap_or_else(|| lit(false));
        let null = lit(ScalarValue::Boolean(None));
        let value = when(decided.is_true(), lit(decides)).when(unknown.is_true(), null).otherwise(lit(!decides))?;
        Ok((joined, value))
    }

    /// Rows joined with a subquery's answers. `tests` gives, for a row of the subquery with its
    /// value, what is asked of it: nothing asks whether there is a row; the value itself is taken;
    /// of several tests it is told whether any row passes.
    fn joined(
        &mut self,
        rows: LogicalPlan,
        base: &LogicalPlan,
        further: &[Column],
        subquery: Subquery,
        tests: impl FnOnce(&[Column], &[Expr]) -> DfResult<Vec<Expr>>,
    ) -> DfResult<(LogicalPlan, Expr, Option<Expr>)> {
        let plan = Arc::unwrap_or_clone(subquery.subquery);
        let free = free_of(&plan)?;
        let outer: Vec<Column> = free.into_iter().filter(|column| rows.schema().has_column(column)).collect();
        let outer: Vec<Column> = outer.into_iter().chain(further.iter().cloned()).collect();
        let is_dependent = !outer.is_empty();
        let is_of_base = outer.iter().all(|column| base.schema().has_column(column));
        let domain = is_dependent.then(|| self.domain_of(if is_of_base { base } else { &rows }, &outer)).transpose()?;
        let own = plan.schema().columns();
        let (answers, keys) = match &domain {
            // (The value that is compared is in no plan, but each row is compared with it.)
            Some(domain) => self.push(plan, Some(domain))?,
            None => self.push(plan, None)?,
        };
        let value = |(at, column): (usize, Column)| match answers.schema().has_column(&column) {
            true => Expr::Column(column),
            false => Expr::Column(Column::from(answers.schema().qualified_field(at))),
        };
        let values: Vec<Expr> = own.into_iter().enumerate().map(value).collect();
        let asked = tests(&keys, &values)?;
        let (marks, answers) = self.answers(answers, &keys, values.first(), asked)?;
        let table = self.name("answers");
        let answers = LogicalPlanBuilder::from(answers).alias(table.as_str())?.build()?;
        let column = |name: &String| Column::new(Some(table.clone()), name.clone());
        let joined = match is_dependent {
            true => {
                let keys: Vec<Column> = keys.iter().map(|key| column(&key.name)).collect();
                LogicalPlanBuilder::from(rows)
                    .join_detailed(answers, JoinType::Left, (outer, keys), None, NullEquality::NullEqualsNull)?
                    .build()?
            }
            false => LogicalPlanBuilder::from(rows).join_on(answers, JoinType::Left, vec![lit(true)])?.build()?,
        };
        let mut marks = marks.iter().map(|mark| Expr::Column(column(mark)));
        let first = marks.next().unwrap_or_else(|| lit(true));
        Ok((joined, first, marks.next()))
    }

    /// One row of answers for each value of the domain, and the names of what is asked.
    fn answers(
        &mut self,
        rows: LogicalPlan,
        keys: &[Column],
        value: Option<&Expr>,
        asked: Vec<Expr>,
    ) -> DfResult<(Vec<String>, LogicalPlan)> {
        let keys = || keys.iter().map(|key| Expr::Column(key.clone()).alias(&key.name));
        if asked.is_empty() {
            let mark = self.name("found");
            let found = LogicalPlanBuilder::from(rows).project(keys().chain([lit(true).alias(&mark)]))?.distinct()?;
            return Ok((vec![mark], found.build()?));
        }
        if let [asked] = asked.as_slice()
            && Some(asked) == value
        {
            let mark = self.name("value");
            let values = LogicalPlanBuilder::from(rows).project(keys().chain([asked.clone().alias(&mark)]))?;
            return Ok((vec![mark], values.build()?));
        }
        let marks: Vec<String> = asked.iter().map(|_| self.name("test")).collect();
        let items = asked.into_iter().zip(&marks).map(|(test, mark)| test.alias(mark));
        let rows = LogicalPlanBuilder::from(rows).project(keys().chain(items))?.build()?;
        let Some(any) = FUNCTIONS.aggregate.get("bool_or").cloned() else { return Err(refused("a comparison")) };
        let plain = |name: &String| Expr::Column(Column::new_unqualified(name));
        let group: Vec<Expr> =
            keys().map(|key| Expr::Column(Column::new_unqualified(key.schema_name().to_string()))).collect();
        let totals: Vec<String> = marks.iter().map(|_| self.name("any")).collect();
        let calls: Vec<Expr> =
            marks.iter().zip(&totals).map(|(mark, total)| any.call(vec![plain(mark)]).alias(total)).collect();
        let rows = LogicalPlanBuilder::from(rows).aggregate(group, calls)?.build()?;
        Ok((totals, rows))
    }
}

/// An expression with columns in place of those of a domain.
fn replaced(expr: Expr, domain: Option<&Domain>, keys: &[Column], schema: &DFSchema, own: &DFSchema) -> DfResult<Expr> {
    match domain {
        Some(domain) => Replaced { outer: &domain.outer, keys, schema }.in_expr(expr, own),
        None => Ok(expr),
    }
}

/// Items under the names of a schema.
fn named_as(items: Vec<Expr>, schema: &DFSchema) -> impl Iterator<Item = Expr> {
    let names: Vec<_> = schema.iter().map(|(table, field)| (table.cloned(), field.name().clone())).collect();
    items.into_iter().zip(names).map(|(item, (table, name))| match &item {
        Expr::Column(column) if column.relation == table && column.name == name => item,
        _ => item.unalias().alias_qualified(table, name),
    })
}

/// Rows as the columns of a schema, and the columns that carry a value.
fn show(
    rows: LogicalPlan,
    shown: Vec<Expr>,
    schema: &DFSchema,
    keys: Vec<Column>,
) -> DfResult<(LogicalPlan, Vec<Column>)> {
    let items: Vec<Expr> = named_as(shown, schema).chain(keys.iter().cloned().map(Expr::Column)).collect();
    Ok((LogicalPlanBuilder::from(rows).project(items)?.build()?, keys))
}

fn set_node(node: &Extension) -> Option<&SetNode> {
    node.node.as_any().downcast_ref::<SetNode>()
}

/// What a node is, in words.
fn kind(plan: &LogicalPlan) -> &'static str {
    match plan {
        LogicalPlan::Values(_) => "VALUES",
        LogicalPlan::Extension(_) => "EXCEPT, INTERSECT or another operation",
        LogicalPlan::Distinct(_) => "DISTINCT ON",
        LogicalPlan::RecursiveQuery(_) => "a recursive query",
        LogicalPlan::Sort(_) => "ORDER BY",
        LogicalPlan::Limit(_) => "LIMIT",
        _ => "an operation",
    }
}
