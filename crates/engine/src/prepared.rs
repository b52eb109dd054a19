//! Statements that are parsed, typed and planned once and run often.

use std::sync::{Arc, Mutex};

use anabranch_sql::Parsed;
use arrow::datatypes::{DataType, Field, SchemaRef};
use datafusion_common::ScalarValue;

use crate::error::Error;
use crate::session::state::bound::{BoundStatement as BoundParameters, Plans, fit};
use crate::session::together::{Together, together};

/// A statement that can be run. Cheap to clone. It can be run by any connection of its database.
///
/// The plan is kept and made anew when the catalog has changed, or when it depends on the values:
/// of LIMIT, of arguments of functions.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// `$1`, `$2` .. as fields without names: their types (`numeric` is
    /// `anabranch_batch::numeric::TYPE`), and marks of those that are `uuid`, `json` or `jsonb`.
    pub parameters: Vec<Field>,
    /// Columns of its rows; `None` when it returns none.
    pub columns: Option<SchemaRef>,
    /// The first words of its command tag: `SELECT`, `INSERT`, `CREATE VIEW`.
    pub tag: &'static str,
    /// The text it was made of.
    pub(crate) text: Arc<str>,
    pub(crate) statement: Arc<Parsed>,
    pub(crate) types: Arc<[DataType]>,
    pub(crate) plans: Arc<Mutex<Plans>>,
}

impl Prepared {
    /// The text it was made of.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What it is to a transaction of statements that came together.
    pub fn together(&self) -> Together {
        together(&self.statement.statement)
    }

    /// The values as ones of the parameters' types.
    ///
    /// # Errors
    /// `Invalid` for a wrong number of values, `Data` for a value that does not fit.
    pub(crate) fn fitted(&self, values: &[ScalarValue]) -> Result<BoundParameters, Error> {
        if values.len() != self.types.len() {
            let (given, wanted) = (values.len(), self.types.len());
            return Err(Error::invalid(format!("the statement has {wanted} parameters, but {given} values are given"))
                .with_sqlstate("08P01"));
        }
        let mut fitted = Vec::with_capacity(values.len());
        for (at, (value, data_type)) in values.iter().zip(self.types.iter()).enumerate() {
            fitted.push(fit(value, data_type).map_err(|error| {
                let detail = format!("This is the value of parameter ${}.", at + 1);
                error.with_detail(detail)
            })?);
        }
        Ok(BoundParameters::of_values(Arc::clone(&self.types), fitted.into(), Arc::clone(&self.plans)))
    }
}
