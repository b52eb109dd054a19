//! Collations: those that compare texts by their bytes, as all texts are compared here.

use crate::error::{Result, SqlError};

/// Refuses a collation that compares texts otherwise.
///
/// # Errors
/// `Unsupported`.
pub(crate) fn check_collation(name: &str) -> Result<()> {
    match name.trim_start_matches("pg_catalog.").trim_matches('"') {
        "C" | "POSIX" | "ucs_basic" | "default" => Ok(()),
        other => {
            let hint = "Texts compare by their bytes: write COLLATE \"C\", or lower() to ignore case.";
            Err(SqlError::unsupported(format!("collation \"{other}\""), hint))
        }
    }
}
