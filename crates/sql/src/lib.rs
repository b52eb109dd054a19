//! Text to plan: SQL is parsed, resolved against a catalog, and planned.
//!
//! DataFusion's planner crates resolve names, coerce types, decorrelate and optimise; what they yield is translated
//! into the plan of `anabranch-plan`. The dialect is PostgreSQL's. What DataFusion plans otherwise than PostgreSQL
//! means it (set operations with multiplicities, `DISTINCT ON`, dates minus dates ..) is rewritten on the way.
//!
//! Law: a plan means what PostgreSQL says the text means, or planning fails with an error that says what to write.
//!
//! Reading order: [`statement`], [`mod@parse`], [`catalog`], [`planner`], then the private modules it is made of:
//! `rewrite` (on the syntax tree), `context` (names and functions for DataFusion), `subqueries` and `decorrelate` (what it
//! would decorrelate wrongly or not at all), `postgres` and what it calls (`alike`, `untyped`, `moments` ..: types and operators, on the resolved plan),
//! `translate` (its plan to ours),
//! `change` (INSERT, UPDATE, DELETE).

mod change;
mod error;
mod functions;
pub mod passes;
pub mod planned;
pub mod planner;
mod resolve;
mod stack;
mod syntax;
mod translate;

pub use functions::{input, output};
pub use resolve::{catalog, coerce};
pub use syntax::{parse, span, statement};

pub use change::{plan_delete, plan_insert, plan_update};
pub use datafusion_expr::sqlparser::ast;
pub use error::{ErrorKind, Result, SqlError};
pub use planned::{Finish, Planned};
pub use planner::{Planner, plan_query, plan_view};
pub use resolve::catalog::{Catalog, Relation};
pub use resolve::types::{arrow_type, column_type_name, sql_name};
pub use syntax::parse::{Parsed, parse};
pub use syntax::split::{Split, is_complete, split};
