//! Which values a column takes: what PostgreSQL converts by assignment.
//!
//! ```text
//! INSERT INTO t (i) SELECT s FROM t    column "i" is of type integer but expression is of type text
//! INSERT INTO t (i) SELECT '1'         a literal without a type is read as the column's
//! ```

use anabranch_batch::TextLimit;
use arrow::datatypes::DataType;
use datafusion_common::{DFSchema, JoinType};
use datafusion_expr::logical_plan::Distinct;
use datafusion_expr::{Expr, ExprSchemable, LogicalPlan};

use super::target::{Target, column};
use crate::error::{ErrorKind, Result, SqlError};
use crate::resolve::context::is_kept_view;
use crate::resolve::documents::shown_form_of;
use crate::resolve::operands::{marked_name, operand_name};
use crate::resolve::type_names::{is_number, is_text, sql_name};

impl Target {
    /// A column of a plan, converted to the type of a column of the table.
    pub(super) fn assign_column(&self, at: usize, rows: &LogicalPlan, n: usize) -> Result<Expr> {
        let value = column(rows, n);
        if !is_untyped_column(rows, n) || !is_text(&value.get_type(rows.schema())?) {
            self.check_text(at, &value, rows.schema())?;
            self.check_plain(at, plain_type_of_column(rows, n))?;
        }
        self.assign(at, value, rows.schema())
    }

    /// A value of VALUES, converted to the type of a column of the table.
    pub(super) fn assign_value(&self, at: usize, value: Expr, schema: &DFSchema) -> Result<Expr> {
        if !is_untyped(&value, None) || !is_text(&value.get_type(schema)?) {
            self.check_text(at, &value, schema)?;
            self.check_plain(at, plain_type(&value, None))?;
        }
        self.assign(at, value, schema)
    }

    /// Refuses a text for a column of another type, and other values for a document, a uuid or a
    /// label. (A text may be one of these that has lost its mark.)
    fn check_text(&self, at: usize, value: &Expr, schema: &DFSchema) -> Result<()> {
        let field = self.schema.field(at);
        let is = value.get_type(schema)?;
        let is_other = !is.is_null() && marked_name(field).is_some();
        match if is_text(&is) { !is_text(field.data_type()) } else { is_other && is_text(field.data_type()) } {
            true => Err(self.misassigned(at, &operand_name(value, schema))),
            false => Ok(()),
        }
    }

    /// Refuses what is surely a text, of the type of that name, for a document, a uuid or a label.
    fn check_plain(&self, at: usize, is: Option<String>) -> Result<()> {
        match is.filter(|_| is_text(self.schema.field(at).data_type()) && marked_name(self.schema.field(at)).is_some())
        {
            Some(is) => Err(self.misassigned(at, &is)),
            None => Ok(()),
        }
    }

    pub(super) fn misassigned(&self, at: usize, is: &str) -> SqlError {
        let field = self.schema.field(at);
        let name = field.name();
        let wanted = marked_name(field).unwrap_or_else(|| sql_name(field.data_type()));
        SqlError::new(ErrorKind::Type, format!("column \"{name}\" is of type {wanted} but expression is of type {is}"))
            .with_hint("You will need to rewrite or cast the expression.")
    }
}

/// Whether a column of a plan is of literals without a type alone. What a relation, a join, an
/// aggregate or a set operation yields has one.
fn is_untyped_column(rows: &LogicalPlan, n: usize) -> bool {
    match rows {
        LogicalPlan::Projection(projection) => {
            projection.expr.get(n).is_none_or(|expr| is_untyped(expr, Some(&projection.input)))
        }
        LogicalPlan::Values(values) => {
            values.values.iter().all(|row| row.get(n).is_none_or(|value| is_untyped(value, None)))
        }
        LogicalPlan::Sort(_)
        | LogicalPlan::Limit(_)
        | LogicalPlan::Filter(_)
        | LogicalPlan::SubqueryAlias(_)
        | LogicalPlan::Distinct(_) => rows.inputs().first().is_none_or(|input| is_untyped_column(input, n)),
        _ => false,
    }
}

fn is_untyped(value: &Expr, input: Option<&LogicalPlan>) -> bool {
    match value {
        Expr::Literal(..) | Expr::Placeholder(_) => true,
        Expr::Alias(alias) => is_untyped(&alias.expr, input),
        Expr::ScalarSubquery(query) => is_untyped_column(&query.subquery, 0),
        Expr::Column(name) => input.is_some_and(|input| {
            input.schema().maybe_index_of_column(name).is_some_and(|n| is_untyped_column(input, n))
        }),
        _ => false,
    }
}

/// The type of a column that is surely a text: one of a table, or what a function of texts gives.
/// Other texts may be documents, uuids or labels that have lost their marks.
fn plain_type_of_column(rows: &LogicalPlan, n: usize) -> Option<String> {
    match rows {
        LogicalPlan::TableScan(scan) if !is_kept_view(scan.source.as_ref()) => {
            let field = rows.schema().field(n);
            let is_plain = is_text(field.data_type()) && marked_name(field).is_none();
            is_plain.then(|| shown_form_of(field).map_or("text", TextLimit::type_name).to_owned())
        }
        LogicalPlan::Projection(projection) => plain_type(projection.expr.get(n)?, Some(&projection.input)),
        LogicalPlan::Sort(_)
        | LogicalPlan::Limit(_)
        | LogicalPlan::Filter(_)
        | LogicalPlan::SubqueryAlias(_)
        | LogicalPlan::Distinct(Distinct::All(_)) => plain_type_of_column(rows.inputs().first()?, n),
        LogicalPlan::Join(join) if join.join_type.is_outer() || join.join_type == JoinType::Inner => {
            let n_left = join.left.schema().fields().len();
            match n.checked_sub(n_left) {
                None => plain_type_of_column(&join.left, n),
                Some(n) => plain_type_of_column(&join.right, n),
            }
        }
        _ => None,
    }
}

fn plain_type(value: &Expr, input: Option<&LogicalPlan>) -> Option<String> {
    match value {
        Expr::Alias(alias) => plain_type(&alias.expr, input),
        Expr::Column(name) => {
            let input = input?;
            plain_type_of_column(input, input.schema().maybe_index_of_column(name)?)
        }
        Expr::Cast(cast)
            if matches!(cast.expr.as_ref(), Expr::Literal(..))
                && is_text(cast.field.data_type())
                && marked_name(&cast.field).is_none() =>
        {
            Some("text".to_owned())
        }
        Expr::ScalarFunction(call) if OF_TEXT.contains(&call.func.name()) => Some("text".to_owned()),
        _ => None,
    }
}

/// Functions that give texts, whatever they are given.
const OF_TEXT: [&str; 17] = [
    "upper",
    "lower",
    "initcap",
    "concat",
    "concat_ws",
    "substr",
    "replace",
    "translate",
    "reverse",
    "repeat",
    "btrim",
    "ltrim",
    "rtrim",
    "lpad",
    "rpad",
    "split_part",
    "to_char",
];

/// Whether a value of a type becomes one of another by assignment, literals included.
pub(super) fn assignable(from: &DataType, to: &DataType) -> bool {
    let text = |t: &DataType| matches!(t, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    let bytes = |t: &DataType| matches!(t, DataType::Binary | DataType::BinaryView);
    let time = |t: &DataType| matches!(t, DataType::Time32(_) | DataType::Time64(_));
    let moment = |t: &DataType| matches!(t, DataType::Timestamp(..) | DataType::Date32 | DataType::Date64);
    let span = |t: &DataType| matches!(t, DataType::Interval(_) | DataType::Duration(_));
    let list = |t: &DataType| matches!(t, DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..));
    from == to
        || *from == DataType::Null
        || text(from)
        || text(to)
        || (is_number(from) && is_number(to))
        || (bytes(from) && bytes(to))
        || (moment(from) && (moment(to) || time(to)))
        || (time(from) && (time(to) || span(to)))
        || (span(from) && (span(to) || time(to)))
        || (list(from) && list(to))
}
