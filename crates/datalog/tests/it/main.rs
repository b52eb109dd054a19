//! Programs against their documented answers, random programs against a naive evaluator, bad
//! programs against their messages, and garbage against the parser.
#![allow(clippy::unwrap_used)]

mod bad;
mod built;
mod files;
mod garbage;
mod host;
mod install;
mod magic;
mod naive;
mod programs;
mod random;
