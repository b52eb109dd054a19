//! SET, RESET and SHOW of PostgreSQL's run-time parameters.

use anabranch_sql::statement::SettingScope;

use super::outcome::Outcome;
use super::settings::unknown_setting;
use super::state::Session;
use super::state::variables::{Setting, SettingTakes, VARIABLES, find, taken};
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
        let Some(variable) = find(name) else { return Err(unknown_setting(name)) };
        let value = value.map(|value| taken(variable, value)).transpose()?;
        if matches!(variable.takes, SettingTakes::Nothing) {
            return Err(
                Error::invalid(format!("parameter \"{}\" cannot be changed", variable.name)).with_sqlstate("55P02")
            );
        }
        if scope == SettingScope::Transaction && self.client.transaction.is_none() {
            return Ok(Outcome::done_with("SET", "SET LOCAL can only be used in transaction blocks"));
        }
        self.client.variables.put(variable.name, value, scope);
        Ok(Outcome::done("SET"))
    }

    /// Sets all parameters of the client to their defaults.
    pub(super) fn reset_variables(&mut self) {
        let application = self.client.variables.set.remove("application_name");
        self.client.variables.set.clear();
        self.client.variables.local.clear();
        self.client.variables.set.extend(application.map(|name| ("application_name", name)));
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
