//! `RETURNING`, over rows of the changed table or over what the change joined them with.
//!
//! With `FROM` or `USING`, items may name columns of what is joined, and `*` is all of them. The
//! rows are there before the items are planned: the plan scans a relation of the planner's own
//! ([`RETURNED`]), which holds the table's columns and then those that the change joined.

use std::sync::Arc;

use arrow::datatypes::{Field, Schema};
use datafusion_common::{Column, TableReference};
use datafusion_expr::Expr;
use datafusion_expr::logical_plan::{LogicalPlan, LogicalPlanBuilder};
use datafusion_expr::sqlparser::ast;

use crate::change::{NamedTable, all_where};
use crate::error::{ErrorKind, Result, SqlError};
use crate::planned::Planned;
use crate::planner::Planner;
use crate::resolve::context::{Context, own_relation};
use crate::syntax::statement::{Delete, Insert, Update};

/// The relation of rows with the columns that a change joined, in plans of `RETURNING`.
pub const RETURNED: &str = "__returned";

/// `RETURNING` and what its items may name.
#[derive(Clone, Copy, Debug)]
pub struct Returning<'a> {
    /// The changed table.
    pub table: &'a str,
    /// Its other name within the statement.
    pub alias: Option<&'a str>,
    /// `FROM` of an UPDATE, `USING` of a DELETE.
    pub from: &'a [ast::TableWithJoins],
    /// `WITH` before the statement.
    pub with: Option<&'a ast::With>,
    /// What is returned.
    pub items: &'a [ast::SelectItem],
}

impl Insert {
    /// What the statement returns.
    pub fn returned(&self) -> Option<Returning<'_>> {
        let items = self.returning.as_deref()?;
        Some(Returning { table: &self.table, alias: self.alias.as_deref(), from: &[], with: None, items })
    }
}

impl Update {
    /// What the statement returns.
    pub fn returned(&self) -> Option<Returning<'_>> {
        let (items, with) = (self.returning.as_deref()?, self.with.as_ref());
        Some(Returning { table: &self.table, alias: self.alias.as_deref(), from: &self.from, with, items })
    }
}

impl Delete {
    /// What the statement returns.
    pub fn returned(&self) -> Option<Returning<'_>> {
        let (items, with) = (self.returning.as_deref()?, self.with.as_ref());
        Some(Returning { table: &self.table, alias: self.alias.as_deref(), from: &self.using, with, items })
    }
}

impl Returning<'_> {
    /// `SELECT items FROM table, from`.
    pub(crate) fn query(&self) -> Result<Box<ast::Query>> {
        self.query_over(self.from, self.items)
    }

    fn query_over(&self, from: &[ast::TableWithJoins], items: &[ast::SelectItem]) -> Result<Box<ast::Query>> {
        let named = NamedTable { table: self.table, alias: self.alias };
        let mut query = all_where(named, from.to_vec(), &None, vec![])?;
        if let ast::SetExpr::Select(select) = query.body.as_mut() {
            select.projection = items.to_vec();
        }
        query.with = self.with.filter(|_| !from.is_empty()).cloned();
        Ok(query)
    }
}

impl Planner<'_> {
    /// The items of `RETURNING`, over rows of the table; over [`RETURNED`] where they name columns
    /// of what the change joined.
    ///
    /// # Errors
    /// As for a query.
    pub fn plan_returning(&self, returning: &Returning<'_>) -> Result<Planned> {
        let alone = returning.query_over(&[], returning.items)?;
        if returning.from.is_empty() {
            return self.plan_query(&alone);
        }
        let joined = self.plan_query_over(&*returning.query()?, &over_returned)?;
        let is_all = |item: &ast::SelectItem| matches!(item, ast::SelectItem::Wildcard(_));
        match returning.items.iter().any(is_all) {
            true => Ok(joined),
            false => Ok(self.plan_query(&alone).unwrap_or(joined)),
        }
    }
}

/// The columns that a change joins the rows of its table with, to be asked for by a query over the
/// join; none where nothing returns them.
pub(crate) fn joined_items(context: &Context, returning: &Returning<'_>, width: usize) -> Result<Vec<ast::SelectItem>> {
    if returning.from.is_empty() {
        return Ok(vec![]);
    }
    let one = ast::SelectItem::UnnamedExpr(ast::Expr::value(ast::Value::Number("1".to_string(), false)));
    let plan = context.logical(&*returning.query_over(returning.from, &[one])?)?;
    let quoted = |name: &str| ast::Ident::with_quote('"', name);
    let item = |(n, (qualifier, field)): (usize, (Option<&TableReference>, &Arc<Field>))| {
        let name = quoted(field.name());
        let expr = match qualifier {
            Some(qualifier) => ast::Expr::CompoundIdentifier(vec![quoted(qualifier.table()), name]),
            None => ast::Expr::Identifier(name),
        };
        ast::SelectItem::ExprWithAlias { expr, alias: quoted(&format!("__from_{n}")) }
    };
    Ok(join_of(&plan)?.schema().iter().skip(width).enumerate().map(item).collect())
}

/// The join of the table with the rest: the topmost one.
fn join_of(plan: &LogicalPlan) -> Result<&LogicalPlan> {
    match plan {
        LogicalPlan::Join(_) => Ok(plan),
        _ => match plan.inputs().as_slice() {
            [input] => join_of(input),
            _ => Err(unknown_form()),
        },
    }
}

/// The plan over [`RETURNED`], where it was over the join.
fn over_returned(plan: LogicalPlan) -> Result<LogicalPlan> {
    if !matches!(plan, LogicalPlan::Join(_)) {
        let inputs = plan.inputs();
        let [input] = inputs.as_slice() else { return Err(unknown_form()) };
        let below = over_returned((*input).clone())?;
        return Ok(plan.with_new_exprs(plan.expressions(), vec![below])?);
    }
    let fields = plan.schema().fields().iter().enumerate();
    let fields = fields.map(|(n, field)| field.as_ref().clone().with_name(format!("__column_{n}")).with_nullable(true));
    let source = own_relation(Arc::new(Schema::new(fields.collect::<Vec<Field>>())));
    let column = |(n, (qualifier, field)): (usize, (Option<&TableReference>, &Arc<Field>))| {
        let column = Expr::Column(Column::new(Some(RETURNED), format!("__column_{n}")));
        column.alias_qualified(qualifier.cloned(), field.name())
    };
    let columns: Vec<Expr> = plan.schema().iter().enumerate().map(column).collect();
    Ok(LogicalPlanBuilder::scan(RETURNED, source, None)?.project(columns)?.build()?)
}

fn unknown_form() -> SqlError {
    SqlError::new(ErrorKind::Unsupported, "RETURNING takes expressions over the row's columns")
        .with_hint("SELECT the rest in a statement of its own; reads see all earlier writes.")
}
