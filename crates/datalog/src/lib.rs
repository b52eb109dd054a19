//! Datalog: programs of facts and rules, kept current by the engine.
//!
//! Text in Souffle's syntax, or a program made in Rust, is checked and becomes plans of the engine:
//! relations that facts come to are tables, answers are materialized views, and recursion is a loop
//! of the plan. Facts that come and go change the answers.
//!
//! Reading order: [`ast`], [`build`], [`syntax`], [`check`] (to [`core`]), [`stratify`], [`plan`],
//! [`magic`], [`install`], [`files`]; values are in [`value`], [`record`] and [`functor`].
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod ast;
pub mod build;
mod check;
mod core;
mod explain;
mod files;
mod functor;
mod install;
mod magic;
mod near;
mod plan;
mod record;
mod stratify;
mod syntax;
mod value;

pub use ast::Program;
pub use explain::render;
pub use files::{Folders, Progress};
pub use install::{Host, Installed};
pub use value::Value;
