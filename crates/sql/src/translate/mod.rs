//! DataFusion's optimised plan to ours.
//!
//! A translated node has exactly the columns of its origin, in order; columns are resolved by
//! position, so qualifiers and aliases end here and equal parts of different queries become equal
//! plans. Column types become the ones that batches carry (`types::canonical`); an expression that
//! was typed on another type sees it through a cast.
//!
//! Reading order: this file (the walk, order and limit), `schema`, `expr`, `stage` (fusion), then
//! one file for each family of nodes: `join`, `asof`, `aggregate`, `window` (with `ranks` and
//! `frames`), `session`, `recognize`, `recursion`, `rows`.

mod aggregate;
mod asof;
mod exclude;
pub(crate) mod expr;
mod frames;
mod grouping_sets;
mod join;
mod known_values;
mod one_row;
mod ranks;
mod recognize;
pub(crate) mod recursion;
mod rows;
pub(crate) mod schema;
mod session;
pub(crate) mod stage;
mod window;
mod window_parts;

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use anabranch_plan::{Node, Plan, RankedBy, RoundLimit, SetOperation, SortKey, TopK};
use arrow::datatypes::Schema;
use datafusion_common::{DFSchema, Result as DfResult};
use datafusion_expr::logical_plan::{Distinct, FetchType, Limit, LogicalPlan, SkipType, Sort};
use datafusion_expr::{Expr, cast};

use crate::error::{ErrorKind, Result, SqlError};
use crate::passes::plan::asof::AsofNode;
use crate::passes::plan::recognize::RecognizeNode;
use crate::passes::plan::recursion::{LoopNode, recurs_over_outer, recursion_over_outer};
use crate::passes::plan::session::SessionNode;
use crate::passes::plan::set_operations::SetNode;
use crate::passes::plan::unnest::shared::SharedNode;
use crate::planned::{Finish, Planned};
use expr::{conjuncts, resolve, resolve_key};
use stage::stage;

/// A plan, the order its rows are in, and how many of its columns are visible.
struct Ordered {
    plan: Arc<Plan>,
    order: Vec<SortKey>,
    visible: usize,
}

/// Translates plans.
pub(crate) struct Translator {
    /// The names of the variables of the loops around what is translated, the innermost last.
    loops: RefCell<Vec<Vec<String>>>,
    /// Plans of the rows that stand in several places, by their numbers.
    shared: RefCell<HashMap<usize, Arc<Plan>>>,
    /// What ends loops that say nothing of it.
    round_limit: RoundLimit,
}

impl Translator {
    /// A translator of plans whose loops have this limit, unless they say another.
    pub(crate) fn new(round_limit: RoundLimit) -> Self {
        Self { loops: RefCell::default(), shared: RefCell::default(), round_limit }
    }

    /// A query whose top order and limit are left to its reader.
    pub(crate) fn query(&self, plan: &LogicalPlan) -> Result<Planned> {
        let (offset, limit, input) = match plan {
            LogicalPlan::Limit(top) => {
                let (offset, limit) = bounds(top)?;
                (offset, limit, top.input.as_ref())
            }
            other => (0, None, other),
        };
        let Ordered { plan, order, visible } = self.ordered(input)?;
        Ok(Planned { plan, visible, finish: Finish { order, offset, limit }, forms: vec![], enums: vec![] })
    }

    /// A query to be kept current.
    pub(crate) fn view(&self, plan: &LogicalPlan) -> Result<Arc<Plan>> {
        self.node(plan)
    }

    /// Rows that stand in several places, translated once.
    fn shared(&self, node: &SharedNode) -> Result<Arc<Plan>> {
        if let Some(plan) = self.shared.borrow().get(&node.number) {
            return Ok(plan.clone());
        }
        let plan = self.node(&node.plan)?;
        self.shared.borrow_mut().insert(node.number, plan.clone());
        Ok(plan)
    }

    /// Any node; the rows only, in no order.
    fn node(&self, plan: &LogicalPlan) -> Result<Arc<Plan>> {
        match plan {
            LogicalPlan::Projection(projection) => {
                let input = self.node(&projection.input)?;
                self.project(&projection.expr, projection.input.schema(), input)
            }
            LogicalPlan::Filter(filter) => self.filter(&filter.predicate, &filter.input),
            LogicalPlan::SubqueryAlias(alias) => self.node(&alias.input),
            LogicalPlan::TableScan(scan) => match self.variable(scan) {
                Some(variable) => rows::filtered(scan, variable),
                None => rows::scan(scan),
            },
            LogicalPlan::Values(values) => rows::values(values),
            LogicalPlan::EmptyRelation(empty) => Ok(rows::empty(empty)),
            LogicalPlan::Join(join) => self.join(join),
            LogicalPlan::Aggregate(aggregate) => self.aggregate(aggregate),
            LogicalPlan::Distinct(Distinct::All(input)) => Ok(distinct(self.node(input)?)),
            LogicalPlan::Sort(sort) if sort.fetch.is_some() => {
                let ordered = self.ordered(plan)?;
                Ok(top(ordered, 0, sort.fetch))
            }
            LogicalPlan::Sort(sort) => self.node(&sort.input),
            LogicalPlan::Limit(limit) => {
                let (offset, count) = bounds(limit)?;
                Ok(top(self.ordered(&limit.input)?, offset, count))
            }
            LogicalPlan::Union(union) => {
                let inputs = union.inputs.iter().map(|input| self.node(input)).collect::<Result<Vec<_>>>()?;
                rows::union(inputs)
            }
            LogicalPlan::Window(window) => self.window(window),
            LogicalPlan::Unnest(unnest) => rows::unnest(unnest, self.node(&unnest.input)?),
            LogicalPlan::Extension(extension) => {
                let node = extension.node.as_any();
                if let Some(node) = node.downcast_ref::<SetNode>() {
                    return self.set_operation(node);
                }
                if let Some(node) = node.downcast_ref::<AsofNode>() {
                    return self.asof(node);
                }
                if let Some(node) = node.downcast_ref::<RecognizeNode>() {
                    return self.recognize(node);
                }
                if let Some(node) = node.downcast_ref::<SessionNode>() {
                    return self.session(node);
                }
                if let Some(node) = node.downcast_ref::<SharedNode>() {
                    return self.shared(node);
                }
                if let Some(node) = node.downcast_ref::<LoopNode>() {
                    return self.recursion(node);
                }
                Err(SqlError::internal("an unknown extension node is in the plan"))
            }
            LogicalPlan::Repartition(repartition) => self.node(&repartition.input),
            other => Err(leftover(other)),
        }
    }

    fn project(&self, exprs: &[Expr], schema: &DFSchema, input: Arc<Plan>) -> Result<Arc<Plan>> {
        let columns = exprs
            .iter()
            .map(|e| Ok((resolve(e, schema, &input.schema)?, schema::alias_of(e))))
            .collect::<Result<Vec<_>>>()?;
        stage(input, vec![], columns)
    }

    fn filter(&self, predicate: &Expr, input: &LogicalPlan) -> Result<Arc<Plan>> {
        let plan = self.node(input)?;
        let filters = conjuncts(predicate)
            .into_iter()
            .map(|e| resolve(&e, input.schema(), &plan.schema))
            .collect::<Result<Vec<_>>>()?;
        stage::filter(plan, filters)
    }

    /// A node with the order its rows come in; columns needed for the order only are appended,
    /// invisible.
    fn ordered(&self, plan: &LogicalPlan) -> Result<Ordered> {
        match plan {
            LogicalPlan::Sort(sort) => self.sorted(sort),
            LogicalPlan::SubqueryAlias(alias) => self.ordered(&alias.input),
            LogicalPlan::Projection(projection) if leads_to_sort(&projection.input) => {
                let input = self.ordered(&projection.input)?;
                let mut columns = projection
                    .expr
                    .iter()
                    .map(|e| Ok((resolve(e, projection.input.schema(), &input.plan.schema)?, schema::alias_of(e))))
                    .collect::<Result<Vec<_>>>()?;
                let visible = columns.len();
                let order = input
                    .order
                    .iter()
                    .map(|key| {
                        let column = expr::column(&input.plan.schema, key.column);
                        let known = columns.iter().position(|(e, _)| *e == column);
                        let at = known.unwrap_or_else(|| {
                            columns.push((column, None));
                            columns.len() - 1
                        });
                        SortKey { column: at, ..*key }
                    })
                    .collect();
                Ok(Ordered { plan: stage(input.plan, vec![], columns)?, order, visible })
            }
            other => {
                let plan = self.node(other)?;
                Ok(Ordered { visible: plan.schema.fields().len(), order: vec![], plan })
            }
        }
    }

    fn sorted(&self, sort: &Sort) -> Result<Ordered> {
        let input = self.node(&sort.input)?;
        let visible = input.schema.fields().len();
        let exprs = sort
            .expr
            .iter()
            .map(|key| resolve_key(&key.expr, sort.input.schema(), &input.schema))
            .collect::<Result<Vec<_>>>()?;
        let (plan, columns) = stage::with_columns(input, exprs)?;
        let mut order: Vec<SortKey> = Vec::new();
        for (key, column) in sort.expr.iter().zip(columns) {
            if !order.iter().any(|known| known.column == column) {
                order.push(SortKey { column, descending: !key.asc, nulls_first: key.nulls_first });
            }
        }
        Ok(Ordered { plan, order, visible })
    }

    fn set_operation(&self, node: &SetNode) -> Result<Arc<Plan>> {
        let mut sides = rows::align(vec![self.node(&node.left)?, self.node(&node.right)?])?;
        let (Some(right), Some(left)) = (sides.pop(), sides.pop()) else {
            return Err(SqlError::internal("a set operation has two sides"));
        };
        let nullable_right = matches!(node.operation, SetOperation::Except | SetOperation::ExceptAll);
        let schema =
            if nullable_right { left.schema.clone() } else { schema::either_null(&left.schema, &right.schema) };
        Ok(Arc::new(Plan { node: Node::SetOperation { operation: node.operation, left, right }, schema }))
    }
}

fn leads_to_sort(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Sort(sort) => sort.fetch.is_none(),
        LogicalPlan::Projection(projection) => leads_to_sort(&projection.input),
        LogicalPlan::SubqueryAlias(alias) => leads_to_sort(&alias.input),
        _ => false,
    }
}

/// Each distinct row once; a plan whose rows are distinct already stays as it is.
fn distinct(input: Arc<Plan>) -> Arc<Plan> {
    let already = match &input.node {
        Node::Distinct { .. } | Node::Aggregate { .. } => true,
        Node::SetOperation { operation, .. } => matches!(operation, SetOperation::Except | SetOperation::Intersect),
        _ => false,
    };
    if already {
        return input;
    }
    let schema = input.schema.clone();
    Arc::new(Plan { node: Node::Distinct { input }, schema })
}

/// The first rows in an order, without the columns that only served it.
fn top(ordered: Ordered, offset: usize, limit: Option<usize>) -> Arc<Plan> {
    let Ordered { plan, order, visible } = ordered;
    if offset == 0 && limit.is_none() {
        return stage::take(plan, &(0..visible).collect::<Vec<_>>());
    }
    let schema = plan.schema.clone();
    let top = TopK { group: vec![], order, offset, limit, ranked: RankedBy::Row, numbered: false };
    let plan = Arc::new(Plan { node: Node::TopK { input: plan, top }, schema });
    stage::take(plan, &(0..visible).collect::<Vec<_>>())
}

fn bounds(limit: &Limit) -> Result<(usize, Option<usize>)> {
    let constant = |word: &str| SqlError::unsupported(format!("{word} of an expression"), "Write a whole number.");
    let skip: DfResult<SkipType> = limit.get_skip_type();
    let offset = match skip? {
        SkipType::Literal(n) => n,
        SkipType::UnsupportedExpr => return Err(constant("OFFSET")),
    };
    match limit.get_fetch_type()? {
        FetchType::Literal(count) => Ok((offset, count)),
        FetchType::UnsupportedExpr => Err(constant("LIMIT")),
    }
}

/// The plan with exactly these columns: cast where a type differs, named as given.
pub(crate) fn conform(plan: Arc<Plan>, wanted: &Schema) -> Result<Arc<Plan>> {
    let columns = wanted
        .fields()
        .iter()
        .enumerate()
        .map(|(at, field)| {
            let expr = expr::column(&plan.schema, at);
            let same = plan.schema.field(at).data_type() == field.data_type();
            (if same { expr } else { cast(expr, field.data_type().clone()) }, None)
        })
        .collect();
    let plan = stage(plan, vec![], columns)?;
    let names: Vec<String> = wanted.fields().iter().map(|field| field.name().clone()).collect();
    Ok(Arc::new(Plan { node: plan.node.clone(), schema: schema::rename(&plan.schema, &names) }))
}

/// The error for a node that no operator runs.
fn leftover(plan: &LogicalPlan) -> SqlError {
    match plan {
        LogicalPlan::Subquery(lateral) if recurs_over_outer(&lateral.subquery) => recursion_over_outer(),
        LogicalPlan::Subquery(_) => SqlError::unsupported(
            "this LATERAL subquery",
            "For the first rows of each group, number them with row_number() OVER (PARTITION BY .. ORDER BY ..) and filter.",
        ),
        LogicalPlan::Statement(_) | LogicalPlan::Dml(_) | LogicalPlan::Ddl(_) | LogicalPlan::Copy(_) => {
            SqlError::new(ErrorKind::Invalid, "only a query can stand here")
        }
        other => SqlError::unsupported(format!("plan node {}", other.display()), ""),
    }
}
