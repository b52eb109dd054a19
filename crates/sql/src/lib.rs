//! Text to plan: SQL is parsed, resolved against a catalog, and planned.
//!
//! DataFusion's planner crates resolve names, coerce types, decorrelate and optimise; their plan is
//! translated into the plan of `anabranch-plan`. The dialect is PostgreSQL's. Rewrites on the way
//! mend what DataFusion plans otherwise than PostgreSQL means it (set operations with
//! multiplicities, `DISTINCT ON`, dates minus dates ..).
//!
//! Law: a plan means what PostgreSQL says the text means, or planning fails with an error that says
//! what to write.
//!
//! In the order in which a query passes through:
//!
//! | folder | takes | gives |
//! |---|---|---|
//! | `syntax` | text | statements: syntax trees, and ours |
//! | `resolve` | names | relations, types, the nearest known name |
//! | [`passes`] | a syntax tree, then a logical plan | the same, rewritten by ordered tables |
//! | `functions` | values | values: functions and casts that DataFusion lacks or computes otherwise |
//! | `translate` | DataFusion's optimised plan | ours |
//!
//! [`planner`] runs all of it for queries and views, `change` for INSERT, UPDATE and DELETE.

mod change;
mod error;
mod functions;
mod infer;
mod literal_rows;
mod operation_messages;
pub mod passes;
pub mod planned;
pub mod planner;
mod planner_messages;
mod proposed;
mod regex;
mod resolve;
mod returned;
mod stack;
mod syntax;
mod time;
mod translate;
mod type_words;

pub use functions::user::UserAggregateFunction;
pub use functions::{at_scale, input, output};
pub use resolve::documents::planned_columns;
pub use resolve::{catalog, coerce, pg_types, type_marks, user_types};
pub use syntax::{files, index_parts, parse, references, sequence, span, statement, table};

pub use change::{plan_delete, plan_insert, plan_update};
pub use datafusion_expr::sqlparser::ast;
pub use error::{ErrorKind, Result, SqlError, excerpt};
pub use planned::{ColumnForm, Finish, Planned};
pub use planner::{Planner, plan_query, plan_view};
pub use planner_messages::operation_error;
pub use proposed::PROPOSED;
pub use resolve::catalog::{Catalog, Relation};
pub use resolve::parameters::{Parameters, index_of};
pub use resolve::types::{arrow_type, column_type_name, sql_name};
pub use returned::{RETURNED, Returning};
pub use syntax::parse::parse;
pub use syntax::split::{Split, is_complete, split};
pub use syntax::statement::Parsed;
pub use syntax::typed_parameters::CastParameters;
pub use syntax::volatile_calls::volatile_call;
pub use time::moments;
