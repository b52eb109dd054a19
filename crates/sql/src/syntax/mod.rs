//! From text to syntax trees: statements and their grammar, before any name is resolved.

pub(crate) mod changes_in_with;
pub(crate) mod collation;
pub(crate) mod dialect;
pub mod files;
pub mod index_parts;
pub(crate) mod names;
pub mod parse;
pub(crate) mod precedence;
pub(crate) mod recognize;
pub mod references;
pub(crate) mod relation_calls;
pub mod sequence;
pub(crate) mod size;
pub mod span;
pub(crate) mod split;
pub mod statement;
pub(crate) mod subscripts;
pub mod table;
pub(crate) mod template;
pub(crate) mod typed_parameters;
pub(crate) mod volatile_calls;
pub(crate) mod walk;
