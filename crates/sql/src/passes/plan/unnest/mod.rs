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
//! push(D, loop)                     =  into each variable (`loops`)
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

pub(crate) mod beside;
mod free;
pub(crate) mod grouping_sets;
pub(crate) mod guards;
mod joins;
mod loops;
mod replaced;
mod rows;
pub(crate) mod shared;
mod told_keys;
mod values;

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{Field, FieldRef, SchemaRef};
use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_common::{Column, DFSchema, Result as DfResult};
use datafusion_expr::Expr;
use datafusion_expr::logical_plan::{Distinct, Extension, LogicalPlan, LogicalPlanBuilder};

use self::loops::{Widening, dependent, loop_of, widened};
use self::shared::SharedNode;
use crate::error::SqlError;
use crate::passes::plan::distinct_on;
use crate::passes::plan::recursion::LoopNode;
use crate::passes::plan::set_operations::SetNode;

pub(crate) use free::{columns_within, has_subqueries, has_subquery, is_lateral, is_nested, subquery_of};
use free::{free_of, n_nodes};
use replaced::Replaced;

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

fn refused(what: &str) -> datafusion_common::DataFusionError {
    let hint = "Join with the outer table inside of the subquery, and compare outside.";
    SqlError::unsupported(format!("{what} that depends on the outer query"), hint).into()
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
        match &plan {
            // (One row without columns, once for each value, is the values.)
            one if is_one_row(one) => return self.copy(domain),
            LogicalPlan::Projection(over) if is_one_row(&over.input) => return self.push_inside(plan, Some(domain)),
            _ => {}
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
}

fn is_one_row(plan: &LogicalPlan) -> bool {
    matches!(plan, LogicalPlan::EmptyRelation(empty) if empty.produce_one_row)
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
