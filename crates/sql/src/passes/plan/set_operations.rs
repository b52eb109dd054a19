//! `EXCEPT` and `INTERSECT` inside DataFusion's plans: an extension node that its optimiser passes
//! by.
//!
//! The node's inputs have the same number of columns, of the same types, without qualifiers.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use anabranch_plan::SetOperation;
use arrow::datatypes::{DataType, Field, Fields};
use datafusion_common::config::ConfigOptions;
use datafusion_common::{DFSchema, DFSchemaRef, Result as DfResult};
use datafusion_expr::logical_plan::{Extension, LogicalPlan};
use datafusion_expr::planner::{PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning};
use datafusion_expr::sqlparser::ast::TableFactor;
use datafusion_expr::{Expr, UserDefinedLogicalNodeCore};
use datafusion_optimizer::AnalyzerRule;
use datafusion_optimizer::analyzer::type_coercion::TypeCoercion;

use crate::error::{ErrorKind, SqlError};
use crate::passes::expr::{SETTLED, settle};
use crate::passes::pass::Chosen;
use crate::passes::plan::conform::{conform, types_of};
use crate::passes::plan::unions::{check_branches, match_unions, read_beside};
use crate::passes::tree::set_operations::called;
use crate::resolve::common_types::union_type;
use crate::resolve::type_names::sql_name;
use crate::syntax::relation_calls::table_of;
use crate::type_words::CAST_ONE_SIDE;

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
            .map(|(l, r)| {
                let field = Field::new(l.name(), l.data_type().clone(), l.is_nullable() || r.is_nullable());
                // (Both sides of one mark have it still.)
                if l.metadata() == r.metadata() { field.with_metadata(l.metadata().clone()) } else { field }
            })
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

/// Plans the calls that `tree` made of set operations.
#[derive(Debug)]
pub(crate) struct SetOperationPlanner {
    /// The rewrites of this planner.
    pub(crate) chosen: Chosen,
}

impl RelationPlanner for SetOperationPlanner {
    fn plan_relation(
        &self,
        relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> DfResult<RelationPlanning> {
        let Some((operation, left, right)) = called(&relation) else {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };
        let left = context.plan(table_of(left))?;
        let right = context.plan(table_of(right))?;
        let plan = set_operation(operation, left, right, self.chosen)?;
        Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, None))))
    }
}

fn set_operation(
    operation: SetOperation,
    left: LogicalPlan,
    right: LogicalPlan,
    chosen: Chosen,
) -> DfResult<LogicalPlan> {
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
    check_branches(name, &[&left, &right])?;
    let (left, right) = read_beside(left, right)?;
    let mut types = Vec::with_capacity(n);
    let (of_left, of_right) = (settled_types(&left, chosen)?, settled_types(&right, chosen)?);
    for (l, r) in of_left.iter().zip(&of_right) {
        types.push(union_type(l, r).ok_or_else(|| {
            let (l, r) = (sql_name(l), sql_name(r));
            let message = format!("{name} types {l} and {r} cannot be matched");
            SqlError::new(ErrorKind::Type, message).with_hint(CAST_ONE_SIDE)
        })?);
    }
    let names = unique_names(left.schema());
    let (left, right) = (conform(left, &of_left, &types, &names)?, conform(right, &of_right, &types, &names)?);
    let node = SetNode::try_new(operation, left, right)?;
    Ok(LogicalPlan::Extension(Extension { node: Arc::new(node) }))
}

/// The types of a plan's columns once its expressions have the conversions that they need. (Before,
/// a CASE has the type of its first branch.)
pub(crate) fn settled_types(plan: &LogicalPlan, chosen: Chosen) -> DfResult<Vec<DataType>> {
    let settled = settle(match_unions(plan.clone())?, SETTLED, chosen)?;
    Ok(types_of(&TypeCoercion::new().analyze(settled, &ConfigOptions::default())?))
}

pub(crate) fn unique_names(schema: &DFSchema) -> Vec<String> {
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
