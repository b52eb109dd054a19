//! Rows made of the values of parameters alone, as `INSERT .. VALUES ($1, $2 % 100)` makes them.
//!
//! Law: a maker gives the rows of the plan that is bound to the values, or none; then that plan is
//! made and tells what is wrong.
//!
//! Parameters are columns of one row here, so expressions are compiled once for all values: to
//! compile them costs ten times what a row does.

use std::fmt;
use std::sync::Arc;

use anabranch_batch::Batch;
use anabranch_flow::tactic::Output;
use anabranch_operators::stateless::filter_project::Stage;
use anabranch_plan::{Node, Plan};
use anabranch_sql::index_of;
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema};
use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_common::{Column, DFSchema, ScalarValue};
use datafusion_expr::Expr;

use crate::direct::literal_batch;
use crate::evaluate::compile_stage;

/// Makes rows of values.
pub(crate) struct RowMaker {
    /// The constant's columns, then one for each parameter.
    columns: Fields,
    /// What the constant's columns hold.
    before: Vec<ScalarValue>,
    /// The lowest first.
    stages: Vec<Stage>,
}

impl RowMaker {
    /// The maker of a plan with parameters of these types: of stages over one row, all parameters
    /// in the lowest.
    pub fn of(plan: &Arc<Plan>, types: &[DataType]) -> Option<RowMaker> {
        let mut above: Vec<&Arc<Plan>> = Vec::new();
        let mut below = plan;
        while let Node::Stage { input, .. } = &below.node {
            above.push(below);
            below = input;
        }
        let Node::Constant { rows } = &below.node else { return None };
        let ([before], Some(lowest)) = (rows.as_slice(), above.pop()) else { return None };
        let Node::Stage { input, filter, project } = &lowest.node else { return None };
        let fields = input.schema.fields().iter().cloned();
        let parameters = types.iter().enumerate().map(|(at, of)| Arc::new(Field::new(name_of(at), of.clone(), true)));
        let columns: Fields = fields.chain(parameters).collect::<Vec<FieldRef>>().into();
        let schema = with_parameters(&input.schema, types)?;
        let free =
            |exprs: &[Expr]| -> Option<Vec<Expr>> { exprs.iter().map(|expr| over_columns(expr, types)).collect() };
        let input = Plan { node: input.node.clone(), schema };
        let mut stages = vec![compile_stage(&input, &free(filter)?, &free(project)?, lowest).ok()?];
        for stage in above.into_iter().rev() {
            let Node::Stage { input, filter, project } = &stage.node else { return None };
            let has_parameter = |expr: &Expr| expr.exists(|part| Ok(matches!(part, Expr::Placeholder(_)))).ok();
            if filter.iter().chain(project).any(|expr| has_parameter(expr) != Some(false)) {
                return None;
            }
            stages.push(compile_stage(input, filter, project, stage).ok()?);
        }
        Some(RowMaker { columns, before: before.clone(), stages })
    }

    /// The rows for these values; `None` where they cannot be computed.
    pub fn rows(&self, values: &[ScalarValue]) -> Option<Vec<Batch>> {
        let row: Vec<ScalarValue> = self.before.iter().chain(values).cloned().collect();
        if row.len() != self.columns.len() {
            return None;
        }
        let mut rows = vec![literal_batch(&self.columns, &[row]).ok()?];
        for stage in &self.stages {
            let mut out = Output::default();
            rows.into_iter().for_each(|batch| stage.apply(batch.flatten(), &mut out));
            if !out.errors.is_empty() {
                return None;
            }
            rows = out.rows.into_iter().map(Batch::compact).collect();
        }
        Some(rows)
    }
}

impl fmt::Debug for RowMaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RowMaker").field("columns", &self.columns).finish_non_exhaustive()
    }
}

fn name_of(parameter: usize) -> String {
    format!("${}", parameter + 1)
}

fn with_parameters(schema: &DFSchema, types: &[DataType]) -> Option<Arc<DFSchema>> {
    let parameters = types.iter().enumerate().map(|(at, of)| Field::new(name_of(at), of.clone(), true));
    let parameters = DFSchema::try_from(Schema::new(parameters.collect::<Vec<_>>())).ok()?;
    schema.join(&parameters).ok().map(Arc::new)
}

/// The expression with columns in place of its parameters.
fn over_columns(expr: &Expr, types: &[DataType]) -> Option<Expr> {
    let column = |part: Expr| match index_of(&part) {
        Some(at) if at < types.len() => Ok(Transformed::yes(Expr::Column(Column::new_unqualified(name_of(at))))),
        Some(_) => datafusion_common::plan_err!("a parameter without a type"),
        None => Ok(Transformed::no(part)),
    };
    expr.clone().transform_up(column).ok().map(|changed| changed.data)
}
