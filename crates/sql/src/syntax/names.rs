//! Names as statements write them, and as the catalog keeps them.

use datafusion_expr::sqlparser::ast;

use crate::error::{ErrorKind, Result, SqlError};

/// What stands before the other name of a table that a column's name would hide.
pub(crate) const OTHER_TABLE: &str = "__table_";

/// A name as PostgreSQL folds it: lower case unless quoted.
pub(crate) fn fold(ident: &ast::Ident) -> String {
    match ident.quote_style {
        Some(_) => ident.value.clone(),
        None => ident.value.to_lowercase(),
    }
}

/// The name that the catalog has: that of an object in `public` is plain, others are `schema.name`.
pub(crate) fn object_name(name: &ast::ObjectName) -> Result<String> {
    let mut parts: Vec<String> = Vec::new();
    for part in &name.0 {
        match part.as_ident() {
            Some(ident) => parts.push(fold(ident)),
            None => return Err(SqlError::unsupported(format!("the name {name}"), "Write a plain name.")),
        }
    }
    let last = parts.pop().ok_or_else(|| SqlError::new(ErrorKind::Syntax, "expected a name"))?;
    match parts.last().map(String::as_str) {
        None | Some("public" | "pg_catalog") => Ok(last),
        Some(schema) => Ok(format!("{schema}.{last}")),
    }
}

/// A name as SQL reads it, whatever it is.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A catalog name without its schema.
pub fn own_name(name: &str) -> &str {
    name.rsplit_once('.').map_or(name, |(_, own)| own)
}

/// A catalog name as it is written: `schema.name` is two.
pub fn quoted_path(name: &str) -> String {
    match name.split_once('.') {
        Some((schema, own)) => format!("{}.{}", quoted(schema), quoted(own)),
        None => quoted(name),
    }
}
