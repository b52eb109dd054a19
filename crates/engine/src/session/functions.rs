//! Functions of the embedding program, by their names in SQL.

use std::collections::BTreeSet;

use anabranch_sql::statement::ObjectKind;

use super::state::Session;
use crate::catalog::kind_name;
use crate::error::Error;
use crate::functions::Function;

impl Session {
    /// Makes a function known to SQL under `name`, as SQL folds it: lower case unless it is quoted
    /// there. A function that is known under that name is replaced; views that call it go on with
    /// the function they were made with.
    pub fn register_function(&mut self, name: &str, function: Function) {
        self.catalog.add_function(name, function);
    }

    /// Forgets a function; whether there was one of that name. Views that call it go on.
    pub fn unregister_function(&mut self, name: &str) -> bool {
        self.catalog.remove_function(name)
    }

    /// Refuses what could not be made again from its text when a database is opened.
    pub(super) fn check_lasting(
        &self,
        kind: ObjectKind,
        name: &str,
        functions: &BTreeSet<String>,
    ) -> Result<(), Error> {
        match functions.first() {
            Some(function) if self.recorder.is_some() => Err(Error::invalid(format!(
                "{} \"{name}\" calls function \"{function}\", which lives in this process only",
                kind_name(kind)
            ))
            .with_sqlstate("0A000")
            .with_detail("A database with a data directory keeps the statements that views are made of.")
            .with_hint("Call the function in queries, or create the view in a database in memory.")),
            _ => Ok(()),
        }
    }
}
