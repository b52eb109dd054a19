//! The statements of Linear Road, each a test that names its own.
#![allow(clippy::unwrap_used)]

mod cases;
mod generator;
mod processes;
mod program;
mod rates;
mod rules;
mod smoke;
mod support;
mod traffic_table;
mod trips;
