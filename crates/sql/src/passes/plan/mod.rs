//! Rewrites of DataFusion's logical plan.

pub(crate) mod asof;
pub(crate) mod conform;
pub(crate) mod decorrelate;
pub(crate) mod distinct_on;
pub(crate) mod guarded_rules;
pub(crate) mod outer_conditions;
pub(crate) mod recognize;
pub(crate) mod set_operations;
pub(crate) mod subqueries;
pub(crate) mod subquery_arguments;
pub(crate) mod unions;
