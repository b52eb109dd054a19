//! Cursors over rows that a connection's caller holds.

use std::sync::PoisonError;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow::datatypes::SchemaRef;

use super::connection::Connection;
use crate::error::Error;

impl Connection {
    /// Whether there is a cursor of that name.
    pub fn has_cursor(&self, name: &str) -> bool {
        self.client.lock().unwrap_or_else(PoisonError::into_inner).cursors.has(name)
    }

    /// Opens a cursor over rows, which FETCH and MOVE take forward.
    ///
    /// # Errors
    /// `Invalid` for batches that are not of the schema.
    pub fn lend_cursor(&mut self, name: &str, schema: &SchemaRef, batches: &[RecordBatch]) -> Result<(), Error> {
        let rows = concat_batches(schema, batches)?;
        self.client.lock().unwrap_or_else(PoisonError::into_inner).cursors.lend(name, rows);
        Ok(())
    }

    /// Closes a cursor over rows, and gives those that were not taken; `None` when it is closed.
    pub fn take_cursor(&mut self, name: &str) -> Option<RecordBatch> {
        self.client.lock().unwrap_or_else(PoisonError::into_inner).cursors.take_lent(name)
    }
}
