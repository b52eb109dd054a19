//! Verbs that look at each row alone, and keep nothing.

pub mod filter_project;
pub mod unnest;
