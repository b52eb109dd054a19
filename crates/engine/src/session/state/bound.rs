//! The values that stand for `$1`, `$2` .. in the statement that runs, and plans that are kept.
//!
//! Law: a statement with values means what it means with these values written as literals of the
//! parameters' types. A kept plan is used at the version of the catalog at which it was made. It
//! reads no rows of an open transaction; those of tables that it names come into it later, and one
//! that reads a view which has not seen them is not used.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use anabranch_sql::Parameters;
use anabranch_sql::input::convert;
use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use datafusion_common::ScalarValue;

use crate::bind::{bind, serves_all};
use crate::error::Error;
use crate::row_maker::RowMaker;
use crate::session::context::{Named, PlanContext, Planning};

/// Which of a statement's plans it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Role {
    /// The rows that are read or changed.
    Rows,
    /// The rows that an INSERT proposes.
    Inserted,
    /// The rows that ON CONFLICT changes.
    Conflict,
    /// The rows that a DELETE takes, joined with those of USING.
    Joined,
    /// What RETURNING makes of rows.
    Returned,
}

/// Plans of a statement that serve for all values of its parameters.
#[derive(Debug, Default)]
pub(crate) struct Plans {
    /// The catalog's version at which they were made.
    version: u64,
    /// `None` where the plan depends on the values.
    by_role: BTreeMap<(Role, usize), Option<Arc<Named>>>,
}

/// What stands for parameters while a statement runs.
#[derive(Clone, Debug, Default)]
pub(crate) struct BoundStatement {
    pub(crate) types: Arc<[DataType]>,
    /// Values of all; `None` while the statement is only looked at.
    pub(crate) values: Option<Arc<[ScalarValue]>>,
    pub(crate) plans: Option<Arc<Mutex<Plans>>>,
    /// The part of the statement that is planned: 0, but for one that changes rows in several ways.
    pub(crate) part: usize,
    /// The plan of its rows for this one run, and the catalog's version at which it was made.
    pub(crate) given: Option<(u64, Arc<Named>)>,
}

impl BoundStatement {
    /// A statement that is looked at.
    pub fn of_types(types: Arc<[DataType]>, plans: Arc<Mutex<Plans>>) -> BoundStatement {
        BoundStatement { types, values: None, plans: Some(plans), part: 0, given: None }
    }

    /// A statement that runs with values of these types.
    pub fn of_values(types: Arc<[DataType]>, values: Arc<[ScalarValue]>, plans: Arc<Mutex<Plans>>) -> BoundStatement {
        BoundStatement { types, values: Some(values), plans: Some(plans), part: 0, given: None }
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

impl BoundStatement {
    /// The same with the plan of the statement's rows for this run.
    pub fn given(self, version: u64, plan: Arc<Named>) -> BoundStatement {
        BoundStatement { given: Some((version, plan)), ..self }
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
        let kept = plans.by_role.entry((role, self.part)).or_insert_with(|| self.plan_for_all(context, role, plan));
        let Some(kept) = kept else { return Ok(None) };
        let kept = Arc::clone(kept);
        drop(plans);
        let mut named = Named::clone(&kept);
        if let Some(values) = &self.values {
            named.rows = named.maker.as_ref().and_then(|maker| maker.rows(values));
            if named.rows.is_none() {
                named.planned.plan = bind(&named.planned.plan, values)?;
            }
        }
        Ok(Some(named))
    }

    /// The look-up that the statement is, if it was planned at that version of the catalog, and its
    /// key.
    pub fn look_up(&self, version: u64) -> Option<(Arc<Named>, Vec<ArrayRef>)> {
        let plans = self.plans.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner);
        let named = plans.by_role.get(&(Role::Rows, 0)).filter(|_| plans.version == version)?.clone()?;
        drop(plans);
        let key = named.look_up.as_ref()?.key(self.values.as_deref()?)?;
        Some((named, key))
    }

    /// The plan for all values at any moment, if there is one. Why there is none, planning with the
    /// values tells.
    fn plan_for_all(&self, context: &PlanContext<'_>, role: Role, plan: Planning<'_>) -> Option<Arc<Named>> {
        let named = context.plan_steady(Parameters::Types(Arc::clone(&self.types)), plan).ok();
        let mut named = named.filter(|named| serves_all(&named.planned.plan))?;
        if role == Role::Inserted && named.is_steady && named.planned.finish.is_trivial() {
            named.maker = RowMaker::of(&named.planned.plan, &self.types).map(Arc::new);
        }
        Some(Arc::new(named))
    }

    /// A plan that is not kept.
    ///
    /// # Errors
    /// What is wrong with the statement.
    pub fn plan_now(&self, context: &PlanContext<'_>, plan: Planning<'_>) -> Result<Named, Error> {
        let error = match context.plan(self.parameters(), plan) {
            Err(error) if !self.types.is_empty() && !error.message.contains("does not exist") => error,
            planned => return planned,
        };
        // A place that takes a constant only: any value tells the columns, the statement's own are
        // written into it.
        let others = match &self.values {
            Some(values) => vec![Parameters::Written(Arc::clone(values))],
            None => vec![self.nulls()?, Parameters::samples(&self.types)],
        };
        others.into_iter().find_map(|parameters| context.plan(parameters, plan).ok()).ok_or(error)
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
