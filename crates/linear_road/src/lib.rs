//! The Linear Road benchmark: generator, program, validator, and trip grouping.
//!
//! Vehicles on expressways send positions; the system announces tolls and accidents, and answers
//! account queries within seconds. Source: Linear Road (VLDB 2004), with the readings of its
//! validator where the paper leaves a choice.
//!
//! Reading order: [`row`] (what comes in), [`answer`] (what goes out), [`rules`], [`history`],
//! [`generator`] (made-up traffic), [`reference`](mod@reference) (the rules in the plainest code),
//! [`validate`] (comparison of outputs), [`program`] (the rules as a sharded program), [`system`]
//! (the program at work), [`response`] (response times), [`sql`] (the rules as views), [`trips`]
//! (grouping of trips).
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod answer;
pub mod generator;
pub mod history;
pub mod program;
pub mod random;
pub mod reference;
pub mod response;
pub mod row;
pub mod rules;
pub mod sql;
pub mod system;
pub mod trips;
pub mod validate;
