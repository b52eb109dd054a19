//! Names and types: the catalog, the planner's view of it, and the nearest name to an unknown one.

pub mod catalog;
pub mod coerce;
pub(crate) mod common_types;
pub(crate) mod context;
pub mod documents;
pub(crate) mod operands;
pub(crate) mod parameters;
pub mod pg_types;
pub(crate) mod position;
pub(crate) mod row_at_once;
pub(crate) mod shown_forms;
pub(crate) mod suggest;
pub mod type_marks;
pub(crate) mod type_names;
pub(crate) mod types;
pub(crate) mod unknown;
pub mod user_types;
pub(crate) mod value_errors;
mod written_parameters;
