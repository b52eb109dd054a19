//! The table that a statement changes: its columns as values for them are checked and converted.

use std::collections::HashMap;
use std::sync::Arc;

use anabranch_plan::{Node, Plan};
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_common::{Column, DFSchema, ScalarValue};
use datafusion_expr::logical_plan::{LogicalPlan, LogicalPlanBuilder};
use datafusion_expr::sqlparser::ast::{self, SetExpr};
use datafusion_expr::{Expr, ExprSchemable, cast, lit};

use super::assigned::assignable;
use super::places::PLACE;
use crate::error::{ErrorKind, Result, SqlError};
use crate::functions::forms::UNMARKED;
use crate::functions::input::convert;
use crate::functions::table::call;
use crate::literal_rows::literal_columns;
use crate::passes::tree::rewrite_expr;
use crate::passes::tree::values_queries::has_subquery;
use crate::resolve::catalog::Relation;
use crate::resolve::context::Context;
use crate::resolve::operands::operand_name;
use crate::resolve::suggest::nearest;
use crate::resolve::type_names::{is_number, is_text};
use crate::syntax::statement::{Insert, Made, Numbering, NumberingForm, ObjectKind, Overriding};
use crate::syntax::subscripts;

/// A table to be changed.
pub(super) struct Target {
    pub(super) name: String,
    pub(super) schema: SchemaRef,
    /// Positions of the columns of each key in which rows differ, the primary key first.
    keys: Vec<Vec<usize>>,
    /// One entry a column.
    defaults: Vec<Option<ast::Expr>>,
    /// Where the values of each column come from; one entry a column.
    made: Vec<Made>,
}

impl Target {
    pub(super) fn of(context: &Context, name: &str, action: &str) -> Result<Self> {
        let Relation { kind, schema, primary_key, .. } = context.relation(name)?;
        let (is, hint) = match kind {
            ObjectKind::Table => {
                let mut defaults = context.catalog().defaults(name);
                defaults.resize(schema.fields().len(), None);
                let mut made = context.catalog().made(name);
                made.resize(schema.fields().len(), Made::Given);
                let primary = std::iter::once(primary_key).filter(|key| !key.is_empty());
                let keys = primary.chain(context.catalog().unique_keys(name)).collect();
                return Ok(Self { name: name.to_string(), schema, keys, defaults, made });
            }
            ObjectKind::Source => ("a source", "A source's rows come from its connector; write to a table."),
            ObjectKind::View | ObjectKind::MaterializedView => ("a view", "Change the tables it reads."),
            ObjectKind::Index => ("an index", "Name the table."),
            ObjectKind::Sequence => ("a sequence", "ALTER SEQUENCE and setval() change it."),
        };
        Err(SqlError::new(ErrorKind::Invalid, format!("cannot {action} \"{name}\": it is {is}")).with_hint(hint))
    }

    /// Positions of the named columns; all columns when none is named.
    pub(super) fn positions(&self, names: &[String]) -> Result<Vec<usize>> {
        if names.is_empty() {
            return Ok((0..self.schema.fields().len()).collect());
        }
        self.positions_of(names)
    }

    pub(super) fn fields(&self, columns: &[usize]) -> Vec<Option<FieldRef>> {
        columns.iter().map(|at| Some(Arc::clone(&self.schema.fields()[*at]))).collect()
    }

    pub(super) fn positions_of(&self, names: &[String]) -> Result<Vec<usize>> {
        let mut positions: Vec<usize> = Vec::with_capacity(names.len());
        for name in names {
            let Some((at, _)) = self.schema.column_with_name(name) else {
                let known = self.schema.fields().iter().map(|field| field.name().as_str());
                let hint = nearest(name, known).map(|n| format!("Perhaps you meant the column \"{n}\"."));
                return Err(SqlError::new(
                    ErrorKind::UnknownName,
                    format!("column \"{name}\" of table \"{}\" does not exist", self.name),
                )
                .with_hint(hint.unwrap_or_default()));
            };
            if positions.contains(&at) {
                return Err(SqlError::new(ErrorKind::Duplicate, format!("column \"{name}\" specified more than once")));
            }
            positions.push(at);
        }
        Ok(positions)
    }

    /// The key that a conflict names; the first one if it names none.
    pub(super) fn arbiter(&self, insert: &Insert) -> Result<&[usize]> {
        let named = insert.conflict.iter().flat_map(|conflict| &conflict.columns);
        let mut named =
            named.map(|name| self.positions_of(std::slice::from_ref(name))).collect::<Result<Vec<_>>>()?.concat();
        named.sort_unstable();
        let is_named = |key: &Vec<usize>| {
            let mut key = key.clone();
            key.sort_unstable();
            named.is_empty() || named == key
        };
        self.keys.iter().find(|key| is_named(key)).map(Vec::as_slice).ok_or_else(|| {
            let message = "there is no unique constraint matching the ON CONFLICT specification";
            SqlError::new(ErrorKind::Invalid, message)
                .with_hint(format!("Name a key of \"{}\": PRIMARY KEY and UNIQUE declare them.", self.name))
        })
    }

    /// VALUES with a subquery as a query of its own, which knows nothing of the table: defaults are
    /// in place of `DEFAULT`, and each row ends with its place where rows are numbered.
    pub(super) fn with_row_defaults(&self, query: &ast::Query, columns: &[usize]) -> Result<Option<ast::Query>> {
        let SetExpr::Values(values) = query.body.as_ref() else { return Ok(None) };
        if !has_subquery(values) {
            return Ok(None);
        }
        let mut filled = query.clone();
        if let SetExpr::Values(values) = filled.body.as_mut() {
            for (place, row) in values.rows.iter_mut().enumerate() {
                for (value, at) in row.content.iter_mut().zip(columns).filter(|(value, _)| is_default(value)) {
                    *value = self.default_value(*at)?;
                }
                if self.is_numbered() {
                    row.content.push(ast::Expr::value(ast::Value::Number(place.to_string(), false)));
                }
            }
        }
        Ok(Some(filled))
    }

    /// What a column that is given has where nothing is.
    fn default_of(&self, at: usize) -> ast::Expr {
        self.defaults[at].clone().unwrap_or_else(|| ast::Expr::value(ast::Value::Null))
    }

    fn default_value(&self, at: usize) -> Result<ast::Expr> {
        if !matches!(self.made[at], Made::Given) {
            let name = self.schema.field(at).name();
            let what = format!("DEFAULT of column \"{name}\" beside a subquery in VALUES");
            return Err(SqlError::unsupported(what, "The column makes its values: leave it out."));
        }
        Ok(self.default_of(at))
    }

    /// The columns of the rows that an insertion proposes, `given` values each, as a list; what the
    /// conflict names must be a key.
    pub(super) fn proposed(&self, insert: &Insert, given: usize) -> Result<String> {
        self.arbiter(insert)?;
        let all = self.schema.fields().iter().take(given).map(|field| field.name().clone());
        let names: Vec<String> = if insert.columns.is_empty() { all.collect() } else { insert.columns.clone() };
        Ok(names.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", "))
    }

    /// The rows of the table that `VALUES` of plain literals for these columns are, if they surely
    /// fit, and the columns left out have no default.
    pub(super) fn literal_rows(&self, values: &ast::Values, columns: &[usize]) -> Option<Arc<Plan>> {
        if self.made.iter().any(|made| !matches!(made, Made::Given)) {
            return None;
        }
        let mut is_given = vec![false; self.defaults.len()];
        columns.iter().for_each(|at| is_given[*at] = true);
        if self.defaults.iter().zip(&is_given).any(|(default, is_given)| default.is_some() && !is_given) {
            return None;
        }
        let types: Vec<DataType> = columns.iter().map(|at| self.schema.field(*at).data_type().clone()).collect();
        let given = literal_columns(values, &types)?;
        let mut table = vec![None; self.schema.fields().len()];
        columns.iter().zip(given).for_each(|(at, column)| table[*at] = Some(column));
        let row = |row: usize| {
            let cells = table.iter().zip(self.schema.fields()).map(|(column, field)| match column {
                Some(column) => ScalarValue::try_from_array(column, row).ok(),
                None => ScalarValue::try_from(field.data_type()).ok(),
            });
            cells.collect::<Option<Vec<ScalarValue>>>()
        };
        let rows = (0..values.rows.len()).map(row).collect::<Option<Vec<_>>>()?;
        // (Whether a column may be NULL is the engine's to check.)
        let fields = self.schema.fields().iter().map(|field| Field::new(field.name(), field.data_type().clone(), true));
        let schema = DFSchema::from_unqualified_fields(fields.collect(), HashMap::new()).ok()?;
        Some(Arc::new(Plan { node: Node::Constant { rows }, schema: Arc::new(schema) }))
    }

    /// `VALUES` for these columns, each value converted to its column's type, and how many values a
    /// row has. With columns that number rows, marks follow: see the [module](self).
    pub(super) fn values(
        &self,
        context: &Context,
        values: &ast::Values,
        columns: &[usize],
        insert: &Insert,
    ) -> Result<(LogicalPlan, usize)> {
        let nothing = DFSchema::empty();
        let width = values.rows.first().map_or(0, |row| row.content.len());
        let mut rows = Vec::with_capacity(values.rows.len());
        for (place, row) in values.rows.iter().enumerate() {
            let row = &row.content;
            if row.len() > columns.len() {
                return Err(SqlError::new(ErrorKind::Invalid, "INSERT has more expressions than target columns")
                    .with_detail(format!("There are {} columns and {} expressions.", columns.len(), row.len())));
            }
            if row.len() != width {
                return Err(SqlError::new(ErrorKind::Syntax, "VALUES lists must all be the same length"));
            }
            let mut exprs = Vec::with_capacity(row.len());
            for (at, value) in columns.iter().zip(row) {
                let expr = if is_default(value) {
                    self.default(context, *at)?
                } else {
                    self.check_given(*at, insert.overriding)?;
                    context.expression(rewrite_expr(value, Some(context.catalog()))?, &nothing)?
                };
                exprs.push(without_mark(self.assign_value(*at, expr, &nothing)?, &nothing));
            }
            let wants_number = |column: &usize| {
                let given = columns.iter().take(width).position(|at| at == column);
                insert.overriding == Overriding::User || given.is_none_or(|n| is_default(&row[n]))
            };
            exprs.extend(self.numbered().first().map(|_| lit(place as i64)));
            exprs.extend(self.numbered().iter().map(|column| lit(wants_number(column))));
            rows.push(exprs);
        }
        Ok((LogicalPlanBuilder::values(rows)?.build()?, width))
    }

    /// Columns that number rows.
    fn numbered(&self) -> Vec<usize> {
        (0..self.made.len()).filter(|at| matches!(self.made[*at], Made::Numbered(_))).collect()
    }

    /// Whether rows of the table are numbered.
    pub(super) fn is_numbered(&self) -> bool {
        !self.numbered().is_empty()
    }

    /// The marks of an insertion's rows; see the [module](self).
    pub(super) fn marks(
        &self,
        rows: &LogicalPlan,
        given: usize,
        columns: &[usize],
        overriding: Overriding,
    ) -> Vec<Expr> {
        let numbered = self.numbered();
        if numbered.is_empty() {
            return vec![];
        }
        let place = rows.schema().index_of_column_by_name(None, PLACE);
        if given < rows.schema().fields().len() && place.is_none() {
            return (0..=numbered.len()).map(|n| column(rows, given + n).alias(format!("__mark_{n}"))).collect();
        }
        let wants = |at: &usize| overriding == Overriding::User || !columns.iter().take(given).any(|c| c == at);
        let place = place.map_or(lit(0i64), |at| cast(column(rows, at), DataType::Int64));
        let marks = std::iter::once(place).chain(numbered.iter().map(|at| lit(wants(at))));
        marks.enumerate().map(|(n, mark)| mark.alias(format!("__mark_{n}"))).collect()
    }

    /// The table's columns, and those of the marks.
    pub(super) fn marked_schema(&self) -> SchemaRef {
        let numbered = self.numbered();
        if numbered.is_empty() {
            return self.schema.clone();
        }
        let place = Field::new("__mark_0", DataType::Int64, false);
        let wants = (1..=numbered.len()).map(|n| Field::new(format!("__mark_{n}"), DataType::Boolean, false));
        let marks = std::iter::once(place).chain(wants).map(Arc::new);
        Arc::new(Schema::new(self.schema.fields().iter().cloned().chain(marks).collect::<Vec<_>>()))
    }

    /// Refuses values for columns that make their own.
    pub(super) fn check_given(&self, at: usize, overriding: Overriding) -> Result<()> {
        let name = self.schema.field(at).name();
        let refused = |detail: String, hint: &str| {
            let message = format!("cannot insert a non-DEFAULT value into column \"{name}\"");
            Err(SqlError::new(ErrorKind::Invalid, message).with_detail(detail).with_hint(hint))
        };
        match &self.made[at] {
            Made::Computed(_) => {
                refused(format!("Column \"{name}\" is a generated column."), "Leave it out, or write DEFAULT.")
            }
            Made::Numbered(Numbering { form: NumberingForm::Always, .. }) if overriding == Overriding::Unsaid => {
                refused(
                    format!("Column \"{name}\" is an identity column defined as GENERATED ALWAYS."),
                    "Use OVERRIDING SYSTEM VALUE to override.",
                )
            }
            _ => Ok(()),
        }
    }

    /// Refuses assignments to columns that make their own values.
    pub(super) fn check_assigned(&self, query: &ast::Query, columns: &[usize]) -> Result<()> {
        let SetExpr::Select(select) = query.body.as_ref() else { return Ok(()) };
        for (item, at) in select.projection.iter().skip(1).zip(columns) {
            let is_default = matches!(item, ast::SelectItem::ExprWithAlias { expr, .. } if is_default(expr));
            let name = self.schema.field(*at).name();
            let (refused, detail) = match &self.made[*at] {
                Made::Computed(_) => (!is_default, "is a generated column"),
                Made::Numbered(Numbering { form: NumberingForm::Always, .. }) => {
                    (!is_default, "is an identity column defined as GENERATED ALWAYS")
                }
                _ => (false, ""),
            };
            if refused {
                let message = format!("column \"{name}\" can only be updated to DEFAULT");
                return Err(
                    SqlError::new(ErrorKind::Invalid, message).with_detail(format!("Column \"{name}\" {detail}."))
                );
            }
            if is_default && matches!(self.made[*at], Made::Numbered(_)) {
                let hint = "DELETE the row and INSERT it anew: it then gets a number.";
                return Err(SqlError::unsupported(format!("SET {name} = DEFAULT of a column that numbers rows"), hint));
            }
        }
        Ok(())
    }

    /// Whether there are columns that are computed of others.
    pub(super) fn has_computed(&self) -> bool {
        self.made.iter().any(|made| matches!(made, Made::Computed(_)))
    }

    /// A row whose computed columns are what they are computed to be of the others.
    pub(super) fn with_computed(&self, context: &Context, row: Vec<Expr>, below: &DFSchema) -> Result<Vec<Expr>> {
        if !self.has_computed() {
            return Ok(row);
        }
        let own = DFSchema::try_from_qualified_schema(self.name.as_str(), &self.schema)?;
        let given: Vec<Expr> = row.iter().cloned().map(Expr::unalias).collect();
        let mut out = Vec::with_capacity(row.len());
        for ((at, value), made) in row.into_iter().enumerate().zip(&self.made) {
            let Made::Computed(expr) = made else {
                out.push(value);
                continue;
            };
            let expr = context.expression(rewrite_expr(expr, Some(context.catalog()))?, &own)?;
            let computed = expr.transform(|part| match &part {
                Expr::Column(name) => Ok(Transformed::yes(given[own.index_of_column(name)?].clone())),
                _ => Ok(Transformed::no(part)),
            })?;
            out.push(self.assign(at, computed.data, below)?.alias(self.schema.field(at).name()));
        }
        Ok(out)
    }

    /// One expression a table column over the query's columns.
    pub(super) fn assigned(
        &self,
        context: &Context,
        rows: &LogicalPlan,
        given: usize,
        columns: &[usize],
        all: bool,
    ) -> Result<Vec<Expr>> {
        let too_few = given < columns.len() && !all;
        if given > columns.len() || too_few {
            let word =
                if too_few { "more target columns than expressions" } else { "more expressions than target columns" };
            return Err(SqlError::new(ErrorKind::Invalid, format!("INSERT has {word}"))
                .with_detail(format!("There are {} columns and {given} expressions.", columns.len())));
        }
        self.schema
            .fields()
            .iter()
            .enumerate()
            .map(|(at, field)| {
                let source = columns.iter().position(|c| *c == at).filter(|n| *n < given);
                let value = match source {
                    Some(n) => self.assign_column(at, rows, n)?,
                    None => self.assign(at, self.default(context, at)?, rows.schema())?,
                };
                Ok(value.alias(field.name()))
            })
            .collect()
    }

    /// The default of a column, or NULL.
    fn default(&self, context: &Context, at: usize) -> Result<Expr> {
        match &self.defaults[at] {
            Some(default) => {
                Ok(context.expression(rewrite_expr(default, Some(context.catalog()))?, &DFSchema::empty())?)
            }
            None => Ok(Expr::Literal(ScalarValue::Null, None)),
        }
    }

    /// The value converted to the column's type.
    pub(super) fn assign(&self, at: usize, value: Expr, schema: &DFSchema) -> Result<Expr> {
        let field = self.schema.field(at);
        let (is, wanted) = (value.get_type(schema)?, field.data_type());
        if is == *wanted {
            return Ok(value);
        }
        if !assignable(&is, wanted) {
            return Err(self.misassigned(at, &operand_name(&value, schema)));
        }
        self.check_literal(at, &value)?;
        if wanted.is_integer() && (is.is_floating() || is.is_decimal()) {
            return Ok(cast(datafusion_functions::math::expr_fn::round(vec![value]), wanted.clone()));
        }
        Ok(cast(value, wanted.clone()))
    }

    /// Refuses a literal that the column's type does not take, naming the column.
    fn check_literal(&self, at: usize, value: &Expr) -> Result<()> {
        let field = self.schema.field(at);
        let Expr::Literal(value, _) = value else { return Ok(()) };
        let (is, wanted) = (value.data_type(), field.data_type());
        let read = matches!(is, DataType::Utf8 | DataType::Utf8View) || is.is_integer();
        if value.is_null() || !read || !(is_number(wanted) || matches!(wanted, DataType::Boolean | DataType::Date32)) {
            return Ok(());
        }
        match convert(&value.to_array()?, wanted) {
            Ok(_) => Ok(()),
            Err(problem) => Err(SqlError::new(ErrorKind::Invalid, problem)
                .with_detail(format!("This is the value for column \"{}\".", field.name()))),
        }
    }

    /// The query of an `UPDATE` with `DEFAULT` and assignments to parts of columns written out.
    pub(super) fn with_defaults(&self, mut query: Box<ast::Query>, columns: &[usize]) -> Result<Box<ast::Query>> {
        if let SetExpr::Select(select) = query.body.as_mut() {
            for (item, at) in select.projection.iter_mut().skip(1).zip(columns) {
                let ast::SelectItem::ExprWithAlias { expr, .. } = item else { continue };
                if is_default(expr) {
                    *expr = self.default_of(*at);
                }
                subscripts::settle(expr, self.schema.field(*at))?;
            }
        }
        Ok(query)
    }
}

/// Whether a query is its body and nothing more.
pub(super) fn is_bare(query: &ast::Query) -> bool {
    query.with.is_none() && query.order_by.is_none() && query.limit_clause.is_none() && query.fetch.is_none()
}

pub(super) fn is_default(expr: &ast::Expr) -> bool {
    matches!(expr, ast::Expr::Identifier(ident) if ident.quote_style.is_none() && ident.value.eq_ignore_ascii_case("default"))
}

pub(super) fn column(plan: &LogicalPlan, at: usize) -> Expr {
    Expr::Column(Column::from(plan.schema().qualified_field(at)))
}

pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A document, a label or an array of these as a text, or an array of texts: the rows of VALUES
/// have no marks, or the same. (The value has been converted to the column's type.)
fn without_mark(value: Expr, schema: &DFSchema) -> Expr {
    match value.to_field(schema) {
        Ok((_, field)) if field.metadata().is_empty() => value,
        // (A cast takes the mark of a text away.)
        Ok((_, field)) if is_text(field.data_type()) => cast(value, DataType::Utf8View),
        Ok(_) => call(UNMARKED, vec![value]),
        Err(_) => value,
    }
}
