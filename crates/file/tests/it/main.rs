//! Good and bad files through the connector.

mod csv;
mod json;
mod parquet;
mod paths;
mod support;
mod tbl;
