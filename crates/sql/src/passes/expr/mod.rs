//! Rewrites of the expressions of DataFusion's logical plan.

pub(crate) mod casts;
pub(crate) mod common_type;
pub(crate) mod dates;
pub(crate) mod filter_arguments;
pub(crate) mod numbers;
pub(crate) mod quoted_literals;
pub(crate) mod time_zones;
