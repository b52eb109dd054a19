//! Names and types: the catalog, the planner's view of it, and the nearest name to an unknown one.

pub mod catalog;
pub mod coerce;
pub(crate) mod context;
pub(crate) mod nearest;
pub(crate) mod place;
pub(crate) mod types;
