//! The binary, run on scripts.

mod demo;
mod output;
mod scripts;
mod sources;
mod support;
