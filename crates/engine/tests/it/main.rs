//! A session from outside: statements in, answers out, under 0, 1 and 2 workers.
#![allow(clippy::unwrap_used)]

mod again;
mod altered;
mod analyze;
mod appender;
mod beside;
mod by_keys;
mod clients;
mod connections;
mod copying;
mod define;
mod depth;
mod dump;
mod durable;
mod errors;
mod frame_views;
mod graphs;
mod horizon;
mod isolation;
mod iterate;
mod memory;
mod parameters;
mod past;
mod placed;
mod read;
mod recorder;
mod recursion;
mod sharing;
mod sources;
mod subscribe;
mod subscribers;
mod support;
mod unique;
mod waiting;
mod workers;
mod write;
