//! SET, RESET and SHOW of PostgreSQL's run-time parameters.

use std::sync::{Arc, PoisonError};

use anabranch_sql::statement::SettingScope;

use super::outcome::Outcome;
use super::settings::unknown_setting;
use super::state::Session;
use super::state::variables::{Setting, SettingTakes, VARIABLES, WantedSetting, find, is_custom, taken};
use crate::error::Error;

impl Session {
    /// Sets a parameter of the client; `None` is its default.
    ///
    /// # Errors
    /// `Invalid` for a parameter that does not exist, or a value that it does not take.
    pub(super) fn set_variable(
        &mut self,
        name: &str,
        value: Option<&str>,
        scope: SettingScope,
    ) -> Result<Outcome, Error> {
        let Some(variable) = find(name) else { return self.set_custom(name, value, scope) };
        let value = value.map(|value| taken(variable, value)).transpose()?;
        if matches!(variable.takes, SettingTakes::Nothing) {
            return Err(
                Error::invalid(format!("parameter \"{}\" cannot be changed", variable.name)).with_sqlstate("55P02")
            );
        }
        if scope == SettingScope::Transaction && self.client.transaction.is_none() {
            return Ok(Outcome::done_with("SET", "SET LOCAL can only be used in transaction blocks"));
        }
        Arc::make_mut(&mut self.client.variables).put(variable.name, value, scope);
        if variable.name == "application_name"
            && let Some(own) = &self.client.backends.own
        {
            own.is_program(self.client.variables.get(variable.name).unwrap_or_default());
        }
        Ok(Outcome::done("SET"))
    }

    /// Sets a parameter that the client has made up.
    fn set_custom(&mut self, name: &str, value: Option<&str>, scope: SettingScope) -> Result<Outcome, Error> {
        if !is_custom(name) {
            return Err(unknown_setting(name));
        }
        if scope == SettingScope::Transaction && self.client.transaction.is_none() {
            return Ok(Outcome::done_with("SET", "SET LOCAL can only be used in transaction blocks"));
        }
        let value = value.unwrap_or_default().to_owned();
        Arc::make_mut(&mut self.client.variables).put(&name.to_lowercase(), Some(value), scope);
        Ok(Outcome::done("SET"))
    }

    /// Sets what `set_config` has asked for.
    pub(super) fn set_wanted(&mut self) -> Result<(), Error> {
        let wanted = std::mem::take(&mut *self.client.wanted_settings.lock().unwrap_or_else(PoisonError::into_inner));
        for WantedSetting { name, value, is_local } in wanted {
            let scope = if is_local { SettingScope::Transaction } else { SettingScope::Session };
            self.set_setting(&name, Some(&value), scope)?;
        }
        Ok(())
    }

    /// Forgets what `set_config` has asked for in a statement that has failed.
    pub(super) fn forget_wanted(&mut self) {
        self.client.wanted_settings.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Sets all parameters of the client to their defaults.
    pub(super) fn reset_variables(&mut self) {
        let variables = Arc::make_mut(&mut self.client.variables);
        let application = variables.set.remove_entry("application_name");
        // (A parameter that a client has made up stays one, without a value.)
        let made_up = std::mem::take(&mut variables.set).into_keys().filter(|name| is_custom(name));
        variables.set = made_up.map(|name| (name, String::new())).chain(application).collect();
        variables.local.clear();
    }

    /// Name, value and meaning of the client's parameters.
    pub(super) fn variable_rows(&self) -> Vec<[String; 3]> {
        let row = |variable: &Setting| {
            let value = self.variable(variable.name).unwrap_or_default();
            [variable.name.to_owned(), value, variable.meaning.to_owned()]
        };
        VARIABLES.iter().map(row).collect()
    }

    /// The value of a parameter of the client.
    pub(super) fn variable(&self, name: &str) -> Option<String> {
        if name.eq_ignore_ascii_case("transaction_read_only") {
            let reads_only = self
                .client
                .transaction
                .as_ref()
                .is_some_and(|transaction| transaction.access == anabranch_sql::statement::Access::ReadOnly);
            return Some(if reads_only { "on" } else { "off" }.to_owned());
        }
        self.client.variables.get(name).map(str::to_owned)
    }
}
