//! Sharded streams, against one shard.
#![allow(clippy::unwrap_used)]

mod allocated;
mod cost;
mod dataset;
mod fft;
mod grep;
mod handed;
mod inputs;
mod load;
mod movement;
mod packed;
mod periods;
mod plans;
mod processes;
mod profile;
mod program_texts;
mod safety;
mod split;
mod sql_programs;
mod sql_records;
mod support;
