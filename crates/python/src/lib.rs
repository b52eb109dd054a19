//! The compiled half of the Python package `anabranch`: what Python cannot do itself.
//!
//! Law: this crate converts and forwards. Names, SQL texts, schemas and all else that users see are
//! made in Python (`python/anabranch`); here are the engine's thread ([`engine`]), answers as Arrow
//! ([`rows`]), values on their way out ([`to_python`]) and in ([`from_python`]), functions of
//! Python that the engine calls ([`functions`]), queries over events ([`frame`], [`expressions`],
//! [`pattern`], [`run`], [`progressive`]), sharded programs ([`shards`], [`shard_run`]), and errors
//! ([`error`]). No call into the engine holds the interpreter's lock.
#![forbid(unsafe_code)]

mod engine;
mod error;
mod expressions;
mod frame;
mod from_python;
mod functions;
mod host;
mod pattern;
mod progressive;
mod rows;
mod run;
mod shard_run;
mod shards;
mod to_python;

use std::ffi::OsString;

use pyo3::prelude::*;

/// The program `anabranch`, with these words as its command line: the exit code.
#[pyfunction]
fn command_line(py: Python<'_>, words: Vec<OsString>) -> u8 {
    py.detach(|| anabranch_cli::run_command_line(words))
}

/// The compiled half of the package; `anabranch/__init__.py` is the other.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<engine::Engine>()?;
    module.add_class::<engine::Changes>()?;
    module.add_class::<rows::Rows>()?;
    module.add_class::<rows::Buffer>()?;
    module.add_class::<functions::Function>()?;
    module.add_class::<frame::Frame>()?;
    module.add_class::<run::Run>()?;
    module.add_class::<progressive::Progressive>()?;
    module.add_class::<shards::Shards>()?;
    module.add_class::<shards::Branches>()?;
    module.add_class::<shard_run::ShardRun>()?;
    module.add_class::<shard_run::Datasets>()?;
    module.add_function(wrap_pyfunction!(command_line, module)?)?;
    Ok(())
}
