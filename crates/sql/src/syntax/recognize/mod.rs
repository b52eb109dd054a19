//! The clause of `MATCH_RECOGNIZE`: `pattern` and `clause`.

pub(crate) mod clause;
pub(crate) mod pattern;
