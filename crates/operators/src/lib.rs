//! The verbs: what can be done to collections, one a file.
//!
//! Each verb is a *tactic*, a plain object that takes batches and gives batches, knows no runtime
//! and is tested alone; the run time ([`anabranch_flow`]) gives it frontiers and lets it have its
//! turns.
//!
//! Law: for every operator the accumulated output at every time is a function of the accumulated
//! input at that time, whatever the cut into batches, the order of arrival between two frontiers,
//! the number of workers, and the schedule of merges.
//!
//! Times are totally ordered here (`i64` ticks), so an aggregate needs its present state only, not
//! its history.
//!
//! A family has a folder, and each verb a file or folder of its own, under its name in SQL or in
//! the algebra:
//!
//! - [`expression`]: what is computed of the columns of a row;
//! - [`stateless`]: filter and project, unnest;
//! - [`relational`]: join, semi-join and anti-join, set operations, comparison with a scalar;
//! - [`aggregate`]: aggregates, and the table of groups;
//! - [`ordered`]: top-k, as-of join, row patterns;
//! - [`recursive`]: loops, which are kept current;
//! - [`temporal`]: verbs on events.
#![forbid(unsafe_code)]

pub mod aggregate;
pub mod expression;
mod made;
pub mod ordered;
pub mod recursive;
pub mod relational;
pub mod stateless;
pub mod temporal;
