//! The binary, run on scripts.

#![allow(clippy::unwrap_used)]

mod connect;
mod datalog;
mod demo;
mod first_hour;
mod folder;
mod idle;
mod kill;
mod linear_road;
mod output;
mod plan;
mod scripts;
mod sources;
mod support;
