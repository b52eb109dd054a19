//! Arrangements against a model that sums updates in a map.

mod history;
mod laws;
mod lives;
mod model;
mod ordered;
mod packed;
mod spine;
mod unsorted;
