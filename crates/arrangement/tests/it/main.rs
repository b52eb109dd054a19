//! Arrangements against a model that sums updates in a map.

mod laws;
mod model;
mod spine;
