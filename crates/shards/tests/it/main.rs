//! Sharded streams, against one shard.
#![allow(clippy::unwrap_used)]

mod fft;
mod grep;
mod movement;
mod plans;
mod processes;
mod safety;
mod split;
mod support;
