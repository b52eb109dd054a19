//! What no single crate can test: the layout of the crates, the five laws over the whole engine, and SQL from text to rows.

mod arrows;
mod laws;
mod slt;
mod temporal;
mod tpch;
