//! Loops inside DataFusion's plans: an extension node that its optimiser passes by.
//!
//! A variable is a relation with a reserved name, which scans within the loop have. Its columns may
//! be NULL, and nothing else is known of its rows, so no rule concludes anything from the loop's
//! first rows. The node wants all columns of its inputs and takes no condition: nothing passes the
//! loop's bounds.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::fmt;
use std::num::NonZeroU64;
use std::sync::{Arc, Mutex, PoisonError};

use anabranch_batch::numeric;
use anabranch_plan::RoundLimit;
use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef};
use datafusion_common::tree_node::TreeNode;
use datafusion_common::{DFSchema, DFSchemaRef, Result as DfResult};
use datafusion_expr::logical_plan::{Extension, LogicalPlan, Projection};
use datafusion_expr::planner::{PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning};
use datafusion_expr::sqlparser::ast::{Expr as SqlExpr, Query, TableFactor, Value};
use datafusion_expr::{Expr, UserDefinedLogicalNodeCore};

use crate::error::{ErrorKind, SqlError};
use crate::functions::intervals::INTERVAL;
use crate::functions::table::call;
use crate::passes::pass::Chosen;
use crate::passes::plan::conform::{conform, types_of};
use crate::passes::plan::decorrelate::mentions_outer;
use crate::passes::plan::set_operations::{settled_types, unique_names};
use crate::resolve::common_types::union_type;
use crate::resolve::documents::{DocumentForm, form_of, is_kind_of_text};
use crate::resolve::type_names::{canonical, is_number, sql_name};
use crate::syntax::relation_calls::{MUTUALLY_RECURSIVE, RECURSIVE, called_in_from, table_of, variable_name};

/// A loop.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct LoopNode {
    /// What scans of the variables are called, in the order of the bindings.
    pub(crate) variables: Vec<String>,
    /// The columns of each variable.
    pub(crate) schemas: Vec<SchemaRef>,
    pub(crate) form: RecursionForm,
    /// As the form says.
    pub(crate) inputs: Vec<LogicalPlan>,
    schema: DFSchemaRef,
}

/// What the inputs of a loop are.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum RecursionForm {
    /// One variable; its first rows, and the rows that come of those of the round before.
    Terms {
        /// Whether rows that come twice are there twice.
        is_all: bool,
    },
    /// The query of each variable.
    Queries {
        /// The variable that the loop yields.
        result: usize,
        /// When the loop stops.
        limit: RoundLimit,
    },
}

impl PartialOrd for LoopNode {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        self.inputs.partial_cmp(&other.inputs)
    }
}

impl UserDefinedLogicalNodeCore for LoopNode {
    fn name(&self) -> &str {
        "Loop"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        self.inputs.iter().collect()
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
        write!(f, "Loop: {}", self.variables.join(", "))
    }

    fn with_exprs_and_inputs(&self, _exprs: Vec<Expr>, inputs: Vec<LogicalPlan>) -> DfResult<Self> {
        match inputs.len() == self.inputs.len() {
            true => Ok(Self { inputs, ..self.clone() }),
            false => Err(SqlError::internal("a loop has as many inputs as before").into()),
        }
    }

    fn necessary_children_exprs(&self, _output_columns: &[usize]) -> Option<Vec<Vec<usize>>> {
        Some(self.inputs.iter().map(|input| (0..input.schema().fields().len()).collect()).collect())
    }
}

/// The variables of the loops around what is being planned, the innermost last.
#[derive(Debug, Default)]
pub(crate) struct Variables(Mutex<Vec<(String, SchemaRef)>>);

impl Variables {
    /// The columns of the innermost variable of that name.
    pub(crate) fn schema(&self, name: &str) -> Option<SchemaRef> {
        variable_name(name)?;
        let open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.iter().rev().find(|(known, _)| known == name).map(|(_, schema)| schema.clone())
    }

    /// Plans with these variables in reach.
    fn with<T>(&self, variables: Vec<(String, SchemaRef)>, plan: impl FnOnce() -> T) -> T {
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let n_open = lock().len();
        lock().extend(variables);
        let planned = plan();
        lock().truncate(n_open);
        planned
    }
}

/// Plans the calls that `tree` made of recursive queries.
#[derive(Debug)]
pub(crate) struct RecursionPlanner {
    pub(crate) variables: Arc<Variables>,
    /// The rewrites of this planner.
    pub(crate) chosen: Chosen,
}

impl RelationPlanner for RecursionPlanner {
    fn plan_relation(
        &self,
        relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> DfResult<RelationPlanning> {
        let node = match called_in_from(&relation) {
            Some((name, args)) if name == RECURSIVE => self.terms(&args, context)?,
            Some((name, args)) if name == MUTUALLY_RECURSIVE => self.queries(&args, context)?,
            _ => return Ok(RelationPlanning::Original(Box::new(relation))),
        };
        let plan = LogicalPlan::Extension(Extension { node: Arc::new(node) });
        Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, None))))
    }
}

impl RecursionPlanner {
    /// A loop of `UNION`: the variable has the columns of the first term.
    fn terms(&self, args: &[&SqlExpr], context: &mut dyn RelationPlannerContext) -> DfResult<LoopNode> {
        let Some(([variable, quantifier, SqlExpr::Subquery(first), SqlExpr::Subquery(step)], given)) =
            args.split_first_chunk()
        else {
            return Err(broken().into());
        };
        let variable = text(variable)?;
        let name = variable_name(&variable).unwrap_or_default().to_string();
        let first = context.plan(table_of(first))?;
        let of_first = settled_types(&first, self.chosen)?;
        let names = columns_of(&name, &first, given)?;
        let mut types: Vec<DataType> = of_first.iter().map(carried).collect();
        // (Documents and labels stay what they are in the first term.)
        let kinds = first.schema().fields().clone();
        let schema = |types: &[DataType]| of_kinds(nullable(&names, types), &kinds);
        let (mut planned, mut of_step) = self.step(&variable, schema(&types), step, context)?;
        if widened(&name, &mut types, &of_step)? {
            (planned, of_step) = self.step(&variable, schema(&types), step, context)?;
            widened(&name, &mut types, &of_step)?;
        }
        let schema = schema(&types);
        let mut inputs = vec![conform(first, &of_first, &types, &names)?, conform(planned, &of_step, &types, &names)?];
        let is_all = text(quantifier)? == "all";
        if !is_all {
            inputs = inputs.into_iter().map(|input| in_one_spelling(input, &schema)).collect::<DfResult<_>>()?;
        }
        let form = RecursionForm::Terms { is_all };
        LoopNode::try_new(vec![variable], vec![schema], form, inputs, 0)
    }

    /// The step over a variable of these columns, and the types of what it yields.
    fn step(
        &self,
        variable: &str,
        schema: SchemaRef,
        step: &Query,
        context: &mut dyn RelationPlannerContext,
    ) -> DfResult<(LogicalPlan, Vec<DataType>)> {
        let n = schema.fields().len();
        let open = vec![(variable.to_string(), schema)];
        let planned = self.variables.with(open, || context.plan(table_of(step)))?;
        let m = planned.schema().fields().len();
        if n != m {
            let message = "each UNION query must have the same number of columns";
            let detail = format!("The left one has {n}, the right one {m}.");
            return Err(SqlError::new(ErrorKind::Invalid, message).with_detail(detail).into());
        }
        let of_step = settled_types(&planned, self.chosen)?;
        Ok((planned, of_step))
    }

    /// A loop of several variables, whose columns are declared.
    fn queries(&self, args: &[&SqlExpr], context: &mut dyn RelationPlannerContext) -> DfResult<LoopNode> {
        let Some(([result, kind, rounds], bindings)) = args.split_first_chunk() else { return Err(broken().into()) };
        let (mut variables, mut schemas, mut queries) = (vec![], vec![], vec![]);
        for binding in bindings.chunks(3) {
            let [variable, SqlExpr::Subquery(declared), SqlExpr::Subquery(query)] = binding else {
                return Err(broken().into());
            };
            let declared = context.plan(table_of(declared))?;
            let names: Vec<String> = declared.schema().fields().iter().map(|field| field.name().clone()).collect();
            let types: Vec<DataType> = types_of(&declared).iter().map(carried).collect();
            variables.push(text(variable)?);
            schemas.push(nullable(&names, &types));
            queries.push(query);
        }
        let open: Vec<(String, SchemaRef)> = variables.iter().cloned().zip(schemas.iter().cloned()).collect();
        let planned = self.variables.with(open, || {
            let planned = queries.iter().map(|query| context.plan(table_of(query)));
            planned.collect::<DfResult<Vec<LogicalPlan>>>()
        })?;
        let mut inputs = Vec::with_capacity(planned.len());
        for ((plan, schema), variable) in planned.into_iter().zip(&schemas).zip(&variables) {
            inputs.push(self.declared(variable_name(variable).unwrap_or_default(), plan, schema)?);
        }
        let result = text(result)?;
        let result = variables.iter().position(|variable| *variable == result).ok_or_else(broken)?;
        let form = RecursionForm::Queries { result, limit: round_limit(&text(kind)?, &text(rounds)?) };
        LoopNode::try_new(variables, schemas, form, inputs, result)
    }

    /// The query of a variable, in the types that are declared.
    fn declared(&self, name: &str, plan: LogicalPlan, schema: &Schema) -> DfResult<LogicalPlan> {
        let of_plan = settled_types(&plan, self.chosen)?;
        let (n, m) = (schema.fields().len(), of_plan.len());
        if n != m {
            let message = format!("WITH MUTUALLY RECURSIVE query \"{name}\" declares {n} columns, and yields {m}");
            return Err(SqlError::new(ErrorKind::Type, message)
                .with_hint("List a column with its type for each of the query's.")
                .into());
        }
        for (field, is) in schema.fields().iter().zip(&of_plan) {
            let declared = field.data_type();
            // As in an assignment: literals are bigint, and decimals have the scale that they are
            // computed with.
            let is_assigned = is_exact(declared) && is_exact(is) && declared.is_integer() <= is.is_integer();
            if union_type(declared, &carried(is)).as_ref() != Some(declared) && !is_assigned && !is.is_null() {
                let (declared, is) = (sql_name(declared), sql_name(is));
                let column = field.name();
                let message = format!(
                    "WITH MUTUALLY RECURSIVE query \"{name}\" declares column \"{column}\" as {declared}, and yields {is}"
                );
                return Err(SqlError::new(ErrorKind::Type, message)
                    .with_hint(format!("Declare {column} {is}, or cast the query's column to {declared}."))
                    .into());
            }
        }
        let names: Vec<String> = schema.fields().iter().map(|field| field.name().clone()).collect();
        let types: Vec<DataType> = schema.fields().iter().map(|field| field.data_type().clone()).collect();
        conform(plan, &of_plan, &types, &names)
    }
}

impl LoopNode {
    /// The variable that the loop yields, of several.
    pub(crate) fn result(&self) -> Option<usize> {
        match self.form {
            RecursionForm::Terms { .. } => None,
            RecursionForm::Queries { result, .. } => Some(result),
        }
    }

    /// The same loop over variables of other columns.
    pub(crate) fn of(&self, schemas: Vec<SchemaRef>, inputs: Vec<LogicalPlan>) -> DfResult<LoopNode> {
        let result = self.result().unwrap_or_default();
        LoopNode::try_new(self.variables.clone(), schemas, self.form.clone(), inputs, result)
    }

    fn try_new(
        variables: Vec<String>,
        schemas: Vec<SchemaRef>,
        form: RecursionForm,
        inputs: Vec<LogicalPlan>,
        result: usize,
    ) -> DfResult<Self> {
        let fields: Fields = schemas[result].fields().clone();
        let schema = Arc::new(DFSchema::from_unqualified_fields(fields, Default::default())?);
        Ok(Self { variables, schemas, form, inputs, schema })
    }
}

/// The columns' names: those given, then those of the first term.
fn columns_of(name: &str, first: &LogicalPlan, given: &[&SqlExpr]) -> DfResult<Vec<String>> {
    let mut names = unique_names(first.schema());
    if given.len() > names.len() {
        let (n, m) = (names.len(), given.len());
        let message = format!("WITH query \"{name}\" has {n} columns available but {m} columns specified");
        return Err(SqlError::new(ErrorKind::Invalid, message).with_hint("List fewer names after the query's.").into());
    }
    for (column, given) in names.iter_mut().zip(given) {
        *column = text(given)?;
    }
    Ok(names)
}

/// Checks the types of a step against those of the variable. Whether the variable's types changed:
/// a step computes decimals of another scale, which a numeric without a scale holds, and wider
/// integers, since literals are `bigint`.
fn widened(name: &str, types: &mut [DataType], of_step: &[DataType]) -> DfResult<bool> {
    let mut is_widened = false;
    for (n, (is, step)) in types.iter_mut().zip(of_step).enumerate() {
        let step = carried(step);
        let overall = union_type(is, &step);
        if overall.as_ref() == Some(is) || *is == numeric::TYPE && is_exact(&step) {
            continue;
        }
        let wide = match &overall {
            _ if is.is_decimal() && is_exact(&step) => Some(numeric::TYPE),
            Some(overall) if is.is_integer() && overall.is_integer() => Some(overall.clone()),
            _ => None,
        };
        if let Some(wide) = wide {
            *is = wide;
            is_widened = true;
            continue;
        }
        let (first, overall) = (sql_name(is), sql_name(&overall.unwrap_or(step)));
        let message = format!(
            "recursive query \"{name}\" column {} has type {first} in non-recursive term but type {overall} overall",
            n + 1
        );
        return Err(SqlError::new(ErrorKind::Type, message)
            .with_hint("Cast the output of the non-recursive term to the correct type.")
            .into());
    }
    Ok(is_widened)
}

/// The rows of a UNION with documents as those are that equal them, without zeros at the end of
/// numbers: the loop finds rows that it has by what they are kept as.
fn in_one_spelling(plan: LogicalPlan, schema: &Schema) -> DfResult<LogicalPlan> {
    if let Some(field) = schema.fields().iter().find(|field| *field.data_type() == INTERVAL) {
        let what = format!("UNION of a recursive query with an interval (column \"{}\")", field.name());
        let hint = "Write UNION ALL, or carry extract(epoch FROM i) and make the interval outside.";
        return Err(SqlError::unsupported(what, hint)
            .with_detail("1 day and 24 hours are equal, and would be two rows.")
            .into());
    }
    let is_jsonb = |field: &Field| form_of(field) == Some(DocumentForm::Jsonb);
    if !schema.fields().iter().any(|field| is_jsonb(field)) {
        return Ok(plan);
    }
    let columns = plan.schema().columns().into_iter().zip(schema.fields()).map(|(column, field)| {
        let name = column.name.clone();
        let value = Expr::Column(column);
        if is_jsonb(field) { call("__jsonb_plain", vec![value]).alias(name) } else { value }
    });
    Ok(LogicalPlan::Projection(Projection::try_new(columns.collect(), Arc::new(plan))?))
}

fn is_exact(data_type: &DataType) -> bool {
    is_number(data_type) && !data_type.is_floating()
}

/// The type of a variable's column: what is in lists and rows may be NULL in it, as the column may.
fn carried(data_type: &DataType) -> DataType {
    let open = |field: &Field, name: &str| Arc::new(Field::new(name, carried(field.data_type()), true));
    match canonical(data_type) {
        DataType::List(element) => DataType::List(open(&element, "item")),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(|field| open(field, field.name())).collect()),
        other => other,
    }
}

fn nullable(names: &[String], types: &[DataType]) -> SchemaRef {
    let fields = names.iter().zip(types).map(|(name, data_type)| Field::new(name, data_type.clone(), true));
    Arc::new(Schema::new(fields.collect::<Vec<Field>>()))
}

/// The columns with the marks of texts that are more than texts.
fn of_kinds(schema: SchemaRef, kinds: &Fields) -> SchemaRef {
    let fields = schema.fields().iter().zip(kinds).map(|(field, of)| match is_kind_of_text(of) {
        true => Arc::new(field.as_ref().clone().with_metadata(of.metadata().clone())),
        false => field.clone(),
    });
    Arc::new(Schema::new(fields.collect::<Fields>()))
}

fn round_limit(kind: &str, rounds: &str) -> RoundLimit {
    match (kind, rounds.parse().ok().and_then(NonZeroU64::new)) {
        ("return", Some(rounds)) => RoundLimit::Return(rounds),
        ("error", Some(rounds)) => RoundLimit::Error(rounds),
        _ => RoundLimit::None,
    }
}

fn text(expr: &SqlExpr) -> DfResult<String> {
    match expr {
        SqlExpr::Value(value) => match &value.value {
            Value::Number(digits, _) => Ok(digits.clone()),
            other => other.clone().into_string().ok_or_else(|| broken().into()),
        },
        _ => Err(broken().into()),
    }
}

fn broken() -> SqlError {
    SqlError::internal("a recursive query has lost its parts")
}

/// Whether a recursive query in the plan refers to columns of a query around.
pub(crate) fn recurs_over_outer(plan: &LogicalPlan) -> bool {
    let recurs = |node: &LogicalPlan| match node {
        LogicalPlan::Extension(extension) => {
            extension.node.as_any().is::<LoopNode>() && extension.node.inputs().into_iter().any(mentions_outer)
        }
        _ => false,
    };
    plan.exists(|node| Ok(recurs(node))).unwrap_or(false)
}

/// The error for such a query: a loop is one for all rows outside.
pub(crate) fn recursion_over_outer() -> SqlError {
    SqlError::unsupported(
        "a recursive query that refers to columns of an outer query",
        "Begin with all outer rows, carry their key as a column, and join: WITH RECURSIVE r(key, x) AS (SELECT id, id FROM t UNION SELECT r.key, .. FROM r ..) SELECT .. FROM t JOIN r ON r.key = t.id.",
    )
}
