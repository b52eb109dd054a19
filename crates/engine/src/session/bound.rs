//! The values that stand for `$1`, `$2` .. in the statement that runs, and plans that are kept.
//!
//! Law: a statement with values means what it means with these values written as literals of the
//! parameters' types. A kept plan is used at the version of the catalog at which it was made, and
//! not in a transaction that has written: a table is then read with other rows.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use anabranch_sql::input::convert;
use anabranch_sql::statement::Statement;
use anabranch_sql::{Parameters, Parsed};
use arrow::datatypes::DataType;
use datafusion_common::ScalarValue;

use super::context::{Named, PlanContext, Planning};
use super::{Outcome, Session, command_tag};
use crate::bind::{bind, serves_all};
use crate::error::Error;
use crate::prepared::Prepared;

/// Which of a statement's plans it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Role {
    /// The rows that are read or changed.
    Rows,
    /// The rows that ON CONFLICT changes.
    Conflict,
    /// What RETURNING makes of rows.
    Returned,
}

/// Plans of a statement that serve for all values of its parameters.
#[derive(Debug, Default)]
pub(crate) struct Plans {
    /// The catalog's version at which they were made.
    version: u64,
    /// `None` where the plan depends on the values.
    by_role: BTreeMap<Role, Option<Named>>,
}

/// What stands for parameters while a statement runs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bound {
    types: Arc<[DataType]>,
    /// Values of all; `None` while the statement is only looked at.
    values: Option<Arc<[ScalarValue]>>,
    plans: Option<Arc<Mutex<Plans>>>,
    /// The plan of its rows for this one run, and the catalog's version at which it was made.
    given: Option<(u64, Arc<Named>)>,
}

impl Bound {
    /// A statement that is looked at.
    pub fn of_types(types: Arc<[DataType]>, plans: Arc<Mutex<Plans>>) -> Bound {
        Bound { types, values: None, plans: Some(plans), given: None }
    }

    /// A statement that runs with values of these types.
    pub fn of_values(types: Arc<[DataType]>, values: Arc<[ScalarValue]>, plans: Arc<Mutex<Plans>>) -> Bound {
        Bound { types, values: Some(values), plans: Some(plans), given: None }
    }

    /// What plans are made with that are not kept.
    pub fn parameters(&self) -> Parameters {
        match &self.values {
            _ if self.types.is_empty() => Parameters::None,
            Some(values) => Parameters::Values(Arc::clone(values)),
            None => Parameters::Types(Arc::clone(&self.types)),
        }
    }

    /// The same with NULL for all parameters.
    fn nulls(&self) -> Result<Parameters, Error> {
        let nulls = self.types.iter().map(ScalarValue::try_from).collect::<Result<Vec<_>, _>>();
        let nulls = nulls.map_err(|error| Error::internal(format!("the NULL of a parameter: {error}")))?;
        Ok(Parameters::Values(nulls.into()))
    }
}

impl Session {
    /// Runs `work` with these values for parameters.
    pub(crate) fn with_bound<T>(&mut self, bound: Bound, work: impl FnOnce(&mut Session) -> T) -> T {
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
        self.prepare_parsed(sql.into(), Arc::new(parse_one(sql)?), types)
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
    pub(crate) fn run_bound(&mut self, prepared: &Prepared, bound: Bound) -> Result<Outcome, Error> {
        self.with_bound(bound, |session| session.execute_one(&prepared.text, &prepared.statement))
    }

    pub(crate) fn prepare_parsed(
        &mut self,
        text: Arc<str>,
        statement: Arc<Parsed>,
        given: &[Option<DataType>],
    ) -> Result<Prepared, Error> {
        let parameters = self.parameter_types(&statement, given).map_err(|error| error.placed_in(&text))?;
        let types: Arc<[DataType]> = parameters.as_slice().into();
        let plans = Arc::new(Mutex::new(Plans::default()));
        let bound = Bound::of_types(Arc::clone(&types), Arc::clone(&plans));
        let columns = self.with_bound(bound, |session| {
            session.check_no_parameters(&statement)?;
            session.columns_of(&text, &statement)
        })?;
        let tag = command_tag(&statement.statement);
        Ok(Prepared { parameters, columns, tag, text, statement, types, plans })
    }

    /// The types of a statement's parameters; `given` are those that are known.
    pub(crate) fn parameter_types(&self, parsed: &Parsed, given: &[Option<DataType>]) -> Result<Vec<DataType>, Error> {
        if parsed.parameters == 0 && given.iter().all(Option::is_some) {
            return Ok(given.iter().flatten().cloned().collect());
        }
        let context = self.plan_context();
        Ok(context.planner(&context.catalog()).parameter_types(parsed, given)?)
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
        if self.has_staged() {
            return Ok(None);
        }
        if let Some((version, given)) = self.bound.given.as_ref().filter(|_| role == Role::Rows)
            && *version == self.catalog.version()
        {
            return Ok(Some(Named::clone(given)));
        }
        self.bound.kept_plan(&self.plan_context(), role, plan)
    }

    /// A plan that is not kept.
    pub(super) fn plan_now(&self, plan: Planning<'_>) -> Result<Named, Error> {
        self.bound.plan_now(&self.plan_context(), plan)
    }
}

impl Bound {
    /// The same with the plan of the statement's rows for this run.
    pub fn given(self, version: u64, plan: Arc<Named>) -> Bound {
        Bound { given: Some((version, plan)), ..self }
    }

    /// The plan that is kept for this role, made if it must be, with the values bound. No table of
    /// the context has been written by an open transaction.
    ///
    /// # Errors
    /// `Internal` for a parameter without a value.
    pub fn kept_plan(&self, context: &PlanContext<'_>, role: Role, plan: Planning<'_>) -> Result<Option<Named>, Error> {
        let Some(plans) = &self.plans else { return Ok(None) };
        // (A limit of rounds is a part of the plan, and another connection has another.)
        if context.recursion_limit.is_some() {
            return Ok(None);
        }
        let mut plans = plans.lock().unwrap_or_else(PoisonError::into_inner);
        let version = context.catalog.version();
        if plans.version != version {
            *plans = Plans { version, by_role: BTreeMap::new() };
        }
        let kept = plans.by_role.entry(role).or_insert_with(|| self.plan_for_all(context, plan));
        let Some(kept) = kept else { return Ok(None) };
        let mut named = kept.clone();
        if let Some(values) = &self.values {
            named.planned.plan = bind(&named.planned.plan, values)?;
        }
        Ok(Some(named))
    }

    /// The plan for all values at any moment, if there is one. Why there is none, planning with the
    /// values tells.
    fn plan_for_all(&self, context: &PlanContext<'_>, plan: Planning<'_>) -> Option<Named> {
        let named = context.plan_steady(Parameters::Types(Arc::clone(&self.types)), plan).ok();
        named.filter(|named| serves_all(&named.planned.plan))
    }

    /// A plan that is not kept.
    ///
    /// # Errors
    /// What is wrong with the statement.
    pub fn plan_now(&self, context: &PlanContext<'_>, plan: Planning<'_>) -> Result<Named, Error> {
        match context.plan(self.parameters(), plan) {
            // A place that takes a constant only: any value tells the columns.
            Err(error)
                if self.values.is_none()
                    && !self.types.is_empty()
                    && !error.message.starts_with("operator does not exist") =>
            {
                context.plan(self.nulls()?, plan).map_err(|_| error)
            }
            planned => planned,
        }
    }
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

/// A value as one of the parameter's type, read as PostgreSQL reads text.
///
/// # Errors
/// `Data` when the value does not fit.
pub(crate) fn fit(value: &ScalarValue, to: &DataType) -> Result<ScalarValue, Error> {
    if value.data_type() == *to {
        return Ok(value.clone());
    }
    let of_array = |error| Error::internal(format!("the value of a parameter: {error}"));
    if value.is_null() {
        return ScalarValue::try_from(to).map_err(of_array);
    }
    let array = value.to_array().map_err(of_array)?;
    let fitted = convert(&array, to).map_err(Error::data)?;
    ScalarValue::try_from_array(&fitted, 0).map_err(of_array)
}
