//! Verbs of the relational algebra on two collections: joins, set operations, comparison with a
//! scalar.
//!
//! Reading order: [`join`] (inner), [`semi_join`] (semi, anti, and with a mark; an outer join is an
//! inner and an anti-join), [`once`] (the same for a question that is asked once),
//! [`set_operation`] (DISTINCT, EXCEPT, INTERSECT), [`threshold`] (rows compared with a scalar that
//! changes).

pub mod join;
pub mod once;
pub mod semi_join;
pub mod set_operation;
pub mod threshold;
