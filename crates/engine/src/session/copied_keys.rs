//! The row of a COPY whose key is taken, and its line.
//!
//! Law: the row is the first one that repeats a key of the rows before it, or that meets a key of
//! the table. Cost: only where a COPY fails. Rows are read from the spool once more, and a block is
//! halved until one row is left.

use super::keys::{SeenKeys, first_refused};
use super::state::Session;
use crate::catalog::Object;
use crate::error::Error;
use crate::spool::Spool;

impl Session {
    /// The first row, from 0, whose key is taken, and its error. `None` if that was not what the
    /// rows were refused for.
    pub(super) fn first_taken(
        &mut self,
        object: &Object,
        keys: &SeenKeys,
        spool: &mut Spool,
        refused: &Error,
    ) -> Result<Option<(usize, Error)>, Error> {
        if refused.sqlstate() != "23505" {
            return Ok(None);
        }
        let met = self.first_met(object, spool)?;
        let repeated = keys.first_repeated(object, spool)?;
        Ok(met.into_iter().chain(repeated).min_by_key(|(row, _)| *row))
    }

    /// The first row whose key the table has, and its error.
    fn first_met(&mut self, object: &Object, spool: &mut Spool) -> Result<Option<(usize, Error)>, Error> {
        let (mut n_before, mut first) = (0, None);
        spool.each(|block| {
            if first.is_none() {
                let check = |n: usize| {
                    let rows: Vec<u32> = (0..n as u32).collect();
                    self.check_keys(object, &[block.take(&rows)])
                };
                first = first_refused(block.len(), check).map(|(row, error)| (n_before + row, error));
            }
            n_before += block.len();
            Ok(())
        })?;
        Ok(first)
    }
}

/// The place of a row, as PostgreSQL tells it.
pub(super) fn line_of(table: &str, line: u64) -> String {
    format!("COPY {table}, line {line}")
}
