//! The Linear Road benchmark: generator, program, validator, and trip grouping.
//!
//! Vehicles on expressways send positions; the system announces tolls and accidents, and answers
//! account queries within seconds. Source: Linear Road (VLDB 2004), with the readings of its
//! validator where the paper leaves a choice.
//!
//! Reading order: [`row`] (what comes in), [`answer`] (what goes out), [`rules`], [`history`],
//! [`generator`] (made-up traffic), [`reference`](mod@reference) (the rules in the plainest code),
//! [`validate`] (comparison of outputs).
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod answer;
pub mod generator;
pub mod history;
pub mod random;
pub mod reference;
pub mod row;
pub mod rules;
pub mod validate;
