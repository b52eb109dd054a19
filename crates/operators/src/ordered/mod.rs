//! Verbs that look at the values of a group in their order.
//!
//! They keep their input in a [`trace`], and walk those groups again that have changed: [`top_k`]
//! (ORDER BY with LIMIT, row numbers and ranks), [`asof`] (ASOF JOIN), [`session`] (SESSION),
//! [`match_recognize`] (row patterns), [`window`] (functions over frames).

pub mod asof;
mod by_partition;
pub(crate) mod instants;
pub mod match_recognize;
pub mod session;
pub mod top_k;
pub(crate) mod trace;
mod versions;
pub mod window;
