//! From text to syntax trees: statements and their grammar, before any name is resolved.

pub(crate) mod dialect;
pub mod parse;
pub mod span;
pub(crate) mod split;
pub mod statement;
pub(crate) mod walk;
