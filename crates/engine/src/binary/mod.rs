//! Values in PostgreSQL's binary format: of the protocol, and of COPY.
//!
//! The source is PostgreSQL's `send` and `recv` functions. Reading order: [`write`](mod@write),
//! [`read`].

pub mod read;
pub mod write;

/// Days from 1970 to 2000, where PostgreSQL counts from.
pub(crate) const EPOCH_DAYS: i32 = 10_957;
/// The same in microseconds.
pub(crate) const EPOCH_MICROS: i64 = EPOCH_DAYS as i64 * 86_400_000_000;
