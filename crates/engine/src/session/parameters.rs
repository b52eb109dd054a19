//! Prepared statements: typed and planned once, run with values.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use anabranch_plan::Plan;
use anabranch_sql::Parsed;
use anabranch_sql::statement::Statement;
use arrow::datatypes::{DataType, Field};
use datafusion_common::ScalarValue;

use super::context::{Named, PlanContext, Planning};
use super::outcome::Outcome;
use super::state::Session;
use super::state::bound::{BoundStatement, Plans, Role};
use crate::error::Error;
use crate::prepared::Prepared;

impl Session {
    /// Runs `work` with these values for parameters.
    pub(crate) fn with_bound<T>(&mut self, bound: BoundStatement, work: impl FnOnce(&mut Session) -> T) -> T {
        let before = std::mem::replace(&mut self.bound, bound);
        let result = work(self);
        self.bound = before;
        result
    }

    /// Types and plans a statement, for values that come later. `types` are those of `$1`, `$2` ..
    /// as far as they are known.
    ///
    /// # Errors
    /// Whatever is wrong with the statement, as far as it shows before it runs.
    pub fn prepare(&mut self, sql: &str, types: &[Option<DataType>]) -> Result<Prepared, Error> {
        let statement = parse_one(sql);
        let statement = self.failing(statement)?;
        let prepared = self.prepare_parsed(sql.into(), Arc::new(statement), types);
        self.failing(prepared)
    }

    /// Runs a prepared statement with values for its parameters.
    ///
    /// # Errors
    /// As [`execute`](Self::execute); `Invalid` for a wrong number of values, `Data` for one that
    /// does not fit.
    pub fn run_prepared(&mut self, prepared: &Prepared, values: &[ScalarValue]) -> Result<Outcome, Error> {
        let bound = prepared.fitted(values)?;
        self.run_bound(prepared, bound)
    }

    /// As [`run_prepared`](Self::run_prepared), with values that fit.
    pub(crate) fn run_bound(&mut self, prepared: &Prepared, bound: BoundStatement) -> Result<Outcome, Error> {
        self.with_bound(bound, |session| session.execute_one(&prepared.text, &prepared.statement))
    }

    pub(crate) fn prepare_parsed(
        &mut self,
        text: Arc<str>,
        statement: Arc<Parsed>,
        given: &[Option<DataType>],
    ) -> Result<Prepared, Error> {
        let parameters = self.parameter_fields(&statement, given).map_err(|error| error.placed_in(&text))?;
        let types: Arc<[DataType]> = parameters.iter().map(|field| field.data_type().clone()).collect();
        let plans = Arc::new(Mutex::new(Plans::default()));
        let bound = BoundStatement::of_types(Arc::clone(&types), Arc::clone(&plans));
        let columns = self.with_bound(bound, |session| {
            session.check_no_parameters(&statement)?;
            session.columns_of(&text, &statement)
        })?;
        let tag = self.client.tag(&statement.statement);
        Ok(Prepared { parameters, columns, tag, text, statement, types, plans })
    }

    /// A statement's parameters; `given` are the types that are known.
    fn parameter_fields(&self, parsed: &Parsed, given: &[Option<DataType>]) -> Result<Vec<Field>, Error> {
        if let Some(fields) = given_fields(parsed, given) {
            return Ok(fields);
        }
        let context = self.plan_context();
        Ok(context.planner(&context.catalog()).parameter_fields(parsed, given)?)
    }

    /// How often the catalog has changed.
    pub(crate) fn catalog_version(&self) -> u64 {
        self.catalog.version()
    }

    /// Refuses parameters that no value stands for.
    pub(super) fn check_parameters(&self, parsed: &Parsed) -> Result<(), Error> {
        if parsed.parameters <= self.bound.types.len() {
            return Ok(());
        }
        Err(Error::invalid(format!("there is no parameter ${}", self.bound.types.len() + 1))
            .with_sqlstate("42P02")
            .with_hint("Write the value itself, or prepare the statement and run it with values."))
    }

    /// Refuses parameters in definitions: they are kept as text, without the values.
    pub(super) fn check_no_parameters(&self, parsed: &Parsed) -> Result<(), Error> {
        let what = match &parsed.statement {
            Statement::CreateView(_) => "a view",
            Statement::CreateTable(_) | Statement::Alter(_) => "a table",
            _ => return Ok(()),
        };
        if parsed.parameters == 0 {
            return Ok(());
        }
        Err(Error::invalid("there is no parameter $1")
            .with_sqlstate("42P02")
            .with_detail(format!("The definition of {what} is kept as text."))
            .with_hint("Write the value itself."))
    }

    /// The plan that is kept for this role, made if it must be, with the values bound.
    pub(super) fn kept_plan(&self, role: Role, plan: Planning<'_>) -> Result<Option<Named>, Error> {
        let given = self.bound.given.as_ref().filter(|_| matches!(role, Role::Rows | Role::Inserted));
        let named = match given.filter(|(version, _)| *version == self.catalog.version()) {
            Some((_, given)) => Some(Named::clone(given)),
            // (What it has written comes into the plan later.)
            None => {
                let context = PlanContext { written: BTreeSet::new(), ..self.plan_context() };
                self.bound.kept_plan(&context, role, plan)?
            }
        };
        Ok(named.filter(|named| !self.reads_views_behind(&named.planned.plan)))
    }

    /// Whether a plan reads a view that has not seen all rows of the open transaction.
    fn reads_views_behind(&self, plan: &Plan) -> bool {
        let Some(transaction) = self.client.transaction.as_ref().filter(|transaction| transaction.has_staged()) else {
            return false;
        };
        let written = transaction.written();
        plan.relations()
            .iter()
            .filter(|name| !written.contains(*name))
            .any(|name| !self.catalog.inputs_behind([name]).is_disjoint(&written))
    }

    /// A plan that is not kept.
    pub(super) fn plan_now(&self, plan: Planning<'_>) -> Result<Named, Error> {
        self.bound.plan_now(&self.plan_context(), plan)
    }
}

/// The parameters, where the types of all are given.
pub(crate) fn given_fields(parsed: &Parsed, given: &[Option<DataType>]) -> Option<Vec<Field>> {
    let field = |given: &Option<DataType>| given.as_ref().map(|is| Field::new("", is.clone(), true));
    given.iter().map(field).collect::<Option<Vec<_>>>().filter(|_| parsed.parameters == 0)
}

/// The one statement of a text.
///
/// # Errors
/// Of parsing; `Invalid` when there are several statements, or none.
pub(crate) fn parse_one(sql: &str) -> Result<Parsed, Error> {
    let mut statements = anabranch_sql::parse(sql)?;
    match (statements.pop(), statements.len()) {
        (Some(statement), 0) => Ok(statement),
        (None, _) => Err(Error::invalid("one statement was expected, but there is none").with_sqlstate("42601")),
        (Some(_), others) => {
            Err(Error::invalid(format!("one statement was expected, but there are {}", others + 1))
                .with_sqlstate("42601"))
        }
    }
}
