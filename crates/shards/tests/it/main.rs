//! Sharded streams, against one shard.
#![allow(clippy::unwrap_used)]

mod allocated;
mod contents;
mod cost;
mod dataset;
mod fft;
mod follow;
mod grep;
mod grouped;
mod handed;
mod inputs;
mod load;
mod locations;
mod movement;
mod packed;
mod parts;
mod periods;
mod placed;
mod plans;
mod processes;
mod profile;
mod program_texts;
mod safety;
mod split;
mod sql_programs;
mod sql_records;
mod support;
mod wide;
