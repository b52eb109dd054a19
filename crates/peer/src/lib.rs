//! The peer's side of the benchmarks: queries written against `differential-dataflow`, as one who
//! knows it well would write them.
//!
//! A crate of its own because its generic operators take minutes to compile: it uses nothing of
//! ours, so a change of ours does not compile it again.
#![forbid(unsafe_code)]

pub mod graphs;
pub mod recursion;
pub mod standing;
pub mod tpch;
