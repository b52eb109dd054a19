//! The columns of a query that is not run.

use anabranch_sql::Parsed;
use anabranch_sql::output::shown_schema;
use anabranch_sql::statement::Statement;
use arrow::datatypes::SchemaRef;

use super::state::Session;
use crate::error::Error;

impl Session {
    /// The columns of a query, without running it: as planned, and as an answer shows them.
    ///
    /// # Errors
    /// `Invalid` when the text is not one query, or cannot be planned.
    pub fn columns_of_query(&mut self, sql: &str) -> Result<(SchemaRef, SchemaRef), Error> {
        let statements = anabranch_sql::parse(sql)?;
        let [Parsed { statement: Statement::Select { query, .. }, .. }] = statements.as_slice() else {
            return Err(Error::invalid("one query was expected").with_hint("Use execute for other statements."));
        };
        let planned = self.plan_query(query).map_err(|error| error.placed_in(sql))?.planned;
        let schema = planned.columns();
        let shown = shown_schema(&schema);
        Ok((schema, shown))
    }
}
