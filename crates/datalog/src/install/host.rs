//! Where programs are installed.

use std::sync::Arc;

use anabranch_engine::{Connection, Error, RelationInfo, Rows, Session};
use anabranch_plan::Plan;
use arrow::array::RecordBatch;

/// Where programs are installed: a [`Session`] or a [`Connection`].
pub trait Host {
    /// Relations of the catalog.
    ///
    /// # Errors
    /// When the database is closed.
    fn list_relations(&mut self) -> Result<Vec<RelationInfo>, Error>;
    /// Runs SQL statements.
    ///
    /// # Errors
    /// Those of the statements.
    fn run_sql(&mut self, sql: &str) -> Result<(), Error>;
    /// Adds rows to a table.
    ///
    /// # Errors
    /// Those of INSERT.
    fn add_rows(&mut self, table: &str, rows: &RecordBatch) -> Result<(), Error>;
    /// Creates a materialized view of a plan.
    ///
    /// # Errors
    /// As [`Session::create_plan_view`].
    fn create_view(&mut self, name: &str, plan: &Arc<Plan>, definition: &str) -> Result<(), Error>;
    /// The rows of a plan.
    ///
    /// # Errors
    /// As [`Session::query_plan`].
    fn read_plan(&mut self, plan: &Arc<Plan>) -> Result<Rows, Error>;
}

impl Host for Session {
    fn list_relations(&mut self) -> Result<Vec<RelationInfo>, Error> {
        Ok(self.relations())
    }

    fn run_sql(&mut self, sql: &str) -> Result<(), Error> {
        self.execute(sql).map(drop)
    }

    fn add_rows(&mut self, table: &str, rows: &RecordBatch) -> Result<(), Error> {
        self.insert(table, rows).map(drop)
    }

    fn create_view(&mut self, name: &str, plan: &Arc<Plan>, definition: &str) -> Result<(), Error> {
        self.create_plan_view(name, plan, definition)
    }

    fn read_plan(&mut self, plan: &Arc<Plan>) -> Result<Rows, Error> {
        self.query_plan(plan)
    }
}

impl Host for Connection {
    fn list_relations(&mut self) -> Result<Vec<RelationInfo>, Error> {
        self.relations()
    }

    fn run_sql(&mut self, sql: &str) -> Result<(), Error> {
        self.execute(sql).map(drop)
    }

    fn add_rows(&mut self, table: &str, rows: &RecordBatch) -> Result<(), Error> {
        self.insert(table, rows).map(drop)
    }

    fn create_view(&mut self, name: &str, plan: &Arc<Plan>, definition: &str) -> Result<(), Error> {
        self.create_plan_view(name, plan, definition)
    }

    fn read_plan(&mut self, plan: &Arc<Plan>) -> Result<Rows, Error> {
        self.query_plan(plan)
    }
}
