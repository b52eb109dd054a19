//! How a plan is shown to people: `EXPLAIN`.
