//! Where a row goes follows from its columns alone.
//!
//! Law: what takes a row back goes where the row has gone. A row and its end are two updates,
//! perhaps hours apart, and whether they come as one or as two is not to be seen; so expressions of
//! routes read no lifetime and call nothing that has another value each time. Source: Quill 3.3,
//! and law 1.

use anabranch_engine::Error;
use anabranch_engine::frame::{Expr, reads_lifetime};

/// Refuses an expression that says where rows go, and is no function of their columns.
///
/// # Errors
/// `Invalid`, with `what` it is for.
pub(crate) fn check(what: &str, expr: &Expr) -> Result<(), Error> {
    let reads = match expr {
        expr if reads_lifetime(expr) => "reads their lifetimes",
        expr if expr.is_volatile() => "has another value each time",
        _ => return Ok(()),
    };
    Err(Error::invalid(format!("{what} {reads}: the end of a row would not follow its start"))
        .with_hint("Say where rows go by their columns alone."))
}
