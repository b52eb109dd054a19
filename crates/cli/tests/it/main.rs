//! The binary, run on scripts.

#![allow(clippy::unwrap_used)]

mod demo;
mod output;
mod scripts;
mod sources;
mod support;
