//! `MATCH_RECOGNIZE` inside DataFusion's plans: an extension node that its optimiser passes by.
//!
//! ```text
//! text       t MATCH_RECOGNIZE (..) AS m           parse: a function of the table and the clause's text
//! plan       Projection: measures                  here: measures over cells,
//!              Recognize                           which the node yields,
//!                Projection: t and arguments       from rows
//!                Projection: conditions            and from conditions over cells, planned as a query of a table without readers
//!                  TableScan: cells
//! ```
//!
//! Reading order: `clause`, `pattern`, `cells`, this file.

mod cells;

use std::cmp::Ordering;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use anabranch_plan::recognize::{CellValue, Fold, RowPattern, Skip};
use arrow::datatypes::{DataType, Field, Schema};
use datafusion_common::{Column, DFSchema, DFSchemaRef, Result as DfResult};
use datafusion_expr::logical_plan::builder::LogicalTableSource;
use datafusion_expr::logical_plan::{Extension, LogicalPlan, LogicalPlanBuilder};
use datafusion_expr::planner::{PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning};
use datafusion_expr::sqlparser::ast::{self, TableFactor};
use datafusion_expr::{Expr, ExprSchemable, SortExpr, UserDefinedLogicalNodeCore};

use crate::error::{ErrorKind, Result, SqlError};
use crate::passes::tree::rewrite_expr;
use crate::resolve::type_names::canonical;
use crate::syntax::recognize::clause::{Clause, SkipTo};
use crate::syntax::relation_calls::{MATCH_RECOGNIZE, called_in_from, table_of};
use crate::syntax::span::Span;
use cells::{Draft, DraftValue, Lowering};

/// Rows in, a row for each match out.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RecognizeNode {
    pub(crate) input: LogicalPlan,
    /// One column for each condition, over a table of cells; `None` without conditions.
    pub(crate) conditions: Option<LogicalPlan>,
    /// Over the input, like the order and the arguments of cells.
    pub(crate) partition: Vec<Expr>,
    pub(crate) order: Vec<SortExpr>,
    pub(crate) pattern: RowPattern,
    /// Each variable's name, and the column of its condition.
    pub(crate) variables: Vec<(String, Option<usize>)>,
    /// What conditions read.
    pub(crate) cells: Vec<RecognizeCell>,
    /// What a match yields.
    pub(crate) output: Vec<RecognizeCell>,
    pub(crate) skip: Skip,
    pub(crate) within: Option<Span>,
    schema: DFSchemaRef,
}

/// A value that depends on a match.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RecognizeCell {
    pub(crate) name: String,
    /// Its column is not known yet: it is the argument.
    pub(crate) value: CellValue,
    /// Over the input.
    pub(crate) argument: Option<Expr>,
    pub(crate) data_type: DataType,
}

impl RecognizeCell {
    fn field(&self) -> Field {
        Field::new(&self.name, self.data_type.clone(), true)
    }
}

impl PartialOrd for RecognizeNode {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        self.input.partial_cmp(&other.input)
    }
}

impl UserDefinedLogicalNodeCore for RecognizeNode {
    fn name(&self) -> &str {
        "Recognize"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        std::iter::once(&self.input).chain(&self.conditions).collect()
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    /// The partition, the order, the arguments of cells.
    fn expressions(&self) -> Vec<Expr> {
        let order = self.order.iter().map(|key| &key.expr);
        let arguments = self.cells.iter().chain(&self.output).filter_map(|cell| cell.argument.as_ref());
        self.partition.iter().chain(order).chain(arguments).cloned().collect()
    }

    fn prevent_predicate_push_down_columns(&self) -> HashSet<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "Recognize: {:?}", self.pattern)
    }

    fn with_exprs_and_inputs(&self, exprs: Vec<Expr>, inputs: Vec<LogicalPlan>) -> DfResult<Self> {
        let wrong = || SqlError::internal("a pattern has as many expressions and inputs as before");
        let mut node = self.clone();
        let mut inputs = inputs.into_iter();
        node.input = inputs.next().ok_or_else(wrong)?;
        node.conditions = inputs.next();
        let mut exprs = exprs.into_iter();
        let order = node.order.iter_mut().map(|key| &mut key.expr);
        let arguments = node.cells.iter_mut().chain(&mut node.output).filter_map(|cell| cell.argument.as_mut());
        for place in node.partition.iter_mut().chain(order).chain(arguments) {
            *place = exprs.next().ok_or_else(wrong)?;
        }
        Ok(node)
    }
}

/// Plans the calls that the parser made of `MATCH_RECOGNIZE`.
#[derive(Debug)]
pub(crate) struct RecognizePlanner;

impl RelationPlanner for RecognizePlanner {
    fn plan_relation(
        &self,
        relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> DfResult<RelationPlanning> {
        let TableFactor::Table { ref alias, .. } = relation else {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };
        let (subquery, text) = match called_in_from(&relation) {
            Some((name, args)) if name == MATCH_RECOGNIZE => match args.as_slice() {
                [ast::Expr::Subquery(subquery), ast::Expr::Value(text)] => {
                    (subquery, text.value.clone().into_string().unwrap_or_default())
                }
                _ => return Err(SqlError::internal("MATCH_RECOGNIZE is a function of a table and a text").into()),
            },
            _ => return Ok(RelationPlanning::Original(Box::new(relation))),
        };
        let clause = Clause::of_text(&text)?;
        let input = context.plan(table_of(subquery))?;
        let alias = alias.clone();
        let plan = Planning { context, input }.plan(clause)?;
        Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, alias))))
    }
}

struct Planning<'a> {
    context: &'a mut dyn RelationPlannerContext,
    input: LogicalPlan,
}

impl Planning<'_> {
    fn plan(mut self, clause: Clause) -> DfResult<LogicalPlan> {
        let variables = clause.pattern.variables();
        let partition = clause.partition.into_iter().map(|expr| self.over_rows(expr)).collect::<DfResult<Vec<_>>>()?;
        let mut order = Vec::with_capacity(clause.order.len());
        for key in clause.order {
            let asc = key.options.asc.unwrap_or(true);
            let nulls_first = key.options.nulls_first.unwrap_or(!asc);
            order.push(SortExpr { expr: self.over_rows(key.expr)?, asc, nulls_first });
        }
        let mut of_conditions = Lowering::new(&variables);
        let mut defines = clause.defines;
        for (name, condition) in &mut defines {
            of_conditions.lower(condition).map_err(|error| part_of(error, &format!("the condition of {name}")))?;
        }
        let mut of_measures = Lowering::new(&variables);
        let mut measures = clause.measures;
        for (measure, name) in &mut measures {
            of_measures.lower(measure).map_err(|error| part_of(error, &format!("the measure {name}")))?;
        }
        let cells = self.cells(of_conditions.cells)?;
        let output = self.cells(of_measures.cells)?;
        let conditions = self.conditions(&cells, &defines)?;
        let condition_of = |variable: &String| defines.iter().position(|(name, _)| name == variable);
        let number_of = |name: &String| variables.iter().position(|variable| variable == name).unwrap_or_default();
        let node = RecognizeNode {
            pattern: clause.pattern.numbered(&variables),
            variables: variables.iter().map(|variable| (variable.clone(), condition_of(variable))).collect(),
            skip: match &clause.skip {
                SkipTo::PastLastRow => Skip::PastLastRow,
                SkipTo::NextRow => Skip::ToNextRow,
                SkipTo::First(name) => Skip::ToFirst(number_of(name)),
                SkipTo::Last(name) => Skip::ToLast(number_of(name)),
            },
            within: clause.within,
            schema: schema_of(&self.input, &partition, &output)?,
            input: self.input.clone(),
            conditions,
            partition,
            order,
            cells,
            output,
        };
        self.measured(node, measures)
    }

    /// The measures over the matches.
    fn measured(&mut self, node: RecognizeNode, measures: Vec<(ast::Expr, ast::Ident)>) -> DfResult<LogicalPlan> {
        let schema = Arc::clone(&node.schema);
        let n_keys = node.partition.len();
        let mut columns: Vec<Expr> =
            (0..n_keys).map(|at| Expr::Column(Column::from(schema.qualified_field(at)))).collect();
        for (measure, name) in measures {
            let name = self.context.normalize_ident(name);
            columns.push(self.context.sql_to_expr(rewrite_expr(&measure, None)?, &schema)?.alias(name));
        }
        let plan = LogicalPlan::Extension(Extension { node: Arc::new(node) });
        LogicalPlanBuilder::from(plan).project(columns)?.build()
    }

    /// The conditions as columns over a table of cells.
    fn conditions(
        &mut self,
        cells: &[RecognizeCell],
        defines: &[(String, ast::Expr)],
    ) -> DfResult<Option<LogicalPlan>> {
        if defines.is_empty() {
            return Ok(None);
        }
        let schema = Arc::new(Schema::new(cells.iter().map(RecognizeCell::field).collect::<Vec<_>>()));
        let table = LogicalPlanBuilder::scan("__cells", Arc::new(LogicalTableSource::new(schema)), None)?;
        let mut columns = Vec::with_capacity(defines.len());
        for (n, (name, condition)) in defines.iter().enumerate() {
            let condition = self.context.sql_to_expr(rewrite_expr(condition, None)?, table.schema())?;
            let data_type = condition.get_type(table.schema())?;
            if !matches!(data_type, DataType::Boolean | DataType::Null) {
                let message = format!(
                    "the condition of {name} in MATCH_RECOGNIZE is {}, not boolean",
                    crate::resolve::type_names::sql_name(&data_type)
                );
                return Err(SqlError::new(ErrorKind::Type, message).with_hint("Write a comparison.").into());
            }
            columns.push(condition.alias(format!("condition {n}")));
        }
        table.project(columns)?.build().map(Some)
    }

    fn cells(&mut self, drafts: Vec<Draft>) -> DfResult<Vec<RecognizeCell>> {
        drafts.into_iter().map(|draft| self.cell(draft)).collect()
    }

    fn cell(&mut self, Draft { name, value }: Draft) -> DfResult<RecognizeCell> {
        // (The column is found when the plan is translated.)
        let column = 0;
        let (value, argument, data_type) = match value {
            DraftValue::Column { argument, at } => {
                let argument = self.over_rows(*argument)?;
                let data_type = canonical(&argument.get_type(self.input.schema())?);
                (CellValue::Column { column, at }, Some(argument), data_type)
            }
            DraftValue::Classifier => (CellValue::Classifier, None, DataType::Utf8View),
            DraftValue::MatchNumber => (CellValue::MatchNumber, None, DataType::Int64),
            DraftValue::Fold { function, argument, variable } => {
                let argument = argument.map(|argument| self.over_rows(*argument)).transpose()?;
                let of = argument.as_ref().map(|argument| argument.get_type(self.input.schema())).transpose()?;
                let data_type = fold_type(function, of.as_ref(), &name)?;
                (CellValue::Fold { function, column: argument.as_ref().map(|_| column), variable }, argument, data_type)
            }
        };
        Ok(RecognizeCell { name, value, argument, data_type })
    }

    /// An expression over the input.
    fn over_rows(&mut self, expr: ast::Expr) -> DfResult<Expr> {
        self.context.sql_to_expr(rewrite_expr(&expr, None)?, self.input.schema())
    }
}

/// The type of an aggregate.
fn fold_type(function: Fold, argument: Option<&DataType>, name: &str) -> Result<DataType> {
    use DataType::{Decimal128, Float16, Float32, Float64, Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32};
    let Some(argument) = argument.map(canonical) else { return Ok(Int64) };
    Ok(match (function, argument) {
        (Fold::Count, _) => Int64,
        (Fold::Min | Fold::Max, argument) => argument,
        (Fold::Sum, Int8 | Int16 | Int32 | Int64 | UInt8 | UInt16 | UInt32) => Int64,
        (Fold::Sum, Float16 | Float32 | Float64) => Float64,
        (Fold::Sum, Decimal128(precision, scale)) => Decimal128((precision + 10).min(38), scale),
        (Fold::Sum, argument) => {
            let message = format!(
                "{name} in MATCH_RECOGNIZE cannot add values of type {}",
                crate::resolve::type_names::sql_name(&argument)
            );
            return Err(SqlError::new(ErrorKind::Type, message).with_hint("Add numbers."));
        }
    })
}

/// The partition's columns, then the cells.
fn schema_of(input: &LogicalPlan, partition: &[Expr], output: &[RecognizeCell]) -> DfResult<DFSchemaRef> {
    let mut fields = Vec::with_capacity(partition.len() + output.len());
    for expr in partition {
        let (_, field) = expr.to_field(input.schema())?;
        fields.push((None, Arc::new(Field::new(field.name(), field.data_type().clone(), field.is_nullable()))));
    }
    fields.extend(output.iter().map(|cell| (None, Arc::new(cell.field()))));
    Ok(Arc::new(DFSchema::new_with_metadata(fields, Default::default())?))
}

/// The error, with the part of the clause that it is in.
fn part_of(error: SqlError, part: &str) -> SqlError {
    match error.detail {
        None => error.with_detail(format!("It is in {part} of MATCH_RECOGNIZE.")),
        Some(_) => error,
    }
}
