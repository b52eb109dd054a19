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
mod passes;
pub mod planner;
mod resolve;
mod stack;
mod syntax;
mod translate;

pub use functions::{input, output};
pub use resolve::{catalog, coerce};
pub use syntax::{parse, span, statement};

use functions::{
    age, bounded, cast_to_text, checked as own, coalesce, conversions, digits, extract, intervals, text, window_floor,
};
use passes::expr::{
    common_type as alike, dates as moments, filter_arguments as filtered, numbers as postgres,
    quoted_literals as untyped, time_zones as zones,
};
use passes::plan::{
    asof, decorrelate, distinct_on, guarded_rules as held_back, outer_conditions as hoist, recognize,
    set_operations as setop, subqueries, subquery_arguments as lifted,
};
use passes::tree as rewrite;
use passes::tree::on_close;
use resolve::{context, position as place, suggest as nearest, types};
use stack as room;
use syntax::{dialect, split, walk};

pub use catalog::{Catalog, Relation};
pub use change::{plan_delete, plan_insert, plan_update};
pub use datafusion_expr::sqlparser::ast;
pub use error::{ErrorKind, Result, SqlError};
pub use parse::{Parsed, parse};
pub use planner::{Finish, Planned, Planner, plan_query, plan_view};
pub use split::{Split, is_complete, split};
pub use types::{arrow_type, column_type_name, sql_name};
