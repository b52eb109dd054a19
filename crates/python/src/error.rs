//! The engine's errors as exceptions of the package: `anabranch.errors` chooses the class.

use anabranch_engine::Error;
use pyo3::prelude::*;

/// The exception for an error of a statement.
pub fn raised(py: Python<'_>, error: &Error, statement: Option<&str>) -> PyErr {
    let make = || -> PyResult<PyErr> {
        let from_engine = py.import("anabranch.errors")?.getattr("from_engine")?;
        let arguments = (
            error.kind.to_string(),
            error.sqlstate(),
            &error.message,
            error.detail.as_deref(),
            error.hint.as_deref(),
            error.position,
            statement,
        );
        Ok(PyErr::from_value(from_engine.call1(arguments)?))
    };
    make().unwrap_or_else(|error| error)
}

/// An exception of the package without the engine: `kind` as the engine's, and a SQLSTATE.
pub fn raise(py: Python<'_>, kind: &str, sqlstate: &str, message: &str, hint: Option<&str>) -> PyErr {
    let make = || -> PyResult<PyErr> {
        let from_engine = py.import("anabranch.errors")?.getattr("from_engine")?;
        let none: Option<&str> = None;
        Ok(PyErr::from_value(from_engine.call1((kind, sqlstate, message, none, hint, none, none))?))
    };
    make().unwrap_or_else(|error| error)
}

/// Warns that a snapshot could not be written. What was asked has been done: with warnings that are
/// errors, the error is told beside it.
pub fn warn_of_snapshot(py: Python<'_>, failure: &str) {
    let warned = || -> PyResult<()> {
        let category = py.import("anabranch.errors")?.getattr("SnapshotWarning")?;
        py.import("warnings")?.call_method1("warn", (failure, category)).map(|_| ())
    };
    if let Err(error) = warned() {
        error.write_unraisable(py, None);
    }
}
