//! Whole numbers whose type in PostgreSQL is another: a literal is an `integer` there and a
//! `bigint` here, and a sum of bigints is a `numeric` there.
//!
//! ```text
//! sum(b) / 2         CAST(sum(b) AS numeric) / 2        b a bigint
//! pg_typeof(i + 1)   'integer'                          i an integer
//! ```
//!
//! Law: a quotient of what PostgreSQL has as a numeric has a fraction; all else keeps its type. The
//! width of a column is that of what computes it, down to the tables. Where that is not to be seen
//! (views that are kept, functions) a column counts as an integer, so it divides as before.

use std::sync::Arc;

use anabranch_batch::numeric::TYPE;
use arrow::datatypes::DataType;
use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_common::{Column, DFSchema, ExprSchema, Result as DfResult, ScalarValue, internal_datafusion_err};
use datafusion_expr::expr_rewriter::NamePreserver;
use datafusion_expr::logical_plan::{Distinct, LogicalPlan, Union};
use datafusion_expr::{BinaryExpr, Expr, ExprSchemable, Operator, cast, lit};

use super::conform::{conform, types_of};
use crate::functions::numerics::{compute_plain, plain_comparison, plain_operation};
use crate::resolve::context::is_kept_view;

/// PostgreSQL's type of a whole number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Width {
    Integer,
    Bigint,
    Numeric,
}

/// Divides such sums as numerics, and tells the types of whole numbers.
pub(crate) fn settle(plan: LogicalPlan) -> DfResult<LogicalPlan> {
    let mut is_changed = false;
    let settled = plan.transform_up_with_subqueries(|node| {
        let node = match is_changed {
            true => again(node, None)?,
            false => node,
        };
        let settled = settle_in(node)?;
        is_changed |= settled.transformed;
        Ok(settled)
    })?;
    match is_changed {
        true => Ok(settled.data.transform_up_with_subqueries(tell_outer)?.data),
        false => Ok(settled.data),
    }
}

/// Tells the subqueries of a node what types its columns have by now.
fn tell_outer(node: LogicalPlan) -> DfResult<Transformed<LogicalPlan>> {
    let outer = below_of(&node);
    let told = node.map_subqueries(|subquery| {
        subquery.transform_up_with_subqueries(|node| again(node, Some(&outer)).map(Transformed::yes))
    })?;
    match told.transformed {
        true => Ok(Transformed::yes(again(told.data, None)?)),
        false => Ok(told),
    }
}

/// The columns that the expressions of a node may name.
fn below_of(node: &LogicalPlan) -> DFSchema {
    let mut schema = DFSchema::empty();
    for input in node.inputs() {
        schema.merge(input.schema());
    }
    schema
}

/// A node whose inputs, or the query around it, may have other types than when it was made.
fn again(node: LogicalPlan, outer: Option<&DFSchema>) -> DfResult<LogicalPlan> {
    let LogicalPlan::Union(union) = node else {
        let schema = below_of(&node);
        let names = NamePreserver::new(&node);
        let node = node.map_expressions(|expr| {
            let name = names.save(&expr);
            let computed = expr.transform_up(|e| match (e, outer) {
                (Expr::OuterReferenceColumn(is, column), Some(outer)) => {
                    let field = outer.field_from_column(&column).map_or(is, Arc::clone);
                    Ok(Transformed::yes(Expr::OuterReferenceColumn(field, column)))
                }
                (e, _) => adapted(e, &schema),
            })?;
            Ok(computed.update_data(|e| name.restore(e)))
        })?;
        return node.data.recompute_schema();
    };
    let types: Vec<Vec<DataType>> = union.inputs.iter().map(|input| types_of(input)).collect();
    let mut wanted = types[0].clone();
    for (at, wanted) in wanted.iter_mut().enumerate() {
        if types.iter().any(|of| of[at] == TYPE) && types.iter().all(|of| of[at] == TYPE || of[at].is_integer()) {
            *wanted = TYPE;
        }
    }
    let mut inputs = Vec::with_capacity(union.inputs.len());
    for (input, of) in union.inputs.iter().zip(&types) {
        let wanted: Vec<DataType> =
            of.iter().zip(&wanted).map(|(of, wanted)| if *wanted == TYPE { TYPE } else { of.clone() }).collect();
        inputs.push(match wanted == *of {
            true => Arc::clone(input),
            false => {
                let names: Vec<String> = input.schema().fields().iter().map(|field| field.name().clone()).collect();
                Arc::new(conform(input.as_ref().clone(), of, &wanted, &names)?)
            }
        });
    }
    Ok(LogicalPlan::Union(Union::try_new_with_loose_types(inputs)?))
}

/// An operator whose operands may be numerics by now.
fn adapted(expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if op.supports_propagation() => {
            let types = (left.get_type(schema)?, right.get_type(schema)?);
            let pair = plain_comparison(&left, &right, (&types.0, &types.1));
            let (left, right) = pair.map_or((left, right), |(left, right)| (Box::new(left), Box::new(right)));
            Ok(Transformed::yes(Expr::BinaryExpr(BinaryExpr { left, op, right })))
        }
        other => compute_plain(other, schema),
    }
}

fn settle_in(node: LogicalPlan) -> DfResult<Transformed<LogicalPlan>> {
    let is_asked = |expr: &Expr| {
        expr.exists(
            |e| Ok(is_quotient(e) || matches!(e, Expr::ScalarFunction(call) if call.func.name() == "pg_typeof")),
        )
    };
    let mut any = false;
    node.apply_expressions(|expr| {
        any |= is_asked(expr)?;
        Ok(TreeNodeRecursion::Continue)
    })?;
    if !any {
        return Ok(Transformed::no(node));
    }
    let inputs: Vec<LogicalPlan> = node.inputs().into_iter().cloned().collect();
    let below = Below { inputs: inputs.iter().collect() };
    let schema = below_of(&node);
    let names = NamePreserver::new(&node);
    let mut has_quotient = false;
    let settled = node.map_expressions(|expr| {
        let name = names.save(&expr);
        let settled = expr.transform_up(|e| {
            let settled = settle_expr(e, &below, &schema)?;
            has_quotient |= settled.transformed;
            match settled.transformed || !has_quotient {
                true => Ok(settled),
                false => adapted(settled.data, &schema),
            }
        })?;
        Ok(settled.update_data(|e| name.restore(e)))
    })?;
    match has_quotient {
        true => Ok(Transformed::yes(settled.data.recompute_schema()?)),
        false => Ok(settled),
    }
}

fn is_quotient(expr: &Expr) -> bool {
    matches!(expr, Expr::BinaryExpr(BinaryExpr { op: Operator::Divide, .. }))
}

fn settle_expr(expr: Expr, below: &Below, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    let is_whole = |e: &Expr| e.get_type(schema).is_ok_and(|is| is.is_integer());
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Divide, right })
            if is_whole(&left) && is_whole(&right) && below.width(&left).max(below.width(&right)) == Width::Numeric =>
        {
            let (left, right) = (cast(*left, TYPE), cast(*right, TYPE));
            let quotient = plain_operation(Operator::Divide, &left, &right, (&TYPE, &TYPE));
            quotient.map(Transformed::yes).ok_or_else(|| internal_datafusion_err!("numerics have a quotient"))
        }
        Expr::ScalarFunction(call) if call.func.name() == "pg_typeof" && call.args.len() == 1 => {
            Ok(match below.type_name(&call.args[0], schema) {
                Some(name) => Transformed::yes(lit(ScalarValue::Utf8View(Some(name)))),
                None => Transformed::no(Expr::ScalarFunction(call)),
            })
        }
        other => Ok(Transformed::no(other)),
    }
}

/// What the expressions of a node are computed of.
struct Below<'a> {
    inputs: Vec<&'a LogicalPlan>,
}

impl Below<'_> {
    /// PostgreSQL's name of the type of whole numbers and arrays of them.
    fn type_name(&self, expr: &Expr, schema: &DFSchema) -> Option<String> {
        let (_, field) = expr.to_field(schema).ok()?;
        if !field.metadata().is_empty() {
            return None;
        }
        match field.data_type() {
            DataType::Int64 => Some(self.width(expr).name().into()),
            DataType::List(element) if *element.data_type() == DataType::Int64 => {
                let Expr::ScalarFunction(call) = expr else { return None };
                (call.func.name() == "make_array").then(|| format!("{}[]", self.widest(&call.args).name()))
            }
            _ => None,
        }
    }

    fn widest<'e>(&self, exprs: impl IntoIterator<Item = &'e Expr>) -> Width {
        exprs.into_iter().map(|e| self.width(e)).max().unwrap_or(Width::Integer)
    }

    fn width(&self, expr: &Expr) -> Width {
        match expr {
            Expr::Alias(alias) => self.width(&alias.expr),
            Expr::Negative(inner) => self.width(inner),
            Expr::Literal(ScalarValue::Int64(Some(n)), _) if i32::try_from(*n).is_err() => Width::Bigint,
            Expr::Column(column) => {
                self.inputs.iter().find_map(|input| width_of(input, column)).unwrap_or(Width::Integer)
            }
            Expr::Cast(cast) if *cast.field.data_type() == DataType::Int64 => Width::Bigint,
            Expr::BinaryExpr(BinaryExpr { left, right, .. }) => self.width(left).max(self.width(right)),
            Expr::Case(case) => {
                let thens = case.when_then_expr.iter().map(|(_, then)| then);
                self.widest(thens.chain(&case.else_expr).map(AsRef::as_ref))
            }
            Expr::ScalarFunction(call) => match call.func.name() {
                "coalesce" | "greatest" | "least" | "abs" | "mod" | "gcd" | "lcm" => self.widest(&call.args),
                "nullif" => self.widest(call.args.first()),
                _ => Width::Integer,
            },
            Expr::AggregateFunction(call) => self.of_call(call.func.name(), &call.params.args),
            Expr::WindowFunction(call) => self.of_call(call.fun.name(), &call.params.args),
            Expr::ScalarSubquery(query) => {
                let plan = query.subquery.as_ref();
                plan.schema().columns().first().and_then(|column| width_of(plan, column)).unwrap_or(Width::Integer)
            }
            _ => Width::Integer,
        }
    }

    fn of_call(&self, name: &str, args: &[Expr]) -> Width {
        match name {
            "count" | "row_number" | "rank" | "dense_rank" => Width::Bigint,
            "sum" if self.widest(args) > Width::Integer => Width::Numeric,
            "sum" => Width::Bigint,
            "min" | "max" | "first_value" | "last_value" | "nth_value" | "lag" | "lead" | "any_value" | "mode"
            | "percentile_disc" | "bit_and" | "bit_or" | "bit_xor" => self.widest(args.first()),
            _ => Width::Integer,
        }
    }
}

impl Width {
    fn name(self) -> &'static str {
        match self {
            Width::Integer => "integer",
            Width::Bigint => "bigint",
            Width::Numeric => "numeric",
        }
    }
}

/// The width of a plan's column, if the plan has it.
fn width_of(plan: &LogicalPlan, column: &Column) -> Option<Width> {
    let at = plan.schema().maybe_index_of_column(column)?;
    width_at(plan, at)
}

fn width_at(plan: &LogicalPlan, at: usize) -> Option<Width> {
    if *plan.schema().field(at).data_type() != DataType::Int64 {
        return Some(Width::Integer);
    }
    let below = || Below { inputs: plan.inputs() };
    match plan {
        LogicalPlan::Projection(projection) => Some(below().width(projection.expr.get(at)?)),
        LogicalPlan::Aggregate(aggregate) => {
            let n_groups = plan.schema().fields().len() - aggregate.aggr_expr.len();
            match at.checked_sub(n_groups) {
                Some(call) => Some(below().width(aggregate.aggr_expr.get(call)?)),
                None => width_of(&aggregate.input, &plan.schema().columns()[at]),
            }
        }
        LogicalPlan::Window(window) => match at.checked_sub(window.input.schema().fields().len()) {
            Some(call) => Some(below().width(window.window_expr.get(call)?)),
            None => width_at(&window.input, at),
        },
        LogicalPlan::SubqueryAlias(alias) => width_at(&alias.input, at),
        LogicalPlan::TableScan(scan) => {
            let is_whole = scan.projection.is_none() && !is_kept_view(scan.source.as_ref());
            is_whole.then_some(Width::Bigint)
        }
        LogicalPlan::Union(union) => union.inputs.iter().filter_map(|input| width_at(input, at)).max(),
        LogicalPlan::Values(values) => Some(below().widest(values.values.iter().filter_map(|row| row.get(at)))),
        LogicalPlan::Join(_) => {
            let column = &plan.schema().columns()[at];
            plan.inputs().into_iter().find_map(|input| width_of(input, column))
        }
        LogicalPlan::Filter(_)
        | LogicalPlan::Sort(_)
        | LogicalPlan::Limit(_)
        | LogicalPlan::Distinct(Distinct::All(_)) => width_at(plan.inputs().first()?, at),
        _ => None,
    }
}
