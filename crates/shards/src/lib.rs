//! Sharded streams: physical plans that a person writes, and declarative splitting.
