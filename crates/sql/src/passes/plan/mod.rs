//! Rewrites of DataFusion's logical plan.

pub(crate) mod asof;
pub(crate) mod decorrelate;
pub(crate) mod distinct_on;
pub(crate) mod held_back;
pub(crate) mod hoist;
pub(crate) mod lifted;
pub(crate) mod recognize;
pub(crate) mod setop;
pub(crate) mod subqueries;
