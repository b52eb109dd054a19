//! What no single crate can test: the layout of the crates, the five laws over the whole engine,
//! and SQL from text to rows.

mod arrows;
mod bad_events;
mod cycles;
mod derived;
mod exports;
mod growth;
mod growth_of_frames;
mod histories;
mod history;
mod laws;
mod library_words;
mod names;
mod neighbours;
mod nexmark;
mod passes;
mod promises;
mod properties;
mod questions;
mod recursive;
mod recursive_sql;
mod reference;
mod restore;
mod rewrites;
mod slices;
mod slt;
mod splits;
mod state;
mod temporal;
mod temporal_filters;
mod tour;
mod tpch;
mod user_aggregates;
mod widths;
mod windows;
