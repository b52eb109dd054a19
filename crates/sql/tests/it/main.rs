//! Planning from the outside: text in, plans and errors out.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod changes;
mod golden;
mod queries;
mod slt;
mod statements;
mod support;
mod tpch;
