//! What is said of relations that do not exist.

use crate::error::{ErrorKind, SqlError};
use crate::resolve::catalog::Catalog;
use crate::resolve::suggest::nearest;

/// What is said of a relation that the catalog does not have.
pub(crate) fn unknown_relation(catalog: &dyn Catalog, name: &str) -> SqlError {
    if name.starts_with("pg_") {
        return catalog_table(name);
    }
    let names = catalog.names();
    let hint = nearest(name, names.iter().map(String::as_str))
        .map(|name| format!("Perhaps you meant \"{name}\"."))
        .unwrap_or_default();
    SqlError::new(ErrorKind::UnknownName, format!("relation \"{name}\" does not exist")).with_hint(hint)
}

/// The error for a table that describes the catalog.
pub(crate) fn catalog_table(name: &str) -> SqlError {
    SqlError::unsupported(
        format!("catalog table {name}"),
        "Write SHOW TABLES, SHOW SOURCES, SHOW VIEWS, SHOW MATERIALIZED VIEWS, SHOW INDEXES, or SHOW COLUMNS FROM relation.",
    )
}
