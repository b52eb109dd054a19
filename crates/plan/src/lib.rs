//! What is asked: the one plan representation, plain data between SQL (or a fluent API) and the
//! operators.
//!
//! A [`Plan`] is a tree of [`Node`]s, each with the schema of its output. SQL text and fluent calls
//! produce it, rewrites improve it, `EXPLAIN` prints it and the engine's `render` turns it into
//! operators. It knows no operator.
//!
//! Law: a plan means a function from collections to a collection, evaluated independently at every
//! time. Rewrites keep that function. Columns are referred to by position ([`usize`], into the
//! input's columns) wherever a node needs a plain column, and by DataFusion
//! [`Expr`](datafusion_expr::Expr), resolved against the input's schema, wherever it needs a
//! computation; only [`Node::Stage`] and join residuals compute.
//!
//! Reading order: [`ir`] (the nodes), with [`anabranch_spec`] for what they ask of operators, and
//! [`recognize`]; [`temporal`] and [`pattern`] (verbs on events);
//! [`properties`] (what is known of streams); [`bounds`] (what may still change); [`explain`] (how
//! a plan is shown); [`rewrite`] (what makes it cheaper); [`variables`] (parts of loops seen from
//! outside).

pub mod bounds;
pub mod explain;
mod explain_rows;
mod explain_temporal;
pub mod expressions;
pub mod ir;
pub mod pattern;
pub mod placement;
pub mod positions;
pub mod program;
pub mod properties;
pub mod recognize;
pub mod rewrite;
pub mod temporal;
pub mod variables;

pub use anabranch_spec::aggregate::{AggregateCall, AggregateFunction, Fraction};
pub use anabranch_spec::asof;
pub use anabranch_spec::foreign::Foreign;
pub use anabranch_spec::limits::RoundLimit;
pub use anabranch_spec::order::{Nulls, SortKey};
pub use anabranch_spec::top_k::{RankedBy, TopK};
pub use anabranch_spec::window::{Place, Window, WindowCall, WindowFunction};
pub use ir::{Binding, JoinKind, Node, Plan, Recursive, SetOperation};
