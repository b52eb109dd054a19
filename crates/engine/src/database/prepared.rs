//! Statements that are parsed and planned once and run often.

use std::sync::Arc;

use anabranch_sql::Parsed;
use arrow::datatypes::{DataType, SchemaRef};

/// A statement that can be run. Cheap to clone; it belongs to the connection that prepared it.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// Types of `$1`, `$2` ..
    pub parameters: Vec<DataType>,
    /// Columns of its rows; `None` when it returns none.
    pub columns: Option<SchemaRef>,
    /// The first words of its command tag: `SELECT`, `INSERT`, `CREATE VIEW`.
    pub tag: &'static str,
    /// The text it was made of.
    pub(super) text: Arc<str>,
    pub(super) statement: Arc<Parsed>,
}

impl Prepared {
    /// The text it was made of.
    pub fn text(&self) -> &str {
        &self.text
    }
}
