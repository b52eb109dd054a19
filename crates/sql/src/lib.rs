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

mod age;
mod alike;
mod asof;
mod bounded;
mod cast_to_text;
pub mod catalog;
mod change;
mod coalesce;
pub mod coerce;
mod context;
mod conversions;
mod decorrelate;
mod dialect;
mod digits;
mod distinct_on;
mod error;
mod extract;
mod filtered;
mod flat;
mod functions;
mod held_back;
mod hoist;
pub mod input;
mod intervals;
mod lifted;
mod moments;
mod nearest;
mod numeric_casts;
pub mod numerics;
mod on_close;
mod outer_joins;
pub mod output;
mod own;
pub mod parse;
mod place;
pub mod planner;
mod postgres;
mod precedence;
mod recognize;
mod regex;
mod rewrite;
mod room;
mod setop;
pub mod span;
mod split;
pub mod statement;
mod subqueries;
mod text;
mod time;
mod totals;
mod translate;
mod types;
mod untyped;
mod walk;
mod wholes;
mod window_floor;
mod zones;

pub use catalog::{Catalog, Relation};
pub use change::{plan_delete, plan_insert, plan_update};
pub use datafusion_expr::sqlparser::ast;
pub use error::{ErrorKind, Result, SqlError};
pub use parse::{Parsed, parse};
pub use planner::{Finish, Planned, Planner, plan_query, plan_view};
pub use split::{Split, is_complete, split};
pub use types::{arrow_type, column_type_name, sql_name};
