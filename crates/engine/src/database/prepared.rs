//! What a connection remembers of statements: a text that comes again is neither parsed nor planned
//! again.
//!
//! Law: an entry serves while the catalog has the version at which it was made. Cost: a look-up by
//! text and types; the engine is asked for the catalog's version.

use std::collections::HashMap;

use arrow::datatypes::DataType;

use crate::prepared::Prepared;

/// Statements that are remembered, at most.
const STATEMENTS_MAX: usize = 256;
/// The longest text that is remembered.
const TEXT_BYTES_MAX: usize = 8 << 10;

/// Statements by text and given types.
#[derive(Debug, Default)]
pub(super) struct Remembered {
    /// By text.
    statements: HashMap<String, Vec<PreparedEntry>>,
    n_statements: usize,
}

#[derive(Debug)]
struct PreparedEntry {
    given: Vec<Option<DataType>>,
    /// The catalog's version.
    version: u64,
    prepared: Prepared,
}

impl Remembered {
    /// The statement that was prepared from this text and these types, and the catalog's version
    /// then.
    pub fn get(&self, text: &str, types: &[Option<DataType>]) -> Option<(u64, &Prepared)> {
        let of_text = self.statements.get(text)?;
        let entry = of_text.iter().find(|entry| entry.given == types)?;
        Some((entry.version, &entry.prepared))
    }

    /// Remembers a statement, in place of an older one. When there are many, all others are
    /// forgotten.
    pub fn put(&mut self, types: &[Option<DataType>], version: u64, prepared: &Prepared) {
        if prepared.text().len() > TEXT_BYTES_MAX {
            return;
        }
        if self.n_statements >= STATEMENTS_MAX {
            *self = Remembered::default();
        }
        let of_text = self.statements.entry(prepared.text().to_owned()).or_default();
        let before = of_text.len();
        of_text.retain(|entry| entry.given != types);
        of_text.push(PreparedEntry { given: types.to_vec(), version, prepared: prepared.clone() });
        self.n_statements = self.n_statements + of_text.len() - before;
    }
}
