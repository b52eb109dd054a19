//! Good and bad files through the connector.

#![allow(clippy::unwrap_used)]

mod busy_hours;
mod copy;
mod csv;
mod follow;
mod json;
mod parquet;
mod paths;
mod resume;
mod support;
mod tbl;
