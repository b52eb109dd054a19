//! The peer: the same cases written against `differential-dataflow`, as its own users would.

pub mod arrange;
pub mod install;
pub mod join;
pub mod reduce;
