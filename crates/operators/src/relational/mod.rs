//! Verbs of the relational algebra on two collections: joins, set operations, comparison with a
//! scalar.
//!
//! Reading order: [`join`] (inner), [`semi_join`] (semi, anti, and with a mark; an outer join is an
//! inner and an anti-join), [`once`] (the same for a question that is asked once),
//! [`set_operation`] (DISTINCT, EXCEPT, INTERSECT), [`threshold`] (rows compared with a scalar that
//! changes). Rows that are not in order meet by [`hash_pairs`] and [`hash_matches`], which look one
//! side up in a [`key_index`] of the other ([`look_ups`]): rows of a question, and [`history`].

mod hash_matches;
mod hash_pairs;
mod history;
pub mod join;
mod key_index;
mod look_ups;
pub mod once;
pub mod semi_join;
pub mod set_operation;
pub mod threshold;
