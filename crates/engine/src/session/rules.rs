//! CHECK, computed columns and columns that number rows, where rows enter a table.
//!
//! Law: no row enters for which a CHECK is false. A computed column is what its expression makes of
//! the row. A row that wants a number gets the next one, in the order of the statement's rows.

use std::sync::{Arc, Mutex, PoisonError};

use anabranch_batch::{Batch, Diffs, Times, types};
use anabranch_plan::{Node, Plan};
use anabranch_sql::column_type_name;
use anabranch_sql::statement::{CreateType, Made, TypeDefinition};
use anabranch_sql::table::has_query;
use arrow::array::{Array, ArrayRef, AsArray, Int64Array, ListArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};

use super::state::Session;
use super::upsert::one_by_one;
use crate::catalog::{Given, Object, number_max, sequence_of_column};
use crate::coerce::row_text;
use crate::direct::evaluate_over;
use crate::error::Error;

impl Session {
    /// Makes the plans of a table's rules.
    ///
    /// # Errors
    /// When an expression cannot be planned, or is not over the columns of one row.
    pub(super) fn plan_rules(&mut self, name: &str) -> Result<(), Error> {
        let object = self.catalog.table(name)?;
        let declared = object.rules.declared.clone();
        let schema = object.schema.clone();
        let checks: Vec<String> = declared.checks.iter().map(|check| format!("({})", check.expr)).collect();
        let computed = declared.made.iter().filter_map(|made| match made {
            Made::Computed(expr) => Some(expr.as_ref()),
            _ => None,
        });
        let exprs = declared.checks.iter().map(|check| &check.expr).chain(computed);
        if let Some(expr) = exprs.into_iter().find(|expr| has_query(expr)) {
            return Err(Error::invalid(format!("cannot use subquery in {expr}"))
                .with_sqlstate("0A000")
                .with_hint("A rule of a table names columns of one row; watch for the rest with a view."));
        }
        let value = |(column, made): (usize, &Made)| match made {
            Made::Computed(expr) => Some(format!("CAST(({expr}) AS {})", column_type_name(schema.field(column)))),
            _ => None,
        };
        let values: Vec<String> = declared.made.iter().enumerate().filter_map(value).collect();
        let passes = self.plan_row("check constraint", name, &checks)?;
        if let Some(plan) = &passes {
            let conditions = plan.schema.fields().iter().zip(&declared.checks);
            for (field, check) in conditions {
                if !matches!(field.data_type(), DataType::Boolean | DataType::Null) {
                    let of_type = anabranch_sql::sql_name(field.data_type());
                    return Err(Error::invalid(format!("argument of CHECK must be type boolean, not type {of_type}"))
                        .with_sqlstate("42804")
                        .with_detail(format!("The condition is {}.", check.expr)));
                }
            }
        }
        let values = self.plan_row("column generation expression", name, &values)?;
        if let Some(object) = self.catalog.find_mut(name) {
            (object.rules.passes, object.rules.values) = (passes, values);
        }
        Ok(())
    }

    /// A plan of expressions over one row of a table; none without expressions.
    pub(super) fn plan_row(&self, what: &str, table: &str, exprs: &[String]) -> Result<Option<Arc<Plan>>, Error> {
        if exprs.is_empty() {
            return Ok(None);
        }
        let items: Vec<String> =
            exprs.iter().enumerate().map(|(n, expr)| format!("{expr} AS \"__rule_{n}\"")).collect();
        let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
        // (A draft's expressions may name the table.)
        let shown = table.strip_suffix(".__altered").unwrap_or(table);
        let own = shown.rsplit_once('.').map_or(shown, |(_, own)| own);
        let text = format!("SELECT {} FROM {} AS {}", items.join(", "), quoted(table), quoted(own));
        let query = anabranch_sql::parse::parse_query(&text)?;
        let plan = self.plan_steady(anabranch_sql::Parameters::None, &|planner| planner.plan_query(&query));
        let plan = plan.map_err(|mut error| {
            error = error.without_place();
            error.detail.get_or_insert(format!("This is in a {what} of table \"{table}\"."));
            error
        })?;
        let plan = plan.planned.plan;
        let mut below = &plan;
        while let Node::Stage { input, .. } = &below.node {
            below = input;
        }
        match &below.node {
            Node::Scan { relation, .. } if relation == table => Ok(Some(plan)),
            _ => Err(Error::invalid(format!("cannot use a subquery or an aggregate in a {what}"))
                .with_sqlstate("0A000")
                .with_hint("Name columns of the row only; watch for the rest with a view.")),
        }
    }

    /// The rows of an INSERT, without the marks at their end, with numbers for those that want
    /// them.
    pub(super) fn number_rows(&self, object: &Object, rows: Vec<Batch>) -> Result<Vec<Batch>, Error> {
        if object.rules.counters.is_empty() {
            return Ok(rows);
        }
        let rows: Vec<Batch> = rows.into_iter().map(|batch| one_by_one(batch.flatten())).collect();
        let Some(rows) = Batch::concat(&rows) else { return Ok(vec![]) };
        let width = object.schema.fields().len();
        let places = rows.column(width).as_primitive::<Int64Type>().clone();
        let mut order: Vec<u32> = (0..rows.len() as u32).collect();
        order.sort_by_key(|row| places.value(*row as usize));
        let rows = rows.take(&order);
        let mut columns: Vec<ArrayRef> = rows.columns()[..width].to_vec();
        for (n, counted) in object.rules.counters.iter().enumerate() {
            let wants = rows.column(width + 1 + n).as_boolean();
            let field = object.schema.field(counted.column);
            let given = cast(&columns[counted.column], &DataType::Int64)?;
            let given = given.as_primitive::<Int64Type>();
            let mut numbers = Vec::with_capacity(rows.len());
            let mut last = None;
            for row in 0..rows.len() {
                numbers.push(match wants.value(row) {
                    true => {
                        last = Some(next_number(object, field.name(), field.data_type(), counted)?);
                        last
                    }
                    false => given.is_valid(row).then(|| given.value(row)),
                });
            }
            note_given(&self.client.given, object, field.name(), last);
            let numbers: ArrayRef = Arc::new(Int64Array::from(numbers));
            columns[counted.column] = cast(&numbers, columns[counted.column].data_type())?;
        }
        // (The plan has computed columns of rows without numbers.)
        let columns = with_computed(object, columns, rows.len())?;
        Ok(vec![Batch::with_len(columns.into(), rows.len(), Times::Constant(0), Diffs::Constant(1))])
    }

    /// The numbers of rows that come from outside, without a column that numbers them.
    pub(super) fn numbered_column(
        &self,
        object: &Object,
        idx: usize,
        n_rows: usize,
    ) -> Result<Option<ArrayRef>, Error> {
        let Some(counted) = object.rules.counters.iter().find(|counted| counted.column == idx) else {
            return Ok(None);
        };
        let field = object.schema.field(idx);
        let next = || next_number(object, field.name(), field.data_type(), counted);
        let numbers = (0..n_rows).map(|_| next()).collect::<Result<Vec<i64>, Error>>()?;
        note_given(&self.client.given, object, field.name(), numbers.last().copied());
        let numbers: ArrayRef = Arc::new(Int64Array::from(numbers));
        Ok(Some(cast(&numbers, field.data_type())?))
    }

    /// Rows that come from outside, with what their computed columns are, unless a CHECK refuses
    /// one.
    pub(super) fn complete_columns(
        &self,
        object: &Object,
        columns: Vec<ArrayRef>,
        n_rows: usize,
    ) -> Result<Vec<ArrayRef>, Error> {
        let columns = with_computed(object, columns, n_rows)?;
        if object.rules.values.is_some() {
            crate::coerce::check_not_null(super::commit::target(object), &columns)?;
        }
        let rows = Batch::with_len(columns.clone().into(), n_rows, Times::Constant(0), Diffs::Constant(1));
        check_rows(object, &rows)?;
        self.check_spellings(object, &rows)?;
        Ok(columns)
    }

    /// Writes to a table. Where the statement only waits, numbers that it took are there again.
    pub(super) fn keeping_numbers<T>(
        &mut self,
        table: &str,
        write: impl FnOnce(&mut Session) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let counters = self.catalog.find(table).map(|object| object.rules.counters.clone()).unwrap_or_default();
        let before: Vec<i64> = counters.iter().map(|counted| counted.counter.peek()).collect();
        let result = write(self);
        if result.is_err() && self.is_handed_over() {
            counters.iter().zip(before).for_each(|(counted, next)| counted.counter.set(next));
        }
        result
    }
}

/// The columns of rows, with what computed ones are of the others.
fn with_computed(object: &Object, mut columns: Vec<ArrayRef>, n_rows: usize) -> Result<Vec<ArrayRef>, Error> {
    let Some(plan) = &object.rules.values else { return Ok(columns) };
    let rows = Batch::with_len(columns.clone().into(), n_rows, Times::Constant(0), Diffs::Constant(1));
    let values = evaluate_over(plan, vec![rows])?;
    let Some(values) = Batch::concat(&values) else { return Ok(columns) };
    for (n, column) in object.rules.computed().into_iter().enumerate() {
        columns[column] = types::narrowed(values.column(n)).map_err(|error| Error::data(error.detail()))?;
    }
    Ok(columns)
}

/// Notes the last number that a column gave to rows of the client.
fn note_given(given: &Mutex<Given>, object: &Object, column: &str, number: Option<i64>) {
    if let Some(number) = number {
        let sequence = sequence_of_column(&object.name, column);
        given.lock().unwrap_or_else(PoisonError::into_inner).note(&sequence, number);
    }
}

fn next_number(
    object: &Object,
    column: &str,
    data_type: &DataType,
    counted: &crate::catalog::Counted,
) -> Result<i64, Error> {
    let number = counted.counter.take();
    let max = number_max(data_type);
    if number > max {
        return Err(Error::data(format!(
            "the counter of column \"{column}\" of table \"{}\" is at its end",
            object.name
        ))
        .with_sqlstate("2200H")
        .with_detail(format!("The greatest number of its type is {max}."))
        .with_hint("Change the column's type to bigint: ALTER TABLE .. ALTER COLUMN .. TYPE bigint."));
    }
    Ok(number)
}

/// The error of a value that a user's type does not take.
fn type_error(made: &CreateType, name: &str, column: &str, object: &Object, rows: &Batch, row: usize) -> Error {
    let value = || {
        let at = object.schema.index_of(column).ok()?;
        if let Some(lists) = rows.column(at).as_list_opt::<i32>() {
            return misfit_in(lists, row, made);
        }
        let value = cast(&types::widened(rows.column(at)), &DataType::Utf8View).ok()?;
        let value = value.as_string_view();
        value.is_valid(row).then(|| value.value(row).to_owned())
    };
    match &made.definition {
        TypeDefinition::Enum(_) => {
            let text = value().unwrap_or_default();
            Error::data(format!("invalid input value for enum {}: \"{text}\"", made.name)).with_sqlstate("22P02")
        }
        TypeDefinition::Domain(_) if name.is_empty() => {
            Error::data(format!("domain {} does not allow null values", made.name)).with_sqlstate("23502")
        }
        TypeDefinition::Domain(_) => {
            let message = format!("value for domain {} violates check constraint \"{name}\"", made.name);
            Error::data(message)
                .with_sqlstate("23514")
                .with_detail(format!("Failing row contains ({}).", row_text(rows.columns(), row)))
                .about_constraint(&object.name, name)
        }
    }
}

/// The first element of an array that is no label.
fn misfit_in(lists: &ListArray, row: usize, made: &CreateType) -> Option<String> {
    let TypeDefinition::Enum(labels) = &made.definition else { return None };
    let elements = cast(&types::widened(&lists.value(row)), &DataType::Utf8View).ok()?;
    let mut texts = elements.as_string_view().iter().flatten();
    texts.find(|text| !labels.iter().any(|label| label == text)).map(str::to_owned)
}

/// Refuses rows for which a CHECK of the table is false. Rows that go are not looked at.
pub(super) fn check_rows(object: &Object, rows: &Batch) -> Result<(), Error> {
    let Some(plan) = &object.rules.passes else { return Ok(()) };
    let coming: Vec<u32> = (0..rows.len()).filter(|row| rows.diffs().get(*row) > 0).map(|row| row as u32).collect();
    if coming.is_empty() {
        return Ok(());
    }
    let rows = rows.take(&coming);
    let answers = evaluate_over(plan, vec![rows.clone()])?;
    let Some(answers) = Batch::concat(&answers) else { return Ok(()) };
    for (n, check) in object.rules.declared.checks.iter().enumerate() {
        // (A literal NULL has a type of its own.)
        let Some(passes) = answers.column(n).as_boolean_opt() else { continue };
        let Some(row) = (0..passes.len()).find(|row| passes.is_valid(*row) && !passes.value(*row)) else { continue };
        if let Some((made, column)) = &check.of_type {
            return Err(type_error(made, &check.name, column, object, &rows, row));
        }
        let message = format!("new row for relation \"{}\" violates check constraint \"{}\"", object.name, check.name);
        return Err(Error::data(message)
            .with_sqlstate("23514")
            .with_detail(format!("Failing row contains ({}).", row_text(rows.columns(), row)))
            .about_constraint(&object.name, &check.name));
    }
    Ok(())
}
