//! The compiled half of the Python package `anabranch`: what Python cannot do itself.
//!
//! Law: this crate converts and forwards. Names, SQL texts, schemas and all else that users see are made
//! in Python (`python/anabranch`); here are the engine's thread ([`engine`]), answers as Arrow
//! ([`rows`]), values on their way out ([`to_python`]) and in ([`from_python`]), and errors ([`error`]).
//! No call into the engine holds the interpreter's lock.
#![forbid(unsafe_code)]

mod engine;
mod error;
mod from_python;
mod host;
mod rows;
mod to_python;

use pyo3::prelude::*;

/// The compiled half of the package; `anabranch/__init__.py` is the other.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<engine::Engine>()?;
    module.add_class::<engine::Changes>()?;
    module.add_class::<rows::Rows>()?;
    module.add_class::<rows::Buffer>()?;
    Ok(())
}
