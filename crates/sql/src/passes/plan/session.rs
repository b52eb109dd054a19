//! Sessions inside DataFusion's plans: from the call that `tree` made to an extension node that its
//! optimiser passes by.
//!
//! ```text
//! __session((SELECT * FROM t WHERE ts IS NOT NULL), ts, INTERVAL '5 minutes', k, ..)
//! ```
//!
//! The node's columns are those of the query, then the first and the last time of each row's
//! session.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use anabranch_plan::asof::is_instant;
use arrow::datatypes::{DataType, Field};
use datafusion_common::{DFSchema, DFSchemaRef, Result as DfResult, TableReference};
use datafusion_expr::logical_plan::{Extension, LogicalPlan};
use datafusion_expr::planner::{PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning};
use datafusion_expr::sqlparser::ast::{self, TableFactor};
use datafusion_expr::{Expr, ExprSchemable, UserDefinedLogicalNodeCore};

use crate::error::{ErrorKind, Result, SqlError};
use crate::resolve::type_names::sql_name;
use crate::syntax::relation_calls::{SESSION, SESSION_FIRST, SESSION_LAST, called_in_from, table_of};
use crate::syntax::span::Span;

/// The rows of a plan with the bounds of their sessions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SessionNode {
    pub(crate) input: LogicalPlan,
    /// Columns.
    pub(crate) partition: Vec<Expr>,
    /// A column.
    pub(crate) time: Expr,
    pub(crate) gap: Span,
    schema: DFSchemaRef,
}

impl SessionNode {
    fn try_new(input: LogicalPlan, partition: Vec<Expr>, time: Expr, gap: Span) -> DfResult<Self> {
        let time_type = time.get_type(input.schema())?;
        let of_input = input.schema().iter().map(|(qualifier, field)| (qualifier.cloned(), Arc::clone(field)));
        let bound = |name| (None::<TableReference>, Arc::new(Field::new(name, time_type.clone(), false)));
        let all = of_input.chain([bound(SESSION_FIRST), bound(SESSION_LAST)]).collect();
        let schema = Arc::new(DFSchema::new_with_metadata(all, Default::default())?);
        Ok(Self { input, partition, time, gap, schema })
    }

    fn partition_columns(&self) -> HashSet<usize> {
        let column = |expr: &Expr| match expr {
            Expr::Column(column) => self.schema.maybe_index_of_column(column),
            _ => None,
        };
        self.partition.iter().filter_map(column).collect()
    }
}

impl PartialOrd for SessionNode {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        self.input.partial_cmp(&other.input)
    }
}

impl UserDefinedLogicalNodeCore for SessionNode {
    fn name(&self) -> &str {
        "Session"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    /// The partition, then the time.
    fn expressions(&self) -> Vec<Expr> {
        self.partition.iter().chain([&self.time]).cloned().collect()
    }

    /// All but the partition: rows of other partitions are nothing to a row's session.
    fn prevent_predicate_push_down_columns(&self) -> HashSet<String> {
        let partition = self.partition_columns();
        let others = self.schema.fields().iter().enumerate().filter(|(at, _)| !partition.contains(at));
        others.map(|(_, field)| field.name().clone()).collect()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "Session: {} within {}", self.time, self.gap)
    }

    fn with_exprs_and_inputs(&self, mut exprs: Vec<Expr>, inputs: Vec<LogicalPlan>) -> DfResult<Self> {
        match (exprs.pop(), <[LogicalPlan; 1]>::try_from(inputs)) {
            (Some(time), Ok([input])) => Self::try_new(input, exprs, time, self.gap.clone()),
            _ => Err(SqlError::internal("sessions have an input and a time").into()),
        }
    }

    /// What is asked for; expressions are added by the optimiser.
    fn necessary_children_exprs(&self, output_columns: &[usize]) -> Option<Vec<Vec<usize>>> {
        let width = self.input.schema().fields().len();
        Some(vec![output_columns.iter().copied().filter(|column| *column < width).collect()])
    }
}

/// Plans the calls that `tree` made of SESSION.
#[derive(Debug)]
pub(crate) struct SessionPlanner;

impl RelationPlanner for SessionPlanner {
    fn plan_relation(
        &self,
        relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> DfResult<RelationPlanning> {
        let alias = match &relation {
            TableFactor::Table { alias, .. } => alias.clone(),
            _ => return Ok(RelationPlanning::Original(Box::new(relation))),
        };
        let (subquery, time, gap, partition) = match called_in_from(&relation) {
            Some((name, args)) if name == SESSION => match args.as_slice() {
                [ast::Expr::Subquery(subquery), time, gap, partition @ ..] => {
                    let partition: Vec<ast::Expr> = partition.iter().map(|key| (*key).clone()).collect();
                    (table_of(subquery), (*time).clone(), Span::read(gap), partition)
                }
                _ => return Err(SqlError::internal("SESSION is a function of a query, a time and a gap").into()),
            },
            _ => return Ok(RelationPlanning::Original(Box::new(relation))),
        };
        let gap = gap.ok_or_else(|| SqlError::internal("the gap of SESSION is constant"))?;
        let input = context.plan(subquery)?;
        let time = context.sql_to_expr(time, input.schema())?;
        check(&time.get_type(input.schema())?)?;
        let partition = partition.into_iter().map(|key| context.sql_to_expr(key, input.schema()));
        let partition: Vec<Expr> = partition.collect::<DfResult<_>>()?;
        if partition.contains(&time) {
            let message = format!("SESSION is partitioned by its own time, {time}");
            let hint = "Leave the time out of PARTITION BY: rows of one time are always of one session.";
            return Err(SqlError::new(ErrorKind::Invalid, message).with_hint(hint).into());
        }
        let node = Arc::new(SessionNode::try_new(input, partition, time, gap)?);
        let plan = LogicalPlan::Extension(Extension { node });
        Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, alias))))
    }
}

fn check(time: &DataType) -> Result<()> {
    if is_instant(time) {
        return Ok(());
    }
    let message = format!("SESSION cannot tell how far apart values of type {} are", sql_name(time));
    Err(SqlError::new(ErrorKind::Type, message)
        .with_hint("Its time is a timestamp, a date, a time or a whole number; cast others to one of these."))
}
