//! `EXCEPT` and `INTERSECT` inside DataFusion's plans: an extension node that its optimiser passes by.
//!
//! The node's inputs have the same number of columns, of the same types, without qualifiers.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use anabranch_plan::SetOperation;
use arrow::datatypes::{DataType, Field, Fields};
use datafusion_common::config::ConfigOptions;
use datafusion_common::tree_node::Transformed;
use datafusion_common::{Column, DFSchema, DFSchemaRef, Result as DfResult};
use datafusion_expr::logical_plan::{Extension, LogicalPlan, LogicalPlanBuilder, Projection, Union};
use datafusion_expr::planner::{PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning};
use datafusion_expr::sqlparser::ast::TableFactor;
use datafusion_expr::{Expr, ExprSchemable, UserDefinedLogicalNodeCore, cast};
use datafusion_optimizer::AnalyzerRule;
use datafusion_optimizer::analyzer::type_coercion::TypeCoercion;

use crate::error::{ErrorKind, SqlError};
use crate::passes::expr::common_type::{float_among, float_of_numbers, timestamp_among_dates, union_type};
use crate::passes::expr::numbers::adapt;
use crate::passes::tree::SET_MARK;

/// A set operation between two plans.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SetNode {
    pub(crate) operation: SetOperation,
    pub(crate) left: LogicalPlan,
    pub(crate) right: LogicalPlan,
    schema: DFSchemaRef,
}

impl SetNode {
    fn try_new(operation: SetOperation, left: LogicalPlan, right: LogicalPlan) -> DfResult<Self> {
        let fields: Fields = left
            .schema()
            .fields()
            .iter()
            .zip(right.schema().fields())
            .map(|(l, r)| Field::new(l.name(), l.data_type().clone(), l.is_nullable() || r.is_nullable()))
            .collect();
        let schema = Arc::new(DFSchema::from_unqualified_fields(fields, Default::default())?);
        Ok(Self { operation, left, right, schema })
    }
}

impl PartialOrd for SetNode {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        match self.left.partial_cmp(&other.left) {
            Some(Ordering::Equal) => self.right.partial_cmp(&other.right),
            order => order,
        }
    }
}

impl UserDefinedLogicalNodeCore for SetNode {
    fn name(&self) -> &str {
        "SetOperation"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.left, &self.right]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        vec![]
    }

    fn prevent_predicate_push_down_columns(&self) -> HashSet<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{:?}", self.operation)
    }

    fn with_exprs_and_inputs(&self, _exprs: Vec<Expr>, inputs: Vec<LogicalPlan>) -> DfResult<Self> {
        match <[LogicalPlan; 2]>::try_from(inputs) {
            Ok([left, right]) => Self::try_new(self.operation, left, right),
            Err(_) => Err(SqlError::internal("a set operation has two inputs").into()),
        }
    }

    fn necessary_children_exprs(&self, _output_columns: &[usize]) -> Option<Vec<Vec<usize>>> {
        let all: Vec<usize> = (0..self.schema.fields().len()).collect();
        Some(vec![all.clone(), all])
    }
}

/// Plans the joins that [`tree`](crate::passes::tree) marked.
#[derive(Debug)]
pub(crate) struct SetPlanner;

impl RelationPlanner for SetPlanner {
    fn plan_relation(
        &self,
        relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> DfResult<RelationPlanning> {
        let Some(operation) = marked(&relation) else {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };
        let TableFactor::NestedJoin { table_with_joins, .. } = relation else {
            return Err(SqlError::internal("a set operation is marked on a join").into());
        };
        let Some(join) = table_with_joins.joins.into_iter().next() else {
            return Err(SqlError::internal("a set operation has two sides").into());
        };
        let left = context.plan(table_with_joins.relation)?;
        let right = context.plan(join.relation)?;
        let plan = set_operation(operation, left, right)?;
        Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, None))))
    }
}

fn marked(relation: &TableFactor) -> Option<SetOperation> {
    let TableFactor::NestedJoin { alias: Some(alias), .. } = relation else {
        return None;
    };
    match alias.name.value.strip_prefix(SET_MARK)? {
        "except" => Some(SetOperation::Except),
        "except_all" => Some(SetOperation::ExceptAll),
        "intersect" => Some(SetOperation::Intersect),
        "intersect_all" => Some(SetOperation::IntersectAll),
        _ => None,
    }
}

fn set_operation(operation: SetOperation, left: LogicalPlan, right: LogicalPlan) -> DfResult<LogicalPlan> {
    let name = match operation {
        SetOperation::Except | SetOperation::ExceptAll => "EXCEPT",
        SetOperation::Intersect | SetOperation::IntersectAll => "INTERSECT",
    };
    let (n, m) = (left.schema().fields().len(), right.schema().fields().len());
    if n != m {
        return Err(SqlError::new(
            ErrorKind::Invalid,
            format!("each {name} query must have the same number of columns"),
        )
        .with_detail(format!("The left one has {n}, the right one {m}."))
        .into());
    }
    let mut types = Vec::with_capacity(n);
    let (of_left, of_right) = (settled_types(&left)?, settled_types(&right)?);
    for (l, r) in of_left.iter().zip(&of_right) {
        types.push(union_type(l, r).ok_or_else(|| {
            let (l, r) = (crate::resolve::types::sql_name(l), crate::resolve::types::sql_name(r));
            let message = format!("{name} types {l} and {r} cannot be matched");
            SqlError::new(ErrorKind::Type, message).with_hint("Cast one side, as in x::text.")
        })?);
    }
    let names = unique_names(left.schema());
    let (left, right) = (conform(left, &of_left, &types, &names)?, conform(right, &of_right, &types, &names)?);
    let node = SetNode::try_new(operation, left, right)?;
    Ok(LogicalPlan::Extension(Extension { node: Arc::new(node) }))
}

/// The types of a plan's columns once its expressions have the conversions that they need. (Before, a CASE has the type of its first branch.)
fn settled_types(plan: &LogicalPlan) -> DfResult<Vec<DataType>> {
    let settled = adapt(match_unions(plan.clone())?)?;
    Ok(types_of(&TypeCoercion::new().analyze(settled, &ConfigOptions::default())?))
}

/// Text beside other types in a UNION: literals are read as the other type, as in PostgreSQL; DataFusion would make text of all.
pub(crate) fn match_unions(plan: LogicalPlan) -> DfResult<LogicalPlan> {
    Ok(plan
        .transform_up_with_subqueries(|node| match node {
            LogicalPlan::Union(union) => match_union(union),
            other => Ok(Transformed::no(other)),
        })?
        .data)
}

fn match_union(union: Union) -> DfResult<Transformed<LogicalPlan>> {
    let type_of = |input: &LogicalPlan, at: usize| input.schema().field(at).data_type().clone();
    let mut inputs = union.inputs.clone();
    let n = inputs.iter().map(|input| input.schema().fields().len()).min().unwrap_or(0);
    let mut changed = false;
    for at in 0..n {
        let Some(wanted) = inputs.iter().map(|input| type_of(input, at)).find(is_read_from_text) else { continue };
        for input in &mut inputs {
            let is = type_of(input, at);
            if !is.is_string() {
                continue;
            }
            let Some(read) = with_literal_read(input, at, &wanted)? else {
                let (is, wanted) = (crate::resolve::types::sql_name(&is), crate::resolve::types::sql_name(&wanted));
                let message = format!("UNION types {wanted} and {is} cannot be matched");
                return Err(SqlError::new(ErrorKind::Type, message).with_hint("Cast one side, as in x::text.").into());
            };
            *input = Arc::new(read);
            changed = true;
        }
    }
    if !changed {
        return Ok(Transformed::no(LogicalPlan::Union(union)));
    }
    Ok(Transformed::yes(LogicalPlan::Union(Union::try_new_with_loose_types(inputs)?)))
}

/// Exact numbers beside floats in a UNION are floats, and dates beside timestamps are timestamps, as in PostgreSQL; DataFusion would make decimals of all, or nanoseconds.
pub(crate) fn match_branches(node: LogicalPlan) -> DfResult<Transformed<LogicalPlan>> {
    let LogicalPlan::Union(union) = node else { return Ok(Transformed::no(node)) };
    let mut types: Vec<Vec<DataType>> = union.inputs.iter().map(|input| types_of(input)).collect();
    let n = types.iter().map(Vec::len).min().unwrap_or(0);
    for at in 0..n {
        let column: Vec<DataType> = types.iter().map(|types| types[at].clone()).collect();
        if let Some(common) = float_of_numbers(&column).or_else(|| timestamp_among_dates(&column)) {
            let values = types.iter_mut().map(|types| &mut types[at]).filter(|is| !is.is_null());
            values.for_each(|is| *is = common.clone());
        }
    }
    let is_kept = |(input, types): (&Arc<LogicalPlan>, &Vec<DataType>)| types_of(input) == *types;
    let is_stale = union.schema.fields().iter().zip(types.iter().flatten()).any(|(field, is)| field.data_type() != is);
    if union.inputs.iter().zip(&types).all(is_kept) && !is_stale {
        return Ok(Transformed::no(LogicalPlan::Union(union)));
    }
    let conformed = union.inputs.iter().zip(&types).map(|(input, types)| {
        let names: Vec<String> = input.schema().fields().iter().map(|field| field.name().clone()).collect();
        conform(input.as_ref().clone(), &types_of(input), types, &names).map(Arc::new)
    });
    Ok(Transformed::yes(LogicalPlan::Union(Union::try_new_with_loose_types(conformed.collect::<DfResult<_>>()?)?)))
}

/// The same in VALUES, whose rows have been cast to a common type already.
pub(crate) fn match_values(node: LogicalPlan) -> DfResult<Transformed<LogicalPlan>> {
    let LogicalPlan::Values(values) = node else { return Ok(Transformed::no(node)) };
    let mut rows = values.values.clone();
    let mut is_changed = false;
    for (at, field) in values.schema.fields().iter().enumerate().filter(|(_, field)| field.data_type().is_decimal()) {
        let given = |value: &Expr| match value {
            Expr::Cast(cast) if cast.field.data_type() == field.data_type() => cast.expr.as_ref().clone(),
            other => other.clone(),
        };
        let is = |row: &Vec<Expr>| given(&row[at]).get_type(&values.schema);
        let types = values.values.iter().map(is).collect::<DfResult<Vec<_>>>()?;
        if let Some(float) = float_among(&types) {
            rows.iter_mut().for_each(|row| row[at] = cast(given(&row[at]), float.clone()));
            is_changed = true;
        }
    }
    if !is_changed {
        return Ok(Transformed::no(LogicalPlan::Values(values)));
    }
    Ok(Transformed::yes(LogicalPlanBuilder::values(rows)?.build()?))
}

fn types_of(plan: &LogicalPlan) -> Vec<DataType> {
    plan.schema().fields().iter().map(|field| field.data_type().clone()).collect()
}

fn is_read_from_text(data_type: &DataType) -> bool {
    data_type.is_numeric() || data_type.is_temporal() || *data_type == DataType::Boolean
}

/// The plan with the literal that is this column read as another type; `None` if the column is no literal.
fn with_literal_read(plan: &LogicalPlan, at: usize, wanted: &DataType) -> DfResult<Option<LogicalPlan>> {
    let LogicalPlan::Projection(projection) = plan else { return Ok(None) };
    let mut exprs = projection.expr.clone();
    let name = exprs[at].schema_name().to_string();
    let literal = exprs[at].clone().unalias();
    if !matches!(literal, Expr::Literal(..)) {
        return Ok(None);
    }
    exprs[at] = cast(literal, wanted.clone()).alias(name);
    Ok(Some(LogicalPlan::Projection(Projection::try_new(exprs, projection.input.clone())?)))
}

fn unique_names(schema: &DFSchema) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for field in schema.fields() {
        let mut name = field.name().clone();
        let mut n = 0;
        while names.contains(&name) {
            n += 1;
            name = format!("{}_{n}", field.name());
        }
        names.push(name);
    }
    names
}

/// The plan with other types and names of its columns, which have, or will have once its expressions are settled, the types `of`.
pub(crate) fn conform(
    plan: LogicalPlan,
    of: &[DataType],
    types: &[DataType],
    names: &[String],
) -> DfResult<LogicalPlan> {
    let exprs: Vec<Expr> = plan
        .schema()
        .iter()
        .zip(of.iter().zip(types))
        .zip(names)
        .map(|((field, (settled, wanted)), name)| {
            let is_kept = settled == wanted && field.1.data_type() == wanted;
            let column = Expr::Column(Column::from(field));
            let value = if is_kept { column } else { cast(column, wanted.clone()) };
            value.alias(name)
        })
        .collect();
    LogicalPlanBuilder::from(plan).project(exprs)?.build()
}
