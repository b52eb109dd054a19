//! PREPARE, EXECUTE, DEALLOCATE: prepared statements under names.

use std::sync::Arc;

use anabranch_batch::TextLimit;
use anabranch_sql::statement::{Execute, Prepare};
use arrow::datatypes::{DataType, Field};
use datafusion_common::ScalarValue;

use super::outcome::Outcome;
use super::state::Session;
use crate::error::Error;
use crate::prepared::Prepared;

/// The type whose input reads a parameter's values: uuids have one form.
fn read_as(parameter: &Field) -> Option<&'static str> {
    let is_uuid = |field: &Field| TextLimit::of(field) == Some(TextLimit::Uuid);
    match parameter.data_type() {
        DataType::List(element) => (is_uuid(parameter) || is_uuid(element)).then_some("uuid[]"),
        _ => is_uuid(parameter).then_some("uuid"),
    }
}

impl Session {
    pub(super) fn prepare_named(&mut self, prepare: &Prepare) -> Result<Outcome, Error> {
        if self.client.statements.contains_key(&prepare.name) {
            return Err(Error::invalid(format!("prepared statement \"{}\" already exists", prepare.name))
                .with_sqlstate("42P05")
                .with_hint("DEALLOCATE it, or choose another name."));
        }
        let text = Arc::from(prepare.text.as_str());
        let prepared = self.prepare_parsed(text, Arc::new((*prepare.statement).clone()), &prepare.types);
        // (The place is one in the inner text.)
        let mut prepared = prepared.map_err(Error::without_place)?;
        for (parameter, form) in prepared.parameters.iter_mut().zip(&prepare.forms) {
            if let Some(form) = form {
                *parameter = form.declare(parameter.clone());
            }
        }
        self.client.statements.insert(prepare.name.clone(), prepared);
        Ok(Outcome::done("PREPARE"))
    }

    pub(super) fn execute_named(&mut self, execute: &Execute) -> Result<Outcome, Error> {
        let prepared = self.named_statement(&execute.name)?;
        let (wanted, given) = (prepared.parameters.len(), execute.values.len());
        if wanted != given {
            let message = format!("wrong number of parameters for prepared statement \"{}\"", execute.name);
            return Err(Error::invalid(message)
                .with_sqlstate("42601")
                .with_detail(format!("Expected {wanted} parameters but got {given}.")));
        }
        let mut values = Vec::with_capacity(given);
        for (value, parameter) in execute.values.iter().zip(&prepared.parameters) {
            let value = self.evaluate_constant(&match read_as(parameter) {
                Some(of) => format!("SELECT CAST({value} AS {of})"),
                None => format!("SELECT {value}"),
            })?;
            let value = ScalarValue::try_from_array(&value, 0);
            values.push(value.map_err(|error| Error::internal(format!("the value of a parameter: {error}")))?);
        }
        let bound = prepared.fitted(&values)?;
        self.run_bound(&prepared, bound).map_err(Error::without_place)
    }

    /// The statement under a name.
    pub(super) fn named_statement(&self, name: &str) -> Result<Prepared, Error> {
        self.client.statements.get(name).cloned().ok_or_else(|| {
            Error::invalid(format!("prepared statement \"{name}\" does not exist")).with_sqlstate("26000")
        })
    }

    pub(super) fn deallocate(&mut self, name: Option<&str>) -> Result<Outcome, Error> {
        let Some(name) = name else {
            self.client.statements.clear();
            return Ok(Outcome::done("DEALLOCATE ALL"));
        };
        self.named_statement(name)?;
        self.client.statements.remove(name);
        Ok(Outcome::done("DEALLOCATE"))
    }
}
