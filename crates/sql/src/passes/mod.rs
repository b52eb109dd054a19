//! Rewrites between text and plan: of the syntax tree, of the logical plan, and of its expressions.

pub(crate) mod expr;
pub(crate) mod plan;
pub(crate) mod tree;
