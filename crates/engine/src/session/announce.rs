//! What a statement will give back, before it runs: its columns.

use anabranch_sql::output::shown_schema;
use anabranch_sql::statement::Statement;
use anabranch_sql::{Parsed, Returning};
use arrow::datatypes::SchemaRef;

use super::files::Wanted;
use super::outcome::with_progress;
use super::show::text_rows;
use super::state::Session;
use super::subscribe::told_schema;
use crate::error::Error;

impl Session {
    /// The columns of a statement's rows; `None` when it returns none. Those of a subscription are
    /// its changes'.
    ///
    /// # Errors
    /// Whatever planning finds wrong with the statement.
    pub(crate) fn columns_of(&mut self, script: &str, statement: &Parsed) -> Result<Option<SchemaRef>, Error> {
        let filed = self.with_files(&statement.statement, Wanted::Columns);
        let announced = filed.and_then(|filed| self.announce(filed.as_ref().unwrap_or(&statement.statement)));
        self.drop_files();
        announced.map_err(|error| error.placed_in(script))
    }

    fn announce(&mut self, statement: &Statement) -> Result<Option<SchemaRef>, Error> {
        Ok(match statement {
            Statement::Select { query, .. } => Some(shown_schema(&self.plan_query(query)?.planned.columns())),
            Statement::Subscribe(subscribe) => {
                let planned = self.plan_subscribed(subscribe)?.planned;
                let told = told_schema(subscribe, &planned.columns())?.0;
                Some(if subscribe.progress { with_progress(&told) } else { told })
            }
            Statement::Execute(execute) => self.named_statement(&execute.name)?.columns,
            Statement::Fetch(fetch) if !fetch.moves => Some(self.cursor_schema(&fetch.cursor)?),
            Statement::Declare(declare) => {
                self.announce(&declare.statement.statement)?;
                None
            }
            Statement::Explain(_) | Statement::ExplainChange(_) => Some(text_rows("plan", vec![])?.schema),
            Statement::Show(show) => Some(self.show(show)?.schema),
            Statement::Describe { name } => Some(self.describe(name)?.schema),
            Statement::Insert(insert) => {
                self.plan_insert(insert)?;
                self.returned(insert.returned())?
            }
            Statement::Update(update) => {
                self.plan_update(update)?;
                self.returned(update.returned())?
            }
            Statement::Delete(delete) => {
                self.plan_delete(delete)?;
                self.returned(delete.returned())?
            }
            Statement::ChangesInWith(with) => self.announce(&self.columns_of_changes(with)?)?,
            _ => None,
        })
    }

    fn returned(&self, returning: Option<Returning<'_>>) -> Result<Option<SchemaRef>, Error> {
        let Some(returning) = returning else { return Ok(None) };
        Ok(Some(shown_schema(&self.plan_returned(&returning)?.planned.columns())))
    }
}
