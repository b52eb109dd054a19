//! `INSERT`, `UPDATE` and `DELETE`, as plans of the rows they concern.
//!
//! Values are converted to the column's type as PostgreSQL assigns: numbers to numbers (fractions
//! are rounded), anything to text, and text to anything, where it may fail at run time. Whether a
//! column may be NULL is the engine's to check.
//!
//! Columns that are computed of others are computed here. Numbers of `serial` columns are the
//! engine's to give: rows of a table with such columns end with the place of the row in the
//! statement, and, for each such column, with whether the row wants a number.

mod assigned;
mod both;
mod places;
mod target;

use std::sync::Arc;

use anabranch_plan::Plan;
use arrow::datatypes::{Field, FieldRef, Schema, SchemaRef};
use datafusion_expr::Expr;
use datafusion_expr::logical_plan::{LogicalPlan, LogicalPlanBuilder, Projection};
use datafusion_expr::sqlparser::ast::{self, SetExpr};

use crate::error::{Result, SqlError};
use crate::passes::plan::optimise;
use crate::passes::plan::unnest::has_subqueries;
use crate::passes::tree::values_queries::has_subquery;
use crate::planned::Planned;
use crate::planner::Planner;
use crate::proposed::{PROPOSED, WithProposed};
use crate::resolve::catalog::Catalog;
use crate::resolve::context::Context;
use crate::resolve::row_at_once::ASSIGNED;
use crate::resolve::type_names::sql_name;
use crate::returned::{Returning, joined_items};
use crate::syntax::parse::{change::exists, parse_expr};
use crate::syntax::statement::{Delete, Insert, Update};
use crate::syntax::template::template;
use crate::translate::{Translator, conform};
use places::{PLACE, named_places, with_places};
use target::{Target, column, is_bare, is_default, quoted};

impl Planner<'_> {
    /// The rows to insert: exactly the table's columns, in order, of its types. Columns left out
    /// are their defaults.
    ///
    /// # Errors
    /// `UnknownName`, `Duplicate`, `Type` for a value that cannot be assigned, `Invalid` for a
    /// wrong number of values.
    pub fn plan_insert(&self, insert: &Insert) -> Result<Planned> {
        self.guarded(&insert.query, |context| {
            let target = Target::of(context, &insert.table, "INSERT into")?;
            let columns = target.positions(&insert.columns)?;
            let filled = target.with_row_defaults(&insert.query, &columns)?;
            let query = filled.as_ref().unwrap_or(&insert.query);
            let (rows, given) = match query.body.as_ref() {
                SetExpr::Values(values) if is_bare(query) && !has_subquery(values) => {
                    if let Some(plan) = target.literal_rows(values, &columns) {
                        return Ok(Planned::whole(plan));
                    }
                    target.values(context, values, &columns, insert)?
                }
                _ => {
                    let rows = context.logical(query)?;
                    let rows = match target.is_numbered() {
                        true if filled.is_some() => named_places(rows)?,
                        true => with_places(&rows)?.unwrap_or(rows),
                        false => rows,
                    };
                    let n_columns = rows.schema().fields().len();
                    let given = n_columns - usize::from(rows.schema().index_of_column_by_name(None, PLACE).is_some());
                    columns.iter().take(given).try_for_each(|at| target.check_given(*at, insert.overriding))?;
                    (rows, given)
                }
            };
            let row = target.assigned(context, &rows, given, &columns, insert.columns.is_empty())?;
            let mut row = target.with_computed(context, row, rows.schema())?;
            row.extend(target.marks(&rows, given, &columns, insert.overriding));
            self.rows(context, LogicalPlanBuilder::from(rows).project(row)?.build()?, &target.marked_schema())
        })
    }

    /// The rows to remove, with all columns of the table.
    ///
    /// # Errors
    /// As for a query.
    pub fn plan_delete(&self, delete: &Delete) -> Result<Planned> {
        let query = delete_query(delete)?;
        self.guarded(&query, |context| {
            let target = Target::of(context, &delete.table, "DELETE from")?;
            self.rows(context, context.logical(&query)?, &target.schema)
        })
    }

    /// The rows to remove joined with those of `USING`: the table's columns, then the columns that
    /// `RETURNING` may name. A row that is joined with several others appears as often.
    ///
    /// # Errors
    /// As for a query.
    pub fn plan_delete_joined(&self, delete: &Delete) -> Result<Planned> {
        let named = NamedTable { table: &delete.table, alias: delete.alias.as_deref() };
        let mut query = all_where(named, delete.using.clone(), &delete.selection, vec![])?;
        query.with = delete.with.clone();
        self.changed_rows(&delete.table, "DELETE from", query, vec![], delete.returned())
    }

    /// The rows to change: the table's columns as they are, followed by the table's columns as they
    /// shall be, and by the columns of `FROM` if there is a `RETURNING`. A row that is joined with
    /// several others appears as often.
    ///
    /// # Errors
    /// As for a query and for `INSERT`.
    pub fn plan_update(&self, update: &Update) -> Result<Planned> {
        let (names, query) = update_query(update)?;
        self.changed_rows(&update.table, "UPDATE", query, names, update.returned())
    }

    /// The rows that `ON CONFLICT DO UPDATE` changes, as [`plan_update`](Self::plan_update) gives
    /// them.
    ///
    /// # Errors
    /// As for `UPDATE`; `Invalid` for columns that are not the primary key.
    pub fn plan_conflict(&self, insert: &Insert) -> Result<Planned> {
        let catalog = WithProposed { inner: self.catalog(), table: &insert.table };
        let planner = self.over(&catalog);
        let (names, query) = planner.conflict_query(insert, |target| {
            // (What the conflict names is checked, whatever the statement gives.)
            target.proposed(insert, target.schema.fields().len())?;
            Ok(format!("SELECT 1 FROM {} AS excluded", quoted(PROPOSED)))
        })?;
        planner.changed_rows(&insert.table, "INSERT into", query, names, None)
    }

    /// The columns that `ON CONFLICT DO UPDATE` assigns, and the query of the rows: the table's
    /// columns, then the values. `proposed` writes the query of what is excluded.
    fn conflict_query(
        &self,
        insert: &Insert,
        proposed: impl Fn(&Target) -> Result<String>,
    ) -> Result<(Vec<String>, Box<ast::Query>)> {
        let table = &insert.table;
        let named = NamedTable { table, alias: insert.alias.as_deref() };
        self.guarded(&insert.query, |context| {
            let target = Target::of(context, table, "INSERT into")?;
            let key: Vec<String> =
                target.arbiter(insert)?.iter().map(|at| target.schema.field(*at).name().clone()).collect();
            let (names, values): (Vec<String>, Vec<ast::Expr>) =
                insert.conflict.iter().filter_map(|conflict| conflict.update.clone()).flatten().unzip();
            let SetExpr::Select(from) = *template(&proposed(&target)?)?.body else {
                return Err(SqlError::internal("a template is a select"));
            };
            let own = named.alias.unwrap_or(table);
            let equal = key.iter().map(|key| format!("{}.{} = excluded.{}", quoted(own), quoted(key), quoted(key)));
            let mut condition = parse_expr(&equal.collect::<Vec<_>>().join(" AND "))?;
            if let Some(selection) = insert.conflict.as_ref().and_then(|conflict| conflict.selection.clone()) {
                condition = parse_expr(&format!("({condition}) AND ({selection})"))?;
            }
            Ok((names, all_where(named, from.from, &Some(condition), values)?))
        })
    }

    /// As `plan_conflict` reads it, for the types of parameters: the statement's own query, with
    /// NULL for columns that it leaves out.
    fn conflict_part(&self, insert: &Insert) -> Result<(Vec<String>, Box<ast::Query>)> {
        let given = match insert.query.body.as_ref() {
            SetExpr::Values(values) => values.rows.first().map_or(0, |row| row.content.len()),
            _ => self.plan_query(&insert.query)?.plan.schema.fields().len(),
        };
        self.conflict_query(insert, |target| {
            let columns = target.proposed(insert, given)?;
            let given: Vec<String> = columns.split(", ").map(str::to_string).collect();
            let left_out = target.schema.fields().iter().filter(|field| !given.contains(&quoted(field.name())));
            let nulls = left_out
                .map(|field| format!(", CAST(NULL AS {}) AS {}", sql_name(field.data_type()), quoted(field.name())));
            let nulls = nulls.collect::<String>();
            Ok(format!(
                "SELECT 1 FROM (SELECT given.*{nulls} FROM ({}) AS given ({columns})) AS excluded",
                insert.query
            ))
        })
    }

    /// The queries that a change of a table consists of, with the types that their columns take.
    ///
    /// # Errors
    /// As for planning the change.
    pub(crate) fn parts_of_insert(&self, insert: &Insert) -> Result<Vec<ChangePart>> {
        let mut parts = self.inserted_parts(insert)?;
        if insert.conflict.as_ref().is_some_and(|conflict| conflict.update.is_some()) {
            let (names, query) = self.conflict_part(insert)?;
            parts.push(self.changed_part(&insert.table, query, &names)?);
        }
        parts.extend(returned_part(insert.returned())?);
        Ok(parts)
    }

    /// See [`parts_of_insert`](Self::parts_of_insert).
    pub(crate) fn parts_of_update(&self, update: &Update) -> Result<Vec<ChangePart>> {
        let (names, query) = update_query(update)?;
        let changed = self.changed_part(&update.table, query, &names)?;
        let returned = returned_part(update.returned())?;
        Ok(std::iter::once(changed).chain(returned).collect())
    }

    /// See [`parts_of_insert`](Self::parts_of_insert).
    pub(crate) fn parts_of_delete(&self, delete: &Delete) -> Result<Vec<ChangePart>> {
        let query = delete_query(delete)?;
        let returned = returned_part(delete.returned())?;
        Ok(std::iter::once(ChangePart { query, wanted: vec![] }).chain(returned).collect())
    }

    /// The rows of an insertion: its query, or one query a row of `VALUES`.
    fn inserted_parts(&self, insert: &Insert) -> Result<Vec<ChangePart>> {
        let (wanted, query) = self.guarded(&insert.query, |context| {
            let target = Target::of(context, &insert.table, "INSERT into")?;
            Ok((target.fields(&target.positions(&insert.columns)?), insert.query.clone()))
        })?;
        let SetExpr::Values(values) = query.body.as_ref() else { return Ok(vec![ChangePart { query, wanted }]) };
        if !is_bare(&query) {
            return Ok(vec![ChangePart { query, wanted }]);
        }
        let mut parts = Vec::with_capacity(values.rows.len());
        for row in &values.rows {
            let (mut query, mut fields) = (template("SELECT 1")?, Vec::with_capacity(row.content.len()));
            let SetExpr::Select(select) = query.body.as_mut() else { continue };
            select.projection.clear();
            for (value, field) in row.content.iter().zip(&wanted).filter(|(value, _)| !is_default(value)) {
                select.projection.push(ast::SelectItem::UnnamedExpr(value.clone()));
                fields.push(field.clone());
            }
            parts.push(ChangePart { query, wanted: fields });
        }
        Ok(parts)
    }

    /// The values that rows of a table are given, after the table's columns.
    fn changed_part(&self, table: &str, query: Box<ast::Query>, names: &[String]) -> Result<ChangePart> {
        let (wanted, query) = self.guarded(&query, |context| {
            let target = Target::of(context, table, "UPDATE")?;
            let columns = target.positions_of(names)?;
            let before = target.schema.fields().len();
            let wanted = std::iter::repeat_n(None, before).chain(target.fields(&columns)).collect::<Vec<_>>();
            Ok((wanted, target.with_defaults(query.clone(), &columns)?))
        })?;
        Ok(ChangePart { query, wanted })
    }

    /// The rows of a table, and what the further columns of the query make of them; then the
    /// columns that they are joined with, if they are returned. (Without names nothing is made.)
    fn changed_rows(
        &self,
        table: &str,
        action: &str,
        query: Box<ast::Query>,
        names: Vec<String>,
        returned: Option<Returning<'_>>,
    ) -> Result<Planned> {
        self.guarded(&query, |context| {
            let target = Target::of(context, table, action)?;
            let columns = target.positions_of(&names)?;
            target.check_assigned(&query, &columns)?;
            let mut query = target.with_defaults(query.clone(), &columns)?;
            if let Some(plan) = self.changed_alone(context, &query, &target, &columns)? {
                return Ok(Planned::whole(plan));
            }
            let width = target.schema.fields().len();
            if let (Some(returned), SetExpr::Select(select)) = (&returned, query.body.as_mut()) {
                select.projection.extend(joined_items(context, returned, width)?);
            }
            let rows = context.logical(&query)?;
            let new = |at: usize| match columns.iter().position(|c| *c == at) {
                Some(n) => target.assign_column(at, &rows, width + n),
                None => Ok(column(&rows, at)),
            };
            let new = (0..width).map(new).collect::<Result<Vec<Expr>>>()?;
            let new = target.with_computed(context, new, rows.schema())?;
            let is_changed = |(at, value): &(usize, &Expr)| **value != column(&rows, *at);
            let changed: Vec<usize> = new.iter().enumerate().filter(is_changed).map(|(at, _)| at).collect();
            let named =
                |at: &usize| new[*at].clone().unalias().alias(format!("new.{}", target.schema.field(*at).name()));
            let values: Vec<Expr> = changed.iter().map(named).collect();
            let changed = NewValues { changed, values, joined_from: width + names.len() };
            self.beside_joined(context, rows, &target, changed, !names.is_empty())
        })
    }

    /// The rows of a table, and what is made of them, where that takes the table alone; `None`
    /// where it takes more than a scan.
    fn changed_alone(
        &self,
        context: &Context,
        query: &ast::Query,
        target: &Target,
        columns: &[usize],
    ) -> Result<Option<Arc<Plan>>> {
        let mut query = query.clone();
        let SetExpr::Select(select) = query.body.as_mut() else { return Ok(None) };
        let is_alone = matches!(select.from.as_slice(), [from] if from.joins.is_empty()) && query.with.is_none();
        if !is_alone || columns.is_empty() || target.has_computed() {
            return Ok(None);
        }
        // (What is left are the values.)
        select.projection.remove(0);
        let rows = context.logical(&query)?;
        if has_subqueries(&rows) {
            return Ok(None);
        }
        let value =
            |(n, at): (usize, &usize)| Ok(target.assign_column(*at, &rows, n)?.alias(target.schema.field(*at).name()));
        let values = columns.iter().enumerate().map(value).collect::<Result<Vec<Expr>>>()?;
        let fields: Vec<FieldRef> = columns.iter().map(|at| target.schema.fields()[*at].clone()).collect();
        let plan = LogicalPlan::Projection(Projection::try_new(values, Arc::new(rows))?);
        let values = self.rows(context, plan, &Arc::new(Schema::new(fields)))?.plan;
        Ok(both::of_values(&values, &target.name, &target.schema, columns))
    }

    /// The rows of a table, what is made of them if anything is, and the columns of a join.
    fn beside_joined(
        &self,
        context: &Context,
        rows: LogicalPlan,
        target: &Target,
        made: NewValues,
        is_made: bool,
    ) -> Result<Planned> {
        let own = target.schema.fields();
        let NewValues { changed, values, joined_from } = made;
        let joined = joined_from..rows.schema().fields().len();
        let all = (0..own.len()).map(|at| column(&rows, at)).chain(values);
        let all = all.chain(joined.clone().map(|at| column(&rows, at))).collect();
        let joined: Vec<FieldRef> = joined.map(|at| rows.schema().field(at).clone()).collect();
        let fields = own.iter().chain(changed.iter().map(|at| &own[*at])).chain(&joined);
        let plan = LogicalPlan::Projection(Projection::try_new(all, Arc::new(rows))?);
        if !is_made {
            return self.rows(context, plan, &Arc::new(Schema::new(fields.cloned().collect::<Vec<_>>())));
        }
        // (Old and new columns are found by their names again, so that each has one of its own.)
        let number = |(n, field): (usize, &FieldRef)| field.as_ref().clone().with_name(n.to_string());
        let numbered: Vec<Field> = fields.enumerate().map(number).collect();
        let rows = self.rows(context, plan, &Arc::new(Schema::new(numbered)))?;
        Ok(Planned::whole(both::of_joined(&rows.plan, own, &changed, &joined)?))
    }

    fn rows(&self, context: &Context, plan: LogicalPlan, schema: &SchemaRef) -> Result<Planned> {
        let plan = optimise(plan, &context.config(), self.clock(), context.chosen())?;
        let plan: Arc<Plan> = conform(Translator::new(self.round_limit()).view(&plan)?, schema)?;
        Ok(Planned::whole(plan))
    }
}

/// The rows to insert. See [`Planner::plan_insert`].
///
/// # Errors
/// Of planning.
pub fn plan_insert(insert: &Insert, catalog: &dyn Catalog) -> Result<Planned> {
    Planner::new(catalog).plan_insert(insert)
}

/// The rows to remove. See [`Planner::plan_delete`].
///
/// # Errors
/// Of planning.
pub fn plan_delete(delete: &Delete, catalog: &dyn Catalog) -> Result<Planned> {
    Planner::new(catalog).plan_delete(delete)
}

/// The rows to change. See [`Planner::plan_update`].
///
/// # Errors
/// Of planning.
pub fn plan_update(update: &Update, catalog: &dyn Catalog) -> Result<Planned> {
    Planner::new(catalog).plan_update(update)
}

/// A query that is part of a statement, and the table's columns that its columns are for; `None`
/// where that is left to the query.
pub(crate) struct ChangePart {
    pub(crate) query: Box<ast::Query>,
    pub(crate) wanted: Vec<Option<FieldRef>>,
}

/// What a statement makes of a table's rows.
struct NewValues {
    /// Positions of the table's columns that get values.
    changed: Vec<usize>,
    /// The values, one for each of these.
    values: Vec<Expr>,
    /// Where the columns of a join begin.
    joined_from: usize,
}

/// A table as a statement names it.
#[derive(Clone, Copy)]
pub(crate) struct NamedTable<'a> {
    pub(crate) table: &'a str,
    pub(crate) alias: Option<&'a str>,
}

/// The query of the rows that a DELETE removes: the table's columns.
fn delete_query(delete: &Delete) -> Result<Box<ast::Query>> {
    let named = NamedTable { table: &delete.table, alias: delete.alias.as_deref() };
    let selection = match delete.using.is_empty() {
        true => delete.selection.clone(),
        false => Some(exists(delete.using.clone(), delete.selection.clone())?),
    };
    let mut query = all_where(named, vec![], &selection, vec![])?;
    query.with = delete.with.clone();
    Ok(query)
}

/// The columns that an UPDATE assigns, and the query of its rows: the table's columns, then the
/// values.
fn update_query(update: &Update) -> Result<(Vec<String>, Box<ast::Query>)> {
    let (names, assigned) = update.assignments.iter().cloned().unzip();
    let named = NamedTable { table: &update.table, alias: update.alias.as_deref() };
    let mut query = all_where(named, update.from.clone(), &update.selection, assigned)?;
    query.with = update.with.clone();
    Ok((names, query))
}

fn returned_part(returned: Option<Returning<'_>>) -> Result<Option<ChangePart>> {
    returned.map(|returned| Ok(ChangePart { query: returned.query()?, wanted: vec![] })).transpose()
}

/// `SELECT table.*, values FROM table, from WHERE selection`.
pub(crate) fn all_where(
    named: NamedTable,
    from: Vec<ast::TableWithJoins>,
    selection: &Option<ast::Expr>,
    values: Vec<ast::Expr>,
) -> Result<Box<ast::Query>> {
    let table = quoted(named.table);
    let mut query = template(&match named.alias {
        None => format!("SELECT {table}.* FROM {table}"),
        Some(alias) => format!("SELECT {}.* FROM {table} AS {}", quoted(alias), quoted(alias)),
    })?;
    if let SetExpr::Select(select) = query.body.as_mut() {
        select.from.extend(from);
        select.selection = selection.clone();
        for (n, expr) in values.into_iter().enumerate() {
            select.projection.push(ast::SelectItem::ExprWithAlias {
                expr,
                alias: ast::Ident::with_quote('"', format!("{ASSIGNED}{n}")),
            });
        }
    }
    Ok(query)
}
