//! What the other crates are tested against. For development only.
//!
//! Reading order: [`rng`] (random numbers that replay), [`row`] (rows as plain values), [`build`]
//! (plans put together by hand), [`model`] (what a plan means), [`generator`] (random relations,
//! histories and plans), [`laws`] (engine against model), [`histories`] (whether concurrent
//! transactions are strictly serialisable), [`temporal`] (cases of the temporal
//! algebra), [`tpch`] (a benchmark's tables and queries).
//!
//! Everything here may be slow and must be plain. Nothing here is used by the engine.

pub mod build;
pub mod generator;
pub mod histories;
pub mod laws;
pub mod model;
pub mod nexmark;
pub mod rng;
pub mod row;
pub mod temporal;
pub mod tpch;
