//! Rewrites of the expressions of DataFusion's logical plan.

pub(crate) mod alike;
pub(crate) mod filtered;
pub(crate) mod moments;
pub(crate) mod postgres;
pub(crate) mod untyped;
pub(crate) mod zones;
