//! What stands for `$1`, `$2` .. while a statement is planned.
//!
//! Law: a parameter is planned as a value of its type. A statement that is planned with types and
//! then bound means what the same statement means that is planned with values of these types.

use std::sync::Arc;

use anabranch_batch::numeric;
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_common::{Result as DfResult, ScalarValue};
use datafusion_expr::Expr;
use datafusion_expr::expr_rewriter::NamePreserver;
use datafusion_expr::logical_plan::LogicalPlan;
use datafusion_expr::sqlparser::ast;
use datafusion_sql::planner::PlannerContext;

use crate::error::SqlError;
use crate::resolve::type_names::is_text;
use crate::resolve::written_parameters::write;

/// What stands for `$1`, `$2` ..
#[derive(Clone, Debug, Default)]
pub enum Parameters {
    /// The statement has none.
    #[default]
    None,
    /// Types as far as they are known; a parameter of an unknown type counts as NULL.
    Known(Arc<[Option<DataType>]>),
    /// Types of all. The parameters stay in the plan, as placeholders.
    Types(Arc<[DataType]>),
    /// Values of all.
    Values(Arc<[ScalarValue]>),
    /// Values of all, which are written into the query before it is planned.
    Written(Arc<[ScalarValue]>),
}

impl Parameters {
    /// What DataFusion's planner needs to read an expression.
    pub(crate) fn context(&self) -> PlannerContext {
        let field = |data_type: DataType| -> FieldRef { Arc::new(Field::new("", data_type, true)) };
        let fields: Vec<Option<FieldRef>> = match self {
            Parameters::None | Parameters::Written(_) => return PlannerContext::new(),
            Parameters::Known(types) => types.iter().map(|known| known.clone().map(field)).collect(),
            Parameters::Types(types) => types.iter().cloned().map(field).map(Some).collect(),
            Parameters::Values(values) => values.iter().map(|value| Some(field(value.data_type()))).collect(),
        };
        PlannerContext::new().with_prepare_param_data_types(fields)
    }

    /// The query with the values in it, where they are written.
    pub(crate) fn written(&self, query: &ast::Query) -> Result<Option<ast::Query>, SqlError> {
        match self {
            Parameters::Written(values) => write(query, values).map(Some),
            _ => Ok(None),
        }
    }

    /// Values that stand for those that come later, where a place takes a constant only: they tell
    /// a query's columns.
    pub fn samples(types: &[DataType]) -> Parameters {
        let sample = |is: &DataType| match is {
            is if is_text(is) => Ok(ScalarValue::Utf8View(Some("day".to_owned()))),
            is if is.is_integer() => ScalarValue::Int64(Some(1)).cast_to(is),
            is if is.is_floating() || is.is_decimal() => ScalarValue::Float64(Some(0.5)).cast_to(is),
            DataType::Boolean => Ok(ScalarValue::Boolean(Some(true))),
            // (Half of all as well, though it has no cast.)
            is if *is == numeric::TYPE => Ok(ScalarValue::Float64(Some(0.5))),
            is => ScalarValue::try_from(is),
        };
        Parameters::Written(types.iter().map(|is| sample(is).unwrap_or(ScalarValue::Null)).collect())
    }

    /// The plan with the values in place of the parameters.
    pub(crate) fn fill_plan(&self, plan: LogicalPlan) -> DfResult<LogicalPlan> {
        let Parameters::Values(values) = self else { return Ok(plan) };
        if values.is_empty() {
            return Ok(plan);
        }
        let filled = plan.transform_up_with_subqueries(|node| {
            let names = NamePreserver::new(&node);
            node.map_expressions(|expr| {
                let name = names.save(&expr);
                let filled = expr.transform_up(|expr| Ok(fill_one(expr, values)))?;
                Ok(filled.update_data(|expr| name.restore(expr)))
            })
        })?;
        Ok(filled.data)
    }

    /// The expression with the values in place of the parameters.
    pub(crate) fn fill(&self, expr: Expr) -> DfResult<Expr> {
        match self {
            Parameters::Values(values) => Ok(expr.transform_up(|expr| Ok(fill_one(expr, values)))?.data),
            _ => Ok(expr),
        }
    }
}

fn fill_one(expr: Expr, values: &[ScalarValue]) -> Transformed<Expr> {
    match index_of(&expr).and_then(|at| values.get(at)) {
        Some(value) => Transformed::yes(Expr::Literal(value.clone(), None)),
        None => Transformed::no(expr),
    }
}

/// Which parameter an expression is, from 0.
pub fn index_of(expr: &Expr) -> Option<usize> {
    let Expr::Placeholder(parameter) = expr else { return None };
    parameter.id.strip_prefix('$')?.parse::<usize>().ok()?.checked_sub(1)
}
