//! Planning from the outside: text in, plans and errors out.

mod changes;
mod golden;
mod queries;
mod slt;
mod statements;
mod support;
mod tpch;
