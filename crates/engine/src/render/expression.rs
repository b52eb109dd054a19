//! From the planner's expressions to what operators evaluate.
//!
//! An [`Expr`] is resolved against the schema of its input, turned into DataFusion's vectorised
//! form, made strict (integer overflow is an error, as in PostgreSQL), and bound to the columns
//! that it really needs, so that a join gathers only those. Cost: once a query to compile, in
//! proportion to the input's columns, but for an expression that is a column: that of a search for
//! it, so that wide rows pass on in next to no time; one `RecordBatch` of pointers a batch to
//! evaluate.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anabranch_batch::{Columns, types};
use anabranch_operators::expression::arithmetic::Arithmetic;
use anabranch_operators::expression::condition::Condition;
use anabranch_operators::expression::{Column as PlainColumn, Constant, Expression, ExpressionRef};
use anabranch_operators::stateless::filter_project::Stage;
use anabranch_plan::positions::position_near;
use anabranch_sql::input::in_words;
use anabranch_sql::operation_error;
use anabranch_sql::output::printer;
use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, new_null_array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion_common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion_common::{DFSchema, DataFusionError};
use datafusion_expr::execution_props::ExecutionProps;
use datafusion_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion_expr::{Expr, Operator};
use datafusion_physical_expr::expressions::{BinaryExpr, CastExpr, Column, Literal};
use datafusion_physical_expr::utils::collect_columns;
use datafusion_physical_expr::{PhysicalExpr, create_physical_expr};

use super::kernels;
use super::moments::Moments;
use super::shift::Shift;
use crate::error::Error;

/// An expression over the columns of some input, by position.
#[derive(Clone)]
pub struct Compiled {
    form: Form,
    /// As planned.
    output_type: DataType,
}

#[derive(Clone)]
enum Form {
    /// A column, which is no condition.
    Column {
        index: usize,
        name: String,
        /// As planned.
        data_type: DataType,
    },
    General(General),
}

/// An expression in the planner's form.
#[derive(Clone)]
struct General {
    expr: Arc<dyn PhysicalExpr>,
    /// Names and types of the input's columns: of those that it reads as planned, of the others as
    /// stored.
    input: SchemaRef,
}

impl General {
    fn constant(&self) -> Option<ArrayRef> {
        self.expr.downcast_ref::<Literal>()?;
        let columns = self.input.fields().iter().map(|field| new_null_array(field.data_type(), 1));
        self.evaluate(&columns.collect(), 1).ok()
    }

    /// The columns, those that are read as the planner's form takes them.
    fn as_planned(&self, columns: &Columns) -> Vec<ArrayRef> {
        let columns = columns.iter().zip(self.input.fields());
        let planned = columns.map(|(column, field)| match column.data_type() == field.data_type() {
            true => column.clone(),
            false => types::widened(column),
        });
        planned.collect()
    }

    fn evaluate(&self, columns: &Columns, rows: usize) -> Result<ArrayRef, DataFusionError> {
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.input), self.as_planned(columns), &options)
            .unwrap_or_else(|error| panic!("columns are of the planned types: {error}"));
        self.expr.evaluate(&batch).and_then(|value| value.into_array(rows))
    }

    fn moved(&self, types: &[DataType], position: &dyn Fn(usize) -> usize) -> General {
        let read: BTreeMap<usize, &Field> =
            read_by(&self.expr).into_iter().map(|column| (position(column), self.input.field(column))).collect();
        let fields = types.iter().enumerate().map(|(index, data_type)| match read.get(&index) {
            Some(field) => Field::new(field.name(), field.data_type().clone(), true),
            None => Field::new(format!("#{index}"), data_type.clone(), true),
        });
        let input = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let expr = Arc::clone(&self.expr)
            .transform_up(|expr| {
                Ok(match expr.downcast_ref::<Column>() {
                    Some(column) => {
                        let moved = Column::new(column.name(), position(column.index()));
                        Transformed::yes(Arc::new(moved) as Arc<dyn PhysicalExpr>)
                    }
                    None => Transformed::no(expr),
                })
            })
            .data()
            .expect("renumbering columns does not fail");
        General { expr, input }
    }
}

impl Compiled {
    /// Resolves and compiles an expression.
    ///
    /// # Errors
    /// `Invalid` when the planner knows no vectorised form of it.
    pub fn new(expr: &Expr, schema: &DFSchema) -> Result<Compiled, Error> {
        Self::near(expr, schema, 0)
    }

    /// As [`new`](Self::new), of an expression that likely is the column `near`.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn near(expr: &Expr, schema: &DFSchema, near: usize) -> Result<Compiled, Error> {
        if let Some(index) = position_near(expr, schema, near)
            && let field = schema.field(index)
            && *field.data_type() != DataType::Boolean
        {
            return Ok(Compiled::of_column(index, field.name().clone(), field.data_type()));
        }
        let context = PhysicalPlanningContext::default();
        let compiled = create_physical_expr(expr, schema, &ExecutionProps::new(), &context).map_err(|error| {
            let message = plain_message(&error);
            let known = operation_error(&message).map(Error::from);
            known.unwrap_or_else(|| Error::invalid(format!("cannot evaluate {expr}: {message}")))
        })?;
        let input = nullable(schema.as_arrow());
        let output_type = compiled
            .data_type(&input)
            .map_err(|error| Error::invalid(format!("cannot type {expr}: {}", plain_message(&error))))?;
        let expr = compiled
            .transform_up(|expr| Ok(strict(expr, &input)))
            .data()
            .map_err(|error| Error::internal(plain_message(&error)))?;
        let input = stored_but(&input, &read_by(&expr));
        Ok(Compiled { form: Form::General(General { expr, input }), output_type })
    }

    /// A plain column, among columns of the given types (as stored).
    pub fn column(column: usize, types: &[DataType]) -> Compiled {
        Compiled::of_column(column, format!("#{column}"), &types[column])
    }

    fn of_column(index: usize, name: String, data_type: &DataType) -> Compiled {
        let data_type = types::widened_type(data_type);
        Compiled { output_type: data_type.clone(), form: Form::Column { index, name, data_type } }
    }

    /// The same expression with its values cast to a type (planned or stored), where they are of
    /// another.
    pub fn typed(mut self, data_type: &DataType) -> Compiled {
        self.output_type = types::widened_type(data_type);
        self
    }

    /// Input columns that the expression reads.
    pub fn columns(&self) -> BTreeSet<usize> {
        match &self.form {
            Form::Column { index, .. } => BTreeSet::from([*index]),
            Form::General(general) => read_by(&general.expr),
        }
    }

    /// The input column that the expression merely repeats.
    pub fn as_column(&self) -> Option<usize> {
        let (index, data_type) = match &self.form {
            Form::Column { index, data_type, .. } => (*index, data_type),
            Form::General(general) => {
                let index = general.expr.downcast_ref::<Column>()?.index();
                (index, general.input.field(index).data_type())
            }
        };
        (*data_type == self.output_type).then_some(index)
    }

    /// The same expression over other inputs: column `i` now stands at `position(i)`, among columns
    /// of `types` (as stored).
    pub fn moved(&self, types: &[DataType], position: &dyn Fn(usize) -> usize) -> Compiled {
        let form = match &self.form {
            Form::Column { index, name, data_type } => {
                Form::Column { index: position(*index), name: name.clone(), data_type: data_type.clone() }
            }
            Form::General(general) => Form::General(general.moved(types, position)),
        };
        Compiled { form, output_type: self.output_type.clone() }
    }

    /// For operators.
    pub fn into_ref(self) -> ExpressionRef {
        if let Some(column) = self.as_column() {
            return Arc::new(PlainColumn(column));
        }
        if let Some(one) = self.constant() {
            return Arc::new(Constant::new(one, Arc::new(self)));
        }
        let term = match &self.form {
            Form::General(general) => kernels::term(&general.expr, &general.input, &self.output_type),
            Form::Column { .. } => None,
        };
        let output_type = types::narrowed_type(&self.output_type);
        let general: ExpressionRef = Arc::new(self);
        match term.and_then(|term| Arithmetic::new(term, output_type, Arc::clone(&general))) {
            Some(arithmetic) => Arc::new(arithmetic),
            None => general,
        }
    }

    /// The value of a literal, in one row.
    fn constant(&self) -> Option<ArrayRef> {
        match &self.form {
            Form::General(general) => self.converted(general.constant()?).ok(),
            Form::Column { .. } => None,
        }
    }

    /// For operators that ask only of which rows it is true: NULL may become false.
    pub fn into_filter(self) -> ExpressionRef {
        let tests = match &self.form {
            Form::General(general) => kernels::tests(&general.expr, &general.input),
            Form::Column { .. } => None,
        };
        match tests {
            Some(tests) => Arc::new(Condition::new(tests)),
            None => self.into_ref(),
        }
    }

    /// Whether it is a condition that needs no planner's form.
    pub fn is_condition(&self) -> bool {
        matches!(&self.form, Form::General(general) if kernels::tests(&general.expr, &general.input).is_some())
    }

    /// A value of the expression as it is stored.
    fn converted(&self, value: ArrayRef) -> Result<ArrayRef, String> {
        let value = match value.data_type() == &self.output_type {
            true => value,
            false => cast(&value, &self.output_type).map_err(|error| error.to_string())?,
        };
        match self.output_type {
            DataType::Decimal128(..) => types::narrowed(&value).map_err(|error| error.detail()),
            _ => Ok(value),
        }
    }

    fn name_of(&self, column: usize) -> &str {
        match &self.form {
            Form::Column { name, .. } => name,
            Form::General(general) => general.input.field(column).name(),
        }
    }

    /// The error, with the values of the single row it happened on.
    fn describe(&self, error: &DataFusionError, columns: &Columns) -> String {
        let message = row_error_message(error);
        // (What stands beside it is what the planner counts of the subquery's rows.)
        if message.starts_with(MORE_THAN_ONE) {
            return message;
        }
        let values: Vec<String> = self
            .columns()
            .into_iter()
            .filter(|column| is_told(self.name_of(*column)))
            .map(|column| {
                let value = &columns[column];
                let mut text = String::new();
                match value.is_null(0) {
                    true => text.push_str("NULL"),
                    false => printer(value)(0, &mut text),
                }
                format!("{} = {text}", self.name_of(column))
            })
            .collect();
        if values.is_empty() { message } else { format!("{message} (where {})", values.join(", ")) }
    }
}

/// What a subquery with too many rows is refused with.
const MORE_THAN_ONE: &str = "more than one row returned by a subquery";

/// Whether a column is one of the query's, not of the planner's: the planner's names begin with two
/// underscores, and so does a word in the names of what is computed of them.
fn is_told(name: &str) -> bool {
    let mut words = name.split(|c: char| !c.is_alphanumeric() && c != '_');
    !words.any(|word| word.starts_with("__"))
}

impl Expression for Compiled {
    fn evaluate(&self, columns: &Columns, rows: usize) -> Result<ArrayRef, String> {
        let value = match &self.form {
            Form::Column { index, .. } => types::widened(&columns[*index]),
            Form::General(general) => general
                .evaluate(columns, rows)
                .map_err(|error| if rows == 1 { self.describe(&error, columns) } else { row_error_message(&error) })?,
        };
        self.converted(value)
    }

    fn as_column(&self) -> Option<usize> {
        Compiled::as_column(self)
    }
}

/// Filter and projection over columns of these types: what only the filter reads is not copied.
pub(crate) fn stage_of(filter: Vec<Compiled>, project: Vec<Compiled>, types: &[DataType]) -> Stage {
    let (kept, project) = match filter.is_empty() {
        true => (None, project),
        false => {
            let kept: Vec<usize> =
                project.iter().flat_map(Compiled::columns).collect::<BTreeSet<_>>().into_iter().collect();
            let kept_types: Vec<DataType> = kept.iter().map(|column| types[*column].clone()).collect();
            let place = |column: usize| kept.binary_search(&column).expect("what is read is kept");
            let project = project.iter().map(|compiled| compiled.moved(&kept_types, &place)).collect();
            (Some(kept), project)
        }
    };
    Stage {
        filter: filter.into_iter().map(Compiled::into_filter).collect(),
        kept,
        project: Some(project.into_iter().map(Compiled::into_ref).collect()),
    }
}

/// Input columns that an expression reads.
fn read_by(expr: &Arc<dyn PhysicalExpr>) -> BTreeSet<usize> {
    collect_columns(expr).iter().map(Column::index).collect()
}

/// The fields as they are stored, but these columns as planned.
fn stored_but(schema: &Schema, planned: &BTreeSet<usize>) -> SchemaRef {
    let fields = schema.fields().iter().enumerate().map(|(column, field)| {
        let data_type = match planned.contains(&column) {
            true => types::widened_type(field.data_type()),
            false => types::narrowed_type(field.data_type()),
        };
        Field::new(field.name(), data_type, true)
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// NULL in every row.
struct NullColumn(DataType);

/// NULL in every row.
pub(crate) fn null_column(data_type: &DataType) -> ExpressionRef {
    Arc::new(Constant::new(new_null_array(data_type, 1), Arc::new(NullColumn(data_type.clone()))))
}

impl Expression for NullColumn {
    fn evaluate(&self, _columns: &Columns, rows: usize) -> Result<ArrayRef, String> {
        Ok(new_null_array(&self.0, rows))
    }
}

/// The same fields, all of which may be NULL: whether they are is not a matter of evaluation.
pub fn nullable(schema: &Schema) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| Field::new(field.name(), field.data_type().clone(), true));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// Integer arithmetic that overflows is an error instead of wrapping round. Times and constants of
/// fixed length are added as integers.
fn strict(expr: Arc<dyn PhysicalExpr>, input: &Schema) -> Transformed<Arc<dyn PhysicalExpr>> {
    if let Some(cast) = expr.downcast_ref::<CastExpr>().and_then(|cast| Moments::of_cast(cast, input)) {
        return Transformed::yes(Arc::new(cast));
    }
    let Some(binary) = expr.downcast_ref::<BinaryExpr>() else {
        return Transformed::no(expr);
    };
    if !matches!(binary.op(), Operator::Plus | Operator::Minus | Operator::Multiply) {
        return Transformed::no(expr);
    }
    if let Some(shift) = Shift::of(binary, input) {
        return Transformed::yes(Arc::new(shift));
    }
    if let Some(sum) = Moments::of_sum(binary, input) {
        return Transformed::yes(Arc::new(sum));
    }
    let strict = BinaryExpr::new(Arc::clone(binary.left()), *binary.op(), Arc::clone(binary.right()));
    Transformed::yes(Arc::new(strict.with_fail_on_overflow(true)))
}

/// The first line of a DataFusion message, without the names of its layers.
pub(crate) fn plain_message(error: &DataFusionError) -> String {
    let text = error.strip_backtrace();
    let mut text = text.lines().next().unwrap_or_default().trim();
    loop {
        let stripped = [
            "Error during planning: ",
            "Arrow error: ",
            "Execution error: ",
            "Schema error: ",
            "Cast error: ",
            "Invalid argument error: ",
            "Compute error: ",
            "Arithmetic overflow: ",
            "Parser error: ",
            "Optimizer rule ",
            "type_coercion\ncaused by\n",
        ]
        .iter()
        .find_map(|layer| text.strip_prefix(layer));
        match stripped {
            Some(rest) => text = rest.trim(),
            None => return text.to_owned(),
        }
    }
}

/// Arrays of whole numbers whose least has no absolute value in its type, and that type.
const ABSOLUTE: [(&str, &str); 4] =
    [("Int8Array", "tinyint"), ("Int16Array", "smallint"), ("Int32Array", "integer"), ("Int64Array", "bigint")];

/// What went wrong with a row, in PostgreSQL's words where it has some.
fn row_error_message(error: &DataFusionError) -> String {
    let text = plain_message(error);
    let lower = text.to_lowercase();
    if lower.contains("divide by zero") || lower.contains("division by zero") {
        return "division by zero".to_owned();
    }
    if let Some((_, of)) = ABSOLUTE.iter().find(|(array, _)| text.starts_with(&format!("{array} overflow on abs("))) {
        return format!("{of} out of range");
    }
    if lower.contains("overflow") && !lower.contains("field overflow") && !lower.contains("value out of range") {
        return format!("value out of range: {text}");
    }
    in_words(&text)
}
