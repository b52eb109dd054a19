//! Integration tests over the whole engine.

mod arrows;
mod laws;
